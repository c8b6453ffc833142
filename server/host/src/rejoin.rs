//! Tickets to return with: made by the host, because it has the key, and handed down to whoever plays.
//!
//! Each is like the ticket that its session came with (the same identity, match and seats), only newer. It lives for twenty
//! minutes, or as long as that one: what supersedes is worth no less than what it supersedes.

use std::time::Duration;

use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_udp::{NextTicket, ServerAddress, Ticket, TicketError, TicketSpec};

use super::minting::MintingKey;

/// How long a ticket to return with can be used at least: ten minutes, and as long for a clock that is set.
const REJOIN_LIFE: Duration = Duration::from_secs(2 * 600);
/// A session is over after so long a silence.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Makes the tickets of one match.
#[derive(Clone, Debug)]
pub(super) struct RejoinTickets {
    /// The newest key: it mints.
    pub(super) key: MintingKey,
    pub(super) game: String,
    pub(super) match_id: u64,
    /// What players dial.
    pub(super) servers: Vec<ServerAddress>,
}

impl RejoinTickets {
    /// The next ticket of a session with these seats (none: a spectator).
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
