//! [`ServerWorld`]: the server's own world, with its past and its stepper.
//!
//! Law **One door**: the world is stepped only by frames.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use twinstep_core::digest::{DigestError, SizedDigest};
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick};

use crate::digests::Digests;
use crate::history::History;
use crate::hooks::HookContext;
use crate::incident::{Trouble, panic_message};

pub(super) struct ServerWorld<S: Simulation> {
    pub(super) rules: Arc<S::Rules>,
    pub(super) current: World<S>,
    stepper: Stepper<S>,
    pub(super) history: History<S>,
    pub(super) digests: Digests,
    digest: Option<u64>,
}

pub(super) struct Failure {
    pub(super) trouble: Trouble,
    pub(super) message: String,
}

impl<S: Simulation> ServerWorld<S> {
    pub(super) fn new(
        world: World<S>,
        history: History<S>,
        rules: Arc<S::Rules>,
    ) -> Result<Self, DigestError> {
        let sized_digest = world.sized_digest()?;
        let mut digests = Digests::default();
        digests.record(sized_digest);
        Ok(ServerWorld {
            digests,
            digest: Some(sized_digest.digest),
            rules,
            current: world,
            stepper: Stepper::default(),
            history,
        })
    }

    /// A hook's view. `views` are the ticks on which the players' pictures were based.
    pub(super) fn context<'a>(&'a self, views: &'a [Tick]) -> HookContext<'a, S> {
        HookContext {
            world: &self.current,
            rules: &self.rules,
            history: &self.history,
            views,
        }
    }

    pub(super) fn world_at(&self, tick: Tick) -> Option<&World<S>> {
        match tick == self.current.tick() {
            true => Some(&self.current),
            false => self.history.world(tick, &self.rules),
        }
    }

    /// The world at the start of the current turn. Law **Journal first**: the later ticks are not written yet, so
    /// clients must not see them.
    pub(super) fn of_turn(&self) -> &World<S> {
        self.world_at(self.current.turn().began)
            .unwrap_or(&self.current)
    }

    pub(super) fn digest_at(&self, tick: Tick) -> Option<u64> {
        match tick == self.current.tick() {
            true => self.digest,
            false => self.history.digest(tick),
        }
    }

    pub(super) fn dropped_asks(&self) -> u64 {
        self.stepper.dropped_asks()
    }

    /// Steps the world once. Returns its digest, if one is due. After a failure the world's state is unusable.
    ///
    /// A NaN must be detected before a client sees its frame, so the world is scanned for NaN if no digest is due.
    pub(super) fn attempt(&mut self, frame: &FrameData<S>) -> Result<Option<SizedDigest>, Failure> {
        let (stepper, world, digests) = (&mut self.stepper, &mut self.current, &self.digests);
        let perspective = Perspective::authority(world.tick());
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            let nobody = PlayerSet::default();
            if let Err(error) = stepper.step(world, frame, &self.rules, perspective, nobody) {
                // A bug of this crate, but handled like a panic of the step.
                panic!("the sealer made a frame that does not fit: {error}");
            }
            let turn = world.turn();
            match digests.is_due(turn, turn.began == world.tick()) {
                true => world.sized_digest().map(Some),
                false => world.scan().map(|()| None),
            }
        }));
        match stepped {
            Ok(Ok(sized_digest)) => Ok(sized_digest),
            Ok(Err(nan)) => Err(Failure {
                trouble: Trouble::Nan,
                message: nan.to_string(),
            }),
            Err(panic) => Err(Failure {
                trouble: Trouble::Step,
                message: self.stepper.explain_panic(panic_message(&*panic)),
            }),
        }
    }

    /// Records the step: its frame, which belongs to a turn that started at `turn_began`; its digest, if one was due;
    /// and the world, if it is small or the last kept one is old.
    pub(super) fn keep(
        &mut self,
        frame: &FrameData<S>,
        sized_digest: Option<SizedDigest>,
        turn_began: Tick,
        is_small: bool,
    ) {
        self.history.keep_frame(frame, self.digest, turn_began);
        self.digest = None;
        match sized_digest {
            Some(sized_digest) => self.record_digest(sized_digest),
            None => self.digests.pass(self.current.turn().cadence.tick()),
        }
        let is_small = is_small && self.digests.small();
        self.history.keep_world(&self.current, is_small);
    }

    fn record_digest(&mut self, sized_digest: SizedDigest) {
        self.digests.record(sized_digest);
        self.digest = Some(sized_digest.digest);
    }

    /// The world's digest, taken now if it is missing. Returns `None` if the world has no digest, because it was
    /// changed outside the protocol.
    pub(super) fn digest_now(&mut self) -> Option<u64> {
        if self.digest.is_none()
            && let Ok(sized_digest) = self.current.sized_digest()
        {
            self.record_digest(sized_digest);
        }
        self.digest
    }

    /// Restores the world of `tick`, the last stepped tick. Returns `None` if that world is not kept.
    pub(super) fn step_back(&mut self, tick: Tick) -> Option<()> {
        let before = self.history.world(tick, &self.rules)?;
        self.current.clone_from(before);
        Some(())
    }
}
