//! A line of prediction: a world, and the assumed frames that led to it from the authority.
//!
//! Invariant: a line begins at the authority of that moment and reaches at most [`LEAD_MAX`] ticks beyond it, so a slot
//! for each of these holds all that is still to be compared; nothing is allocated after its beginning.

use twinstep_core::bounds::{LEAD_MAX, PLAYERS_MAX};
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Key, Simulation, Tick};

/// Cues of one tick that a slot has room for without allocating.
const CUES_PER_TICK: usize = 64;

/// One assumed frame, and what stepping it gave.
pub(super) struct Assumed<S: Simulation> {
    pub(super) data: FrameData<S>,
    pub(super) withheld: bool,
    pub(super) cues: Vec<(Key, S::Cue)>,
    /// The digest before the tick, in verifying timelines.
    pub(super) before: Option<u64>,
}

/// How far the own orders stand in a line's assumed frames: per player, the next sequence to assume.
#[derive(Clone, Copy, Default)]
pub(super) struct AssumedOrders {
    pub(super) commands: [u32; PLAYERS_MAX],
    pub(super) claims: [u32; PLAYERS_MAX],
}

/// A world and the assumed frames that led to it.
pub(super) struct Line<S: Simulation> {
    pub(super) world: World<S>,
    pub(super) base: Tick,
    pub(super) slots: Vec<Assumed<S>>,
    pub(super) assumed: AssumedOrders,
}

impl<S: Simulation> Line<S> {
    pub(super) fn new(world: &World<S>) -> Self {
        let slot = |_| Assumed {
            data: FrameData::roomy(Tick(0)),
            withheld: false,
            cues: Vec::with_capacity(CUES_PER_TICK),
            before: None,
        };
        Line {
            world: world.clone(),
            base: world.tick(),
            slots: (0..LEAD_MAX).map(slot).collect(),
            assumed: AssumedOrders::default(),
        }
    }

    pub(super) fn restart(&mut self, authority: &World<S>) {
        self.world.clone_from(authority);
        self.base = authority.tick();
        self.assumed = AssumedOrders::default();
    }

    pub(super) fn tick(&self) -> Tick {
        self.world.tick()
    }

    pub(super) fn slot(&self, tick: Tick) -> &Assumed<S> {
        &self.slots[tick.0 as usize % self.slots.len()]
    }
}
