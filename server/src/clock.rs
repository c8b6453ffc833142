//! [`Clock`]: when the match's next tick or turn is due, and what it waits for meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::frame::PlayerSet;
use twinstep_core::turn::Cadence;

use crate::mode::{Lockstep, MatchMode};

/// The time and the schedule of a match.
pub(super) struct Clock {
    mode: MatchMode,
    /// The match's own time.
    pub(super) now: Duration,
    /// How the last sealed tick was clocked.
    pub(super) last_cadence: Cadence,
    /// When the next tick, or turn, is to be sealed.
    pub(super) due: Option<Duration>,
    /// With a command delay: lengths of the turns that are sealed and not due, oldest first.
    pub(super) ahead: VecDeque<Duration>,
    /// Since when the match waits.
    pub(super) waiting_since: Option<Duration>,
    /// For whom the match was last found waiting.
    pub(super) waited_for: Option<WaitReason>,
    /// How much of what this wait has cost is paid.
    pub(super) paid: Duration,
    pub(super) advanced_at: Option<Duration>,
    pub(super) told_at: Duration,
    /// Who is waited for after a crash.
    pub(super) returning: Option<Return>,
    /// Until then nobody is blamed for its silence: everybody had to find its way back.
    pub(super) excused_until: Duration,
}

impl Clock {
    /// The clock of a match whose world was clocked so.
    pub(super) fn new(mode: MatchMode, last_cadence: Cadence) -> Self {
        Clock {
            mode,
            now: Duration::ZERO,
            last_cadence,
            due: None,
            ahead: VecDeque::new(),
            waiting_since: None,
            waited_for: None,
            paid: Duration::ZERO,
            advanced_at: None,
            told_at: Duration::ZERO,
            returning: None,
            excused_until: Duration::ZERO,
        }
    }

    /// The schedule goes on from here after a restart: turns of this length are sealed ahead already.
    pub(super) fn resume(&mut self, turn: Duration) {
        self.ahead = std::iter::repeat_n(turn, self.mode.turns_ahead().into()).collect();
    }

    /// When the next tick, or turn, is sealed; the first time, that is found from how long a tick is.
    pub(super) fn begin(&mut self, now: Duration, tick: Duration) {
        self.due.get_or_insert(self.mode.first_due(now, tick));
    }

    /// The match's own time, which never goes back, whatever the host's does.
    pub(super) fn reach(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.now
    }

    /// What was due was sealed, `ticks` of them: finds when the next is.
    pub(super) fn note_sealed(&mut self, now: Duration, ticks: u32) {
        let due = self.due.unwrap_or(now);
        let length = self.last_cadence.tick() * ticks;
        match self.mode {
            MatchMode::Prediction => self.due = Some(due + length),
            MatchMode::Lockstep(Lockstep { delay }) => {
                let absorbed = self.absorbed();
                self.ahead.push_back(length);
                if self.ahead.len() > usize::from(delay)
                    && let Some(length) = self.ahead.pop_front()
                {
                    // Lateness that the turns between do not absorb pauses clients: the schedule has it too.
                    self.due = Some((due + length).max((now + length).saturating_sub(absorbed)));
                }
            }
        }
    }

    /// How late a turn may be sealed without costing anybody anything, because clients have the turns before it.
    pub(super) fn absorbed(&self) -> Duration {
        let between = u32::from(self.mode.turns_ahead()).saturating_sub(1);
        let oldest = self.ahead.front().copied();
        oldest.unwrap_or_default() * between
    }
}

/// Why the match does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// For these players' batches.
    Batches(PlayerSet),
    /// For these players' machines to come closer.
    Laggards(PlayerSet),
    /// For these players to return after the server's restart.
    Return(PlayerSet),
}

impl WaitReason {
    pub(super) fn players(self) -> PlayerSet {
        match self {
            WaitReason::Batches(players)
            | WaitReason::Laggards(players)
            | WaitReason::Return(players) => players,
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
