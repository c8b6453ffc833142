//! [`Truth`]: the server's own world, how it came there, and how it goes on.
//!
//! Law **One door**: it is stepped by a frame and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use twinstep_core::digest::NanError;
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick};

use crate::history::History;
use crate::hooks::Look;
use crate::incident::{Trouble, panic_message};

/// See the [module](self).
pub(super) struct Truth<S: Simulation> {
    pub(super) rules: Arc<S::Rules>,
    pub(super) world: World<S>,
    stepper: Stepper<S>,
    pub(super) history: History<S>,
    /// The world's digest.
    pub(super) digest: u64,
}

/// A step that did not lead to a world.
pub(super) struct Failure {
    pub(super) trouble: Trouble,
    pub(super) message: String,
}

impl<S: Simulation> Truth<S> {
    /// # Errors
    /// The world holds a NaN.
    pub(super) fn new(
        world: World<S>,
        history: History<S>,
        rules: Arc<S::Rules>,
    ) -> Result<Self, NanError> {
        Ok(Truth {
            digest: world.digest()?,
            rules,
            world,
            stepper: Stepper::default(),
            history,
        })
    }

    /// What a hook sees: `views` are the ticks that the players' screens were built on.
    pub(super) fn look<'a>(&'a self, views: &'a [Tick]) -> Look<'a, S> {
        Look {
            world: &self.world,
            rules: &self.rules,
            history: &self.history,
            views,
        }
    }

    /// The digest of the world before `tick`, as far as it is remembered.
    pub(super) fn digest_at(&self, tick: Tick) -> Option<u64> {
        if tick == self.world.tick() {
            Some(self.digest)
        } else {
            self.history.digest(tick)
        }
    }

    /// Steps the world once; its new digest. After a failure the world is in no state that could be shown.
    pub(super) fn attempt(&mut self, frame: &FrameData<S>) -> Result<u64, Failure> {
        let (stepper, world) = (&mut self.stepper, &mut self.world);
        let perspective = Perspective::authority(world.tick());
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            let nobody = PlayerSet::default();
            if let Err(error) = stepper.step(world, frame, &self.rules, perspective, nobody) {
                panic!("the sealer made a frame that does not fit: {error}");
            }
            world.digest()
        }));
        match stepped {
            Ok(Ok(digest)) => Ok(digest),
            Ok(Err(nan)) => Err(Failure {
                trouble: Trouble::Nan,
                message: nan.to_string(),
            }),
            Err(panic) => Err(Failure {
                trouble: Trouble::Step,
                message: panic_message(&*panic).to_owned(),
            }),
        }
    }

    /// Remembers the step that was done: its frame, of a turn that began then, and the digest that it led to.
    pub(super) fn keep(&mut self, frame: &FrameData<S>, digest: u64, turn_began: Tick) {
        self.history.keep_frame(frame, self.digest, turn_began);
        self.history.keep_world(&self.world);
        self.digest = digest;
    }

    /// Takes the world of `tick`, which was stepped last; `None`: it is not remembered.
    pub(super) fn step_back(&mut self, tick: Tick) -> Option<()> {
        let before = self.history.world(tick)?;
        self.world.clone_from(before);
        Some(())
    }
}
