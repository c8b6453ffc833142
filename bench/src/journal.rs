//! What a turn's journal costs, by what it is to survive: the writes of a running server, on the disk of a folder.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use twinstep_server::host::{Durability, Journal, JournalFileError};

/// A turn of two ticks with four analog sticks.
const TURN_BYTES: usize = 40;
/// Turns that are written.
const TURNS: usize = 1_000;

/// Measures both durabilities in `folder`, and leaves nothing behind.
pub(crate) fn run(folder: &Path, out: &mut String) -> Result<(), JournalFileError> {
    let path = folder.join(format!("bench-{}.tmp", std::process::id()));
    let _ = writeln!(
        out,
        "{TURNS} turns of {TURN_BYTES} B in {}\n\n{:<10} {:>10} {:>10} {:>10}",
        folder.display(),
        "durability",
        "p50 us",
        "p99 us",
        "worst us"
    );
    for (name, durability) in [
        ("process", Durability::Process),
        ("power", Durability::Power),
    ] {
        let measured = measure(&path, durability);
        let _ = std::fs::remove_file(&path);
        let mut laps = measured?;
        laps.sort();
        let us = |lap: Duration| lap.as_secs_f64() * 1e6;
        let _ = writeln!(
            out,
            "{name:<10} {:>10.1} {:>10.1} {:>10.1}",
            us(laps[TURNS / 2]),
            us(laps[TURNS * 99 / 100]),
            us(laps[TURNS - 1])
        );
    }
    let _ = writeln!(out, "\nA turn of the action preset takes 33,333 us.");
    Ok(())
}

fn measure(path: &Path, durability: Durability) -> Result<Vec<Duration>, JournalFileError> {
    let mut journal = Journal::create(path)?.durability(durability);
    let turn = [0x5a; TURN_BYTES];
    let mut laps = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let began = Instant::now();
        journal.append(&turn)?;
        journal.settle()?;
        laps.push(began.elapsed());
    }
    Ok(laps)
}
