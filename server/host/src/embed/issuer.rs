//! [`TicketIssuer`]: makes tickets for a server's match.

use std::marker::PhantomData;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use twinstep_core::Simulation;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_udp::{Holder, ServerAddress, Ticket, TicketError, TicketSpec};

use crate::clock::unix_now;
use crate::handle::{MatchEnded, MatchHandle};
use crate::lineages::LineageKeeper;
use crate::minting::MintingKey;
use twinstep_server::Match;

pub(super) const MATCH: u64 = 1;
/// The silence after which a session times out.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Makes tickets for a server's match from any thread, also while it [runs](super::Running::run_until_stopped).
pub struct TicketIssuer<S: Simulation> {
    pub(super) key: MintingKey,
    pub(super) servers: Vec<ServerAddress>,
    pub(super) lineages: LineageKeeper,
    pub(super) game: PhantomData<fn() -> S>,
}

impl<S: Simulation> Clone for TicketIssuer<S> {
    fn clone(&self) -> Self {
        TicketIssuer {
            key: self.key.clone(),
            servers: self.servers.clone(),
            lineages: self.lineages.clone(),
            game: PhantomData,
        }
    }
}

impl<S: Simulation> TicketIssuer<S> {
    /// Makes a ticket for a screen with this many local players (0: a spectator), valid for `life`, whatever was
    /// revoked before. Waits neither for the match nor for a disk.
    ///
    /// # Errors
    /// A name, a number of seats or a life out of range.
    pub fn issue(&self, identity: &str, seats: u8, life: Duration) -> Result<Ticket, TicketError> {
        let holder = Holder {
            match_id: MATCH,
            watches: seats == 0,
            identity: identity.to_owned(),
        };
        let spec = TicketSpec {
            game: S::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id: MATCH,
            seats,
            servers: &self.servers,
            life,
            timeout: TIMEOUT,
            now_unix: unix_now(),
        };
        Ticket::issue_next(&self.key.get(), &spec, &self.lineages.next_ticket(&holder))
    }
}

/// Runs `look` on a match from any thread, within another runtime too: see [`MatchHandle::inspect`].
pub(super) fn inspect<S: Simulation, R: Send + 'static>(
    runtime: &Handle,
    match_: &MatchHandle<S>,
    look: impl FnOnce(&mut Match<S>) -> R + Send + 'static,
) -> Result<R, MatchEnded> {
    let (answer, answered) = mpsc::sync_channel(1);
    let match_ = match_.clone();
    runtime.spawn(async move {
        let _ = answer.send(match_.inspect(look).await);
    });
    // A runtime that ends drops the closure.
    answered.recv().unwrap_or(Err(MatchEnded))
}
