//! The beats of the I/O loop and of each match. The I/O loop beats only while matches are run. Writers never wait for
//! readers.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use twinstep_core::{Simulation, Tick};

use super::histogram::{Histogram, Spread};
use twinstep_server::Match;

/// The process counts as dead if the I/O loop has had no beat for this long.
const BEATLESS_MAX: Duration = Duration::from_secs(2);

/// The time of the I/O loop's last beat, and its number of sessions.
#[derive(Debug, Default)]
pub(super) struct Beat {
    at_ms: AtomicU64,
    sessions: AtomicUsize,
}

impl Beat {
    pub(super) fn beat(&self, now: Duration) {
        self.at_ms.store(now.as_millis() as u64, Ordering::Relaxed);
    }

    pub(super) fn is_alive(&self, now: Duration) -> bool {
        let last = Duration::from_millis(self.at_ms.load(Ordering::Relaxed));
        now.saturating_sub(last) < BEATLESS_MAX
    }

    pub(super) fn show_sessions(&self, sessions: usize) {
        self.sessions.store(sessions, Ordering::Relaxed);
    }

    pub(super) fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed) as u64
    }
}

#[derive(Debug)]
struct MatchNumber(u64);

impl Default for MatchNumber {
    fn default() -> MatchNumber {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        MatchNumber(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
pub(super) struct Pulse {
    number: MatchNumber,
    beats: AtomicU64,
    tick: AtomicU32,
    players: AtomicU32,
    spectators: AtomicU32,
    seats_free: AtomicU32,
    lateness_us: AtomicU32,
    lateness: Histogram,
    deserted: AtomicBool,
    visits: AtomicU64,
    ended: AtomicBool,
    condemned: AtomicBool,
}

/// A snapshot of the state published by a match.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct MatchGlance {
    pub tick: Tick,
    pub players: u32,
    pub spectators: u32,
    pub seats_free: u32,
    /// The lateness of the last tick.
    pub lateness: Duration,
}

impl Pulse {
    pub(super) fn beat<S: Simulation>(&self, match_: &Match<S>) {
        let world = match_.world();
        self.tick.store(world.tick().0, Ordering::Relaxed);
        let players = world.present().len() as u32;
        self.players.store(players, Ordering::Relaxed);
        let spectators = match_.spectators() as u32;
        self.spectators.store(spectators, Ordering::Relaxed);
        let seats_free = match_.free_seats() as u32;
        self.seats_free.store(seats_free, Ordering::Relaxed);
        let is_deserted = match_.is_deserted();
        if self.deserted.swap(is_deserted, Ordering::Relaxed) && !is_deserted {
            self.visits.fetch_add(1, Ordering::Relaxed);
        }
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if the match has no session, and no seat whose player may reconnect.
    pub(super) fn is_deserted(&self) -> bool {
        self.deserted.load(Ordering::Relaxed)
    }

    /// The number of times that the deserted match got a session. It reveals short visits between two checks.
    pub(super) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }

    pub(super) fn record_lateness(&self, lateness: Duration) {
        let us = u32::try_from(lateness.as_micros()).unwrap_or(u32::MAX);
        self.lateness_us.store(us, Ordering::Relaxed);
        self.lateness.record(lateness);
    }

    /// The unique number of the match, and the lateness of its ticks so far.
    pub(super) fn lateness_so_far(&self) -> (u64, Spread) {
        (self.number.0, self.lateness.spread())
    }

    pub(super) fn glance(&self) -> MatchGlance {
        MatchGlance {
            tick: Tick(self.tick.load(Ordering::Relaxed)),
            players: self.players.load(Ordering::Relaxed),
            spectators: self.spectators.load(Ordering::Relaxed),
            seats_free: self.seats_free.load(Ordering::Relaxed),
            lateness: Duration::from_micros(self.lateness_us.load(Ordering::Relaxed).into()),
        }
    }

    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Publishes that the match has ended, and now only writes its last files.
    pub(super) fn show_end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn condemn(&self) {
        self.condemned.store(true, Ordering::Release);
    }

    /// Returns `true` if the match was declared over while its thread hung. In that case, the match must have no
    /// effect.
    pub(super) fn is_condemned(&self) -> bool {
        self.condemned.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use twinstep_core::testing::doc::Counter;

    use super::*;
    use twinstep_server::SessionId;
    use twinstep_server::config::MatchConfig;
    use twinstep_server::hooks::{Decision, HookContext};

    /// A short visit between two checks must restart the time until a deserted match ends.
    #[test]
    fn each_first_session_of_a_deserted_match_counts_as_a_visit() {
        let unanswered = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
        let config = MatchConfig::action();
        let mut match_ = Match::new(config, Counter::default(), Arc::new(()), unanswered).unwrap();
        let pulse = Pulse::default();
        let visits = |who: Option<u64>, match_: &mut Match<Counter>| {
            if let Some(peer) = who {
                match_
                    .connect(Duration::ZERO, SessionId(peer), "anna", 1)
                    .unwrap();
            }
            pulse.beat(match_);
            (pulse.visits(), pulse.is_deserted())
        };
        assert_eq!(visits(None, &mut match_), (0, true));
        assert_eq!(visits(Some(1), &mut match_), (1, false));
        assert_eq!(visits(None, &mut match_), (1, false), "she keeps her seat");
        match_.disconnect(SessionId(1));
        match_.advance(Duration::from_secs(1));
        match_.advance(Duration::from_secs(120));
        assert_eq!(visits(None, &mut match_), (1, true), "her seat is free");
        assert_eq!(visits(Some(2), &mut match_), (2, false));
    }
}
