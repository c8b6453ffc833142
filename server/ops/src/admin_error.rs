//! What can go wrong with an admin port, on either side of it.

use std::net::SocketAddr;

use twinstep_udp::TicketKeyError;

use super::admin_address::AdminAddress;

/// Why there is no admin port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// Others could reach it.
    #[error(
        "expected an admin address on loopback, such as 127.0.0.1:7700, got {0}: whoever reaches it can stop the server"
    )]
    NotLoopback(SocketAddr),
    /// The file of the token.
    #[error("the admin token: {0}\n(an admin token that is not there is made at the next start)")]
    Token(#[from] TicketKeyError),
    /// It cannot be listened on.
    #[error("cannot listen on the admin address {address}: {source}; choose another port")]
    Listen {
        /// Where.
        address: AdminAddress,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A server cannot be asked.
    #[error("nothing answers at {address}: {source}; is the server up, with --admin {address}?")]
    Ask {
        /// Its admin address.
        address: AdminAddress,
        /// What the operating system said.
        source: std::io::Error,
    },
}
