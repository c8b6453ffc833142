//! Measures the costs of a game: steps, copies and digests of its largest world.

use std::time::{Duration, Instant};

use twinstep_core::Simulation;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;

use crate::counting;
use crate::steps::Steps;

const RUNS: usize = 31;

/// The cost of one operation.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Cost {
    /// The median time of many runs.
    pub time: Duration,
    /// The number of allocations: the maximum of many runs; `None` if they are not counted, see
    /// [`Counting`](crate::Counting).
    pub allocations: Option<u64>,
}

/// The costs of a game at its largest world.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Costs {
    /// The cost of a step.
    pub step: Cost,
    /// The cost of `clone_from`, with which each rebuild of a prediction starts.
    pub clone_from: Cost,
    /// The cost of a digest, which is taken every tick, or one to four times a second if the world is above 64 KiB.
    pub digest: Cost,
}

impl Costs {
    /// The number of ticks of lead that can be rebuilt within `time`.
    #[must_use]
    pub fn ticks_within(&self, time: Duration) -> u32 {
        let rest = time.saturating_sub(self.clone_from.time);
        let step = self.step.time.max(Duration::from_nanos(1));
        (rest.as_nanos() / step.as_nanos()).min(u128::from(u32::MAX)) as u32
    }
}

pub(crate) fn costs<S: Simulation>(
    steps: &mut Steps<'_, S>,
    before: &World<S>,
    frame: &FrameData<S>,
) -> Costs {
    let mut world = before.clone();
    // In a real match, a step starts with lists that have already grown.
    let warm = steps.confirmed(&mut world, frame).is_ok();
    let mut costs = Costs {
        clone_from: cost(&mut world, |world| world.clone_from(before)),
        digest: cost(&mut world, |world| {
            std::hint::black_box(world.digest().is_ok());
        }),
        ..Costs::default()
    };
    if warm {
        let mut samples = Samples::default();
        for _ in 0..RUNS {
            world.clone_from(before);
            samples.take(|| {
                std::hint::black_box(steps.confirmed(&mut world, frame).is_ok());
            });
        }
        costs.step = samples.cost();
    }
    costs
}

fn cost<T>(it: &mut T, mut work: impl FnMut(&mut T)) -> Cost {
    let mut samples = Samples::default();
    work(it);
    for _ in 0..RUNS {
        samples.take(|| work(it));
    }
    samples.cost()
}

#[derive(Default)]
struct Samples {
    times: Vec<Duration>,
    allocations: u64,
}

impl Samples {
    #[expect(
        clippy::disallowed_methods,
        reason = "measures the cost here; no verdict depends on it"
    )]
    fn take(&mut self, work: impl FnOnce()) {
        self.times.reserve(1);
        let (before, began) = (counting::Counting::allocations(), Instant::now());
        work();
        self.times.push(began.elapsed());
        self.allocations = self
            .allocations
            .max(counting::Counting::allocations() - before);
    }

    fn cost(mut self) -> Cost {
        self.times.sort_unstable();
        let allocations = counting::is_installed().then_some(self.allocations);
        Cost {
            time: self.times[self.times.len() / 2],
            allocations,
        }
    }
}
