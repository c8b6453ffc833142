//! Divides a frame's bytes: each kind of entry has a share, and the players take turns within a kind.
//!
//! ```text
//!  room of the frame   ├─ reserved for claims ─┼─ for commands ─┼──── the kind served first ────┤
//!                        if one waits            if one waits     outcomes, claims or commands, by the tick
//! ```
//!
//! Invariants (law **Bounded**): other kinds never keep a small entry out of a frame. They keep any other entry, or the
//! next fragment of a large one, out of frames for at most
//! [`FRAME_TURNS_TICKS`](twinstep_core::bounds::FRAME_TURNS_TICKS). Space that a kind does not use goes to the other
//! kinds. The order of the kinds depends only on the tick.

use arrayvec::ArrayVec;
use twinstep_core::bounds::{FRAME_BYTES, FRAME_ROOM_MIN, FRAME_SHARE_BYTES, PLAYERS_MAX};
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::share::CommandShare;

/// A kind of entry that competes for the space in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Outcomes,
    Claims,
    Commands,
}

const KINDS: [Kind; 3] = [Kind::Outcomes, Kind::Claims, Kind::Commands];

pub(crate) struct Room {
    left: usize,
    kept: [usize; KINDS.len()],
}

impl Room {
    /// Creates the shares of the space left in a frame with `taken` bytes. `waits` returns `true` for kinds with
    /// waiting entries.
    pub(crate) fn new(taken: usize, waits: impl Fn(Kind) -> bool) -> Room {
        Room {
            left: FRAME_BYTES.saturating_sub(taken).max(FRAME_ROOM_MIN),
            kept: KINDS.map(|kind| if waits(kind) { FRAME_SHARE_BYTES } else { 0 }),
        }
    }

    /// The space that a kind may take, which is all that is not reserved for other kinds.
    pub(crate) fn free(&self, kind: Kind) -> usize {
        let others: usize = self.kept.iter().sum::<usize>() - self.kept[kind as usize];
        self.left.saturating_sub(others)
    }

    pub(crate) fn has(&self, kind: Kind, bytes: usize) -> bool {
        bytes <= self.free(kind)
    }

    pub(crate) fn take(&mut self, kind: Kind, bytes: usize) -> bool {
        let has = self.has(kind, bytes);
        if has {
            self.left -= bytes;
            let kept = &mut self.kept[kind as usize];
            *kept = kept.saturating_sub(bytes);
        }
        has
    }

    /// Releases the unused part of a kind's share to all kinds, once that kind has been served.
    pub(crate) fn release(&mut self, kind: Kind) {
        self.kept[kind as usize] = 0;
    }
}

#[derive(Default)]
pub(crate) struct Served {
    pub(crate) commands: [CommandShare; PLAYERS_MAX],
    pub(crate) claimed: [bool; PLAYERS_MAX],
}

/// The order in which the kinds are served at a tick. Each kind occurs twice, so that released shares are used.
pub(crate) fn turns(tick: Tick) -> impl Iterator<Item = Kind> {
    let first = tick.0 as usize % KINDS.len();
    (0..2 * KINDS.len()).map(move |i| KINDS[(first + i) % KINDS.len()])
}

/// The order in which the players are served at a tick. A player stays first until every kind was first once.
pub(crate) fn in_turn(tick: Tick, players: usize) -> impl Iterator<Item = PlayerId> {
    let first = tick.0 as usize / KINDS.len();
    (0..players).map(move |i| PlayerId(((first + i) % players) as u8))
}

/// The order in which entries are served: the first entry of each player, in the order of the players, then the second
/// entry of each, and so on. Entries without an owner (`None`) are served like those of one more player. Entries after
/// the first `N`, at most 256, wait for a later tick.
pub(crate) fn dealt<const N: usize>(
    tick: Tick,
    owners: impl Iterator<Item = Option<PlayerId>>,
) -> impl Iterator<Item = usize> {
    const { assert!(N <= 256 && PLAYERS_MAX < 256, "cards of bytes") };
    let first = tick.0 as usize / KINDS.len();
    let mut before = [0_u8; PLAYERS_MAX + 1];
    // The cards are sorted every tick, so they are small.
    let mut cards: ArrayVec<[u8; 3], N> = ArrayVec::new();
    for (entry, owner) in owners.enumerate().take(N) {
        let slot = owner.map_or(PLAYERS_MAX, |owner| owner.index().min(PLAYERS_MAX - 1));
        let turn = (slot + before.len() - first % before.len()) % before.len();
        cards.push([before[slot], turn as u8, entry as u8]);
        // This may wrap only at the last entry, whose count is not used.
        before[slot] = before[slot].wrapping_add(1);
    }
    cards.sort_unstable();
    cards.into_iter().map(|[.., entry]| entry.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::bounds::{ANSWER_BYTES_MAX, FRAME_TURNS_TICKS, ORDER_BYTES_MAX};

    #[test]
    fn the_largest_entry_of_any_kind_fits_when_its_kind_is_first() {
        for taken in [0, 300, FRAME_BYTES, 10 * FRAME_BYTES] {
            let room = Room::new(taken, |_| true);
            assert!(room.has(Kind::Outcomes, ANSWER_BYTES_MAX));
            for kind in [Kind::Claims, Kind::Commands] {
                assert!(room.has(kind, 2 * ORDER_BYTES_MAX));
            }
        }
    }

    #[test]
    fn space_reserved_for_a_kind_is_released_only_after_its_turn() {
        let mut room = Room::new(FRAME_BYTES, |kind| kind != Kind::Claims);
        let free = FRAME_ROOM_MIN - FRAME_SHARE_BYTES;
        assert!(!room.take(Kind::Outcomes, free + 1));
        assert!(room.take(Kind::Outcomes, free));
        assert!(!room.take(Kind::Outcomes, 1));
        assert!(room.take(Kind::Commands, 8));
        assert!(!room.take(Kind::Outcomes, 1));
        room.release(Kind::Commands);
        assert!(room.take(Kind::Outcomes, FRAME_SHARE_BYTES - 8));
        assert!(!room.take(Kind::Outcomes, 1));
    }

    #[test]
    fn every_player_is_served_first_with_every_kind_within_a_round() {
        for players in 1..=PLAYERS_MAX {
            let mut first = Vec::new();
            for tick in (1_000..1_000 + FRAME_TURNS_TICKS).map(Tick) {
                let kind = turns(tick).next().map(|kind| kind as usize);
                first.push((kind, in_turn(tick, players).next()));
                assert_eq!(in_turn(tick, players).count(), players);
            }
            first.sort();
            first.dedup();
            assert_eq!(first.len(), 3 * players, "of {players}");
        }
    }

    #[test]
    fn any_number_of_entries_is_dealt_in_turns() {
        let owners = [0, 0, 0, 0, 3, 3, 16].map(|p| (p < 16).then_some(PlayerId(p)));
        let dealt = |tick| dealt::<8>(Tick(tick), owners.into_iter()).collect::<Vec<_>>();
        assert_eq!(dealt(0), [0, 4, 6, 1, 5, 2, 3]);
        assert_eq!(dealt(3), [4, 6, 0, 5, 1, 2, 3], "player 1 would be first");
        assert_eq!(
            dealt(48),
            [6, 0, 4, 1, 5, 2, 3],
            "and then the entry without an owner"
        );
    }
}
