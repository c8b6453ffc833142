//! [`Roster`]: which players have a seat, and whether their inputs arrive.
//!
//! Invariant: no player is both present and dropped. Every step reads the roster and few steps change it, so it is
//! stored as two masks; snapshots and digests contain one [`Presence`] per seat instead.

use serde::{Deserialize, Serialize};

use crate::PlayerId;
use crate::bounds::PLAYERS_MAX;
use crate::entries::RosterChange;
use crate::players::PlayerSet;

/// The state of a player's seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// The seat is free.
    #[default]
    Absent,
    /// Every frame contains the player's input.
    Present,
    /// The player's inputs stopped. The player keeps its seat.
    Dropped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[Presence; PLAYERS_MAX]", into = "[Presence; PLAYERS_MAX]")]
pub(super) struct Roster {
    present: PlayerSet,
    dropped: PlayerSet,
}

impl Roster {
    pub(super) const fn present(self) -> PlayerSet {
        self.present
    }

    pub(super) const fn seated(self) -> PlayerSet {
        self.present.or(self.dropped)
    }

    pub(super) const fn presence(self, player: PlayerId) -> Presence {
        if self.present.contains(player) {
            Presence::Present
        } else if self.dropped.contains(player) {
            Presence::Dropped
        } else {
            Presence::Absent
        }
    }

    /// Applies `change`, or returns `false` if the seat does not exist or its state does not allow the change.
    #[must_use]
    pub(super) fn change(&mut self, player: PlayerId, change: RosterChange) -> bool {
        let was = self.presence(player);
        let (follows, is) = match change {
            RosterChange::Joined => (was == Presence::Absent, Presence::Present),
            RosterChange::Dropped => (was == Presence::Present, Presence::Dropped),
            RosterChange::Returned => (was == Presence::Dropped, Presence::Present),
            RosterChange::Left => (was != Presence::Absent, Presence::Absent),
        };
        // A number from the wire may exceed the number of seats.
        let fits = follows && player.index() < PLAYERS_MAX;
        if fits {
            self.set(player, is);
        }
        fits
    }

    fn set(&mut self, player: PlayerId, presence: Presence) {
        self.present.set(player, presence == Presence::Present);
        self.dropped.set(player, presence == Presence::Dropped);
    }
}

impl From<[Presence; PLAYERS_MAX]> for Roster {
    fn from(seats: [Presence; PLAYERS_MAX]) -> Self {
        let mut roster = Roster::default();
        for (i, presence) in seats.into_iter().enumerate() {
            roster.set(PlayerId(i as u8), presence);
        }
        roster
    }
}

impl From<Roster> for [Presence; PLAYERS_MAX] {
    fn from(roster: Roster) -> Self {
        core::array::from_fn(|i| roster.presence(PlayerId(i as u8)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::codec;
    use crate::digest::digest;

    #[test]
    fn a_seat_refuses_a_change_that_does_not_fit_its_state() {
        use RosterChange::{Dropped, Joined, Left, Returned};
        let player = PlayerId(15);
        let allowed = [
            (Presence::Absent, vec![Joined]),
            (Presence::Present, vec![Dropped, Left]),
            (Presence::Dropped, vec![Returned, Left]),
        ];
        for (was, allowed) in allowed {
            for change in [Joined, Dropped, Returned, Left] {
                let mut roster = Roster::default();
                roster.set(player, was);
                let before = roster;
                let fits = roster.change(player, change);
                assert_eq!(fits, allowed.contains(&change), "{was:?} {change:?}");
                assert_eq!(fits, roster != before, "{was:?} {change:?}");
                assert_eq!(roster.presence(PlayerId(14)), Presence::Absent);
            }
        }
        let beyond = PlayerId(PLAYERS_MAX as u8);
        assert!(
            !Roster::default().change(beyond, Joined),
            "beyond all seats"
        );
    }

    #[test]
    fn a_roster_is_encoded_and_digested_as_one_presence_per_seat() {
        let mut seats = [Presence::Absent; PLAYERS_MAX];
        seats[0] = Presence::Dropped;
        seats[7] = Presence::Present;
        seats[15] = Presence::Present;
        let roster = Roster::from(seats);
        assert_eq!(
            roster.present(),
            [PlayerId(7), PlayerId(15)].into_iter().collect()
        );
        assert_eq!(roster.seated().len(), 3);
        assert_eq!(digest(&roster), digest(&seats));
        let (mut bytes, mut same) = (Vec::new(), Vec::new());
        codec::append(&seats, &mut bytes).unwrap();
        codec::append(&roster, &mut same).unwrap();
        assert_eq!(bytes, same);
        assert_eq!(codec::decode_whole::<Roster>(&bytes).unwrap(), roster);
    }
}
