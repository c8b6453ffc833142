//! The sections of a run, and the report of all of them: `REPORT.md`, with its rows as `REPORT.json`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::effort::Effort;
use crate::process::Failed;
use crate::rows::{Format, Section, table};
use crate::{client, horde, server, state, targets, thread, world};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// A client's frame next to ggrs, in memory: time, allocations, bytes.
    Client,
    /// A match and a client with large states, of which a step touches little.
    State,
    /// A Powderkeg world, and the kit's check of Powderkeg.
    World,
    /// The cost of a client's frame to the game's thread, in real time.
    Thread,
    /// A game with one-millisecond steps, in virtual time: rebuilds and leads with and without `each`.
    Horde,
    /// The cost of a server process per player, next to renet and a UDP echo.
    // Listed last, because it pins this process to a core, where a client's thread would wait for its own rebuilds.
    Server,
}

pub(crate) fn measure(subjects: &[Subject], effort: &Effort) -> Result<Vec<Section>, Failed> {
    let section = |subject: &Subject| {
        eprintln!("measuring: {subject:?}");
        match subject {
            Subject::Client => Ok(client::measure(effort)),
            Subject::State => Ok(state::measure(effort)),
            Subject::Server => server::measure(effort),
            Subject::World => world::measure(effort),
            Subject::Thread => Ok(thread::measure(effort)),
            Subject::Horde => Ok(horde::measure(effort)),
        }
    };
    subjects.iter().map(section).collect()
}

/// The trimmed output of a program, or a note that it is unknown.
fn said_by(program: &str, flag: &str) -> String {
    let out = Command::new(program).arg(flag).output();
    let line = out.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    line.unwrap_or_else(|_| format!("{program} unknown"))
}

pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (info, load) = (read("/proc/cpuinfo"), read("/proc/loadavg"));
    let mut lines = info.lines();
    let model = lines.find_map(|line| line.strip_prefix("model name\t: "));
    format!(
        "{}, {} cores, {}, {}, load before the run {}",
        model.unwrap_or("processor unknown"),
        std::thread::available_parallelism().map_or(0, usize::from),
        said_by("uname", "-srm"),
        said_by("rustc", "--version"),
        load.rsplitn(3, ' ').last().unwrap_or_default()
    )
}

const LEFT_OUT: &str = "\
- A network: all is on one machine, over loopback or in memory. Loss and jitter are in the tests (`tests/golden/`), not here.
- A game: a step takes nanoseconds, but for the Powderkeg world and the game's thread. A rebuild costs its steps, and Twinstep \
rebuilds more ticks than ggrs, because its server is a round trip away.
- Encryption, tickets, laminar and UDP have no part in the numbers in memory, on either side. Announcements are off there.
- ggrs talks to three other peers and needs no server; a Twinstep client talks to one server and steps two worlds. ggrs runs with \
its defaults, so without desync detection. In rows that say checksums each save is hashed and every second frame compared. \
Twinstep's comparison cannot be turned off.
- renet carries messages and knows no ticks, worlds, digests or late joiners. Its server is a loop of 60 Hz as in its examples.
- The echo is one thread with one system call for each datagram.
- Memory is the growth of resident pages, with all that an allocator keeps.
- Journals, joins, heals, spectators, other operating systems.
";

pub(crate) fn write(effort: &Effort, folder: &Path, date: Option<&str>) -> Result<(), Failed> {
    fs::create_dir_all(folder)?;
    let machine = machine();
    let date = date.map_or_else(|| said_by("date", "+%F"), str::to_owned);
    let sections = measure(Subject::value_variants(), effort)?;
    let mut page = format!(
        "# What Twinstep costs\n\nMade by `cargo run --release -p twinstep-bench -- report` on {date}, and not edited. What limits the missed \
         targets, and what was tried, is in [NOTES.md](NOTES.md).\n\n- Machine: {machine}. Above a load of 0.5, other work is in the numbers.\n\
         - Subjects take turns. Numbers are medians of rounds; a ratio is the median of each round's own ratio.\n\n## Targets\n\n\
         A factor above 1 is the distance to a missed target.\n\n"
    );
    if effort.rounds == 1 {
        page.push_str("**A short run: its numbers have no meaning.**\n\n");
    }
    let lines = targets::lines(&sections);
    table(Format::Markdown, &targets::COLUMNS, &lines, &mut page)?;
    for section in &sections {
        section.write(Format::Markdown, &mut page)?;
    }
    write!(page, "## What this leaves out\n\n{LEFT_OUT}")?;
    fs::write(folder.join("REPORT.md"), page)?;
    let rows = serde_json::to_string_pretty(&sections)?;
    fs::write(folder.join("REPORT.json"), rows)?;
    println!("{} is written", folder.join("REPORT.md").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Target;

    fn read(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn the_report_has_each_target_and_the_notes_explain_each_missed_one() {
        let (report, notes) = (read("REPORT.md"), read("NOTES.md"));
        assert!(
            !report.contains("A short run"),
            "numbers that mean something"
        );
        for Target { row, .. } in targets::all() {
            let lines = report.lines().filter(|line| {
                let what = line
                    .trim_start_matches("| ")
                    .trim_start_matches("ratio of ");
                what.starts_with(row) && (line.contains('≤') || line.contains('≥'))
            });
            let lines: Vec<&str> = lines.collect();
            assert_eq!(lines.len(), 1, "{row}");
            if !lines[0].contains(" met ") {
                assert!(
                    notes.contains(&format!("- {row}: ")),
                    "why is missed: {row}"
                );
            }
        }
    }
}
