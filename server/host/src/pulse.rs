//! Signs of life: of the I/O loop, which beats only while matches are run, and of each match. Whoever shows them never waits for whoever looks.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use twinstep_core::{Simulation, Tick};

use super::histogram::{Histogram, Spread};
use twinstep_server::Match;

/// Without a beat of the I/O loop for so long, the process is not alive.
const BEATLESS_MAX: Duration = Duration::from_secs(2);

/// When the I/O loop moved time on last, and how many sessions it had.
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

    /// Sessions now, admitted or not.
    pub(super) fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed) as u64
    }
}

/// A number that no other match of this process has.
#[derive(Debug)]
struct MatchNumber(u64);

impl Default for MatchNumber {
    fn default() -> MatchNumber {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        MatchNumber(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a match shows to its watch.
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

/// What a match last showed.
#[derive(Clone, Copy, Debug)]
pub struct MatchGlance {
    /// Its next tick.
    pub tick: Tick,
    /// Players who are there.
    pub players: u32,
    /// Spectators who are there.
    pub spectators: u32,
    /// Seats that newcomers can take.
    pub seats_free: u32,
    /// By how much its last tick was late.
    pub lateness: Duration,
}

impl Pulse {
    /// Shows that the match is alive, and how it is.
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

    /// Whether nobody is in the match, and nobody has a seat to come back to.
    pub(super) fn is_deserted(&self) -> bool {
        self.deserted.load(Ordering::Relaxed)
    }

    /// How often somebody came to where nobody was: whoever looks now and then misses those who stayed for a moment.
    pub(super) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }

    /// Shows by how much a tick was late.
    pub(super) fn record_lateness(&self, lateness: Duration) {
        let us = u32::try_from(lateness.as_micros()).unwrap_or(u32::MAX);
        self.lateness_us.store(us, Ordering::Relaxed);
        self.lateness.record(lateness);
    }

    /// How late ticks were so far, and the number of the match, which no other one of this process ever has.
    pub(super) fn lateness_so_far(&self) -> (u64, Spread) {
        (self.number.0, self.lateness.spread())
    }

    /// What the match last showed.
    pub(super) fn glance(&self) -> MatchGlance {
        MatchGlance {
            tick: Tick(self.tick.load(Ordering::Relaxed)),
            players: self.players.load(Ordering::Relaxed),
            spectators: self.spectators.load(Ordering::Relaxed),
            seats_free: self.seats_free.load(Ordering::Relaxed),
            lateness: Duration::from_micros(self.lateness_us.load(Ordering::Relaxed).into()),
        }
    }

    /// How often the match has shown that it is alive.
    pub(super) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Shows that the match has ended in order: what is left is to wait for the disk.
    pub(super) fn show_end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether the match has ended in order.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Declares the match over.
    pub(super) fn condemn(&self) {
        self.condemned.store(true, Ordering::Release);
    }

    /// Whether the match was declared over while it stood still: then it must touch nothing any more.
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

    /// Who comes and goes between two looks is not seen by them, and yet a match is kept for its time from then on.
    #[test]
    fn each_time_somebody_comes_to_where_nobody_was_is_a_visit() {
        let nobody = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
        let config = MatchConfig::action();
        let mut match_ = Match::new(config, Counter::default(), Arc::new(()), nobody).unwrap();
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
        assert_eq!(visits(None, &mut match_), (1, false), "she is still there");
        match_.disconnect(SessionId(1));
        match_.advance(Duration::from_secs(1));
        match_.advance(Duration::from_secs(120));
        assert_eq!(visits(None, &mut match_), (1, true), "and gone");
        assert_eq!(visits(Some(2), &mut match_), (2, false));
    }
}
