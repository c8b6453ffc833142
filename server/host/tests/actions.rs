//! An operator's actions through the admin port, each with valid, wrong, missing and hostile input. Bans and kicks are
//! in `banning`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use twinstep_client::{Event, MatchRequest};
use twinstep_core::testing::doc::Counter;
use twinstep_host::{Journal, MatchHandle};
use twinstep_ops::{AdminAddress, AdminClient, AdminError};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Index;
use twinstep_server::MatchConfig;
use twinstep_udp::{MatchId, TicketKey};

use crate::folder::Folder;
use crate::loopback::{LoopbackHost, Setup, counter};
use crate::players::{Player, play_for, play_remaining};
use crate::scrape::{ask, scrape};

pub(crate) async fn server(name: &str) -> LoopbackHost<Counter> {
    let (folder, key) = (Folder::new(name), TicketKey::generate());
    server_in(folder, key).await
}

async fn server_in(folder: Folder, key: TicketKey) -> LoopbackHost<Counter> {
    let bans = folder.file("bans");
    let set = |config: &mut Setup| config.ops.bans_file = Some(bans);
    LoopbackHost::start_in(folder, key, set).await
}

pub(crate) async fn restarted(server: LoopbackHost<Counter>) -> LoopbackHost<Counter> {
    let LoopbackHost {
        host, folder, key, ..
    } = server;
    host.shutdown(CloseCode::Draining).await;
    server_in(folder, key).await
}

pub(crate) fn config(server: &LoopbackHost<Counter>) -> Setup {
    let mut config = LoopbackHost::<Counter>::config(&server.folder, &server.key);
    config.ops.bans_file = Some(server.folder.file("bans"));
    config
}

fn journal(server: &LoopbackHost<Counter>, id: u64) -> PathBuf {
    server.folder.file(&format!("{id}.journal"))
}

pub(crate) async fn add(server: &LoopbackHost<Counter>, id: u64) -> MatchHandle<Counter> {
    let match_ = counter(MatchConfig {
        players_max: 4,
        ..MatchConfig::action()
    });
    let path = journal(server, id);
    let _ = std::fs::remove_file(&path);
    let journal = Journal::create(path).unwrap();
    let added = server
        .host
        .add_match(MatchId(id), match_, Some(journal))
        .await;
    added.unwrap()
}

pub(crate) async fn done(server: &LoopbackHost<Counter>, request: &str, body: Value) -> Value {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let (status, reply) = server.ask(request, &body).await;
    assert_eq!(status, 200, "{request} {body}: {reply}");
    serde_json::from_str(&reply).unwrap()
}

pub(crate) async fn once_away(
    server: &LoopbackHost<Counter>,
    id: u64,
    identity: &str,
    others: &mut [Player<Counter>],
) -> Value {
    for _ in 0..100 {
        play_for(others, Duration::from_millis(200)).await;
        let reply = done(server, &format!("GET /matches/{id}"), Value::Null).await;
        let people = reply["players"].as_array().unwrap();
        let one = people.iter().find(|one| one["identity"] == identity);
        let one = one.expect("its seat is kept");
        if one["state"] == "away" {
            return one.clone();
        }
    }
    panic!("{identity} is not away");
}

pub(crate) async fn close_code_of_first(party: &mut [Player<Counter>]) -> Option<CloseCode> {
    let is_over = |party: &mut [Player<Counter>]| party[0].ended.is_some();
    play_remaining("the end", party, is_over).await;
    party[0].over()
}

pub(crate) async fn all_in(party: &mut [Player<Counter>]) {
    play_remaining("joining", party, |party| {
        let mut all = party.iter_mut();
        all.all(|one| one.is_in() && one.newest().is_some())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn players_receive_the_operators_message() {
    let server = server("message").await;
    add(&server, 1).await;
    add(&server, 2).await;
    let mut party = [
        Player::join(&server.ticket("anna", 1)),
        Player::join(&server.ticket("bob", 2)),
    ];
    all_in(&mut party).await;
    let all = done(
        &server,
        "POST /message?text=five%20minutes%20to%20go",
        Value::Null,
    );
    assert_eq!(
        all.await["sent_to"],
        json!([{ "match": 1, "sessions": 1 }, { "match": 2, "sessions": 1 }])
    );
    let one = done(
        &server,
        "POST /message",
        json!({ "text": "for bob \u{2013} alone", "match": 2 }),
    );
    assert_eq!(one.await["sent_to"], json!([{ "match": 2, "sessions": 1 }]));
    play_for(&mut party, Duration::from_secs(1)).await;
    let read = party.map(|player| {
        let notice = |event| match event {
            Event::Notice(words) => Some(words),
            _ => None,
        };
        Vec::from_iter(player.events.into_iter().filter_map(notice))
    });
    assert_eq!(read[0], ["five minutes to go"]);
    assert_eq!(read[1], ["five minutes to go", "for bob \u{2013} alone"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_pauses_steps_and_resumes_a_match() {
    let server = server("pause").await;
    let handle = add(&server, 1).await;
    let mut party = [Player::join(&server.ticket("anna", 1))];
    all_in(&mut party).await;
    let pause = json!({ "match": 1, "request": "pause" });
    let reply = done(&server, "POST /request", pause).await;
    assert_eq!(reply, json!({ "match": 1, "requested": "pause" }));
    play_for(&mut party, Duration::from_millis(700)).await;
    let tick = async || {
        handle
            .inspect(|match_| match_.world().tick())
            .await
            .unwrap()
    };
    let paused = tick().await;
    let request = MatchRequest::Pause;
    assert!(
        party[0]
            .events
            .contains(&Event::Request { by: None, request })
    );
    play_for(&mut party, Duration::from_millis(700)).await;
    assert_eq!(tick().await, paused);
    done(&server, "POST /request?match=1&request=step", Value::Null).await;
    play_for(&mut party, Duration::from_millis(300)).await;
    assert!((1..=4).contains(&(tick().await - paused)), "a turn");
    let fast = "POST /request?match=1&request=speed&tick_us=8333";
    done(&server, fast, Value::Null).await;
    done(&server, "POST /request?match=1&request=resume", Value::Null).await;
    play_for(&mut party, Duration::from_millis(500)).await;
    assert!(tick().await > paused + 10);
    assert_eq!(party[0].ended, None);
    for (request, expected) in [
        (
            "POST /request?match=1&request=stop",
            "pause, resume, step or speed",
        ),
        (
            "POST /request?match=1&request=tick&tick_us=9",
            "1 ms to 1 s",
        ),
        ("POST /request?request=pause", "`match`"),
    ] {
        let (status, reply) = server.ask(request, "").await;
        assert_eq!(status, 400, "{reply}");
        assert!(reply.contains(expected), "{reply}");
    }
    assert_eq!(
        server
            .ask("POST /request?match=9&request=pause", "")
            .await
            .0,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_ended_by_an_operator_stays_ended_and_its_journal_has_the_reason() {
    let server = server("end").await;
    let handle = add(&server, 1).await;
    let other = add(&server, 2).await;
    let unexplained = add(&server, 3).await;
    let mut party = [Player::join(&server.ticket("anna", 1))];
    all_in(&mut party).await;
    let reply = done(
        &server,
        "POST /end?match=1&reason=the%20evening%20is%20over",
        Value::Null,
    )
    .await;
    assert_eq!(reply["match"], 1);
    assert_eq!(
        close_code_of_first(&mut party).await,
        Some(CloseCode::MatchOver)
    );
    assert_eq!(handle.ended().await, Some(CloseCode::MatchOver));
    assert!(!other.is_over());
    let written = std::fs::read(journal(&server, 1)).unwrap();
    let ended = Index::scan(&written).unwrap().ended;
    assert_eq!(
        ended.as_deref(),
        Some("ended by an operator: the evening is over")
    );
    assert_eq!(server.ask("POST /end?match=1", "").await.0, 404);
    done(&server, "POST /end?match=3", Value::Null).await;
    unexplained.ended().await;
    let written = std::fs::read(journal(&server, 3)).unwrap();
    let ended = Index::scan(&written).unwrap().ended;
    assert_eq!(ended.as_deref(), Some("ended by an operator"));
    // A reason that a journal would read as another kind of end is not written as is.
    done(&server, "POST /end?match=2&reason=kept", Value::Null).await;
    other.ended().await;
    let written = std::fs::read(journal(&server, 2)).unwrap();
    assert_ne!(Index::scan(&written).unwrap().ended.unwrap(), "kept");
}

async fn people_of(server: &LoopbackHost<Counter>, id: u64) -> Vec<Value> {
    let reply = done(server, &format!("GET /matches/{id}"), Value::Null).await;
    reply["players"].as_array().unwrap().clone()
}

fn is_in_time(one: &Value) -> bool {
    let margin = one["margin_ticks"].as_i64();
    margin.is_some_and(|margin| (-60..=60).contains(&margin))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_players_of_a_match_are_listed_with_their_link_quality() {
    let server = server("people").await;
    add(&server, 1).await;
    let empty = done(&server, "GET /matches/1", Value::Null).await;
    assert_eq!(empty, json!({ "match": 1, "players": [] }));
    let mut party = vec![
        Player::join(&server.ticket("anna", 1)),
        Player::join(&server.ticket("bob", 1)),
    ];
    all_in(&mut party).await;
    play_for(&mut party, Duration::from_millis(1_200)).await;
    let mut people = people_of(&server, 1).await;
    // On a busy machine the players' inputs are late for a while.
    for _ in 0..20 {
        if people.iter().all(is_in_time) {
            break;
        }
        play_for(&mut party, Duration::from_millis(500)).await;
        people = people_of(&server, 1).await;
    }
    assert_eq!(people.len(), 2);
    for one in &people {
        assert_eq!(one["name"], one["identity"]);
        assert_eq!(
            (&one["state"], &one["connected"]),
            (&"playing".into(), &true.into())
        );
        assert!(is_in_time(one), "{one}");
        let round_trip = one["round_trip_ms"].as_f64().unwrap();
        assert!((0.0..500.0).contains(&round_trip), "{one}");
        let since = one["since_s"].as_f64().unwrap();
        // Time in which the server itself was paused does not count.
        assert!((0.1..20.0).contains(&since), "{one}");
    }
    // One player is gone, and its seat is kept.
    let gone = party.pop().unwrap();
    drop(gone);
    let bob = once_away(&server, 1, "bob", &mut party).await;
    assert_eq!(bob["connected"], false);
    assert_eq!(bob["round_trip_ms"], Value::Null);
    assert_eq!(bob["margin_ticks"], Value::Null);
}

/// Requests with a valid token that are hostile, or name missing or ambiguous things.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_refused_with_a_message_and_do_not_change_the_state() {
    let server = server("wrong").await;
    add(&server, 1).await;
    let long = format!("{{\"identity\":\"a\",\"reason\":\"{}\"}}", "x".repeat(300));
    let huge = format!("{{\"identity\":\"{}\"}}", "x".repeat(40_000));
    let deep = "[".repeat(5_000);
    for (request, body, status, words) in [
        ("GET /matches/2", "", 404, "match 2 is not running here"),
        ("GET /matches/x", "", 400, "got \"x\""),
        ("GET /matches/-1", "", 400, "expected the id of a match"),
        ("GET /kick?match=1&identity=anna", "", 405, "POST /kick"),
        ("GET /nothing", "", 404, "no such request"),
        ("POST /kick", "", 400, "field `match`"),
        ("POST /kick?match=1", "", 400, "field `identity`"),
        (
            "POST /kick?match=1&identity=anna",
            "",
            404,
            "not in match 1",
        ),
        ("POST /kick?match=5&identity=anna", "", 404, "match 5"),
        (
            "POST /kick?match=1&identity=a&seat=0",
            "",
            400,
            "`seat`: unknown",
        ),
        (
            "POST /kick?match=1&identity=%1B%5D0",
            "",
            400,
            "field `identity`",
        ),
        ("POST /ban", "", 400, "field `identity`"),
        ("POST /ban", "{", 400, "a JSON object"),
        ("POST /ban", &deep, 400, "a JSON object"),
        ("POST /ban", "\"anna\"", 400, "a JSON object"),
        (
            "POST /ban",
            "{\"identity\":\"a\",\"for_s\":0}",
            400,
            "field `for_s`: expected 1 or more, got 0",
        ),
        (
            "POST /message?text=",
            "",
            400,
            "field `text`: expected the message for players; got \"\"",
        ),
        (
            "POST /message",
            "",
            400,
            "field `text`: expected the message for players; it is missing",
        ),
        (
            "POST /ban",
            "{\"identity\":\"a\",\"for_s\":-5}",
            400,
            "`for_s`",
        ),
        (
            "POST /ban",
            "{\"identity\":\"a\",\"until_unix_s\":5}",
            400,
            "field `until_unix_s`: expected a time after now",
        ),
        (
            "POST /ban",
            "{\"identity\":\"a\",\"for_s\":9,\"until_unix_s\":99999999999}",
            400,
            "not both",
        ),
        ("POST /ban", &long, 400, "at most 200 bytes"),
        ("POST /ban", &huge, 413, "at most 16384 bytes"),
        (
            "POST /unban?identity=anna",
            "",
            404,
            "neither banned nor kicked",
        ),
        ("POST /unban", "", 400, "field `identity`"),
        ("POST /revoke?identity=anna&match=3", "", 404, "match 3"),
        ("POST /revoke?match=1", "", 400, "field `identity`"),
        ("POST /message", "", 400, "field `text`"),
        ("POST /message?text=%1b[2J", "", 400, "`text`"),
        ("POST /message?text=hello&match=9", "", 404, "match 9"),
        ("POST /end", "", 400, "field `match`"),
        ("POST /end?match=1&reason=%0A", "", 400, "`reason`"),
        ("POST /end?match=9", "", 404, "match 9"),
    ] {
        let (got, reply) = server.ask(request, body).await;
        assert_eq!(got, status, "{request}: {reply}");
        assert!(reply.contains(words), "{request}: {reply}");
        assert!(!reply.contains('\u{1b}'), "{request}: {reply:?}");
    }
    assert_eq!(done(&server, "GET /bans", Value::Null).await, json!([]));
    assert!(!server.folder.file("bans").exists(), "no file was written");
    assert_eq!(scrape(server.admin()).await.of("twinstep_matches"), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_the_token_change_no_match_and_list_no_players() {
    let server = server("token").await;
    let handle = add(&server, 1).await;
    let guarded = [
        "GET /matches/1",
        "GET /bans",
        "POST /kick?match=1&identity=anna",
        "POST /ban?identity=anna",
        "POST /unban?identity=anna",
        "POST /revoke?identity=anna",
        "POST /end?match=1",
        "POST /request?match=1&request=pause",
        "POST /release?match=1",
    ];
    let token = server.token();
    let mut wrong = token.clone();
    wrong.pop();
    for request in guarded {
        for token in [None, Some("x"), Some(&*wrong), Some("")] {
            let (status, _, reply) = ask(server.admin(), request, token, "").await;
            assert_eq!(status, 401, "{request} {token:?}: {reply}");
            assert!(reply.contains("Authorization: Bearer"), "{reply}");
        }
    }
    for request in ["GET /livez", "GET /readyz", "GET /matches", "GET /metrics"] {
        assert_eq!(ask(server.admin(), request, None, "").await.0, 200);
    }
    assert!(!handle.is_over() && !server.folder.file("bans").exists());
    // A server without a token file carries out no action.
    let mut config = config(&server);
    config.ops.admin_token = None;
    let (_host, ops) = config.start().await.unwrap();
    for request in guarded {
        let asked = ask(ops.admin_addr().unwrap(), request, Some(&token), "");
        assert_eq!(asked.await.0, 403, "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_client_uses_the_token_file_and_never_creates_one() {
    let server = server("client").await;
    add(&server, 1).await;
    let client = AdminClient::new(server.admin());
    let missing = server.folder.file("missing");
    assert!(matches!(
        client.clone().with_token(&missing),
        Err(AdminError::Token(_))
    ));
    assert!(!missing.exists());
    let known = client
        .clone()
        .with_token(&server.folder.file("token"))
        .unwrap();
    let asked = tokio::task::spawn_blocking(move || {
        let unknown = client.post("/ban", "{\"identity\":\"anna\"}").unwrap();
        let banned = known.post("/ban", "{\"identity\":\"anna\"}").unwrap();
        let matches = client.get("/matches").unwrap();
        (unknown.status, banned.status, matches)
    });
    let (unknown, banned, matches) = asked.await.unwrap();
    assert_eq!((unknown, banned, matches.status), (401, 200, 200));
    assert!(
        matches.body.starts_with("[{\"match\":1,"),
        "{}",
        matches.body
    );
    let unreachable_server = AdminClient::new(AdminAddress::Tcp("127.0.0.1:1".parse().unwrap()));
    assert!(matches!(
        unreachable_server.get("/livez"),
        Err(AdminError::Ask { .. })
    ));
}
