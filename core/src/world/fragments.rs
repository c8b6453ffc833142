//! [`LargeEntries`]: reassembles large frame entries from their fragments.
//!
//! ```text
//!  frame   t              t + 1          t + 2
//!          bytes 0..200   200..400       400..431, and the entry in its list: the step sees it
//!  held               200 B ─▶     400 B ─▶     none
//! ```
//!
//! A world holds these bytes, so every copy of it (a snapshot, a heal, a journal's world) can continue between two
//! fragments. A sealer has the whole entry and puts it into the frame's list. A reader of frames calls
//! [`LargeEntries::complete`].
//!
//! Invariant: at most one command of each player and one outcome are unfinished, each within its limit. An abandoned
//! entry is dropped when its player leaves or runs a later command, its query is answered, or another entry replaces
//! it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::bounds::PLAYERS_MAX;
use crate::entries::{Answer, Fragment, LargeEntry, Order};
use crate::frame::FrameData;
use crate::{Simulation, codec};

/// The first bytes of large entries. Their remaining bytes are in later frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeEntries {
    // Ordered by player; the outcome is first.
    pub(super) held: Vec<Fragment>,
}

impl LargeEntries {
    fn slot(&self, entry: LargeEntry) -> Result<usize, usize> {
        self.held
            .binary_search_by_key(&entry.player(), |held| held.entry.player())
    }

    /// The number of bytes of a large entry already collected from earlier frames. 0 if there are none, or if they
    /// differ from the start of `whole`: the entry then starts again.
    #[must_use]
    pub fn collected(&self, entry: LargeEntry, whole: &[u8]) -> usize {
        let held = self.held.iter().find(|held| held.entry == entry);
        let held = held.filter(|held| {
            whole.len() == held.bytes.len() + held.left as usize && whole.starts_with(&held.bytes)
        });
        held.map_or(0, |held| held.bytes.len())
    }

    /// Returns `true` if no entry is unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The unfinished outcome, if any.
    #[must_use]
    pub fn outcome(&self) -> Option<LargeEntry> {
        let first = self.held.first().map(|held| held.entry);
        first.filter(|entry| entry.player().is_none())
    }

    /// Decodes the large entries that end in a frame, and adds them to the frame's lists if they are not there yet.
    ///
    /// # Errors
    /// The entry, if its last fragment does not continue the bytes before it, or if its bytes are not a value.
    pub fn complete<S: Simulation>(&self, frame: &mut FrameData<S>) -> Result<(), LargeEntry> {
        for at in 0..frame.fragments.len() {
            let fragment = &frame.fragments[at];
            let entry = fragment.entry;
            if fragment.left > 0 || frame.contains(entry) {
                continue;
            }
            if !self.follows(fragment) {
                return Err(entry);
            }
            let mut bytes = match self.slot(entry) {
                Ok(held) if fragment.from > 0 => self.held[held].bytes.clone(),
                _ => Vec::new(),
            };
            bytes.extend_from_slice(&fragment.bytes);
            match entry {
                LargeEntry::Outcome { asked, key } => {
                    let outcome = codec::decode_whole(&bytes).map_err(|_| entry)?;
                    let outcome = Some(outcome);
                    frame.outcomes.push(Answer {
                        asked,
                        key,
                        outcome,
                    });
                    frame.outcomes.sort_unstable_by_key(|a| (a.asked, a.key));
                }
                LargeEntry::Command { player, seq } => {
                    let command = codec::decode_whole(&bytes).map_err(|_| entry)?;
                    frame.commands.push(Order {
                        player,
                        seq,
                        command,
                    });
                    frame.commands.sort_unstable_by_key(|c| (c.player, c.seq));
                }
            }
        }
        Ok(())
    }

    /// Adds the fragments of a frame to the unfinished entries, and drops the entries that the frame completes.
    pub fn collect(&mut self, fragments: &[Fragment]) {
        for fragment in fragments {
            match self.slot(fragment.entry) {
                Ok(at) if fragment.left == 0 => {
                    self.held.remove(at);
                }
                Ok(at) if fragment.from > 0 => {
                    let held = &mut self.held[at];
                    held.bytes.extend_from_slice(&fragment.bytes);
                    held.left = fragment.left;
                }
                Ok(at) => self.held[at].clone_from(fragment),
                Err(at) if fragment.left > 0 => self.held.insert(at, fragment.clone()),
                Err(_) => {}
            }
        }
    }

    pub(super) fn follows(&self, fragment: &Fragment) -> bool {
        let (from, left) = (fragment.from as usize, fragment.left as usize);
        let bytes = fragment.bytes.len();
        let continues = || {
            self.slot(fragment.entry).is_ok_and(|at| {
                let held = &self.held[at];
                held.entry == fragment.entry
                    && held.bytes.len() == from
                    && held.left as usize == bytes + left
            })
        };
        let all = from.saturating_add(bytes).saturating_add(left);
        bytes > 0 && all <= fragment.entry.bytes_max() && (from == 0 || continues())
    }

    pub(super) fn is_sound(&self) -> bool {
        let ascending = |w: &[Fragment]| w[0].entry.player() < w[1].entry.player();
        self.held.windows(2).all(ascending)
            && self.held.iter().all(|held| {
                let all = held.bytes.len().saturating_add(held.left as usize);
                let seat = held.entry.player().map_or(0, |player| player.index());
                let is_part = held.from == 0 && held.left > 0 && !held.bytes.is_empty();
                is_part && all <= held.entry.bytes_max() && seat < PLAYERS_MAX
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::doc::Echo;
    use crate::world::World;
    use crate::{Key, OpenQuery, PlayerId, RosterChange, Tick};

    // A world with a seated player and an open query.
    fn world() -> World<Echo> {
        let mut world = World::new(Echo::default(), Tick(9));
        assert!(world.roster.change(PlayerId(2), RosterChange::Joined));
        world.open.push(OpenQuery {
            asked: Tick(3),
            key: Key::new(1, 1),
            query: 0,
        });
        world
    }

    const COMMAND: LargeEntry = LargeEntry::Command {
        player: PlayerId(2),
        seq: 4,
    };
    const OUTCOME: LargeEntry = LargeEntry::Outcome {
        asked: Tick(3),
        key: Key::new(1, 1),
    };

    fn fragment(entry: LargeEntry, from: u32, left: u32, bytes: usize) -> Fragment {
        let bytes = alloc::vec![5; bytes];
        Fragment {
            entry,
            from,
            left,
            bytes,
        }
    }

    proptest! {
        #[test]
        fn bytes_cut_anywhere_are_reassembled(
            whole in proptest::collection::vec(any::<u8>(), 2..4_096),
            rooms in proptest::collection::vec(1usize..500, 1..60),
        ) {
            for entry in [COMMAND, OUTCOME] {
                let mut world = world();
                let mut rooms = rooms.iter().cycle();
                loop {
                    let from = world.unfinished().collected(entry, &whole);
                    let mut frame = FrameData::<Echo>::empty(Tick(9));
                    let room = *rooms.next().unwrap();
                    frame.add_fragment(entry, &whole, from, room);
                    frame.add_fragment(entry, &whole, from, 3);
                    prop_assert!(world.fits(&frame.fragments[0]));
                    if frame.ends(entry) {
                        break;
                    }
                    world.collect(&frame.fragments);
                    prop_assert!(world.unfinished().is_sound());
                    prop_assert!(world.unfinished().collected(entry, &whole) > from);
                    prop_assert_eq!(world.unfinished().collected(entry, &whole[1..]), 0);
                }
            }
        }

        #[test]
        fn any_fragment_is_refused_or_keeps_a_world_sound(
            of_command: bool, seq in 0u32..9, asked in 0u32..5, from in 0u32..5_000,
            left in 0u32..5_000, bytes in 0usize..200, begun in 0usize..300,
        ) {
            let mut world = world();
            if begun > 0 {
                world.collect(&[fragment(COMMAND, 0, 3_000, begun)]);
            }
            let entry = match of_command {
                true => LargeEntry::Command { player: PlayerId(2), seq },
                false => LargeEntry::Outcome { asked: Tick(asked), key: Key::new(1, 1) },
            };
            let next = fragment(entry, from, left, bytes);
            let mut frame = FrameData::<Echo>::empty(Tick(9));
            frame.fragments.push(next.clone());
            let completed = world.unfinished().complete(&mut frame);
            if world.fits(&next) {
                world.collect(&[next]);
            } else {
                prop_assert!(left > 0 || completed.is_err() || (!of_command && asked != 3));
            }
            prop_assert!(world.is_sound());
        }
    }

    #[test]
    fn an_entry_that_can_no_longer_be_completed_is_dropped() {
        let begun = || {
            let mut world = world();
            let parts = [fragment(OUTCOME, 0, 9, 9), fragment(COMMAND, 0, 9, 9)];
            world.collect(&parts);
            assert_eq!(world.unfinished.held.len(), 2);
            world
        };
        let mut world = begun();
        world.next_seq[2] = 5;
        world.collect(&[]);
        assert_eq!(world.unfinished().outcome(), Some(OUTCOME));
        world.open.clear();
        world.collect(&[]);
        assert!(world.unfinished().is_empty());
        let mut world = begun();
        assert!(world.roster.change(PlayerId(2), RosterChange::Left));
        world.collect(&[]);
        assert_eq!(world.unfinished.held.len(), 1);
    }
}
