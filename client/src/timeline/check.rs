//! [`StepCheck`]: steps a confirmed tick again as a prediction, and reports faults of the game's step.
//!
//! ```text
//!   world before ─┬─ step, as the authority ────▶ the confirmed world ─┐
//!                 └─ step, as a prediction ──▶ withheld, or ──────────── = ?
//! ```
//!
//! Invariant: the check changes neither the authority nor the prediction. It names the tick and the fields, and
//! distinguishes a step that depends on its phase from a step that depends on data outside the state.

use std::fmt::Write;

use twinstep_core::digest::{DigestError, SizedDigest};
use twinstep_core::frame::{FrameData, Learned, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick, diff};

/// The minimum interval between checks, in ticks: about a second. It applies in every build.
const CHECK_TICKS: u32 = 64;
/// Worlds below twice this size are checked at the smallest interval. It doubles when the world's size doubles.
const CHECK_BYTES: u64 = 16 << 10;
/// The maximum interval between checks, in ticks: about 17 s. A check costs a step, two copies and two digests.
const CHECK_TICKS_MAX: u32 = 1_024;
const FIELDS_MAX: usize = 8;

/// A fault of the game's step, as text: the tick, and the fields.
pub(super) enum Fault {
    Nan(String),
    Differs(String),
    Panicked(String),
}

pub(super) struct StepCheck<S: Simulation> {
    before: World<S>,
    again: World<S>,
    frame: FrameData<S>,
    stepper: Stepper<S>,
    every: u32,
}

impl<S: Simulation> StepCheck<S> {
    pub(super) fn new(world: &World<S>) -> Self {
        StepCheck {
            before: world.clone(),
            again: world.clone(),
            frame: FrameData::preallocated(Tick(0)),
            stepper: Stepper::default(),
            every: CHECK_TICKS,
        }
    }

    /// Returns `true` if `tick` is one of the ticks checked in every build.
    pub(super) fn is_due(&self, tick: Tick) -> bool {
        tick.0.is_multiple_of(self.every)
    }

    pub(super) fn remember(&mut self, world: &World<S>, frame: &FrameData<S>) {
        self.before.clone_from(world);
        self.frame.clone_from(frame);
    }

    /// Returns the fault of the remembered step, which led to `after`, or `None` if none was found. `lead` is the
    /// prediction's lead.
    pub(super) fn fault(
        &mut self,
        after: &World<S>,
        rules: &S::Rules,
        lead: u32,
        locals: PlayerSet,
        learned: &Learned,
    ) -> Option<Fault> {
        let tick = self.frame.tick;
        if after.tick() != tick + 1 {
            return None; // It continued from another world.
        }
        let nan = |nan: DigestError| Some(Fault::Nan(format!("the step of {tick}: {nan}")));
        let SizedDigest {
            digest: ours,
            bytes,
        } = match after.sized_digest() {
            Ok(sized_digest) => sized_digest,
            Err(error) => return nan(error),
        };
        self.every = every(bytes);
        let predicted = Perspective::prediction(tick.back(lead), locals, learned);
        if self.step_again(rules, predicted)? {
            return None;
        }
        match self.again.digest() {
            Ok(again) if again == ours => return None,
            Ok(_) => {}
            Err(error) => return nan(error),
        }
        let fields = self.fields(after);
        // Does the step depend on the phase, or is it impure?
        self.step_again(rules, Perspective::authority(tick))?;
        let cause = if self.again.digest() == Ok(ours) {
            "`step` depends on the phase without `withhold`"
        } else {
            "`step` is not pure: it reads more than state, rules and frame"
        };
        Some(Fault::Differs(format!(
            "{cause}: {tick} as a prediction differs from {tick} as confirmed{fields}"
        )))
    }

    /// Steps the remembered tick again. Returns whether the step withheld an effect, or `None` if the frame did not
    /// fit.
    fn step_again(&mut self, rules: &S::Rules, perspective: Perspective<'_>) -> Option<bool> {
        self.again.clone_from(&self.before);
        let no_claimants = PlayerSet::default();
        let stepped = self.stepper.step(
            &mut self.again,
            &self.frame,
            rules,
            perspective,
            no_claimants,
        );
        stepped.ok().map(|fx| fx.withheld())
    }

    fn fields(&self, after: &World<S>) -> String {
        let mut text = String::new();
        for difference in diff::diff(&self.again.digested(), &after.digested(), FIELDS_MAX) {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n{difference}");
        }
        text
    }
}

/// The interval between checks for a world of `bytes` bytes, in ticks. It is a power of two, so the ticks checked in a
/// large world are also checked in a smaller one.
fn every(bytes: u64) -> u32 {
    let doublings = (bytes / CHECK_BYTES).max(1).ilog2();
    CHECK_TICKS_MAX.min(CHECK_TICKS << doublings.min(CHECK_TICKS_MAX.ilog2()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_world_is_checked_less_often_but_at_least_every_1024_ticks() {
        let expected = [
            (0, 64),
            (16 << 10, 64),
            ((32 << 10) - 1, 64),
            (32 << 10, 128),
            (65 << 10, 256),
            (1 << 20, 1_024),
            (u64::MAX, 1_024),
        ];
        assert_eq!(expected.map(|(bytes, _)| (bytes, every(bytes))), expected);
    }
}
