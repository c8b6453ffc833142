//! Twinstep over UDP: tickets, encryption and laminar, as state machines fed with datagrams.
//!
//! ```text
//! session packets        at most PACKET_MAX bytes
//!       │  ▲
//!     laminar            link:    one manager a session, whole unreliable packets only, +5 B
//!       │  ▲
//!   renetcode2           netcode: tickets, encryption, replay window, +17..25 B
//!       │  ▲
//!   datagrams            a socket of the caller's; socket: the client's own
//! ```
//!
//! The packets are unreliable and unordered: what is lost is repeated by the session protocol above, which knows
//! what is still worth sending. A server host feeds [`ServerEndpoint`] from the socket that it owns; a client uses
//! [`UdpClient`], which is a [`Transport`]. There is no thread, no clock and no async runtime in here.
//!
//! - Bytes from the network yield a packet, or a counter in [`TransportCounters`]: never a panic, never a log line
//!   of ours. laminar and renetcode2 do log each bad datagram through `log`: with a bridge from `log` installed,
//!   turn [`LINK_LOG_TARGET`] and [`CIPHER_LOG_TARGET`] off.
//! - A session is tied to its address and port. After a change of either (NAT, roaming) the client returns with a
//!   newer ticket. From the very address of a session that still lives, a new ticket has to wait until that one
//!   has timed out or said goodbye.

mod client;
mod consumed;
mod keys;
mod link;
mod netcode;
mod rate;
mod ring;
mod secrets;
mod server;
mod socket;
mod tickets;
mod transport;
mod words;

#[cfg(test)]
mod tests;

pub use client::{ClientEndpoint, ClientEvent, TransportState};
pub use consumed::{ConsumedError, ConsumedTickets};
pub use keys::{Key, KeyError};
pub use link::LINK_LOG_TARGET;
pub use netcode::CIPHER_LOG_TARGET;
pub use rate::{DATAGRAMS_BURST, DATAGRAMS_PER_SECOND};
pub use server::{
    KEYS_MAX, SESSIONS_MAX, ServerConfig, ServerConfigError, ServerEndpoint, ServerEvent,
};
pub use socket::{ConnectError, RECEIVE_BUDGET, UdpClient};
pub use tickets::{
    GAME_MAX_BYTES, IDENTITY_MAX_BYTES, SEATS_MAX, SERVERS_MAX, TICKET_LIFE_MAX, Ticket,
    TicketClaims, TicketError, TicketSpec,
};
pub use transport::{SimulatedTransport, Transport};
pub use words::{CloseReason, LeaveReason, SendError, SessionId, TransportCounters};

/// The largest session packet, in bytes. With all headers its datagram stays below 1,200 bytes.
pub const PACKET_MAX: usize = 1_100;
