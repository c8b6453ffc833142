//! Powderkeg as a whole: a server, four clients and their links on one core, and the test kit's `check` of its largest
//! wave. Also the cost of a match's journal on a given disk.

use std::path::Path;
use std::time::{Duration, Instant};

use powderkeg_game::Game;
use twinstep_host::{Durability, Journal};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::checked;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};

use crate::effort::Effort;
use crate::process::{Failed, cpu};
use crate::rows::{Row, Section};

const CHECKED: (usize, u32) = (8, 2_400);

pub(crate) fn measure(effort: &Effort) -> Result<Section, Failed> {
    let mut section = Section::new(
        "A whole game",
        "Virtual seconds a second of a Powderkeg world: a server, four clients that draw 60 frames a second, WAN lines between them. \
         And ticks a second of the kit's `check` of Powderkeg's largest wave, 8 players.",
    );
    let rates = (1..=effort.rounds as u64).map(|seed| rate(seed, effort.world));
    let rates = rates.collect::<Result<_, Failed>>()?;
    let name = "Powderkeg world of 4 players, one core";
    section.rows.push(Row::new(name, "s/s", rates));
    let (players, ticks) = CHECKED;
    match checked::powderkeg(checked::largest_wave_rules(), players, ticks) {
        Ok(report) => section.rows.push(Row::one(
            "`check` of Powderkeg's largest wave",
            "ticks/s",
            report.ticks_per_second(),
        )),
        Err(fault) => section.notes.push(fault.to_string()),
    }
    Ok(section)
}

/// Returns the number of virtual seconds simulated per second of processor time.
fn rate(seed: u64, time: Duration) -> Result<f64, Failed> {
    let mut config = RigConfig::new(seed, LinkProfile::WAN);
    config.input_pattern = InputPattern::Sticky;
    config.fps = 60;
    config.verify = false;
    let mut rig = Rig::<Game>::new(config);
    rig.observe(false);
    rig.run(Duration::from_secs(5));
    let before = cpu()?;
    rig.run(time);
    let spent_us = (cpu()? - before).total_us().max(1);
    Ok(time.as_secs_f64() * 1e6 / spent_us as f64)
}

/// Measures the time to journal a turn in `folder`, for each durability. Removes its file afterwards.
pub(crate) fn journal(folder: &Path) -> Result<Section, Failed> {
    let about = "1,000 turns of 40 bytes. A turn of the action preset lasts 33,333 µs.";
    let mut section = Section::new("A journal", about);
    let path = folder.join(format!("bench-{}.tmp", std::process::id()));
    for durability in [Durability::Process, Durability::Power] {
        let mut journal = Journal::create(&path)?.durability(durability);
        let turn = |_| -> Result<f64, Failed> {
            let began = Instant::now();
            journal.append(&[0x5a; 40])?;
            journal.settle()?;
            Ok(began.elapsed().as_secs_f64() * 1e6)
        };
        let laps = (0..1_000).map(turn).collect::<Result<Vec<f64>, Failed>>();
        let _ = std::fs::remove_file(&path);
        let mut laps = laps?;
        laps.sort_by(f64::total_cmp);
        for (part, at) in [("p50", 500), ("p99", 990), ("worst", 999)] {
            let name = format!("turn, durability {durability:?}, {part}").to_lowercase();
            section.rows.push(Row::one(name, "µs", laps[at]));
        }
    }
    Ok(section)
}
