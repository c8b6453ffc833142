//! What can go wrong with an admin port, on either side of it.

use std::net::SocketAddr;
use std::path::PathBuf;

use twinstep_core::text::line;
use twinstep_udp::TicketKeyError;

use super::admin_address::AdminAddress;

/// Why there is no admin port, or nothing could be taken over through it.
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
    /// The journal of a match that is to be taken over cannot be used here.
    #[error(
        "cannot open {path}, the journal of the match that is to be taken over: {source}; run this server as the user \
         that the other one runs as (its match plays on)"
    )]
    Journal {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The journal of a match that is to be taken over is not where this server would look for it.
    #[error(
        "the journal of that match is {path}, and this server would look for {expected}: start both with the same folder of \
         journals (the match plays on)"
    )]
    Elsewhere {
        /// Where it is.
        path: PathBuf,
        /// Where it would have to be.
        expected: PathBuf,
    },
    /// The other process cannot be asked.
    #[error("cannot ask the server at {address}: {source}; give its --admin address")]
    Ask {
        /// Whom.
        address: AdminAddress,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The other process does not hand over.
    #[error("the server at {address} does not hand over its match: {}", line(said))]
    Refused {
        /// Whom.
        address: SocketAddr,
        /// Its words.
        said: String,
    },
}
