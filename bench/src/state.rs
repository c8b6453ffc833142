//! The cost of a large state when a step touches little of it.
//!
//! The median of single frames would hide work that happens once a second. So each virtual second yields a mean and a
//! slowest frame, and the medians of these over all seconds are reported.

use std::hint::black_box;
use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::world::World;

use crate::effort::Effort;
use crate::game::{Blob, Sticks};
use crate::ours::Table;
use crate::rows::{Row, Section};
use crate::turns::spent;

const SIZES: [(usize, &str); 3] = [(4 << 10, "4 KB"), (64 << 10, "64 KB"), (1 << 20, "1 MB")];
const SECOND_FRAMES: u32 = 60;
const DIGESTS: usize = 101;

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn measure(effort: &Effort) -> Section {
    let mut section = Section::new(
        "A large state that no step touches",
        "A match's tick with four clients, and one client's frame, no rebuild: the means of virtual seconds, and the slowest tick or \
         frame of each. And a digest of the whole world.",
    );
    let mut tables = SIZES.map(|(bytes, _)| Table::new(bytes, 2, Sticks::Still));
    // Indexed by size: the mean tick, the mean frame and the slowest of both, for each second.
    let mut seconds: [[Vec<f64>; 3]; 3] = Default::default();
    for _ in 0..effort.state_seconds {
        for (table, [ticks, frames, slowest]) in tables.iter_mut().zip(&mut seconds) {
            let (mut tick, mut frame, mut most) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
            for _ in 0..SECOND_FRAMES {
                let times = (spent(|| table.match_tick()), spent(|| table.first_frame()));
                table.other_frames();
                (tick, frame) = (tick + times.0, frame + times.1);
                most = most.max(times.0).max(times.1);
            }
            ticks.push(us(tick / SECOND_FRAMES));
            frames.push(us(frame / SECOND_FRAMES));
            slowest.push(us(most));
        }
    }
    let mut row = |name: String, rounds| section.rows.push(Row::new(name, "µs", rounds));
    let least = seconds[0].clone();
    for ((_, size), measured) in SIZES.iter().zip(seconds) {
        let names = ["a match's tick", "a client frame"];
        for ((name, mean), least) in names.iter().zip(&measured).zip(&least) {
            let more = mean.iter().zip(least).map(|(mean, least)| mean - least);
            let name = format!("untouched {size}, {name}");
            if *size != SIZES[0].1 {
                row(format!("{name}, more than with 4 KB"), more.collect());
            }
            row(name, mean.clone());
        }
        let [.., slowest] = measured;
        let name = "slowest tick or frame of a second";
        row(format!("untouched {size}, {name}"), slowest);
    }
    for (bytes, size) in SIZES {
        let world = World::new(Blob::new(bytes), Tick(0));
        let digest = |_| us(spent(|| drop(black_box(world.digest()))));
        let digests = (0..DIGESTS).map(digest).collect();
        row(format!("digest of a world, {size}"), digests);
    }
    section
}
