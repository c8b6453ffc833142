//! [`run`]: in-memory parties take turns, so that a disturbance on the machine affects all of them alike.
//!
//! ```text
//! round 1   A B C … A B C …   one chunk each, again and again ─▶ median of the blocks of 8 laps
//! round 2   A B C … A B C …                                   ─▶ median of the blocks of 8 laps
//! ```
//!
//! A lap is enclosed by one pair of clock readings. The cost of reading the clock is measured first and subtracted.
//! Blocks are shorter than a scheduler time slice. On a loaded machine nearly every longer block would contain a pause,
//! so the slower side would pay for the load and the faster side would not. Allocations are counted exactly, over all
//! laps; the counter costs about a nanosecond per allocation, on both sides.

use std::hint::black_box;
use std::time::{Duration, Instant};

use twinstep_testing::Counting;

use crate::rows::median;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The meter of a client's whole frame, or of a subject's only task.
pub(crate) const WHOLE: usize = 0;
/// The meter of a match's tick, for all its clients.
pub(crate) const MATCH: usize = 1;

pub(crate) type Meters = [Meter; 2];

const BLOCK_LAPS: u64 = 8;
/// Even, so that all chunks have the same number of two-tick turns.
const CHUNK_FRAMES: usize = 300;

#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    spent: Duration,
    /// Nanoseconds per lap of each full block, including the cost of reading the clock.
    full: Vec<f64>,
    laps: u64,
    allocations: u64,
}

impl Meter {
    pub(crate) fn lap<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let allocated = Counting::allocations();
        let start = Instant::now();
        let result = work();
        self.spent += start.elapsed();
        self.allocations += Counting::allocations() - allocated;
        self.laps += 1;
        if self.laps.is_multiple_of(BLOCK_LAPS) {
            let spent = std::mem::take(&mut self.spent);
            self.full.push(spent.as_nanos() as f64 / BLOCK_LAPS as f64);
        }
        result
    }

    fn median_ns(&self, timer_ns: f64) -> f64 {
        let median = median(&mut self.full.clone()).unwrap_or_default();
        (median - timer_ns).max(0.0)
    }
}

pub(crate) trait Party {
    /// Runs one frame of each player. Times the first player's frame as a lap.
    fn frame(&mut self, meters: &mut Meters);

    fn counts(&self) -> Counts;
}

/// A party's counts. Rebuilds are the first player's; packets and bytes are those of all four.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) frames: u64,
    /// The number of times that new inputs arrived; each can refute a guess.
    pub(crate) turns: u64,
    pub(crate) rebuilds: u64,
    pub(crate) again_ticks: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Bytes both ways, without headers.
    pub(crate) bytes: u64,
    /// Late inputs, and states that differ from the server's or a peer's.
    pub(crate) faults: u64,
}

impl std::ops::Sub for Counts {
    type Output = Counts;
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            frames: self.frames - earlier.frames,
            turns: self.turns - earlier.turns,
            rebuilds: self.rebuilds - earlier.rebuilds,
            again_ticks: self.again_ticks - earlier.again_ticks,
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            bytes: self.bytes - earlier.bytes,
            faults: self.faults - earlier.faults,
        }
    }
}

/// Runs `rounds` rounds, each with `chunks` chunks per party.
pub(crate) fn run(parties: &mut [Box<dyn Party>], rounds: usize, chunks: usize) -> Results {
    let timer_ns = timer_ns();
    let mut results = Results::default();
    for _ in 0..rounds {
        let mut meters = vec![Meters::default(); parties.len()];
        for _ in 0..chunks {
            for (party, meters) in parties.iter_mut().zip(&mut meters) {
                (0..CHUNK_FRAMES).for_each(|_| party.frame(meters));
            }
        }
        let medians = |meters: &Meters| meters.each_ref().map(|meter| meter.median_ns(timer_ns));
        results.rounds.push(meters.iter().map(medians).collect());
        // Each round does the same work, so the counts of the last round hold for all.
        results.meters = meters;
    }
    results
}

#[derive(Default)]
pub(crate) struct Results {
    rounds: Vec<Vec<[f64; 2]>>,
    meters: Vec<Meters>,
}

impl Results {
    /// Nanoseconds per lap, round by round.
    pub(crate) fn ns(&self, party: usize, meter: usize) -> Vec<f64> {
        let of = |round: &Vec<[f64; 2]>| round[party][meter];
        self.rounds.iter().map(of).collect()
    }

    pub(crate) fn allocations(&self, party: usize, meter: usize) -> f64 {
        let meter = &self.meters[party][meter];
        meter.allocations as f64 / meter.laps as f64
    }
}

pub(crate) fn spent(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn timer_ns() -> f64 {
    let empty = |_| {
        let mut empty = Meter::default();
        for _ in 0..10 * BLOCK_LAPS {
            empty.lap(|| black_box(()));
        }
        empty.median_ns(0.0)
    };
    median(&mut (0..101).map(empty).collect::<Vec<f64>>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_pause_in_one_lap_does_not_affect_the_median() {
        let mut meter = Meter::default();
        for lap in 0..3 * BLOCK_LAPS {
            meter.lap(|| {
                if lap == 10 {
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        assert_eq!(meter.full.len(), 3);
        assert!(meter.full[1] > 900_000.0);
        assert!(meter.median_ns(0.0) < 900_000.0);
    }

    struct Boxes(char, Rc<RefCell<String>>);

    impl Party for Boxes {
        fn frame(&mut self, meters: &mut Meters) {
            let mut order = self.1.borrow_mut();
            if !order.ends_with(self.0) {
                order.push(self.0);
            }
            meters[MATCH].lap(|| drop(black_box(Box::new([0_u64; 4]))));
            meters[WHOLE].lap(|| order.len());
        }

        fn counts(&self) -> Counts {
            Counts::default()
        }
    }

    #[test]
    fn parties_take_turns_and_their_allocations_are_counted_exactly() {
        let order = Rc::new(RefCell::new(String::with_capacity(16)));
        let party = |name| -> Box<dyn Party> { Box::new(Boxes(name, order.clone())) };
        let results = run(&mut [party('a'), party('b')], 1, 3);
        assert_eq!(results.allocations(1, MATCH), 1.0);
        assert_eq!(results.allocations(1, WHOLE), 0.0);
        assert!(results.ns(0, MATCH)[0] > 0.0);
        assert_eq!(*order.borrow(), "ababab");
    }
}
