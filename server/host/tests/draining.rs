//! A draining host: which players may keep playing, which are refused, when the host ends, and what the operator sees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use twinstep_core::testing::doc::Counter;
use twinstep_host::{Blueprint, MatchId, OnDemand};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::{Match, MatchConfig};

use crate::loopback::{LoopbackHost, Setup, counter};
use crate::players::{PATIENCE, closed_by, end_of, play, plays_on, wait};

async fn server(drain_within: Duration) -> Arc<LoopbackHost<Counter>> {
    let set = |config: &mut Setup| config.drain_within = drain_within;
    let server = LoopbackHost::start("draining", set).await;
    let blueprint = |_| Blueprint::action(Counter::default(), ()).players(4);
    server.host.make_on_demand(OnDemand::new(blueprint));
    Arc::new(server)
}

fn drain(server: &Arc<LoopbackHost<Counter>>) -> tokio::task::JoinHandle<()> {
    let server = server.clone();
    tokio::spawn(async move { server.host.drain().await })
}

async fn shutdown(server: Arc<LoopbackHost<Counter>>) {
    let server = Arc::try_unwrap(server);
    let server = server.unwrap_or_else(|_| panic!("the drain has ended"));
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_keeps_players_refuses_newcomers_and_ends_with_the_last_player() {
    let server = server(Duration::from_secs(3_600)).await;
    let mut anna = server.client("anna", 1);
    plays_on(&mut anna).await;
    let draining = drain(&server);
    // Newcomers are no longer routed here.
    wait("draining", async || {
        server.ready().await.1.contains("draining")
    })
    .await;
    assert_eq!(server.ready().await.0, 503);
    assert_eq!(server.number("twinstep_ready").await, 0.0);
    plays_on(&mut anna).await;
    // Newcomers can join neither the running match nor a new one.
    for id in [1, 2] {
        let end = end_of(server.client("bob", id)).await;
        assert_eq!(end, closed_by(CloseCode::Draining), "match {id}");
    }
    let series = "twinstep_match_requests_refused_total{reason=\"draining\"}";
    assert_eq!(server.number(series).await, 1.0);
    // A player with a seat reconnects after its connection broke.
    drop(anna);
    let mut back = server.client("anna", 1);
    plays_on(&mut back).await;
    assert!(!draining.is_finished());
    back.leave();
    let _ = play(&mut [&mut back], |_| draining.is_finished()).await;
    tokio::time::timeout(PATIENCE, draining)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(server.ready().await.0, 503, "and it is not ready again");
    shutdown(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a deadline is a time")]
async fn the_deadline_ends_a_drain_while_players_remain() {
    let within = Duration::from_millis(1_500);
    let server = server(within).await;
    let mut anna = server.client("anna", 1);
    plays_on(&mut anna).await;
    let began = Instant::now();
    let draining = drain(&server);
    play(&mut [&mut anna], |_| draining.is_finished())
        .await
        .unwrap();
    assert!(began.elapsed() >= within, "{:?}", began.elapsed());
    draining.await.unwrap();
    // The shutdown ends the remaining matches.
    plays_on(&mut anna).await;
    let ends = tokio::spawn(shutdown(server));
    let end = end_of(&mut anna).await;
    assert_eq!(end, closed_by(CloseCode::Draining));
    ends.await.unwrap();
}

/// A drain waited until its deadline for a match that had ended with players in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_does_not_wait_for_a_finished_match_whose_id_is_free() {
    let server = server(Duration::from_secs(3_600)).await;
    let add = async || {
        let match_ = counter(MatchConfig::action());
        server.host.add_match(MatchId(5_000), match_, None).await
    };
    let match_ = add().await.unwrap();
    let mut anna = server.client("anna", 5_000);
    plays_on(&mut anna).await;
    let close = |match_: &mut Match<Counter>| match_.close(CloseCode::MatchOver);
    match_.inspect(close).await.unwrap();
    let end = end_of(&mut anna).await;
    assert_eq!(end, closed_by(CloseCode::MatchOver));
    tokio::time::timeout(PATIENCE, server.host.drain())
        .await
        .unwrap();
    // A moment later its id is free.
    wait("its id", async || add().await.is_ok()).await;
    shutdown(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_drain_time_ends_immediately_and_refuses_no_player() {
    let server = server(Duration::ZERO).await;
    let mut anna = server.client("anna", 1);
    plays_on(&mut anna).await;
    tokio::time::timeout(PATIENCE, server.host.drain())
        .await
        .unwrap();
    assert_eq!(server.ready().await.0, 200);
    plays_on(&mut server.client("bob", 1)).await;
    shutdown(server).await;
}
