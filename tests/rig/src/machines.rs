//! What must come out alike on every machine, as lines of a name and a digest: two scripted matches, and a table of
//! float operations.
//!
//! ```text
//!   this code, built for x86_64, aarch64, wasm32, Windows ... ──▶ table() == tests/golden/digests.txt, on each of them
//! ```
//!
//! `ci/machines.sh` builds and runs it wherever it finds the tools. Nothing in here needs a clock, a socket, a file or a
//! thread, so that it runs where none of these are.

use std::fmt::Write as _;

use powderkeg_game::Game;
use twinstep_core::digest::digest;
use twinstep_core::{Chunked, codec};
use twinstep_protocol::replay::Replay;

use crate::recorded::recorded;
use crate::rig::{Play, Sticks};
use crate::skirmish::Skirmish;

mod floats;

pub use floats::system_functions;

/// What every machine must come to; this file is written by `UPDATE_GOLDEN=1`.
pub const GOLDEN: &str = include_str!("../../golden/digests.txt");

const TICKS: u32 = 10_000;
/// A match has a line each time when so many ticks are over.
const TICKS_PER_LINE: u32 = 1_000;

/// All digests of this machine, in the form of [`GOLDEN`].
///
/// # Panics
/// If a match cannot be played again from its journal.
#[must_use]
pub fn table() -> String {
    let mut lines = String::new();
    play::<Game>("powderkeg", 71, Sticks::Analog, &mut lines);
    play::<Skirmish>("skirmish", 72, Sticks::Sticky, &mut lines);
    chunks(&mut lines);
    floats::operations(&mut lines);
    lines
}

/// A list of numbers of each width in chunks, changed here and there, and read back from its bytes.
fn chunks(lines: &mut String) {
    let mut list: Chunked<(u8, i16, u32, i64, f32)> = (0..5_000_u32)
        .map(|n| {
            (
                n as u8,
                n as i16,
                n << 12,
                -i64::from(n) << 33,
                n as f32 / 3.0,
            )
        })
        .collect();
    for round in 0..3 {
        for n in (round..list.len()).step_by(997) {
            list[n].2 ^= 0x9e37_79b9;
        }
        let digest = digest(&list).expect("no NaN");
        let mut bytes = Vec::new();
        codec::append(&list, &mut bytes).expect("it fits");
        list = codec::decode_whole(&bytes).expect("its own bytes");
        writeln!(lines, "chunks/{round} {digest:016x}").expect("text");
    }
}

/// The lines that `now` and `kept` do not have in common, each with its sign: `-` was kept, `+` came out.
#[must_use]
pub fn differences(kept: &str, now: &str) -> Vec<String> {
    let only = |sign, of: &str, other: &str| {
        let missing = of
            .lines()
            .filter(|line| !other.lines().any(|other| other == *line));
        Vec::from_iter(missing.map(|line| format!("{sign}{line}")))
    };
    let mut lines = only('-', kept, now);
    lines.extend(only('+', now, kept));
    lines
}

/// Four players of numbers, and the match once more from its journal: bytes are read back, not only written.
fn play<S: Play>(name: &str, seed: u64, sticks: Sticks, lines: &mut String) {
    let played = recorded::<S>(seed, 4, TICKS, sticks);
    let replay = Replay::<S>::open(&played.journal, &played.rules, &played.hello);
    let mut replay = replay.expect("its own journal");
    loop {
        let world = replay.world();
        if world.tick().0.is_multiple_of(TICKS_PER_LINE) {
            let digest = world.digest().expect("no NaN");
            let _ = writeln!(lines, "{name}/{} {digest:016x}", world.tick());
        }
        if !replay.step().expect("its own frames") {
            break;
        }
    }
}
