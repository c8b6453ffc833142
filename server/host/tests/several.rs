//! An operator of several matches, or of several servers: a hung match or server does not block the others.

use std::time::{Duration, Instant};

use twinstep_client::{Client, Event, SessionEnd};
use twinstep_core::testing::doc::Counter;
use twinstep_host::MatchHandle;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::{Match, MatchConfig};
use twinstep_udp::{Identity, MatchId, Role, TicketKey};

use crate::folder::Folder;
use crate::loopback::{LoopbackHost, Setup, counter, hold_up};
use crate::players::{PATIENCE, end_of, play, plays};

async fn server(folder: &Folder) -> LoopbackHost<Counter> {
    let set = |config: &mut Setup| config.ops.bans_file = Some(folder.file("bans"));
    LoopbackHost::start_in(folder.clone(), TicketKey::generate(), set).await
}

async fn add(server: &LoopbackHost<Counter>, id: u64) -> MatchHandle<Counter> {
    let match_ = counter(MatchConfig::action());
    server
        .host
        .add_match(MatchId(id), match_, None)
        .await
        .unwrap()
}

/// An order for all matches never reached the matches after a hung one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait is measured")]
async fn a_stalled_match_does_not_block_orders_to_the_whole_server() {
    let folder = Folder::new("several-still");
    let server = server(&folder).await;
    let (first, second) = (add(&server, 1).await, add(&server, 2).await);
    let last = add(&server, 3).await;
    let mut anna = server.client("anna", 3);
    plays(std::slice::from_mut(&mut anna)).await;
    let held = [hold_up(&first).await, hold_up(&second).await];
    let began = Instant::now();
    let (status, reply) = server.ask("POST /message?text=soon", "").await;
    let took = began.elapsed();
    assert_eq!(status, 503, "{reply}");
    assert!(reply.starts_with("match 1 did not answer"), "{reply}");
    assert!(took < Duration::from_millis(3_500), "it took {took:?}");
    let reads = |party: &mut [&mut Client<Counter>]| {
        let mut events = std::iter::from_fn(|| party[0].session_mut().poll_event());
        events.any(|event| matches!(&event, Event::Notice(words) if words == "soon"))
    };
    play(&mut [&mut anna], reads).await.unwrap();

    let (status, reply) = server.ask("POST /revoke?identity=mallory", "").await;
    assert_eq!(status, 503, "{reply}");
    let is_revoked = |match_: &mut Match<Counter>| {
        match_
            .lineages()
            .get(&Identity::new("mallory", Role::Player))
            .is_some()
    };
    assert!(last.inspect(is_revoked).await.unwrap());
    // The matches that hung execute the order when they continue.
    drop(held);
    for match_ in [first, second] {
        let done = async { while !match_.inspect(is_revoked).await.unwrap() {} };
        tokio::time::timeout(PATIENCE, done).await.unwrap();
    }
    server.host.shutdown(CloseCode::Draining).await;
}

/// An identity banned by another server became known here only at this server's next ban. From then on it was refused,
/// but its current sessions stayed, and a later read of the file found no change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_banned_by_another_server_is_kicked_when_the_shared_file_is_read() {
    let folder = Folder::new("several-bans");
    let (ours, other) = (server(&folder).await, server(&folder).await);
    add(&ours, 1).await;
    for (name, request) in [
        ("anna", "POST /ban?identity=mallory"),
        ("bert", "POST /unban?identity=mallory"),
    ] {
        let mut inside = ours.client(name, 1);
        plays(std::slice::from_mut(&mut inside)).await;
        let banned = other.ask(&format!("POST /ban?identity={name}"), "").await;
        assert_eq!(banned.0, 200, "{}", banned.1);
        assert_eq!(ours.ask(request, "").await.0, 200);
        let end = end_of(inside).await;
        let is_ban = |end: &SessionEnd| matches!(end, SessionEnd::Server(CloseCode::Banned { .. }));
        assert!(is_ban(&end), "{name}: {end}");
    }
    for server in [ours, other] {
        server.host.shutdown(CloseCode::Draining).await;
    }
}
