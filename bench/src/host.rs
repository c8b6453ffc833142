//! What a server process costs per player: real UDP, tickets and encryption, matches of four at 60 Hz, a state of 64 bytes.
//!
//! Only the server's process is counted, with what the kernel does for it. The players are [seated](crate::seated) at moments
//! spread over a frame, as the players of many machines are.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::fmt::{self, Write as _};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::{Key, Never, PlayerId, Simulation};
use twinstep_server::host::{Host, HostConfig, MatchHandle};
use twinstep_server::{Decision, Look, Match, MatchConfig};
use twinstep_udp::TicketKey;

use crate::players::{Crowd, JOIN_PATIENCE, Played};
use crate::process::Failed;
use crate::seals::{STATE_BYTES, Seals, Watched};
use crate::seated::Seats;
use crate::served::{Done, Kind, Lateness, Sample, Served, Server};
use crate::simulation::{PLAYERS, Sticks};

/// Until everybody plays, and clocks have settled.
const WARM_UP: Duration = Duration::from_secs(4);

/// The host, and its matches.
pub(crate) struct Hosted {
    runtime: tokio::runtime::Runtime,
    host: Host,
    matches: Vec<(MatchHandle<Watched>, Arc<Seals>)>,
}

impl Hosted {
    pub(crate) fn start(
        listen: SocketAddr,
        public: Option<SocketAddr>,
        matches: usize,
        key: TicketKey,
    ) -> Result<Hosted, Failed> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let config = HostConfig {
            sessions_max: matches * PLAYERS,
            admin: Some(([127, 0, 0, 1], 0).into()),
            public: public.into_iter().map(Into::into).collect(),
            ..HostConfig::new(Watched::NAME, listen, key)
        };
        let host = runtime.block_on(Host::start(config))?;
        let mut hosted = Hosted {
            runtime,
            host,
            matches: Vec::new(),
        };
        for id in 0..matches as u64 {
            hosted.add(id)?;
        }
        Ok(hosted)
    }

    fn add(&mut self, id: u64) -> Result<(), Failed> {
        let config = MatchConfig {
            players_max: PLAYERS,
            ..MatchConfig::action()
        };
        let nothing =
            |_: &Look<'_, Watched>, _: Key, never: &Never| -> Decision<Never> { match *never {} };
        let seals = Arc::new(Seals::kept());
        let game = Match::new(config, Watched::new(STATE_BYTES), seals.clone(), nothing)?;
        let handle = self.runtime.block_on(self.host.add_match(id, game, None))?;
        self.matches.push((handle, seals));
        Ok(())
    }

    /// What the host itself counts of datagrams, both ways.
    fn datagrams(&self) -> Result<u64, Failed> {
        let address = self.host.admin_addr().ok_or("no admin port")?;
        let mut page = String::new();
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        stream.read_to_string(&mut page)?;
        let value = |way| value(&page, &format!("twinstep_datagrams_{way}_total "));
        let both = value("received").zip(value("sent"));
        Ok(both
            .map(|(received, sent)| received + sent)
            .ok_or("no datagrams on the page of metrics")?)
    }
}

/// The number behind a name on a page of metrics.
fn value(page: &str, name: &str) -> Option<u64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

impl Server for Hosted {
    fn address(&self) -> SocketAddr {
        self.host.local_addr()
    }

    fn done(&mut self) -> Result<Done, Failed> {
        let mut done = Done {
            datagrams: self.datagrams()?,
            ..Done::default()
        };
        // All are asked at once: each answers at its next tick, and one after the other hundreds take half a second.
        let ask = |(handle, _): &(MatchHandle<Watched>, _)| {
            let handle = handle.clone();
            self.runtime.spawn(async move {
                let look = handle.inspect(|game| {
                    let fills = (0..PLAYERS as u8).map(|n| game.seat_stats(PlayerId(n)).fills);
                    let tick = game.world().tick().0;
                    (tick, fills.sum::<u64>(), game.stats().desyncs)
                });
                look.await
            })
        };
        let asked: Vec<_> = self.matches.iter().map(ask).collect();
        let mut late_us = Vec::new();
        for (answer, (_, seals)) in asked.into_iter().zip(&self.matches) {
            let (tick, fills, desyncs) = self.runtime.block_on(answer)??;
            done.player_ticks += u64::from(tick) * PLAYERS as u64;
            done.fills += fills;
            done.desyncs += desyncs;
            seals.take(&mut late_us);
        }
        done.lateness = Lateness::of(late_us);
        Ok(done)
    }
}

/// A folder with the key of a server that is measured; it goes when this is dropped.
pub(crate) struct KeyFolder {
    path: PathBuf,
    pub(crate) key: TicketKey,
}

impl KeyFolder {
    pub(crate) fn new() -> Result<KeyFolder, Failed> {
        let path = std::env::temp_dir().join(format!("twinstep-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        let folder = KeyFolder {
            key: TicketKey::generate(),
            path,
        };
        if !folder.file().exists() {
            folder.key.save(folder.file())?;
        }
        Ok(folder)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path.join("match.key")
    }
}

impl Drop for KeyFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Starts a server process, plays on it, and tells what that cost it.
pub(crate) fn run(players: usize, time: Duration, out: &mut String) -> Result<(), Failed> {
    let keys = KeyFolder::new()?;
    let mut served = Served::start(Kind::Twinstep, players, &keys.file())?;
    let seats = Seats::new(served.address, &keys.key, Sticks::Moving);
    let mut crowd = Crowd::new(players, |n| seats.dial(n))?;
    let seated = crowd.join(JOIN_PATIENCE)?;
    if seated < players {
        return Err(format!("{seated} of {players} players have a seat").into());
    }
    crowd.play(WARM_UP)?;
    let before = crowd.sample(&mut served)?;
    let played = crowd.play(time)?;
    let after = crowd.sample(&mut served)?;
    show(players, time, &served.empty, &before, &after, &played, out)?;
    served.end()
}

fn show(
    players: usize,
    time: Duration,
    empty: &Sample,
    before: &Sample,
    after: &Sample,
    played: &Played,
    out: &mut String,
) -> fmt::Result {
    let player_ticks = (after.done.player_ticks - before.done.player_ticks) as f64;
    let cpu = after.cpu_since(before);
    let seconds = time.as_secs_f64();
    writeln!(
        out,
        "{players} players in matches of {PLAYERS}, {seconds} s, {:.0} ticks each",
        player_ticks / players as f64
    )?;
    writeln!(
        out,
        "  server CPU per player and tick: {:.1} µs (its own code {:.1}, the kernel {:.1}); of a core: {:.0} %",
        cpu.total_us() as f64 / player_ticks,
        cpu.user_us as f64 / player_ticks,
        cpu.system_us as f64 / player_ticks,
        cpu.total_us() as f64 / seconds / 10_000.0,
    )?;
    writeln!(
        out,
        "  the players' own: {:.1} µs a frame; {}",
        played.cpu.total_us() as f64 / played.frames.max(1) as f64,
        played.lateness(),
    )?;
    writeln!(
        out,
        "  memory: {:.0} KB a player; {} threads; {:.0} sleeps a second",
        after
            .usage
            .resident_kb
            .saturating_sub(empty.usage.resident_kb) as f64
            / players as f64,
        after.usage.threads,
        after.usage.sleeps.saturating_sub(before.usage.sleeps) as f64 / seconds,
    )?;
    if let Some(late) = after.done.lateness {
        writeln!(
            out,
            "  ticks were late by {:.2} ms at p50, {:.2} at p99, {:.2} at p99.9, {:.2} at worst",
            late.p50_us / 1e3,
            late.p99_us / 1e3,
            late.p999_us / 1e3,
            late.worst_us / 1e3,
        )?;
    }
    writeln!(
        out,
        "  allocations: {:.3} for each datagram",
        after.allocations_since(before) as f64
            / (after.done.datagrams - before.done.datagrams).max(1) as f64,
    )?;
    writeln!(
        out,
        "  missing inputs: {} of {player_ticks:.0}; desyncs: {}",
        after.done.fills - before.done.fills,
        after.done.desyncs - before.done.desyncs,
    )
}
