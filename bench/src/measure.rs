//! Timing: all subjects take turns, so that whatever disturbs the machine disturbs both sides alike.
//!
//! ```text
//! round 1   A B C … A B C …   one chunk each, again and again ─▶ median of the chunks
//! round 2   A B C … A B C …                                   ─▶ median of the chunks
//!                                                                 the lower one counts
//! ```
//!
//! A lap is what one pair of clock readings encloses; what reading the clock costs is measured first and
//! taken off. Allocations are counted over all laps.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::hint::black_box;
use std::ops::{Index, IndexMut};
use std::time::{Duration, Instant};

use crate::allocations;

/// What is timed of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it: a client's whole frame, or the one thing that the subject does.
    Whole,
    /// A client reads one packet.
    Decode,
    /// A client advances.
    Advance,
    /// A client writes one packet.
    Encode,
    /// A match's whole tick, for all its clients.
    Match,
    /// A match reads one packet.
    MatchDecode,
    /// A match seals a tick that ends no turn.
    PlainTick,
    /// A match seals a tick that ends a turn, and tells everybody.
    TurnTick,
}

const PARTS: usize = Part::TurnTick as usize + 1;

/// Adds up laps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    spent: Duration,
    laps: u64,
    timings: u64,
    allocations: u64,
}

impl Meter {
    /// Times `work` as one lap.
    pub(crate) fn lap<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.laps_at_once(1, work)
    }

    /// Times `times` laps with one pair of readings: for what takes nanoseconds.
    pub(crate) fn laps(&mut self, times: u32, mut work: impl FnMut()) {
        self.laps_at_once(times, || (0..times).for_each(|_| work()));
    }

    /// Times `work`, which does `laps` laps in one go.
    fn laps_at_once<T>(&mut self, laps: u32, work: impl FnOnce() -> T) -> T {
        let allocated = allocations::so_far();
        let start = Instant::now();
        let result = work();
        self.spent += start.elapsed();
        self.allocations += allocations::so_far() - allocated;
        self.laps += u64::from(laps);
        self.timings += 1;
        result
    }

    /// Nanoseconds a lap, less what the clock cost; `None` without a lap.
    fn ns(&self, timer_ns: f64) -> Option<f64> {
        let timed = self.spent.as_nanos() as f64 - timer_ns * self.timings as f64;
        (self.laps > 0).then(|| (timed / self.laps as f64).max(0.0))
    }
}

/// One meter for each part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meters([Meter; PARTS]);

impl Index<Part> for Meters {
    type Output = Meter;
    fn index(&self, part: Part) -> &Meter {
        &self.0[part as usize]
    }
}

impl IndexMut<Part> for Meters {
    fn index_mut(&mut self, part: Part) -> &mut Meter {
        &mut self.0[part as usize]
    }
}

/// What came out of all laps of one part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// Nanoseconds a lap.
    pub(crate) ns: f64,
    /// Heap allocations a lap.
    pub(crate) allocations: f64,
}

/// What came out of one subject.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readings([Reading; PARTS]);

impl Index<Part> for Readings {
    type Output = Reading;
    fn index(&self, part: Part) -> &Reading {
        &self.0[part as usize]
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Rounds; the lower median counts.
    pub(crate) rounds: usize,
    /// Chunks of each subject in a round.
    pub(crate) chunks: usize,
}

/// A subject does one chunk of its work, and laps its meters.
type Chunk<'a> = Box<dyn FnMut(&mut Meters) + 'a>;

/// Subjects that are measured side by side.
#[derive(Default)]
pub(crate) struct Bench<'a> {
    subjects: Vec<Chunk<'a>>,
}

/// Where a subject's readings will be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

impl<'a> Bench<'a> {
    /// Adds a subject.
    pub(crate) fn add(&mut self, chunk: impl FnMut(&mut Meters) + 'a) -> Place {
        self.subjects.push(Box::new(chunk));
        Place(self.subjects.len() - 1)
    }

    /// Lets all subjects take turns.
    pub(crate) fn run(mut self, effort: Effort) -> Results {
        let timer_ns = timer_ns();
        let mut totals = vec![Meters::default(); self.subjects.len()];
        let mut lowest = vec![[f64::INFINITY; PARTS]; self.subjects.len()];
        for _ in 0..effort.rounds {
            let mut chunks: Vec<[Vec<f64>; PARTS]> = vec![Default::default(); self.subjects.len()];
            for _ in 0..effort.chunks {
                for (at, subject) in self.subjects.iter_mut().enumerate() {
                    let mut meters = Meters::default();
                    subject(&mut meters);
                    for (part, meter) in meters.0.iter().enumerate() {
                        chunks[at][part].extend(meter.ns(timer_ns));
                        let total = &mut totals[at].0[part];
                        total.laps += meter.laps;
                        total.allocations += meter.allocations;
                    }
                }
            }
            for (lowest, chunks) in lowest.iter_mut().zip(&mut chunks) {
                for (lowest, chunks) in lowest.iter_mut().zip(chunks) {
                    if let Some(median) = median(chunks) {
                        *lowest = lowest.min(median);
                    }
                }
            }
        }
        let readings = totals.iter().zip(lowest).map(|(total, lowest)| {
            Readings(std::array::from_fn(|part| match total.0[part].laps {
                0 => Reading::default(),
                laps => Reading {
                    ns: lowest[part],
                    allocations: total.0[part].allocations as f64 / laps as f64,
                },
            }))
        });
        Results {
            readings: readings.collect(),
            timer_ns,
        }
    }
}

/// What came out of all subjects.
pub(crate) struct Results {
    readings: Vec<Readings>,
    /// What one pair of clock readings costs, in nanoseconds; it is taken off already.
    pub(crate) timer_ns: f64,
}

impl Index<Place> for Results {
    type Output = Readings;
    fn index(&self, place: Place) -> &Readings {
        &self.readings[place.0]
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((values[half - 1] + values[half]) / 2.0),
        _ => Some(values[half]),
    }
}

/// What an empty lap costs.
fn timer_ns() -> f64 {
    let mut samples: Vec<f64> = (0..101)
        .map(|_| {
            let mut empty = Meter::default();
            for _ in 0..1_000 {
                empty.lap(|| black_box(()));
            }
            empty.spent.as_nanos() as f64 / empty.laps as f64
        })
        .collect();
    median(&mut samples).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 9.0, 2.0]), Some(3.0));
    }

    #[test]
    fn subjects_take_turns_and_their_allocations_are_counted_exactly() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut bench = Bench::default();
        let first = bench.add(|meters| {
            order.borrow_mut().push('a');
            meters[Part::Whole].laps(10, || drop(black_box(Box::new([0_u64; 4]))));
        });
        let second = bench.add(|meters| {
            order.borrow_mut().push('b');
            meters[Part::Whole].lap(|| std::thread::sleep(Duration::from_millis(1)));
        });
        let results = bench.run(Effort {
            rounds: 1,
            chunks: 3,
        });
        assert_eq!(results[first][Part::Whole].allocations, 1.0);
        assert_eq!(results[second][Part::Whole].allocations, 0.0);
        assert!(results[second][Part::Whole].ns > 900_000.0);
        assert_eq!(results[second][Part::Encode], Reading::default());
        assert_eq!(order.into_inner(), ['a', 'b', 'a', 'b', 'a', 'b']);
    }
}
