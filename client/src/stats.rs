//! A client's statistics: mispredictions, rebuilds, waits, and traffic.

use std::time::Duration;

use serde::Serialize;
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::{Answer, FrameData, Order, PlayerSet};
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::{ByteCounts, OUTER_BYTES};

use crate::picture::PictureStats;

/// The reason why a prediction is rebuilt: the first difference between the assumed and the confirmed frame, in frame
/// order, or a withheld effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misprediction {
    /// A player joined or left.
    Roster,
    /// An outcome was speculated wrongly, late, or not at all.
    Outcome,
    /// A command or claim of this session did not run at the assumed tick.
    OwnCommand,
    /// A command or claim of another player did not run as assumed.
    Command(PlayerId),
    /// A player's input was guessed wrongly.
    Input(PlayerId),
    /// The predicted step withheld an effect.
    Withheld,
}

impl Misprediction {
    /// Returns the first difference between an assumed frame and the confirmed one. If they are equal but the predicted
    /// step `withheld` an effect, returns [`Misprediction::Withheld`]; otherwise `None`.
    pub fn between<S: Simulation>(
        assumed: &FrameData<S>,
        withheld: bool,
        truth: &FrameData<S>,
        own: PlayerSet,
    ) -> Option<Misprediction> {
        let whose = |player: PlayerId| {
            if own.contains(player) {
                Misprediction::OwnCommand
            } else {
                Misprediction::Command(player)
            }
        };
        if assumed.roster != truth.roster {
            return Some(Misprediction::Roster);
        }
        if assumed.outcomes != truth.outcomes {
            return Some(Misprediction::Outcome);
        }
        let orders = first_difference(&assumed.claims, &truth.claims)
            .or_else(|| first_difference(&assumed.commands, &truth.commands));
        if let Some(player) = orders {
            return Some(whose(player));
        }
        if assumed.inputs != truth.inputs {
            let players = (0..PLAYERS_MAX as u8).map(PlayerId);
            let whose = players
                .into_iter()
                .find(|p| assumed.inputs.get(*p) != truth.inputs.get(*p));
            return whose.map(Misprediction::Input);
        }
        withheld.then_some(Misprediction::Withheld)
    }

    /// Returns `true` if an assumed frame and the confirmed one differ in the inputs, outcomes, claims or commands of
    /// `own` players, or in their presence.
    pub(crate) fn concerns<S: Simulation>(
        assumed: &FrameData<S>,
        truth: &FrameData<S>,
        own: PlayerSet,
    ) -> bool {
        fn differs<T: PartialEq>(assumed: &[T], truth: &[T], is_own: impl Fn(&&T) -> bool) -> bool {
            !assumed
                .iter()
                .filter(&is_own)
                .eq(truth.iter().filter(&is_own))
        }
        let by_own = |order: &&Order<S::Command>| own.contains(order.player);
        let asked = |answer: &&Answer<S::Outcome>| {
            answer
                .key
                .owner()
                .is_some_and(|player| own.contains(player))
        };
        differs(&assumed.commands, &truth.commands, by_own)
            || differs(&assumed.claims, &truth.claims, by_own)
            || differs(&assumed.outcomes, &truth.outcomes, asked)
            || differs(&assumed.roster, &truth.roster, |(player, _)| {
                own.contains(*player)
            })
            || own
                .iter()
                .any(|player| assumed.inputs.get(player) != truth.inputs.get(player))
    }
}

fn first_difference<C: PartialEq>(assumed: &[Order<C>], truth: &[Order<C>]) -> Option<PlayerId> {
    let common = assumed
        .iter()
        .zip(truth)
        .find(|(a, b)| a != b)
        .map(|(_, b)| b.player);
    let shorter = assumed.len().min(truth.len());
    let rest = assumed
        .get(shorter)
        .or_else(|| truth.get(shorter))
        .map(|order| order.player);
    common.or(rest)
}

/// Counters of prediction rebuilds, in total and per cause, and of the steps of both simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct TimelineStats {
    pub rebuilds: u64,
    /// The number of rebuilds postponed because other players had caused too many, or because they cost too much.
    pub put_off: u64,
    pub steps: u64,
    /// The number of steps of background rebuilds, which do not run on the game's thread.
    pub away_steps: u64,
    /// Background rebuilds that came back too late: their frames had already been contradicted or confirmed.
    pub overtaken: u64,
    /// Predicted ticks simulated again.
    pub resim_ticks: u64,
    /// Predicted ticks without a memo, because memos held
    /// [`MEMO_BYTES_MAX`](twinstep_core::bounds::MEMO_BYTES_MAX) bytes.
    pub without_memo: u64,
    /// Items of [`Effects::each`](twinstep_core::Effects::each) in repeated ticks that reused the result of the same
    /// tick. [`Session::loops`](crate::Session::loops) has the counts of each loop.
    pub items_taken: u64,
    /// Items in repeated ticks that were run again, because the item or its reads differed.
    pub items_run: u64,
    /// The number of rebuilds caused by a player that joined or left.
    pub by_roster: u64,
    pub by_outcome: u64,
    pub by_own_command: u64,
    pub by_command: u64,
    pub by_withheld: u64,
    /// The number of rebuilds caused by inputs, per player.
    pub by_input: [u64; PLAYERS_MAX],
    /// Faults of the game's step and hooks; see [`Event::StepFault`](crate::Event::StepFault).
    pub step_faults: u64,
}

impl TimelineStats {
    pub(crate) fn record(&mut self, difference: Misprediction) {
        self.rebuilds += 1;
        match difference {
            Misprediction::Roster => self.by_roster += 1,
            Misprediction::Outcome => self.by_outcome += 1,
            Misprediction::OwnCommand => self.by_own_command += 1,
            Misprediction::Command(_) => self.by_command += 1,
            Misprediction::Input(player) => self.by_input[player.index()] += 1,
            Misprediction::Withheld => self.by_withheld += 1,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(crate) fn get(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum / self.count as f64
        }
    }
}

/// A histogram of small integers that keeps its median up to date. It takes 2 KiB; values outside its range count at
/// the ends.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    least: i32,
    counts: [u32; 512],
    all: u64,
    /// The bucket of the median.
    middle: usize,
    /// The number of values in lower buckets.
    before: u64,
    last: Option<i32>,
}

impl Counts {
    pub(crate) fn from(least: i32) -> Self {
        Counts {
            least,
            counts: [0; 512],
            all: 0,
            middle: 0,
            before: 0,
            last: None,
        }
    }

    pub(crate) fn last(&self) -> Option<i32> {
        self.last
    }

    pub(crate) fn add(&mut self, value: i32) {
        self.last = Some(value);
        let place = (value - self.least).clamp(0, 511) as usize;
        self.counts[place] += 1;
        self.all += 1;
        self.before += u64::from(place < self.middle);
        let half = self.all.div_ceil(2);
        while self.before >= half {
            self.middle -= 1;
            self.before -= u64::from(self.counts[self.middle]);
        }
        while self.before + u64::from(self.counts[self.middle]) < half {
            self.before += u64::from(self.counts[self.middle]);
            self.middle += 1;
        }
    }

    pub(crate) fn median(&self) -> i32 {
        match self.all {
            0 => 0,
            _ => self.least + self.middle as i32,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub(crate) turns: u64,
    pub(crate) fills: u64,
    pub(crate) heals: u64,
    pub(crate) commands_sent: u64,
    pub(crate) commands_executed: u64,
    pub(crate) commands_refused: u64,
    pub(crate) claims_refused: u64,
    pub(crate) stall: Duration,
    pub(crate) held: Duration,
    pub(crate) skipped_ticks: u64,
    pub(crate) leapt_ticks: u64,
    pub(crate) fills_run: u32,
    pub(crate) fills_run_max: u32,
    pub(crate) clock_off: Duration,
    pub(crate) shed: Duration,
    pub(crate) late: Duration,
    pub(crate) lead: Mean,
    pub(crate) reach: Mean,
    pub(crate) margins: Counts,
    pub(crate) rtts: Counts,
    pub(crate) capped: bool,
    pub(crate) late_turns: u64,
    pub(crate) paused: Duration,
    pub(crate) pause_max: Duration,
    /// The time from sampling to the authority's step, in 2 ms units.
    pub(crate) confirmed: Counts,
    pub(crate) confirmed_time: Duration,
    pub(crate) confirmed_inputs: u64,
}

impl Meter {
    // Records the number of the session's seats for which the server filled a sealed tick.
    pub(crate) fn record_fills(&mut self, seats: u32) {
        self.fills += u64::from(seats);
        self.fills_run = if seats > 0 { self.fills_run + 1 } else { 0 };
        self.fills_run_max = self.fills_run_max.max(self.fills_run);
    }

    /// Records that an input of this session ran in the authority, `took` after it was sampled.
    pub(crate) fn record_confirmed(&mut self, took: Duration) {
        self.confirmed.add((took.as_millis() / 2) as i32);
        self.confirmed_time += took;
        self.confirmed_inputs += 1;
    }
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            turns: 0,
            fills: 0,
            heals: 0,
            commands_sent: 0,
            commands_executed: 0,
            commands_refused: 0,
            claims_refused: 0,
            stall: Duration::ZERO,
            held: Duration::ZERO,
            skipped_ticks: 0,
            leapt_ticks: 0,
            fills_run: 0,
            fills_run_max: 0,
            clock_off: Duration::ZERO,
            shed: Duration::ZERO,
            late: Duration::ZERO,
            lead: Mean::default(),
            reach: Mean::default(),
            margins: Counts::from(-128),
            rtts: Counts::from(0),
            capped: false,
            late_turns: 0,
            paused: Duration::ZERO,
            pause_max: Duration::ZERO,
            confirmed: Counts::from(0),
            confirmed_time: Duration::ZERO,
            confirmed_inputs: 0,
        }
    }
}

/// A session's counters and measurements since it joined.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct SessionStats {
    /// A, the authority's next tick.
    pub authority_tick: u32,
    /// P, the prediction's next tick.
    pub prediction_tick: u32,
    /// I, the next tick without a local input.
    pub input_tick: u32,
    pub timeline: TimelineStats,
    /// Sealed ticks for which the server had no input from one of this session's players.
    pub fills: u64,
    /// The number of times this client continued from the server's world because its own differed.
    pub heals: u64,
    pub commands_sent: u64,
    pub commands_executed: u64,
    pub commands_refused: u64,
    pub claims_refused: u64,
    /// Time in which the prediction could not continue, in ms: the pace requested a tick, but the prediction was
    /// `lead_max` ticks ahead of A, or the inputs were `input_window` ticks ahead.
    pub stall_ms: f64,
    /// The time for which the input tick was held, because inputs arrived much too early after a pause of the server,
    /// or the input delay decreased, in ms.
    pub held_ms: f64,
    /// Ticks without an input of this session, because a clock jump skipped them after this client had frozen, or the
    /// route had become longer. `fills` includes them.
    pub skipped_ticks: u64,
    /// The part of `skipped_ticks` due to leaps: the server reported inputs more than 12 ticks too late.
    pub leapt_ticks: u64,
    /// The longest time for which the match lacked the local player's controls: the longest run of `fills`, in ticks.
    pub fills_run_max: u32,
    /// Time in which the clock ran more than 2 % faster or slower than the match, in ms. Holds do not count.
    pub clock_off_ms: f64,
    /// Time in which the budget made the prediction shorter than the pace requested, in ms.
    pub shed_ms: f64,
    /// The total lateness of `advance` calls, in ms. A call is late if the last one is more than two 60 Hz frames ago.
    pub late_ms: f64,
    /// Late turns. In lockstep each is a pause, otherwise a gap of more than two turns, a tick and a drawn frame.
    pub late_turns: u64,
    /// Time in which the authority waited for a late turn, in ms (in lockstep only).
    pub paused_ms: f64,
    /// The longest pause, in ms (in lockstep only).
    pub pause_ms_max: f64,
    /// Median time from sampling an input of this session to its step in the authority, in ms (at most 1,022).
    pub confirmed_ms_p50: i32,
    /// The sum of the times from sampling an input of this session to its step in the authority, in ms. Its increase
    /// divided by that of `confirmed_inputs` is the mean over a period.
    pub confirmed_ms_sum: f64,
    /// Inputs of this session (in lockstep: batches) that ran in the authority.
    pub confirmed_inputs: u64,
    /// Mean of P − A, in ticks.
    pub lead_ticks_mean: f64,
    /// The mean distance from the authority to the input tick, in ticks.
    pub reach_ticks_mean: f64,
    /// Median margin: the tick of the newest input held by the server minus the next tick to seal, in ticks.
    pub margin_ticks_p50: i32,
    /// The target margin of the pace, in ticks. Without prediction, the time for which turns should wait here.
    pub margin_ticks_target: f64,
    /// The margin that an input sampled now should have, in ticks. Without prediction, the shortest waiting time of the
    /// last turns.
    pub margin_ticks_now: f64,
    /// The input delay in use, in ticks; it approaches the match's delay in steps.
    pub delay_ticks: u32,
    /// The clock's rate: 1 is nominal.
    pub rate: f64,
    /// The current smoothed round trip, in ms.
    pub rtt_ms: f64,
    /// Median round trip, in ms.
    pub rtt_ms_p50: i32,
    /// Mean deviation of the round trip, in ms.
    pub jitter_ms: f64,
    /// The fraction of the server's packets lost, 0..=1.
    pub loss: f32,
    /// The drawn picture, compared with the final match: [`Session::picture_errors`](crate::Session::picture_errors)
    /// gives it over a window.
    pub picture: PictureStats,
    /// Corrections of the picture: entities moved by rebuilds, without those drawn at another player's time.
    pub corrections: u64,
    pub cues_started: u64,
    pub cues_confirmed: u64,
    pub cues_cancelled: u64,
    /// Cues not settled yet.
    pub cues_open: u64,
    /// The earliest start tick of an open cue. If the authority has passed it by more than the cue drift and the time
    /// of a rebuild, the cue will never be settled.
    pub cues_open_since: Option<u32>,
    pub up: ByteCounts,
    pub down_packets: u64,
    pub down_bytes: u64,
    pub malformed: u64,
    pub returns: u64,
    /// Silences after which the server was dialled again, but responded on the same path.
    pub silences: u64,
    /// Time in which the server was silent or lost, in ms. Each outage counts from its first dial.
    pub away_ms: f64,
    /// Events dropped because the game did not poll them in time.
    pub events_dropped: u64,
}

#[derive(Default)]
pub(crate) struct Traffic {
    up: ByteCounts,
    down_packets: u64,
    down_bytes: u64,
    malformed: u64,
}

impl Traffic {
    pub(crate) fn record_up(&mut self, bytes: ByteCounts) {
        self.up += bytes;
    }

    pub(crate) fn record_down(&mut self, bytes: usize) {
        self.down_packets += 1;
        self.down_bytes += bytes as u64 + OUTER_BYTES;
    }

    /// Counts an unreadable or misplaced message (law *Hostile wire*).
    pub(crate) fn record_malformed(&mut self) {
        self.malformed += 1;
    }

    pub(crate) fn fill_stats(&self, stats: &mut SessionStats) {
        stats.up = self.up;
        stats.down_packets = self.down_packets;
        stats.down_bytes = self.down_bytes;
        stats.malformed = self.malformed;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_median_equals_a_sorted_lists_median(
            least in -300i32..300,
            values in prop::collection::vec(-1_000i32..1_000, 1..200),
        ) {
            let mut counts = Counts::from(least);
            prop_assert_eq!(counts.median(), 0);
            let mut sorted = Vec::new();
            for value in values {
                counts.add(value);
                sorted.push(value.clamp(least, least + 511));
                sorted.sort_unstable();
                prop_assert_eq!(counts.median(), sorted[(sorted.len() - 1) / 2]);
            }
        }
    }
}
