//! [`Steps`]: steps worlds of one game, and returns the message of a panic. [`differences`]: the fields in which two
//! worlds differ.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_core::diff::{Difference, diff};
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::memo::Memos;
use twinstep_core::world::{FrameError, Stepper, World};
use twinstep_core::{Effects, Key, Simulation};

pub(crate) struct Steps<'r, S: Simulation> {
    pub(crate) rules: &'r S::Rules,
    stepper: Stepper<S>,
}

impl<'r, S: Simulation> Steps<'r, S> {
    pub(crate) fn new(rules: &'r S::Rules) -> Self {
        Steps {
            rules,
            stepper: Stepper::default(),
        }
    }

    /// Steps `world` like the authority. The error is the message of a panic, which leaves `world` invalid.
    pub(crate) fn confirmed(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
    ) -> Result<&Effects<S>, String> {
        let perspective = Perspective::authority(frame.tick);
        self.step(world, frame, perspective, PlayerSet::default())
    }

    /// The key under which the last step asked twice, even if the step then panicked.
    pub(crate) fn asked_twice(&self) -> Option<Key> {
        self.stepper.effects().asked_twice()
    }

    pub(crate) fn step(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
        perspective: Perspective<'_>,
        claimants: PlayerSet,
    ) -> Result<&Effects<S>, String> {
        let rules = self.rules;
        self.caught(|stepper| {
            let stepped = stepper.step(world, frame, rules, perspective, claimants);
            stepped.map(|_| ())
        })
    }

    /// Steps `world` as a rebuild does: loops reuse the results in `memos` for this tick.
    pub(crate) fn with_memos(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
        memos: &mut Memos,
    ) -> Result<&Effects<S>, String> {
        let (rules, perspective) = (self.rules, Perspective::authority(frame.tick));
        self.caught(|stepper| {
            let no_claimants = PlayerSet::default();
            let stepped = stepper.step_with(world, frame, rules, perspective, no_claimants, memos);
            stepped.map(|_| ())
        })
    }

    fn caught(
        &mut self,
        step: impl FnOnce(&mut Stepper<S>) -> Result<(), FrameError>,
    ) -> Result<&Effects<S>, String> {
        let stepper = &mut self.stepper;
        // After a panic, the half-stepped world is not used.
        match catch_unwind(AssertUnwindSafe(|| step(stepper))) {
            Ok(Ok(())) => Ok(self.stepper.effects()),
            // A check builds each frame for its world.
            Ok(Err(error)) => panic!("a frame of the check does not fit: {error}"),
            Err(panic) => Err(panic_message(&*panic)),
        }
    }

    pub(crate) fn dropped_asks(&self) -> u64 {
        self.stepper.dropped_asks()
    }
}

/// Returns the world after these frames; `None` if the step panics.
pub(crate) fn fold<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    frames: &[FrameData<S>],
) -> Option<World<S>> {
    let (mut world, mut steps) = (first.clone(), Steps::new(rules));
    for frame in frames {
        steps.confirmed(&mut world, frame).ok()?;
    }
    Some(world)
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// The fields in which two worlds differ; `None` if they are equal. The fields are compared only if the digests differ.
pub(crate) fn differences<S: Simulation>(
    left: &World<S>,
    right: &World<S>,
    max: usize,
) -> Option<Vec<Difference>> {
    match (left.digest(), right.digest()) {
        (Ok(left), Ok(right)) if left == right => None,
        _ => Some(diff(&left.digested(), &right.digested(), max)),
    }
}
