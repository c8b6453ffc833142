//! The number by which a host, a match and its transports know a session.

/// A session of a server: one connection of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);
