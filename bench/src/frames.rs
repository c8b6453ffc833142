//! How long a picture of Powderkeg takes, in a crowded match: what the program itself measures (`powderkeg frames`).
//!
//! It runs as a process of its own: a process opens one window in its life, and where there is no display the program
//! makes one in memory. What cannot be measured here is said with its reason, and is no error.

use std::process::Command;

use serde::Deserialize;

use crate::table::{Table, number};

/// Each match is drawn for so many frames.
const FRAMES: &str = "300";

/// What `powderkeg frames --report json` tells, as far as it is shown.
#[derive(Deserialize)]
struct Pace {
    drawn: Load,
    falls_short: bool,
    frame_ms_p50: f64,
    frame_ms_p99: f64,
    stage_ms_p50: f64,
    stage_ms_p99: f64,
    cpu_ms_mean: Option<f64>,
}

#[derive(Deserialize)]
struct Load {
    players: f64,
    enemies: f64,
    bullets: f64,
}

/// The table; or why there is none.
pub(crate) fn table() -> Result<Table, String> {
    let mut table = Table::new(
        "A picture of Powderkeg, ms",
        "1280x720, as fast as can be, the whole arena in sight; own: the match, the scene and the quads, without the \
         graphics driver; processor: of all threads",
        &[
            "match",
            "players",
            "enemies",
            "bullets",
            "frame p50",
            "p99",
            "own p50",
            "p99",
            "processor",
        ],
    );
    for (name, flags) in [
        ("recorded", &[][..]),
        ("live, server and 3 bots", &["--with-server"][..]),
    ] {
        let pace = measure(flags)?;
        let name = match pace.falls_short {
            true => format!("{name} (LESS THAN ASKED)"),
            false => name.to_owned(),
        };
        table.row([
            name,
            format!("{:.0}", pace.drawn.players),
            format!("{:.0}", pace.drawn.enemies),
            format!("{:.0}", pace.drawn.bullets),
            number(pace.frame_ms_p50),
            number(pace.frame_ms_p99),
            number(pace.stage_ms_p50),
            number(pace.stage_ms_p99),
            pace.cpu_ms_mean.map_or_else(|| "–".to_owned(), number),
        ]);
    }
    Ok(table)
}

fn measure(flags: &[&str]) -> Result<Pace, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name(format!("powderkeg{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        return Err(
            "powderkeg is not built beside this program: cargo build --release -p powderkeg"
                .to_owned(),
        );
    }
    let run = Command::new(&program)
        .args(["frames", "--frames", FRAMES, "--report", "json"])
        .args(flags)
        .output();
    let run = run.map_err(|error| format!("{} does not run: {error}", program.display()))?;
    read(
        &String::from_utf8_lossy(&run.stdout),
        &String::from_utf8_lossy(&run.stderr),
    )
}

/// What was told; else the last thing that was complained about.
fn read(told: &str, complained: &str) -> Result<Pace, String> {
    serde_json::from_str(told).map_err(|_| {
        let why = complained.lines().last().unwrap_or("it told nothing");
        format!("powderkeg frames: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_without_them_the_reason_is_told() {
        let told = r#"{"frames": 300, "frame_ms_p50": 9.5, "frame_ms_p99": 20, "stage_ms_p50": 0.5, "stage_ms_p99": 1,
            "cpu_ms_mean": null, "drawn": {"players": 8, "enemies": 301.5, "bullets": 2001}, "falls_short": false}"#;
        let pace = read(told, "").unwrap_or_else(|why| panic!("{why}"));
        assert!(pace.frame_ms_p50 == 9.5 && pace.drawn.bullets == 2_001.0 && !pace.falls_short);
        let why = read("", "warning: this\nerror: there is no display\n").err();
        assert_eq!(
            why.as_deref(),
            Some("powderkeg frames: error: there is no display")
        );
    }
}
