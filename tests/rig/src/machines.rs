//! Results that must be equal on every machine, as lines of a name and a digest: three scripted matches, changed
//! chunked lists, and float operations.
//!
//! ```text
//!   this code, built for x86_64, aarch64, wasm32, Windows ... ──▶ table() == tests/golden/digests.txt, on each of them
//! ```
//!
//! `ci/machines.sh` builds and runs this for every target with installed tools. It does not need a clock, a socket, a
//! file or a thread, so it runs on targets without them.

use std::fmt::Write as _;

use powderkeg_game::Game;
use twinstep_core::digest::digest;
use twinstep_core::{Chunked, codec};
use twinstep_protocol::replay::Replay;

use crate::ball::Pitch;
use crate::realm::Realm;
use crate::recorded::recorded;
use crate::rig::{InputPattern, Play};

mod floats;

pub use floats::system_functions;

/// The digests expected on every machine. `UPDATE_GOLDEN=1` writes this file.
pub const GOLDEN: &str = include_str!("../../golden/digests.txt");

const TICKS: u32 = 10_000;
// Each match adds a line with its digest whenever this many ticks have passed.
const TICKS_PER_LINE: u32 = 1_000;

/// Returns all digests of this machine, in the format of [`GOLDEN`].
#[must_use]
pub fn table() -> String {
    let mut lines = String::new();
    play::<Game>("powderkeg", 71, InputPattern::Analog, &mut lines);
    play::<Realm>("realm", 72, InputPattern::Sticky, &mut lines);
    play::<Pitch>("bodies", 73, InputPattern::Analog, &mut lines);
    chunks(&mut lines);
    floats::operations(&mut lines);
    lines
}

/// Digests a chunked list of numbers of each width, after changes and after round trips through its bytes.
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

/// Returns the lines that differ between `kept` and `now`: `-` for expected lines, `+` for actual lines.
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

/// Records a match of four simulated players, and replays its journal, so that bytes are read as well as written.
fn play<S: Play>(name: &str, seed: u64, input_pattern: InputPattern, lines: &mut String) {
    let played = recorded::<S>(seed, 4, TICKS, input_pattern);
    let replay = Replay::<S>::open(&played.journal, &played.rules);
    let mut replay = replay.expect("its own journal");
    loop {
        let world = replay.world();
        if world.tick().0.is_multiple_of(TICKS_PER_LINE) {
            let digest = world.digest().expect("no NaN");
            let _ = writeln!(lines, "{name}/t{} {digest:016x}", world.tick().0);
        }
        if !replay.step().expect("its own frames") {
            break;
        }
    }
}
