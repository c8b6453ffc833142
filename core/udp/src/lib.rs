//! Twinstep over UDP: tickets, encryption and laminar, as state machines fed with datagrams.
//!
//! ```text
//! session packets        at most PACKET_MAX bytes
//!       │  ▲
//!     laminar            link:    whole unreliable packets only, +5 B; one manager for a server's sessions
//!       │  ▲
//!   renetcode2           netcode: handshake, encryption, replay window, +17..25 B
//!       │  ▲
//!   datagrams            a socket of the caller's; socket: the client's own
//! ```
//!
//! The packets are unreliable and unordered: the session protocol above repeats lost content if it is still worth
//! sending. A server host feeds [`ServerEndpoint`] from its own socket; a client uses [`UdpClient`], which is a
//! [`Transport`]. This crate has no thread (except for name lookups), no clock and no async runtime.
//!
//! - Bytes from the network yield a packet, or a counter in [`TransportCounters`]; they do not cause a panic or a log
//!   line from this crate. laminar and renetcode2 do log each bad datagram through `log`: with a bridge from `log`
//!   installed, turn [`LINK_LOG_TARGET`] and [`CIPHER_LOG_TARGET`] off.
//! - A session is tied to its address and port. After a change of either (NAT, roaming) the client dials again, with
//!   the same ticket or a newer one. A client that dials from the address of its own session that still exists must
//!   wait until that session has ended or has been silent for a second.
//! - A ticket may be used repeatedly. The [`TicketLedger`], which all transports of a server share, decides whether it
//!   still opens a session. An attacker who overhears a session cannot open another one.
//!
//! ```
//! use std::time::Duration;
//! use twinstep_udp::{
//!     ClientEndpoint, MatchId, TicketKey, ServerConfig, ServerEndpoint, ServerEvent, Ticket, TicketLedger, TicketSpec,
//!     TransportState,
//! };
//!
//! let now_unix = Duration::from_secs(1_700_000_000);
//! let server_address: std::net::SocketAddr = "203.0.113.7:7777".parse().unwrap();
//! let client_address: std::net::SocketAddr = "198.51.100.1:50000".parse().unwrap();
//! let key = TicketKey::generate();
//! let ticket = Ticket::issue(&key, &TicketSpec {
//!     game: "my-game", wire_version: 1, identity: "anna", match_id: MatchId(1), seats: 1, servers: &[server_address.into()],
//!     life: Duration::from_secs(600), timeout: Duration::from_secs(5), now_unix,
//! })?;
//!
//! let config = ServerConfig {
//!     keys: &[key], public_addresses: &[server_address.into()], sessions_max: 64, game: "my-game", wire_version: 1,
//!     tickets: TicketLedger::new(Duration::ZERO, now_unix),
//! };
//! let mut server = ServerEndpoint::new(config, Duration::ZERO)?;
//! let mut client = ClientEndpoint::new(&ticket, Duration::ZERO);
//! for frame in 0..4 {
//!     let now = Duration::from_millis(16) * frame;
//!     client.advance(now);
//!     while let Some((_to, datagram)) = client.poll_transmit() {
//!         server.handle(now, client_address, datagram); // here: two sockets and a network
//!     }
//!     server.advance(now, now_unix + now);
//!     while let Some(event) = server.poll_event() {
//!         if let ServerEvent::Connected { session, ticket } = event {
//!             println!("{} is here", ticket.identity);
//!             server.admit(session);
//!         }
//!     }
//!     while let Some((_to, datagram)) = server.poll_transmit() {
//!         client.handle(now, server_address, datagram);
//!     }
//! }
//! assert_eq!(client.state(), TransportState::Connected);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod admissions;
mod aead;
mod claims;
mod client;
mod dial;
mod keys;
mod ledger;
mod lineage_file;
mod link;
mod netcode;
mod secrets;
mod send_queue;
mod server;
mod socket;
mod tickets;
mod transport;
mod wall_clock;
mod web_address;

#[cfg(test)]
mod tests;

pub use address::{HOST_MAX_BYTES, NotAnAddress, ServerAddress};
pub use claims::{Holder, IDENTITY_MAX_BYTES, SEATS_MAX, SERVERS_MAX, TicketClaims, is_identity};
pub use client::{ClientEndpoint, ClientEvent};
pub use keys::{TicketKey, TicketKeyError};
pub use ledger::{TicketLedger, TicketRefusal};
pub use lineage_file::{LINEAGES_MAX, LineageFile, LineageFileError};
pub use link::{LINK_LOG_TARGET, Payload, SharedLink};
pub use netcode::{CIPHER_LOG_TARGET, DATAGRAM_MAX};
pub use secrets::{open_regular, random_u64, replace_file};
pub use send_queue::AddressPair;
pub use server::{
    DATAGRAMS_BURST, DATAGRAMS_PER_SECOND, KEYS_MAX, SESSIONS_MAX, ServerConfig, ServerConfigError,
    ServerEndpoint, ServerEvent,
};
pub use socket::{ConnectError, RECEIVE_BUDGET, UdpClient};
pub use tickets::{GAME_MAX_BYTES, SESSION_TIMEOUT, Ticket, TicketError, TicketSpec};
pub use transport::{
    CloseReason, LeaveReason, PACKET_MAX, SendError, SimulatedTransport, Transport,
    TransportCounters, TransportState,
};
pub use twinstep_protocol::identity::{Identity, MatchId, Role, SessionId};
pub use twinstep_protocol::lineage::{NextTicket, Stamp, TICKET_LIFE_MAX};
pub use web_address::{NotAWebAddress, WEB_HASHES_MAX, WebAddress};
