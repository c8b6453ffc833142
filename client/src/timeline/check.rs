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

use twinstep_core::digest::NanError;
use twinstep_core::frame::{FrameData, Learned, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick, diff};

/// Of so many confirmed ticks one is checked in every build: about one a second.
pub(super) const CHECK_TICKS: u32 = 64;
/// Fields that are named at most.
const FIELDS_MAX: usize = 8;

/// What is wrong with a step, as text: the tick, and the fields.
pub(super) enum Fault {
    /// It left what has no digest: a NaN.
    Nan(String),
    /// It gave two results.
    Differs(String),
}

/// See the [module](self).
pub(super) struct StepCheck<S: Simulation> {
    before: World<S>,
    again: World<S>,
    frame: FrameData<S>,
    stepper: Stepper<S>,
}

impl<S: Simulation> StepCheck<S> {
    pub(super) fn new(world: &World<S>) -> Self {
        StepCheck {
            before: world.clone(),
            again: world.clone(),
            frame: FrameData::roomy(Tick(0)),
            stepper: Stepper::default(),
        }
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
        let ours = match after.digest() {
            Ok(ours) => ours,
            Err(error) => return nan(error),
        };
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
