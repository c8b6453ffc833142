//! [`Blob`], the game of Twinstep and ggrs; and [`Seals`], a log of when each tick of a measured match was stepped.
//!
//! The step touches only 64 bytes, because the framework around it is measured. Twinstep and ggrs run the same
//! [`Blob::play`] on the same type, with the same inputs from [`Pads`]. Both guess that a remote player keeps holding
//! its last input.
//!
//! [`Seals`] are the game's rules. The clock is read inside the step, so a tick's lateness includes delays by timers,
//! queues and other matches on the same core. It is measured from the schedule of the logged tick that ran earliest
//! relative to its nominal time.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize, Serializer};
use twinstep_core::{Controls, Effects, Frame, Never, Simulation, Tick, clone_fields};

pub(crate) const PLAYERS: usize = 4;
pub(crate) const STATE_BYTES: usize = 64;

/// The number of 8-byte words that a step touches.
const TOUCHED: usize = 8;
const TICK_US: f64 = 1e6 / 60.0;
/// The maximum number of ticks logged between two [`Seals::take`] calls: half a minute.
const KEPT: usize = 1_800;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pad(pub(crate) u32);

impl Controls for Pad {
    /// Never becomes neutral, like ggrs's `PredictRepeatLast`.
    fn repeat(&self, _age_ticks: u32) -> Self {
        *self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sticks {
    Still,
    Moving,
}

#[derive(Clone, Debug)]
pub(crate) struct Pads {
    sticks: Sticks,
    player: u32,
    given: u32,
}

impl Pads {
    pub(crate) fn new(sticks: Sticks, player: usize) -> Self {
        Pads {
            sticks,
            player: player as u32,
            given: 0,
        }
    }

    pub(crate) fn next(&mut self) -> Pad {
        self.given += u32::from(self.sticks == Sticks::Moving);
        // The factors are odd, so that successive inputs always differ, and all four bytes change.
        let mixed = (self.given + 1).wrapping_mul(0x9e37_79b1);
        Pad(mixed ^ self.player.wrapping_mul(0x85eb_ca6b))
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Blob {
    at: u32,
    /// The result of the last step. The next step depends on it, so that the processor cannot overlap them.
    last: u64,
    words: Vec<u64>,
}

// A derived `Clone` would allocate a new list for each rebuild.
clone_fields!(Blob { at, last, words });

impl Blob {
    pub(crate) fn new(bytes: usize) -> Self {
        assert!(
            bytes >= 64 && bytes.is_multiple_of(64),
            "a state is a multiple of 64 bytes, not {bytes}"
        );
        Blob {
            at: 0,
            last: 1,
            words: (0..bytes as u64 / 8)
                .map(|n| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect(),
        }
    }

    /// Plays one tick: mixes all inputs into the next 64 bytes.
    pub(crate) fn play(&mut self, held: impl Iterator<Item = Pad>) {
        let mut mixed = held.fold(self.last, |mixed, pad| {
            mixed.rotate_left(9) ^ u64::from(pad.0)
        });
        let start = self.at as usize * TOUCHED;
        for word in &mut self.words[start..start + TOUCHED] {
            mixed = (mixed ^ *word).wrapping_mul(0x2545_f491_4f6c_dd1d);
            *word = mixed;
        }
        self.last = mixed;
        self.at = (self.at + 1) % (self.words.len() / TOUCHED) as u32;
    }
}

impl Simulation for Blob {
    const NAME: &'static str = "blob";
    const VERSION: u32 = 1;
    type Rules = Seals;
    type Input = Pad;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
        for _ in 0..=frame.rules().extra_plays {
            self.play(frame.inputs().map(|(_, pad)| *pad));
        }
        frame.rules().note(frame.tick());
    }
}

#[derive(Default)]
pub(crate) struct Seals {
    log: Option<Mutex<Log>>,
    extra_plays: u32,
}

struct Log {
    began: Instant,
    offsets_us: Vec<f32>,
}

impl Seals {
    pub(crate) fn logged() -> Seals {
        let log = Log {
            began: Instant::now(),
            offsets_us: Vec::with_capacity(KEPT),
        };
        Seals {
            log: Some(Mutex::new(log)),
            extra_plays: 0,
        }
    }

    pub(crate) fn costly(plays: u32) -> Seals {
        Seals {
            log: None,
            extra_plays: plays - 1,
        }
    }

    fn note(&self, tick: Tick) {
        let Some(log) = &self.log else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let at_us = log.began.elapsed().as_secs_f64() * 1e6;
        if log.offsets_us.len() < KEPT {
            let offset = at_us - f64::from(tick.0) * TICK_US;
            log.offsets_us.push(offset as f32);
        }
    }

    /// Moves the lateness of each logged tick to `late_us`, and empties the log.
    pub(crate) fn take(&self, late_us: &mut Vec<f32>) {
        let Some(log) = &self.log else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = log.offsets_us.iter().copied().fold(f32::MAX, f32::min);
        late_us.extend(log.offsets_us.drain(..).map(|offset| offset - earliest));
    }
}

// The digest of the rules must be the same on server and clients.
impl Serialize for Seals {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lateness {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) worst_us: f64,
}

impl Lateness {
    pub(crate) fn of(mut late_us: Vec<f32>) -> Option<Lateness> {
        late_us.sort_unstable_by(f32::total_cmp);
        let last = late_us.len().checked_sub(1)?;
        let at = |share: f64| f64::from(late_us[(late_us.len() as f64 * share) as usize]);
        Some(Lateness {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            worst_us: f64::from(late_us[last]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_touches_64_bytes_and_depends_on_every_pad() {
        let before = Blob::new(4_096);
        let mut after = before.clone();
        after.play([Pad(1), Pad(2)].into_iter());
        let touched = before.words.iter().zip(&after.words);
        assert_eq!(touched.filter(|(a, b)| a != b).count() * 8, 64);
        let mut other = before.clone();
        other.play([Pad(1), Pad(3)].into_iter());
        assert_ne!(after, other);
    }

    #[test]
    fn a_tick_is_late_by_its_distance_to_the_earliest_one_and_is_counted_once() {
        let (logged, unlogged) = (Seals::logged(), Seals::default());
        unlogged.note(Tick(0));
        {
            let mut log = logged.log.as_ref().expect("logged").lock().expect("free");
            log.offsets_us.extend([500.0, 100.0, 2_100.0]);
        }
        let mut late = Vec::new();
        logged.take(&mut late);
        unlogged.take(&mut late);
        assert_eq!(late, [400.0, 0.0, 2_000.0]);
        logged.take(&mut late);
        let lateness = Lateness::of(late).expect("three");
        assert_eq!((lateness.p50_us, lateness.worst_us), (400.0, 2_000.0));
    }
}
