//! The cost of a server per player, beside renet and a UDP echo; the maximum number of players per core; idle matches;
//! system calls.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::effort::Effort;
use crate::game::{PLAYERS, Sticks};
use crate::host::KeyFolder;
use crate::peers::{EchoPlayer, RenetPlayer};
use crate::players::{JOIN_PATIENCE, OnLoss, Players};
use crate::process::{Failed, datagrams_sent};
use crate::rows::{Row, Section, Spread};
use crate::seated::Seats;
use crate::served::Kind::{self, Echo, Renet, Twinstep};
use crate::served::Served;
use crate::subject::Player;

const KINDS: [Kind; 3] = [Twinstep, Renet, Echo];

/// A round is discarded if more than this percentage of the players' frames were late.
const LATE_FRAMES_MAX: f64 = 10.0;
/// A core counts as full when the p99.9 lateness of its ticks reaches this.
const LATE_US_MAX: f64 = 2_000.0;

/// The measurements of one round, indexed by the constants below.
type Round = [f64; 10];
/// µs of server CPU per player and tick, and the kernel's part.
const CPU: usize = 0;
const KERNEL: usize = 1;
/// µs of client CPU per player and frame.
const OWN: usize = 2;
const DATAGRAMS: usize = 3;
const MEMORY: usize = 4;
const ALLOCATIONS: usize = 5;
/// Late inputs and late frames, in percent.
const FILLS: usize = 6;
const LATE: usize = 7;
/// Lateness of ticks, in µs.
const P999: usize = 8;
const WORST: usize = 9;

/// The rows written for each number of players: name, unit, quantity, and the peer with its quantity. Twinstep with the
/// same quantity means no peer.
const ROWS: [(&str, &str, usize, Kind, usize); 12] = [
    ("server CPU per player and tick", "µs", CPU, Renet, CPU),
    ("the same beside an echo", "µs", CPU, Echo, CPU),
    ("the kernel's part of it", "µs", KERNEL, Renet, KERNEL),
    (LOAD_ROW, "µs", OWN, Twinstep, CPU),
    ("a player's CPU per frame", "µs", OWN, Renet, OWN),
    (RATE_ROW, "", DATAGRAMS, Echo, DATAGRAMS),
    ("server memory per player", "KB", MEMORY, Renet, MEMORY),
    (ALLOCATIONS_ROW, "", ALLOCATIONS, Renet, ALLOCATIONS),
    ("late inputs", "%", FILLS, Twinstep, FILLS),
    ("players' late frames", "%", LATE, Renet, LATE),
    ("ticks late, p99.9", "µs", P999, Twinstep, P999),
    ("ticks late, worst", "µs", WORST, Twinstep, WORST),
];
const LOAD_ROW: &str = "load generator ÷ server, CPU per player";
const RATE_ROW: &str = "datagrams per second of server CPU";
const ALLOCATIONS_ROW: &str = "server allocations per datagram";

fn seated(
    kind: Kind,
    players: usize,
    keys: &KeyFolder,
    sticks: Sticks,
) -> Result<(Served, Players), Failed> {
    let served = Served::start(kind, players, &keys.file())?;
    let server = served.address;
    let seats = Seats::new(server, &keys.key, sticks);
    let dial = |n| -> Result<Box<dyn Player>, Failed> {
        match kind {
            Twinstep => seats.dial(n),
            Renet => Ok(Box::new(RenetPlayer::dial(server, n)?)),
            Echo => Ok(Box::new(EchoPlayer::dial(server)?)),
        }
    };
    let mut crowd = Players::new(players, OnLoss::Fail, dial)?;
    match crowd.join(JOIN_PATIENCE)? {
        inside if inside < players => {
            Err(format!("{inside} of {players} players were let in").into())
        }
        _ => Ok((served, crowd)),
    }
}

fn round(kind: Kind, players: usize, effort: &Effort, keys: &KeyFolder) -> Result<Round, Failed> {
    let (mut served, mut crowd) = seated(kind, players, keys, Sticks::Moving)?;
    crowd.play(effort.warm_up)?;
    let sent = datagrams_sent();
    let before = crowd.sample(&mut served)?;
    let played = crowd.play(effort.time)?;
    let after = crowd.sample(&mut served)?;
    let sent = datagrams_sent() - sent;
    let empty_kb = served.empty.resident_kb;
    served.end()?;
    let (was, is) = (&before.done, &after.done);
    if is.desyncs > 0 {
        return Err(format!("{} turns differed between clients and server", is.desyncs).into());
    }
    // If other work kept the players' core busy, or there are too many players for it, the server was not fully loaded.
    let late = played.late_share() * 100.0;
    if late > LATE_FRAMES_MAX {
        return Err(format!("{late:.0} % of the players' frames were late").into());
    }
    // renet does not count its datagrams. The machine's count includes other processes.
    let datagrams = match is.datagrams - was.datagrams {
        0 => sent.max(1) as f64,
        counted => counted as f64,
    };
    let cpu = after.cpu_since(&before);
    let ticks = (is.player_ticks - was.player_ticks).max(1) as f64;
    let lateness = is.lateness.unwrap_or_default();
    Ok([
        cpu.total_us() as f64 / ticks,
        cpu.system_us as f64 / ticks,
        played.us_a_frame(),
        datagrams / (cpu.total_us().max(1) as f64 / 1e6),
        after.resident_kb.saturating_sub(empty_kb) as f64 / players as f64,
        after.allocations_since(&before) as f64 / datagrams,
        (is.fills - was.fills) as f64 / ticks * 100.0,
        late,
        lateness.p999_us,
        lateness.worst_us,
    ])
}

struct Servers<'e> {
    effort: &'e Effort,
    keys: KeyFolder,
    section: Section,
    /// For each number of players: the median server CPU and the worst p99.9 lateness of ticks.
    carried: Vec<(usize, f64, f64)>,
}

pub(crate) fn measure(effort: &Effort) -> Result<Section, Failed> {
    let about = "Matches of four at 60 Hz with a state of 64 bytes, controls that change at every tick, over loopback. The server has a \
                 core of its own, the players have another one. Of our players all but the first four simulate nothing; renet and the \
                 echo have no game at all.";
    let mut servers = Servers {
        effort,
        keys: KeyFolder::new()?,
        section: Section::new("A server beside renet and a UDP echo, over sockets", about),
        carried: Vec::new(),
    };
    for players in &effort.players {
        servers.play(*players, &KINDS, effort.socket_rounds);
    }
    if !effort.steps.is_empty() {
        servers.capacity();
        if let Err(why) = servers.idle() {
            servers.note(format!("Silent matches were not measured: {why}."));
        }
        if let Err(why) = servers.system_calls() {
            servers.note(format!("System calls were not counted: {why}."));
        }
    }
    Ok(servers.section)
}

impl Servers<'_> {
    fn add(&mut self, name: &str, unit: &str, value: f64) {
        self.section.rows.push(Row::one(name, unit, value));
    }

    fn note(&mut self, why: String) {
        self.section.notes.push(why);
    }

    /// Runs servers of these kinds alternately, each with this many players. One kind must be Twinstep.
    fn play(&mut self, players: usize, kinds: &[Kind], rounds: usize) {
        let mut counted: Vec<Vec<Round>> = Vec::new();
        for _ in 0..rounds {
            let round = |kind: &Kind| round(*kind, players, self.effort, &self.keys);
            // A round counts for all kinds or for none, so that ratios compare the same minutes.
            match kinds.iter().map(round).collect::<Result<_, Failed>>() {
                Ok(round) => counted.push(round),
                Err(why) => {
                    self.note(format!("{players} players, a round does not count: {why}."));
                }
            }
        }
        let of = |kind: Kind, at: usize| -> Option<Vec<f64>> {
            let kind = kinds.iter().position(|one| *one == kind)?;
            Some(counted.iter().map(|round| round[kind][at]).collect())
        };
        for (name, unit, at, peer, its) in ROWS {
            let ours = of(Twinstep, at).unwrap_or_default();
            let row = Row::new(format!("{name}, {players} players"), unit, ours);
            let theirs = of(peer, its).filter(|_| (peer, its) != (Twinstep, at));
            self.section.rows.push(match theirs {
                Some(theirs) => row.beside(&format!("{peer:?}").to_lowercase(), theirs),
                None => row,
            });
        }
        let spread = |at| of(Twinstep, at).and_then(|rounds| Spread::of(&rounds));
        if let (Some(cpu), Some(late)) = (spread(CPU), spread(P999)) {
            self.carried.push((players, cpu.median, late.max));
        }
    }

    /// Raises the number of players on one core until ticks are late.
    fn capacity(&mut self) {
        for players in &self.effort.steps {
            self.play(*players, &[Twinstep], 1);
            match self.carried.last() {
                Some((carried, _, late)) if carried == players && *late < 2.0 * LATE_US_MAX => {}
                _ => break,
            }
        }
        let carried = &self.carried;
        let in_time = carried.iter().filter(|(.., late)| *late < LATE_US_MAX);
        let most = in_time.map(|(players, ..)| *players).max().unwrap_or(0);
        let counts = carried.iter().filter(|one| one.0 <= most.max(100));
        let us: Vec<f64> = counts.map(|(_, us, _)| *us).collect();
        let name = "players on one core until p99.9 of ticks is 2 ms late";
        self.add(name, "", most as f64);
        if let Some(us) = Spread::of(&us) {
            let name = "server CPU per player, most ÷ least, from 12 players on";
            self.add(name, "", us.max / us.min);
        }
    }

    fn idle(&mut self) -> Result<(), Failed> {
        let players = self.effort.idle_matches * PLAYERS;
        let (mut served, mut crowd) = seated(Twinstep, players, &self.keys, Sticks::Still)?;
        crowd.play(Duration::from_secs(1))?;
        // Silent players count as dropped after two seconds and get fewer packets after four. Their sessions end after
        // ten.
        thread::sleep(Duration::from_millis(4_500));
        let before = served.sample()?;
        thread::sleep(self.effort.time.min(Duration::from_secs(5)));
        let after = served.sample()?;
        served.end()?;
        let ticks = (after.done.player_ticks - before.done.player_ticks) / PLAYERS as u64;
        let us = after.cpu_since(&before).total_us() as f64 / ticks.max(1) as f64;
        let name = "idle match of 4 silent players, server CPU a tick";
        self.add(name, "µs", us);
        Ok(())
    }

    fn system_calls(&mut self) -> Result<(), Failed> {
        let players = self.effort.players[self.effort.players.len() / 2];
        let (mut served, mut crowd) = seated(Twinstep, players, &self.keys, Sticks::Moving)?;
        crowd.play(self.effort.warm_up)?;
        let table = self.keys.file().with_file_name("strace");
        // Sampled before and after strace, because a server stopped at each call responds late.
        let before = crowd.sample(&mut served)?;
        let mut strace = Command::new("timeout")
            .args(["-s", "INT", "2", "strace", "-c", "-f", "-o"])
            .arg(&table)
            .args(["-p", &served.id().to_string()])
            .stderr(Stdio::null())
            .spawn()?;
        while strace.try_wait()?.is_none() {
            crowd.play(Duration::from_millis(20))?;
        }
        let after = crowd.sample(&mut served)?;
        served.end()?;
        let counted = calls(&std::fs::read_to_string(&table)?);
        if counted.is_empty() {
            return Err("strace may not look at other processes here".into());
        }
        let datagrams = (after.done.datagrams - before.done.datagrams).max(1) as f64;
        for (name, calls) in counted.into_iter().take(6) {
            let name = format!("system calls per datagram, {players} players: {name}");
            self.add(&name, "", calls / datagrams);
        }
        Ok(())
    }
}

fn calls(table: &str) -> Vec<(String, f64)> {
    let row = |line: &str| -> Option<(String, f64)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (first, name) = (words.first()?, words.last()?);
        // Columns: % time, seconds, usecs/call, calls, errors if any, name.
        first.parse::<f64>().ok()?;
        let calls = words.get(3)?.parse().ok()?;
        (*name != "total" && words.len() >= 5).then(|| ((*name).to_owned(), calls))
    };
    let mut rows: Vec<(String, f64)> = table.lines().filter_map(row).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strace_tables_are_parsed_with_and_without_an_error_count() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n \
                     60.00    0.100000           5       200       100 recvfrom\n \
                     40.00    0.050000           5      1000           futex\n\
                     100.00    0.150000           5      1200       100 total\n";
        let counted = calls(table);
        let counted = counted.iter().map(|(name, calls)| (name.as_str(), *calls));
        let counted: Vec<_> = counted.collect();
        assert_eq!(counted, [("futex", 1_000.0), ("recvfrom", 200.0)]);
        assert!(calls("strace: attach: Operation not permitted").is_empty());
    }
}
