//! All faults together in one process: a step that hangs, a step that panics, a slow resolver, a full disk, a dead
//! fleet sidecar. The other matches must not be affected: the lateness of each of their ticks is measured in their
//! step.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use twinstep_client::SessionEnd;
use twinstep_core::Tick;
use twinstep_host::{Journal, Limits, MatchHandle, OnJournalFailure};
use twinstep_ops::Sidecar;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{MatchId, TicketKey};

use crate::folder::Folder;
use crate::fragile::{Answer, Fragile, Order, STEPPED, fragile_from, percentiles};
use crate::loopback::{LoopbackHost, Setup};
use crate::players::{PATIENCE, Player, Plays};
use crate::scrape::ask;

/// Healthy matches have the ids and labels from 1 to this number.
const WELL: u32 = 4;
const HANGS: u64 = 11;
const PANICS: u64 = 12;
const POISONED: u64 = 13;
const SLOW: u64 = 14;
const FULL_ENDS: u64 = 15;
const FULL_GOES_ON: u64 = 16;
/// Ticks are measured for this long before the faults, and for `DURING` after them. The journal on a full disk fails at
/// its next world, within 10 s.
const BEFORE: Duration = Duration::from_secs(3);
const DURING: Duration = Duration::from_secs(13);
/// The maximum lateness that a fault may cause in other matches, once: a lost worker counts for 20 ms, and the workers
/// are checked every 10 ms.
const LATE_MAX: Duration = Duration::from_millis(50);
const NOISE: Duration = Duration::from_millis(150);

pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns `None` if this process may not mount.
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

    pub(crate) fn fill(&self) {
        let mut filler = std::fs::File::create(self.file("filler")).unwrap();
        let piece = [0; 4_096];
        while std::io::Write::write_all(&mut filler, &piece).is_ok() {}
    }

    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.file("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

pub(crate) struct Process {
    pub(crate) server: LoopbackHost<Fragile>,
    pub(crate) players: Vec<Player<Fragile>>,
    ids: Vec<u64>,
}

impl Process {
    pub(crate) async fn start(folder: &Folder, more: impl FnOnce(&mut Setup)) -> Process {
        let set = |config: &mut Setup| {
            config.incidents = Some(folder.0.clone());
            more(config);
        };
        let key = TicketKey::generate();
        let mut server = LoopbackHost::start_in(folder.clone(), key, set).await;
        // A match that hangs sends its close code later than others.
        server.timeout = Duration::from_secs(20);
        Process {
            server,
            players: Vec::new(),
            ids: Vec::new(),
        }
    }

    pub(crate) fn join(&mut self, id: u64, identity: &str) {
        self.players.push(self.server.player(identity, id));
        self.ids.push(id);
    }

    pub(crate) async fn add(
        &self,
        id: u64,
        start: Fragile,
        journal: Option<Journal>,
    ) -> MatchHandle<Fragile> {
        let match_ = fragile_from(start);
        let added = self
            .server
            .host
            .add_match(MatchId(id), match_, journal)
            .await;
        added.unwrap()
    }

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
            for player in self.players.iter_mut().filter(|one| one.ended.is_none()) {
                player.held = inputs;
                let _ = player.frame();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn order(&mut self, id: u64, order: Order) {
        // A command beyond the limit is not sent.
        let first = self.first_of(id);
        let _ = self.players[first].client.session_mut().command(0, order);
    }

    pub(crate) fn ended(&self, id: u64) -> Option<SessionEnd> {
        self.players[self.first_of(id)].ended
    }

    fn first_of(&self, id: u64) -> usize {
        let first = self.ids.iter().position(|of| *of == id);
        first.expect("a player of this match")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "lateness is measured")]
async fn faults_in_some_matches_delay_other_matches_at_most_once_and_briefly() {
    let folder = Folder::new("faults");
    let disk = SmallDisk::mount(&folder.file("disk"), 256);
    // The sidecar accepts connections, but never responds.
    let sidecar = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut process = Process::start(&folder, |config| {
        config.ops.fleet = Some(Sidecar::at(sidecar.local_addr().unwrap()));
        config.limits = Limits {
            // Load of the machine is not tested here.
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
            (FULL_GOES_ON, OnJournalFailure::Continue),
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
            // A player joins in the middle.
            if !joined && breaks.elapsed() > DURING / 2 {
                joined = true;
                process.join(1, "carl");
            }
            breaks.elapsed() > DURING
        })
        .await;
    let ends = Instant::now();

    let before = STEPPED.lateness(1..=WELL, began, breaks);
    let during = STEPPED.lateness(1..=WELL, breaks, ends);
    let ([p50, p99, most], [later_p50, later_p99, latest]) =
        (percentiles(&before), percentiles(&during));
    println!(
        "{WELL} matches of 2, next to a hang, panics, a slow resolver, a full disk and a dead sidecar"
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
    let all = process.players.iter().zip(&process.ids);
    for (player, id) in all.filter(|(_, id)| **id <= WELL.into()) {
        assert_eq!(player.ended, None, "match {id}");
        assert!(player.tick() > Tick(60), "match {id}");
        assert_eq!(player.client.session().stats().heals, 0);
    }
    assert_eq!(process.players.len(), if disk.is_some() { 15 } else { 13 });

    // Each faulty match ended as documented.
    let fault = Some(SessionEnd::Server(CloseCode::Fault));
    let mut ends = vec![(HANGS, fault), (PANICS, fault), (SLOW, None)];
    ends.push((POISONED, Some(SessionEnd::Server(CloseCode::Strikes))));
    if disk.is_some() {
        ends.extend([(FULL_ENDS, fault), (FULL_GOES_ON, None)]);
        let lost = on_disk[1]
            .inspect(|match_| match_.stats().journal_lost)
            .await;
        assert!(lost.unwrap().is_some());
        assert_eq!(
            process.server.number("twinstep_journal_errors_total").await,
            2.0
        );
    }
    for (id, why) in ends {
        assert_eq!(process.ended(id), why, "match {id}");
    }
    // And no other match is degraded for it.
    assert_eq!(
        process.server.number("twinstep_load_shedding_level").await,
        0.0
    );
    let admin = process.server.admin();
    for path in ["/livez", "/readyz"] {
        let (status, _, reply) = ask(admin, &format!("GET {path}"), None, "").await;
        assert_eq!(status, 200, "{path}: {reply}");
    }
    process.server.host.shutdown(CloseCode::Draining).await;
}
