//! A match that one server plays and another one takes over, both with matches on demand and one folder of journals. Whatever
//! is in the way, the match plays on where it is.

use twinstep_core::Tick;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::testing::doc::Counter;

use crate::demand::{beside, counters, server};
use crate::loopback::LoopbackHost;
use crate::players::{end_of, play, plays, said, tick};

/// Two servers with one key, one token and one folder of journals.
async fn two(name: &str) -> [LoopbackHost<Counter>; 2] {
    let old = server(name, |folder| counters().journals(&folder.0)).await;
    let new = beside(&old, counters().journals(&old.folder.0)).await;
    [old, new]
}

/// Asks `new` to take a match over; the status and the words.
async fn take(new: &LoopbackHost<Counter>, old: &LoopbackHost<Counter>, id: u64) -> (u16, String) {
    let request = format!("POST /take?match={id}&from={}", old.admin());
    new.ask(&request, "").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_is_taken_over_while_it_is_played_and_its_players_come_along() {
    let [old, new] = two("taken").await;
    let mut party = vec![
        old.client("anna", 7),
        old.client("bob", 7),
        old.client("carl", 8),
    ];
    play(&mut party, |party| {
        party.iter().all(|one| tick(one) > Tick(60))
    })
    .await
    .unwrap();
    let at = tick(&party[0]);
    let taking = async {
        let taken = take(&new, &old, 7).await;
        // Some seconds of play beyond that.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        taken
    };
    let playing = play(&mut party, |party| {
        party.iter().all(|one| tick(one) > at + 240)
    });
    let (taken, played) = tokio::join!(taking, playing);
    played.unwrap();
    assert_eq!(taken.0, 200, "{}", taken.1);
    assert_eq!((old.listed().await, new.listed().await), (vec![8], vec![7]));
    for one in &party {
        assert_eq!(one.session.stats().heals, 0);
    }
    let returns: Vec<u64> = party
        .iter()
        .map(|one| one.session.stats().returns)
        .collect();
    assert_eq!(returns, [1, 1, 0]);
    // Nobody new where matches go from, and nobody finds a second match there.
    let newcomer = end_of(old.client("dora", 9)).await;
    assert_eq!(newcomer, said(CloseCode::Draining));
    let (status, words) = take(&old, &new, 7).await;
    assert!(status == 409 && words.contains("draining"), "{words}");
    new.host.shutdown(CloseCode::Draining).await;
    old.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_stays_where_it_is_unless_it_can_go_on_elsewhere() {
    let [old, new] = two("stays").await;
    let mut party = vec![old.client("anna", 7)];
    plays(&mut party).await;
    // Another folder, none at all, no room, no such match, one that runs there already.
    let elsewhere = server("stays-elsewhere", |folder| counters().journals(&folder.0)).await;
    std::fs::copy(old.folder.file("token"), elsewhere.folder.file("token")).unwrap();
    let elsewhere = beside(&elsewhere, counters().journals(&elsewhere.folder.0)).await;
    let (status, words) = take(&elsewhere, &old, 7).await;
    assert!(status == 409 && words.contains("same folder"), "{words}");
    let (status, words) = take(&new, &old, 5).await;
    assert!(
        status == 409 && words.contains("runs no such match"),
        "{words}"
    );
    let (status, words) = take(&new, &old, 5_000).await;
    assert!(status == 409 && words.contains("knows no match"), "{words}");
    let (status, words) = take(&old, &new, 7).await;
    assert!(
        status == 409 && words.contains("runs here already"),
        "{words}"
    );
    let (status, words) = take(&new, &new, 7).await;
    assert!(status == 409, "{words}");
    assert_eq!(old.listed().await, [7]);

    // Whoever comes to a process that does not play the match makes no second one there.
    let lost = end_of(new.client("bob", 7)).await;
    assert_eq!(lost, said(CloseCode::NoMatch));
    let series = "twinstep_matches_not_made_total{reason=\"elsewhere\"}";
    assert_eq!(new.number(series).await, 1.0);
    let at = tick(&party[0]);
    play(&mut party, |party| tick(&party[0]) > at + 60)
        .await
        .unwrap();
    let (status, words) = old.ready().await;
    assert_eq!(status, 200, "nothing was begun: {words}");
    for server in [old, new, elsewhere] {
        server.host.shutdown(CloseCode::Draining).await;
    }
}
