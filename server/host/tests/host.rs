//! Matches of a host, with real clients over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twinstep_client::{Client, SessionConfig};
use twinstep_core::{Effects, Frame, Key as Cause, Never, RosterChange, Simulation, Tick};
use twinstep_host::{Host, HostError, Journal, JournalFileError, MatchEnded, MatchHandle, Server};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Index;
use twinstep_server::{Decision, HookContext, Match, MatchConfig};
use twinstep_udp::{Identity, MatchId, Role, Ticket, TicketKey};

use crate::folder::Folder;
use crate::loopback::{LoopbackHost, Setup, loopback};
use crate::players::{Player, closed_by, end_of, play, tick};

const PANIC: u8 = 99;

/// Each held input opens a query with the same number, answered by a job. The state is the sum of the answers.
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
    let resolver = |_: &HookContext<'_, Tally>, _: Cause, query: &u8| {
        let query = *query;
        Decision::Later(Box::new(move || match query {
            PANIC => std::panic::resume_unwind(Box::new("planted")),
            n => n,
        }))
    };
    Match::new(config, Tally::default(), Arc::new(7), resolver).unwrap()
}

async fn server(name: &str) -> LoopbackHost<Tally> {
    LoopbackHost::start(name, |_| {}).await
}

fn client(ticket: &Ticket) -> Client<Tally> {
    Client::connect(ticket, SessionConfig::new(Arc::new(7))).unwrap()
}

fn player(ticket: &Ticket) -> Player<Tally> {
    Player::of(client(ticket))
}

fn all_beyond(beyond: Tick) -> impl Fn(&mut [Player<Tally>]) -> bool {
    move |party| party.iter().all(|one| one.tick() > beyond)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_matches_run_side_by_side_and_a_shutdown_sends_its_reason() {
    let server = server("host-two-matches").await;
    let folder = Folder::new("two-matches");
    let journal = folder.file("one.journal");
    let one = server
        .host
        .add_match(
            MatchId(1),
            tally(8),
            Some(Journal::create(journal.clone()).unwrap()),
        )
        .await;
    let two = server.host.add_match(MatchId(2), tally(8), None).await;
    let (one, two) = (one.unwrap(), two.unwrap());
    let again = server.host.add_match(MatchId(2), tally(8), None).await;
    assert!(matches!(again, Err(HostError::MatchExists(MatchId(2)))));

    let first = server.ticket("anna", 1);
    let mut party = vec![
        player(&first).holding(3),
        player(&server.ticket("bob", 1)),
        player(&server.ticket("anna", 2)).holding(PANIC),
    ];
    play(&mut party, all_beyond(Tick(120))).await.unwrap();
    for (player, match_) in party.iter().zip([&one, &one, &two]) {
        let world = player.client.session().authority().unwrap();
        let (tick, ours) = (world.tick(), world.digest().unwrap());
        let theirs = match_.inspect(move |match_| match_.digest_at(tick)).await;
        assert_eq!(theirs, Ok(Some(ours)), "at {tick}");
    }
    let sim = async |match_: &MatchHandle<Tally>| {
        let sim = match_.inspect(|match_| match_.world().sim().clone()).await;
        sim.unwrap()
    };
    let (one_sim, two_sim) = (sim(&one).await, sim(&two).await);
    assert_eq!((one_sim.players, two_sim.players), (2, 1));
    assert!(one_sim.sum >= 3 && one_sim.unanswered == 0, "{one_sim:?}");
    assert!(two_sim.sum == 0 && two_sim.unanswered >= 1, "{two_sim:?}");

    let shutdown = tokio::spawn(server.host.shutdown(CloseCode::MatchOver));
    // The waiting clients also receive it: each packet is answered with the close code again.
    for player in party {
        assert_eq!(end_of(player).await, closed_by(CloseCode::MatchOver));
    }
    shutdown.await.unwrap();
    assert!(one.is_over() && two.is_over());
    let index = Index::scan(&std::fs::read(&journal).unwrap()).unwrap();
    let anna = Identity::new("anna", Role::Player);
    let known = index.lineages.get(&anna).unwrap();
    assert!(known.has_seen(first.stamp().lineage));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_other_rules_or_for_full_or_unknown_matches_are_refused_with_a_message() {
    let server = server("host-refused").await;
    server
        .host
        .add_match(MatchId(1), tally(1), None)
        .await
        .unwrap();

    let other = SessionConfig::new(Arc::new(8));
    let other = Client::<Tally>::connect(&server.ticket("eve", 1), other).unwrap();
    let ended = end_of(other).await;
    assert_eq!(ended, closed_by(CloseCode::WrongRules));
    assert!(ended.to_string().contains("other rules"), "{ended}");

    let lost = client(&server.ticket("anna", 9));
    assert_eq!(end_of(lost).await, closed_by(CloseCode::NoMatch));

    let mut inside = vec![player(&server.ticket("anna", 1))];
    play(&mut inside, all_beyond(Tick(0))).await.unwrap();
    let late = client(&server.ticket("bob", 1));
    assert_eq!(end_of(late).await, closed_by(CloseCode::Full));
    server.host.shutdown(CloseCode::Draining).await;
}

/// The file next to the key records outdated tickets, even of matches without a journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_is_valid_after_a_restart_until_a_newer_one_is_safe() {
    let (folder, key) = (Folder::new("host-restart"), TicketKey::generate());
    let start = async |listen: SocketAddr| {
        let set = |config: &mut Setup| {
            config.lineages_file = Some(folder.file("lineages"));
            config.listen = listen;
        };
        let (folder, key) = (folder.clone(), key.clone());
        LoopbackHost::<Tally>::start_in(folder, key, set).await
    };
    let server = start(loopback()).await;
    server
        .host
        .add_match(MatchId(1), tally(8), None)
        .await
        .unwrap();
    let older = server.ticket("anna", 1);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let newer = server.ticket("anna", 1);
    for once in [&older, &newer] {
        let mut party = vec![player(once)];
        play(&mut party, all_beyond(Tick(0))).await.unwrap();
        // A ticket counts as used only after its session plays.
        let seen = party[0].tick();
        play(&mut party, all_beyond(seen + 60)).await.unwrap();
    }
    let address = server.host.local_addr();
    server.host.shutdown(CloseCode::Draining).await;

    let server = start(address).await;
    server
        .host
        .add_match(MatchId(1), tally(8), None)
        .await
        .unwrap();
    let late = end_of(client(&older)).await;
    assert_eq!(late, closed_by(CloseCode::Superseded));
    for _ in 0..2 {
        let mut party = vec![player(&newer)];
        play(&mut party, all_beyond(Tick(0))).await.unwrap();
    }
    server.host.shutdown(CloseCode::Draining).await;
}

/// Finding H6: a client that dialled before its match existed was refused permanently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_dials_before_its_match_is_resumed_waits() {
    let server = server("host-early").await;
    let early = server.ticket("anna", 7);
    let mut party = vec![player(&early).holding(1)];
    let begun = std::cell::Cell::new(0);
    play(&mut party, |_| {
        begun.set(begun.get() + 1);
        begun.get() > 300
    })
    .await
    .unwrap();
    assert_eq!(party[0].tick(), Tick(0));
    server
        .host
        .add_match(MatchId(7), tally(8), None)
        .await
        .unwrap();
    play(&mut party, all_beyond(Tick(0))).await.unwrap();
    server.host.shutdown(CloseCode::Draining).await;
}

/// One ticket for a match that did not run, used repeatedly, took all slots of a small host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn sessions_waiting_for_a_match_do_not_take_slots_from_other_sessions() {
    let set = |config: &mut Setup| config.sessions_max = Some(16);
    let server = LoopbackHost::<Tally>::start("host-waits", set).await;
    server
        .host
        .add_match(MatchId(1), tally(8), None)
        .await
        .unwrap();
    let former = server.ticket("mallory", 9);
    let mut waiting: Vec<_> = (0..32).map(|_| client(&former)).collect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        // Some clients get their close code.
        waiting.retain_mut(|client| client.advance(|_| 0).is_ok());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut party = vec![player(&server.ticket("anna", 1))];
    let began = Instant::now();
    play(&mut party, |party| {
        waiting.retain_mut(|client| client.advance(|_| 0).is_ok());
        party[0].tick() > Tick(0)
    })
    .await
    .unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "it took {took:?}");
    assert!(!waiting.is_empty(), "some wait on");
    server.host.shutdown(CloseCode::Draining).await;
}

/// Finding K12: a client refused with "full, try again later" could not retry with the same ticket.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_client_can_retry_with_the_same_ticket() {
    let server = server("host-full").await;
    server
        .host
        .add_match(MatchId(1), tally(1), None)
        .await
        .unwrap();
    let mut inside = vec![player(&server.ticket("anna", 1))];
    play(&mut inside, all_beyond(Tick(0))).await.unwrap();
    let late = server.ticket("bob", 1);
    for _ in 0..2 {
        assert_eq!(end_of(client(&late)).await, closed_by(CloseCode::Full));
    }
    inside[0].client.leave();
    let mut party = vec![player(&late)];
    while let Err(ended) = play(&mut party, all_beyond(Tick(0))).await {
        assert_eq!(ended, closed_by(CloseCode::Full), "until her seat is free");
        party = vec![player(&late)];
    }
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panicking_match_does_not_end_other_matches() {
    let server = server("host-panics").await;
    let sick = server
        .host
        .add_match(MatchId(1), tally(8), None)
        .await
        .unwrap();
    let well = server
        .host
        .add_match(MatchId(2), tally(8), None)
        .await
        .unwrap();
    let mut party = vec![
        player(&server.ticket("anna", 1)),
        player(&server.ticket("bob", 2)).holding(1),
    ];
    play(&mut party, all_beyond(Tick(0))).await.unwrap();
    let planted = sick.inspect(|_| std::panic::resume_unwind(Box::new("planted")));
    assert_eq!(planted.await, Err::<(), _>(MatchEnded));
    let anna = party.remove(0);
    assert_eq!(end_of(anna).await, closed_by(CloseCode::Fault));

    let seen = party[0].tick();
    play(&mut party, all_beyond(seen + 30)).await.unwrap();
    assert!(!well.is_over());
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test]
async fn start_errors_state_the_next_step() {
    let server = server("host-cannot-start").await;
    let mut taken = LoopbackHost::<Tally>::config(&server.folder, &server.key);
    taken.listen = server.host.local_addr();
    let error = Host::start(taken.host).await.err().unwrap();
    assert!(matches!(error, HostError::PortInUse { .. }), "{error}");
    assert!(error.to_string().contains("another address"), "{error}");

    let there = server.folder.file("there.journal");
    std::fs::write(&there, b"something else").unwrap();
    let nowhere = server.folder.file("no/such/folder.journal");
    let error = Journal::create(there.clone()).unwrap_err();
    assert!(matches!(error, JournalFileError::Exists { .. }), "{error}");
    let error = Journal::create(nowhere).unwrap_err();
    assert!(
        matches!(error, JournalFileError::Unwritable { .. }),
        "{error}"
    );
    server.host.shutdown(CloseCode::Draining).await;
}

#[test]
fn a_server_can_be_started_without_a_tokio_runtime() {
    let server = Server::action(Tally::default(), 7);
    let server = server.players(2).listen("127.0.0.1:0").unwrap();
    let mut anna = client(&server.ticket("anna").unwrap());
    for _ in 0..5_000 {
        anna.advance(|_| 1).unwrap();
        if tick(&anna) >= Tick(60) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let world = anna.session().authority().unwrap();
    assert!(world.tick() >= Tick(60));
    let (tick, ours) = (world.tick(), world.digest().unwrap());
    let theirs = server.inspect(move |match_| match_.digest_at(tick));
    assert_eq!(theirs, Ok(Some(ours)));
    let sim = server
        .inspect(|match_| match_.world().sim().clone())
        .unwrap();
    assert!(
        sim.unanswered > 0 && sim.sum == 0,
        "without a resolver: {sim:?}"
    );
    server.shutdown();
}
