//! [`Rhythm`]: how well a client keeps up, and how it would have turns clocked for that.
//!
//! ```text
//!  told by the client: load, pauses ──────────────┐
//!  seen by this server: late, early, trailing ────┴▶ heeded while it is late ─▶ Tempo
//! ```
//!
//! Invariant: what a client tells of itself counts only while this server has seen lately that it is late.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::RTT_MAX;
use twinstep_core::turn::Cadence;
use twinstep_protocol::packet::play_up::{LOAD_UNITS, UpStatus};

use crate::config::MatchConfig;
use crate::tempo::{Seen, Tempo};

/// Batches whose arrival is remembered.
const SLACKS: usize = 16;
/// Who was late is believed for so long that its machine or its line is slow.
const LATE_FOR: Duration = Duration::from_secs(5);
/// A machine cannot keep up if it is busy with the game for this share of its time.
const LOAD_SLOW: u8 = (LOAD_UNITS as u8) - 1;
/// It has room for shorter ticks up to this share; between the two nothing changes.
const LOAD_ROOMY: u8 = (LOAD_UNITS as u8) - 3;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Rhythm {
    /// Pauses that the client told of, or for which the match had to wait, and that nobody looked at yet.
    pauses: u32,
    pauses_told: Option<u8>,
    /// For what share of its time its machine is busy with the game, as it tells.
    load: u8,
    /// How early the last batches came before their turn was due, in milliseconds, newest last.
    slacks: ArrayVec<i16, SLACKS>,
    /// When it was last seen to be late, by this server's own clock.
    late_at: Option<Duration>,
    /// Since when it trails.
    trails_since: Option<Duration>,
    /// What its machine and its line ask for.
    tempo: Tempo,
}

impl Rhythm {
    /// The client counts its pauses in half a byte that wraps, and tells its load in the other.
    pub(crate) fn note_told(&mut self, status: UpStatus) {
        self.load = status.load;
        let told = status.late_turns;
        let before = self.pauses_told.replace(told).unwrap_or(told);
        self.pauses += u32::from(told.wrapping_sub(before) & 15);
    }

    /// The match waited for this session: a pause, whether or not the client tells of it.
    pub(crate) fn note_waited_for(&mut self) {
        self.pauses = self.pauses.max(1);
    }

    /// Nobody is to look at the pauses so far.
    pub(crate) fn forget_pauses(&mut self) {
        self.pauses = 0;
    }

    /// The server saw that it is late.
    pub(crate) fn note_late(&mut self, now: Duration) {
        self.late_at = Some(now);
    }

    /// Whether the server saw lately that it is late.
    fn is_late(&self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) <= LATE_FOR;
        self.late_at.is_some_and(lately)
    }

    /// Notes how early a batch came, in milliseconds; late ones are below 0.
    pub(crate) fn note_slack(&mut self, ms: i64) {
        if self.slacks.is_full() {
            self.slacks.remove(0);
        }
        self.slacks
            .push(ms.clamp(i16::MIN.into(), i16::MAX.into()) as i16);
    }

    /// How early the latest of the last batches came, in milliseconds; `None`: none came.
    pub(crate) fn slack(&self) -> Option<i16> {
        self.slacks.iter().copied().min()
    }

    /// Notes whether its authority is too far behind now.
    pub(crate) fn note_trailing(&mut self, now: Duration, trails: bool) {
        let since = self.trails_since;
        self.trails_since = trails.then(|| since.unwrap_or(now));
    }

    /// Whether it has trailed for so long.
    pub(crate) fn has_trailed_for(&self, now: Duration, long: Duration) -> bool {
        self.trails_since
            .is_some_and(|since| now.saturating_sub(since) >= long)
    }

    /// By how much a turn is longer for its sake, beyond what its round trip needs.
    pub(crate) fn excess(&self, config: &MatchConfig) -> Duration {
        self.tempo.excess(config)
    }

    /// How it would have the turn that begins now clocked; `last` is how the turn before was. `is_spent`: its identity
    /// has used up what it may ask for, and gets what its round trip needs.
    pub(crate) fn ask(
        &mut self,
        now: Duration,
        config: &MatchConfig,
        last: Cadence,
        rtt: Duration,
        is_spent: bool,
    ) -> Cadence {
        if is_spent {
            self.tempo.relax();
        }
        let is_heeded = !is_spent && self.is_late(now);
        let pauses = std::mem::take(&mut self.pauses);
        let seen = Seen {
            pauses: if is_heeded { pauses } else { 0 },
            rtt: rtt.min(RTT_MAX),
            slow: is_heeded && self.load >= LOAD_SLOW,
            roomy: !is_heeded || self.load <= LOAD_ROOMY,
        };
        self.tempo.decide(now, config, last, seen)
    }

    /// The match stood still for so long, for which nobody here is to blame.
    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        if let Some(since) = &mut self.trails_since {
            *since += slip;
        }
    }
}
