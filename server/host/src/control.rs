//! [`HostControl`]: the interface of a running host for an operator's tools.
//!
//! Invariant: a call does not delay a match. It reads published state, or sends an order that the match carries out
//! between two steps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::lineage::REVOKE_SLACK_MS;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;
use twinstep_udp::TicketKey;

use super::clock::{HostClock, unix_now, utc};
use super::config::HostError;
use super::demand::Demand;
use super::io::ToIo;
use super::load_monitor::{Full, LoadMonitor};
use super::logged;
use super::pulse::Beat;
use super::register::{ListedMatch, Register};
use super::tickets::TicketOffice;

const REMOVAL_PATIENCE: Duration = Duration::from_secs(2);
const REMOVALS_MAX: usize = 64;

/// The interface of a running host for an operator's tools. Clones share the host.
#[derive(Clone)]
pub struct HostControl {
    pub(super) clock: HostClock,
    pub(super) beat: Arc<Beat>,
    pub(super) matches: Register,
    pub(super) game: Arc<str>,
    pub(super) sessions_max: usize,
    pub(super) drains: Drains,
    pub(super) to_io: mpsc::Sender<ToIo>,
    pub(super) demand: Demand,
    pub(super) tickets: TicketOffice,
    pub(super) load_monitor: LoadMonitor,
}

/// The state of a host.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct HostStatus {
    pub matches: u64,
    /// The maximum number of matches created on demand; 0 if none are created on demand.
    pub matches_max: usize,
    pub players: u64,
    pub spectators: u64,
    pub seats_free: u64,
    /// Sessions, admitted or not.
    pub sessions: u64,
    pub sessions_max: usize,
    /// The current load-shedding step; 0 if no load is shed.
    pub relief_steps: u8,
    /// The memory of the process, in bytes, if it is known.
    pub memory_bytes: Option<u64>,
    /// Free bytes on the fullest disk with journals, if they are known.
    pub disk_free_bytes: Option<u64>,
}

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

/// The reason why newcomers should not be routed to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum NotReady {
    #[error("the server hangs: its I/O task or its matches made no progress; restart the process")]
    Hung,
    #[error("starting: memory and disk are not measured yet")]
    Unmeasured,
    #[error(
        "draining: the server ends when all players and spectators have left, or when the time of --drain is over"
    )]
    Draining,
    #[error(
        "full: {0} of {1} sessions in use (the limit is twice all players and spectators); start another server, or raise --max-players, \
         --spectators or --matches"
    )]
    Connections(u64, usize),
    #[error(
        "full: no free seat (running matches: {0}); raise --max-players, or start another server"
    )]
    NoFreeSeats(u64),
    #[error("full: {0} of {0} matches are running; raise --matches, or start another server")]
    Matches(usize),
    /// Ticks are late, or memory or disk is short.
    #[error(transparent)]
    Overloaded(#[from] Full),
}

impl HostControl {
    /// The id of the game.
    #[must_use]
    pub fn game(&self) -> &str {
        &self.game
    }

    /// The host's clock.
    #[must_use]
    pub fn clock(&self) -> HostClock {
        self.clock
    }

    /// Returns `true` while the I/O task runs and matches make progress.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.beat.is_alive(self.clock.now())
    }

    /// The reason why newcomers should not be routed here, or `None` if they can be. A server without matches may get
    /// some later, so it is ready.
    #[must_use]
    pub fn not_ready(&self) -> Option<NotReady> {
        if !self.is_alive() {
            return Some(NotReady::Hung);
        }
        if self.drains.has_begun() {
            return Some(NotReady::Draining);
        }
        let HostStatus {
            matches,
            seats_free,
            sessions,
            sessions_max,
            ..
        } = self.status();
        if sessions >= sessions_max as u64 {
            return Some(NotReady::Connections(sessions, sessions_max));
        }
        if !self.load_monitor.is_measured() {
            return Some(NotReady::Unmeasured);
        }
        if let Some(full) = self.load_monitor.full() {
            return Some(full.into());
        }
        if self.demand.is_on() {
            let is_full = !self.demand.has_room();
            return is_full.then(|| NotReady::Matches(self.demand.at_once()));
        }
        (matches > 0 && seats_free == 0).then_some(NotReady::NoFreeSeats(matches))
    }

    /// The state of the host.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        let (relief_steps, memory_bytes, disk_free_bytes) = self.load_monitor.measured();
        let mut status = HostStatus {
            matches_max: self.demand.at_once(),
            sessions: self.beat.sessions(),
            sessions_max: self.sessions_max,
            relief_steps,
            memory_bytes,
            disk_free_bytes,
            ..HostStatus::default()
        };
        for listed in self.matches.running().values() {
            let glance = listed.glance();
            status.matches += 1;
            status.players += u64::from(glance.players);
            status.spectators += u64::from(glance.spectators);
            status.seats_free += u64::from(glance.seats_free);
        }
        status
    }

    /// The running matches, in id order.
    #[must_use]
    pub fn matches(&self) -> BTreeMap<MatchId, ListedMatch> {
        self.matches.running().clone()
    }

    /// Returns `true` if matches are created on demand.
    #[must_use]
    pub fn is_on_demand(&self) -> bool {
        self.demand.is_on()
    }

    /// Removes an identity from all matches, including its sessions that are already on their way there. Returns the
    /// matches that have removed it within 2 s.
    pub async fn remove(&self, identity: &str, code: CloseCode) -> Vec<MatchId> {
        let mut answers = self.begin_removal(identity, code).await;
        let mut left = Vec::new();
        // The channel closes when all matches have removed it.
        let all = async {
            while let Some(id) = answers.recv().await {
                left.push(id);
            }
        };
        let _ = timeout(REMOVAL_PATIENCE, all).await;
        left
    }

    /// Starts a removal like [`remove`](Self::remove), without waiting. The channel yields the identity's former
    /// matches.
    pub async fn begin_removal(&self, identity: &str, code: CloseCode) -> mpsc::Receiver<MatchId> {
        let (answer, answers) = mpsc::channel(REMOVALS_MAX);
        let order = ToIo::PutOut(identity.to_owned(), code, answer);
        // If the host is gone, so are its sessions.
        let _ = self.to_io.send(order).await;
        answers
    }

    /// Revokes the tickets of an identity for a match that does not exist yet. Returns the cutoff in milliseconds since
    /// the Unix epoch: tickets issued before it are refused.
    pub fn revoke_unmade(&self, id: MatchId, identity: &str) -> u64 {
        let made_before_unix_ms = unix_now().as_millis() as u64 + REVOKE_SLACK_MS;
        self.tickets.revoke(id, identity, made_before_unix_ms);
        logged::info!("match" = id.0, identity = ?line(identity), made_before = %utc(made_before_unix_ms / 1_000), "tickets revoked by an operator");
        made_before_unix_ms
    }

    /// Replaces the keys: tickets sealed with these keys are accepted, and the first seals new tickets. Players stay
    /// connected, even if another key sealed their ticket. Within a minute they get a ticket sealed with the first key.
    ///
    /// # Errors
    /// [`HostError::Config`] if there are not one or two keys, or connected players still use too many earlier keys.
    /// [`HostError::Stopped`] if the host was shut down. After an error, the keys are unchanged.
    pub async fn set_keys(&self, keys: Vec<TicketKey>) -> Result<(), HostError> {
        let newest = keys.first().cloned();
        let (done, changed) = oneshot::channel();
        let to_io = self.to_io.send(ToIo::Keys(keys, done)).await;
        to_io.map_err(|_| HostError::Stopped)?;
        changed.await.map_err(|_| HostError::Stopped)??;
        // An empty list was refused above.
        newest.into_iter().for_each(|key| self.tickets.set_key(key));
        Ok(())
    }

    /// The key that seals new tickets. A new key is used only after the listener accepts its tickets.
    #[must_use]
    pub fn newest_key(&self) -> TicketKey {
        self.tickets.key()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tickets::TicketPrint;

    fn control(sessions_max: usize) -> HostControl {
        let load_monitor = LoadMonitor::default();
        load_monitor.pretend(0, false);
        HostControl {
            clock: HostClock::start(),
            beat: Arc::default(),
            matches: Register::default(),
            game: "a game".into(),
            sessions_max,
            drains: Drains::default(),
            to_io: mpsc::channel(1).0,
            demand: Demand::default(),
            tickets: TicketOffice::start(TicketPrint::of_a_test("a game"), None),
            load_monitor,
        }
    }

    #[test]
    fn a_server_is_not_ready_before_it_has_measured_memory_and_disks() {
        let control = HostControl {
            load_monitor: LoadMonitor::default(),
            ..control(1)
        };
        assert_eq!(control.not_ready(), Some(NotReady::Unmeasured));
        control.load_monitor.pretend(0, false);
        assert_eq!(control.not_ready(), None);
    }

    #[test]
    fn a_server_about_to_end_is_not_ready() {
        let control = control(1);
        assert_eq!(control.not_ready(), None);
        control.drains.begin();
        assert_eq!(control.not_ready(), Some(NotReady::Draining));
    }

    #[test]
    fn an_overloaded_server_is_not_ready_and_gives_the_reason() {
        let control = control(1);
        control.load_monitor.pretend(2, false);
        assert_eq!(control.not_ready(), None, "players come before spectators");
        control.load_monitor.pretend(3, false);
        let late = control.not_ready().unwrap().to_string();
        assert!(
            late.starts_with("busy: load shedding refuses new players, because "),
            "{late}"
        );
        control.load_monitor.pretend(0, true);
        assert_eq!(
            control.not_ready(),
            Some(NotReady::Overloaded(Full::Disk(0, 0)))
        );
        control.load_monitor.pretend(0, false);
        assert_eq!(control.not_ready(), None);
    }

    #[test]
    fn a_server_with_all_connections_taken_or_a_stuck_io_task_is_not_ready() {
        let control = control(2);
        let show = |sessions| {
            control.beat.show_sessions(sessions);
        };
        show(1);
        assert_eq!(control.not_ready(), None);
        show(2);
        assert_eq!(control.not_ready(), Some(NotReady::Connections(2, 2)));
        // The last beat was at the start.
        std::thread::sleep(Duration::from_millis(2_050));
        assert_eq!(control.not_ready(), Some(NotReady::Hung));
        control.beat.beat(control.clock.now());
        assert_eq!(control.not_ready(), Some(NotReady::Connections(2, 2)));
    }
}
