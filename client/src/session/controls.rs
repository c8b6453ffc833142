//! [`Controls`]: which own players are in control, as the game was told.
//!
//! Invariant: a seat loses its controls only after it had them, and gets them back only after it lost them.

use twinstep_core::world::Presence;
use twinstep_core::{PlayerId, PlayerSet};

use super::told::{Event, Events};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Controls {
    /// The own players that are in the match and not dropped.
    held: PlayerSet,
    /// Those that are dropped.
    dropped: PlayerSet,
}

impl Controls {
    /// Tells when an own player is dropped, and when it is back.
    pub(super) fn watch(
        &mut self,
        seats: &[PlayerId],
        presence: impl Fn(PlayerId) -> Presence,
        events: &mut Events,
    ) {
        for (seat, player) in seats.iter().enumerate() {
            let presence = presence(*player);
            let had = self.held.contains(*player);
            match presence {
                Presence::Dropped if had => events.push(Event::ControlsLost { seat }),
                Presence::Present if !had && self.dropped.contains(*player) => {
                    events.push(Event::ControlsBack { seat });
                }
                _ => {}
            }
            self.held.set(*player, presence == Presence::Present);
            self.dropped.set(*player, presence == Presence::Dropped);
        }
    }
}
