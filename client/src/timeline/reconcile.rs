//! The timeline's side of background rebuilds: it sends them out, and takes their results back.
//!
//! ```text
//!  advance n      confirm: wrong guess ─▶ predict: a rebuild goes out, up to one tick before the shown tick;
//!                                          the shown line continues with new inputs, though known to be wrong
//!  advance n + 1  take back: does it match the frames confirmed since then? ─▶ step to the shown tick, swap ─▶ …
//! ```
//!
//! Invariant: a rebuild handed back in time is always shown, so that a wrong guess every turn cannot block corrections.
//! Claims are accepted only from rebuilt lines, as with inline rebuilds.

use std::mem;
use std::sync::Arc;

use twinstep_core::{Simulation, Tick};

use super::rebuild::{Away, Place, Rebuild, Reconcile, TakenBack, Worth};
use super::{Timeline, Watch, kept_wrongly};
use crate::budget::NEW_STEP;
use crate::stats::Misprediction;

impl<S: Simulation> Timeline<S> {
    /// Sets where the prediction is rebuilt. Has no effect in lockstep.
    #[must_use]
    pub fn with_reconcile(mut self, how: Reconcile) -> Self {
        self.how = how;
        if how == Reconcile::Background {
            self.away = Some(self.new_away());
        }
        self
    }

    fn new_away(&self) -> Away<S> {
        let rebuild = Rebuild::new(&self.authority, &self.grounds, self.game.clone());
        Away::new(Box::new(rebuild))
    }

    /// Returns the rebuild to run, if there is one: [`run`](Rebuild::run) it on any thread, and [hand it
    /// back](Timeline::hand_back). There is at most one at a time. If it is never handed back, the prediction stays
    /// wrong until the authority has reached the shown tick.
    pub fn poll_rebuild(&mut self) -> Option<Box<Rebuild<S>>> {
        self.is_polled = true;
        let away = self.away.as_mut()?;
        match mem::replace(&mut away.place, Place::Out) {
            Place::Outbox(mut rebuild) => {
                mem::swap(&mut self.memos, &mut rebuild.memos);
                Some(rebuild)
            }
            place => {
                away.place = place;
                None
            }
        }
    }

    /// Takes back a finished rebuild from [`poll_rebuild`](Timeline::poll_rebuild), for the next
    /// [`take_back`](Timeline::take_back). A rebuild of another timeline is dropped.
    pub fn hand_back(&mut self, rebuild: Box<Rebuild<S>>) {
        if let Some(away) = &mut self.away
            && matches!(away.place, Place::Out)
            && Arc::ptr_eq(&rebuild.game, &self.game)
        {
            away.place = Place::Back(rebuild);
        }
    }

    /// Shows the rebuild handed back, after stepping it to the shown tick within `budget` steps. Call this before ticks
    /// are confirmed. A rebuild known to be wrong by now is shown once, and then rebuilt again.
    ///
    /// # Panics
    /// The panics of [`confirm`](Timeline::confirm).
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
        let worth = mem::replace(&mut away.worth, Worth::Void);
        // The memos of the ticks that were new during the rebuild stay useful.
        self.record_memos();
        mem::swap(&mut self.memos, &mut rebuild.memos);
        self.memos.absorb(&mut rebuild.memos);
        self.record_memos();
        self.stats.steps += rebuild.steps();
        self.stats.away_steps += rebuild.steps();
        match (worth, rebuild.failed.take()) {
            (Worth::Void, _) => {}
            (_, Some(failed)) => self.distrust(failed),
            (Worth::Counts, None) if rebuild.line.tick() > self.authority.tick() => {
                self.stats.resim_ticks += rebuild.steps();
                mem::swap(&mut self.draft, &mut rebuild.line);
                if let Some((difference, is_own)) = self.difference_meanwhile() {
                    taken.overtaken = true;
                    self.credit_overtaken(difference, is_own);
                }
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

    fn credit_overtaken(&mut self, difference: Misprediction, is_own: bool) {
        let found = match self.credit.is_rare {
            true => self
                .credit
                .record_difference(self.authority.turn(), difference, is_own),
            false => Some(difference),
        };
        match found {
            Some(difference) => self.stats.record(difference),
            None => self.stats.put_off += 1,
        }
    }

    /// The first difference between the draft, rebuilt in the background, and the frames confirmed in the meantime; and
    /// whether it concerns an action of this session.
    fn difference_meanwhile(&self) -> Option<(Misprediction, bool)> {
        let away = self.away.as_ref()?;
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
                let is_own = Misprediction::concerns(&slot.data, &passed.frame, own);
                return Some((difference, is_own));
            }
        }
        None
    }

    /// Sends a rebuild out, if that is worthwhile and no rebuild is out. Returns `true` if the prediction should wait
    /// for a rebuild. `shown` is the tick that will be shown when it is handed back. The frame has time for `budget`
    /// new steps.
    pub(super) fn send_out(&mut self, shown: Tick, budget: u32) -> bool {
        let goes = match self.how {
            Reconcile::Inline => false,
            Reconcile::Background => true,
            Reconcile::Auto => {
                let is_awaited = self.away.as_ref().is_some_and(Away::listens);
                self.is_polled && (is_awaited || !self.fits(shown, budget))
            }
        };
        if !goes {
            return false;
        }
        if self.away.is_none() {
            self.away = Some(self.new_away());
        }
        let Some(away) = &mut self.away else {
            return false;
        };
        let base = self.authority.tick();
        // The last tick and new ticks are stepped by the game's thread, because the picture lies between the last two
        // ticks, and claims are accepted in new ones.
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

    /// Returns `true` if a frame with time for `budget` new steps has time for the rest of a rebuild up to `shown`.
    pub(super) fn fits(&self, shown: Tick, budget: u32) -> bool {
        let from = match self.drafting {
            true => self.draft.tick(),
            false => self.authority.tick(),
        };
        let again = self.shown.tick().0.saturating_sub(from.0);
        let new = shown.0.saturating_sub(self.shown.tick().0);
        let cost =
            u64::from(again) * u64::from(self.repeated_cost) + u64::from(new) * u64::from(NEW_STEP);
        cost <= u64::from(budget) * u64::from(NEW_STEP)
    }
}
