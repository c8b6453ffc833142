//! What a server endpoint starts from, and why it may not.

use std::time::Duration;

use crate::address::ServerAddress;
use crate::keys::TicketKey;

/// The most sessions of one server.
pub const SESSIONS_MAX: usize = 1_024;
/// The most keys that are alive at once.
pub const KEYS_MAX: usize = 2;

/// What a server endpoint starts from.
#[derive(Clone, Debug)]
pub struct ServerConfig<'a> {
    /// One or two keys: tickets of each are good.
    pub keys: &'a [TicketKey],
    /// The addresses that tickets name: what players dial, not what the socket is bound to.
    pub public_addresses: &'a [ServerAddress],
    /// Sessions at once, 1..=[`SESSIONS_MAX`]. Identities that return to a seat have as many places again. Memory: 3 KB each and key, and 1.8 MB for each that speaks
    /// and has a seat.
    pub sessions_max: usize,
    /// The game's id.
    pub game: &'a str,
    /// The version of the wire format.
    pub wire_version: u32,
    /// The wall clock at the start, since the unix epoch.
    pub now_unix: Duration,
}

/// Why a server endpoint cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerConfigError {
    /// No key, or too many.
    #[error("expected 1 to {KEYS_MAX} keys (the newest first), got {0}")]
    Keys(usize),
    /// Sessions play by too many keys.
    #[error(
        "sessions still play by {0} keys that came one after the other: change keys again when some of them have left"
    )]
    KeysInUse(usize),
    /// No sessions, or too many.
    #[error("expected 1 to {SESSIONS_MAX} sessions, got {0}; run a second server for more")]
    Sessions(usize),
    /// No public address.
    #[error(
        "expected at least one public address, the one that players dial and that tickets name"
    )]
    NoAddress,
}
