//! The name by which a host, a match and its transports know a session.

/// A session of a server: one connection of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);
