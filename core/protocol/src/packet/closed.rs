//! `Closed`, down: the session is over, with a code that gives the reason.
//!
//! ```text
//! first · code
//! ```
//!
//! The packet has no link header. A host also sends it for sessions that no match knows. It may be lost, so a match
//! sends a few copies, and a host replies to each late packet with another copy.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{DownKind, DownPart, PacketBody};
use crate::wire::{WireError, Writer};

pub const BYTES_MAX: usize = 16;

pub fn write(code: CloseCode, out: &mut Writer<'_>) -> Result<(), WireError> {
    out.u8(DownKind::Closed.alone())?;
    out.value(&code)
}

pub fn read(body: PacketBody<'_, DownPart>) -> Result<CloseCode, WireError> {
    let mut packet = body.packet;
    let code = packet.value()?;
    packet.end()?;
    Ok(code)
}

/// The reason why a session ended, as a number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum CloseCode {
    #[error("the server speaks another version of the protocol: update the game")]
    WrongWire,
    #[error("the server runs another game: join it with that game")]
    WrongGame,
    #[error("the server runs another version of the game: install the server's version")]
    WrongVersion,
    #[error("the server uses other rules (level or tuning): join with the same rules")]
    WrongRules,
    #[error("the match is full: try again later")]
    Full,
    #[error("the join timed out: the connection is too slow for this match")]
    JoinTooSlow,
    #[error("you left the match")]
    Left,
    #[error("your identity joined from another client, which took your seat")]
    TakenOver,
    #[error(
        "the server received no acknowledgement from your client for too long: check your connection, then join again"
    )]
    NoAcks,
    #[error(
        "your client sent too many invalid packets, or orders that made the game fail: update the game"
    )]
    Strikes,
    #[error(
        "your client could not be kept in sync with the server: check your connection, update the game, then join again"
    )]
    Desync,
    #[error("the server is shutting down")]
    Draining,
    #[error("the match is over")]
    MatchOver,
    #[error("the match cannot run because of a fault in the game or the server: ask the operator")]
    Fault,
    #[error("the match accepts no new players")]
    Shut,
    #[error("the match moved to another server: join again with the newest ticket")]
    Moved,
    #[error(
        "your client could not keep up with the match, and was removed: check your connection and this machine's load, then join again"
    )]
    TooSlow,
    #[error("this server does not run the ticket's match: try again, or ask for a new ticket")]
    NoMatch,
    #[error("you were kicked from the match")]
    Kicked,
    /// The server is shutting down cleanly, and another process will resume its match.
    #[error("the server is restarting and keeps the match: come back in {after_s} s")]
    Restarting { after_s: u16 },
    #[error(
        "the match's world has become too large to send: players can no longer join or rejoin the match"
    )]
    WorldTooLarge,
    #[error(
        "this ticket is no longer valid: a newer one of yours replaced it, or the operator revoked it; use your newest ticket, or ask for a new one"
    )]
    Superseded,
    #[error("you are banned from this server{}", Lasting(*for_s))]
    Banned {
        /// The remaining time of the ban in seconds, or [`BANNED_FOR_GOOD`].
        for_s: u32,
    },
    /// The server does not accept more players: it runs its maximum number of matches, is already creating many, or has
    /// too little memory or disk.
    #[error("the server is full: come back in {after_s} s, or ask for a ticket for another server")]
    ServerFull { after_s: u16 },
    /// The server's ticks are late: it refuses newcomers without a seat, and refuses or closes spectators.
    #[error(
        "the server is busy (its ticks are late): come back in {after_s} s, or ask for a ticket for another server"
    )]
    ServerBusy { after_s: u16 },
}

impl CloseCode {
    // The name in an operator's log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CloseCode::WrongWire => "wrong_wire",
            CloseCode::WrongGame => "wrong_game",
            CloseCode::WrongVersion => "wrong_version",
            CloseCode::WrongRules => "wrong_rules",
            CloseCode::Full => "full",
            CloseCode::JoinTooSlow => "join_too_slow",
            CloseCode::Left => "left",
            CloseCode::TakenOver => "taken_over",
            CloseCode::NoAcks => "no_acks",
            CloseCode::Strikes => "strikes",
            CloseCode::Desync => "desync",
            CloseCode::Draining => "draining",
            CloseCode::MatchOver => "match_over",
            CloseCode::Fault => "fault",
            CloseCode::Shut => "shut",
            CloseCode::Moved => "moved",
            CloseCode::TooSlow => "too_slow",
            CloseCode::NoMatch => "no_match",
            CloseCode::Kicked => "kicked",
            CloseCode::Restarting { .. } => "restarting",
            CloseCode::WorldTooLarge => "world_too_large",
            CloseCode::Superseded => "superseded",
            CloseCode::Banned { .. } => "banned",
            CloseCode::ServerFull { .. } => "server_full",
            CloseCode::ServerBusy { .. } => "server_busy",
        }
    }
}

/// The value of `for_s` in [`CloseCode::Banned`] for a ban without an end.
pub const BANNED_FOR_GOOD: u32 = u32::MAX;

/// A duration in seconds, shown in a unit that keeps the number small.
struct Lasting(u32);

impl fmt::Display for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded up, so that a player does not come back too early.
        let whole = |unit_s: u32| self.0.div_ceil(unit_s);
        match self.0 {
            BANNED_FOR_GOOD => Ok(()),
            0..=119 => write!(f, " for {} s more", self.0),
            120..=7_199 => write!(f, " for {} minutes more", whole(60)),
            7_200..=172_799 => write!(f, " for {} hours more", whole(3_600)),
            _ => write!(f, " for {} days more", whole(86_400)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkState;
    use crate::packet::DownPacket;
    use proptest::prelude::*;

    fn open(bytes: &[u8]) -> Option<CloseCode> {
        match DownPacket::open(bytes, &LinkState::default()) {
            Ok(DownPacket::Closed(body)) => read(body).ok(),
            _ => None,
        }
    }

    #[test]
    fn a_close_code_survives_a_round_trip_within_its_bound() {
        let longest = CloseCode::Banned {
            for_s: BANNED_FOR_GOOD,
        };
        for code in [
            longest,
            CloseCode::WrongWire,
            CloseCode::Restarting { after_s: 3 },
        ] {
            let mut bytes = [0; BYTES_MAX];
            let mut out = Writer::new(&mut bytes);
            write(code, &mut out).unwrap();
            let len = out.len();
            assert_eq!(open(&bytes[..len]), Some(code));
            for short in 0..len {
                assert_eq!(open(&bytes[..short]), None, "{short} of {len} bytes");
            }
            assert_eq!(open(&bytes[..(len + 1).min(BYTES_MAX)]), None);
        }
    }

    #[test]
    fn the_message_of_a_ban_contains_its_duration() {
        for (for_s, ending) in [
            (BANNED_FOR_GOOD, "server"),
            (90, "server for 90 s more"),
            (121, "server for 3 minutes more"),
            (7_200, "server for 2 hours more"),
            (BANNED_FOR_GOOD - 1, "server for 49711 days more"),
        ] {
            let words = alloc::string::ToString::to_string(&CloseCode::Banned { for_s });
            assert!(words.ends_with(ending), "{words}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_a_code(mut bytes in proptest::collection::vec(any::<u8>(), 1..20)) {
            bytes[0] = DownKind::Closed.alone();
            let _ = open(&bytes);
        }
    }
}
