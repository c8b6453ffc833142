//! [`Running`]: a running server of one match, on its own threads.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use twinstep_udp::ServerAddress;

use tokio::runtime::Runtime;
use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{Ticket, TicketError, WebAddress};

use super::issuer::{TicketIssuer, inspect};
use super::threads::OnThreads;
use crate::control::HostControl;
use crate::handle::{MatchEnded, MatchHandle};
use crate::logged;
use crate::matches::Host;
use crate::save_file::{SaveFileError, write_save};
use twinstep_server::incident::Incident;
use twinstep_server::{Match, Report};

const TICKET_LIFE: Duration = Duration::from_secs(3_600);
/// The interval at which a server checks whether it is deserted. The check wakes the match.
const LOOK_EVERY: Duration = Duration::from_millis(500);
// A match that is over reports its close code within this time.
const SAYS_WITHIN: Duration = Duration::from_millis(100);

/// The way in which a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// On request, or because all players had left.
    InOrder,
    /// The match had already ended, with this close code.
    Over(CloseCode),
    /// At once, on a second request: without waiting for clients or the disk, as if the process had been killed.
    AtOnce,
}

/// A running server. Dropping it ends the match without a close code for the clients, as if the process had been
/// killed: the journal can be resumed. The drop waits up to a second for a match that is in the middle of a step.
pub struct Running<S: Simulation> {
    pub(super) match_: MatchHandle<S>,
    pub(super) on_threads: OnThreads,
}

impl<S: Simulation> Running<S> {
    /// The listen address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.host().local_addr()
    }

    /// The addresses that tickets name.
    #[must_use]
    pub fn public_addresses(&self) -> &[ServerAddress] {
        self.host().public_addresses()
    }

    /// The address at which browsers dial, and the hashes of the certificates there: see [`HostConfig::web`]. Returns
    /// `None` if the server does not accept browsers.
    ///
    /// [`HostConfig::web`]: crate::HostConfig::web
    #[must_use]
    pub fn web_address(&self) -> Option<WebAddress> {
        self.host().web_address()
    }

    /// Issues a ticket for one player, valid for an hour. It becomes outdated earlier if the client stores a
    /// reconnect ticket, or if another ticket for that name is used for the first time. The same name gets the same
    /// seat again. Waits neither for the match nor for a disk.
    ///
    /// # Errors
    /// If the name is empty, is too long, or has control characters.
    pub fn ticket(&self, identity: &str) -> Result<Ticket, TicketError> {
        self.ticket_for(identity, 1)
    }

    /// Issues a ticket for a spectator; the server must allow [`spectators`](super::super::Server::spectators).
    ///
    /// # Errors
    /// If the name is out of range.
    pub fn spectator_ticket(&self, identity: &str) -> Result<Ticket, TicketError> {
        self.ticket_for(identity, 0)
    }

    /// Issues a ticket for one screen with several local players.
    ///
    /// # Errors
    /// If the name or the number of seats is out of range.
    pub fn ticket_for(&self, identity: &str, seats: u8) -> Result<Ticket, TicketError> {
        self.issuer().issue(identity, seats, TICKET_LIFE)
    }

    /// An issuer of tickets with any lifetime. It works from any thread while the server
    /// [runs](Running::run_until_stopped).
    #[must_use]
    pub fn issuer(&self) -> TicketIssuer {
        TicketIssuer {
            office: self.host().spawner().tickets.clone(),
        }
    }

    /// The interface for an operator's tools.
    #[must_use]
    pub fn control(&self) -> HostControl {
        self.host().control()
    }

    /// Access to the match from other threads and tasks, even while the server [runs](Running::run_until_stopped).
    #[must_use]
    pub fn handle(&self) -> MatchHandle<S> {
        self.match_.clone()
    }

    /// Runs `look` on the match between two steps: see [`MatchHandle::inspect`]. Blocks until then, even within another
    /// tokio runtime. Must not be called from within `look`.
    ///
    /// # Errors
    /// If the match is over.
    pub fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Match<S>) -> R + Send + 'static,
    ) -> Result<R, MatchEnded> {
        inspect(self.runtime().handle(), &self.match_, look)
    }

    /// Saves the match to a file: see [`MatchHandle::save`]. Blocks until the file is on disk.
    ///
    /// # Errors
    /// The errors of [`MatchHandle::save`].
    pub fn save(&self, path: impl Into<PathBuf>) -> Result<usize, SaveFileError> {
        let save = self.inspect(|match_| match_.save())??;
        write_save(&path.into(), &save).map(|()| save.len())
    }

    /// Takes the incidents of the match since the last call, even after it has ended: see
    /// [`MatchHandle::take_incidents`].
    #[must_use]
    pub fn take_incidents(&self) -> Vec<Incident> {
        self.match_.take_incidents()
    }

    /// Takes the clients' desync reports since the last call: see [`Match::take_reports`].
    ///
    /// # Errors
    /// If the match is over.
    pub fn take_reports(&self) -> Result<Vec<Report>, MatchEnded> {
        self.inspect(Match::take_reports)
    }

    /// Runs until the process is asked to end (Ctrl-C, SIGTERM) or the match is over; then all clients get their close
    /// code. On a request to end, the match first drains for up to [`drain_within`](crate::HostConfig::drain_within),
    /// and a match with a journal is kept: see [`Host::shutdown`]. On a second request it ends immediately. Returns
    /// [`Stopped::Over`] if the match ended first, or failed while it drained. After a [`Fault`](CloseCode::Fault), a
    /// process should exit with an error.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn run_until_stopped(self) -> std::io::Result<Stopped> {
        self.run_until(None)
    }

    /// Like [`run_until_stopped`](Running::run_until_stopped), but also ends when all players that joined have left:
    /// for a server within a player's process that outlives that player's own game. Waits for the first player.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn run_until_deserted(self) -> std::io::Result<Stopped> {
        self.run_until(Some(|match_| match_.was_joined() && match_.is_deserted()))
    }

    fn run_until(self, done: Option<fn(&Match<S>) -> bool>) -> std::io::Result<Stopped> {
        let match_ = self.match_;
        self.on_threads.run(async |host, mut stop| {
            let is_done = async {
                let Some(done) = done else {
                    return match_.ended().await;
                };
                while let Ok(false) = match_.inspect(move |match_| done(match_)).await {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                let why = tokio::time::timeout(SAYS_WITHIN, match_.ended()).await;
                why.ok().flatten()
            };
            let asked = tokio::select! {
                () = stop.requested() => None,
                over = is_done => Some(match over {
                    Some(code) => (CloseCode::Draining, Stopped::Over(code)),
                    None => (CloseCode::MatchOver, Stopped::InOrder),
                }),
            };
            let (code, stopped) = match asked {
                Some(ended) => ended,
                None => {
                    tokio::select! {
                        () = host.drain() => {}
                        () = stop.requested() => return Ok(ended_at_once()),
                    }
                    // The match may have failed while the server drained.
                    let over = match_
                        .over
                        .borrow()
                        .filter(|code| *code == CloseCode::Fault);
                    let stopped = over.map_or(Stopped::InOrder, Stopped::Over);
                    (CloseCode::Draining, stopped)
                }
            };
            tokio::select! {
                () = host.shutdown(code) => Ok(stopped),
                () = stop.requested() => Ok(ended_at_once()),
            }
        })
    }

    /// Ends the match for good, and stops the server like [`shutdown`](Running::shutdown). Clients are told that the
    /// match is over, and its journal cannot be resumed.
    pub fn end(self) {
        // Fails only if the match is over already.
        let _ = self.inspect(|match_| match_.close(CloseCode::MatchOver));
        self.shutdown();
    }

    /// Closes all sessions and stops the server. A match with a journal can be resumed: its clients wait a minute for
    /// the server to restart. Takes at most 4 s, or 10 s if the disk with the lineages file does not
    /// respond.
    pub fn shutdown(self) {
        self.on_threads.shutdown();
    }

    fn host(&self) -> &Host {
        self.on_threads.host()
    }

    fn runtime(&self) -> &Runtime {
        self.on_threads.runtime()
    }
}

pub(super) fn ended_at_once() -> Stopped {
    logged::warn!("second stop signal: the process ends without waiting for its matches");
    Stopped::AtOnce
}
