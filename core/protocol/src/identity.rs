//! The names by which all parts know a session, a match, and the identity in it.

use alloc::string::String;
use core::fmt;

/// A session of a server: one connection of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A match of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchId(pub u64);

impl fmt::Display for MatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a session does in its match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It has a seat, or several.
    Player,
    /// It has none, and watches.
    Spectator,
}

impl Role {
    /// The role of a session with this many seats.
    #[must_use]
    pub fn with_seats(seats: usize) -> Role {
        match seats {
            0 => Role::Spectator,
            _ => Role::Player,
        }
    }
}

/// An identity in one role. A player may watch too, with tickets and limits of its own for that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The name in its tickets.
    pub name: String,
    /// Its role.
    pub role: Role,
}

impl Identity {
    /// An identity in a role.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role) -> Identity {
        let name = name.into();
        Identity { name, role }
    }
}
