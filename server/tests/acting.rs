//! What an operator does through the admin port: each action right, wrong, missing and hostile, with real clients over real
//! sockets on loopback. Time is the machine's, so every wait has an end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, Event, SessionConfig};
use twinstep_core::PlayerId;
use twinstep_core::Simulation;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::{BANNED_FOR_GOOD, CloseCode};
use twinstep_core::replay::Index;
use twinstep_core::testing::doc::Counter;
use twinstep_core::world::Presence;
use twinstep_server::host::{
    AdminAddress, AdminClient, AdminError, Host, HostConfig, HostError, Journal, MatchHandle,
};
use twinstep_server::{Decision, Look, Match, MatchConfig};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::asking::{Folder, ask, scrape, scrape_until, token};

const PATIENCE: Duration = Duration::from_secs(20);

/// A host, and what its next process needs to go on.
struct Stage {
    folder: Folder,
    key: TicketKey,
    host: Option<Host>,
    admin: SocketAddr,
    token: String,
}

impl Stage {
    async fn new(name: &str) -> Stage {
        let (folder, key) = (Folder::new(name), TicketKey::generate());
        let mut stage = Stage {
            folder,
            key,
            host: None,
            admin: "127.0.0.1:0".parse().unwrap(),
            token: String::new(),
        };
        stage.restart().await;
        stage
    }

    fn config(&self) -> HostConfig {
        let loopback = "127.0.0.1:0".parse().unwrap();
        HostConfig {
            admin: Some(loopback),
            admin_token: Some(self.folder.file("token")),
            bans_file: Some(self.folder.file("bans")),
            ..HostConfig::new(Counter::NAME, loopback, self.key.clone())
        }
    }

    /// Ends the process, and starts another one.
    async fn restart(&mut self) {
        if let Some(host) = self.host.take() {
            host.shutdown(CloseCode::Draining).await;
        }
        let host = Host::start(self.config()).await.unwrap();
        self.admin = host.admin_addr().unwrap();
        self.token = token(&self.folder.file("token"));
        self.host = Some(host);
    }

    fn journal(&self, id: u64) -> PathBuf {
        self.folder.file(&format!("{id}.journal"))
    }

    fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    async fn add(&self, id: u64) -> MatchHandle<Counter> {
        let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
        let config = MatchConfig {
            players_max: 4,
            ..MatchConfig::action()
        };
        let game = Match::new(config, Counter::default(), Arc::new(()), nobody).unwrap();
        let path = self.journal(id);
        let _ = std::fs::remove_file(&path);
        let journal = Journal::create(path).unwrap();
        let host = self.host();
        host.add_match(id, game, Some(journal)).await.unwrap()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn ticket(&self, identity: &str, match_id: u64) -> Ticket {
        let spec = TicketSpec {
            game: Counter::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id,
            seats: 1,
            servers: self.host().public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap(),
        };
        Ticket::issue(&self.key, &spec).unwrap()
    }

    /// With the token; the status, and what was said.
    async fn ask(&self, request: &str, body: &str) -> (u16, String) {
        let (status, _, said) = ask(self.admin, request, Some(&self.token), body).await;
        (status, said)
    }

    /// What works; its answer.
    async fn done(&self, request: &str, body: Value) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (status, said) = self.ask(request, &body).await;
        assert_eq!(status, 200, "{request} {body}: {said}");
        serde_json::from_str(&said).unwrap()
    }

    /// Waits until somebody has a seat and no connection any more; what is told of it then.
    async fn once_away(&self, id: u64, identity: &str, others: &mut [Player]) -> Value {
        for _ in 0..100 {
            play_for(others, Duration::from_millis(200)).await;
            let request = format!("GET /matches/{id}");
            let said = self.done(&request, Value::Null).await;
            let people = said["people"].as_array().unwrap();
            let one = people.iter().find(|one| one["identity"] == identity);
            let one = one.expect("its seat is kept");
            if one["state"] == "away" {
                return one.clone();
            }
        }
        panic!("{identity} is not away");
    }

    /// Dials with a ticket: why that is over, or `None` once it plays.
    async fn dial(&self, ticket: &Ticket) -> (Option<CloseCode>, Player) {
        let mut one = [Player::dials(ticket)];
        play(&mut one, |one| one[0].over.is_some() || one[0].is_in()).await;
        let [one] = one;
        (one.over, one)
    }
}

/// A client, the newest ticket that it was handed, and why it is over.
struct Player {
    client: Client<Counter>,
    newest: Arc<Mutex<Option<Ticket>>>,
    over: Option<CloseCode>,
}

impl Player {
    fn dials(ticket: &Ticket) -> Player {
        let newest = Arc::<Mutex<Option<Ticket>>>::default();
        let keeps = newest.clone();
        let config = SessionConfig::new(Arc::new(()));
        let client = Client::connect(ticket, config).unwrap();
        Player {
            client: client.keeping(move |ticket| {
                *keeps.lock().unwrap() = Some(ticket.clone());
                true
            }),
            newest,
            over: None,
        }
    }

    /// Whether its own player is in the match.
    fn is_in(&self) -> bool {
        let session = &self.client.session;
        let own = session.seats().first();
        let world = session.authority();
        own.zip(world)
            .is_some_and(|(own, world)| world.present().contains(*own))
    }

    fn newest(&self) -> Option<Ticket> {
        self.newest.lock().unwrap().clone()
    }
}

/// Plays until `done`; who is over is left alone.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn play(party: &mut [Player], mut done: impl FnMut(&[Player]) -> bool) {
    let began = Instant::now();
    while !done(party) {
        assert!(began.elapsed() < PATIENCE, "nothing came of it");
        for one in party.iter_mut().filter(|one| one.over.is_none()) {
            match one.client.advance(|_| Default::default()) {
                Ok(()) => {}
                Err(Ended::Session(Closed::Server(code))) => one.over = Some(code),
                Err(other) => panic!("{other:?}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Plays on for a while.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn play_for(party: &mut [Player], time: Duration) {
    let began = Instant::now();
    play(party, |_| began.elapsed() >= time).await;
}

/// Plays until all are in, and have tickets to return with.
async fn all_in(party: &mut [Player]) {
    play(party, |party| {
        party
            .iter()
            .all(|one| one.is_in() && one.newest().is_some())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_banned_comes_back_by_no_ticket_nor_after_a_restart_until_that_is_lifted() {
    let mut stage = Stage::new("ban").await;
    stage.add(1).await;
    let (old, bobs) = (stage.ticket("anna", 1), stage.ticket("bob", 1));
    let mut party = [Player::dials(&old), Player::dials(&bobs)];
    all_in(&mut party).await;
    let handed = party[0].newest().unwrap();

    let said = stage
        .done(
            "POST /ban",
            json!({ "identity": "anna", "reason": "an aimbot" }),
        )
        .await;
    assert_eq!(
        said,
        json!({ "banned": "anna", "until_unix_s": null, "put_out_of": [1] })
    );
    play(&mut party, |party| party[0].over.is_some()).await;
    let for_good = CloseCode::Banned {
        for_s: BANNED_FOR_GOOD,
    };
    assert_eq!(party[0].over, Some(for_good));
    // Whatever ticket it shows: the one that it came by, the one that it was handed, a new one.
    for ticket in [&handed, &stage.ticket("anna", 1)] {
        assert_eq!(stage.dial(ticket).await.0, Some(for_good));
    }
    // That one is worth nothing anyway, since a newer one is safe.
    let over = stage.dial(&old).await.0;
    assert_eq!(over, Some(CloseCode::Superseded));
    // Bob plays on, and so does whoever comes.
    let (over, carl) = stage.dial(&stage.ticket("carl", 1)).await;
    assert_eq!(over, None);
    drop(carl);
    play_for(&mut party[1..], Duration::from_millis(100)).await;
    assert!(party[1].over.is_none() && party[1].is_in());
    let kicks = "twinstep_kicks_total{reason=\"banned\"}";
    scrape_until(stage.admin, kicks, |kicks| kicks == 1.0).await;
    drop(party);

    stage.restart().await;
    stage.add(1).await;
    assert_eq!(stage.dial(&stage.ticket("anna", 1)).await.0, Some(for_good));
    let dropped = "twinstep_datagrams_dropped_total{reason=\"banned\"}";
    scrape_until(stage.admin, dropped, |dropped| dropped >= 1.0).await;
    let bans = stage.done("GET /bans", Value::Null).await;
    assert_eq!(bans[0]["identity"], "anna");
    assert_eq!(bans[0]["reason"], "an aimbot");
    assert_eq!(stage.dial(&stage.ticket("bob", 1)).await.0, None);

    let said = stage.done("POST /unban?identity=anna", Value::Null).await;
    assert_eq!(said["was_banned"], true);
    assert_eq!(stage.dial(&stage.ticket("anna", 1)).await.0, None);
    assert_eq!(stage.done("GET /bans", Value::Null).await, json!([]));
    stage.restart().await;
    stage.add(1).await;
    assert_eq!(stage.dial(&stage.ticket("anna", 1)).await.0, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_for_a_while_says_for_how_long_and_ends_by_itself() {
    let stage = Stage::new("ban-while").await;
    stage.add(1).await;
    stage.add(2).await;
    // Nobody needs to be here to be banned; in all matches it holds.
    let said = stage
        .done("POST /ban?identity=anna&for_s=2", Value::Null)
        .await;
    assert_eq!(said["put_out_of"], json!([]));
    for id in [1, 2] {
        let (over, _) = stage.dial(&stage.ticket("anna", id)).await;
        assert!(
            matches!(over, Some(CloseCode::Banned { for_s: 0..=2 })),
            "{over:?}"
        );
    }
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(stage.dial(&stage.ticket("anna", 1)).await.0, None);
}

/// Who watches is banned too, and who waits for a match that is not there yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_ban_finds_who_waits_for_its_match() {
    let stage = Stage::new("ban-waits").await;
    let mut waits = [Player::dials(&stage.ticket("anna", 9))];
    play_for(&mut waits, Duration::from_millis(500)).await;
    stage.done("POST /ban", json!({ "identity": "anna" })).await;
    play(&mut waits, |waits| waits[0].over.is_some()).await;
    assert!(matches!(waits[0].over, Some(CloseCode::Banned { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_kicked_stays_out_of_that_match_alone_until_it_is_pardoned() {
    let stage = Stage::new("kick").await;
    let handle = stage.add(1).await;
    stage.add(2).await;
    let annas = stage.ticket("anna", 1);
    let mut party = [
        Player::dials(&annas),
        Player::dials(&stage.ticket("bob", 1)),
    ];
    all_in(&mut party).await;
    let said = stage
        .done("POST /kick", json!({ "match": 1, "identity": "anna" }))
        .await;
    assert_eq!(said, json!({ "match": 1, "kicked": "anna" }));
    play(&mut party, |party| party[0].over.is_some()).await;
    assert_eq!(party[0].over, Some(CloseCode::Kicked));
    let again = stage.ticket("anna", 1);
    assert_eq!(stage.dial(&again).await.0, Some(CloseCode::Kicked));
    assert_eq!(stage.dial(&stage.ticket("anna", 2)).await.0, None);
    let kicks = "twinstep_kicks_total{reason=\"operator\"}";
    scrape_until(stage.admin, kicks, |kicks| kicks == 1.0).await;
    let said = stage
        .done("POST /unban", json!({ "identity": "anna" }))
        .await;
    let expected = json!({ "unbanned": "anna", "was_banned": false, "was_kicked_from": [1] });
    assert_eq!(said, expected);
    assert_eq!(stage.dial(&again).await.0, None);
    // Kicked while it is away, its seat is free at once.
    let bob = json!({ "match": 1, "identity": "bob" });
    drop(party);
    let away = stage.once_away(1, "bob", &mut []).await;
    let seat = PlayerId(away["seat"].as_u64().unwrap() as u8);
    let presence = async || {
        let presence = handle.inspect(move |game| game.world().presence(seat));
        presence.await.unwrap()
    };
    assert_ne!(presence().await, Presence::Absent);
    stage.done("POST /kick", bob.clone()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(presence().await, Presence::Absent, "its player leaves");
    assert_eq!(stage.ask("POST /kick", &bob.to_string()).await.0, 404);
    let people = stage.done("GET /matches/1", Value::Null).await;
    let people = people["people"].as_array().unwrap();
    assert!(
        people.iter().all(|one| one["identity"] != "bob"),
        "{people:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_tickets_are_worthless_and_who_plays_gets_a_new_one() {
    let stage = Stage::new("revoke").await;
    stage.add(1).await;
    let stolen = stage.ticket("anna", 1);
    let mut party = [
        Player::dials(&stage.ticket("anna", 1)),
        Player::dials(&stage.ticket("bob", 1)),
    ];
    all_in(&mut party).await;
    let (handed, bobs) = (party[0].newest().unwrap(), party[1].newest().unwrap());
    tokio::time::sleep(Duration::from_millis(5)).await;
    let said = stage
        .done("POST /revoke", json!({ "identity": "anna" }))
        .await;
    let serial = said["revoked"][0]["serial"].as_u64().unwrap();
    assert!(serial > handed.serial() && serial > stolen.serial());
    // It plays on, and has a ticket that is good.
    let is_new = |one: &Player| one.newest().is_some_and(|ticket| ticket.serial() >= serial);
    play(&mut party, |party| is_new(&party[0])).await;
    assert!(party[0].over.is_none());
    let newest = party[0].newest().unwrap();
    drop(party);
    for ticket in [&stolen, &handed] {
        let (over, _) = stage.dial(ticket).await;
        assert_eq!(over, Some(CloseCode::Superseded));
    }
    assert_eq!(stage.dial(&newest).await.0, None);
    assert_eq!(stage.dial(&bobs).await.0, None, "others keep theirs");
    assert_eq!(stage.dial(&stage.ticket("anna", 1)).await.0, None);
}

/// What an operator tells players is read by those who are there: in one match, or in all.
#[tokio::test(flavor = "multi_thread")]
async fn players_read_what_an_operator_tells_them() {
    let stage = Stage::new("message").await;
    stage.add(1).await;
    stage.add(2).await;
    let mut party = [
        Player::dials(&stage.ticket("anna", 1)),
        Player::dials(&stage.ticket("bob", 2)),
    ];
    all_in(&mut party).await;
    let all = stage.done("POST /message?words=five%20minutes%20to%20go", Value::Null);
    assert_eq!(
        all.await["told"],
        json!([{ "match": 1, "sessions": 1 }, { "match": 2, "sessions": 1 }])
    );
    let one = stage.done(
        "POST /message",
        json!({ "words": "for bob \u{2013} alone", "match": 2 }),
    );
    assert_eq!(one.await["told"], json!([{ "match": 2, "sessions": 1 }]));
    let mut read = [Vec::new(), Vec::new()];
    for _ in 0..40 {
        play_for(&mut party, Duration::from_millis(25)).await;
        for (read, player) in read.iter_mut().zip(&mut party) {
            while let Some(event) = player.client.session.poll_event() {
                if let Event::Notice(words) = event {
                    read.push(words);
                }
            }
        }
    }
    assert_eq!(read[0], ["five minutes to go"]);
    assert_eq!(read[1], ["five minutes to go", "for bob \u{2013} alone"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_that_an_operator_ends_is_over_for_good_and_its_journal_says_why() {
    let stage = Stage::new("end").await;
    let handle = stage.add(1).await;
    let other = stage.add(2).await;
    let mut party = [Player::dials(&stage.ticket("anna", 1))];
    all_in(&mut party).await;
    let said = stage
        .done(
            "POST /end?match=1&words=the%20evening%20is%20over",
            Value::Null,
        )
        .await;
    assert_eq!(said["ended"], 1);
    play(&mut party, |party| party[0].over.is_some()).await;
    assert_eq!(party[0].over, Some(CloseCode::MatchOver));
    assert_eq!(handle.ended().await, Some(CloseCode::MatchOver));
    assert!(!other.is_over());
    let journal = std::fs::read(stage.journal(1)).unwrap();
    let ended = Index::scan(&journal).unwrap().ended;
    assert_eq!(
        ended.as_deref(),
        Some("ended by an operator: the evening is over")
    );
    assert_eq!(stage.ask("POST /end?match=1", "").await.0, 404);
    // Words that a journal reads as another end are none.
    stage
        .done("POST /end?match=2&words=kept", Value::Null)
        .await;
    other.ended().await;
    let journal = std::fs::read(stage.journal(2)).unwrap();
    assert_ne!(Index::scan(&journal).unwrap().ended.unwrap(), "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_a_match_is_listed_with_how_well() {
    let stage = Stage::new("people").await;
    stage.add(1).await;
    let empty = stage.done("GET /matches/1", Value::Null).await;
    assert_eq!(empty, json!({ "id": 1, "people": [] }));
    let mut party = vec![
        Player::dials(&stage.ticket("anna", 1)),
        Player::dials(&stage.ticket("bob", 1)),
    ];
    all_in(&mut party).await;
    play_for(&mut party, Duration::from_millis(1_200)).await;
    let said = stage.done("GET /matches/1", Value::Null).await;
    let people = said["people"].as_array().unwrap().clone();
    assert_eq!(people.len(), 2);
    for one in &people {
        assert_eq!(one["name"], one["identity"]);
        assert_eq!(
            (&one["state"], &one["connected"]),
            (&"playing".into(), &true.into())
        );
        let margin = one["margin_ticks"].as_i64().unwrap();
        assert!((-60..=60).contains(&margin), "{one}");
        let round_trip = one["round_trip_ms"].as_f64().unwrap();
        assert!((0.0..500.0).contains(&round_trip), "{one}");
        let since = one["since_s"].as_f64().unwrap();
        // Time in which the server itself stood still does not count.
        assert!((0.1..20.0).contains(&since), "{one}");
    }
    // One is gone, and its seat is kept for it.
    let gone = party.pop().unwrap();
    drop(gone);
    let bob = stage.once_away(1, "bob", &mut party).await;
    assert_eq!(bob["connected"], false);
    assert_eq!(bob["round_trip_ms"], Value::Null);
    assert_eq!(bob["margin_ticks"], Value::Null);
}

/// Each request with its token: what it asks for is not there, or cannot be meant, or is meant to harm.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused_in_words_and_changes_nothing() {
    let stage = Stage::new("wrong").await;
    stage.add(1).await;
    let long = format!("{{\"identity\":\"a\",\"reason\":\"{}\"}}", "x".repeat(300));
    let huge = format!("{{\"identity\":\"{}\"}}", "x".repeat(40_000));
    let deep = "[".repeat(5_000);
    for (request, body, status, words) in [
        ("GET /matches/2", "", 404, "match 2 does not run here"),
        ("GET /matches/x", "", 400, "got \"x\""),
        ("GET /matches/-1", "", 400, "expected the id of a match"),
        ("GET /nothing", "", 404, ""),
        ("GET /kick?match=1&identity=anna", "", 405, ""),
        ("POST /kick", "", 400, "expected `match`"),
        ("POST /kick?match=1", "", 400, "expected `identity`"),
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
            "no other field",
        ),
        (
            "POST /kick?match=1&identity=%1B%5D0",
            "",
            400,
            "expected `identity`",
        ),
        ("POST /ban", "", 400, "expected `identity`"),
        ("POST /ban", "{", 400, "a JSON object"),
        ("POST /ban", &deep, 400, "a JSON object"),
        ("POST /ban", "\"anna\"", 400, "a JSON object"),
        (
            "POST /ban",
            "{\"identity\":\"a\",\"for_s\":0}",
            400,
            "an end of the ban after now",
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
            "got 5",
        ),
        (
            "POST /ban",
            "{\"identity\":\"a\",\"for_s\":9,\"until_unix_s\":99999999999}",
            400,
            "got \"both\"",
        ),
        ("POST /ban", &long, 400, "at most 200 bytes"),
        ("POST /ban", &huge, 413, ""),
        (
            "POST /unban?identity=anna",
            "",
            404,
            "neither banned nor kicked",
        ),
        ("POST /unban", "", 400, "expected `identity`"),
        ("POST /revoke?identity=anna&match=3", "", 404, "match 3"),
        ("POST /revoke?match=1", "", 400, "expected `identity`"),
        ("POST /message", "", 400, "expected `words`"),
        ("POST /message?words=%1b[2J", "", 400, "`words`"),
        ("POST /message?words=hello&match=9", "", 404, "match 9"),
        ("POST /end", "", 400, "expected `match`"),
        ("POST /end?match=1&words=%0A", "", 400, "`words`"),
        ("POST /end?match=9", "", 404, "match 9"),
    ] {
        let (got, said) = stage.ask(request, body).await;
        assert_eq!(got, status, "{request}: {said}");
        assert!(said.contains(words), "{request}: {said}");
        assert!(!said.contains('\u{1b}'), "{request}: {said:?}");
    }
    assert_eq!(stage.done("GET /bans", Value::Null).await, json!([]));
    assert!(!stage.folder.file("bans").exists(), "nothing was written");
    assert_eq!(scrape(stage.admin).await.of("twinstep_matches"), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_and_nobody_is_named_without_the_token() {
    let stage = Stage::new("token").await;
    let handle = stage.add(1).await;
    let guarded = [
        "GET /matches/1",
        "GET /bans",
        "POST /kick?match=1&identity=anna",
        "POST /ban?identity=anna",
        "POST /unban?identity=anna",
        "POST /revoke?identity=anna",
        "POST /end?match=1",
        "POST /drain?to=127.0.0.1:1",
        "POST /ready?to=127.0.0.1:1",
    ];
    let mut wrong = stage.token.clone();
    wrong.pop();
    for request in guarded {
        for token in [None, Some("x"), Some(&*wrong), Some("")] {
            let (status, _, said) = ask(stage.admin, request, token, "").await;
            assert_eq!(status, 401, "{request} {token:?}: {said}");
            assert!(said.contains("Authorization: Bearer"), "{said}");
        }
    }
    for request in ["GET /livez", "GET /readyz", "GET /matches", "GET /metrics"] {
        assert_eq!(ask(stage.admin, request, None, "").await.0, 200);
    }
    assert!(!handle.is_over() && !stage.folder.file("bans").exists());
    // A server without a token file does nothing of it.
    let config = HostConfig {
        admin_token: None,
        ..stage.config()
    };
    let host = Host::start(config).await.unwrap();
    for request in guarded {
        let asked = ask(host.admin_addr().unwrap(), request, Some(&stage.token), "");
        assert_eq!(asked.await.0, 403, "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_start_with_bans_that_it_cannot_read() {
    let stage = Stage::new("damaged").await;
    std::fs::write(stage.folder.file("bans"), "[{]").unwrap();
    let Err(error) = Host::start(stage.config()).await else {
        panic!("it started");
    };
    assert!(matches!(error, HostError::Bans(_)), "{error}");
    assert!(error.to_string().contains("mend the file"), "{error}");
    // The one that runs says what is wrong, and the ban holds all the same.
    let (status, said) = stage.ask("POST /ban?identity=anna", "").await;
    assert_eq!(status, 500);
    assert!(said.contains("is not written down"), "{said}");
    stage.add(1).await;
    let (over, _) = stage.dial(&stage.ticket("anna", 1)).await;
    assert!(matches!(over, Some(CloseCode::Banned { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_client_asks_with_a_token_that_is_there_and_makes_none() {
    let stage = Stage::new("client").await;
    stage.add(1).await;
    let client = AdminClient::new(stage.admin);
    let missing = stage.folder.file("missing");
    assert!(matches!(
        client.clone().with_token(&missing),
        Err(AdminError::Token(_))
    ));
    assert!(!missing.exists());
    let known = client
        .clone()
        .with_token(&stage.folder.file("token"))
        .unwrap();
    let asked = tokio::task::spawn_blocking(move || {
        let unknown = client.post("/ban", "{\"identity\":\"anna\"}").unwrap();
        let banned = known.post("/ban", "{\"identity\":\"anna\"}").unwrap();
        let matches = client.get("/matches").unwrap();
        (unknown.status, banned.status, matches)
    });
    let (unknown, banned, matches) = asked.await.unwrap();
    assert_eq!((unknown, banned, matches.status), (401, 200, 200));
    assert!(matches.body.starts_with("[{\"id\":1,"), "{}", matches.body);
    let nobody = AdminClient::new(AdminAddress::Tcp("127.0.0.1:1".parse().unwrap()));
    assert!(matches!(nobody.get("/livez"), Err(AdminError::Ask { .. })));
}
