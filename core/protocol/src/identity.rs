//! The identifiers of sessions, matches and ticket holders, shared by the host, its matches and its transports.

use alloc::string::String;
use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

/// A server session: one connection of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A match. The maker of its tickets chooses the number; a server runs at most one match with a given number at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchId(pub u64);

impl fmt::Display for MatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MatchId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<MatchId, ParseIntError> {
        text.parse().map(MatchId)
    }
}

/// The role of an identity in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Player,
    Spectator,
}

impl Role {
    pub const ALL: [Role; 2] = [Role::Player, Role::Spectator];

    /// The role of a session with this many seats: a spectator if it has none.
    #[must_use]
    pub fn of_seats(seats: usize) -> Role {
        match seats {
            0 => Role::Spectator,
            _ => Role::Player,
        }
    }
}

/// The holder of tickets for a match. One name may play and watch at the same time: these are two identities, and a
/// ticket of one never replaces a ticket of the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub name: String,
    pub role: Role,
}

impl Identity {
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role) -> Identity {
        Identity {
            name: name.into(),
            role,
        }
    }

    #[must_use]
    pub fn plays_as(&self, name: &str) -> bool {
        self.role == Role::Player && self.name == name
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Role::Player => f.write_str(&self.name),
            Role::Spectator => write!(f, "{} (spectator)", self.name),
        }
    }
}
