//! What a process does without when it has too much to do, in which order, and whom it refuses: over real sockets on loopback.
//! Time is the machine's, so every wait has an end; limits are such that whatever is measured is too much.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::Simulation;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::testing::doc::Counter;
use twinstep_server::host::{Blueprint, Host, HostConfig, Limits, OnDemand};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::asking::{Folder, ask, scrape};

const PATIENCE: Duration = Duration::from_secs(30);
const REFUSED: CloseCode = CloseCode::ServerFull { after_s: 30 };

struct Stage {
    key: TicketKey,
    host: Host,
    folder: Folder,
}

impl Stage {
    async fn new(name: &str, limits: Limits) -> Stage {
        let folder = Folder::new(&format!("strain-{name}"));
        Stage::over(folder, TicketKey::generate(), limits).await
    }

    async fn over(folder: Folder, key: TicketKey, limits: Limits) -> Stage {
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = HostConfig {
            admin: Some(loopback),
            limits,
            ..HostConfig::new(Counter::NAME, loopback, key.clone())
        };
        let host = Host::start(config).await.unwrap();
        let blueprint = |_| {
            let action = Blueprint::action(Counter::default(), ());
            action.players(4).spectators(4, 0)
        };
        host.make_on_demand(OnDemand::new(blueprint).journals(&folder.0));
        Stage { key, host, folder }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn ticket(&self, identity: &str, match_id: u64, seats: u8) -> Ticket {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: Counter::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id,
            seats,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix,
        };
        Ticket::issue(&self.key, &spec).unwrap()
    }

    fn client(&self, identity: &str, match_id: u64, seats: u8) -> Client<Counter> {
        let ticket = self.ticket(identity, match_id, seats);
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
}

/// Whether it has its seat, by its own world.
fn is_in(client: &Client<Counter>) -> bool {
    let own = client.session.seats().first();
    let world = client.session.authority();
    own.zip(world)
        .is_some_and(|(own, world)| world.present().contains(*own))
}

/// Advances clients until `done`, or until one of them is over.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn play(
    party: &mut [Client<Counter>],
    mut done: impl AsyncFnMut(&[Client<Counter>]) -> bool,
) -> Result<(), Ended> {
    let began = Instant::now();
    while !done(party).await {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        for client in &mut *party {
            client.advance(|_| 1)?;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

async fn plays(party: &mut [Client<Counter>]) {
    let all = async |party: &[Client<Counter>]| party.iter().all(is_in);
    play(party, all).await.unwrap();
}

fn turn_ticks(client: &Client<Counter>) -> u8 {
    let world = client.session.authority();
    world.map_or(0, |world| world.turn().cadence.turn_ticks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_ticks_are_late_spectators_go_first_then_newcomers_then_turns_get_longer() {
    let limits = Limits {
        tick_lateness: Duration::from_nanos(1),
        ..Limits::default()
    };
    let stage = Stage::new("lateness", limits).await;
    let mut party = vec![stage.client("anna", 1, 1), stage.client("bob", 1, 1)];
    let mut watcher = stage.client("carl", 1, 0);
    plays(&mut party).await;
    assert_eq!(turn_ticks(&party[0]), 2);
    // In this order, one step after the other.
    let mut seen = Vec::new();
    let mut let_go_at = None;
    play(&mut party, async |party| {
        if let_go_at.is_none()
            && let Err(end) = watcher.advance(|_| 0)
        {
            assert_eq!(end, Ended::Session(Closed::Server(REFUSED)));
            let_go_at = Some(stage.number("twinstep_relief_steps").await);
        }
        let now = stage.number("twinstep_relief_steps").await;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        now == 4.0 && turn_ticks(&party[0]) == 4
    })
    .await
    .unwrap();
    seen.retain(|steps| *steps > 0.0);
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0]);
    assert!(
        let_go_at.is_some_and(|steps| steps <= 2.0),
        "{let_go_at:?}: before anybody who plays notices"
    );
    let (status, said) = stage.ready().await;
    assert_eq!(status, 503);
    assert!(said.starts_with("full: ticks are late, by"), "{said}");

    // Neither into a match that is there, nor into one that would be made.
    for newcomer in [stage.client("dora", 1, 1), stage.client("dora", 2, 1)] {
        let end = play(&mut [newcomer], async |_| false).await.unwrap_err();
        assert_eq!(end, Ended::Session(Closed::Server(REFUSED)));
    }
    let series = "twinstep_matches_not_made_total{reason=\"lateness\"}";
    assert_eq!(stage.number(series).await, 1.0);
    // Who has a seat comes back: its old client is gone without a word.
    party.remove(1);
    let mut back = vec![party.remove(0), stage.client("bob", 1, 1)];
    plays(&mut back).await;
    stage.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_room_in_memory_or_on_the_disk_nobody_new_is_let_in_and_the_reason_is_told() {
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
        let stage = Stage::new(name, limits).await;
        let full = async {
            while stage.ready().await.0 == 200 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, full).await.unwrap();
        let (_, said) = stage.ready().await;
        assert!(
            said.starts_with("full: ") && said.contains(name)
                || name == "disk" && said.contains("free for journals"),
            "{said}"
        );
        let end = play(&mut [stage.client("anna", 1, 1)], async |_| false)
            .await
            .unwrap_err();
        assert_eq!(end, Ended::Session(Closed::Server(REFUSED)));
        let series = format!("twinstep_matches_not_made_total{{reason=\"{name}\"}}");
        assert_eq!(stage.number(&series).await, 1.0);
        // That is no reason to take anything from those who play.
        assert_eq!(stage.number("twinstep_relief_steps").await, 0.0);
        stage.host.shutdown(CloseCode::Draining).await;
    }
}

/// Who has a seat in a match that was cut off comes back to it, also where no other match would be made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_that_was_cut_off_goes_on_in_a_process_that_is_full() {
    // How late ticks are on this machine is no matter here.
    let limits = Limits {
        tick_lateness: Duration::from_secs(60),
        ..Limits::default()
    };
    let stage = Stage::new("back", limits.clone()).await;
    plays(&mut [stage.client("anna", 1, 1)]).await;
    let Stage { key, host, folder } = stage;
    // As if it had been killed.
    drop(host);
    let limits = Limits {
        disk_free_bytes: u64::MAX,
        ..limits
    };
    let stage = Stage::over(folder, key, limits).await;
    let full = async {
        while stage.ready().await.0 == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, full).await.unwrap();
    plays(&mut [stage.client("anna", 1, 1)]).await;
    let end = play(&mut [stage.client("bob", 2, 1)], async |_| false).await;
    assert_eq!(end, Err(Ended::Session(Closed::Server(REFUSED))));
    stage.host.shutdown(CloseCode::Draining).await;
}
