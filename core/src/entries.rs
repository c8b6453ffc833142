//! The entries of a frame: inputs, orders, answers to open queries, and roster changes.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::bounds::{COMMAND_BYTES_MAX, OUTCOME_BYTES_MAX, PLAYERS_MAX};
use crate::ids::{Key, PlayerId, Tick};
use crate::players::PlayerSet;

/// A change of a player's seat. The framework keeps the roster; a step only receives the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterChange {
    /// A new player. Its inputs start with this frame.
    Joined,
    /// The player's inputs did not arrive for [`drop_after_ticks`](crate::bounds::drop_after_ticks). The player keeps
    /// its seat; its inputs are absent until it returns.
    Dropped,
    /// A dropped player is back.
    Returned,
    /// The player left; the seat is empty.
    Left,
}

/// A command or a claim of one player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order<C> {
    /// The player that issued the order.
    pub player: PlayerId,
    /// For a command, the player's sequence number; for a claim, the tick whose step emitted it.
    pub seq: u32,
    /// The command itself.
    pub command: C,
}

/// The answer to a query, or the notice that it will not be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer<O> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The key under which the query was asked.
    pub key: Key,
    /// The outcome. `None` if the query was not answered (deadline, limits, a failed resolver).
    pub outcome: Option<O>,
}

/// A query waiting for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuery<Q> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The key under which the query was asked.
    pub key: Key,
    /// The query itself.
    pub query: Q,
}

/// A large frame entry, which is sealed in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as in `Answer` and `Order`")]
pub enum LargeEntry {
    Outcome { asked: Tick, key: Key },
    Command { player: PlayerId, seq: u32 },
}

impl LargeEntry {
    /// The player that issued the entry, if it is a command.
    #[must_use]
    pub fn player(self) -> Option<PlayerId> {
        match self {
            LargeEntry::Outcome { .. } => None,
            LargeEntry::Command { player, .. } => Some(player),
        }
    }

    pub(crate) fn bytes_max(self) -> usize {
        match self {
            LargeEntry::Outcome { .. } => OUTCOME_BYTES_MAX,
            LargeEntry::Command { .. } => COMMAND_BYTES_MAX,
        }
    }
}

/// Consecutive bytes of an encoded large entry. All fragments of an entry, in frame order, make up the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// The entry.
    pub entry: LargeEntry,
    /// The offset of this fragment in the entry, in bytes. 0 starts the entry, or restarts it.
    pub from: u32,
    /// The number of the entry's bytes after this fragment. If it is 0, the fragment's frame also contains the whole
    /// entry.
    pub left: u32,
    /// The bytes of this fragment.
    pub bytes: Vec<u8>,
}

impl core::fmt::Display for LargeEntry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LargeEntry::Outcome { asked, key } => write!(f, "the outcome of {key} of {asked}"),
            LargeEntry::Command { player, seq } => write!(f, "command #{seq} of {player}"),
        }
    }
}

/// One frame's inputs, indexed by player.
///
/// Invariant: `players` contains exactly the players that have an input. Iteration visits only these, so empty seats
/// are free.
#[derive(Debug, Default)]
pub struct Inputs<I> {
    players: PlayerSet,
    held: [Option<I>; PLAYERS_MAX],
}

impl<I> Inputs<I> {
    /// The input of one player, or `None` if the player is absent.
    #[must_use]
    #[inline]
    pub fn get(&self, player: PlayerId) -> Option<&I> {
        self.held.get(player.index())?.as_ref()
    }

    /// Sets or clears one player's input.
    ///
    /// # Panics
    /// If `player` is not below [`PLAYERS_MAX`].
    #[inline]
    pub fn set(&mut self, player: PlayerId, input: Option<I>) {
        self.players.set(player, input.is_some());
        self.held[player.index()] = input;
    }

    /// All present inputs in player order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (PlayerId, &I)> {
        let input = |player| Some((player, self.get(player)?));
        self.players.iter().filter_map(input)
    }

    /// The players that have an input.
    #[must_use]
    #[inline]
    pub fn players(&self) -> PlayerSet {
        self.players
    }

    /// Removes all inputs.
    #[inline]
    pub fn clear(&mut self) {
        // Only the used slots; the others are already `None`.
        for player in self.players.iter() {
            self.held[player.index()] = None;
        }
        self.players = PlayerSet::default();
    }
}

impl<I: Clone> Clone for Inputs<I> {
    fn clone(&self) -> Self {
        Inputs {
            players: self.players,
            held: self.held.clone(),
        }
    }

    /// Reuses the allocations that the inputs own.
    fn clone_from(&mut self, other: &Self) {
        // First drop the inputs that `other` lacks. The others are overwritten in place.
        for player in self.players.without(other.players).iter() {
            self.held[player.index()] = None;
        }
        for player in other.players.iter() {
            self.held[player.index()].clone_from(&other.held[player.index()]);
        }
        self.players = other.players;
    }
}

impl<I: PartialEq> PartialEq for Inputs<I> {
    fn eq(&self, other: &Self) -> bool {
        let is_equal = |player| self.get(player) == other.get(player);
        // Slots outside `players` are `None` on both sides.
        self.players == other.players && self.players.iter().all(is_equal)
    }
}

impl<I: Eq> Eq for Inputs<I> {}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use crate::Mwc;

    /// The inputs as `get` returns them, after checking that the other accessors agree.
    fn seats(inputs: &Inputs<String>) -> [Option<String>; PLAYERS_MAX] {
        let all = core::array::from_fn(|i| inputs.get(PlayerId(i as u8)).cloned());
        let held = |(i, input): (usize, &Option<String>)| {
            let player = PlayerId(i as u8);
            Some((player, input.clone()?))
        };
        let listed: Vec<_> = all.iter().enumerate().filter_map(held).collect();
        let iterated: Vec<_> = inputs.iter().map(|(p, input)| (p, input.clone())).collect();
        assert_eq!(iterated, listed);
        let players: PlayerSet = listed.iter().map(|(player, _)| *player).collect();
        assert_eq!(inputs.players(), players);
        all
    }

    #[test]
    fn inputs_behave_like_an_option_array() {
        let mut luck = Mwc::seed(11);
        let mut kept: Vec<(Inputs<String>, [Option<String>; PLAYERS_MAX])> = Vec::new();
        kept.resize_with(4, || (Inputs::default(), Default::default()));
        for _ in 0..20_000 {
            let (at, from) = (luck.below(4) as usize, luck.below(4) as usize);
            let (player, word) = (PlayerId(luck.below(16) as u8), luck.below(3));
            match luck.below(8) {
                0 => {
                    let (inputs, seats) = kept[from].clone();
                    kept[at].0.clone_from(&inputs);
                    kept[at].1 = seats;
                }
                1 if word == 0 => {
                    kept[at].0.clear();
                    kept[at].1 = Default::default();
                }
                2 | 3 => {
                    kept[at].0.set(player, None);
                    kept[at].1[player.index()] = None;
                }
                _ => {
                    let input = alloc::format!("{word}");
                    kept[at].0.set(player, Some(input.clone()));
                    kept[at].1[player.index()] = Some(input);
                }
            }
            assert_eq!(seats(&kept[at].0), kept[at].1);
            assert_eq!(kept[at].0 == kept[from].0, kept[at].1 == kept[from].1);
        }
    }
}
