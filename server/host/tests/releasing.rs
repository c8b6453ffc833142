//! A match leaves a server because an operator releases it or because the server shuts down, and another server with the
//! same journal folder resumes it. Its players dial the other addresses in their tickets.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::testing::doc::Counter;
use twinstep_host::{Journal, MatchHandle, OnJournalFailure};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::MatchConfig;
use twinstep_server::config::TurnLength;
use twinstep_udp::{MatchId, TicketKey};

use crate::demand::counters;
use crate::folder::Folder;
use crate::loopback::{LoopbackHost, counter, hold_up};
use crate::players::{Player, closed_by, end_of, play, play_for, plays_on, tick};

fn free() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

/// Two servers with one key and one folder of journals. Each server's tickets list its own address first, then the
/// other's.
async fn two(name: &str) -> [LoopbackHost<Counter>; 2] {
    let (folder, key) = (
        Folder::new(&format!("release-{name}")),
        TicketKey::generate(),
    );
    let addresses = [free(), free()];
    let server = async |own: SocketAddr, other: SocketAddr| {
        let server = LoopbackHost::start_in(folder.clone(), key.clone(), |config| {
            config.listen = own;
            config.public = vec![own.into(), other.into()];
            config.lineages_file = Some(folder.file("lineages"));
        });
        let server = server.await;
        let matches = counters().journals(&folder.0);
        server.host.make_on_demand(matches);
        server
    };
    let [a, b] = addresses;
    [server(a, b).await, server(b, a).await]
}

async fn release(server: &LoopbackHost<Counter>, id: u64) -> (u16, String) {
    server.ask(&format!("POST /release?match={id}"), "").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_match_is_resumed_by_the_next_server_in_its_tickets() {
    let [old, new] = two("resumed").await;
    let mut party = vec![
        old.client("anna", 7),
        old.client("bob", 7),
        old.client("carl", 8),
        old.watcher("dora", 7),
    ];
    play(&mut party, |party| {
        party.iter().all(|one| tick(one) > Tick(60))
    })
    .await
    .unwrap();
    let at = tick(&party[0]);
    let playing = play(&mut party, |party| {
        party.iter().all(|one| tick(one) > at + 120)
    });
    let (released, played) = tokio::join!(release(&old, 7), playing);
    played.unwrap();
    assert_eq!(released.0, 200, "{}", released.1);
    assert_eq!((old.listed().await, new.listed().await), (vec![8], vec![7]));
    let stats = party.iter().map(|one| one.session().stats());
    let seen: Vec<(u64, u64)> = stats.map(|stats| (stats.returns, stats.heals)).collect();
    assert_eq!(seen, [(1, 0), (1, 0), (0, 0), (1, 0)]);
    // Clients with an old ticket are also redirected; other matches are created here as before.
    let mut late = vec![old.client("emil", 7), old.client("emil", 9)];
    play(&mut late, |late| late.iter().all(|one| tick(one) > at))
        .await
        .unwrap();
    assert_eq!(
        (old.listed().await, new.listed().await),
        (vec![8, 9], vec![7])
    );
    // The match can also go back, but the server that released it last does not resume it for a few seconds.
    let at = tick(&party[0]);
    let playing = play(&mut party, |party| {
        party.iter().all(|one| tick(one) > at + 120)
    });
    let (released, played) = tokio::join!(release(&new, 7), playing);
    played.unwrap();
    assert_eq!(released.0, 200, "{}", released.1);
    assert_eq!(
        (old.listed().await, new.listed().await.len()),
        (vec![7, 8, 9], 0)
    );
    new.host.shutdown(CloseCode::Draining).await;
    old.host.shutdown(CloseCode::Draining).await;
}

/// Finding H5: players were lost if they joined, reconnected or were healed during a move of their match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_join_reconnect_or_heal_during_a_release_reach_the_match() {
    let [old, new] = two("arrives").await;
    let player = |name: &str| Player::of(old.client(name, 7));
    let mut party = vec![player("anna"), player("bob"), player("carl")];
    play(&mut party, |party| {
        party.iter().all(|one| one.tick() > Tick(60))
    })
    .await
    .unwrap();
    party[0]
        .client
        .session_mut()
        .corrupt(|counter| counter.total += 1);
    // Bob's process ends and starts again; Dora joins.
    let [_, bob, _] = party.as_mut_slice() else {
        unreachable!("three play");
    };
    *bob = player("bob");
    party.push(player("dora"));
    play_for(&mut party, Duration::from_millis(30)).await;
    let at = party[2].tick();
    let playing = play(&mut party, |party| {
        party.iter().all(|one| one.tick() > at + 200)
    });
    let (released, played) = tokio::join!(release(&old, 7), playing);
    played.unwrap();
    assert_eq!(released.0, 200, "{}", released.1);
    play_for(&mut party, Duration::from_millis(500)).await;
    let at = party.iter().map(Player::tick).max().unwrap();
    play(&mut party, |party| {
        party.iter().all(|one| one.tick() > at + 60)
    })
    .await
    .unwrap();
    assert_eq!(new.listed().await, [7]);
    new.host.shutdown(CloseCode::Draining).await;
    old.host.shutdown(CloseCode::Draining).await;
}

/// The matches of an ending server are resumed at the other addresses in its tickets, without an order for each match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_matches_of_an_ending_server_are_resumed_by_the_other_one() {
    let [old, new] = two("ends").await;
    let mut party = vec![old.client("anna", 7), old.client("bob", 8)];
    play(&mut party, |party| {
        party.iter().all(|one| tick(one) > Tick(60))
    })
    .await
    .unwrap();
    let at = tick(&party[0]);
    let playing = play(&mut party, |party| {
        party.iter().all(|one| tick(one) > at + 120)
    });
    let ((), played) = tokio::join!(old.host.shutdown(CloseCode::Draining), playing);
    played.unwrap();
    assert_eq!(new.listed().await, [7, 8]);
    assert!(party.iter().all(|one| one.session().stats().heals == 0));
    new.host.shutdown(CloseCode::Draining).await;
}

/// Finding H2: matches that hung, or had no journal, ended during the move to another process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_that_no_other_server_can_resume_is_not_released() {
    let server = LoopbackHost::start("release-stays", |_| {}).await;
    let add = async |id, journal| {
        let match_ = counter(MatchConfig::action());
        server.host.add_match(id, match_, journal).await.unwrap()
    };
    let bare = add(MatchId(1), None).await;
    let journal = Journal::create(server.folder.file("2.journal")).unwrap();
    let held = add(MatchId(2), Some(journal)).await;
    let wake = hold_up(&held).await;
    let (status, words) = release(&server, 1).await;
    assert!(status == 409 && words.contains("no journal"), "{words}");
    let (status, words) = release(&server, 5).await;
    assert!(status == 404, "{words}");
    let (status, words) = release(&server, 2).await;
    assert!(status == 503 && words.contains("did not answer"), "{words}");
    drop(wake);
    let mut anna = server.client("anna", 1);
    play(std::slice::from_mut(&mut anna), |one| {
        tick(&one[0]) > Tick(0)
    })
    .await
    .unwrap();
    plays_on(&mut anna).await;
    assert!(bare.inspect(|_| ()).await.is_ok());
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_dialling_a_released_match_is_redirected() {
    let server = LoopbackHost::<Counter>::start("release-on", |_| {}).await;
    let journal = Journal::create(server.folder.file("journal")).unwrap();
    let match_ = counter(MatchConfig::action());
    let match_ = server
        .host
        .add_match(MatchId(1), match_, Some(journal))
        .await
        .unwrap();
    assert_eq!(release(&server, 1).await.0, 200);
    assert_eq!(match_.ended().await, Some(CloseCode::Moved));
    let sent_on = end_of(server.client("anna", 1)).await;
    assert_eq!(sent_on, closed_by(CloseCode::Moved));
    server.host.shutdown(CloseCode::Draining).await;
}

/// A match whose journal can be written until the other end of the pipe is dropped; between its first world and its
/// end, 20 s pass without a record.
#[cfg(unix)]
async fn add_over_a_pipe(
    server: &LoopbackHost<Counter>,
    id: u64,
    on_failure: OnJournalFailure,
) -> (MatchHandle<Counter>, std::os::unix::net::UnixStream) {
    let config = MatchConfig {
        tick: Duration::from_secs(1),
        turn: TurnLength::Fixed(20),
        ..MatchConfig::action()
    };
    let (ours, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::from(std::os::fd::OwnedFd::from(ours));
    let path = server.folder.file(&format!("{id}.journal"));
    let journal = Journal::from_file(path, file).on_failure(on_failure);
    let match_ = server
        .host
        .add_match(MatchId(id), counter(config), Some(journal));
    let match_ = match_.await.unwrap();
    match_.inspect(|_| ()).await.unwrap();
    (match_, reader)
}

/// Finding H2: a match configured to continue without a journal was released although its last write had failed, and
/// its players were sent to servers that did not have it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_whose_journal_fails_at_its_last_write_is_not_released() {
    let server = LoopbackHost::start("release-last-write", |_| {}).await;
    let (goes_on, reader) = add_over_a_pipe(&server, 1, OnJournalFailure::Continue).await;
    let (ends, other_reader) = add_over_a_pipe(&server, 2, OnJournalFailure::End).await;
    drop((reader, other_reader));
    let (status, words) = release(&server, 1).await;
    assert!(
        status == 409 && words.contains("journal cannot be written"),
        "{words}"
    );
    let (status, words) = release(&server, 2).await;
    assert!(
        status == 409 && words.contains("ended meanwhile"),
        "{words}"
    );
    assert_eq!(ends.ended().await, Some(CloseCode::Fault));
    let tick = async || {
        goes_on
            .inspect(|match_| match_.world().tick())
            .await
            .unwrap()
    };
    let before = tick().await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(tick().await > before, "it plays on");
    let lost = goes_on.inspect(|match_| match_.stats().journal_lost).await;
    assert!(
        lost.unwrap().is_some(),
        "and reports that it has no journal"
    );
    server.host.shutdown(CloseCode::Draining).await;
}

/// A match was reported as kept although its last world could not be written.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_is_reported_as_kept_only_if_its_last_world_was_written() {
    let server = LoopbackHost::start("release-kept", |_| {}).await;
    let (kept, _reader) = add_over_a_pipe(&server, 1, OnJournalFailure::Continue).await;
    let (lost, reader) = add_over_a_pipe(&server, 2, OnJournalFailure::Continue).await;
    drop(reader);
    server.host.shutdown(CloseCode::Draining).await;
    let reply = kept.ended().await;
    assert!(
        matches!(reply, Some(CloseCode::Restarting { .. })),
        "{reply:?}"
    );
    assert_eq!(lost.ended().await, Some(CloseCode::Draining));
}
