//! [`AdminError`]: errors of an admin port and of its client.

use std::net::SocketAddr;

use twinstep_udp::TicketKeyError;

use super::admin_address::AdminAddress;

/// Why an admin port or its client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// Other machines could reach the address.
    #[error(
        "expected an admin address on loopback, such as 127.0.0.1:7700, got {0}: it controls the server"
    )]
    NotLoopback(SocketAddr),
    /// The token's file cannot be used.
    #[error("the admin token: {0}\n(a missing token is created at the next start)")]
    Token(#[from] TicketKeyError),
    /// The address cannot be bound.
    #[error("cannot listen on the admin address {address}: {source}; choose another port")]
    Listen {
        /// The address.
        address: AdminAddress,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The server does not answer.
    #[error("nothing answers at {address}: {source}; is the server up, with --admin {address}?")]
    Ask {
        /// Its admin address.
        address: AdminAddress,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
