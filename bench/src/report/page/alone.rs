//! What was measured of Twinstep alone: how many players a core carries, what idles, what a game's thread spends.

use super::Page;
use crate::crowd;
use crate::process::Failed;
use crate::report::goals;
use crate::report::plot::{self, Line};
use crate::report::sockets::Carried;
use crate::served::Lateness;
use crate::size::{self, Untouched};
use crate::spread::{Spread, digits};
use crate::table::Table;

impl Page {
    /// More and more players; and how late a thread is on the server's core that only sleeps.
    pub(in crate::report) fn capacity(&mut self, steps: &[Carried], sleeper: Option<Lateness>) {
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
            let floor = sleeper.map(|late| {
                format!(
                    " A thread that only sleeps was late by {:.2} ms at p99.9 on the same core, without any load.",
                    late.p999_us / 1e3
                )
            });
            let why = why + &floor.unwrap_or_default();
            self.reached.limit(&goals::PLAYERS_A_CORE, why);
        }
        self.reached.limit(
            &goals::LINEAR,
            "What a process costs beside its players (timers, sleeping, waking) is shared by few at the beginning: from 100 players \
             on all rows are alike. Tried: workers shared by all matches, moments of a tick spread over it, no wake-up of the \
             socket's thread while there is much to do; and, taken back, no thread of its own for the socket (NOTES.md)."
                .to_owned(),
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
        if let Some(late) = sleeper {
            let [p50, p99, p999, worst] = [late.p50_us, late.p99_us, late.p999_us, late.worst_us]
                .map(|us| format!("{:.2}", us / 1e3));
            self.say(&format!(
                "What the machine does by itself: a thread on the server's core that only sleeps, 2.08 ms at a time, {} times, when \
                 nobody played, was late by {p50} ms at p50, {p99} at p99, {p999} at p99.9, {worst} at worst.",
                late.seals
            ));
        }
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

    pub(in crate::report) fn idle(&mut self, us: Result<f64, Failed>) {
        match us {
            Ok(us) => {
                self.say(&format!("A match whose four players say nothing takes {us:.1} µs a tick of the server's CPU."));
                self.reached.note_one(&goals::IDLE, us);
                self.reached.limit(
                    &goals::IDLE,
                    "Each match is still played and looked at twice a second, and its silent players are told that they are not \
                     forgotten. What was tried stands in NOTES.md under Servers."
                        .to_owned(),
                );
            }
            Err(why) => self.say(&format!("Silent matches were not measured: {why}.")),
        }
    }

    pub(in crate::report) fn syscalls(
        &mut self,
        calls: Result<(usize, Vec<(String, f64)>), Failed>,
    ) {
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

    pub(in crate::report) fn worlds(&mut self, rates: &[f64]) {
        self.say("## A whole world, and a game's thread");
        let spread = Spread::of(rates.iter().copied());
        self.reached.note(&goals::WORLD, spread);
        self.reached.limit(
            &goals::WORLD,
            "Nine worlds are stepped, drawn and digested: the server's, and of each of four clients a confirmed and a predicted one, \
             which is rebuilt over the whole way to the server. A quarter is pictures, as much the game's own steps, the rest is \
             spread. Tried: only poses out of order are sorted, by their keys alone, and merged where they are read; digests keep \
             their place in registers; who is there, and what they hold, are sets."
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

    pub(in crate::report) fn large_state(&mut self, measured: &[Untouched; 3]) {
        self.table(&size::table(measured));
        let [least, .., most] = measured;
        let values = [
            most.game.0 - least.game.0,
            most.client.0 - least.client.0,
            most.game.1.max(most.client.1) / 1e3,
        ];
        for (goal, value) in goals::LARGE.iter().zip(values) {
            self.reached.note_one(goal, value);
            self.reached.limit(
                goal,
                "Once a second all of it is hashed, since it is a plain list; in chunks it is not (NOTES.md).".to_owned(),
            );
        }
    }

    pub(in crate::report) fn game_thread(&mut self, rows: &[(&'static str, Vec<crowd::Round>)]) {
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
}
