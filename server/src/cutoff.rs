//! [`CutOff`]: joins interrupted by a lost connection. Their worlds, and the frames since then, are kept so that the
//! clients can reconnect and continue.
//!
//! ```text
//!  Loading ───── lost ──▶ its world, encoded ───┐                      ┌▶ Hello { holds: Part } ────── the rest of the world
//!  CatchingUp ── lost ──▶ its next frame ───────┴─ for CUT_OFF_TIME ───┴▶ Hello { holds: Authority } ─ frames
//! ```
//!
//! Invariant: [`CUT_OFF_BYTES_MAX`] and [`CUT_OFF_MAX`] bound the kept worlds, for any number of clients; the frames
//! have their own bounds ([`History::keep_from`](crate::history::History::keep_from)).

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::{CUT_OFF_BYTES_MAX, CUT_OFF_MAX, CUT_OFF_TIME};
use twinstep_protocol::packet::hello::WorldId;

use crate::encoding::Snapshot;

#[derive(Default)]
pub(super) struct CutOff {
    /// Oldest first.
    joins: VecDeque<Join>,
}

struct Join {
    from: Tick,
    /// The world being sent at the cut-off, if it had not arrived completely.
    world: Option<Snapshot>,
    until: Duration,
}

impl CutOff {
    pub(super) fn keep(&mut self, now: Duration, from: Tick, world: Option<Snapshot>) {
        let id = |world: &Option<Snapshot>| world.as_ref().map(|world| world.id);
        let same = |join: &Join| (join.from, id(&join.world)) == (from, id(&world));
        if let Some(at) = self.joins.iter().position(same) {
            self.joins.remove(at);
        }
        let until = now + CUT_OFF_TIME;
        self.joins.push_back(Join { from, world, until });
        while self.joins.len() > CUT_OFF_MAX || self.bytes() > CUT_OFF_BYTES_MAX {
            self.joins.pop_front();
        }
    }

    pub(super) fn forget(&mut self, now: Duration, first: Tick) {
        self.joins
            .retain(|join| now < join.until && join.from >= first);
    }

    pub(super) fn needed(&self) -> Option<Tick> {
        self.joins.iter().map(|join| join.from).min()
    }

    pub(super) fn reaches(&self, tick: Tick) -> bool {
        self.needed().is_some_and(|needed| needed <= tick)
    }

    /// The world with this id, if it is kept and longer than the `bytes` that a client has of it.
    pub(super) fn world(&self, id: WorldId, bytes: u32) -> Option<&Snapshot> {
        let mut worlds = self.joins.iter().filter_map(|join| join.world.as_ref());
        worlds.find(|world| world.id == id && (bytes as usize) < world.bytes.len())
    }

    fn bytes(&self) -> usize {
        let worlds = self.joins.iter().filter_map(|join| join.world.as_ref());
        worlds.map(|world| world.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn world(tick: u32, bytes: usize) -> Snapshot {
        Snapshot::new(Tick(tick), vec![tick as u8; bytes].into())
    }

    fn kept(worlds: impl IntoIterator<Item = Snapshot>) -> CutOff {
        let mut cut_off = CutOff::default();
        for world in worlds {
            cut_off.keep(SECOND, world.id.tick, Some(world));
        }
        cut_off
    }

    #[test]
    fn a_world_is_kept_until_its_time_or_its_frames_run_out() {
        let id = world(7, 100).id;
        let mut cut_off = kept([world(7, 100)]);
        assert_eq!(cut_off.needed(), Some(Tick(7)));
        cut_off.forget(CUT_OFF_TIME, Tick(7));
        assert!(cut_off.world(id, 99).is_some());
        // Cut off again, so its time starts again.
        cut_off.keep(2 * SECOND, Tick(7), Some(world(7, 100)));
        assert_eq!(cut_off.joins.len(), 1);
        cut_off.forget(SECOND + CUT_OFF_TIME, Tick(7));
        assert!(cut_off.world(id, 99).is_some());
        cut_off.forget(2 * SECOND + CUT_OFF_TIME, Tick(7));
        assert!(cut_off.world(id, 99).is_none());
        let mut cut_off = kept([world(7, 100)]);
        cut_off.forget(SECOND, Tick(8));
        assert!(cut_off.world(id, 99).is_none());
    }

    /// Finding P3-B1, law Hostile wire.
    #[test]
    fn a_client_can_resume_only_from_a_proper_part_of_a_kept_world() {
        let cut_off = kept([world(7, 100)]);
        let id = world(7, 100).id;
        assert!(cut_off.world(id, 0).is_some());
        for bytes in [100, 101, u32::MAX] {
            assert!(cut_off.world(id, bytes).is_none(), "{bytes}");
        }
        let digest = id.digest ^ 1;
        assert!(cut_off.world(WorldId { digest, ..id }, 50).is_none());
        let tick = Tick(8);
        assert!(cut_off.world(WorldId { tick, ..id }, 50).is_none());
    }

    #[test]
    fn the_newest_worlds_are_kept_within_limits_on_bytes_and_number() {
        let large = CUT_OFF_BYTES_MAX / 2;
        let cut_off = kept((1..=3).map(|tick| world(tick, large)));
        let has = |tick| cut_off.world(world(tick, large).id, 1).is_some();
        assert_eq!([1, 2, 3].map(has), [false, true, true]);
        let many = 3 * CUT_OFF_MAX as u32;
        assert_eq!(
            kept((0..many).map(|tick| world(tick, 1))).joins.len(),
            CUT_OFF_MAX
        );
    }
}
