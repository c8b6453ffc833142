//! All faults at once in one process: a step that hangs, one that panics, a resolver that is slow, a disk that is full, a
//! fleet's sidecar that is dead. Beside them matches are played that feel nothing of it: how late each of their ticks is, is
//! measured where it is stepped.
#![cfg(target_os = "linux")]

use std::net::{SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::{Simulation, Tick};
use twinstep_server::MatchConfig;
use twinstep_server::host::{
    Host, HostConfig, Journal, Limits, MatchHandle, OnJournalFailure, Sidecar,
};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::asking::{Folder, ask, scrape};
use crate::isolation::{Answer, Fragile, Order, STEPPED, fragile_from};

const PATIENCE: Duration = Duration::from_secs(25);
/// Matches that nothing is wrong with, by their ids and labels: 1 to this.
const WELL: u32 = 4;
const HANGS: u64 = 11;
const PANICS: u64 = 12;
const POISONED: u64 = 13;
const SLOW: u64 = 14;
const FULL_ENDS: u64 = 15;
const FULL_GOES_ON: u64 = 16;
/// For how long ticks are measured before anything goes wrong, and from then on: a journal on a full disk is found out at its
/// next world, within 10 s.
const BEFORE: Duration = Duration::from_secs(5);
const DURING: Duration = Duration::from_secs(13);
/// A fault may make other matches late by so much, once: a worker that is lost counts for 20 ms, and somebody looks each 10.
const LATE_MAX: Duration = Duration::from_millis(50);
/// What a machine may add that has other work.
const NOISE: Duration = Duration::from_millis(150);

/// A small disk of its own, while it lives.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where this process may mount nothing.
    pub(crate) fn mount(at: &Path, kilobytes: u32) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={kilobytes}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(at);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("SKIPPED: what a full disk does, because no small disk can be mounted here");
        }
        mounted.then(|| SmallDisk(at.to_owned()))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Leaves no room.
    pub(crate) fn fill(&self) {
        let mut filler = std::fs::File::create(self.file("filler")).unwrap();
        let piece = [0; 4_096];
        while std::io::Write::write_all(&mut filler, &piece).is_ok() {}
    }

    /// Makes room again.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.file("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

pub(crate) struct Player {
    pub(crate) id: u64,
    pub(crate) client: Client<Fragile>,
    pub(crate) ended: Option<Ended>,
}

impl Player {
    pub(crate) fn tick(&self) -> Tick {
        let world = self.client.session.authority();
        world.map_or(Tick(0), |world| world.tick())
    }
}

/// A host in this process, and whoever plays on it.
pub(crate) struct Process {
    pub(crate) host: Host,
    pub(crate) key: TicketKey,
    pub(crate) players: Vec<Player>,
}

impl Process {
    /// A host of this game with an admin port, and whatever else is said.
    pub(crate) async fn start(folder: &Folder, more: impl FnOnce(&mut HostConfig)) -> Process {
        let (loopback, key): (SocketAddr, _) =
            ("127.0.0.1:0".parse().unwrap(), TicketKey::generate());
        let mut config = HostConfig {
            admin: Some(loopback),
            incidents: Some(folder.0.clone()),
            ..HostConfig::new(Fragile::NAME, loopback, key.clone())
        };
        more(&mut config);
        Process {
            host: Host::start(config).await.unwrap(),
            key,
            players: Vec::new(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    pub(crate) fn join(&mut self, id: u64, identity: &str) {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: Fragile::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id: id,
            seats: 1,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(20),
            now_unix,
        };
        let ticket = Ticket::issue(&self.key, &spec).unwrap();
        let client = Client::connect(&ticket, SessionConfig::new(Arc::new(()))).unwrap();
        let ended = None;
        self.players.push(Player { id, client, ended });
    }

    pub(crate) async fn add(
        &self,
        id: u64,
        start: Fragile,
        journal: Option<Journal>,
    ) -> MatchHandle<Fragile> {
        let game = fragile_from(start);
        self.host.add_match(id, game, journal).await.unwrap()
    }

    /// Advances everybody until `done`.
    #[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
    pub(crate) async fn play(&mut self, what: &str, mut done: impl FnMut(&mut Process) -> bool) {
        let began = Instant::now();
        let mut inputs = 0_u8;
        while !done(self) {
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: not within {PATIENCE:?}"
            );
            inputs = inputs.wrapping_add(1);
            for player in self
                .players
                .iter_mut()
                .filter(|player| player.ended.is_none())
            {
                player.ended = player.client.advance(|_| inputs).err();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn order(&mut self, id: u64, order: Order) {
        let player = self.players.iter_mut().find(|player| player.id == id);
        // One order too many is no order.
        let _ = player.unwrap().client.session.command(0, order);
    }

    pub(crate) fn ended(&self, id: u64) -> Option<Closed> {
        let player = self.players.iter().find(|player| player.id == id);
        match player.unwrap().ended {
            Some(Ended::Session(closed)) => Some(closed),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn number(&self, series: &str) -> f64 {
        scrape(self.host.admin_addr().unwrap()).await.of(series)
    }
}

/// How late ticks were, in the order of lateness: against the earliest of those around each.
pub(crate) fn lateness(labels: RangeInclusive<u32>, from: Instant, to: Instant) -> Vec<Duration> {
    const AROUND: usize = 30;
    let length = MatchConfig::action().tick;
    let stepped = STEPPED.lock().unwrap();
    let mut late = Vec::new();
    for label in labels {
        let ours = stepped.iter().filter(|(of, ..)| *of == label);
        // When a match would have begun whose ticks are all as late as this one, later by a span that is above all of them.
        let begins: Vec<(Instant, Duration)> = ours
            .map(|(_, tick, at)| {
                let since = at.duration_since(stepped[0].2);
                (*at, since + length * 100_000 - length * tick.0)
            })
            .collect();
        for (n, (at, begin)) in begins.iter().enumerate() {
            let near = n.saturating_sub(AROUND)..(n + AROUND).min(begins.len());
            let earliest = begins[near].iter().map(|(_, begin)| begin).min();
            if (from..to).contains(at) {
                late.push(*begin - *earliest.unwrap());
            }
        }
    }
    late.sort();
    late
}

/// p50, p99 and the most.
pub(crate) fn told(late: &[Duration]) -> [Duration; 3] {
    let at = |part: usize| late[(late.len() - 1) * part / 100];
    [at(50), at(99), at(100)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "how late ticks are, is measured")]
async fn whatever_goes_wrong_in_some_matches_the_others_are_late_once_at_most_and_by_little() {
    let folder = Folder::new("faults");
    let disk = SmallDisk::mount(&folder.file("disk"), 256);
    // It takes connections, and never says a word.
    let sidecar = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut process = Process::start(&folder, |config| {
        config.fleet = Some(Sidecar::at(sidecar.local_addr().unwrap()));
        config.limits = Limits {
            // A machine with other work is not what is looked for.
            tick_lateness: Duration::from_millis(60),
            disk_free_bytes: 0,
            ..Limits::default()
        };
    })
    .await;
    for label in 1..=WELL {
        let start = Fragile::of(label, 0);
        let path = folder.file(&format!("well-{label}.journal"));
        let journal = Journal::create(path).unwrap();
        process.add(label.into(), start, Some(journal)).await;
        process.join(label.into(), "anna");
        process.join(label.into(), "bob");
    }
    for id in [HANGS, PANICS, POISONED, SLOW] {
        process.add(id, Fragile::default(), None).await;
        process.join(id, "mallory");
    }
    let mut on_disk = Vec::new();
    if let Some(disk) = &disk {
        for (id, policy) in [
            (FULL_ENDS, OnJournalFailure::End),
            (FULL_GOES_ON, OnJournalFailure::GoOn),
        ] {
            let start = Fragile::of(0, 9_000);
            let journal = Journal::create(disk.file(&format!("{id}.journal"))).unwrap();
            let journal = journal.on_failure(policy);
            on_disk.push(process.add(id, start, Some(journal)).await);
            process.join(id, "mallory");
        }
    }
    let all = |process: &mut Process| {
        process
            .players
            .iter()
            .all(|player| player.tick() > Tick(60))
    };
    process.play("joining", all).await;

    let began = Instant::now();
    process.play("before", |_| began.elapsed() > BEFORE).await;
    let breaks = Instant::now();
    process.order(HANGS, Order::Sleep);
    process.order(PANICS, Order::Curse);
    if let Some(disk) = &disk {
        disk.fill();
    }
    let mut joined = false;
    let mut last = breaks;
    process
        .play("during", |process| {
            if last.elapsed() > Duration::from_millis(50) {
                last = Instant::now();
                process.order(SLOW, Order::Ask(Answer::Slow));
                process.order(POISONED, Order::Poison);
            }
            // Somebody comes in the middle of it.
            if !joined && breaks.elapsed() > DURING / 2 {
                joined = true;
                process.join(1, "carl");
            }
            breaks.elapsed() > DURING
        })
        .await;
    let ends = Instant::now();

    let before = lateness(1..=WELL, began, breaks);
    let during = lateness(1..=WELL, breaks, ends);
    let ([p50, p99, most], [later_p50, later_p99, latest]) = (told(&before), told(&during));
    println!(
        "{WELL} matches of 2, beside a hang, panics, a slow resolver, a full disk and a dead sidecar"
    );
    println!(
        "  before: {} ticks late by p50 {p50:.1?}, p99 {p99:.1?}, at most {most:.1?}",
        before.len()
    );
    println!(
        "  during: {} ticks late by p50 {later_p50:.1?}, p99 {later_p99:.1?}, at most {latest:.1?}",
        during.len()
    );
    assert!(
        latest < LATE_MAX + NOISE + most,
        "{latest:?}, before {most:?}"
    );
    assert!(
        later_p99 < Duration::from_millis(20) + p99 * 2,
        "{later_p99:?}, before {p99:?}"
    );
    let due = DURING.as_secs() as usize * 60 * WELL as usize;
    assert!(
        during.len() > due * 9 / 10,
        "{} of {due} ticks",
        during.len()
    );
    let well = process
        .players
        .iter()
        .filter(|player| player.id <= WELL.into());
    for player in well {
        assert_eq!(player.ended, None, "match {}", player.id);
        assert!(player.tick() > Tick(60), "match {}", player.id);
        assert_eq!(player.client.session.stats().heals, 0);
    }
    assert_eq!(process.players.len(), if disk.is_some() { 15 } else { 13 });

    // Each of the others came to what it is promised.
    let fault = Some(Closed::Server(CloseCode::Fault));
    let mut ends = vec![(HANGS, fault), (PANICS, fault), (SLOW, None)];
    ends.push((POISONED, Some(Closed::Server(CloseCode::Strikes))));
    if disk.is_some() {
        ends.extend([(FULL_ENDS, fault), (FULL_GOES_ON, None)]);
        let lost = on_disk[1].inspect(|game| game.stats().journal_lost).await;
        assert!(lost.unwrap().is_some());
        assert_eq!(process.number("twinstep_journal_errors_total").await, 2.0);
    }
    for (id, why) in ends {
        assert_eq!(process.ended(id), why, "match {id}");
    }
    // And nobody does without anything for it.
    assert_eq!(process.number("twinstep_relief_steps").await, 0.0);
    let admin = process.host.admin_addr().unwrap();
    for path in ["/livez", "/readyz"] {
        let (status, _, said) = ask(admin, &format!("GET {path}"), None, "").await;
        assert_eq!(status, 200, "{path}: {said}");
    }
    process.host.shutdown(CloseCode::Draining).await;
}
