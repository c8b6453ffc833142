//! Matches created on demand: which tickets create a match, and how many matches there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize, Serializer};
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Never, Simulation, Tick};
use twinstep_host::{Blueprint, OnDemand};
use twinstep_protocol::lineage::REVOKE_SLACK_MS;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::{Decision, HookContext, Match, MatchConfig};
use twinstep_udp::{MatchId, TicketKey};

use crate::folder::Folder;
use crate::loopback::{LoopbackHost, Setup};
use crate::players::{client, closed_by, end_of, play, plays, tick};

const IDS: std::ops::Range<u64> = 0..1_000;
const BROKEN: u64 = 999;

pub(crate) fn counters() -> OnDemand<Counter> {
    OnDemand::new(|MatchId(id)| {
        assert_ne!(id, BROKEN, "planted");
        IDS.contains(&id).then(|| {
            Blueprint::action(Counter::default(), ())
                .players(4)
                .spectators(4, 0)
        })
    })
}

pub(crate) async fn server(
    name: &str,
    matches: impl FnOnce(&Folder) -> OnDemand<Counter>,
) -> LoopbackHost<Counter> {
    let folder = Folder::new(&format!("demand-{name}"));
    let matches = matches(&folder);
    server_in(folder, TicketKey::generate(), matches).await
}

pub(crate) async fn beside(
    server: &LoopbackHost<Counter>,
    matches: OnDemand<Counter>,
) -> LoopbackHost<Counter> {
    server_in(server.folder.clone(), server.key.clone(), matches).await
}

async fn server_in(
    folder: Folder,
    key: TicketKey,
    matches: OnDemand<Counter>,
) -> LoopbackHost<Counter> {
    let lineages = folder.file("lineages");
    let set = |config: &mut Setup| {
        config.lineages_file = Some(lineages);
        config.sessions_max = Some(256);
    };
    let server = LoopbackHost::start_in(folder, key, set).await;
    server.host.make_on_demand(matches);
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_player_creates_a_match_and_later_players_join_it() {
    let server = server("first", |_| counters()).await;
    assert_eq!(server.listed().await, [] as [u64; 0]);
    let mut party = vec![
        server.client("anna", 7),
        server.client("bob", 7),
        server.client("anna", 8),
    ];
    plays(&mut party).await;
    assert_eq!(server.listed().await, [7, 8]);
    assert_eq!(server.number("twinstep_matches_started_total").await, 2.0);
    assert_eq!(server.number("twinstep_matches_max").await, 64.0);
    // Players and spectators who come later join the same match.
    party.extend([server.watcher("carl", 7), server.client("dora", 8)]);
    plays(&mut party).await;
    assert_eq!(server.number("twinstep_matches_started_total").await, 2.0);
    assert_eq!(server.number("twinstep_spectators").await, 1.0);
    server.until_number_is("twinstep_players", 4.0).await;
    server.host.shutdown(CloseCode::Draining).await;
}

/// Joining a match that had to be created first took longer than joining a running match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait is measured")]
async fn creating_a_match_takes_hardly_longer_than_joining_one() {
    let server = server("fast", |_| counters().per_second(1_000)).await;
    let (mut made, mut joined) = (Vec::new(), Vec::new());
    for id in 0..9 {
        for (name, took) in [("anna", &mut made), ("bob", &mut joined)] {
            let began = Instant::now();
            plays(&mut [server.client(name, id)]).await;
            took.push(began.elapsed());
        }
    }
    made.sort();
    joined.sort();
    let (made, joined) = (made[4], joined[4]);
    assert!(
        made < joined + Duration::from_millis(250),
        "{made:?}, else {joined:?}"
    );
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_revoked_and_banned_tickets_create_no_match() {
    let server = server("nothing", |_| counters()).await;
    assert_eq!(server.ask("POST /ban?identity=mallory", "").await.0, 200);
    let banned = end_of(server.client("mallory", 7)).await;
    assert!(banned.to_string().contains("banned"), "{banned}");

    let stolen = server.ticket("anna", 7);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let revoke = server.ask("POST /revoke?identity=anna&match=7", "").await.0;
    assert_eq!(revoke, 200, "also before its match is made");
    assert_eq!(
        end_of(client::<Counter>(&stolen)).await,
        closed_by(CloseCode::Superseded)
    );

    let unknown = end_of(server.client("anna", 5_000)).await;
    assert_eq!(unknown, closed_by(CloseCode::NoMatch));
    let broken = end_of(server.client("anna", BROKEN)).await;
    assert_eq!(broken, closed_by(CloseCode::Fault));

    // These get no response, or wait for a player.
    let forged = server.ticket_by(&TicketKey::generate(), "anna", 7, 1);
    let mut waiting = [client(&forged), server.watcher("carl", 7)];
    let mut looks = 0;
    play(&mut waiting, |_| {
        looks += 1;
        looks > 300
    })
    .await
    .unwrap();
    assert_eq!(server.listed().await, [] as [u64; 0]);
    assert_eq!(server.number("twinstep_matches_started_total").await, 0.0);
    for (reason, times) in [("id", 1.0), ("failed", 1.0), ("matches", 0.0)] {
        let series = format!("twinstep_match_requests_refused_total{{reason=\"{reason}\"}}");
        assert_eq!(server.number(&series).await, times, "{reason}");
    }
    // The owner of the stolen ticket uses a new one, made elsewhere and valid after the slack.
    tokio::time::sleep(Duration::from_millis(REVOKE_SLACK_MS)).await;
    plays(&mut [server.client("anna", 7)]).await;
    server.host.shutdown(CloseCode::Draining).await;
}

/// A revoked ticket was valid again when its match was over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_revoked_in_a_match_creates_no_match_after_it() {
    let server = server("revoked", |_| counters()).await;
    let stolen = server.ticket("anna", 7);
    plays(&mut [server.client("bob", 7)]).await;
    let revoke = server.ask("POST /revoke?identity=anna&match=7", "").await.0;
    assert_eq!(revoke, 200);
    assert_eq!(server.ask("POST /end?match=7", "").await.0, 200);
    let ended = "twinstep_matches_ended_total{reason=\"over\"}";
    server.until_number_is(ended, 1.0).await;
    assert_eq!(
        end_of(client::<Counter>(&stolen)).await,
        closed_by(CloseCode::Superseded)
    );
    assert_eq!(server.number("twinstep_matches_started_total").await, 1.0);
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_requesting_one_match_too_many_is_refused_as_server_full() {
    let server = server("full", |_| counters().at_once(2)).await;
    let mut party = vec![server.client("anna", 1), server.client("anna", 2)];
    plays(&mut party).await;
    let full = end_of(server.client("anna", 3)).await;
    assert_eq!(full, closed_by(CloseCode::ServerFull { after_s: 30 }));
    let words = full.to_string();
    assert!(words.contains("come back in 30 s"), "{words}");
    assert!(words.contains("another server"), "{words}");
    let full = "full: 2 of 2 matches are running; raise --matches, or start another server\n";
    assert_eq!(server.ready().await, (503, full.to_owned()));
    let series = "twinstep_match_requests_refused_total{reason=\"matches\"}";
    assert_eq!(server.number(series).await, 1.0);
    // Players can join the existing matches, and a new one when a match ends.
    party.push(server.client("bob", 2));
    plays(&mut party).await;
    assert_eq!(server.ask("POST /end?match=1", "").await.0, 200);
    let ended = "twinstep_matches_ended_total{reason=\"over\"}";
    server.until_number_is(ended, 1.0).await;
    plays(&mut [server.client("anna", 3)]).await;
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_requesting_a_match_too_early_is_asked_to_retry() {
    let server = server("rate", |_| counters().per_second(1)).await;
    // All of them dial together, however busy the machine is.
    let mut ends = Vec::new();
    let dialled: Vec<_> = (0..4).map(|id| server.client("anna", id)).collect();
    for client in dialled {
        ends.push(tokio::spawn(async move {
            let mut party = [client];
            let played = play(&mut party, |party| tick(&party[0]) > Tick(0)).await;
            played.err()
        }));
    }
    let mut refused = 0;
    for end in ends {
        if let Some(end) = end.await.unwrap() {
            assert_eq!(end, closed_by(CloseCode::ServerFull { after_s: 2 }));
            refused += 1;
        }
    }
    assert!((1..4).contains(&refused), "{refused} of 4");
    let series = "twinstep_match_requests_refused_total{reason=\"rate\"}";
    assert_eq!(server.number(series).await, f64::from(refused));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    plays(&mut [server.client("anna", 9)]).await;
    server.host.shutdown(CloseCode::Draining).await;
}

/// A client that reconnects after a failure must not get the old close code forever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_creation_that_failed_succeeds_on_a_later_request() {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let once = fails.clone();
    let template = move |_| {
        let again = once.swap(false, std::sync::atomic::Ordering::Relaxed);
        assert!(!again, "planted");
        Blueprint::action(Counter::default(), ())
    };
    let server = server("again", |_| OnDemand::new(template)).await;
    let failed = end_of(server.client("anna", 7)).await;
    assert_eq!(failed, closed_by(CloseCode::Fault));
    plays(&mut [server.client("anna", 7)]).await;
    server.host.shutdown(CloseCode::Draining).await;
}

/// The listener of a new process does not know the matches of earlier processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_revoked_before_a_restart_creates_no_match_after_it() {
    let server = server("revoked-before", |_| counters()).await;
    let stolen = server.ticket("anna", 7);
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(
        server.ask("POST /revoke?identity=anna&match=7", "").await.0,
        200
    );
    let address = server.host.local_addr();
    let LoopbackHost {
        host, folder, key, ..
    } = server;
    host.shutdown(CloseCode::Draining).await;
    let set = |config: &mut Setup| {
        config.listen = address;
        config.lineages_file = Some(folder.file("lineages"));
    };
    let server = LoopbackHost::<Counter>::start_in(folder.clone(), key, set).await;
    server.host.make_on_demand(counters());
    assert_eq!(
        end_of(client::<Counter>(&stolen)).await,
        closed_by(CloseCode::Superseded)
    );
    let made = "twinstep_matches_started_total";
    assert_eq!(server.number(made).await, 0.0);
    server.host.shutdown(CloseCode::Draining).await;
}

/// A game whose world cannot be encoded at one point, because its author's code panics.
#[derive(Clone, Debug, Deserialize)]
struct Shy;

/// The number of times that the world was encoded.
static SHOWN: AtomicU32 = AtomicU32::new(0);
/// The value of [`SHOWN`] at which encoding panics.
static PANICS_AT: AtomicU32 = AtomicU32::new(u32::MAX);

impl Serialize for Shy {
    fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        let shown = SHOWN.fetch_add(1, Ordering::Relaxed);
        assert_ne!(shown, PANICS_AT.load(Ordering::Relaxed), "planted");
        to.serialize_unit()
    }
}

impl Simulation for Shy {
    const NAME: &'static str = "shy";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

/// Finding K3-L7: after a panic during the start of a match, its id was never free again, and its players waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_whose_start_panics_is_refused_and_created_on_the_next_request() {
    let server = LoopbackHost::<Shy>::start("demand-shy", |_| ()).await;
    let no_resolver = |_: &HookContext<'_, Shy>, _, _: &Never| Decision::Unanswered;
    drop(Match::new(MatchConfig::action(), Shy, Arc::new(()), no_resolver).unwrap());
    // The next match is encoded as often before its journal starts.
    let first = 2 * SHOWN.load(Ordering::Relaxed);
    PANICS_AT.store(first, Ordering::Relaxed);
    let matches = OnDemand::new(|_| Some(Blueprint::action(Shy, ())));
    server
        .host
        .make_on_demand(matches.journals(&server.folder.0));
    assert_eq!(
        end_of(server.client("anna", 7)).await,
        closed_by(CloseCode::Fault)
    );
    assert!(SHOWN.load(Ordering::Relaxed) > first, "it has panicked");
    plays(&mut [server.client("anna", 7)]).await;
    server.host.shutdown(CloseCode::Draining).await;
}
