//! How large the world is, as bytes: worlds that grow beyond their bound end nothing, but are told of early.
//!
//! ```text
//!  0 ──────────────── half ─────────────── WORLD_BYTES_MAX ────────────▶
//!                       an incident warns      nobody joins or is healed; no world is written or kept; the match plays on
//! ```
//!
//! Invariant: the bound is the same wherever a world goes (journals, joiners, spectators, evidence), because whoever
//! reads one makes room for no more.

use std::time::Duration;

use twinstep_core::bounds::WORLD_BYTES_MAX;

use crate::incident::Trouble;

/// The world is weighed each time that so much match time has passed.
const WEIGH_EVERY: Duration = Duration::from_secs(10);

/// What was told of the world's size.
#[derive(Default)]
pub(super) struct Weight {
    /// When it is looked at next, in the match's time.
    due: Duration,
    /// Its size became known since, because it was encoded.
    is_known: bool,
    warned: bool,
    overflowed: bool,
}

impl Weight {
    /// Whether the world is to be weighed now, which takes a pass over all of it; if so, the next time is set.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + WEIGH_EVERY;
        !std::mem::take(&mut self.is_known)
    }

    /// Forgets the last note: it is old by the next look.
    pub(super) fn forget(&mut self) {
        self.is_known = false;
    }

    /// The world has so many bytes: what is to be told of it, once when it is large, and once when it is too large.
    pub(super) fn note(&mut self, bytes: usize) -> Option<Trouble> {
        self.is_known = true;
        match bytes {
            ..=WORLD_BYTES_MAX if bytes <= WORLD_BYTES_MAX / 2 => None,
            ..=WORLD_BYTES_MAX => {
                (!std::mem::replace(&mut self.warned, true)).then_some(Trouble::WorldLarge)
            }
            _ => (!std::mem::replace(&mut self.overflowed, true)).then_some(Trouble::WorldTooLarge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding K3-I: a world that was just encoded was weighed by another pass over all of it.
    #[test]
    fn a_world_whose_size_is_known_is_not_weighed_again() {
        let mut weight = Weight::default();
        let mut weighed = 0;
        for second in 0..100 {
            // A world is written every ten seconds for the first half of the time.
            if second % 10 == 5 && second < 50 {
                weight.note(1_000);
            }
            if weight.is_due(Duration::from_secs(second)) {
                weighed += 1;
                weight.note(1_000);
                weight.forget();
            }
        }
        assert_eq!(weighed, 1 + 4, "at first, and when nothing is written");
    }
}
