//! [`Known`]: a cached digest of part of a value, valid until the part changes.
//!
//! Invariant: a cached digest always matches the part's current content. Every change of a part clears it.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use serde::ser::Serialize;

use super::hasher::Fed;

const UNKNOWN: u8 = 0;
const DIGEST: u8 = 1;
/// The part has no digest: it contains a NaN, or does not serialise.
const NONE: u8 = 2;

#[derive(Default)]
pub(crate) struct Known {
    state: AtomicU8,
    /// The two halves of the digest. Not all machines have 64-bit atomics.
    halves: [AtomicU32; 2],
}

impl Known {
    /// The digest of `part`, computed on the first call. `None` if the part has no digest.
    pub(crate) fn digest(&self, part: &impl Serialize) -> Option<u64> {
        // Two threads that compute it at the same time store the same value.
        match self.state.load(Ordering::Acquire) {
            UNKNOWN => {
                let digest = Fed::of(part).ok().and_then(|fed| fed.digest);
                let [low, high] = &self.halves;
                if let Some(digest) = digest {
                    low.store(digest as u32, Ordering::Relaxed);
                    high.store((digest >> 32) as u32, Ordering::Relaxed);
                }
                let state = if digest.is_some() { DIGEST } else { NONE };
                // Pairs with the `Acquire` above: a thread that sees the state also sees both halves.
                self.state.store(state, Ordering::Release);
                digest
            }
            NONE => None,
            _ => {
                let [low, high] = self
                    .halves
                    .each_ref()
                    .map(|half| half.load(Ordering::Relaxed));
                Some(u64::from(high) << 32 | u64::from(low))
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_known(&self) -> bool {
        self.state.load(Ordering::Acquire) != UNKNOWN
    }

    pub(crate) fn forget(&mut self) {
        *self.state.get_mut() = UNKNOWN;
    }
}
