//! [`Rhythm`]: how well a client keeps up, and the cadence that the client requests.
//!
//! ```text
//!  reported by the client: load, pauses ──────────┐
//!  seen by this server: late, early, trailing ────┴▶ counts while it is late ─▶ Tempo
//! ```
//!
//! Invariant: a client's own reports count only while this server has recently seen that the client is late.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::RTT_MAX;
use twinstep_core::turn::Cadence;
use twinstep_protocol::packet::play_up::{LOAD_UNITS, UpStatus};

use crate::config::MatchConfig;
use crate::tempo::{Tempo, TurnReport};

/// The number of recent batches whose slack is remembered.
const SLACKS: usize = 16;
/// The number of past seconds whose largest lag is remembered.
const LAGS: usize = 8;
/// A client's reports count for this long after the client was late.
const LATE_FOR: Duration = Duration::from_secs(5);
/// At this load or above, a machine cannot keep up with the game.
const LOAD_SLOW: u8 = (LOAD_UNITS as u8) - 1;
/// Up to this load, a machine can handle shorter ticks. Between the two loads, ticks keep their length.
const LOAD_HEADROOM: u8 = (LOAD_UNITS as u8) - 3;

#[derive(Debug, Default)]
pub(crate) struct Rhythm {
    /// The client's pauses since the last turn: those it reported, and at least 1 if the match waited for it.
    pauses: u32,
    pauses_reported: Option<u8>,
    /// The share of time that the client's machine spends on the game, in [`LOAD_UNITS`], as reported by the client.
    load: u8,
    /// The slack of the last batches: the time from their arrival to their turn's due time, in ms; newest last.
    slacks: ArrayVec<i16, SLACKS>,
    late_at: Option<Duration>,
    /// The start of the current second, and the largest lag in it, in ticks.
    lag_of_second: (Duration, u32),
    /// The largest lags of the last seconds at this cadence, newest last.
    lags: ArrayVec<u32, LAGS>,
    lags_cadence: Option<(u8, u32)>,
    trails_since: Option<Duration>,
    tempo: Tempo,
}

impl Rhythm {
    /// Takes the client's status: the client's load, and its 4-bit count of pauses, which wraps.
    pub(crate) fn record_status(&mut self, status: UpStatus) {
        self.load = status.load;
        let reported = status.late_turns;
        let before = self.pauses_reported.replace(reported).unwrap_or(reported);
        self.pauses += u32::from(reported.wrapping_sub(before) & 15);
    }

    /// Records that the match waited for this session. That counts as a pause even if the client does not report one.
    pub(crate) fn record_waited_for(&mut self) {
        self.pauses = self.pauses.max(1);
    }

    pub(crate) fn forget_pauses(&mut self) {
        self.pauses = 0;
    }

    pub(crate) fn record_late(&mut self, now: Duration) {
        self.late_at = Some(now);
    }

    fn is_late(&self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) <= LATE_FOR;
        self.late_at.is_some_and(lately)
    }

    pub(crate) fn record_slack(&mut self, ms: i64) {
        if self.slacks.is_full() {
            self.slacks.remove(0);
        }
        self.slacks
            .push(ms.clamp(i16::MIN.into(), i16::MAX.into()) as i16);
    }

    /// The smallest slack of the last batches, in milliseconds. Returns `None` if no batch has arrived yet.
    pub(crate) fn slack(&self) -> Option<i16> {
        self.slacks.iter().copied().min()
    }

    /// Records the number of ticks by which the client's authority is behind the match, beyond its round trip.
    pub(crate) fn record_lag(&mut self, now: Duration, cadence: Cadence, lag: u32) {
        let cadence = (cadence.turn_ticks, cadence.tick_ns);
        if self.lags_cadence != Some(cadence) {
            self.lags_cadence = Some(cadence);
            self.lags.clear();
            self.lag_of_second = (now, 0);
        }
        let (began, largest) = self.lag_of_second;
        if now.saturating_sub(began) < Duration::from_secs(1) {
            self.lag_of_second.1 = largest.max(lag);
            return;
        }
        if self.lags.is_full() {
            self.lags.remove(0);
        }
        self.lags.push(largest.max(lag));
        self.lag_of_second = (now, lag);
    }

    /// The client's usual lag at this cadence, in ticks beyond its round trip: the median of the largest lags of the
    /// last 8 s, so that a freeze of a second or two does not change it. Returns `None` until it is known, which takes
    /// 5 s without a cadence change.
    pub(crate) fn usual_lag(&self, cadence: Cadence) -> Option<u32> {
        if self.lags_cadence != Some((cadence.turn_ticks, cadence.tick_ns)) {
            return None;
        }
        let mut lags = self.lags.clone();
        lags.sort_unstable();
        (lags.len() > LAGS / 2).then(|| lags[lags.len() / 2])
    }

    pub(crate) fn record_trailing(&mut self, now: Duration, trails: bool) {
        let since = self.trails_since;
        self.trails_since = trails.then(|| since.unwrap_or(now));
    }

    pub(crate) fn has_trailed_for(&self, now: Duration, long: Duration) -> bool {
        self.trails_since
            .is_some_and(|since| now.saturating_sub(since) >= long)
    }

    pub(crate) fn tempo(&self) -> &Tempo {
        &self.tempo
    }

    /// The cadence that the client requests for the turn starting now; `last` is the cadence of the turn before. If
    /// `is_spent`, its identity has used up its budget, and gets only what its round trip needs.
    pub(crate) fn ask(
        &mut self,
        now: Duration,
        config: &MatchConfig,
        last: Cadence,
        (rtt, jitter): (Duration, Duration),
        is_spent: bool,
    ) -> Cadence {
        if is_spent {
            self.tempo.relax();
        }
        let is_heeded = !is_spent && self.is_late(now);
        let pauses = std::mem::take(&mut self.pauses);
        let seen = TurnReport {
            pauses: if is_heeded { pauses } else { 0 },
            rtt: rtt.min(RTT_MAX),
            jitter,
            slow: is_heeded && self.load >= LOAD_SLOW,
            has_headroom: !is_heeded || self.load <= LOAD_HEADROOM,
        };
        self.tempo.decide(now, config, last, seen)
    }

    /// Excludes a pause of the match from all times.
    pub(crate) fn shift_pause(&mut self, lasted: Duration) {
        self.shift_deadlines(lasted);
        self.late_at = self.late_at.map(|at| at + lasted);
        self.lag_of_second.0 += lasted;
        self.tempo.shift(lasted);
    }

    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        if let Some(since) = &mut self.trails_since {
            *since += slip;
        }
    }
}
