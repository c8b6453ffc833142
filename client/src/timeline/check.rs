//! [`StepCheck`]: steps a confirmed tick once more, as a prediction would have, and says what is wrong with the step.
//!
//! ```text
//!   world before ─┬─ step, as the authority ────▶ what happened ─┐
//!                 └─ step, as a prediction ──▶ withheld, or ──── = ?
//! ```
//!
//! Invariant: nothing here changes the authority or the prediction. The check names the very tick and the fields, and
//! tells a step that depends on its phase from one that depends on something that is no state at all.

use std::fmt::Write;

use twinstep_core::digest::{NanError, Weighed};
use twinstep_core::frame::{FrameData, Learned, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick, diff};

/// Of so many confirmed ticks one is checked in every build: about one a second...
const CHECK_TICKS: u32 = 64;
/// ...while the world has so many bytes. Of a world of twice as many one in twice as many ticks is checked...
const CHECK_BYTES: u64 = 16 << 10;
/// ...and so on, up to this: about every 17 s. A check takes a copy and two digests of the world.
const CHECK_TICKS_MAX: u32 = 1_024;
/// Fields that are named at most.
const FIELDS_MAX: usize = 8;

/// What is wrong with a step, as text: the tick, and the fields.
pub(super) enum Fault {
    /// It left what has no digest: a NaN.
    Nan(String),
    /// It gave two results.
    Differs(String),
    /// It panicked as a prediction.
    Panicked(String),
}

/// See the [module](self).
pub(super) struct StepCheck<S: Simulation> {
    before: World<S>,
    again: World<S>,
    frame: FrameData<S>,
    stepper: Stepper<S>,
    /// Of so many ticks one is checked.
    every: u32,
}

impl<S: Simulation> StepCheck<S> {
    pub(super) fn new(world: &World<S>) -> Self {
        StepCheck {
            before: world.clone(),
            again: world.clone(),
            frame: FrameData::roomy(Tick(0)),
            stepper: Stepper::default(),
            every: CHECK_TICKS,
        }
    }

    /// Whether this tick is one of those that are checked in every build.
    pub(super) fn is_due(&self, tick: Tick) -> bool {
        tick.0.is_multiple_of(self.every)
    }

    /// Remembers a tick that is about to be stepped: the world before it, and its frame.
    pub(super) fn remember(&mut self, world: &World<S>, frame: &FrameData<S>) {
        self.before.clone_from(world);
        self.frame.clone_from(frame);
    }

    /// What is wrong with the step of the remembered tick, of which `after` came; `None`: nothing is. `lead` is how far
    /// the prediction was ahead.
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
            return None; // It went on from another world.
        }
        let nan = |nan: NanError| Some(Fault::Nan(format!("the step of {tick}: {nan}")));
        let Weighed {
            digest: ours,
            bytes,
        } = match after.weighed() {
            Ok(weighed) => weighed,
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
        // Is it the phase, or anything else?
        self.step_again(rules, Perspective::authority(tick))?;
        let cause = if self.again.digest() == Ok(ours) {
            "`step` differs by phase without `withhold`"
        } else {
            "`step` is not pure, it depends on something besides state, rules and frame"
        };
        Some(Fault::Differs(format!(
            "{cause}: {tick} stepped as a prediction != as it was confirmed{fields}"
        )))
    }

    /// Steps the remembered tick; whether the step held something back. `None`: the frame did not fit.
    fn step_again(&mut self, rules: &S::Rules, perspective: Perspective<'_>) -> Option<bool> {
        self.again.clone_from(&self.before);
        let nobody = PlayerSet::default();
        let stepped = self
            .stepper
            .step(&mut self.again, &self.frame, rules, perspective, nobody);
        stepped.ok().map(|fx| fx.withheld())
    }

    /// Where both results differ.
    fn fields(&self, after: &World<S>) -> String {
        let mut text = String::new();
        for difference in diff::diff(&self.again.digested(), &after.digested(), FIELDS_MAX) {
            // Text takes any length.
            let _ = write!(text, "\n{difference}");
        }
        text
    }
}

/// Of how many ticks one is checked, of a world of so many bytes: a power of two, so that the ticks of a large world are
/// among those of a smaller one.
fn every(bytes: u64) -> u32 {
    let doublings = (bytes / CHECK_BYTES).max(1).ilog2();
    CHECK_TICKS_MAX.min(CHECK_TICKS << doublings.min(CHECK_TICKS_MAX.ilog2()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_worlds_are_checked_less_often_but_are_checked() {
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
