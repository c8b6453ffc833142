//! What a server process costs per player: real UDP, tickets and encryption, matches of four at 60 Hz, a state of 64 bytes.
//!
//! ```text
//!  host ──starts──▶ serve (a process of its own) ◀── UDP ── load (this process: players in turns, on one thread)
//!                    └── samples of its CPU time, memory and switches, one for each line on its input
//! ```
//!
//! Only the server's process is counted, with what the kernel does for it. The players are whole clients, so that the
//! server does what it does for players; they are advanced at moments spread over a frame, as the players of many machines
//! are.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::fmt::{self, Write as _};
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use twinstep_client::{Client, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::{Key, Never, PlayerId, Simulation};
use twinstep_server::host::{Host, HostConfig};
use twinstep_server::{Decision, Look, Match, MatchConfig};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::simulation::{Blob, PLAYERS, Pads, Sticks};

const STATE_BYTES: usize = 64;
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// Until everybody plays, and clocks have settled.
const WARM_UP: Duration = Duration::from_secs(4);

type Failed = Box<dyn std::error::Error>;

/// What a server process has used up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sample {
    /// By its own code, in microseconds.
    user_us: u64,
    /// By the kernel for it.
    system_us: u64,
    /// Of memory, now.
    resident_kb: u64,
    threads: u64,
    /// How often its threads went to sleep.
    sleeps: u64,
    /// Ticks that all matches sealed.
    ticks: u64,
    /// Inputs that did not come in time.
    fills: u64,
    /// Turns that clients found different.
    desyncs: u64,
}

/// Serves matches of four until its input ends; prints the address, then a [`Sample`] for each line that it reads.
pub(crate) fn serve(listen: SocketAddr, matches: usize, key_file: &Path) -> Result<(), Failed> {
    let key = TicketKey::load(key_file)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let config = HostConfig {
        sessions_max: matches * PLAYERS,
        ..HostConfig::new(Blob::NAME, listen, key)
    };
    let host = runtime.block_on(Host::start(config))?;
    let mut handles = Vec::new();
    for id in 0..matches as u64 {
        let config = MatchConfig {
            players_max: PLAYERS,
            ..MatchConfig::action()
        };
        let nothing =
            |_: &Look<'_, Blob>, _: Key, never: &Never| -> Decision<Never> { match *never {} };
        let game = Match::new(config, Blob::new(STATE_BYTES), Arc::new(()), nothing)?;
        handles.push(runtime.block_on(host.add_match(id, game, None))?);
    }
    println!("{}", host.local_addr());
    for line in std::io::stdin().lines() {
        line?;
        let mut sample = used()?;
        for handle in &handles {
            let look = handle.inspect(|game| {
                let fills = (0..PLAYERS as u8).map(|n| game.seat_stats(PlayerId(n)).fills);
                (
                    game.world().tick().0,
                    fills.sum::<u64>(),
                    game.stats().desyncs,
                )
            });
            let (tick, fills, desyncs) = runtime.block_on(look)?;
            sample.ticks += u64::from(tick);
            sample.fills += fills;
            sample.desyncs += desyncs;
        }
        println!("{}", serde_json::to_string(&sample)?);
    }
    Ok(())
}

/// What this process has used up, as Linux tells it.
fn used() -> Result<Sample, Failed> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may hold anything: state is the first field, so times are the 12th and the 13th.
    let fields: Vec<&str> = stat[stat.rfind(')').ok_or("no name in /proc/self/stat")? + 1..]
        .split_whitespace()
        .collect();
    // Linux counts in hundredths of a second there, whatever the kernel's own clock.
    let centiseconds =
        |at: usize| -> Result<u64, Failed> { Ok(fields[at].parse::<u64>()? * 10_000) };
    let mut sample = Sample {
        user_us: centiseconds(11)?,
        system_us: centiseconds(12)?,
        threads: fields[17].parse()?,
        ..Sample::default()
    };
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_whitespace().nth(1));
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let status = std::fs::read_to_string("/proc/self/status")?;
    sample.resident_kb = number(&status, "VmRSS:");
    for task in std::fs::read_dir("/proc/self/task")? {
        let status = std::fs::read_to_string(task?.path().join("status")).unwrap_or_default();
        sample.sleeps += number(&status, "voluntary_ctxt_switches:");
    }
    Ok(sample)
}

/// Players on a server, in turns.
struct Crowd {
    began: Instant,
    players: Vec<(Client<Blob>, Pads, Duration)>,
}

impl Crowd {
    fn dial(players: usize, server: SocketAddr, key: &TicketKey) -> Result<Crowd, Failed> {
        let now_unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let began = Instant::now();
        let dial = |n: usize| -> Result<_, Failed> {
            let ticket = Ticket::issue(
                key,
                &TicketSpec {
                    game: Blob::NAME,
                    wire_version: u32::from(WIRE_VERSION),
                    identity: &format!("player-{n}"),
                    match_id: (n / PLAYERS) as u64,
                    seats: 1,
                    servers: &[server],
                    life: Duration::from_secs(3_600),
                    timeout: Duration::from_secs(10),
                    now_unix,
                },
            )?;
            let config = SessionConfig::new(Arc::new(())).start(Blob::new(STATE_BYTES));
            let due = FRAME * n as u32 / players as u32;
            Ok((
                Client::connect(&ticket, config)?,
                Pads::new(Sticks::Moving, n),
                due,
            ))
        };
        let players = (0..players).map(dial).collect::<Result<_, Failed>>()?;
        Ok(Crowd { began, players })
    }

    /// Plays for so long.
    fn play(&mut self, time: Duration) -> Result<(), Failed> {
        let until = self.began.elapsed() + time;
        while self.began.elapsed() < until {
            let now = self.began.elapsed();
            for (client, pads, due) in &mut self.players {
                if *due <= now {
                    // Who was late by more than a frame does not hurry after.
                    *due = (*due + FRAME).max(now);
                    client.advance(|_| pads.next())?;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// How many have a seat.
    fn seated(&self) -> usize {
        let has = |client: &Client<Blob>| !client.session.seats().is_empty();
        self.players.iter().filter(|one| has(&one.0)).count()
    }
}

/// Plays on a server that [`serve`]s elsewhere.
pub(crate) fn load(
    players: usize,
    server: SocketAddr,
    key_file: &Path,
    time: Duration,
) -> Result<(), Failed> {
    let mut crowd = Crowd::dial(players, server, &TicketKey::load(key_file)?)?;
    crowd.play(time)?;
    println!("{} of {players} players have a seat", crowd.seated());
    Ok(())
}

/// Starts a server process, plays on it, and tells what that cost it.
pub(crate) fn run(players: usize, time: Duration, out: &mut String) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("twinstep-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure(players, time, &folder.join("match.key"));
    std::fs::remove_dir_all(&folder)?;
    show(players, time, &measured?, out)?;
    Ok(())
}

struct Measured {
    before: Sample,
    after: Sample,
    empty: Sample,
}

fn measure(players: usize, time: Duration, key_file: &Path) -> Result<Measured, Failed> {
    let key = TicketKey::generate();
    key.save(key_file)?;
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", "--listen", "127.0.0.1:0", "--matches"])
        .arg(players.div_ceil(PLAYERS).to_string())
        .arg("--key-file")
        .arg(key_file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut ask = server.stdin.take().expect("piped");
    let mut lines = BufReader::new(server.stdout.take().expect("piped")).lines();
    let mut measured = || -> Result<Measured, Failed> {
        let mut next = || {
            lines
                .next()
                .ok_or("the server ended")?
                .map_err(Failed::from)
        };
        let address: SocketAddr = next()?.parse()?;
        let mut sample = || -> Result<Sample, Failed> {
            writeln!(ask)?;
            Ok(serde_json::from_str(&next()?)?)
        };
        let empty = sample()?;
        let mut crowd = Crowd::dial(players, address, &key)?;
        crowd.play(WARM_UP)?;
        if crowd.seated() < players {
            return Err(format!("{} of {players} players have a seat", crowd.seated()).into());
        }
        let before = sample()?;
        crowd.play(time)?;
        Ok(Measured {
            before,
            after: sample()?,
            empty,
        })
    };
    let measured = measured();
    drop(ask);
    let ended = server.wait()?;
    if !ended.success() {
        return Err(format!("the server ended with {ended}").into());
    }
    measured
}

fn show(players: usize, time: Duration, measured: &Measured, out: &mut String) -> fmt::Result {
    let Measured {
        before,
        after,
        empty,
    } = measured;
    let matches = players.div_ceil(PLAYERS) as f64;
    let ticks = (after.ticks - before.ticks) as f64 / matches;
    let per = |us: u64| us as f64 / (ticks * players as f64);
    let (user, system) = (
        after.user_us - before.user_us,
        after.system_us - before.system_us,
    );
    let seconds = time.as_secs_f64();
    writeln!(
        out,
        "{players} players in matches of {PLAYERS}, {seconds} s, {ticks:.0} ticks each"
    )?;
    writeln!(
        out,
        "  server CPU per player and tick: {:.1} µs (its own code {:.1}, the kernel {:.1}); of a core: {:.0} %",
        per(user + system),
        per(user),
        per(system),
        (user + system) as f64 / seconds / 10_000.0,
    )?;
    writeln!(
        out,
        "  memory: {:.0} KB a player; {} threads; {:.0} sleeps a second",
        after.resident_kb.saturating_sub(empty.resident_kb) as f64 / players as f64,
        after.threads,
        (after.sleeps - before.sleeps) as f64 / seconds,
    )?;
    writeln!(
        out,
        "  missing inputs: {} of {:.0}; desyncs: {}",
        after.fills - before.fills,
        ticks * players as f64,
        after.desyncs - before.desyncs,
    )
}
