//! [`Clock`]: when the match's next tick or turn is due, and which players the match waits for. [`Requested`]: the
//! speed and pause that were requested.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::PlayerId;
use twinstep_core::frame::PlayerSet;
use twinstep_core::turn::Cadence;

use crate::mode::{Lockstep, MatchMode};

pub(super) struct Clock {
    mode: MatchMode,
    pub(super) now: Duration,
    pub(super) last_cadence: Cadence,
    pub(super) due: Option<Duration>,
    /// The lengths of the turns already sealed but not yet due, oldest first (in lockstep only).
    pub(super) ahead: VecDeque<Duration>,
    pub(super) waiting_since: Option<Duration>,
    pub(super) waited_for: Option<WaitReason>,
    /// Before this time, the match does not pause for clients that trail.
    pub(super) hold_from: Duration,
    /// The part of this wait's cost that has already been charged.
    pub(super) paid: Duration,
    pub(super) advanced_at: Option<Duration>,
    pub(super) sent_at: Duration,
    /// The players that the match waits for after a crash or a load.
    pub(super) returning: Option<Return>,
    /// Waiting is not charged to players until this time, because all clients had to reconnect.
    pub(super) excused_until: Duration,
}

impl Clock {
    /// `last_cadence` is the cadence of the match's first world.
    pub(super) fn new(mode: MatchMode, last_cadence: Cadence) -> Self {
        Clock {
            mode,
            now: Duration::ZERO,
            last_cadence,
            due: None,
            ahead: VecDeque::new(),
            waiting_since: None,
            waited_for: None,
            hold_from: Duration::ZERO,
            paid: Duration::ZERO,
            advanced_at: None,
            sent_at: Duration::ZERO,
            returning: None,
            excused_until: Duration::ZERO,
        }
    }

    /// Continues the schedule after a restart: turns of length `turn` have already been sealed ahead.
    pub(super) fn resume(&mut self, turn: Duration) {
        self.ahead = std::iter::repeat_n(turn, self.mode.turns_ahead().into()).collect();
    }

    pub(super) fn begin(&mut self, now: Duration, tick: Duration) {
        self.due.get_or_insert(self.mode.first_due(now, tick));
    }

    pub(super) fn reach(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.now
    }

    /// Computes when the next tick or turn is due, after `ticks` ticks were sealed at `now`.
    pub(super) fn record_sealed(&mut self, now: Duration, ticks: u32) {
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
                    // Clients pause for the lateness that the turns ahead do not absorb, so the schedule moves too.
                    self.due = Some((due + length).max((now + length).saturating_sub(absorbed)));
                }
            }
        }
    }

    /// The lateness of a turn that does not pause clients: they still have earlier turns to play.
    pub(super) fn absorbed(&self) -> Duration {
        let between = u32::from(self.mode.turns_ahead()).saturating_sub(1);
        let oldest = self.ahead.front().copied();
        oldest.unwrap_or_default() * between
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    Batches(PlayerSet),
    Laggards(PlayerSet),
    /// These players have not returned since the server's restart or the load.
    Return(PlayerSet),
    Pause,
    // The match has not started: these players are not ready, or load their worlds.
    Start(PlayerSet),
}

impl WaitReason {
    pub(super) fn players(self) -> PlayerSet {
        match self {
            WaitReason::Batches(players)
            | WaitReason::Laggards(players)
            | WaitReason::Return(players)
            | WaitReason::Start(players) => players,
            WaitReason::Pause => PlayerSet::default(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    pub(super) players: PlayerSet,
    pub(super) since: Option<Duration>,
    /// Whether the wait starts with the first player that plays, as in a loaded match.
    pub(super) from_first: bool,
}

/// The admitted requests: a speed, a pause and single steps, which take effect in the cadence of the next turn, and a
/// save. Also the state needed to admit saves and to free the seats of a deserted paused match.
#[derive(Debug, Default)]
pub(super) struct Requested {
    pub(super) tick_ns: Option<u32>,
    /// `true` and the player that requested it if a pause starts; `false` if a pause ends.
    pub(super) pause: Option<(bool, Option<PlayerId>)>,
    pub(super) steps: u32,
    pub(super) alone_since: Option<Duration>,
    pub(super) offers_saves: bool,
    // The player (`None`: the host) whose save is being written.
    pub(super) saving: Option<Option<PlayerId>>,
}
