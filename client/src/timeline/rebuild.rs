//! [`Rebuild`]: a rebuild of a prediction as a value, to be done wherever there is time for it.
//!
//! Invariant: it holds all that the fold needs, so its result depends on nothing that happens meanwhile, and is bit for
//! bit what the timeline would have come to by itself. Its buffers are used again: no allocation in the steady state.

use std::sync::Arc;

use twinstep_core::frame::PlayerSet;
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick};

use super::grounds::{Game, Grounds};
use super::line::{Line, StepFailed};

/// A rebuild of a prediction, to be [`run`](Rebuild::run) and handed back.
///
/// Memory: a world, room for all assumed frames of a lead (some 2 KiB each), and a copy of what the client knows, about
/// 150 KiB.
pub struct Rebuild<S: Simulation> {
    pub(super) line: Line<S>,
    grounds: Grounds<S>,
    pub(super) game: Arc<Game<S>>,
    stepper: Stepper<S>,
    /// The tick that it goes up to.
    pub(super) until: Tick,
    /// The step that led to no world.
    pub(super) failed: Option<StepFailed>,
}

impl<S: Simulation> Rebuild<S> {
    /// One that is not begun.
    pub(super) fn new(world: &World<S>, grounds: &Grounds<S>, game: Arc<Game<S>>) -> Self {
        Rebuild {
            line: Line::new(world),
            grounds: grounds.clone(),
            game,
            stepper: Stepper::default(),
            until: world.tick(),
            failed: None,
        }
    }

    /// From the authority up to `until`. Costs a copy of the world and of what is known.
    pub(super) fn begin(&mut self, authority: &World<S>, grounds: &Grounds<S>, until: Tick) {
        self.line.restart(authority);
        self.grounds.clone_from(grounds);
        self.until = until;
        self.failed = None;
    }

    /// Does it: a step for each tick. A panic of the game's step or hooks is caught, and told by the session that this
    /// is handed back to. Done already: nothing.
    pub fn run(&mut self) {
        // What a failed step leaves half done is never looked at: it is begun anew from the authority.
        while self.failed.is_none() && self.line.tick() < self.until {
            let nobody = PlayerSet::default();
            let (grounds, stepper) = (&self.grounds, &mut self.stepper);
            let stepped = self.line.step(grounds, &self.game, stepper, nobody);
            self.failed = stepped.err();
        }
    }

    /// Ticks that it has stepped.
    pub(super) fn steps(&self) -> u64 {
        u64::from(self.line.tick() - self.line.base)
    }
}
