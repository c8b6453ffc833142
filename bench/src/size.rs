//! `size`: what a state that is large costs, though nobody touches most of it.
//!
//! Medians of single frames would hide what is done once a second. So whole seconds are looked at: the mean of each
//! second's frames, and its slowest one. Of both the median over all seconds counts, since on a loaded machine some
//! seconds are others' work.

use std::fmt::{self, Write};
use std::hint::black_box;
use std::time::Duration;

use serde::Serialize;
use twinstep_core::digest::{digest, scan};
use twinstep_core::{Chunked, codec};

use crate::measure::{median, spent};
use crate::ours::Party;
use crate::simulation::Sticks;
use crate::table::{Format, Table, number};

const SIZES: [(usize, &str); 3] = [(4 << 10, "4 KB"), (64 << 10, "64 KB"), (1 << 20, "1 MB")];
/// Seconds that are looked at.
const SECONDS: u32 = 60;
/// Frames of one.
const FRAMES: u32 = 60;

/// What was measured of one side, in µs.
#[derive(Default)]
struct Side {
    means: Vec<f64>,
    slowest: Vec<f64>,
}

impl Side {
    fn note(&mut self, second: &[Duration]) {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let slowest = second.iter().max().copied().unwrap_or_default();
        self.means
            .push(us(second.iter().sum()) / second.len() as f64);
        self.slowest.push(us(slowest));
    }

    fn medians(&mut self) -> (f64, f64) {
        let medians = [&mut self.means, &mut self.slowest].map(|of| median(of).unwrap_or_default());
        (medians[0], medians[1])
    }
}

/// What a pass over all of a megabyte costs: a NaN is looked for at each tick, the rest is done now and then.
fn passes() -> Table {
    let mut table = Table::new(
        "1 MB, passed over once, µs",
        "a look for a NaN, a copy over another one as at a rebuild, a digest, an encoding as for a journal or who joins; \
         medians of 200",
        &[
            "of",
            "a look for a NaN",
            "a copy",
            "a digest",
            "an encoding",
        ],
    );
    let bytes: Vec<u8> = (0..1 << 20).map(|n| n as u8).collect();
    let floats: Vec<f32> = (0..1 << 18).map(|n| n as f32).collect();
    // Two places, health, and whom it is after: 16 entities of it are a KB.
    let entities: Vec<([f32; 4], i16, Option<u32>)> = (0..48_000_u32)
        .map(|n| ([n as f32; 4], n as i16, n.is_multiple_of(3).then_some(n)))
        .collect();
    table.row(passes_over("bytes", bytes.clone(), |_| {}));
    table.row(passes_over("floats", floats, |_| {}));
    let label = "48,000 entities of 4 floats and 2 numbers";
    table.row(passes_over(label, entities, |_| {}));
    let chunked = Chunked::<u8>::from(bytes);
    let label = "bytes in chunks, nothing changed";
    table.row(passes_over(label, chunked.clone(), |_| {}));
    let mut at = 0;
    let label = "bytes in chunks, one changed in each of 8";
    table.row(passes_over(label, chunked, move |list| {
        for _ in 0..8 {
            at = (at + 99_991) % list.len();
            list[at] ^= 1;
        }
    }));
    table
}

/// What each pass over it costs, after something may have changed of it.
fn passes_over<T: Clone + Serialize>(
    label: &str,
    mut value: T,
    mut change: impl FnMut(&mut T),
) -> [String; 5] {
    let mut copy = value.clone();
    let mut us = |pass: &dyn Fn(&T, &mut T)| {
        let mut times = Vec::with_capacity(200);
        for _ in 0..200 {
            change(&mut value);
            let took = spent(|| pass(black_box(&value), &mut copy));
            times.push(took.as_secs_f64() * 1e6);
            copy.clone_from(&value);
        }
        number(median(&mut times).unwrap_or_default())
    };
    [
        label.to_owned(),
        us(&|value, _| drop(black_box(scan(value)))),
        us(&|value, copy| copy.clone_from(value)),
        us(&|value, _| drop(black_box(digest(value)))),
        us(&|value, _| {
            let mut bytes = Vec::with_capacity(4 << 20);
            let encoded = codec::append(value, &mut bytes);
            drop(black_box((encoded, bytes)));
        }),
    ]
}

/// What a state of one size costs though nobody touches it, in µs: the mean over a second, and the second's slowest.
pub(crate) struct Untouched {
    label: &'static str,
    pub(crate) game: (f64, f64),
    pub(crate) client: (f64, f64),
}

/// Measures the match and a client beside states of each size, the smallest first; medians of so many seconds.
pub(crate) fn untouched(seconds: u32) -> [Untouched; 3] {
    let mut parties = SIZES.map(|(bytes, _)| Party::new(bytes, 2, Sticks::Still));
    let mut sides = SIZES.map(|_| (Side::default(), Side::default()));
    for _ in 0..seconds {
        for (party, (game, client)) in parties.iter_mut().zip(&mut sides) {
            let (mut ticks, mut frames) = (Vec::new(), Vec::new());
            for _ in 0..FRAMES {
                ticks.push(spent(|| party.match_tick()));
                frames.push(spent(|| party.first_frame()));
                party.other_frames();
            }
            game.note(&ticks);
            client.note(&frames);
        }
    }
    let mut sides = sides.iter_mut();
    SIZES.map(|(_, label)| {
        let medians = sides.next().map(|(g, c)| (g.medians(), c.medians()));
        let (game, client) = medians.unwrap_or_default();
        Untouched {
            label,
            game,
            client,
        }
    })
}

/// The same as a table.
pub(crate) fn table(measured: &[Untouched; 3]) -> Table {
    let mut table = Table::new(
        "A large state that nobody touches, µs",
        "a match's tick with 4 clients, and one client's frame, no rebuild, k=2: the mean over a second, what that is more \
         than with 4 KB, and the second's slowest one; medians of many seconds",
        &[
            "state",
            "match, mean",
            "more",
            "slowest",
            "client, mean",
            "more",
            "slowest",
        ],
    );
    let [least, ..] = measured;
    for state in measured {
        table.row([
            state.label.to_owned(),
            number(state.game.0),
            number(state.game.0 - least.game.0),
            number(state.game.1),
            number(state.client.0),
            number(state.client.0 - least.client.0),
            number(state.client.1),
        ]);
    }
    table
}

/// Measures, and writes the tables.
pub(crate) fn run(format: Format, out: &mut impl Write) -> fmt::Result {
    table(&untouched(SECONDS)).write(format, out)?;
    passes().write(format, out)
}
