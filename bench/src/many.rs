//! Many matches in one server process, made on demand: how late their ticks are, and whether joins and leaves leave anything
//! behind.
//!
//! ```text
//!  many ──starts──▶ many-serve (a process of its own; journals in a folder) ◀── UDP ── this process: players in turns
//!   1  all matches are made by their first players, then play: lateness from /metrics
//!   2  matches are left, one after the other, and others made in their place by new players: memory after each 100 joins
//!   3  everybody leaves: what is left of descriptors, threads and memory
//! ```
//!
//! The server has the environment that the systemd unit for servers gives it, as far as that is about memory; what is set
//! already stays.
//!
//! New identities and ids each time are the worst case for whatever is kept by name.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use twinstep_client::{Client, SessionConfig};
use twinstep_core::Simulation;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_server::host::{AdminClient, Blueprint, HostConfig, Limits, OnDemand, RunningMany};
use twinstep_udp::{SESSIONS_MAX, SharedLink, Ticket, TicketKey, TicketSpec};

use crate::simulation::{Blob, PLAYERS, Pads, Sticks};

const STATE_BYTES: usize = 64;
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// Until clocks have settled.
const WARM_UP: Duration = Duration::from_secs(4);
/// Players who come within one frame.
const DIALS_A_FRAME: usize = 2;
/// Joins between two looks at the memory.
const LOOK_EVERY: usize = 100;
/// Joins until the server's memory is to be flat: every match was replaced, and most of what an allocator keeps was used.
const SETTLED_AFTER: f64 = 1_000.0;
/// Whoever is not there by then is not coming.
const PATIENCE: Duration = Duration::from_secs(60);

type Failed = Box<dyn std::error::Error>;

/// Serves until its input ends; prints where it listens and where its admin port is.
pub(crate) fn serve(folder: &Path, matches: usize) -> Result<(), Failed> {
    let loopback: SocketAddr = "127.0.0.1:0".parse()?;
    let config = HostConfig {
        admin: Some(loopback),
        lineages_file: Some(folder.join("lineages")),
        sessions_max: SESSIONS_MAX,
        // What is measured must not be what refuses those who come.
        limits: Limits {
            tick_lateness: Duration::from_secs(3_600),
            ..Limits::default()
        },
        ..HostConfig::new(Blob::NAME, loopback, TicketKey::load(folder.join("key"))?)
    };
    let blueprint = |_| Blueprint::action(Blob::new(STATE_BYTES), Arc::new(())).players(PLAYERS);
    // Some end while others begin.
    let demand = OnDemand::new(blueprint)
        .at_once(2 * matches + 16)
        .per_second(1_000)
        .deserted_after(Duration::from_secs(1))
        .journals(folder);
    let server = RunningMany::start(demand, config)?;
    println!("{}", server.local_addr());
    println!("{}", server.admin_addr().expect("it was asked for"));
    for line in std::io::stdin().lines() {
        line?;
    }
    server.shutdown();
    Ok(())
}

/// What the systemd unit for servers sets for their memory.
fn memory_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    const UNIT: &str = include_str!("../../server/ops/systemd/powderkeg.service");
    UNIT.lines()
        .filter_map(|line| line.strip_prefix("Environment="))
        .flat_map(str::split_whitespace)
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| name.starts_with("MALLOC_"))
}

/// The server's process.
struct Served {
    process: Child,
    address: SocketAddr,
    admin: AdminClient,
}

/// What the process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kb: u64,
    descriptors: usize,
    threads: usize,
}

impl Served {
    fn start(folder: &Path, matches: usize) -> Result<Served, Failed> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("many-serve")
            .arg("--folder")
            .arg(folder)
            .args(["--matches", &matches.to_string()])
            .envs(memory_settings().filter(|(name, _)| std::env::var_os(name).is_none()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let mut next = || -> Result<SocketAddr, Failed> {
            Ok(lines.next().ok_or("the server ended")??.parse()?)
        };
        let (address, admin) = (next()?, next()?);
        Ok(Served {
            process,
            address,
            admin: AdminClient::new(admin),
        })
    }

    fn held(&self) -> Result<Held, Failed> {
        let of = |what: &str| format!("/proc/{}/{what}", self.process.id());
        let status = std::fs::read_to_string(of("status"))?;
        let resident = status.lines().find(|line| line.starts_with("VmRSS:"));
        let resident = resident.and_then(|line| line.split_whitespace().nth(1));
        Ok(Held {
            resident_kb: resident.ok_or("no memory is told")?.parse()?,
            descriptors: std::fs::read_dir(of("fd"))?.count(),
            threads: std::fs::read_dir(of("task"))?.count(),
        })
    }

    fn metrics(&self) -> Result<String, Failed> {
        Ok(self.admin.get("/metrics")?.body)
    }

    fn number(&self, series: &str) -> Result<f64, Failed> {
        let page = self.metrics()?;
        let line = page.lines().find_map(|line| line.strip_prefix(series));
        Ok(line.ok_or("no such series")?.trim().parse()?)
    }

    /// How many ticks were late by at most each bound, in seconds.
    fn lateness(&self) -> Result<Vec<(f64, f64)>, Failed> {
        let page = self.metrics()?;
        let buckets = page
            .lines()
            .filter_map(|line| line.strip_prefix("twinstep_tick_lateness_seconds_bucket{le=\""));
        buckets
            .map(|rest| {
                let (bound, count) = rest.split_once("\"} ").ok_or("a bucket")?;
                let bound = bound.replace("+Inf", "inf").parse()?;
                Ok((bound, count.parse()?))
            })
            .collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// So large a part of what came between two looks was late by at most so long, in milliseconds: the position within a bucket
/// is taken to be even.
fn quantile(before: &[(f64, f64)], after: &[(f64, f64)], part: f64) -> f64 {
    let counts: Vec<(f64, f64)> = after
        .iter()
        .zip(before)
        .map(|((bound, after), (_, before))| (*bound, after - before))
        .collect();
    let wanted = counts.last().map_or(0.0, |(_, count)| count * part);
    let (mut from, mut below) = (0.0, 0.0);
    for (to, upto) in counts {
        if upto >= wanted && upto > below {
            let to = if to.is_finite() { to } else { from };
            return 1e3 * (from + (to - from) * (wanted - below) / (upto - below));
        }
        (from, below) = (to, upto);
    }
    0.0
}

struct Player {
    client: Client<Blob>,
    pads: Pads,
    due: Duration,
}

/// Players, the longest there first, and matches of four of them.
struct Crowd<'s> {
    server: &'s Served,
    key: TicketKey,
    began: Instant,
    players: VecDeque<Player>,
    /// Whoever came, from the beginning.
    came: usize,
    /// One laminar for all.
    link: SharedLink,
}

impl Crowd<'_> {
    fn dial(&mut self) -> Result<(), Failed> {
        let n = self.came;
        self.came += 1;
        let ticket = Ticket::issue(
            &self.key,
            &TicketSpec {
                game: Blob::NAME,
                wire_version: u32::from(WIRE_VERSION),
                identity: &format!("player-{n}"),
                match_id: (n / PLAYERS) as u64,
                seats: 1,
                servers: &[self.server.address.into()],
                life: Duration::from_secs(3_600),
                timeout: Duration::from_secs(10),
                now_unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?,
            },
        )?;
        let config = SessionConfig::new(Arc::new(())).start(Blob::new(STATE_BYTES));
        let link = self.link.clone();
        let player = Player {
            client: Client::connect_through(&ticket, config, move |way| way.sharing(&link))?,
            pads: Pads::new(Sticks::Moving, n),
            due: self.began.elapsed() + FRAME * (n % 97) as u32 / 97,
        };
        self.players.push_back(player);
        Ok(())
    }

    /// One frame of everybody.
    fn frame(&mut self) -> Result<(), Failed> {
        let until = self.began.elapsed() + FRAME;
        loop {
            let now = self.began.elapsed();
            if now >= until {
                return Ok(());
            }
            for player in &mut self.players {
                if player.due <= now {
                    // Who was late by more than a frame does not hurry after.
                    player.due = (player.due + FRAME).max(now);
                    let pads = &mut player.pads;
                    player.client.advance(|_| pads.next())?;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn play(&mut self, time: Duration) -> Result<(), Failed> {
        let until = self.began.elapsed() + time;
        while self.began.elapsed() < until {
            self.frame()?;
        }
        Ok(())
    }

    /// Whether everybody plays.
    fn all_play(&self) -> bool {
        let plays = |player: &Player| player.client.session.authority().is_some();
        self.players.iter().all(plays)
    }

    fn until_all_play(&mut self) -> Result<(), Failed> {
        let until = self.began.elapsed() + PATIENCE;
        while !self.all_play() {
            if self.began.elapsed() > until {
                return Err("not everybody has come in".into());
            }
            self.frame()?;
        }
        Ok(())
    }

    /// The match that is there for the longest is left, and another one comes.
    fn replace(&mut self) -> Result<(), Failed> {
        for _ in 0..PLAYERS {
            self.players.pop_front().expect("somebody").client.leave();
            self.dial()?;
        }
        Ok(())
    }
}

/// Starts a server process, has many come and go, and tells what that cost it.
pub(crate) fn run(
    matches: usize,
    joins: usize,
    time: Duration,
    out: &mut String,
) -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("twinstep-many-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure(matches, joins, time, &folder, out);
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn measure(
    matches: usize,
    joins: usize,
    time: Duration,
    folder: &Path,
    out: &mut String,
) -> Result<(), Failed> {
    let key = TicketKey::generate();
    key.save(folder.join("key"))?;
    let server = Served::start(folder, matches)?;
    let empty = server.held()?;
    let mut crowd = Crowd {
        server: &server,
        key,
        began: Instant::now(),
        players: VecDeque::new(),
        came: 0,
        link: SharedLink::new(),
    };
    while crowd.came < matches * PLAYERS {
        for _ in 0..DIALS_A_FRAME {
            crowd.dial()?;
        }
        crowd.frame()?;
    }
    crowd.until_all_play()?;
    let came_in = crowd.began.elapsed();
    crowd.play(WARM_UP)?;
    let (before, start) = (server.lateness()?, server.held()?);
    crowd.play(time)?;
    let after = server.lateness()?;
    writeln!(
        out,
        "{matches} matches of {PLAYERS}, made on demand in {:.1} s; each with a journal",
        came_in.as_secs_f64()
    )?;
    tell_lateness(out, "at play", &before, &after)?;
    tell_held(out, "empty", empty)?;
    tell_held(out, "all play", start)?;

    let mut memory = Vec::new();
    for joined in (PLAYERS..=joins).step_by(PLAYERS) {
        crowd.replace()?;
        // Some 240 joins and leaves a second would be a stampede; these are some 30.
        for _ in 0..8 {
            crowd.frame()?;
        }
        if joined % LOOK_EVERY == 0 {
            crowd.until_all_play()?;
            let held = server.held()?;
            memory.push((joined as f64, held.resident_kb as f64));
            tell_held(out, &format!("after {joined} joins and leaves"), held)?;
        }
    }
    tell_lateness(out, "while they come and go", &after, &server.lateness()?)?;
    let settled = memory.partition_point(|(joined, _)| *joined < SETTLED_AFTER);
    let (first, then) = memory.split_at(settled);
    writeln!(
        out,
        "  slope of the memory: {:.2} KB a join and leave until {SETTLED_AFTER}, {:.2} from there on",
        slope(first),
        slope(then)
    )?;

    for mut player in std::mem::take(&mut crowd.players) {
        player.client.leave();
    }
    let until = crowd.began.elapsed() + PATIENCE + PATIENCE;
    while server.number("twinstep_matches ")? > 0.0 {
        if crowd.began.elapsed() > until {
            return Err("matches that everybody has left do not end".into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    // Threads that are kept for a while, in case.
    std::thread::sleep(Duration::from_secs(12));
    tell_held(out, "everybody left", server.held()?)?;
    let made = server.number("twinstep_matches_made_total ")?;
    let ended = server.number("twinstep_matches_ended_total{how=\"deserted\"}")?;
    let desyncs = server.number("twinstep_desyncs_total ")?;
    writeln!(
        out,
        "  {made} matches made, {ended} ended because nobody was there; desyncs: {desyncs}"
    )?;
    Ok(())
}

fn tell_lateness(
    out: &mut String,
    when: &str,
    before: &[(f64, f64)],
    after: &[(f64, f64)],
) -> std::fmt::Result {
    writeln!(
        out,
        "  lateness of ticks {when}: p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms",
        quantile(before, after, 0.5),
        quantile(before, after, 0.99),
        quantile(before, after, 0.999)
    )
}

fn tell_held(out: &mut String, when: &str, held: Held) -> std::fmt::Result {
    let Held {
        resident_kb,
        descriptors,
        threads,
    } = held;
    writeln!(
        out,
        "  {when}: {resident_kb} KB, {descriptors} descriptors, {threads} threads"
    )
}

/// The slope of the line that is nearest to these points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if along > 0.0 { both / along } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_says_how_memory_is_kept() {
        let names: Vec<_> = memory_settings().map(|(name, _)| name).collect();
        assert_eq!(names, ["MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_"]);
    }

    #[test]
    fn quantiles_and_slopes_are_what_they_are_called() {
        let before = [(0.001, 5.0), (0.01, 5.0), (f64::INFINITY, 5.0)];
        let after = [(0.001, 95.0), (0.01, 105.0), (f64::INFINITY, 105.0)];
        assert!((quantile(&before, &after, 0.45) - 0.5).abs() < 1e-9);
        assert!((quantile(&before, &after, 0.95) - 5.5).abs() < 1e-9);
        assert!((slope(&[(0.0, 7.0), (100.0, 8.0), (200.0, 9.0)]) - 0.01).abs() < 1e-9);
    }
}
