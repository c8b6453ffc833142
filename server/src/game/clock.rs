//! [`Clock`]: when the match's next tick or turn is due, and what it waits for meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::frame::PlayerSet;

/// The schedule of a match.
#[derive(Default)]
pub(super) struct Clock {
    /// When the next tick, or turn, is to be sealed.
    pub(super) due: Option<Duration>,
    /// With a command delay: lengths of the turns that are sealed and not due, oldest first.
    pub(super) ahead: VecDeque<Duration>,
    /// Since when the match waits.
    pub(super) waiting_since: Option<Duration>,
    /// For whom the match was last found waiting.
    pub(super) waited_for: Option<Wait>,
    /// How much of what this wait has cost is paid.
    pub(super) paid: Duration,
    pub(super) advanced_at: Option<Duration>,
    pub(super) told_at: Duration,
}

impl Clock {
    /// The clock of a match that was taken up again: the schedule goes on from here, and `m` turns of this length are
    /// sealed ahead already.
    pub(super) fn resumed(m: u8, turn: Duration) -> Self {
        Clock {
            ahead: std::iter::repeat_n(turn, m.into()).collect(),
            ..Clock::default()
        }
    }
}

/// Why the match does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// For these players' batches.
    Batches(PlayerSet),
    /// For these players' machines to come closer.
    Laggards(PlayerSet),
    /// For these players to return after the server's restart.
    Return(PlayerSet),
}

impl Wait {
    pub(super) fn players(self) -> PlayerSet {
        match self {
            Wait::Batches(players) | Wait::Laggards(players) | Wait::Return(players) => players,
        }
    }
}

/// Who is waited for after a match was taken up again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    pub(super) players: PlayerSet,
    /// When waiting began; `None`: the match was not advanced yet.
    pub(super) since: Option<Duration>,
}
