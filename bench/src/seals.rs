//! [`Watched`]: the game that a measured server plays, and [`Seals`]: when each of its ticks was stepped.
//!
//! A match is due at its start + n ticks. The earliest of its ticks, seen so, stands for the schedule, and all others are
//! late by what they are behind it. The clock is read in the step itself, so whatever lies between a tick's moment and its
//! step counts: timers, queues, other matches of the same core.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize, Serializer};
use twinstep_core::{Effects, Frame, Never, Simulation, Tick};

use crate::served::Lateness;
use crate::simulation::{Blob, Pad};

/// The state of a match, in bytes.
pub(crate) const STATE_BYTES: usize = 64;

/// A tick, in microseconds.
const TICK_US: f64 = 1e6 / 60.0;
/// Ticks that are kept until they are asked for: half a minute.
const KEPT: usize = 1_800;

/// When the ticks of one match were stepped, since they were asked for last.
#[derive(Default)]
pub(crate) struct Seals(Option<Mutex<Log>>);

struct Log {
    began: Instant,
    /// Where each tick was on the clock, in microseconds, less where it belongs.
    offsets_us: Vec<f32>,
}

impl Seals {
    /// Of a server's match. A player's own copies keep nothing: that is the default.
    pub(crate) fn kept() -> Seals {
        Seals(Some(Mutex::new(Log {
            began: Instant::now(),
            offsets_us: Vec::with_capacity(KEPT),
        })))
    }

    fn note(&self, tick: Tick) {
        let Some(log) = &self.0 else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let at_us = log.began.elapsed().as_secs_f64() * 1e6;
        if log.offsets_us.len() < KEPT {
            let offset = at_us - f64::from(tick.0) * TICK_US;
            log.offsets_us.push(offset as f32);
        }
    }

    /// Takes what was noted: by how much each tick was late, in microseconds.
    pub(crate) fn take(&self, late_us: &mut Vec<f32>) {
        let Some(log) = &self.0 else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = log.offsets_us.iter().copied().fold(f32::MAX, f32::min);
        late_us.extend(log.offsets_us.drain(..).map(|offset| offset - earliest));
    }
}

// As rules without content are: server and players have the same.
impl Serialize for Seals {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit()
    }
}

impl Lateness {
    /// Of so many ticks, each late by so much.
    pub(crate) fn of(mut late_us: Vec<f32>) -> Option<Lateness> {
        late_us.sort_unstable_by(f32::total_cmp);
        let last = late_us.len().checked_sub(1)?;
        let at = |share: f64| f64::from(late_us[(late_us.len() as f64 * share) as usize]);
        Some(Lateness {
            seals: late_us.len(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            worst_us: f64::from(late_us[last]),
        })
    }
}

/// The measured game, 64 bytes of it, watched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Watched(Blob);

impl Clone for Watched {
    fn clone(&self) -> Self {
        Watched(self.0.clone())
    }
    fn clone_from(&mut self, from: &Self) {
        self.0.clone_from(&from.0);
    }
}

impl Watched {
    pub(crate) fn new(bytes: usize) -> Watched {
        Watched(Blob::new(bytes))
    }
}

impl Simulation for Watched {
    const NAME: &'static str = "watched";
    const VERSION: u32 = 1;
    type Rules = Seals;
    type Input = Pad;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
        self.0.play(frame.inputs().map(|(_, pad)| *pad));
        frame.rules().note(frame.tick());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_late_by_what_they_are_behind_the_earliest_one_and_taken_once() {
        let seals = Seals::kept();
        {
            let mut log = seals.0.as_ref().expect("kept").lock().expect("nobody else");
            log.offsets_us.extend([500.0, 100.0, 2_100.0]);
        }
        let mut late = Vec::new();
        seals.take(&mut late);
        assert_eq!(late, [400.0, 0.0, 2_000.0]);
        seals.take(&mut late);
        assert_eq!(late.len(), 3);
        let lateness = Lateness::of(late).expect("three");
        assert_eq!((lateness.p50_us, lateness.worst_us), (400.0, 2_000.0));
    }

    #[test]
    fn a_tick_is_noted_where_seals_are_kept_and_nowhere_else() {
        let (kept, dropped) = (Seals::kept(), Seals::default());
        let mut late = Vec::new();
        for seals in [&kept, &dropped] {
            seals.note(Tick(0));
            seals.note(Tick(1));
            seals.take(&mut late);
        }
        assert_eq!(late.len(), 2);
        // The second one came at once: a tick too early, so the first is late by about one.
        let tick = late[0] - late[1];
        assert!((tick - TICK_US as f32).abs() < 5_000.0, "{late:?}");
    }
}
