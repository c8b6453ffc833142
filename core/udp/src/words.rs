//! What both halves speak of: packets and why one is not sent, sessions and why they end, and what was counted.

use std::net::{IpAddr, SocketAddr};

/// The largest session packet, in bytes. With all headers its datagram stays below 1,200 bytes.
pub const PACKET_MAX: usize = 1_100;

/// One session of a server: drawn when its client dialled, so it is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// The two ends of a datagram, as a server sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPair {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The address of this machine that the peer sent to, and that answers leave from; `None`: the system chooses. A peer
    /// takes answers from the address alone that it dialled.
    pub local: Option<IpAddr>,
}

impl From<SocketAddr> for AddressPair {
    fn from(peer: SocketAddr) -> AddressPair {
        AddressPair { peer, local: None }
    }
}

/// Why a client's session ended, or never began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// Nothing came from the server for the ticket's timeout.
    #[error("the server fell silent; try to return")]
    TimedOut,
    /// The server never answered.
    #[error(
        "no answer from the server: it is down or cannot be reached, or it does not know this ticket (made with \
         another key, or for another address or version)"
    )]
    NoAnswer,
    /// No name of the ticket's has an address.
    #[error(
        "the server's name cannot be looked up: check this machine's network, or the name in the ticket"
    )]
    NameUnknown,
    /// The server knows the ticket and has no room for another session.
    #[error("the server is full: try again later")]
    Denied,
    /// By the server's clock the ticket ran out.
    #[error("the ticket expired, by the server's clock; ask for a new one")]
    Expired,
    /// The server knows that a newer ticket of this identity is safe.
    #[error(
        "this ticket is out of date: a newer one of yours was used or stored since; use that one"
    )]
    Superseded,
    /// The server ended the session.
    #[error("the server ended the session")]
    ByServer,
    /// This side ended the session.
    #[error("the session was ended here")]
    ByClient,
}

/// Why a server's session ended without the server's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaveReason {
    /// Nothing true came from the client for the ticket's timeout.
    TimedOut,
    /// The client said goodbye.
    Left,
    /// It was not [settled](crate::ServerEndpoint::settle) in time, and another session took its place; or it was silent, and
    /// its client dialled anew from the same address.
    Displaced,
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The packet is larger than [`PACKET_MAX`].
    #[error(
        "expected a packet of at most {max} bytes, got {bytes}; split it, so that each part can be read alone",
        max = PACKET_MAX
    )]
    Oversize {
        /// Its size.
        bytes: usize,
    },
    /// There is no such session, it is over, or it may not speak yet.
    #[error("no session that may speak: wait until it is connected (and, on a server, admitted)")]
    NotConnected,
    /// The queue of outgoing datagrams is full; as on any network, the packet is lost.
    #[error("the queue of outgoing datagrams is full; drain poll_transmit more often")]
    QueueFull,
}

/// What a transport dropped, and why. All counters only grow.
///
/// Junk costs a counter and no log line: whoever can send datagrams could otherwise fill a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounters {
    /// Datagrams that arrived, of every kind.
    pub datagrams: u64,
    /// Packets handed to the layer above.
    pub packets: u64,
    /// Not of this protocol, or from a stranger that did not ask to connect.
    pub junk: u64,
    /// Copies of what a session sent, what came of one that has just ended, or of someone who asks a server that ends.
    pub late: u64,
    /// Larger than any datagram or packet may be.
    pub oversize: u64,
    /// Requests with a ticket for another key, game or wire version.
    pub unknown_key: u64,
    /// Sealed with the wrong key, for another server, or of a session and not sealed by it.
    pub rejected: u64,
    /// Requests with a true ticket while the server was full.
    pub denied_full: u64,
    /// Requests with a true ticket that had expired.
    pub denied_expired: u64,
    /// Requests with a true ticket when a newer one of its identity was safe.
    pub denied_superseded: u64,
    /// True tickets whose claims this version cannot read.
    pub bad_claims: u64,
    /// Datagrams above a session's rate.
    pub rate_limited: u64,
    /// Datagrams of a session that is not admitted yet.
    pub unadmitted: u64,
    /// Authenticated datagrams that are no whole unreliable packet.
    pub fenced: u64,
    /// Packets lost because the layer above did not drain its queue.
    pub queue_full: u64,
    /// Errors of the socket, each of which is treated as loss.
    pub io_errors: u64,
}

impl core::ops::AddAssign for TransportCounters {
    fn add_assign(&mut self, other: Self) {
        let TransportCounters {
            datagrams,
            packets,
            junk,
            late,
            oversize,
            unknown_key,
            rejected,
            denied_full,
            denied_expired,
            denied_superseded,
            bad_claims,
            rate_limited,
            unadmitted,
            fenced,
            queue_full,
            io_errors,
        } = other;
        self.datagrams += datagrams;
        self.packets += packets;
        self.junk += junk;
        self.late += late;
        self.oversize += oversize;
        self.unknown_key += unknown_key;
        self.rejected += rejected;
        self.denied_full += denied_full;
        self.denied_expired += denied_expired;
        self.denied_superseded += denied_superseded;
        self.bad_claims += bad_claims;
        self.rate_limited += rate_limited;
        self.unadmitted += unadmitted;
        self.fenced += fenced;
        self.queue_full += queue_full;
        self.io_errors += io_errors;
    }
}
