//! [`AdminError`]: the errors of an admin port and its client.

use std::net::SocketAddr;

use twinstep_udp::TicketKeyError;

use super::admin_address::AdminAddress;

/// The reason why an admin port or its client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum AdminError {
    #[error(
        "expected an admin address on loopback, such as 127.0.0.1:7700, got {0}; anyone who reaches the admin port controls the server"
    )]
    NotLoopback(SocketAddr),
    #[error("{}", token_text(.0))]
    Token(#[from] TicketKeyError),
    #[error(
        "cannot listen on the admin address {address}: {source}; choose another --admin address"
    )]
    Listen {
        address: AdminAddress,
        source: std::io::Error,
    },
    #[error(
        "no usable answer from the admin address {address}: {source}; check that the server runs with --admin {address}, \
         and that this user may connect"
    )]
    Ask {
        address: AdminAddress,
        source: std::io::Error,
    },
}

const NEW_TOKEN: &str = "remove the file, and the server makes a new one when it starts";

/// The text of the error. The token is stored as a key file, but the remedies for a key do not apply to it.
fn token_text(error: &TicketKeyError) -> String {
    match error {
        TicketKeyError::Missing { path } => format!(
            "there is no admin token file at {}; give the server's --admin-token-file (default: KEY-FILE.admin in its --state \
             directory, or beside the key file)",
            path.display()
        ),
        TicketKeyError::Unreadable { path, source } => format!(
            "cannot read the admin token file {}: {source}; run this as the server's user",
            path.display()
        ),
        TicketKeyError::Permissions { path, mode } => format!(
            "the admin token file {} has mode {mode:04o}, expected 0600: another user may have read the token; {NEW_TOKEN}",
            path.display()
        ),
        TicketKeyError::Owner { path, owner } => format!(
            "the admin token file {} belongs to the user with id {owner}, expected root or the server's user; {NEW_TOKEN}",
            path.display()
        ),
        TicketKeyError::NotAKey { path, found } => format!(
            "{} is not an admin token file: {found}; {NEW_TOKEN}",
            path.display()
        ),
        TicketKeyError::Unwritable { path, source } => format!(
            "cannot create the admin token file {}: {source}; choose a writable directory with --state, or another file with \
             --admin-token-file",
            path.display()
        ),
        other => format!("cannot use the admin token file: {other}"),
    }
}
