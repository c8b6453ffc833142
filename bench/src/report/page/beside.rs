//! What was measured of Twinstep beside others: ggrs in memory; renet and an echo over sockets.

use super::Page;
use crate::report::goals;
use crate::report::memory::{Beside, Bytes, Pair};
use crate::report::plot;
use crate::report::sockets::{PLAYERS_LATE_MAX, Round, Together};
use crate::simulation::PLAYERS;
use crate::spread::{Spread, digits};
use crate::table::Table;

impl Page {
    pub(in crate::report) fn beside_ggrs(&mut self, beside: &Beside) {
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
                "A client steps two worlds, digests one, and reads and writes its packets in a frame: `quick` says how much each takes. \
                 The digest has a fifth at 4 KB, and no other function more than a tenth. Tried: digests whose loop keeps its place in \
                 registers (a quarter of a frame of 64 KB), and of larger worlds fewer of them; inlined reading and writing, 64 bits \
                 for times, inputs and rosters as sets (6 %, and 16 % with a rebuild at every turn). Boxes for frames on their way \
                 between lists changed nothing; fewer instructions by arrays as loops, or by building for size, cost time (NOTES.md)."
                    .to_owned(),
            );
        }
        for (goal, pair) in goals::AGAIN.iter().zip(&beside.again) {
            self.reached
                .note(goal, Spread::of_ratios(&pair.ours, &pair.theirs));
            self.reached.limit(
                goal,
                "One clone of the world is in it where ggrs makes eight: of a large world an eighth of its time, 0.125, is spent \
                 before the first step. Any step may touch any field, so no less than the whole is cloned. Each assumed frame is put \
                 together from what is known of each player. Tried: inputs and rosters as sets, which spares a third. A copy of \
                 exactly 4,096 bytes takes ten times as long where a process happens to have put both lists a few bytes from a multiple \
                 of 4,096 apart (NOTES.md)."
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

    pub(in crate::report) fn beside_renet(&mut self, together: &Together) {
        if self.cpu[0].is_empty() {
            self.say("## A server, over sockets");
        }
        let players = together.players;
        self.say(&format!(
            "{players} players in matches of {PLAYERS}, on one core; those who play are on another. Of ours all but the first four simulate \
             nothing, so that they leave more of what the two cores share to the server (NOTES.md); renet's and the echo's players \
             have nothing to simulate.",
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
        let (goal, generator) = match players {
            400 => (goals::CPU_400, goals::GENERATOR_400),
            _ => (goals::CPU_100, goals::GENERATOR_100),
        };
        let counted = |values: &[f64]| -> Vec<f64> {
            let both = values.iter().zip(&together.counts);
            both.filter_map(|(value, counts)| counts.then_some(*value))
                .collect()
        };
        let ratio = Spread::of_ratios(&counted(&us[0]), &counted(&us[1]));
        self.reached.note(&goal, ratio);
        let theirs = values(&together.ours, |round| round.players_us);
        let ratio = Spread::of_ratios(&counted(&theirs), &counted(&us[0]));
        self.reached.note(&generator, ratio);
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
                     threads are the rest. What was tried stands in NOTES.md under Servers.",
                    round.us, round.kernel_us
                ),
            );
            self.reached.limit(
                &generator,
                "Each player has a socket of its own and sends twice as often as it is told something; over loopback the sender's \
                 call also delivers what it sends (NOTES.md)."
                    .to_owned(),
            );
            self.reached.limit(
                &goals::PACKETS,
                format!(
                    "Of the server's time {:.0} % is the kernel's; a match's work for its datagrams is in the rest. Tried: several \
                     datagrams at one call of the kernel, which spares it a sixth of its time for each (NOTES.md).",
                    round.kernel_us / round.us * 100.0
                ),
            );
            self.reached.limit(
                &goals::MEMORY,
                "Sessions, their windows of inputs and the match's worlds; what the allocator keeps is in it.".to_owned(),
            );
            self.reached.limit(
                &goals::ALLOCATIONS_HOST,
                "All threads are counted, the matches' too. laminar makes three lists of bytes for each packet that goes and one for \
                 each that comes, 1.67 at a turn of two ticks. What came is handed on in laminar's own; beside that there are \
                 blocks of the channels between threads, one for 31 packets, and what a host does once a second (NOTES.md)."
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
}
