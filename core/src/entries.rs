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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs<I>([Option<I>; PLAYERS_MAX]);

impl<I> Inputs<I> {
    /// The input of one player; `None`: absent.
    #[must_use]
    pub fn get(&self, player: PlayerId) -> Option<&I> {
        self.0.get(player.index())?.as_ref()
    }

    /// Sets or clears one player's input.
    ///
    /// # Panics
    /// If `player` is not below [`PLAYERS_MAX`].
    pub fn set(&mut self, player: PlayerId, input: Option<I>) {
        self.0[player.index()] = input;
    }

    /// All present inputs in player order.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerId, &I)> {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(i, input)| Some((PlayerId(i as u8), input.as_ref()?)))
    }

    /// Who has an input here.
    #[must_use]
    #[inline]
    pub fn players(&self) -> PlayerSet {
        let bit = |(i, input): (usize, &Option<I>)| u16::from(input.is_some()) << i;
        PlayerSet(self.0.iter().enumerate().map(bit).sum())
    }

    /// Removes all inputs.
    pub fn clear(&mut self) {
        self.0.fill_with(|| None);
    }
}
