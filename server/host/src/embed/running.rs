//! A server of one match that runs on threads of its own: what its author can do with it.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;
use twinstep_udp::ServerAddress;

use tokio::runtime::Runtime;
use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{Ticket, TicketError};

use super::issuer::{TicketIssuer, inspect};
use super::threads::OnThreads;
use crate::control::HostControl;
use crate::handle::{MatchEnded, MatchHandle};
use crate::logged;
use crate::matches::Host;
use twinstep_server::incident::Incident;
use twinstep_server::{Match, Report};

/// A ticket can be used for so long.
const TICKET_LIFE: Duration = Duration::from_secs(3_600);
/// Whether a server is deserted is looked at so often, which wakes its match.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A match that is over says why within this.
const SAYS_WITHIN: Duration = Duration::from_millis(100);

/// How a server that ran until it was to stop came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was asked to, or everybody had left.
    InOrder,
    /// Its match was over before, for this reason.
    Over(CloseCode),
    /// It was asked a second time: it ended without waiting for its clients or its disk, as if it had been killed.
    AtOnce,
}

/// A server that runs. Dropped, it ends at once, without a word to its clients, as if its process had been killed: its
/// journal can be taken up again. That takes up to a second if its match is in the middle of something.
pub struct Running<S: Simulation> {
    pub(super) match_: MatchHandle<S>,
    pub(super) on_threads: OnThreads,
}

impl<S: Simulation> Running<S> {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.host().local_addr()
    }

    /// What tickets tell players to dial.
    #[must_use]
    pub fn public_addresses(&self) -> &[ServerAddress] {
        self.host().public_addresses()
    }

    /// A ticket for one player, good for an hour, until a newer one of that name is safe: newer than all that are, whatever
    /// the clock says. The same name later gets the same seat. The match is asked, so it takes as long as
    /// [`inspect`](Running::inspect).
    ///
    /// # Errors
    /// A name that is empty, too long or has control characters, or one that is revoked for good.
    pub fn ticket(&self, identity: &str) -> Result<Ticket, TicketError> {
        self.ticket_for(identity, 1)
    }

    /// A ticket for someone who watches; there must be room for [`spectators`](super::super::Server::spectators).
    ///
    /// # Errors
    /// A name out of range, or revoked for good.
    pub fn spectator_ticket(&self, identity: &str) -> Result<Ticket, TicketError> {
        self.ticket_for(identity, 0)
    }

    /// A ticket for one screen with several local players.
    ///
    /// # Errors
    /// A name or a number of seats out of range, or a name that is revoked for good.
    pub fn ticket_for(&self, identity: &str, seats: u8) -> Result<Ticket, TicketError> {
        self.issuer().issue(identity, seats, TICKET_LIFE)
    }

    /// What makes tickets of any life, and goes on doing so from any thread while the server
    /// [runs](Running::run_until_stopped).
    #[must_use]
    pub fn issuer(&self) -> TicketIssuer<S> {
        TicketIssuer {
            key: self.host().spawner().key.clone(),
            servers: self.host().public_addresses().to_vec(),
            lineages: self.host().spawner().lineages.clone(),
            game: PhantomData,
        }
    }

    /// What an operator's tools see of the server, and do with it.
    #[must_use]
    pub fn control(&self) -> HostControl {
        self.host().control()
    }

    /// Looks at the match, between two of its steps: see [`MatchHandle::inspect`]. Waits for that, also within another tokio
    /// runtime; not for use within such a look.
    ///
    /// # Errors
    /// The match is over.
    pub fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Match<S>) -> R + Send + 'static,
    ) -> Result<R, MatchEnded> {
        inspect(self.runtime().handle(), &self.match_, look)
    }

    /// Takes what went wrong in the match since the last call, over or not: see [`MatchHandle::take_incidents`].
    #[must_use]
    pub fn take_incidents(&self) -> Vec<Incident> {
        self.match_.take_incidents()
    }

    /// Takes what clients found different since the last call: see [`Match::take_reports`].
    ///
    /// # Errors
    /// The match is over.
    pub fn take_reports(&self) -> Result<Vec<Report>, MatchEnded> {
        self.inspect(Match::take_reports)
    }

    /// Runs until this process is asked to end (Ctrl-C, SIGTERM) or the match is over; then all clients are
    /// told. When the process is asked to end, the match plays on for a while if it was [told](crate::HostConfig::drain_within)
    /// so; then a match with a journal is kept: see [`Host::shutdown`]. Asked a second time, it ends at once. Whether the match was over by itself says [`Stopped`]: a process should not end as if all
    /// had gone well when it was [`Fault`](CloseCode::Fault).
    ///
    /// # Errors
    /// The operating system does not let the process listen for signals.
    pub fn run_until_stopped(self) -> std::io::Result<Stopped> {
        self.run_until(None)
    }

    /// As [`run_until_stopped`](Running::run_until_stopped), and ends when everybody has left who came: for a server within a
    /// player's process that outlives that player's own game. While nobody has come yet, it waits.
    ///
    /// # Errors
    /// The operating system does not let the process listen for signals.
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
                // A match that is over says why.
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
                    // It may have ended meanwhile, and not as it should.
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

    /// Tells all clients that the server is shutting down, and ends. Takes at most 4 s.
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

/// What a second signal comes to.
pub(super) fn ended_at_once() -> Stopped {
    logged::warn!("asked to end a second time: not waiting any more");
    Stopped::AtOnce
}
