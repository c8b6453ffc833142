//! What a timeline does while its prediction is rebuilt elsewhere, and when that comes back.
//!
//! ```text
//!  advance n      confirm: wrong guess ─▶ predict: a rebuild goes out, up to a tick before what will be shown;
//!                                         what is shown goes on by own inputs, though it is known to be wrong
//!  advance n + 1  take back: is it still what is confirmed by now? ─▶ on to the shown tick, swap ─▶ confirm …
//! ```
//!
//! Invariant: whatever comes back in time is shown, so that a wrong guess at every turn starves nobody. Claims are taken
//! from rebuilt lines alone, as without all this.

use std::mem;
use std::sync::Arc;

use twinstep_core::{Simulation, Tick};

use super::rebuild::{Away, Place, Rebuild, Reconcile, TakenBack, Worth};
use super::{Timeline, Watch, kept_wrongly};
use crate::stats::Misprediction;

impl<S: Simulation> Timeline<S> {
    /// Rebuilds the prediction here or elsewhere. In lockstep there is none.
    #[must_use]
    pub fn reconciling(mut self, how: Reconcile) -> Self {
        self.away = match how {
            Reconcile::Inline => None,
            Reconcile::Background => {
                let rebuild = Rebuild::new(&self.authority, &self.grounds, self.game.clone());
                Some(Away::new(Box::new(rebuild)))
            }
        };
        self
    }

    /// A rebuild that is to be done: [`run`](Rebuild::run) it anywhere, and [hand it back](Timeline::hand_back). There is
    /// at most one at a time. One that never comes back is missed until the authority has reached what is shown.
    pub fn poll_rebuild(&mut self) -> Option<Box<Rebuild<S>>> {
        let away = self.away.as_mut()?;
        match mem::replace(&mut away.place, Place::Out) {
            Place::Outbox(rebuild) => Some(rebuild),
            place => {
                away.place = place;
                None
            }
        }
    }

    /// Gives back what [`poll_rebuild`](Timeline::poll_rebuild) gave, done; [`take_back`](Timeline::take_back) looks at
    /// it. Another timeline's is dropped.
    pub fn hand_back(&mut self, rebuild: Box<Rebuild<S>>) {
        if let Some(away) = &mut self.away
            && matches!(away.place, Place::Out)
            && Arc::ptr_eq(&rebuild.game, &self.game)
        {
            away.place = Place::Back(rebuild);
        }
    }

    /// Shows what came back, brought to the tick that is shown within `budget` steps. To be called before ticks are
    /// confirmed: whatever is known now to be wrong with it is shown for once, and then rebuilt again.
    ///
    /// # Panics
    /// As [`confirm`](Timeline::confirm) does.
    pub fn take_back(&mut self, budget: u32, watch: &mut impl Watch<S>) -> TakenBack {
        let mut taken = TakenBack::default();
        let Some(away) = &mut self.away else {
            return taken;
        };
        let mut rebuild = match mem::replace(&mut away.place, Place::Out) {
            Place::Back(rebuild) => rebuild,
            place => {
                away.place = place;
                return taken;
            }
        };
        self.stats.steps += rebuild.steps();
        self.stats.away_steps += rebuild.steps();
        let worth = mem::replace(&mut away.worth, Worth::Void);
        match (worth, rebuild.failed.take()) {
            (Worth::Void, _) => {}
            (_, Some(failed)) => self.distrust(failed),
            (Worth::Counts, None) if rebuild.line.tick() > self.authority.tick() => {
                self.stats.resim_ticks += rebuild.steps();
                mem::swap(&mut self.draft, &mut rebuild.line);
                taken.overtaken = self.differs_meanwhile();
                let shown = self.shown.tick();
                self.drafting = true;
                self.grounds.look(&self.authority);
                self.report_resimulated(shown, watch);
                taken.steps = self.rebuild(shown, budget, watch);
                taken.shown = !self.stale;
                if taken.overtaken {
                    self.stale = true;
                    self.drafting = false;
                }
            }
            (Worth::Counts | Worth::Overtaken, None) => taken.overtaken = true,
        }
        self.stats.overtaken += u64::from(taken.overtaken);
        if let Some(away) = &mut self.away {
            away.place = Place::Home(rebuild);
        }
        taken
    }

    /// Whether the draft, which was rebuilt elsewhere, is not what was confirmed meanwhile.
    fn differs_meanwhile(&mut self) -> bool {
        let Some(away) = &self.away else {
            return false;
        };
        let own = self.grounds.local_actions.players();
        for passed in &away.passed[..away.used] {
            let tick = passed.frame.tick;
            let slot = self.draft.slot(tick);
            if let (Some(before), Some(truth)) = (slot.before, passed.before)
                && before != truth
            {
                panic!("{}", kept_wrongly(tick, ""));
            }
            if let Some(difference) =
                Misprediction::between(&slot.data, slot.withheld, &passed.frame, own)
            {
                self.stats.record(difference);
                return true;
            }
        }
        false
    }

    /// Sends a rebuild out, if it is worth it and none is out; whether the prediction is to wait for one. `shown` is
    /// where the picture will be when it comes back.
    pub(super) fn send_out(&mut self, shown: Tick) -> bool {
        let Some(away) = &mut self.away else {
            return false;
        };
        let base = self.authority.tick();
        // The picture lies between the last two ticks, and claims are taken in new ones: these are stepped here.
        let until = shown.back(1).min(self.frontier);
        let until = until.min(self.grounds.horizon());
        if until <= base || self.shown.tick() <= base {
            away.abandon();
            return false;
        }
        away.place = match mem::replace(&mut away.place, Place::Out) {
            Place::Home(mut rebuild) => {
                rebuild.begin(&self.authority, &self.grounds, until);
                (away.worth, away.until, away.used) = (Worth::Counts, until, 0);
                Place::Outbox(rebuild)
            }
            place => place,
        };
        true
    }
}
