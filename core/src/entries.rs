//! What a frame is made of: inputs, orders, answers to open queries, and changes of the roster.

use serde::{Deserialize, Serialize};

use crate::bounds::PLAYERS_MAX;
use crate::players::PlayerSet;
use crate::words::{Key, PlayerId, Tick};

/// A change of who plays. The roster is the framework's; a step only hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterChange {
    /// A new player: its inputs begin with this frame.
    Joined,
    /// No input came for a while: the seat is kept, its inputs are absent until it returns.
    Dropped,
    /// A dropped player is back.
    Returned,
    /// The player left; the seat is empty.
    Left,
}

/// A command, or a claim, of one player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order<C> {
    /// Who ordered it.
    pub player: PlayerId,
    /// Commands: the player's sequence. Claims: the tick that emitted it.
    pub seq: u32,
    /// What is ordered.
    pub command: C,
}

/// The answer to a query, or the news that it stays without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer<O> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The key it was asked under.
    pub key: Key,
    /// `None`: never answered (deadline, caps, a resolver that failed).
    pub outcome: Option<O>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuery<Q> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The name it was asked under.
    pub key: Key,
    /// The question.
    pub query: Q,
}

/// The inputs of one frame, by player.
///
/// Invariant: the set holds exactly those who hold something. Who looks for them goes by its bits, which costs nothing for
/// seats that are empty.
#[derive(Debug, Default)]
pub struct Inputs<I> {
    players: PlayerSet,
    held: [Option<I>; PLAYERS_MAX],
}

impl<I> Inputs<I> {
    /// The input of one player; `None`: absent.
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

    /// Who has an input here.
    #[must_use]
    #[inline]
    pub fn players(&self) -> PlayerSet {
        self.players
    }

    /// Removes all inputs.
    #[inline]
    pub fn clear(&mut self) {
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

    /// Keeps what inputs own.
    fn clone_from(&mut self, other: &Self) {
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
        self.players == other.players && self.players.iter().all(is_equal)
    }
}

impl<I: Eq> Eq for Inputs<I> {}
