//! [`Known`]: the digest of a part of a value, taken once and then known: until the part changes.
//!
//! Invariant: a known digest is that of the part as it is. Whoever can change a part forgets it.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use serde::ser::Serialize;

use super::hasher::Fed;

/// Nothing is known yet.
const UNKNOWN: u8 = 0;
const DIGEST: u8 = 1;
/// It has none: it holds a NaN, or does not serialise.
const NONE: u8 = 2;

/// What is known of a part's digest.
#[derive(Default)]
pub(crate) struct Known {
    state: AtomicU8,
    /// The digest's halves: not all machines have atomics of 64 bits.
    halves: [AtomicU32; 2],
}

impl Known {
    /// The digest of `part`, taken now if it was not yet; `None`: it has none.
    pub(crate) fn digest(&self, part: &impl Serialize) -> Option<u64> {
        // Whoever finds it at the same time finds the same.
        match self.state.load(Ordering::Acquire) {
            UNKNOWN => {
                let digest = Fed::of(part).ok().and_then(|fed| fed.digest);
                let [low, high] = &self.halves;
                if let Some(digest) = digest {
                    low.store(digest as u32, Ordering::Relaxed);
                    high.store((digest >> 32) as u32, Ordering::Relaxed);
                }
                let state = if digest.is_some() { DIGEST } else { NONE };
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

    /// The part may become another one.
    pub(crate) fn forget(&mut self) {
        *self.state.get_mut() = UNKNOWN;
    }
}
