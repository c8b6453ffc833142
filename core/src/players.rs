//! A set of players of one match.

use serde::{Deserialize, Serialize};

use crate::PlayerId;
use crate::bounds::PLAYERS_MAX;

/// A set of players, as a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerSet(pub u16);

impl PlayerSet {
    /// Returns `true` if the player is in the set.
    #[must_use]
    pub const fn contains(self, player: PlayerId) -> bool {
        player.index() < PLAYERS_MAX && self.0 & (1 << player.0) != 0
    }

    /// Adds or removes a player.
    ///
    /// # Panics
    /// If `player` is not below [`PLAYERS_MAX`].
    #[inline]
    pub fn set(&mut self, player: PlayerId, member: bool) {
        assert!(player.index() < PLAYERS_MAX, "{player} is beyond the limit");
        if member {
            self.0 |= 1 << player.0;
        } else {
            self.0 &= !(1 << player.0);
        }
    }

    /// The players that are in both sets.
    #[must_use]
    pub const fn common(self, other: PlayerSet) -> PlayerSet {
        PlayerSet(self.0 & other.0)
    }

    /// The players that are in either set.
    #[must_use]
    pub const fn or(self, other: PlayerSet) -> PlayerSet {
        PlayerSet(self.0 | other.0)
    }

    /// The players of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: PlayerSet) -> PlayerSet {
        PlayerSet(self.0 & !other.0)
    }

    /// The players of the set, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = PlayerId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let lowest = PlayerId(rest.trailing_zeros() as u8);
            let is_one = rest != 0;
            // Clears the lowest bit. Saturating, because `rest` may already be 0.
            rest &= rest.saturating_sub(1);
            is_one.then_some(lowest)
        })
    }

    /// The number of players in the set.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns `true` if the set has no players.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<PlayerId> for PlayerSet {
    fn from_iter<T: IntoIterator<Item = PlayerId>>(players: T) -> Self {
        players
            .into_iter()
            .fold(PlayerSet::default(), |mut set, p| {
                set.set(p, true);
                set
            })
    }
}
