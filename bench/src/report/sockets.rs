//! The part with sockets: our host, renet and a plain echo in turns, how many players a core carries, and a match in which
//! nobody speaks.

use std::process::Command;
use std::time::Duration;

use super::effort::Effort;
use crate::host::KeyFolder;
use crate::players::{Crowd, JOIN_PATIENCE, Played, Player};
use crate::process::{Failed, datagrams_sent};
use crate::seated::Seats;
use crate::served::{Kind, Lateness, Sample, Served};
use crate::simulation::{PLAYERS, Sticks};
use crate::{echo, peer_renet};

/// Where a larger share of the players' frames began late, others kept their core busy, or they are too many for it: then a
/// round says nothing of the server.
pub(super) const PLAYERS_LATE_MAX: f64 = 0.1;

/// What a server did while players played on it.
pub(super) struct Round {
    /// Server CPU per player and tick, in microseconds, and the kernel's part of it.
    pub(super) us: f64,
    pub(super) kernel_us: f64,
    /// The same of the players' process.
    pub(super) players_us: f64,
    /// Of all the players' frames, those that began late or were left out.
    pub(super) players_late: f64,
    /// Datagrams both ways, per player and tick, and per second of the server's CPU.
    pub(super) datagrams: f64,
    pub(super) datagrams_a_cpu_second: f64,
    /// Memory per player, in KB.
    pub(super) kb: f64,
    pub(super) allocations_a_datagram: f64,
    /// Of all inputs, those that came too late.
    pub(super) fills: f64,
    pub(super) lateness: Option<Lateness>,
    /// Of a core.
    pub(super) load: f64,
}

/// Players on a server of some kind.
fn crowd(
    kind: Kind,
    players: usize,
    served: &Served,
    keys: &KeyFolder,
    sticks: Sticks,
) -> Result<Crowd, Failed> {
    let server = served.address;
    let seats = Seats::new(server, &keys.key, sticks);
    Crowd::new(players, |n| -> Result<Box<dyn Player>, Failed> {
        match kind {
            Kind::Twinstep => seats.dial(n),
            Kind::Renet => Ok(Box::new(peer_renet::Played::dial(server, n)?)),
            Kind::Echo => Ok(Box::new(echo::Echoed::dial(server)?)),
        }
    })
}

/// Plays on a server of some kind.
fn round(
    kind: Kind,
    players: usize,
    (warm_up, time): (Duration, Duration),
    keys: &KeyFolder,
) -> Result<Round, Failed> {
    let mut served = Served::start(kind, players, &keys.file())?;
    let mut crowd = crowd(kind, players, &served, keys, Sticks::Moving)?;
    let inside = crowd.join(JOIN_PATIENCE)?;
    if inside < players {
        return Err(format!("{inside} of {players} players were let in").into());
    }
    crowd.play(warm_up)?;
    let sent = datagrams_sent();
    let before = crowd.sample(&mut served)?;
    let played = crowd.play(time)?;
    let after = crowd.sample(&mut served)?;
    let sent = datagrams_sent() - sent;
    let empty = served.empty.clone();
    served.end()?;
    match after.done.desyncs {
        0 => {}
        desyncs => {
            return Err(format!("{desyncs} turns differed between clients and server").into());
        }
    }
    Ok(Round::of(
        players,
        (&empty, &before, &after),
        &played,
        (sent, time),
    ))
}

impl Round {
    fn of(
        players: usize,
        (empty, before, after): (&Sample, &Sample, &Sample),
        played: &Played,
        (sent, time): (u64, Duration),
    ) -> Round {
        let (was, is) = (&before.done, &after.done);
        let ticks = (is.player_ticks - was.player_ticks).max(1) as f64;
        let cpu = after.cpu_since(before);
        // renet does not count; then the machine's own count must do.
        let datagrams = match is.datagrams - was.datagrams {
            0 => sent,
            counted => counted,
        } as f64;
        let resident = after.usage.resident_kb;
        Round {
            us: cpu.total_us() as f64 / ticks,
            kernel_us: cpu.system_us as f64 / ticks,
            players_us: played.cpu.total_us() as f64 / played.frames.max(1) as f64,
            players_late: played.late_share(),
            datagrams: datagrams / ticks,
            datagrams_a_cpu_second: datagrams / (cpu.total_us().max(1) as f64 / 1e6),
            kb: resident.saturating_sub(empty.usage.resident_kb) as f64 / players as f64,
            allocations_a_datagram: after.allocations_since(before) as f64 / datagrams.max(1.0),
            fills: (is.fills - was.fills) as f64 / ticks,
            lateness: is.lateness,
            load: cpu.total_us() as f64 / 1e6 / time.as_secs_f64(),
        }
    }
}

/// The three kinds with so many players, in turns.
pub(super) struct Together {
    pub(super) players: usize,
    pub(super) ours: Vec<Round>,
    pub(super) renet: Vec<Round>,
    pub(super) echo: Vec<Round>,
    /// Which of these rounds say something: in the others the players could not keep up.
    pub(super) counts: Vec<bool>,
    /// What did not come off.
    pub(super) failed: Vec<String>,
}

/// Our host, renet and the echo, in turns.
pub(super) fn beside_renet(effort: &Effort, players: usize, keys: &KeyFolder) -> Together {
    let mut together = Together {
        players,
        ours: Vec::new(),
        renet: Vec::new(),
        echo: Vec::new(),
        counts: Vec::new(),
        failed: Vec::new(),
    };
    for _ in 0..effort.rounds.min(3) {
        let kinds = [Kind::Twinstep, Kind::Renet, Kind::Echo];
        let rounds = kinds.map(|kind| {
            let measured = round(kind, players, effort.play, keys);
            measured.map_err(|why| format!("{kind:?}, {players} players: {why}"))
        });
        // A round counts for all three or for none: ratios are of the same minutes.
        match rounds {
            [Ok(ours), Ok(renet), Ok(echo)] => {
                let late = [&ours, &renet, &echo].map(|round| round.players_late);
                together
                    .counts
                    .push(late.iter().all(|late| *late <= PLAYERS_LATE_MAX));
                together.ours.push(ours);
                together.renet.push(renet);
                together.echo.push(echo);
            }
            rounds => {
                let failed = rounds.into_iter().filter_map(Result::err);
                together.failed.extend(failed);
            }
        }
    }
    together
}

/// What a core does with so many players.
pub(super) struct Carried {
    pub(super) players: usize,
    pub(super) round: Result<Round, String>,
}

impl Carried {
    /// All played, and no more than one tick in a thousand was 2 ms late.
    pub(super) fn holds(&self) -> bool {
        let lateness = self.round.as_ref().ok().and_then(|round| round.lateness);
        lateness.is_some_and(|late| late.p999_us < 2_000.0)
    }
}

/// More and more players on one core, until it is too much for two steps in a row.
pub(super) fn capacity(effort: &Effort, keys: &KeyFolder) -> Vec<Carried> {
    let mut steps: Vec<Carried> = Vec::new();
    for players in effort.steps {
        let measured = round(Kind::Twinstep, *players, effort.play, keys);
        steps.push(Carried {
            players: *players,
            round: measured.map_err(|why| why.to_string()),
        });
        let too_much = steps.iter().rev().take_while(|step| !step.holds());
        if too_much.count() >= 2 {
            break;
        }
    }
    steps
}

/// Microseconds of server CPU a tick of a match whose four players have seats and say nothing.
pub(super) fn idle(effort: &Effort, keys: &KeyFolder) -> Result<f64, Failed> {
    let players = effort.idle_matches * PLAYERS;
    let mut served = Served::start(Kind::Twinstep, players, &keys.file())?;
    let mut crowd = crowd(Kind::Twinstep, players, &served, keys, Sticks::Still)?;
    let inside = crowd.join(JOIN_PATIENCE)?;
    if inside < players {
        return Err(format!("{inside} of {players} players were let in").into());
    }
    crowd.play(Duration::from_secs(1))?;
    // Silent players count as dropped after two seconds, are told less after four, and their sessions end after ten.
    std::thread::sleep(effort.silence);
    let before = served.sample()?;
    std::thread::sleep(effort.play.1.min(Duration::from_secs(6)));
    let after = served.sample()?;
    served.end()?;
    drop(crowd);
    let ticks = (after.done.player_ticks - before.done.player_ticks) / PLAYERS as u64;
    Ok(after.cpu_since(&before).total_us() as f64 / ticks.max(1) as f64)
}

/// Calls of the kernel for each datagram, as strace counts them; or why it did not.
pub(super) fn syscalls(
    effort: &Effort,
    keys: &KeyFolder,
) -> Result<(usize, Vec<(String, f64)>), Failed> {
    let players = effort.together[0];
    let mut served = Served::start(Kind::Twinstep, players, &keys.file())?;
    let mut crowd = crowd(Kind::Twinstep, players, &served, keys, Sticks::Moving)?;
    let inside = crowd.join(JOIN_PATIENCE)?;
    if inside < players {
        return Err(format!("{inside} of {players} players were let in").into());
    }
    crowd.play(effort.play.0)?;
    let table = keys.file().with_file_name("strace");
    let seconds = effort.play.1.as_secs().clamp(1, 3);
    // Not while strace looks: a server that is stopped at each call answers late.
    let before = crowd.sample(&mut served)?;
    let mut strace = Command::new("timeout")
        .args([
            "-s",
            "INT",
            &seconds.to_string(),
            "strace",
            "-c",
            "-f",
            "-p",
        ])
        .arg(served.id().to_string())
        .arg("-o")
        .arg(&table)
        .stderr(std::process::Stdio::null())
        .spawn()?;
    while strace.try_wait()?.is_none() {
        crowd.play(Duration::from_millis(20))?;
    }
    let after = crowd.sample(&mut served)?;
    served.end()?;
    let counted = calls(&std::fs::read_to_string(&table)?);
    if counted.is_empty() {
        return Err("strace counted nothing: it may not look at other processes here".into());
    }
    let datagrams = (after.done.datagrams - before.done.datagrams).max(1) as f64;
    let each = counted
        .into_iter()
        .map(|(name, calls)| (name, calls / datagrams));
    Ok((players, each.collect()))
}

/// The calls in strace's table, the most frequent first.
fn calls(table: &str) -> Vec<(String, f64)> {
    let row = |line: &str| -> Option<(String, f64)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (first, name) = (words.first()?, words.last()?);
        // % time, seconds, usecs/call, calls, and errors if there were any, then the name.
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
    fn strace_s_table_is_read_with_and_without_errors() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n \
                     60.00    0.100000           5       200       100 recvfrom\n \
                     40.00    0.050000           5      1000           futex\n\
                     100.00    0.150000           5      1200       100 total\n";
        let expected = [
            ("futex".to_owned(), 1_000.0),
            ("recvfrom".to_owned(), 200.0),
        ];
        assert_eq!(calls(table), expected);
        assert!(calls("strace: attach: Operation not permitted").is_empty());
    }
}
