//! The lobby of a match that has not started: its players, and the rules that its host has chosen.
//!
//! ```text
//!  down, on the lane   LOBBY  the session's seats · Lobby          when it changes, and once a second
//!                      RULES  digest: 64 · deflated rules          once for each choice that the client lacks
//!  up, ten a second    first · link · lane ack · choice, ready, starts  (`packet::hello`, instead of a hello)
//! ```
//!
//! Law **Hostile wire**: rules unpack to at most [`RULES_BYTES_MAX`] bytes, even if the message claims more.

use alloc::sync::Arc;
use alloc::vec::Vec;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::bounds::{PLAYERS_MAX, RULES_BYTES_MAX, SEATS_MAX};
use twinstep_core::{PlayerId, codec};

use crate::names::Name;

// Fast: a megabyte takes about ten milliseconds, once for each choice.
const LEVEL: u8 = 3;
const DIGEST_BYTES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lobby {
    /// The number of the host's choice of rules. Each choice increments it and resets all players to not ready.
    pub choice: u32,
    pub rules: u64,
    pub start: StartCondition,
    pub players: ArrayVec<LobbyPlayer, PLAYERS_MAX>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LobbyPlayer {
    pub player: PlayerId,
    /// The display name, which does not prove an identity.
    pub name: Name,
    pub has_rules: bool,
    pub ready: bool,
}

/// The condition for the start of a match. Unless a request starts it, all connected players must also be ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartCondition {
    Players(u8),
    Identities(Vec<Name>),
    HostSays,
}

impl Lobby {
    #[must_use]
    pub fn new(choice: u32, rules: u64, start: StartCondition) -> Lobby {
        let players = ArrayVec::new();
        Lobby {
            choice,
            rules,
            start,
            players,
        }
    }

    pub fn add(&mut self, player: PlayerId, name: Name, has_rules: bool, ready: bool) {
        // Never full: the list has space for all players of a match.
        let _ = self.players.try_push(LobbyPlayer {
            player,
            name,
            has_rules,
            ready,
        });
    }
}

// The message `LOBBY`: the session's own players, and the lobby.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LobbyMessage {
    pub seats: ArrayVec<PlayerId, SEATS_MAX>,
    pub lobby: Lobby,
}

impl LobbyMessage {
    // `None` if the bytes are not a message, or name a player beyond the limit.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<LobbyMessage> {
        let message: LobbyMessage = codec::decode_whole(bytes).ok()?;
        let mut players = message.lobby.players.iter().map(|player| player.player);
        let awaited = match &message.lobby.start {
            StartCondition::Identities(names) => names.len(),
            StartCondition::Players(_) | StartCondition::HostSays => 0,
        };
        let is_sound = awaited <= PLAYERS_MAX
            && players.all(|player| player.index() < PLAYERS_MAX)
            && message.seats.iter().all(|seat| seat.index() < PLAYERS_MAX);
        is_sound.then_some(message)
    }
}

// The error is the encoded size if that is over the bound, or `usize::MAX` if the rules cannot be encoded.
pub fn pack_rules<R: Serialize>(rules: &R, digest: u64) -> Result<Arc<[u8]>, usize> {
    let bytes = codec::size(rules).unwrap_or(usize::MAX);
    let mut encoded = Vec::new();
    if bytes > RULES_BYTES_MAX || codec::append(rules, &mut encoded).is_err() {
        return Err(bytes);
    }
    let mut message = digest.to_le_bytes().to_vec();
    message.extend(miniz_oxide::deflate::compress_to_vec(&encoded, LEVEL));
    Ok(message.into())
}

// The digest in the message, unchecked, and the encoded rules. `None` if the message is damaged, or the rules are
// larger than the bound.
#[must_use]
pub fn unpack_rules(message: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (digest, packed) = message.split_first_chunk::<DIGEST_BYTES>()?;
    let rules = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, RULES_BYTES_MAX);
    Some((u64::from_le_bytes(*digest), rules.ok()?))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_survive_packing_up_to_their_bound_and_are_refused_beyond_it() {
        // The length takes 5 bytes.
        let largest = vec![7_u8; RULES_BYTES_MAX - 5];
        let message = pack_rules(&largest, 99).unwrap();
        assert!(message.len() < 10_000, "{}", message.len());
        let (digest, bytes) = unpack_rules(&message).unwrap();
        assert_eq!((digest, bytes.len()), (99, RULES_BYTES_MAX));
        assert_eq!(codec::decode_whole::<Vec<u8>>(&bytes), Ok(largest));
        let too_large = vec![7_u8; RULES_BYTES_MAX - 4];
        assert_eq!(pack_rules(&too_large, 99), Err(RULES_BYTES_MAX + 1));
    }

    /// Law *Hostile wire*: a kilobyte that unpacks to a hundred megabytes.
    #[test]
    fn a_message_that_unpacks_to_more_than_the_bound_is_refused() {
        let bomb = miniz_oxide::deflate::compress_to_vec(&vec![0; RULES_BYTES_MAX + 1], 9);
        let message: Vec<u8> = [0; DIGEST_BYTES].into_iter().chain(bomb).collect();
        assert_eq!(unpack_rules(&message), None);
        assert_eq!(unpack_rules(&message[..7]), None);
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_refused_as_rules_or_lobby_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            at in 0_usize..60,
            bit in 0_u8..8,
        ) {
            let _ = (unpack_rules(&bytes), LobbyMessage::read(&bytes));
            let mut rules = pack_rules(&(0..50_u32).collect::<Vec<_>>(), 1).unwrap().to_vec();
            let place = at % rules.len();
            rules[place] ^= 1 << bit;
            if let Some((_, bytes)) = unpack_rules(&rules) {
                prop_assert!(bytes.len() <= RULES_BYTES_MAX);
            }
            let mut lobby = Lobby::new(1, 2, StartCondition::Players(3));
            lobby.add(PlayerId(2), Name::new("Anna"), true, false);
            let message = LobbyMessage { seats: ArrayVec::from_iter([PlayerId(2)]), lobby };
            let mut bytes = Vec::new();
            codec::append(&message, &mut bytes).unwrap();
            prop_assert_eq!(LobbyMessage::read(&bytes), Some(message));
            let place = at % bytes.len();
            bytes[place] ^= 1 << bit;
            if let Some(read) = LobbyMessage::read(&bytes) {
                prop_assert!(read.lobby.players.iter().all(|p| p.player.index() < PLAYERS_MAX));
            }
        }
    }
}
