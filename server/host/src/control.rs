//! The matches of a host, as its admin port sees them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::bans::Bans;
use super::clock::HostClock;
use super::demand::Demand;
use super::io::ToIo;
use super::lineages::LineageKeeper;
use super::metrics::{Gauges, IoCounts, Ledger};
use super::orders::Order;
use super::post::Post;
use super::pulse::{Beat, Pulse};
use super::strain::{Full, Strain};

/// What the admin port knows of a match.
#[derive(Clone)]
pub(super) struct ListedMatch {
    pub(super) pulse: Arc<Pulse>,
    pub(super) orders: Post<Order>,
}

/// The matches of a host, as its admin port sees them.
pub(super) type Register = Arc<Mutex<BTreeMap<u64, ListedMatch>>>;

/// What an admin port is about.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) clock: HostClock,
    pub(super) beat: Arc<Beat>,
    pub(super) matches: Register,
    /// The game that is played here.
    pub(super) game: String,
    /// What all matches have counted, and the I/O task.
    pub(super) ledger: Ledger,
    pub(super) io: Arc<IoCounts>,
    pub(super) sessions_max: usize,
    pub(super) drains: Drains,
    pub(super) bans: Bans,
    /// The I/O task.
    pub(super) told: mpsc::Sender<ToIo>,
    pub(super) demand: Demand,
    pub(super) lineages: LineageKeeper,
    pub(super) strain: Strain,
}

/// Whether the server is about to end. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Drains(Arc<AtomicBool>);

impl Drains {
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why newcomers should not be sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unready {
    #[error("the I/O loop, or what runs matches, stands still")]
    Still,
    #[error("starting: memory and disks are not measured yet")]
    Unmeasured,
    #[error("draining: the server is about to end")]
    Draining,
    #[error("full: {0} of {1} connections (players, spectators, matches)")]
    Connections(u64, usize),
    #[error("full: no free seat in any match (players), {0} running")]
    Seats(u64),
    #[error("full: {0} of {0} matches (matches)")]
    Matches(usize),
    #[error(transparent)]
    Strained(#[from] Full),
}

impl Admin {
    /// Why newcomers should not be sent here, if they should not. A server without matches may get some, so it is ready.
    pub(super) fn unready(&self) -> Option<Unready> {
        if !self.beat.is_alive(self.clock.now()) {
            return Some(Unready::Still);
        }
        if self.drains.has_begun() {
            return Some(Unready::Draining);
        }
        let sessions = self.io.sessions();
        if sessions >= self.sessions_max as u64 {
            return Some(Unready::Connections(sessions, self.sessions_max));
        }
        if !self.strain.is_measured() {
            return Some(Unready::Unmeasured);
        }
        if let Some(full) = self.strain.full() {
            return Some(full.into());
        }
        if self.demand.is_on() {
            let is_full = !self.demand.has_room();
            return is_full.then(|| Unready::Matches(self.demand.at_once()));
        }
        match self.ledger.gauges() {
            Gauges {
                matches: matches @ 1..,
                seats_free: 0,
                ..
            } => Some(Unready::Seats(matches)),
            _ => None,
        }
    }

    /// The matches that run.
    pub(super) fn known(&self) -> BTreeMap<u64, ListedMatch> {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, known| !known.orders.is_closed() && !known.pulse.is_condemned());
        matches.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn admin(sessions_max: usize) -> Admin {
        let strain = Strain::default();
        strain.pretend(0, false);
        Admin {
            clock: HostClock::start(),
            beat: Arc::default(),
            matches: Register::default(),
            game: "a game".to_owned(),
            ledger: Ledger::default(),
            io: Arc::default(),
            sessions_max,
            drains: Drains::default(),
            bans: Bans::default(),
            told: mpsc::channel(1).0,
            demand: Demand::default(),
            lineages: LineageKeeper::default(),
            strain,
        }
    }

    #[test]
    fn nobody_is_sent_to_a_server_that_has_not_measured_its_memory_and_disks_yet() {
        let admin = Admin {
            strain: Strain::default(),
            ..admin(1)
        };
        assert_eq!(admin.unready(), Some(Unready::Unmeasured));
        admin.strain.pretend(0, false);
        assert_eq!(admin.unready(), None);
    }

    #[test]
    fn nobody_is_sent_to_a_server_that_is_about_to_end() {
        let admin = admin(1);
        assert_eq!(admin.unready(), None);
        admin.drains.begin();
        assert_eq!(admin.unready(), Some(Unready::Draining));
    }

    #[test]
    fn nobody_is_sent_to_a_server_that_is_strained_and_the_answer_says_by_what() {
        let admin = admin(1);
        admin.strain.pretend(2, false);
        assert_eq!(admin.unready(), None, "players come before spectators");
        admin.strain.pretend(3, false);
        let late = admin.unready().unwrap().to_string();
        assert!(late.starts_with("busy: ticks are late"), "{late}");
        admin.strain.pretend(0, true);
        assert_eq!(admin.unready(), Some(Unready::Strained(Full::Disk(0, 0))));
        admin.strain.pretend(0, false);
        assert_eq!(admin.unready(), None);
    }

    #[test]
    fn nobody_is_sent_to_a_server_whose_connections_are_all_taken_or_whose_io_stands_still() {
        let admin = admin(2);
        let show = |sessions| {
            admin
                .io
                .show(&Default::default(), &Default::default(), sessions)
        };
        show(1);
        assert_eq!(admin.unready(), None);
        show(2);
        assert_eq!(admin.unready(), Some(Unready::Connections(2, 2)));
        // Its last beat was when it started.
        std::thread::sleep(Duration::from_millis(2_050));
        assert_eq!(admin.unready(), Some(Unready::Still));
        admin.beat.beat(admin.clock.now());
        assert_eq!(admin.unready(), Some(Unready::Connections(2, 2)));
    }
}
