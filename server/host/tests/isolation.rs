//! A match that breaks never affects another match. Causes are panics, poison, hooks that hang, and a full disk.

use std::time::Duration;

use twinstep_client::SessionEnd;
use twinstep_core::Tick;
use twinstep_host::{Blueprint, Journal, MatchHandle, OnDemand, OnJournalFailure};
use twinstep_ops::Checkup;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::{Match, Trouble};
use twinstep_udp::{MatchId, TicketKey};

use crate::folder::Folder;
use crate::fragile::{Answer, Fragile, Order, fragile_from};
use crate::loopback::{LoopbackHost, Setup};
use crate::players::{Player, play_remaining};

struct World {
    server: LoopbackHost<Fragile>,
    matches: Vec<MatchHandle<Fragile>>,
    players: Vec<Player<Fragile>>,
}

impl World {
    async fn new(name: &str) -> World {
        let folder = Folder::new(name);
        let incidents = folder.0.clone();
        let set = |config: &mut Setup| config.incidents = Some(incidents);
        let mut server = LoopbackHost::start_in(folder, TicketKey::generate(), set).await;
        // A match that hangs sends its close code later than others.
        server.timeout = Duration::from_secs(20);
        World {
            server,
            matches: Vec::new(),
            players: Vec::new(),
        }
    }

    async fn add(&mut self, journal: Option<Journal>) -> usize {
        let at = self.matches.len();
        let match_ = fragile_from(Fragile::default());
        let match_ = self
            .server
            .host
            .add_match(MatchId(at as u64), match_, journal)
            .await;
        self.matches.push(match_.unwrap());
        self.players.push(self.server.player("mallory", at as u64));
        at
    }

    fn incidents(&self, id: u64) -> String {
        incidents(&self.server.folder, id)
    }

    async fn play(&mut self, what: &str, mut done: impl FnMut(&[Player<Fragile>]) -> bool) {
        play_remaining(what, &mut self.players, |players| done(players)).await;
    }

    async fn all_play(&mut self) {
        let all = |players: &[Player<Fragile>]| players.iter().all(|one| one.tick() > Tick(20));
        self.play("joining", all).await;
    }

    async fn plays_on(&mut self, at: usize) {
        assert_eq!(self.players[at].ended, None);
        let goal = self.players[at].tick() + 60;
        let later = |players: &[Player<Fragile>]| players[at].tick() > goal;
        self.play("playing on", later).await;
    }

    fn order(&mut self, at: usize, order: Order) {
        let session = self.players[at].client.session_mut();
        session.command(0, order).unwrap();
    }

    async fn ended(&mut self, at: usize) -> SessionEnd {
        let over = |players: &[Player<Fragile>]| players[at].ended.is_some();
        self.play("ending", over).await;
        self.players[at].ended.expect("it is over")
    }

    async fn sim(&self, at: usize) -> Fragile {
        let sim = self.matches[at].inspect(|match_| match_.world().sim().clone());
        sim.await.unwrap()
    }
}

fn incidents(folder: &Folder, id: u64) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(&folder.0).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with(&format!("incident-{id}-")) {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    text
}

const FAULT: SessionEnd = SessionEnd::Server(CloseCode::Fault);

#[tokio::test]
async fn a_poison_command_strikes_its_author_and_the_match_continues() {
    let mut world = World::new("poison").await;
    let sick = world.add(None).await;
    world.all_play().await;
    world.order(sick, Order::Poison);
    world
        .play("the refusal", |w| {
            w[sick].client.session().stats().commands_refused == 1
        })
        .await;
    world.plays_on(sick).await;
    let text = world.incidents(0);
    for word in [
        "fragile version 1",
        "planted: poison",
        "player 0 \"mallory\"",
        "command #0: Poison",
    ] {
        assert!(text.contains(word), "{word:?} in {text}");
    }
    // Eight poison commands within ten seconds are forgiven, the ninth is not.
    for _ in 0..8 {
        world.order(sick, Order::Poison);
        world.play("a while", |_| true).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(
        world.ended(sick).await,
        SessionEnd::Server(CloseCode::Strikes)
    );
    world.server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test]
async fn a_step_panicking_without_orders_ends_only_its_own_match() {
    let mut world = World::new("curse").await;
    let (sick, well) = (world.add(None).await, world.add(None).await);
    world.all_play().await;
    world.order(sick, Order::Curse);
    assert_eq!(world.ended(sick).await, FAULT);
    assert!(world.matches[sick].is_over());
    let text = world.incidents(0);
    assert!(
        text.contains("even without the commands") && text.contains("planted: cursed"),
        "{text}"
    );
    world.plays_on(well).await;
    assert_eq!(world.incidents(1), "");
    world.server.host.shutdown(CloseCode::Draining).await;
}

/// Finding A7: incidents were reported in the log only; an author without a log did not see them.
#[tokio::test]
async fn an_author_can_take_incidents_during_and_after_a_match() {
    let mut world = World::new("told").await;
    let sick = world.add(None).await;
    world.all_play().await;
    let match_ = world.matches[sick].clone();
    let troubles = || {
        let incidents = match_.take_incidents();
        Vec::from_iter(incidents.into_iter().map(|incident| incident.trouble))
    };
    assert_eq!(troubles(), []);
    world.order(sick, Order::Poison);
    world.plays_on(sick).await;
    assert_eq!(troubles(), [Trouble::Step]);
    assert_eq!(troubles(), [], "once");
    // A client's desync report. The log gets each report when it arrives.
    let client = &mut world.players[sick].client;
    client.session_mut().corrupt(|sim| sim.answered += 7);
    world
        .play("healing", |w| w[sick].client.session().stats().heals == 1)
        .await;
    world.plays_on(sick).await;
    let reports = match_.inspect(Match::take_reports).await.unwrap();
    assert!(
        reports.len() == 1 && reports[0].text.contains("answered"),
        "{reports:?}"
    );
    world.order(sick, Order::Curse);
    assert_eq!(world.ended(sick).await, FAULT);
    assert_eq!(troubles(), [Trouble::StepAgain], "though it is over");
    world.server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test]
async fn a_panicking_resolver_leaves_its_query_unanswered() {
    let mut world = World::new("resolver").await;
    let sick = world.add(None).await;
    world.all_play().await;
    world.order(sick, Order::Ask(Answer::Panics));
    world.order(sick, Order::Ask(Answer::JobPanics));
    world.order(sick, Order::Ask(Answer::Well));
    world.plays_on(sick).await;
    let sim = world.sim(sick).await;
    // All three queries were opened in one tick, or in several.
    assert!(sim.unanswered >= 1, "{sim:?}");
    assert!(world.incidents(0).contains("planted: resolver"));
    world.order(sick, Order::Ask(Answer::JobPanics));
    world.plays_on(sick).await;
    assert!(world.incidents(0).contains("planted: job"));
    world.order(sick, Order::Ask(Answer::Well));
    world.plays_on(sick).await;
    assert!(world.sim(sick).await.answered >= 1);
    world.server.host.shutdown(CloseCode::Draining).await;
}

/// If a job never returns, its query is lost; if a resolver or a step never returns, its match is lost. A fourth match
/// is unaffected.
#[tokio::test]
async fn a_step_that_never_returns_ends_only_its_own_match() {
    let mut world = World::new("hangs").await;
    let job = world.add(None).await;
    let resolver = world.add(None).await;
    let step = world.add(None).await;
    let well = world.add(None).await;
    world.all_play().await;
    world.order(job, Order::Ask(Answer::JobHangs));
    world.order(resolver, Order::Ask(Answer::Hangs));
    world.order(step, Order::Sleep);
    let before = world.players[well].tick();
    assert_eq!(world.ended(resolver).await, FAULT);
    assert_eq!(world.ended(step).await, FAULT);
    for at in [resolver, step] {
        assert!(world.matches[at].is_over());
        let answer = world.matches[at].inspect(|match_| match_.sessions()).await;
        assert!(answer.is_err(), "the match is gone");
        let text = world.incidents(at as u64);
        assert!(text.contains("hangs"), "{text}");
    }
    let folder = world.server.folder.clone();
    let is_told = |_: &[Player<Fragile>]| incidents(&folder, 0).contains("does not return");
    world.play("the job is given up", is_told).await;
    world.plays_on(job).await;
    assert_eq!(world.sim(job).await.unanswered, 1);
    assert!(
        world.players[well].tick() - before > 200,
        "the well one played all the time"
    );
    world.plays_on(well).await;
    world.server.host.shutdown(CloseCode::Draining).await;
}

/// Finding K3-E: the thread of a hung match kept its journal, and its players were refused with "no such match" until
/// the process ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait is measured")]
async fn a_hung_match_is_resumed_from_its_journal() {
    let folder = Folder::new("hung-again");
    let (key, incidents) = (TicketKey::generate(), folder.0.clone());
    let set = |config: &mut Setup| config.incidents = Some(incidents);
    let mut server = LoopbackHost::<Fragile>::start_in(folder.clone(), key, set).await;
    server.timeout = Duration::from_secs(20);
    let matches = OnDemand::new(|_| Blueprint::action(Fragile::default(), ()).players(4));
    server.host.make_on_demand(matches.journals(&folder.0));
    for round in 0..2 {
        let mut players = vec![server.player("anna", 7)];
        let played = |players: &mut [Player<Fragile>]| players[0].tick() > Tick(90 + 90 * round);
        let began = std::time::Instant::now();
        play_remaining("playing", &mut players, played).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(12), "{took:?} in round {round}");
        let session = players[0].client.session_mut();
        session.command(0, Order::Sleep).unwrap();
        let over = |players: &mut [Player<Fragile>]| players[0].ended.is_some();
        play_remaining("ending", &mut players, over).await;
        assert_eq!(players[0].ended, Some(FAULT));
    }
    let mut players = vec![server.player("anna", 7)];
    let played = |players: &mut [Player<Fragile>]| players[0].tick() > Tick(250);
    play_remaining("playing again", &mut players, played).await;
    server.host.shutdown(CloseCode::Draining).await;
    let checkup = Checkup::check_file::<Fragile>(&folder.file("match-7.journal")).unwrap();
    assert_eq!((checkup.harm, checkup.index.resumes), (None, 2));
}

/// A full disk: the match ends or continues as configured, and reports it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_unwritable_journal_ends_the_match_only_if_configured() {
    let full = |world: &World, policy| {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .open("/dev/full")
            .unwrap();
        let path = world.server.folder.file("full.journal");
        Some(Journal::from_file(path, file).on_failure(policy))
    };
    let mut world = World::new("full").await;
    let journal = full(&world, OnJournalFailure::Continue);
    let goes_on = world.add(journal).await;
    world.all_play().await;
    world.plays_on(goes_on).await;
    let stats = world.matches[goes_on]
        .inspect(|match_| match_.stats())
        .await
        .unwrap();
    assert_eq!(stats.journal_lost, Some(Tick(0)));
    assert!(world.incidents(0).contains("No space left"));

    let journal = full(&world, OnJournalFailure::End);
    let match_ = world
        .server
        .host
        .add_match(MatchId(77), fragile_from(Fragile::default()), journal)
        .await
        .unwrap();
    while !match_.is_over() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(world.incidents(77).contains("No space left"));
    world.plays_on(goes_on).await;
    world.server.host.shutdown(CloseCode::Draining).await;
}
