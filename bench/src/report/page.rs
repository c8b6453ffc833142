//! [`Page`]: what was measured as tables and plots, and what limits what is missed.

mod alone;
mod beside;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::effort::Effort;
use super::goals::Reached;
use crate::process::Failed;
use crate::table::{Format, Table, load, machine};

/// Where the plots are, beside the page.
const PLOTS: &str = "report";

/// What a reader must not conclude.
const LEFT_OUT: [&str; 9] = [
    "A network: everything is on one machine, over loopback or in memory. Loss, jitter and long lines are in the tests \
     (`tests/golden/`), not here.",
    "A game: the state is 64 bytes over sockets, 4 and 64 KB in memory, and a step takes nanoseconds, but for the Powderkeg \
     world and the thousand entities.",
    "What a match does for its players has no counterpart at renet, which carries messages and knows no ticks, worlds, \
     digests or late joiners; its column is what carrying the same packets costs.",
    "renet's server is one loop of 60 Hz that sleeps between its ticks, as its examples are: each packet waits for the next \
     one. Ours is awake for packets and for the ticks of many matches, which are spread over time.",
    "The echo is one thread that receives, and answers every second datagram, one call each; it could batch as well.",
    "Players run in this process on the other core. What they cost stands beside what the server costs; where they are late, \
     the row is about them.",
    "Memory is the growth of the process's resident pages, so what an allocator keeps is in it.",
    "ggrs's numbers are of its default settings, in memory, plain text; a peer of it talks to three others and no server \
     runs. See `quick` for what else is different.",
    "Journals, pictures, joins, heals, spectators, other operating systems.",
];

/// What was measured so far.
pub(super) struct Page {
    head: String,
    body: String,
    reached: Reached,
    plots: Vec<(&'static str, String)>,
    /// CPU per player and tick by players: ours, renet's, the echo's.
    cpu: [Vec<(f64, f64)>; 3],
    memory: Vec<f64>,
    packets: Vec<f64>,
    allocations: Vec<f64>,
}

impl Page {
    pub(super) fn new(effort: &Effort, date: String) -> Page {
        let mut head = "# What Twinstep costs\n\n".to_owned();
        if effort.is_short {
            head.push_str("**A short run, to see that it works: its numbers say nothing.**\n\n");
        }
        let told = |program: &str, flag: &str| {
            let out = Command::new(program).arg(flag).output().ok()?;
            Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
        };
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let rustc = told("rustc", "--version").unwrap_or_else(|| "rustc unknown".to_owned());
        let _ = writeln!(
            head,
            "Made by `cargo run --release -p twinstep-bench -- report` on {date}, and not edited. How things came to cost what \
             they do is in [NOTES.md](NOTES.md).\n\n\
             - Machine: {}; kernel {}; {rustc}.\n\
             - Load of the machine before this began: {}. Above 0.5, others' work is in the numbers.\n\
             - Whoever is compared takes turns, {} rounds; min, median and max are of rounds.",
            machine(),
            kernel.trim(),
            load(),
            effort.rounds
        );
        Page {
            head,
            body: String::new(),
            reached: Reached::default(),
            plots: Vec::new(),
            cpu: Default::default(),
            memory: Vec::new(),
            packets: Vec::new(),
            allocations: Vec::new(),
        }
    }

    fn table(&mut self, table: &Table) {
        table
            .write(Format::Markdown, &mut self.body)
            .expect("a String takes everything");
    }

    fn plot(&mut self, name: &'static str, about: &str, svg: String) {
        let _ = writeln!(self.body, "![{about}]({PLOTS}/{name}.svg)\n");
        self.plots.push((name, svg));
    }

    fn say(&mut self, text: &str) {
        let _ = writeln!(self.body, "{text}\n");
    }

    /// Writes the page and its plots.
    pub(super) fn write(self, folder: &Path) -> Result<(), Failed> {
        let plots = folder.join(PLOTS);
        fs::create_dir_all(&plots)?;
        for (name, svg) in &self.plots {
            fs::write(plots.join(format!("{name}.svg")), svg)?;
        }
        let mut page = self.head;
        page.push_str("\n## Targets\n\n");
        self.reached.table().write(Format::Markdown, &mut page)?;
        let misses = self.reached.misses();
        if !misses.is_empty() {
            page.push_str("What limits each miss:\n\n");
            misses.iter().for_each(|miss| {
                let _ = writeln!(page, "- {miss}");
            });
            page.push('\n');
        }
        page.push_str(&self.body);
        page.push_str("## What this leaves out\n\n");
        LEFT_OUT.iter().for_each(|what| {
            let _ = writeln!(page, "- {what}");
        });
        let path = folder.join("REPORT.md");
        fs::write(&path, page)?;
        println!("{} is written", path.display());
        Ok(())
    }
}
