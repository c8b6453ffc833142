//! The host over real sockets on loopback, with real clients. Time is the machine's, so every wait has an end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::Index;
use twinstep_core::{Effects, Frame, Key as Cause, Never, RosterChange, Simulation, Tick};
use twinstep_server::host::{
    Host, HostConfig, HostError, Journal, JournalFileError, MatchEnded, MatchHandle, Server,
};
use twinstep_server::{Decision, Look, Match, MatchConfig};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

const PATIENCE: Duration = Duration::from_secs(20);
const PANIC: u8 = 99;

/// Whoever holds something asks for as much by a job; the sum of the answers is the state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Tally {
    sum: u64,
    unanswered: u32,
    players: u32,
}

impl Simulation for Tally {
    const NAME: &'static str = "tally";
    const VERSION: u32 = 1;
    type Rules = u32;
    type Input = u8;
    type Command = Never;
    type Query = u8;
    type Outcome = u8;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, change) in frame.roster() {
            self.players += u32::from(change == RosterChange::Joined);
        }
        for (_, _, outcome) in frame.outcomes() {
            match outcome {
                Some(n) => self.sum += u64::from(*n),
                None => self.unanswered += 1,
            }
        }
        for (player, held) in frame.inputs().filter(|(_, held)| **held > 0) {
            if frame.tick().0.is_multiple_of(10) {
                fx.ask(Cause::player(player, frame.tick().0), *held);
            }
        }
    }
}

fn tally(players_max: usize) -> Match<Tally> {
    let config = MatchConfig {
        players_max,
        ..MatchConfig::action()
    };
    let resolver = |_: &Look<'_, Tally>, _: Cause, query: &u8| {
        let query = *query;
        Decision::Later(Box::new(move || match query {
            PANIC => std::panic::resume_unwind(Box::new("planted")),
            n => n,
        }))
    };
    Match::new(config, Tally::default(), Arc::new(7), resolver).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "real tickets need the wall clock"
)]
fn ticket(host: &Host, key: &TicketKey, identity: &str, match_id: u64) -> Ticket {
    let now_unix = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let spec = TicketSpec {
        game: Tally::NAME,
        wire_version: u32::from(WIRE_VERSION),
        identity,
        match_id,
        seats: 1,
        servers: host.public_addresses(),
        life: Duration::from_secs(600),
        timeout: Duration::from_secs(5),
        now_unix,
    };
    Ticket::issue(key, &spec).unwrap()
}

fn client(ticket: &Ticket) -> Client<Tally> {
    Client::connect(ticket, SessionConfig::new(Arc::new(7))).unwrap()
}

/// Clients, and what each holds.
type Party = Vec<(Client<Tally>, u8)>;

/// Advances clients until `done`, or until one of them is over.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn play(party: &mut Party, mut done: impl FnMut(&Party) -> bool) -> Result<(), Ended> {
    let began = Instant::now();
    while !done(party) {
        assert!(
            began.elapsed() < PATIENCE,
            "nothing came of it within {PATIENCE:?}"
        );
        for (client, held) in &mut *party {
            let held = *held;
            client.advance(|_| held)?;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// How playing ends for a client that is not let in, or put out.
async fn end_of(client: Client<Tally>) -> Ended {
    play(&mut vec![(client, 0)], |_| false).await.unwrap_err()
}

fn said(code: CloseCode) -> Ended {
    Ended::Session(Closed::Server(code))
}

fn authority(client: &Client<Tally>) -> Tick {
    let world = client.session.authority();
    world.map_or(Tick(0), |world| world.tick())
}

fn all_beyond(tick: Tick) -> impl Fn(&Party) -> bool {
    move |party| party.iter().all(|(client, _)| authority(client) > tick)
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

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config(key: &TicketKey) -> HostConfig {
    HostConfig::new(Tally::NAME, "127.0.0.1:0".parse().unwrap(), key.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_matches_play_side_by_side_and_a_shutdown_tells_why() {
    let key = TicketKey::generate();
    let host = Host::start(config(&key)).await.unwrap();
    let folder = Folder::new("two-matches");
    let journal = folder.file("one.journal");
    let one = host
        .add_match(1, tally(8), Some(Journal::create(journal.clone()).unwrap()))
        .await;
    let two = host.add_match(2, tally(8), None).await;
    let (one, two) = (one.unwrap(), two.unwrap());
    let again = host.add_match(2, tally(8), None).await;
    assert!(matches!(again, Err(HostError::MatchExists(2))));

    let first = ticket(&host, &key, "anna", 1);
    let mut party = vec![
        (client(&first), 3),
        (client(&ticket(&host, &key, "bob", 1)), 0),
        (client(&ticket(&host, &key, "anna", 2)), PANIC),
    ];
    play(&mut party, all_beyond(Tick(120))).await.unwrap();
    for ((client, _), game) in party.iter().zip([&one, &one, &two]) {
        let world = client.session.authority().unwrap();
        let (tick, ours) = (world.tick(), world.digest().unwrap());
        let theirs = game.inspect(move |game| game.digest_at(tick)).await;
        assert_eq!(theirs, Ok(Some(ours)), "at {tick}");
    }
    let sim = async |game: &MatchHandle<Tally>| {
        let sim = game.inspect(|game| game.world().sim().clone()).await;
        sim.unwrap()
    };
    let (one_sim, two_sim) = (sim(&one).await, sim(&two).await);
    assert_eq!((one_sim.players, two_sim.players), (2, 1));
    assert!(one_sim.sum >= 3 && one_sim.unanswered == 0, "{one_sim:?}");
    assert!(two_sim.sum == 0 && two_sim.unanswered >= 1, "{two_sim:?}");

    let shutdown = tokio::spawn(host.shutdown(CloseCode::MatchOver));
    // The clients that wait for their turn hear it too: who still speaks is told again.
    for (client, _) in party {
        assert_eq!(end_of(client).await, said(CloseCode::MatchOver));
    }
    shutdown.await.unwrap();
    assert!(one.is_over() && two.is_over());
    let index = Index::scan(&std::fs::read(&journal).unwrap()).unwrap();
    let anna = ("anna".to_owned(), false);
    assert_eq!(index.serials.get(&anna), Some(&first.serial()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rules_full_matches_and_unknown_ones_are_refused_in_words() {
    let key = TicketKey::generate();
    let host = Host::start(config(&key)).await.unwrap();
    host.add_match(1, tally(1), None).await.unwrap();

    let other = SessionConfig::new(Arc::new(8));
    let other = Client::connect(&ticket(&host, &key, "eve", 1), other).unwrap();
    let ended = end_of(other).await;
    assert_eq!(ended, said(CloseCode::WrongRules));
    assert!(ended.to_string().contains("other rules"), "{ended}");

    let lost = client(&ticket(&host, &key, "anna", 9));
    assert_eq!(end_of(lost).await, said(CloseCode::NoMatch));

    let mut inside = vec![(client(&ticket(&host, &key, "anna", 1)), 0)];
    play(&mut inside, all_beyond(Tick(0))).await.unwrap();
    let late = client(&ticket(&host, &key, "bob", 1));
    assert_eq!(end_of(late).await, said(CloseCode::Full));
    host.shutdown(CloseCode::Draining).await;
}

/// Without a journal the file beside the key remembers which tickets are out of date.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_is_good_after_a_restart_until_a_newer_one_is_safe() {
    let key = TicketKey::generate();
    let folder = Folder::new("restart");
    let mut settings = config(&key);
    settings.serials_file = Some(folder.file("serials"));
    let host = Host::start(settings.clone()).await.unwrap();
    host.add_match(1, tally(8), None).await.unwrap();
    let older = ticket(&host, &key, "anna", 1);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let newer = ticket(&host, &key, "anna", 1);
    for once in [&older, &newer] {
        let mut party = vec![(client(once), 0)];
        play(&mut party, all_beyond(Tick(0))).await.unwrap();
        // Only what a session plays with is used.
        let seen = authority(&party[0].0);
        play(&mut party, all_beyond(seen + 60)).await.unwrap();
    }
    settings.listen = host.local_addr();
    host.shutdown(CloseCode::Draining).await;

    let host = Host::start(settings).await.unwrap();
    host.add_match(1, tally(8), None).await.unwrap();
    let late = end_of(client(&older)).await;
    assert_eq!(late, said(CloseCode::Superseded));
    for _ in 0..2 {
        let mut party = vec![(client(&newer), 0)];
        play(&mut party, all_beyond(Tick(0))).await.unwrap();
    }
    host.shutdown(CloseCode::Draining).await;
}

/// Finding H6: who dialled before its match was there was refused for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_dials_before_its_match_is_taken_up_waits_for_it() {
    let key = TicketKey::generate();
    let host = Host::start(config(&key)).await.unwrap();
    let early = ticket(&host, &key, "anna", 7);
    let mut party = vec![(client(&early), 1)];
    let begun = std::cell::Cell::new(0);
    play(&mut party, |_| {
        begun.set(begun.get() + 1);
        begun.get() > 300
    })
    .await
    .unwrap();
    assert_eq!(authority(&party[0].0), Tick(0));
    host.add_match(7, tally(8), None).await.unwrap();
    play(&mut party, all_beyond(Tick(0))).await.unwrap();
    host.shutdown(CloseCode::Draining).await;
}

/// One ticket of a match that does not run, shown again and again, took all places of a small host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn who_waits_for_a_match_that_does_not_run_takes_nobody_elses_place() {
    let key = TicketKey::generate();
    let config = HostConfig {
        sessions_max: 16,
        ..config(&key)
    };
    let host = Host::start(config).await.unwrap();
    host.add_match(1, tally(8), None).await.unwrap();
    let former = ticket(&host, &key, "mallory", 9);
    let mut waiting: Vec<_> = (0..32).map(|_| client(&former)).collect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        // Some are told that they are over.
        waiting.retain_mut(|client| client.advance(|_| 0).is_ok());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut party = vec![(client(&ticket(&host, &key, "anna", 1)), 0)];
    let began = Instant::now();
    play(&mut party, |party| {
        waiting.retain_mut(|client| client.advance(|_| 0).is_ok());
        authority(&party[0].0) > Tick(0)
    })
    .await
    .unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "it took {took:?}");
    assert!(!waiting.is_empty(), "some wait on");
    host.shutdown(CloseCode::Draining).await;
}

/// Finding K12: "full, try again later" could not be tried again with the same ticket.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_refused_tries_again_with_the_same_ticket() {
    let key = TicketKey::generate();
    let host = Host::start(config(&key)).await.unwrap();
    host.add_match(1, tally(1), None).await.unwrap();
    let mut inside = vec![(client(&ticket(&host, &key, "anna", 1)), 0)];
    play(&mut inside, all_beyond(Tick(0))).await.unwrap();
    let late = ticket(&host, &key, "bob", 1);
    for _ in 0..2 {
        assert_eq!(end_of(client(&late)).await, said(CloseCode::Full));
    }
    inside[0].0.leave();
    let mut party = vec![(client(&late), 0)];
    while let Err(ended) = play(&mut party, all_beyond(Tick(0))).await {
        assert_eq!(ended, said(CloseCode::Full), "until her seat is free");
        party = vec![(client(&late), 0)];
    }
    host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_that_panics_ends_alone() {
    let key = TicketKey::generate();
    let host = Host::start(config(&key)).await.unwrap();
    let sick = host.add_match(1, tally(8), None).await.unwrap();
    let well = host.add_match(2, tally(8), None).await.unwrap();
    let mut party = vec![
        (client(&ticket(&host, &key, "anna", 1)), 0),
        (client(&ticket(&host, &key, "bob", 2)), 1),
    ];
    play(&mut party, all_beyond(Tick(0))).await.unwrap();
    let planted = sick.inspect(|_| std::panic::resume_unwind(Box::new("planted")));
    assert_eq!(planted.await, Err::<(), _>(MatchEnded));
    let (anna, _) = party.remove(0);
    assert_eq!(end_of(anna).await, said(CloseCode::Fault));

    let seen = authority(&party[0].0);
    play(&mut party, all_beyond(seen + 30)).await.unwrap();
    assert!(!well.is_over());
    host.shutdown(CloseCode::Draining).await;
}

#[tokio::test]
async fn what_cannot_start_says_what_to_do() {
    let key = TicketKey::generate();
    let host = Host::start(config(&key)).await.unwrap();
    let mut taken = config(&key);
    taken.listen = host.local_addr();
    let error = Host::start(taken).await.err().unwrap();
    assert!(matches!(error, HostError::PortInUse { .. }), "{error}");
    assert!(error.to_string().contains("--listen"), "{error}");

    let folder = Folder::new("journals");
    let there = folder.file("there.journal");
    std::fs::write(&there, b"something else").unwrap();
    let nowhere = folder.file("no/such/folder.journal");
    let error = Journal::create(there.clone()).unwrap_err();
    assert!(matches!(error, JournalFileError::Exists { .. }), "{error}");
    let error = Journal::create(nowhere).unwrap_err();
    assert!(
        matches!(error, JournalFileError::Unwritable { .. }),
        "{error}"
    );
    host.shutdown(CloseCode::Draining).await;
}

#[test]
fn an_author_needs_no_runtime() {
    let server = Server::action(Tally::default(), 7);
    let server = server.players(2).listen("127.0.0.1:0").unwrap();
    let mut anna = client(&server.ticket("anna").unwrap());
    for _ in 0..5_000 {
        anna.advance(|_| 1).unwrap();
        if authority(&anna) >= Tick(60) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let world = anna.session.authority().unwrap();
    assert!(world.tick() >= Tick(60));
    let (tick, ours) = (world.tick(), world.digest().unwrap());
    let theirs = server.inspect(move |game| game.digest_at(tick));
    assert_eq!(theirs, Ok(Some(ours)));
    let sim = server.inspect(|game| game.world().sim().clone()).unwrap();
    assert!(
        sim.unanswered > 0 && sim.sum == 0,
        "without a resolver: {sim:?}"
    );
    server.shutdown();
}
