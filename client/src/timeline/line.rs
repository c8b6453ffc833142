//! A line of prediction: a world, and the assumed frames that led to it from the authority.
//!
//! Invariant: a line begins at the authority of that moment and reaches at most [`LEAD_MAX`] ticks beyond it, so a slot
//! for each of these holds all that is still to be compared; nothing is allocated after its beginning.

use twinstep_core::bounds::LEAD_MAX;
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::world::{FrameError, Stepper, World};
use twinstep_core::{Key, Simulation, Tick};

use super::assume::{Assume, AssumedOrders};
use super::grounds::{Game, Grounds};
use crate::caught::caught;

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

/// A predicted step that led to no world.
pub(super) struct StepFailed {
    /// The tick that was to be stepped.
    pub(super) tick: Tick,
    /// The cause, with the tick.
    pub(super) why: String,
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

    /// Assumes the next frame and steps it. `claimants` may claim: see [`Stepper::step`].
    ///
    /// # Errors
    /// The game's step or one of its hooks panicked, or the assumed frame does not fit. The world is half stepped then: it
    /// must begin again from the authority ([`restart`](Line::restart)).
    pub(super) fn step(
        &mut self,
        grounds: &Grounds<S>,
        game: &Game<S>,
        stepper: &mut Stepper<S>,
        claimants: PlayerSet,
    ) -> Result<(), StepFailed> {
        let tick = self.tick();
        let stepped = caught(|| self.assume_and_step(grounds, game, stepper, claimants));
        match stepped {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let why = format!("an assumed frame does not fit: {error}");
                Err(StepFailed { tick, why })
            }
            Err(words) => {
                let why = format!("a prediction of {tick} panicked: {words}");
                Err(StepFailed { tick, why })
            }
        }
    }

    fn assume_and_step(
        &mut self,
        grounds: &Grounds<S>,
        game: &Game<S>,
        stepper: &mut Stepper<S>,
        claimants: PlayerSet,
    ) -> Result<(), FrameError> {
        let tick = self.tick();
        let index = tick.0 as usize % self.slots.len();
        let slot = &mut self.slots[index];
        let assume = Assume {
            tick,
            base: self.base,
            grounds,
            game,
        };
        slot.data.reset(tick);
        assume.outcomes(&self.world, &mut slot.data);
        assume.own(&self.world, &mut self.assumed, &mut slot.data);
        assume.remote_commands(&self.world, &mut slot.data);
        assume.inputs(&self.world, &mut slot.data);
        slot.before = match game.verify {
            true => self.world.digest().ok(),
            false => None,
        };
        let locals = grounds.orders.players();
        let perspective = Perspective::prediction(grounds.confirmed(), locals, &grounds.learned);
        let fx = stepper.step(
            &mut self.world,
            &slot.data,
            &game.rules,
            perspective,
            claimants,
        )?;
        slot.withheld = fx.withheld();
        slot.cues.clear();
        slot.cues.extend_from_slice(fx.cues());
        Ok(())
    }

    pub(super) fn tick(&self) -> Tick {
        self.world.tick()
    }

    pub(super) fn slot(&self, tick: Tick) -> &Assumed<S> {
        &self.slots[tick.0 as usize % self.slots.len()]
    }
}
