//! Timing: all subjects take turns, so that whatever disturbs the machine disturbs both sides alike.
//!
//! ```text
//! round 1   A B C … A B C …   one chunk each, again and again ─▶ median of the blocks of 8 laps
//! round 2   A B C … A B C …                                   ─▶ median of the blocks of 8 laps
//!                                                                 the lowest one counts
//! ```
//!
//! A lap is what one pair of clock readings encloses; what reading the clock costs is measured first and
//! taken off. Blocks are short against a time slice of the system: on a loaded machine a long one would nearly
//! always hold a pause, so the slower side would pay for the load and the faster one would not. Each holds as many
//! frames with a new turn as without. Allocations are counted over all laps.
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

/// Laps of a block.
pub(crate) const BLOCK_LAPS: u64 = 8;

/// Some laps in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    spent: Duration,
    laps: u64,
    timings: u64,
}

impl Block {
    /// Nanoseconds a lap, less what the clock cost.
    fn ns(&self, timer_ns: f64) -> f64 {
        let timed = self.spent.as_nanos() as f64 - timer_ns * self.timings as f64;
        (timed / self.laps as f64).max(0.0)
    }
}

/// Gathers laps into blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    block: Block,
    full: Vec<Block>,
    laps: u64,
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
        self.block.spent += start.elapsed();
        self.allocations += allocations::so_far() - allocated;
        self.block.timings += 1;
        self.block.laps += u64::from(laps);
        self.laps += u64::from(laps);
        if self.block.laps >= BLOCK_LAPS {
            self.full.push(std::mem::take(&mut self.block));
        }
        result
    }

    /// The median of the blocks; `None` without a full one.
    fn median_ns(&self, timer_ns: f64) -> Option<f64> {
        let mut blocks: Vec<f64> = self.full.iter().map(|block| block.ns(timer_ns)).collect();
        median(&mut blocks)
    }
}

/// One meter for each part.
#[derive(Clone, Debug, Default)]
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

impl Meters {
    /// The median of each part; 0 where nothing was timed.
    fn medians(&self, timer_ns: f64) -> [f64; PARTS] {
        let median = |meter: &Meter| meter.median_ns(timer_ns).unwrap_or_default();
        self.0.each_ref().map(median)
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
    /// Rounds; the lowest median counts.
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
        let mut readings = vec![Readings::default(); self.subjects.len()];
        let mut rounds = Vec::with_capacity(effort.rounds);
        for round in 0..effort.rounds {
            let mut meters = vec![Meters::default(); self.subjects.len()];
            for _ in 0..effort.chunks {
                for (subject, meters) in self.subjects.iter_mut().zip(&mut meters) {
                    subject(meters);
                }
            }
            rounds.push(
                meters
                    .iter()
                    .map(|meters| meters.medians(timer_ns))
                    .collect(),
            );
            for (readings, meters) in readings.iter_mut().zip(&meters) {
                for (reading, meter) in readings.0.iter_mut().zip(&meters.0) {
                    let Some(ns) = meter.median_ns(timer_ns) else {
                        continue;
                    };
                    // Every round does the same, so the last one's count is as good as any.
                    *reading = Reading {
                        ns: if round == 0 { ns } else { ns.min(reading.ns) },
                        allocations: meter.allocations as f64 / meter.laps as f64,
                    };
                }
            }
        }
        Results {
            readings,
            rounds,
            timer_ns,
        }
    }
}

/// What came out of all subjects.
pub(crate) struct Results {
    readings: Vec<Readings>,
    rounds: Vec<Vec<[f64; PARTS]>>,
    /// What one pair of clock readings costs, in nanoseconds; it is taken off already.
    pub(crate) timer_ns: f64,
}

impl Results {
    /// Nanoseconds a lap, round by round.
    pub(crate) fn rounds(&self, place: Place, part: Part) -> Vec<f64> {
        let of = |round: &Vec<[f64; PARTS]>| round[place.0][part as usize];
        self.rounds.iter().map(of).collect()
    }
}

impl Index<Place> for Results {
    type Output = Readings;
    fn index(&self, place: Place) -> &Readings {
        &self.readings[place.0]
    }
}

/// How long `work` takes.
pub(crate) fn spent(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
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
            for _ in 0..10 * BLOCK_LAPS {
                empty.lap(|| black_box(()));
            }
            empty.median_ns(0.0).unwrap_or_default()
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
    fn a_pause_in_one_lap_does_not_show_in_the_median() {
        let mut meter = Meter::default();
        for lap in 0..3 * BLOCK_LAPS {
            meter.lap(|| {
                if lap == 10 {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        assert_eq!(meter.full.len(), 3);
        assert!(meter.full[1].ns(0.0) > 900_000.0);
        assert!(meter.median_ns(0.0) < Some(900_000.0));
    }

    #[test]
    fn subjects_take_turns_and_their_allocations_are_counted_exactly() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut bench = Bench::default();
        let first = bench.add(|meters| {
            order.borrow_mut().push('a');
            meters[Part::Whole].laps(20, || drop(black_box(Box::new([0_u64; 4]))));
        });
        let second = bench.add(|meters| {
            order.borrow_mut().push('b');
            meters[Part::Whole].laps(20, || std::thread::sleep(Duration::from_micros(100)));
        });
        let results = bench.run(Effort {
            rounds: 1,
            chunks: 3,
        });
        assert_eq!(results[first][Part::Whole].allocations, 1.0);
        assert_eq!(results[second][Part::Whole].allocations, 0.0);
        assert!(results[second][Part::Whole].ns > 90_000.0);
        assert_eq!(results[second][Part::Encode], Reading::default());
        let rounds = results.rounds(second, Part::Whole);
        assert_eq!(rounds, [results[second][Part::Whole].ns]);
        assert_eq!(order.into_inner(), ['a', 'b', 'a', 'b', 'a', 'b']);
    }
}
