//! `size`: what a state that is large costs, though nobody touches most of it.
//!
//! Medians of single frames would hide what is done once a second. So whole seconds are looked at: the mean of each
//! second's frames, and its slowest one. Of both the median over all seconds counts, since on a loaded machine some
//! seconds are others' work.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::measure::{median, spent};
use crate::ours::Party;
use crate::report::{Format, Table, number};
use crate::simulation::Sticks;

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

/// Measures the match and a client beside states of each size, and writes the table.
pub(crate) fn run(format: Format, out: &mut impl Write) -> fmt::Result {
    let mut parties = SIZES.map(|(bytes, _)| Party::new(bytes, 2, Sticks::Still));
    let mut sides = SIZES.map(|_| (Side::default(), Side::default()));
    for _ in 0..SECONDS {
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
    let mut table = Table::new(
        "A large state that nobody touches, µs",
        "a match's tick with 4 clients, and one client's frame, no rebuild, k=2: the mean over a second, what that is \
         more than with 4 KB, and the second's slowest one; medians of 60 s",
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
    let mut least = None;
    for ((_, label), (game, client)) in SIZES.iter().zip(&mut sides) {
        let (game, client) = (game.medians(), client.medians());
        let (first_game, first_client) = *least.get_or_insert((game.0, client.0));
        table.row([
            (*label).to_owned(),
            number(game.0),
            number(game.0 - first_game),
            number(game.1),
            number(client.0),
            number(client.0 - first_client),
            number(client.1),
        ]);
    }
    table.write(format, out)
}
