//! A host that drains, as its operator and its players see it: who may play on, who is not let in, and when it is over. Over
//! real sockets on loopback; time is the machine's, so every wait has an end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Simulation, Tick};
use twinstep_server::host::{Blueprint, Host, HostConfig, OnDemand};
use twinstep_server::{Decision, Look, Match, MatchConfig};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::asking::{ask, scrape};

const PATIENCE: Duration = Duration::from_secs(20);

struct Stage {
    key: TicketKey,
    host: Arc<Host>,
}

impl Stage {
    async fn new(drain_within: Duration) -> Stage {
        let key = TicketKey::generate();
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = HostConfig {
            admin: Some(loopback),
            drain_within,
            ..HostConfig::new(Counter::NAME, loopback, key.clone())
        };
        let host = Arc::new(Host::start(config).await.unwrap());
        let blueprint = |_| Blueprint::action(Counter::default(), ()).players(4);
        host.make_on_demand(OnDemand::new(blueprint));
        Stage { key, host }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn client(&self, identity: &str, match_id: u64) -> Client<Counter> {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: Counter::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id,
            seats: 1,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix,
        };
        let ticket = Ticket::issue(&self.key, &spec).unwrap();
        Client::connect(&ticket, SessionConfig::new(Arc::new(()))).unwrap()
    }

    async fn number(&self, series: &str) -> f64 {
        scrape(self.host.admin_addr().unwrap()).await.series[series]
    }

    /// What `/readyz` says.
    async fn ready(&self) -> (u16, String) {
        let (status, _, said) = ask(self.host.admin_addr().unwrap(), "GET /readyz", None, "").await;
        (status, said)
    }

    fn drain(&self) -> tokio::task::JoinHandle<()> {
        let host = self.host.clone();
        tokio::spawn(async move { host.drain().await })
    }

    /// Waits until newcomers are not sent here because it drains.
    async fn drains(&self) {
        let drains = async {
            while !self.ready().await.1.contains("draining") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, drains).await.unwrap();
        assert_eq!(self.ready().await.0, 503);
    }

    async fn shutdown(self) {
        let host = Arc::try_unwrap(self.host);
        let host = host.unwrap_or_else(|_| panic!("it drains no more"));
        host.shutdown(CloseCode::Draining).await;
    }
}

fn tick(client: &Client<Counter>) -> Tick {
    let world = client.session.authority();
    world.map_or(Tick(0), |world| world.tick())
}

/// Advances a client until `done`, or until it is over.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn play(
    client: &mut Client<Counter>,
    mut done: impl FnMut(&Client<Counter>) -> bool,
) -> Result<(), Ended> {
    let began = Instant::now();
    while !done(client) {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        client.advance(|_| 1)?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Plays on for a second.
async fn plays_on(client: &mut Client<Counter>) {
    let seen = tick(client);
    let later = |client: &Client<Counter>| tick(client) > seen + 60;
    play(client, later).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_plays_may_play_on_and_come_back_nobody_new_is_let_in_and_the_last_one_ends_it() {
    let stage = Stage::new(Duration::from_secs(3_600)).await;
    let mut anna = stage.client("anna", 1);
    plays_on(&mut anna).await;
    let draining = stage.drain();
    stage.drains().await;
    assert_eq!(stage.number("twinstep_ready").await, 0.0);
    plays_on(&mut anna).await;
    // Neither into the match that is there, nor into one that would be made.
    for id in [1, 2] {
        let mut newcomer = stage.client("bob", id);
        let end = play(&mut newcomer, |_| false).await.unwrap_err();
        let said = Closed::Server(CloseCode::Draining);
        assert_eq!(end, Ended::Session(said), "match {id}");
    }
    let series = "twinstep_matches_not_made_total{reason=\"draining\"}";
    assert_eq!(stage.number(series).await, 1.0);
    // Who has a seat comes back, though its line is gone without a word.
    drop(anna);
    let mut back = stage.client("anna", 1);
    plays_on(&mut back).await;
    assert!(!draining.is_finished());
    back.leave();
    let _ = play(&mut back, |_| draining.is_finished()).await;
    tokio::time::timeout(PATIENCE, draining)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stage.ready().await.0, 503, "and it is not ready again");
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a deadline is a time")]
async fn the_deadline_ends_a_drain_though_somebody_plays() {
    let within = Duration::from_millis(1_500);
    let stage = Stage::new(within).await;
    let mut anna = stage.client("anna", 1);
    plays_on(&mut anna).await;
    let began = Instant::now();
    let draining = stage.drain();
    play(&mut anna, |_| draining.is_finished()).await.unwrap();
    assert!(began.elapsed() >= within, "{:?}", began.elapsed());
    draining.await.unwrap();
    // It is the shutdown that ends what is left.
    plays_on(&mut anna).await;
    let ends = tokio::spawn(stage.shutdown());
    let end = play(&mut anna, |_| false).await.unwrap_err();
    assert_eq!(end, Ended::Session(Closed::Server(CloseCode::Draining)));
    ends.await.unwrap();
}

/// A match that had ended with players inside was waited for to the deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_that_is_over_is_not_waited_for_and_its_id_is_free() {
    let stage = Stage::new(Duration::from_secs(3_600)).await;
    let add = async || {
        let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
        let (config, sim) = (MatchConfig::action(), Counter::default());
        let game = Match::new(config, sim, Arc::new(()), nobody).unwrap();
        stage.host.add_match(5_000, game, None).await
    };
    let game = add().await.unwrap();
    let mut anna = stage.client("anna", 5_000);
    plays_on(&mut anna).await;
    let close = |game: &mut Match<Counter>| game.close(CloseCode::MatchOver);
    game.inspect(close).await.unwrap();
    let end = play(&mut anna, |_| false).await.unwrap_err();
    assert_eq!(end, Ended::Session(Closed::Server(CloseCode::MatchOver)));
    tokio::time::timeout(PATIENCE, stage.host.drain())
        .await
        .unwrap();
    // A moment later another one may have its id.
    let free = async {
        while add().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.unwrap();
    stage.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_time_to_drain_nothing_is_waited_for_and_nobody_is_refused() {
    let stage = Stage::new(Duration::ZERO).await;
    let mut anna = stage.client("anna", 1);
    plays_on(&mut anna).await;
    tokio::time::timeout(PATIENCE, stage.host.drain())
        .await
        .unwrap();
    assert_eq!(stage.ready().await.0, 200);
    plays_on(&mut stage.client("bob", 1)).await;
    stage.shutdown().await;
}
