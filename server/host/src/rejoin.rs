//! [`RejoinTickets`]: the tickets that players return with. The host makes them, because it has the key.
//!
//! Each has the identity, match and seats of the session's own ticket, but is newer. It is valid for twenty minutes, or
//! as long as the session's ticket: a ticket that replaces another must not be worth less.

use std::time::Duration;

use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_udp::{NextTicket, ServerAddress, Ticket, TicketError, TicketSpec};

use super::minting::MintingKey;

/// The minimum lifetime: ten minutes, and as much again for a clock that is adjusted.
const REJOIN_LIFE: Duration = Duration::from_secs(2 * 600);
/// The silence after which a session times out.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(super) struct RejoinTickets {
    pub(super) key: MintingKey,
    pub(super) game: String,
    pub(super) match_id: u64,
    pub(super) servers: Vec<ServerAddress>,
}

impl RejoinTickets {
    /// Makes the next ticket of a session with these seats (0: a spectator).
    pub(super) fn issue(
        &self,
        identity: &str,
        seats: usize,
        now_unix: Duration,
        next: &NextTicket,
    ) -> Result<Ticket, TicketError> {
        let spec = TicketSpec {
            game: &self.game,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id: self.match_id,
            seats: seats as u8,
            servers: &self.servers,
            life: REJOIN_LIFE,
            timeout: TIMEOUT,
            now_unix,
        };
        Ticket::issue_next(&self.key.get(), &spec, next)
    }
}
