//! [`Degradation`]: what a match does without while its server has too much to do, in an order that players feel last.
//!
//! ```text
//!  1  spectators       who watches is let go, and nobody comes to watch
//!  2  announcements    others' inputs are told with their frames only: they are guessed a little worse
//!  3  newcomers        nobody gets a seat who has none; who has one comes back whatever is said here
//!  4  turns            twice as long: half the packets, and everybody hears of everything a little later
//! ```
//!
//! Invariant: what a step does without here ends no game and changes no world but by the length of its turns, which is told in
//! frames like every other change of them.

use twinstep_core::bounds::TURN_TICKS_MAX;
use twinstep_protocol::packet::closed::CloseCode;

use crate::config::Announce;

/// What a match does without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degradation {
    /// How many steps were taken, 0..=4: see the order above.
    pub steps: u8,
    /// Newcomers are refused for another reason, which they are told: there is no memory or disk for more, or the server is
    /// about to end.
    pub shut: Option<CloseCode>,
}

impl Degradation {
    /// The most steps.
    pub const STEPS_MAX: u8 = 4;
    /// The close code for sessions that are refused or closed because ticks are late.
    pub const BUSY: CloseCode = CloseCode::ServerBusy { after_s: 30 };
    /// The close code for sessions that are refused because memory or disk is short.
    pub const FULL: CloseCode = CloseCode::ServerFull { after_s: 30 };

    pub(super) fn spares_spectators(self) -> bool {
        self.steps >= 1
    }

    /// What whoever comes to watch is told, if it may not.
    pub(super) fn refuses_spectators(self) -> Option<CloseCode> {
        let late = self.spares_spectators().then_some(Degradation::BUSY);
        self.shut.or(late)
    }

    /// What is announced, where this would be.
    pub(super) fn announce(self, wish: Announce) -> Announce {
        match self.steps {
            0 | 1 => wish,
            _ => Announce::Never,
        }
    }

    /// What whoever comes to play and has no seat is told, if none is to be had.
    pub(super) fn refuses_newcomers(self) -> Option<CloseCode> {
        let late = (self.steps >= 3).then_some(Degradation::BUSY);
        self.shut.or(late)
    }

    /// How long a turn is, in ticks, where it would be so long.
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
    fn each_step_takes_one_thing_more_in_this_order() {
        let taken = |degradation: Degradation| {
            [
                degradation.spares_spectators(),
                degradation.announce(Announce::Ahead) == Announce::Never,
                degradation.refuses_newcomers().is_some(),
                degradation.turn_ticks(3) == 6,
            ]
        };
        for steps in 0..=Degradation::STEPS_MAX {
            let degradation = Degradation { steps, shut: None };
            assert_eq!(
                taken(degradation),
                [0, 1, 2, 3].map(|n| n < steps),
                "{steps}"
            );
            assert!(degradation.turn_ticks(TURN_TICKS_MAX) == TURN_TICKS_MAX);
        }
        let shut = Degradation {
            steps: 0,
            shut: Some(CloseCode::Draining),
        };
        assert_eq!(shut.refuses_spectators(), Some(CloseCode::Draining));
        assert_eq!(taken(shut), [false, false, true, false]);
        assert_eq!(
            Degradation::default().announce(Announce::Never),
            Announce::Never
        );
    }
}
