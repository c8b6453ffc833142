//! The services that a match gives up while its server is overloaded ([`Degradation`]), from the least to the most
//! noticeable for players.
//!
//! ```text
//!  1  spectators       spectators are closed, and new ones are refused
//!  2  announcements    others' inputs are sent with their frames only, so clients guess them a little worse
//!  3  newcomers        newcomers without a seat are refused; an identity with a seat may always return
//!  4  turns            turns are twice as long: half the packets, and every frame arrives a little later
//! ```
//!
//! Invariant: no step ends a game. The world changes only in its turn length, which frames carry.

use twinstep_core::bounds::TURN_TICKS_MAX;
use twinstep_protocol::packet::closed::CloseCode;

use crate::config::Announce;

/// The services that a match does not provide now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degradation {
    /// The number of steps taken, 0..=4, in the order shown in the module's docs.
    pub steps: u8,
    /// The close code if newcomers are refused for another reason: low memory or disk space, or a shutdown.
    pub refusal: Option<CloseCode>,
}

impl Degradation {
    /// The highest number of steps.
    pub const STEPS_MAX: u8 = 4;
    /// The close code for sessions refused or closed because ticks are late.
    pub const BUSY: CloseCode = CloseCode::ServerBusy { after_s: 30 };
    /// The close code for sessions refused because memory or disk space is short.
    pub const FULL: CloseCode = CloseCode::ServerFull { after_s: 30 };

    pub(super) fn spares_spectators(self) -> bool {
        self.steps >= 1
    }

    pub(super) fn refuses_spectators(self) -> Option<CloseCode> {
        let late = self.spares_spectators().then_some(Degradation::BUSY);
        self.refusal.or(late)
    }

    pub(super) fn announce(self, wish: Announce) -> Announce {
        match self.steps {
            0 | 1 => wish,
            _ => Announce::Never,
        }
    }

    pub(super) fn refuses_newcomers(self) -> Option<CloseCode> {
        let late = (self.steps >= 3).then_some(Degradation::BUSY);
        self.refusal.or(late)
    }

    pub(super) fn turn_ticks(self, wish: u8) -> u8 {
        match self.steps {
            0..=3 => wish,
            _ => wish.saturating_mul(2).min(TURN_TICKS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_drops_one_more_service_in_this_order() {
        let taken = |degradation: Degradation| {
            [
                degradation.spares_spectators(),
                degradation.announce(Announce::Ahead) == Announce::Never,
                degradation.refuses_newcomers().is_some(),
                degradation.turn_ticks(3) == 6,
            ]
        };
        for steps in 0..=Degradation::STEPS_MAX {
            let degradation = Degradation {
                steps,
                refusal: None,
            };
            assert_eq!(
                taken(degradation),
                [0, 1, 2, 3].map(|n| n < steps),
                "{steps}"
            );
            assert!(degradation.turn_ticks(TURN_TICKS_MAX) == TURN_TICKS_MAX);
        }
        let draining = Degradation {
            steps: 0,
            refusal: Some(CloseCode::Draining),
        };
        assert_eq!(draining.refuses_spectators(), Some(CloseCode::Draining));
        assert_eq!(taken(draining), [false, false, true, false]);
        assert_eq!(
            Degradation::default().announce(Announce::Never),
            Announce::Never
        );
    }
}
