//! [`Page`]: what was measured as tables and plots, and what limits what is missed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::effort::Effort;
use super::goals::{self, Reached};
use super::memory::{Beside, Bytes, Pair};
use super::plot::{self, Line};
use super::sockets::{Carried, PLAYERS_LATE_MAX, Round, Together};
use crate::crowd;
use crate::process::Failed;
use crate::spread::{Spread, digits};
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

    pub(super) fn beside_ggrs(&mut self, beside: &Beside) {
        self.say("## A client, in memory");
        let pairs = |table: &mut Table, pairs: &[Pair]| {
            for pair in pairs {
                let (ours, theirs) = (
                    Spread::of(pair.ours.clone()),
                    Spread::of(pair.theirs.clone()),
                );
                let ratio = Spread::of_ratios(&pair.ours, &pair.theirs);
                let [ours, theirs, ratio] = [ours, theirs, ratio]
                    .map(|spread| spread.map(|spread| spread.cells()).unwrap_or_default());
                let ([a, b, c], [d, e, f], [g, h, i]) = (ours, theirs, ratio);
                table.row([pair.label.clone(), a, b, c, d, e, f, g, h, i]);
            }
        };
        const COLUMNS: [&str; 10] = [
            "state, guesses",
            "Twinstep min",
            "median",
            "max",
            "ggrs min",
            "median",
            "max",
            "ours ÷ ggrs min",
            "median",
            "max",
        ];
        let mut table = Table::new(
            "A client's frame, ns",
            "read what came, advance, write what is due; four players, 8 ticks one way, turns of two ticks",
            &COLUMNS,
        );
        pairs(&mut table, &beside.frames);
        self.table(&table);
        let mut table = Table::new(
            "8 ticks simulated again, alone, ns",
            "ours: a clone, 8 guessed frames, 8 steps; ggrs: a load, 8 saves, 8 steps",
            &COLUMNS,
        );
        pairs(&mut table, &beside.again);
        self.table(&table);
        for (goal, pair) in goals::FRAMES.iter().zip(&beside.frames) {
            self.reached
                .note(goal, Spread::of_ratios(&pair.ours, &pair.theirs));
            self.reached.limit(
                goal,
                "A client steps two worlds and reads and writes its packets in a frame; `quick` says how much of it is reading, \
                 advancing and writing."
                    .to_owned(),
            );
        }
        for (goal, pair) in goals::AGAIN.iter().zip(&beside.again) {
            self.reached
                .note(goal, Spread::of_ratios(&pair.ours, &pair.theirs));
            self.reached.limit(
                goal,
                "Each assumed frame is put together from what is known of each player, and the clone of the world is in it."
                    .to_owned(),
            );
        }
        let median =
            |values: &[f64]| Spread::of(values.iter().copied()).map_or(0.0, |spread| spread.median);
        let group = |pair: &Pair| {
            (
                pair.label.clone(),
                vec![median(&pair.ours) / 1e3, median(&pair.theirs) / 1e3],
            )
        };
        let groups: Vec<_> = beside.frames.iter().map(group).collect();
        let svg = plot::bars(
            "A client's frame",
            "µs, median",
            &["Twinstep", "ggrs"],
            &groups,
        );
        self.plot("frames", "a client's frame beside ggrs", svg);
        let (client, game) = beside.allocations;
        self.reached.note_one(&goals::ALLOCATIONS_CLIENT, client);
        self.reached.note_one(&goals::ALLOCATIONS_MATCH, game);
        self.bytes(&beside.held, &beside.changing);
    }

    fn bytes(&mut self, held: &Bytes, changing: &Bytes) {
        let mut table = Table::new(
            "Bytes of one client a second, both ways",
            "headers: IP and UDP 28, netcode 20, laminar 5 for each packet; four players, 4 bytes of controls, 8 ticks one way",
            &[
                "controls",
                "packets up",
                "packets down",
                "headers, B",
                "inside, B",
                "KB/s",
            ],
        );
        for (label, bytes) in [("held", held), ("change at every tick", changing)] {
            table.row([
                label.to_owned(),
                digits(bytes.packets_up),
                digits(bytes.packets_down),
                digits(bytes.headers),
                digits(bytes.inside),
                digits(bytes.kb()),
            ]);
        }
        self.table(&table);
        for (goal, bytes) in [(goals::HELD, held), (goals::CHANGING, changing)] {
            let packets = bytes.packets_up + bytes.packets_down;
            self.reached.note_one(&goal, bytes.kb());
            self.reached.limit(
                &goal,
                format!(
                    "Headers alone are {:.2} KB/s at {:.0} packets a second both ways, so {:.0} B of each packet would be left; \
                     {:.0} are inside. With one packet less in three headers would be {:.2} KB/s.",
                    bytes.headers / 1e3,
                    packets,
                    (goal.target * 1e3 - bytes.headers) / packets,
                    bytes.inside / packets,
                    bytes.headers / 1.5e3,
                ),
            );
        }
    }

    pub(super) fn beside_renet(&mut self, together: &Together) {
        if self.cpu[0].is_empty() {
            self.say("## A server, over sockets");
        }
        let players = together.players;
        self.say(&format!(
            "{players} players in matches of {}, on one core; those who play are on another.",
            4
        ));
        let mut table = Table::new(
            "A server's CPU and memory",
            "µs per player and tick, in brackets the kernel's part; the players' own µs a frame; datagrams both ways per player \
             and tick, and in a second of CPU; memory per player",
            &[
                "server",
                "µs min",
                "median",
                "max",
                "players' µs",
                "players late",
                "datagrams",
                "a CPU second",
                "KB",
                "inputs missing",
            ],
        );
        for (name, rounds) in [
            ("Twinstep", &together.ours),
            ("renet", &together.renet),
            ("UDP echo", &together.echo),
        ] {
            let of = |value: fn(&Round) -> f64| Spread::of(rounds.iter().map(value));
            let Some(us) = of(|round| round.us) else {
                continue;
            };
            let median = |value| of(value).map_or(0.0, |spread: Spread| spread.median);
            let kernel = median(|round| round.kernel_us);
            let [min, middle, max] = us.cells();
            table.row([
                name.to_owned(),
                min,
                format!("{middle} ({})", digits(kernel)),
                max,
                digits(median(|round| round.players_us)),
                format!("{:.1} %", median(|round| round.players_late) * 100.0),
                digits(median(|round| round.datagrams)),
                digits(median(|round| round.datagrams_a_cpu_second)),
                digits(median(|round| round.kb)),
                match name {
                    "Twinstep" => format!("{:.2} %", median(|round| round.fills) * 100.0),
                    _ => "–".to_owned(),
                },
            ]);
        }
        self.table(&table);
        for failed in &together.failed {
            self.say(&format!("A round that did not come off: {failed}."));
        }
        let values = |rounds: &[Round], value: fn(&Round) -> f64| {
            rounds.iter().map(value).collect::<Vec<f64>>()
        };
        let us = [&together.ours, &together.renet, &together.echo]
            .map(|rounds| values(rounds, |round| round.us));
        for (line, us) in self.cpu.iter_mut().zip(&us) {
            let median = Spread::of(us.iter().copied());
            line.extend(median.map(|spread| (players as f64, spread.median)));
        }
        let goal = match players {
            400 => goals::CPU_400,
            _ => goals::CPU_100,
        };
        let counted = |values: &[f64]| -> Vec<f64> {
            let both = values.iter().zip(&together.counts);
            both.filter_map(|(value, counts)| counts.then_some(*value))
                .collect()
        };
        let ratio = Spread::of_ratios(&counted(&us[0]), &counted(&us[1]));
        self.reached.note(&goal, ratio);
        let spoilt = together.counts.iter().filter(|counts| !**counts).count();
        if spoilt > 0 {
            self.say(&format!(
                "{spoilt} of {} rounds do not count for the targets: more than {:.0} % of some players' frames began late, so \
                 what they asked of the server was not the same.",
                together.counts.len(),
                PLAYERS_LATE_MAX * 100.0
            ));
        }
        if spoilt == together.counts.len() {
            self.reached.limit(
                &goal,
                "In no round the players kept up with what they were to do; others kept this machine busy, or there are too many \
                 of them for their core."
                    .to_owned(),
            );
        } else if let Some(round) = together.ours.first() {
            self.reached.limit(
                &goal,
                format!(
                    "Of {:.1} µs the kernel has {:.1}; sealing, stepping and telling a match, the cipher and the ways between \
                     threads are the rest.",
                    round.us, round.kernel_us
                ),
            );
            self.reached.limit(
                &goals::PACKETS,
                format!(
                    "Of the server's time {:.0} % is the kernel's.",
                    round.kernel_us / round.us * 100.0
                ),
            );
            self.reached.limit(
                &goals::MEMORY,
                "Sessions, their windows of inputs and the match's worlds; what the allocator keeps is in it.".to_owned(),
            );
            self.reached.limit(
                &goals::ALLOCATIONS_HOST,
                "All threads are counted, the matches' too. laminar's packets are a list of bytes of their own each, in and out."
                    .to_owned(),
            );
        }
        let rounds = together
            .ours
            .iter()
            .zip(&together.echo)
            .zip(&together.counts);
        for ((ours, echo), _) in rounds.filter(|(_, counts)| **counts) {
            self.packets
                .push(ours.datagrams_a_cpu_second / echo.datagrams_a_cpu_second);
            self.memory.push(ours.kb);
            self.allocations.push(ours.allocations_a_datagram);
        }
    }

    pub(super) fn capacity(&mut self, steps: &[Carried]) {
        let mut table = Table::new(
            "Players on one core",
            "ticks late: behind the earliest tick of their match; the players are on another core",
            &[
                "players",
                "of a core",
                "µs per player and tick",
                "late p50, ms",
                "p99",
                "p99.9",
                "worst",
                "inputs missing",
                "players' frames late",
            ],
        );
        let (mut late, mut cpu) = (Vec::new(), Vec::new());
        for step in steps {
            let round = match &step.round {
                Ok(round) => round,
                Err(why) => {
                    let mut row = vec![step.players.to_string(), why.clone()];
                    row.resize(9, String::new());
                    let row: [String; 9] = row.try_into().expect("nine cells");
                    table.row(row);
                    continue;
                }
            };
            let ms = round.lateness.unwrap_or_default();
            let ms = [ms.p50_us, ms.p99_us, ms.p999_us, ms.worst_us]
                .map(|us| format!("{:.2}", us / 1e3));
            let [p50, p99, p999, worst] = ms;
            if let Some(lateness) = round.lateness {
                late.push((step.players as f64, lateness.p999_us / 1e3));
            }
            cpu.push((step.players as f64, round.us));
            table.row([
                step.players.to_string(),
                format!("{:.0} %", round.load * 100.0),
                digits(round.us),
                p50,
                p99,
                p999,
                worst,
                format!("{:.2} %", round.fills * 100.0),
                format!("{:.1} %", round.players_late * 100.0),
            ]);
        }
        self.table(&table);
        let held = || steps.iter().filter(|step| step.holds());
        let most = held().map(|step| step.players).max().unwrap_or(0);
        self.reached.note_one(&goals::PLAYERS_A_CORE, most as f64);
        // Up to what a core carries; where it carries nobody in time, of all that was tried.
        let counts = |step: &&Carried| step.players >= 10 && (most == 0 || step.players <= most);
        let carried = steps.iter().filter(counts);
        let us = carried.filter_map(|step| step.round.as_ref().ok().map(|round| round.us));
        if let Some(us) = Spread::of(us) {
            self.reached.note_one(&goals::LINEAR, us.max / us.min);
        }
        if let Some(step) = steps.iter().find(|step| !step.holds()) {
            let why = match &step.round {
                Err(why) => why.clone(),
                Ok(round) => format!(
                    "At {} players the server took {:.0} % of its core, and {:.1} % of the players' frames began late.",
                    step.players,
                    round.load * 100.0,
                    round.players_late * 100.0
                ),
            };
            self.reached.limit(&goals::PLAYERS_A_CORE, why);
        }
        self.reached.limit(
            &goals::LINEAR,
            "What a process costs beside its players is shared by few at the beginning.".to_owned(),
        );
        let svg = plot::lines(
            "How late ticks are, by players on one core",
            ("players", "ms, p99.9"),
            &[Line {
                name: "Twinstep",
                points: late,
            }],
            Some(2.0),
        );
        self.plot("lateness", "lateness of ticks by players", svg);
        let [ours, renet, echo] = std::mem::take(&mut self.cpu);
        let svg = plot::lines(
            "A server's CPU per player and tick",
            ("players", "µs"),
            &[
                Line {
                    name: "Twinstep",
                    points: cpu,
                },
                Line {
                    name: "Twinstep, in turns",
                    points: ours,
                },
                Line {
                    name: "renet, in turns",
                    points: renet,
                },
                Line {
                    name: "UDP echo, in turns",
                    points: echo,
                },
            ],
            None,
        );
        self.plot("cpu", "server CPU by players", svg);
        let [packets, memory, allocations] = [&self.packets, &self.memory, &self.allocations]
            .map(|values| Spread::of(values.iter().copied()));
        self.reached.note(&goals::PACKETS, packets);
        self.reached.note(&goals::MEMORY, memory);
        self.reached.note(&goals::ALLOCATIONS_HOST, allocations);
    }

    pub(super) fn idle(&mut self, us: Result<f64, Failed>) {
        match us {
            Ok(us) => {
                self.say(&format!("A match whose four players say nothing takes {us:.1} µs a tick of the server's CPU."));
                self.reached.note_one(&goals::IDLE, us);
                self.reached.limit(
                    &goals::IDLE,
                    "Each tick is a timer and a wake-up, and a turn is still told to silent players until their sessions end."
                        .to_owned(),
                );
            }
            Err(why) => self.say(&format!("Silent matches were not measured: {why}.")),
        }
    }

    pub(super) fn syscalls(&mut self, calls: Result<(usize, Vec<(String, f64)>), Failed>) {
        match calls {
            Ok((players, calls)) => {
                let shown = calls
                    .iter()
                    .take(6)
                    .map(|(name, each)| format!("{name} {each:.2}"));
                let shown: Vec<String> = shown.collect();
                self.say(&format!(
                    "Calls of the kernel for each datagram in or out, {players} players, under strace, which slows all: {}.",
                    shown.join(", ")
                ));
            }
            Err(why) => self.say(&format!("Calls of the kernel were not counted: {why}.")),
        }
    }

    pub(super) fn worlds(&mut self, rates: &[f64]) {
        self.say("## A whole world, and a game's thread");
        let spread = Spread::of(rates.iter().copied());
        self.reached.note(&goals::WORLD, spread);
        self.reached.limit(
            &goals::WORLD,
            "Five worlds are stepped: the server's, and of each client a confirmed and a predicted one, which is rebuilt over \
             the whole way to the server."
                .to_owned(),
        );
        if let Some(spread) = spread {
            let [min, median, max] = spread.cells();
            self.say(&format!(
                "A Powderkeg world of a server, four clients that draw 60 frames a second, and WAN lines between them, played \
                 on one core: {median} virtual seconds a second ({min} to {max})."
            ));
        }
    }

    pub(super) fn game_thread(&mut self, rows: &[(&'static str, Vec<crowd::Round>)]) {
        let mut table = Table::new(
            "A frame of the game's thread, ms",
            "1,000 entities with their picture, 60 Hz, a round trip of 200 ms, a wrong guess at every turn; steps as they are, \
             or slowed to a cost; the medians of rounds",
            &[
                "step, rebuilt",
                "p50",
                "p99",
                "p99 of rounds",
                "worst",
                "lead, ticks",
                "rebuilds a turn",
                "overtaken a turn",
                "inputs lost",
                "heals",
            ],
        );
        let mut bars = Vec::new();
        for (label, rounds) in rows {
            let of = |value: fn(&crowd::Round) -> f64| Spread::of(rounds.iter().map(value));
            let median = |value| of(value).map_or(0.0, |spread: Spread| spread.median);
            let Some(p99) = of(|round| round.p99_ms) else {
                continue;
            };
            table.row([
                (*label).to_owned(),
                format!("{:.2}", median(|round| round.p50_ms)),
                format!("{:.2}", p99.median),
                format!("{:.2}–{:.2}", p99.min, p99.max),
                format!("{:.2}", median(|round| round.worst_ms)),
                digits(median(|round| round.lead_ticks)),
                format!("{:.2}", median(|round| round.rebuilds)),
                format!("{:.2}", median(|round| round.overtaken)),
                rounds
                    .iter()
                    .map(|round| round.fills)
                    .sum::<u64>()
                    .to_string(),
                rounds
                    .iter()
                    .map(|round| round.heals)
                    .sum::<u64>()
                    .to_string(),
            ]);
            bars.push(((*label).to_owned(), vec![p99.median]));
        }
        self.table(&table);
        let first = rows
            .first()
            .map(|(_, rounds)| rounds.iter().map(|round| round.p99_ms));
        self.reached
            .note(&goals::GAME_THREAD, first.and_then(Spread::of));
        self.reached.limit(
            &goals::GAME_THREAD,
            "The confirmed ticks of a turn, a step for each new tick and the picture stay in the game's thread.".to_owned(),
        );
        let svg = plot::bars(
            "A frame of the game's thread",
            "ms, p99",
            &["Twinstep"],
            &bars,
        );
        self.plot("thread", "a frame of the game's thread", svg);
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
