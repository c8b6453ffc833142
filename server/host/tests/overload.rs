//! Load shedding: in which order matches are degraded, and which players are refused. The limits are so low that every
//! measurement exceeds them.

use std::time::Duration;

use twinstep_client::Client;
use twinstep_core::testing::doc::Counter;
use twinstep_host::{Blueprint, Limits, OnDemand};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::TicketKey;

use crate::folder::Folder;
use crate::loopback::{LoopbackHost, Setup};
use crate::players::{Plays, closed_by, end_of, plays, wait};

const BUSY: CloseCode = CloseCode::ServerBusy { after_s: 30 };
const FULL: CloseCode = CloseCode::ServerFull { after_s: 30 };

async fn server(name: &str, limits: Limits) -> LoopbackHost<Counter> {
    let folder = Folder::new(&format!("overload-{name}"));
    server_in(folder, TicketKey::generate(), limits).await
}

async fn server_in(folder: Folder, key: TicketKey, limits: Limits) -> LoopbackHost<Counter> {
    let set = |config: &mut Setup| config.limits = limits;
    let server = LoopbackHost::start_in(folder, key, set).await;
    let blueprint = |_| {
        let action = Blueprint::action(Counter::default(), ());
        action.players(4).spectators(4, 0)
    };
    let matches = OnDemand::new(blueprint).journals(&server.folder.0);
    server.host.make_on_demand(matches);
    server
}

fn turn_ticks(client: &Client<Counter>) -> u8 {
    let world = client.session().authority();
    world.map_or(0, |world| world.turn().cadence.turn_ticks)
}

/// Findings P3-H1 and O3-14: players were told "full" when the server was busy, and the log had no line about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_ticks_first_disconnect_spectators_then_refuse_newcomers_then_lengthen_turns() {
    let limits = Limits {
        tick_lateness: Duration::from_nanos(1),
        ..Limits::default()
    };
    let server = server("lateness", limits).await;
    // One match alone sheds no load, so there is a second.
    let mut party = vec![
        server.client("anna", 1),
        server.client("bob", 1),
        server.client("eve", 3),
    ];
    let mut watcher = server.watcher("carl", 1);
    plays(&mut party).await;
    assert_eq!(turn_ticks(&party[0]), 2);
    // The steps come in this order, one after the other.
    let mut seen = Vec::new();
    let mut let_go_at = None;
    wait("the last step", async || {
        for client in &mut party {
            client.frame().unwrap();
        }
        if let_go_at.is_none()
            && let Err(end) = watcher.advance(|_| 0)
        {
            assert_eq!(end, closed_by(BUSY));
            let_go_at = Some(server.number("twinstep_load_shedding_level").await);
        }
        let now = server.number("twinstep_load_shedding_level").await;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        now == 4.0 && turn_ticks(&party[0]) == 4
    })
    .await;
    seen.retain(|steps| *steps > 0.0);
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0]);
    assert!(
        let_go_at.is_some_and(|steps| steps <= 2.0),
        "{let_go_at:?}: before any player notices"
    );
    let (status, why) = server.ready().await;
    assert_eq!(status, 503);
    assert!(
        why.starts_with(
            "busy: load shedding refuses new players, because the p99 of tick lateness"
        ) && why.contains("(lateness-limit)"),
        "{why}"
    );

    // Newcomers can join neither the running match nor a new one.
    for newcomer in [server.client("dora", 1), server.client("dora", 2)] {
        assert_eq!(end_of(newcomer).await, closed_by(BUSY));
    }
    let series = "twinstep_match_requests_refused_total{reason=\"lateness\"}";
    assert_eq!(server.number(series).await, 1.0);
    // A player with a seat reconnects after its client was lost.
    party.remove(1);
    let mut back = vec![party.remove(0), server.client("bob", 1)];
    plays(&mut back).await;
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_memory_or_disk_space_newcomers_are_refused_with_the_reason() {
    for (name, limits) in [
        (
            "memory",
            Limits {
                memory_bytes: Some(1),
                ..Limits::default()
            },
        ),
        (
            "disk",
            Limits {
                disk_free_bytes: u64::MAX,
                ..Limits::default()
            },
        ),
    ] {
        let server = server(name, limits).await;
        server.until_full().await;
        let (_, why) = server.ready().await;
        assert!(
            why.starts_with("full: ") && why.contains(name)
                || name == "disk" && why.contains("free for journals"),
            "{why}"
        );
        assert_eq!(end_of(server.client("anna", 1)).await, closed_by(FULL));
        let series = format!("twinstep_match_requests_refused_total{{reason=\"{name}\"}}");
        assert_eq!(server.number(&series).await, 1.0);
        // This is no reason to degrade the matches.
        assert_eq!(server.number("twinstep_load_shedding_level").await, 0.0);
        server.host.shutdown(CloseCode::Draining).await;
    }
}

/// A player with a seat in an interrupted match can reconnect to it, even while no other match would be created.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_match_is_resumed_in_a_full_process() {
    // The lateness of this machine does not matter here.
    let limits = Limits {
        tick_lateness: Duration::from_secs(60),
        ..Limits::default()
    };
    let server = server("back", limits.clone()).await;
    plays(&mut [server.client("anna", 1)]).await;
    let LoopbackHost {
        key, host, folder, ..
    } = server;
    // As if it had been killed.
    drop(host);
    let limits = Limits {
        disk_free_bytes: u64::MAX,
        ..limits
    };
    let server = server_in(folder, key, limits).await;
    server.until_full().await;
    plays(&mut [server.client("anna", 1)]).await;
    assert_eq!(end_of(server.client("bob", 2)).await, closed_by(FULL));
    server.host.shutdown(CloseCode::Draining).await;
}
