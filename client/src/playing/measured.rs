//! What a session in its match has counted and measured, gathered from all its parts.

use twinstep_core::Simulation;

use super::Playing;
use crate::picture::Show;
use crate::stats::SessionStats;

impl<S: Simulation, V: Show<S>> Playing<S, V> {
    /// Tells what was measured.
    pub(crate) fn fill_stats(&self, stats: &mut SessionStats) {
        let (meter, view) = (&self.meter, &self.view);
        let totals = view.cues.totals();
        stats.authority_tick = self.timeline.authority().tick().0;
        stats.prediction_tick = self.timeline.prediction().tick().0;
        stats.input_tick = self.timeline.local_actions().next().0;
        stats.timeline = *self.timeline.stats();
        let answers = self
            .answers
            .as_ref()
            .is_some_and(|answers| answers.has_failed);
        stats.timeline.step_faults += u64::from(view.has_failed) + u64::from(answers);
        stats.fills = meter.fills;
        stats.heals = meter.heals;
        stats.commands_sent = meter.commands_sent;
        stats.commands_executed = meter.commands_executed;
        stats.commands_refused = meter.commands_refused;
        stats.claims_refused = meter.claims_refused;
        stats.stall_ms = meter.stall.as_secs_f64() * 1e3;
        stats.late_turns = meter.late_turns;
        stats.paused_ms = meter.paused.as_secs_f64() * 1e3;
        stats.pause_ms_max = meter.pause_max.as_secs_f64() * 1e3;
        stats.confirmed_ms_p50 = 2 * meter.confirmed.median();
        stats.confirmed_ms_sum = meter.confirmed_time.as_secs_f64() * 1e3;
        stats.confirmed_inputs = meter.confirmed_inputs;
        stats.shed_ms = meter.shed.as_secs_f64() * 1e3;
        stats.late_ms = meter.late.as_secs_f64() * 1e3;
        stats.lead_ticks_mean = meter.lead.get();
        stats.reach_ticks_mean = meter.reach.get();
        stats.margin_ticks_p50 = meter.margins.median();
        stats.rtt_ms_p50 = meter.rtts.median();
        if let Some(lockstep) = &self.lockstep {
            stats.rate = lockstep.playout.rate();
            let tick = self.timeline.authority().turn().cadence.tick();
            let slack_ms = lockstep.playout.slack_ms().unwrap_or_default();
            stats.margin_ticks_now = slack_ms / (tick.as_secs_f64() * 1e3);
            stats.input_tick = stats.authority_tick;
        }
        if let Some(pace) = &self.pace {
            stats.margin_ticks_target = pace.target();
            stats.margin_ticks_now = pace.margin().unwrap_or_default();
            stats.rate = pace.rate();
            stats.delay_ticks = self.delay.ticks();
        }
        stats.pdiff_p95 = view.picture.errors().quantile(0.95);
        stats.pdiff_moved_p95 = view.picture.corrections().quantile(0.95);
        stats.corrections = view.picture.corrections().count();
        stats.cues_started = totals.started;
        stats.cues_confirmed = totals.confirmed;
        stats.cues_cancelled = totals.cancelled;
        stats.cues_open = view.cues.open() as u64;
        stats.cues_open_since = view.cues.open_since().map(|tick| tick.0);
    }
}
