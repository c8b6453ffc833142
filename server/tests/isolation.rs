//! What one match does to itself never touches another one: panics, poison, hooks that hang, a full disk. Over
//! real sockets on loopback; time is the machine's, so every wait has an end.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::{Effects, Frame, Key as Cause, Never, Simulation, Tick};
use twinstep_server::host::{Host, HostConfig, Journal, MatchHandle, OnJournalFailure};
use twinstep_server::{Decision, Look, Match, MatchConfig, Trouble};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

const PATIENCE: Duration = Duration::from_secs(25);

/// What a player orders, to somebody's harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The step panics on it.
    Poison,
    /// From now on every step panics.
    Curse,
    /// The step does not return.
    Sleep,
    /// A query whose resolver does what it says.
    Ask(Answer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Well,
    /// After 150 ms, for which its match waits.
    Slow,
    Panics,
    Hangs,
    JobPanics,
    JobHangs,
}

/// A game that can be broken by orders.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fragile {
    cursed: bool,
    asked: u32,
    answered: u32,
    unanswered: u32,
    /// Above 0, it is written down when the server steps it.
    label: u32,
    /// What makes it large.
    rubble: Vec<u8>,
}

impl Fragile {
    /// With a label (or 0) and so much in it.
    pub(crate) fn of(label: u32, bytes: usize) -> Fragile {
        Fragile {
            label,
            rubble: (0..bytes).map(|n| n as u8).collect(),
            ..Fragile::default()
        }
    }
}

/// A tick of a match with a label, and when it was stepped.
pub(crate) type Stepped = (u32, Tick, Instant);

/// Ticks of matches with a label.
pub(crate) static STEPPED: Mutex<Vec<Stepped>> = Mutex::new(Vec::new());

#[expect(clippy::disallowed_methods, reason = "how late it is, is measured")]
fn note_step(label: u32, tick: Tick) {
    let mut stepped = STEPPED.lock().unwrap();
    stepped.push((label, tick, Instant::now()));
}

impl Simulation for Fragile {
    const NAME: &'static str = "fragile";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Order;
    type Query = Answer;
    type Outcome = u8;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, _, outcome) in frame.outcomes() {
            match outcome {
                Some(_) => self.answered += 1,
                None => self.unanswered += 1,
            }
        }
        assert!(!self.cursed, "planted: cursed");
        // Only the server's world is to break: a client must live to be told.
        let server = SERVER.with(|server| server.get());
        if server && self.label > 0 {
            note_step(self.label, frame.tick());
        }
        for (player, order) in frame.commands() {
            match order {
                Order::Poison if server => panic!("planted: poison"),
                Order::Curse if server => self.cursed = true,
                Order::Sleep if server => std::thread::sleep(PATIENCE * 2),
                Order::Ask(answer) => {
                    fx.ask(Cause::player(player, self.asked), *answer);
                    self.asked += 1;
                }
                _ => {}
            }
        }
    }
}

thread_local! {
    /// Whether this thread is a match's.
    static SERVER: std::cell::Cell<bool> = std::cell::Cell::new(
        std::thread::current().name().is_some_and(|name| name.starts_with("match-")),
    );
}

fn fragile() -> Match<Fragile> {
    fragile_from(Fragile::default())
}

pub(crate) fn fragile_from(start: Fragile) -> Match<Fragile> {
    let resolver = |_: &Look<'_, Fragile>, _: Cause, query: &Answer| match query {
        Answer::Well => Decision::Now(1),
        Answer::Slow => {
            std::thread::sleep(Duration::from_millis(150));
            Decision::Now(1)
        }
        Answer::Panics => panic!("planted: resolver"),
        Answer::Hangs => {
            std::thread::sleep(PATIENCE * 2);
            Decision::Now(2)
        }
        Answer::JobPanics => Decision::Later(Box::new(|| panic!("planted: job"))),
        Answer::JobHangs => Decision::Later(Box::new(|| {
            std::thread::sleep(PATIENCE * 2);
            3
        })),
    };
    Match::new(MatchConfig::action(), start, Arc::new(()), resolver).unwrap()
}

/// A folder of one test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// What all incident files of a match say.
    fn incidents(&self, id: u64) -> String {
        let mut said = String::new();
        for entry in std::fs::read_dir(&self.0).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with(&format!("incident-{id}-")) {
                said += &std::fs::read_to_string(path).unwrap();
            }
        }
        said
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A host, its matches, and one client in each.
struct World {
    host: Host,
    key: TicketKey,
    folder: Folder,
    matches: Vec<(MatchHandle<Fragile>, Client<Fragile>, Option<Ended>)>,
}

impl World {
    async fn new(name: &str) -> World {
        let (key, folder) = (TicketKey::generate(), Folder::new(name));
        let mut config =
            HostConfig::new(Fragile::NAME, "127.0.0.1:0".parse().unwrap(), key.clone());
        config.incidents = Some(folder.0.clone());
        World {
            host: Host::start(config).await.unwrap(),
            key,
            folder,
            matches: Vec::new(),
        }
    }

    /// Another match with a player in it; its number.
    async fn add(&mut self, journal: Option<Journal>) -> usize {
        let id = self.matches.len() as u64;
        let game = self.host.add_match(id, fragile(), journal).await.unwrap();
        let client = Client::connect(&self.ticket(id), SessionConfig::new(Arc::new(()))).unwrap();
        self.matches.push((game, client, None));
        self.matches.len() - 1
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn ticket(&self, match_id: u64) -> Ticket {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: Fragile::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity: "mallory",
            match_id,
            seats: 1,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(20),
            now_unix,
        };
        Ticket::issue(&self.key, &spec).unwrap()
    }

    /// Advances all clients until `done`.
    #[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
    async fn play(&mut self, what: &str, mut done: impl FnMut(&World) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: not within {PATIENCE:?}"
            );
            for (_, client, ended) in &mut self.matches {
                if ended.is_none() {
                    *ended = client.advance(|_| 0).err();
                }
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn tick(&self, at: usize) -> Tick {
        let world = self.matches[at].1.session.authority();
        world.map_or(Tick(0), |world| world.tick())
    }

    async fn all_play(&mut self) {
        self.play("joining", |world| {
            (0..world.matches.len()).all(|at| world.tick(at) > Tick(20))
        })
        .await;
    }

    /// Plays another second in a match.
    async fn plays_on(&mut self, at: usize) {
        assert!(self.matches[at].2.is_none(), "{:?}", self.matches[at].2);
        let goal = self.tick(at) + 60;
        self.play("playing on", |world| world.tick(at) > goal).await;
    }

    fn order(&mut self, at: usize, order: Order) {
        self.matches[at].1.session.command(0, order).unwrap();
    }

    /// Waits until the match is over, and says why its player was told it is.
    async fn ended(&mut self, at: usize) -> Closed {
        self.play("ending", |world| world.matches[at].2.is_some())
            .await;
        match self.matches[at].2.take() {
            Some(Ended::Session(closed)) => closed,
            other => panic!("{other:?}"),
        }
    }

    async fn sim(&self, at: usize) -> Fragile {
        let game = &self.matches[at].0;
        game.inspect(|game| game.world().sim().clone())
            .await
            .unwrap()
    }
}

const FAULT: Closed = Closed::Server(CloseCode::Fault);

#[tokio::test]
async fn a_poison_command_strikes_its_author_and_the_match_plays_on() {
    let mut world = World::new("poison").await;
    let sick = world.add(None).await;
    world.all_play().await;
    world.order(sick, Order::Poison);
    world
        .play("the refusal", |w| {
            w.matches[sick].1.session.stats().commands_refused == 1
        })
        .await;
    world.plays_on(sick).await;
    let said = world.folder.incidents(0);
    for word in [
        "fragile version 1",
        "planted: poison",
        "p0 \"mallory\"",
        "command #0: Poison",
    ] {
        assert!(said.contains(word), "{word:?} in {said}");
    }
    // Eight are forgiven within ten seconds, the ninth is not.
    for _ in 0..8 {
        world.order(sick, Order::Poison);
        world.play("a while", |_| true).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(world.ended(sick).await, Closed::Server(CloseCode::Strikes));
    world.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test]
async fn a_step_that_panics_for_itself_ends_its_match_alone() {
    let mut world = World::new("curse").await;
    let (sick, well) = (world.add(None).await, world.add(None).await);
    world.all_play().await;
    world.order(sick, Order::Curse);
    assert_eq!(world.ended(sick).await, FAULT);
    assert!(world.matches[sick].0.is_over());
    let said = world.folder.incidents(0);
    assert!(
        said.contains("without orders too") && said.contains("planted: cursed"),
        "{said}"
    );
    world.plays_on(well).await;
    assert_eq!(world.folder.incidents(1), "");
    world.host.shutdown(CloseCode::Draining).await;
}

/// Finding A7: what went wrong was told in a log alone, which nobody had set up, and an author who asked got nothing.
#[tokio::test]
async fn an_author_who_asks_is_told_what_went_wrong_also_when_the_match_is_over() {
    let mut world = World::new("told").await;
    let sick = world.add(None).await;
    world.all_play().await;
    let game = world.matches[sick].0.clone();
    let troubles = || {
        let incidents = game.take_incidents();
        Vec::from_iter(incidents.into_iter().map(|incident| incident.trouble))
    };
    assert_eq!(troubles(), []);
    world.order(sick, Order::Poison);
    world.plays_on(sick).await;
    assert_eq!(troubles(), [Trouble::Step]);
    assert_eq!(troubles(), [], "once");
    // What a client found different. The log takes each report as it comes.
    let client = &mut world.matches[sick].1;
    client.session.corrupt(|sim| sim.answered += 7);
    world
        .play("healing", |w| w.matches[sick].1.session.stats().heals == 1)
        .await;
    world.plays_on(sick).await;
    let reports = game.inspect(Match::take_reports).await.unwrap();
    assert!(
        reports.len() == 1 && reports[0].text.contains("answered"),
        "{reports:?}"
    );
    world.order(sick, Order::Curse);
    assert_eq!(world.ended(sick).await, FAULT);
    assert_eq!(troubles(), [Trouble::StepAgain], "though it is over");
    world.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test]
async fn a_resolver_that_panics_leaves_its_query_unanswered() {
    let mut world = World::new("resolver").await;
    let sick = world.add(None).await;
    world.all_play().await;
    world.order(sick, Order::Ask(Answer::Panics));
    world.order(sick, Order::Ask(Answer::JobPanics));
    world.order(sick, Order::Ask(Answer::Well));
    world.plays_on(sick).await;
    let sim = world.sim(sick).await;
    // All three were asked under one cause in one tick, or in several.
    assert!(sim.unanswered >= 1, "{sim:?}");
    assert!(world.folder.incidents(0).contains("planted: resolver"));
    world.order(sick, Order::Ask(Answer::JobPanics));
    world.plays_on(sick).await;
    assert!(world.folder.incidents(0).contains("planted: job"));
    world.order(sick, Order::Ask(Answer::Well));
    world.plays_on(sick).await;
    assert!(world.sim(sick).await.answered >= 1);
    world.host.shutdown(CloseCode::Draining).await;
}

/// A job that never returns costs its query; a resolver or a step that never returns costs its match. A fourth
/// match feels nothing of it.
#[tokio::test]
async fn what_never_returns_is_given_up_alone() {
    let mut world = World::new("hangs").await;
    let job = world.add(None).await;
    let resolver = world.add(None).await;
    let step = world.add(None).await;
    let well = world.add(None).await;
    world.all_play().await;
    world.order(job, Order::Ask(Answer::JobHangs));
    world.order(resolver, Order::Ask(Answer::Hangs));
    world.order(step, Order::Sleep);
    let before = world.tick(well);
    assert_eq!(world.ended(resolver).await, FAULT);
    assert_eq!(world.ended(step).await, FAULT);
    for at in [resolver, step] {
        assert!(world.matches[at].0.is_over());
        let answer = world.matches[at].0.inspect(|game| game.sessions()).await;
        assert!(answer.is_err(), "nobody is there to answer");
        let said = world.folder.incidents(at as u64);
        assert!(said.contains("stands still"), "{said}");
    }
    world
        .play("the job is given up", |w| {
            w.folder.incidents(0).contains("does not return")
        })
        .await;
    world.plays_on(job).await;
    assert_eq!(world.sim(job).await.unanswered, 1);
    assert!(
        world.tick(well) - before > 200,
        "the well one played all the time"
    );
    world.plays_on(well).await;
    world.host.shutdown(CloseCode::Draining).await;
}

/// A disk without room: the match ends or goes on as it was told, and says so either way.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_journal_that_cannot_be_written_ends_the_match_or_does_not_as_configured() {
    let full = |world: &World, policy| {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .open("/dev/full")
            .unwrap();
        let path = world.folder.0.join("full.journal");
        Some(Journal::from_file(path, file).on_failure(policy))
    };
    let mut world = World::new("full").await;
    let journal = full(&world, OnJournalFailure::GoOn);
    let goes_on = world.add(journal).await;
    world.all_play().await;
    world.plays_on(goes_on).await;
    let stats = world.matches[goes_on]
        .0
        .inspect(|game| game.stats())
        .await
        .unwrap();
    assert_eq!(stats.journal_lost, Some(Tick(0)));
    assert!(world.folder.incidents(0).contains("No space left"));

    let journal = full(&world, OnJournalFailure::End);
    let game = world.host.add_match(77, fragile(), journal).await.unwrap();
    while !game.is_over() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(world.folder.incidents(77).contains("No space left"));
    world.plays_on(goes_on).await;
    world.host.shutdown(CloseCode::Draining).await;
}
