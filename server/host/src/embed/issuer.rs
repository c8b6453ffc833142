//! [`TicketIssuer`]: issues tickets for a server's match.

use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;
use twinstep_udp::{Ticket, TicketError};

use crate::handle::{MatchEnded, MatchHandle};
use crate::tickets::TicketOffice;
use twinstep_server::Match;

pub(super) const MATCH: MatchId = MatchId(1);

/// Issues tickets for a server's match from any thread, even while it [runs](super::Running::run_until_stopped).
#[derive(Clone)]
pub struct TicketIssuer {
    pub(super) office: TicketOffice,
}

impl TicketIssuer {
    /// Issues a ticket for a screen with this many local players (0: a spectator), valid for `life`, even if earlier
    /// tickets were revoked. Waits neither for the match nor for a disk.
    ///
    /// # Errors
    /// If the name, the number of seats or the life is out of range.
    pub fn issue(&self, identity: &str, seats: u8, life: Duration) -> Result<Ticket, TicketError> {
        self.office.ticket(MATCH, identity, seats, life)
    }
}

/// Runs `look` on a match from any thread, even within another runtime: see [`MatchHandle::inspect`].
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
