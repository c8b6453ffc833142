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
    warned: bool,
    overflowed: bool,
}

impl Weight {
    /// Whether the world is to be weighed now; if so, the next time is set.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + WEIGH_EVERY;
        }
        is_due
    }

    /// The world has so many bytes: what is to be told of it, once when it is large, and once when it is too large.
    pub(super) fn note(&mut self, bytes: usize) -> Option<Trouble> {
        match bytes {
            ..=WORLD_BYTES_MAX if bytes <= WORLD_BYTES_MAX / 2 => None,
            ..=WORLD_BYTES_MAX => {
                (!std::mem::replace(&mut self.warned, true)).then_some(Trouble::WorldLarge)
            }
            _ => (!std::mem::replace(&mut self.overflowed, true)).then_some(Trouble::WorldTooLarge),
        }
    }
}
