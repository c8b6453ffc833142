//! The shutdown of a host with many matches: all players get a retry time, even in matches that do not end in time.

use std::time::Duration;

use twinstep_core::testing::doc::Counter;
use twinstep_host::{Durability, Journal, MatchId};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::MatchConfig;

use crate::loopback::{LoopbackHost, Setup, counter, hold_up};
use crate::players::{Player, play, play_remaining};

const BACK_AFTER: CloseCode = CloseCode::Restarting { after_s: 7 };

async fn start(name: &str, ids: std::ops::RangeInclusive<u64>) -> LoopbackHost<Counter> {
    let set = |config: &mut Setup| {
        config.sessions_max = Some(64);
        config.back_after = Duration::from_secs(7);
    };
    let server = LoopbackHost::start(name, set).await;
    for id in ids {
        let journal = Journal::create(server.folder.file(&format!("{id}.journal"))).unwrap();
        let journal = journal.durability(Durability::Power);
        let match_ = counter(MatchConfig::action());
        server
            .host
            .add_match(MatchId(id), match_, Some(journal))
            .await
            .unwrap();
    }
    server
}

/// Finding K3-H: matches whose turn to end had not come in 2 s were dropped, and their players were told that the match
/// was over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_of_many_matches_are_asked_to_retry_when_their_server_ends() {
    const MATCHES: u64 = 300;
    let server = start("goodbyes-many", 1..=MATCHES).await;
    let ids = [1, 60, 120, 180, 240, MATCHES];
    let mut party = Vec::from_iter(ids.map(|id| server.player("anna", id)));
    play(&mut party, |party| party.iter().all(Player::is_in))
        .await
        .unwrap();
    all_get_the_restart_time(server, party).await;
}

async fn all_get_the_restart_time(server: LoopbackHost<Counter>, mut party: Vec<Player<Counter>>) {
    let LoopbackHost { host, folder, .. } = server;
    let ends = tokio::spawn(host.shutdown(CloseCode::Draining));
    let is_informed =
        |one: &Player<Counter>| one.client.session().close_code().is_some() || one.ended.is_some();
    play_remaining("the end", &mut party, |party| party.iter().all(is_informed)).await;
    for one in &party {
        assert_eq!(one.ended, None);
        assert_eq!(one.client.session().close_code(), Some(BACK_AFTER));
    }
    ends.await.unwrap();
    drop(folder);
}

/// Finding K3-H, worst case: a match does not end in time because its author's code hangs. It continues from its
/// journal as after a crash; a match without a journal is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_of_a_match_missing_the_shutdown_deadline_are_asked_to_retry() {
    let server = start("goodbyes-held", 1..=1).await;
    let journal = Journal::create(server.folder.file("2.journal")).unwrap();
    let match_ = counter(MatchConfig::action());
    let held = server
        .host
        .add_match(MatchId(2), match_, Some(journal))
        .await
        .unwrap();
    let mut party = Vec::from_iter([1, 2].map(|id| server.player("anna", id)));
    play(&mut party, |party| party.iter().all(Player::is_in))
        .await
        .unwrap();
    let wake = hold_up(&held).await;
    all_get_the_restart_time(server, party).await;
    drop(wake);
}
