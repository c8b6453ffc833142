//! Bans, kicks and revoked tickets: which matches and tickets they affect, and until when.

use std::time::Duration;
use twinstep_protocol::lineage::REVOKE_SLACK_MS;

use serde_json::{Value, json};
use twinstep_core::PlayerId;
use twinstep_core::testing::doc::Counter;
use twinstep_core::world::Presence;
use twinstep_ops::OpsError;
use twinstep_protocol::packet::closed::{BANNED_FOR_GOOD, CloseCode};
use twinstep_udp::Ticket;

use crate::actions::{
    add, all_in, close_code_of_first, config, done, once_away, restarted, server,
};
use crate::players::{Player, play_for, play_remaining};
use crate::scrape::scrape_until;

/// Dials with a ticket. Returns the close code, or `None` if the player joins.
async fn dial(ticket: &Ticket) -> (Option<CloseCode>, Player<Counter>) {
    let mut one = [Player::join(ticket)];
    let known = |one: &mut [Player<Counter>]| one[0].over().is_some() || one[0].is_in();
    play_remaining("an answer", &mut one, known).await;
    let [one] = one;
    (one.over(), one)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_applies_to_every_ticket_and_across_restarts_until_it_is_lifted() {
    let mut server = server("ban").await;
    add(&server, 1).await;
    let (old, bobs) = (server.ticket("anna", 1), server.ticket("bob", 1));
    let mut party = [Player::join(&old), Player::join(&bobs)];
    all_in(&mut party).await;
    let handed = party[0].newest().unwrap();

    let reply = done(
        &server,
        "POST /ban",
        json!({ "identity": "anna", "reason": "an aimbot" }),
    )
    .await;
    assert_eq!(
        reply,
        json!({ "banned": "anna", "until_unix_s": null, "removed_from": [1] })
    );
    let for_good = CloseCode::Banned {
        for_s: BANNED_FOR_GOOD,
    };
    assert_eq!(close_code_of_first(&mut party).await, Some(for_good));
    // With any ticket: the original, the one handed out by the server, or a new one.
    for ticket in [&handed, &server.ticket("anna", 1)] {
        assert_eq!(dial(ticket).await.0, Some(for_good));
    }
    // The ticket is outdated anyway, because a newer ticket is stored.
    let over = dial(&old).await.0;
    assert_eq!(over, Some(CloseCode::Superseded));
    // Bob stays connected, and new players are admitted.
    let (over, carl) = dial(&server.ticket("carl", 1)).await;
    assert_eq!(over, None);
    drop(carl);
    play_for(&mut party[1..], Duration::from_millis(100)).await;
    assert!(party[1].over().is_none() && party[1].is_in());
    let kicks = "twinstep_kicks_total{reason=\"banned\"}";
    scrape_until(server.admin(), kicks, |kicks| kicks == 1.0).await;
    drop(party);

    server = restarted(server).await;
    add(&server, 1).await;
    assert_eq!(dial(&server.ticket("anna", 1)).await.0, Some(for_good));
    let dropped = "twinstep_datagrams_dropped_total{reason=\"banned\"}";
    scrape_until(server.admin(), dropped, |dropped| dropped >= 1.0).await;
    let bans = done(&server, "GET /bans", Value::Null).await;
    assert_eq!(bans[0]["identity"], "anna");
    assert_eq!(bans[0]["reason"], "an aimbot");
    assert_eq!(dial(&server.ticket("bob", 1)).await.0, None);

    let reply = done(&server, "POST /unban?identity=anna", Value::Null).await;
    assert_eq!(reply["was_banned"], true);
    assert_eq!(dial(&server.ticket("anna", 1)).await.0, None);
    assert_eq!(done(&server, "GET /bans", Value::Null).await, json!([]));
    server = restarted(server).await;
    add(&server, 1).await;
    assert_eq!(dial(&server.ticket("anna", 1)).await.0, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_ban_states_its_duration_and_expires() {
    let server = server("ban-while").await;
    add(&server, 1).await;
    add(&server, 2).await;
    // An identity can be banned while it is not here; the ban holds in all matches.
    let reply = done(&server, "POST /ban?identity=anna&for_s=2", Value::Null).await;
    assert_eq!(reply["removed_from"], json!([]));
    for id in [1, 2] {
        let (over, _) = dial(&server.ticket("anna", id)).await;
        assert!(
            matches!(over, Some(CloseCode::Banned { for_s: 0..=2 })),
            "{over:?}"
        );
    }
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(dial(&server.ticket("anna", 1)).await.0, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_removes_sessions_waiting_for_their_match() {
    let server = server("ban-waits").await;
    let mut waits = [Player::join(&server.ticket("anna", 9))];
    play_for(&mut waits, Duration::from_millis(500)).await;
    done(&server, "POST /ban", json!({ "identity": "anna" })).await;
    let over = close_code_of_first(&mut waits).await;
    assert!(matches!(over, Some(CloseCode::Banned { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kicked_identity_stays_out_of_that_match_until_it_is_pardoned() {
    let server = server("kick").await;
    let handle = add(&server, 1).await;
    add(&server, 2).await;
    let annas = server.ticket("anna", 1);
    let mut party = [Player::join(&annas), Player::join(&server.ticket("bob", 1))];
    all_in(&mut party).await;
    let reply = done(
        &server,
        "POST /kick",
        json!({ "match": 1, "identity": "anna" }),
    )
    .await;
    assert_eq!(reply, json!({ "match": 1, "kicked": "anna" }));
    assert_eq!(
        close_code_of_first(&mut party).await,
        Some(CloseCode::Kicked)
    );
    let again = server.ticket("anna", 1);
    assert_eq!(dial(&again).await.0, Some(CloseCode::Kicked));
    assert_eq!(dial(&server.ticket("anna", 2)).await.0, None);
    let kicks = "twinstep_kicks_total{reason=\"operator\"}";
    scrape_until(server.admin(), kicks, |kicks| kicks == 1.0).await;
    let reply = done(&server, "POST /unban", json!({ "identity": "anna" })).await;
    let expected = json!({ "unbanned": "anna", "was_banned": false, "was_kicked_from": [1] });
    assert_eq!(reply, expected);
    assert_eq!(dial(&again).await.0, None);
    // The player is kicked while away, so its seat is free immediately.
    let bob = json!({ "match": 1, "identity": "bob" });
    drop(party);
    let away = once_away(&server, 1, "bob", &mut []).await;
    let seat = PlayerId(away["seat"].as_u64().unwrap() as u8);
    let presence = async || {
        let presence = handle.inspect(move |match_| match_.world().presence(seat));
        presence.await.unwrap()
    };
    assert_ne!(presence().await, Presence::Absent);
    done(&server, "POST /kick", bob.clone()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(presence().await, Presence::Absent, "its player leaves");
    assert_eq!(server.ask("POST /kick", &bob.to_string()).await.0, 404);
    let people = done(&server, "GET /matches/1", Value::Null).await;
    let people = people["players"].as_array().unwrap();
    assert!(
        people.iter().all(|one| one["identity"] != "bob"),
        "{people:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_tickets_are_refused_and_playing_clients_get_new_ones() {
    let server = server("revoke").await;
    add(&server, 1).await;
    let stolen = server.ticket("anna", 1);
    let mut party = [
        Player::join(&server.ticket("anna", 1)),
        Player::join(&server.ticket("bob", 1)),
    ];
    all_in(&mut party).await;
    let (handed, bobs) = (party[0].newest().unwrap(), party[1].newest().unwrap());
    tokio::time::sleep(Duration::from_millis(5)).await;
    let reply = done(&server, "POST /revoke", json!({ "identity": "anna" })).await;
    let made_before = reply["revoked"][0]["made_before_unix_ms"].as_u64().unwrap();
    assert!(made_before > stolen.stamp().issued_unix_ms);
    // The player stays connected, and has a valid ticket.
    let is_new = |one: &mut Player<Counter>| {
        one.newest()
            .is_some_and(|ticket| ticket.stamp().lineage != handed.stamp().lineage)
    };
    let has_it = |party: &mut [Player<Counter>]| is_new(&mut party[0]);
    play_remaining("a new ticket", &mut party, has_it).await;
    assert!(party[0].over().is_none());
    let newest = party[0].newest().unwrap();
    drop(party);
    for ticket in [&stolen, &handed] {
        let (over, _) = dial(ticket).await;
        assert_eq!(over, Some(CloseCode::Superseded));
    }
    assert_eq!(dial(&newest).await.0, None);
    assert_eq!(dial(&bobs).await.0, None, "others keep theirs");
    // A ticket made elsewhere is valid after the slack.
    tokio::time::sleep(Duration::from_millis(REVOKE_SLACK_MS)).await;
    assert_eq!(dial(&server.ticket("anna", 1)).await.0, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_unreadable_ban_file_does_not_start() {
    let server = server("damaged").await;
    std::fs::write(server.folder.file("bans"), "[{]").unwrap();
    let Err(error) = config(&server).start().await else {
        panic!("it started");
    };
    assert!(matches!(error, OpsError::Bans(_)), "{error}");
    assert!(error.to_string().contains("repair it"), "{error}");
    // The running server reports the problem, and the ban holds nevertheless.
    let (status, reply) = server.ask("POST /ban?identity=anna", "").await;
    assert_eq!(status, 500);
    assert!(
        reply.contains("the ban file could not be written"),
        "{reply}"
    );
    // It is unknown whether the file has a ban of this player.
    let (status, reply) = server.ask("POST /unban?identity=bob", "").await;
    assert_eq!(status, 500);
    assert!(
        reply.starts_with("kicks are lifted, but no ban: "),
        "{reply}"
    );
    add(&server, 1).await;
    let (over, _) = dial(&server.ticket("anna", 1)).await;
    assert!(matches!(over, Some(CloseCode::Banned { .. })));
}
