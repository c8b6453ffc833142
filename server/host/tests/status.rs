//! A server's reports on its admin port: correct metrics after a real match on loopback, and its readiness.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Never, Simulation};
use twinstep_host::{Journal, MatchHandle, MatchId};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::{Decision, HookContext, Match, MatchConfig, MatchStats};

use crate::loopback::LoopbackHost;
use crate::players::{Player, play_for, play_remaining};
use crate::scrape::{ask, scrape};

/// A query for this input is answered at once, one for `ASK_LATER` by a job.
const ASK: u8 = 1;
const ASK_LATER: u8 = 2;
const PANIC: u8 = 3;

/// A held input opens a query every fourth tick.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Asker(u64);

impl Simulation for Asker {
    const NAME: &'static str = "asker";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = u8;
    type Outcome = u8;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        self.0 += frame.outcomes().count() as u64;
        for (player, held) in frame.inputs().filter(|(_, held)| **held > 0) {
            if frame.tick().0.is_multiple_of(4) {
                fx.ask(Key::player(player, frame.tick().0), *held);
            }
        }
    }
}

async fn server(name: &str) -> LoopbackHost<Asker> {
    LoopbackHost::start(name, |_| {}).await
}

async fn add(server: &LoopbackHost<Asker>, id: u64) -> MatchHandle<Asker> {
    let config = MatchConfig {
        players_max: 2,
        ..MatchConfig::action()
    };
    let resolver = |_: &HookContext<'_, Asker>, _: Key, query: &u8| match *query {
        PANIC => panic!("planted"),
        ASK => Decision::Now(ASK),
        held => Decision::Later(Box::new(move || held)),
    };
    let match_ = Match::new(config, Asker::default(), Arc::new(()), resolver).unwrap();
    let path = server.folder.file(&format!("{id}.journal"));
    let journal = Journal::create(path).unwrap();
    let added = server
        .host
        .add_match(MatchId(id), match_, Some(journal))
        .await;
    added.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_correct_during_and_after_a_real_match() {
    let server = server("telling").await;
    let at_first = scrape(server.admin()).await;
    assert_eq!(at_first.of("twinstep_matches"), 0.0);
    let handle = add(&server, 7).await;
    server.until_number_is("twinstep_seats_free", 2.0).await;
    let mut party = vec![
        server.player("anna", 7).holding(ASK),
        server.player("bob", 7).holding(ASK_LATER),
    ];
    play_for(&mut party, Duration::from_millis(1_500)).await;
    let during = scrape(server.admin()).await;
    during.assert_not_below(&at_first);
    assert_eq!(during.of("twinstep_matches"), 1.0);
    assert_eq!(during.of("twinstep_players"), 2.0);
    assert_eq!(during.of("twinstep_seats_free"), 0.0);
    assert_eq!(during.of("twinstep_sessions"), 2.0);

    // There is no seat for a third player, and a resolver panics.
    party.push(server.player("carl", 7));
    let refused = |party: &mut [Player<Asker>]| party[2].ended.is_some();
    play_remaining("the refusal", &mut party, refused).await;
    party[0].held = PANIC;
    play_for(&mut party, Duration::from_millis(300)).await;
    party.truncate(2);
    party[0].held = 0;
    party[1].held = 0;
    play_for(&mut party, Duration::from_millis(300)).await;
    // All clients are silent for half a second, so inputs are filled.
    tokio::time::sleep(Duration::from_millis(500)).await;

    let stats: MatchStats = handle
        .inspect(|match_| {
            let stats = match_.stats();
            match_.close(CloseCode::MatchOver);
            stats
        })
        .await
        .unwrap();
    handle.ended().await;
    server.until_number_is("twinstep_matches", 0.0).await;
    let after = scrape(server.admin()).await;
    after.assert_not_below(&during);
    for (series, counted) in [
        ("twinstep_ticks_total", stats.ticks),
        ("twinstep_turns_total", stats.turns),
        ("twinstep_fills_total", stats.fills),
        ("twinstep_queries_total", stats.queries),
        ("twinstep_queries_unanswered_total", stats.unanswered),
        ("twinstep_panics_total", stats.panics),
        ("twinstep_step_seconds_count", stats.ticks),
        ("twinstep_resolver_seconds_count", stats.queries),
        ("twinstep_desyncs_total", 0),
        ("twinstep_joins_total{result=\"playing\"}", 2),
        ("twinstep_joins_total{result=\"full\"}", 1),
        ("twinstep_joins_total{result=\"gone\"}", 0),
        ("twinstep_kicks_total{reason=\"operator\"}", 0),
        ("twinstep_players", 0),
    ] {
        assert_eq!(after.of(series), counted as f64, "{series}");
    }
    assert!(stats.ticks > 100, "{stats:?}");
    assert!(stats.queries > 20 && stats.panics > 0, "{stats:?}");
    assert!(stats.fills > 20, "{stats:?}");
    let incidents = after.of("twinstep_incidents_total{kind=\"resolver\"}");
    assert!(incidents > 0.0);
    let file = std::fs::metadata(server.folder.file("7.journal")).unwrap();
    assert_eq!(after.of("twinstep_journal_bytes_total"), file.len() as f64);
    assert!(after.of("twinstep_journal_writes_total") >= stats.turns as f64);
    // Each turn was sent soon after it was sealed.
    let sent = after.of("twinstep_seal_to_send_seconds_count");
    assert!(
        sent > 0.5 * stats.turns as f64 && sent <= stats.turns as f64,
        "{sent}"
    );
    let (received, datagrams) = (
        after.of("twinstep_received_bytes_total"),
        after.of("twinstep_datagrams_received_total"),
    );
    assert!(received > 20.0 * datagrams && datagrams > 100.0);
    assert!(after.of("twinstep_packets_received_total") <= datagrams);
    assert!(after.of("twinstep_packets_sent_total") <= after.of("twinstep_datagrams_sent_total"));

    // Another match is also counted.
    add(&server, 8).await;
    server.until_number_is("twinstep_matches", 1.0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let again = scrape(server.admin()).await;
    again.assert_not_below(&after);
    assert!(again.of("twinstep_ticks_total") > after.of("twinstep_ticks_total"));
}

/// The match runs a few ticks at a time if it has no clients, or its clients have been silent for a second. This does
/// not count as lateness. The first packet ends the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_match_without_active_clients_runs_less_often_but_never_stops() {
    let server = server("rests").await;
    let _handle = add(&server, 1).await;
    let number_of = async |series| scrape(server.admin()).await.of(series);
    // Not by an inspection, which would wake the match.
    let ticks = async || number_of("twinstep_ticks_total").await as u64;
    let noted = async || number_of("twinstep_tick_lateness_seconds_count").await;
    let goes_on = async |more: u64| {
        let until = ticks().await + more;
        while ticks().await < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    goes_on(60).await;
    assert_eq!(noted().await, 0.0);
    let mut party = vec![server.player("anna", 1)];
    play_for(&mut party, Duration::from_millis(1_000)).await;
    assert!(noted().await > 10.0, "it is awake");
    // Anna is silent until the match rests again.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let slept = noted().await;
    goes_on(30).await;
    assert_eq!(noted().await, slept);
    play_for(&mut party, Duration::from_millis(1_000)).await;
    assert!(noted().await > slept + 10.0, "it is awake again");
}

/// Resting matches are run twice a second, so without a wake-up they would notice the shutdown up to half a second
/// late.
#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::disallowed_methods,
    reason = "how long it takes is the subject"
)]
async fn a_server_with_resting_matches_ends_without_delay() {
    let mut took = Vec::new();
    // On a busy machine at least one of the attempts is quick.
    for n in 0..8 {
        let server = server(&format!("rests-and-ends-{n}")).await;
        let _handle = add(&server, 1).await;
        let ticks = async || scrape(server.admin()).await.of("twinstep_ticks_total");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let before = ticks().await;
        while ticks().await == before {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The next sample is half a second away.
        let began = Instant::now();
        server.host.shutdown(CloseCode::Draining).await;
        took.push(began.elapsed());
        if took[n] < Duration::from_millis(300) {
            return;
        }
    }
    panic!("it took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_is_counted_as_junk() {
    let server = server("junk").await;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..5 {
        socket.send_to(b"hello", server.host.local_addr()).unwrap();
    }
    let junk = "twinstep_datagrams_dropped_total{reason=\"junk\"}";
    server.until_number_is(junk, 5.0).await;
    let number_of = scrape(server.admin()).await;
    assert_eq!(number_of.of("twinstep_datagrams_received_total"), 5.0);
    assert_eq!(number_of.of("twinstep_received_bytes_total"), 25.0);
    let all: f64 = number_of
        .series
        .iter()
        .filter(|(series, _)| series.starts_with("twinstep_datagrams_dropped_total"))
        .map(|(_, number)| number)
        .sum();
    assert_eq!(all, 5.0, "for one reason only");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_ready_while_it_has_a_free_seat() {
    let server = server("ready").await;
    server.until_ready_is(200).await;
    assert_eq!(server.ready().await, (200, "ready\n".to_owned()));
    let handle = add(&server, 1).await;
    server.until_number_is("twinstep_seats_free", 2.0).await;
    assert_eq!(server.ready().await.0, 200);
    let mut party = vec![server.player("anna", 1), server.player("bob", 1)];
    play_for(&mut party, Duration::from_millis(500)).await;
    let (status, reply) = server.ready().await;
    assert_eq!(status, 503);
    assert!(
        reply.contains("full: no free seat (running matches: 1)"),
        "{reply}"
    );
    assert_eq!(scrape(server.admin()).await.of("twinstep_ready"), 0.0);
    // One player leaves.
    party[1].client.leave();
    let goes = play_for(&mut party, Duration::from_millis(600));
    tokio::join!(server.until_ready_is(200), goes);
    // A closed match has no free seat.
    handle
        .inspect(|match_| match_.set_open(false))
        .await
        .unwrap();
    server.until_number_is("twinstep_ready", 0.0).await;
    handle
        .inspect(|match_| match_.set_open(true))
        .await
        .unwrap();
    server.until_number_is("twinstep_ready", 1.0).await;
    // The server ends. Its client does not respond, so that takes a while.
    let admin = server.admin();
    let ends = tokio::spawn(server.host.shutdown(CloseCode::Draining));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (status, _, reply) = ask(admin, "GET /readyz", None, "").await;
    assert_eq!(status, 503);
    assert!(reply.contains("draining"), "{reply}");
    ends.await.unwrap();
}
