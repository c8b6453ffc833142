//! An operator of several matches, or of several servers: what stands still, or is elsewhere, keeps the others from nothing.
//! Over real sockets on loopback; time is the machine's, so every wait has an end.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, Event, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Simulation, Tick};
use twinstep_server::host::{Host, HostConfig, MatchHandle};
use twinstep_server::{Decision, Look, Match, MatchConfig};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::asking::{Folder, ask, token};

const PATIENCE: Duration = Duration::from_secs(20);

/// A server whose file of bans may be another one's too.
struct Stage {
    key: TicketKey,
    host: Host,
    token: String,
}

impl Stage {
    async fn new(folder: &Folder, name: &str) -> Stage {
        let key = TicketKey::generate();
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = HostConfig {
            admin: Some(loopback),
            admin_token: Some(folder.file(name)),
            bans_file: Some(folder.file("bans")),
            ..HostConfig::new(Counter::NAME, loopback, key.clone())
        };
        let host = Host::start(config).await.unwrap();
        let token = token(&folder.file(name));
        Stage { key, host, token }
    }

    async fn add(&self, id: u64) -> MatchHandle<Counter> {
        let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
        let (config, sim) = (MatchConfig::action(), Counter::default());
        let game = Match::new(config, sim, Arc::new(()), nobody).unwrap();
        self.host.add_match(id, game, None).await.unwrap()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn client(&self, identity: &str, match_id: u64) -> Client<Counter> {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: Counter::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id,
            seats: 1,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix,
        };
        let ticket = Ticket::issue(&self.key, &spec).unwrap();
        Client::connect(&ticket, SessionConfig::new(Arc::new(()))).unwrap()
    }

    async fn ask(&self, request: &str) -> (u16, String) {
        let admin = self.host.admin_addr().unwrap();
        let (status, _, said) = ask(admin, request, Some(&self.token), "").await;
        (status, said)
    }
}

/// Holds a match up until the sender is dropped. It stands still when this returns.
async fn hold_up(game: &MatchHandle<Counter>) -> mpsc::Sender<()> {
    let (wake, asleep) = mpsc::channel::<()>();
    let (stands, standing) = tokio::sync::oneshot::channel();
    let game = game.clone();
    tokio::spawn(async move {
        let look = game.inspect(move |_| {
            let _ = stands.send(());
            let _ = asleep.recv();
        });
        let _ = look.await;
    });
    standing.await.unwrap();
    wake
}

/// Advances a client until `done`, or until it is over.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn play(
    client: &mut Client<Counter>,
    mut done: impl FnMut(&mut Client<Counter>) -> bool,
) -> Result<(), Ended> {
    let began = Instant::now();
    while !done(client) {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        client.advance(|_| 1)?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn is_in(client: &mut Client<Counter>) -> bool {
    let world = client.session.authority();
    world.is_some_and(|world| world.tick() > Tick(0))
}

/// Of what all matches were to do, those behind one that stood still did nothing; and each that did cost two seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait is measured")]
async fn a_match_that_stands_still_keeps_the_others_from_nothing_that_all_are_to_do() {
    let folder = Folder::new("several-still");
    let stage = Stage::new(&folder, "token").await;
    let (first, second) = (stage.add(1).await, stage.add(2).await);
    let last = stage.add(3).await;
    let mut anna = stage.client("anna", 3);
    play(&mut anna, is_in).await.unwrap();
    let held = [hold_up(&first).await, hold_up(&second).await];
    let began = Instant::now();
    let (status, said) = stage.ask("POST /message?words=soon").await;
    let took = began.elapsed();
    assert_eq!(status, 503, "{said}");
    assert!(said.starts_with("match 1 does not answer"), "{said}");
    assert!(took < Duration::from_millis(3_500), "it took {took:?}");
    let reads = |client: &mut Client<Counter>| {
        let mut events = std::iter::from_fn(|| client.session.poll_event());
        events.any(|event| matches!(&event, Event::Notice(words) if words == "soon"))
    };
    play(&mut anna, reads).await.unwrap();

    let (status, said) = stage.ask("POST /revoke?identity=mallory").await;
    assert_eq!(status, 503, "{said}");
    let safe = |game: &mut Match<Counter>| game.safe_serial("mallory", false);
    assert!(last.inspect(safe).await.unwrap().is_some());
    // Whoever stood still does it when it goes on.
    drop(held);
    for game in [first, second] {
        let done = async { while game.inspect(safe).await.unwrap().is_none() {} };
        tokio::time::timeout(PATIENCE, done).await.unwrap();
    }
    stage.host.shutdown(CloseCode::Draining).await;
}

/// Whom another server banned was known here from the next own ban on, so nobody new came in; but who was inside stayed, and
/// a later look at the file found nothing new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_banned_by_another_server_is_put_out_here_when_this_one_reads_of_it() {
    let folder = Folder::new("several-bans");
    let (ours, other) = (
        Stage::new(&folder, "token").await,
        Stage::new(&folder, "other-token").await,
    );
    ours.add(1).await;
    for (name, request) in [
        ("anna", "POST /ban?identity=mallory"),
        ("bert", "POST /unban?identity=mallory"),
    ] {
        let mut inside = ours.client(name, 1);
        play(&mut inside, is_in).await.unwrap();
        let banned = other.ask(&format!("POST /ban?identity={name}")).await;
        assert_eq!(banned.0, 200, "{}", banned.1);
        assert_eq!(ours.ask(request).await.0, 200);
        let end = play(&mut inside, |_| false).await.unwrap_err();
        let is_ban = |end: &Ended| {
            matches!(
                end,
                Ended::Session(Closed::Server(CloseCode::Banned { .. }))
            )
        };
        assert!(is_ban(&end), "{name}: {end}");
    }
    for stage in [ours, other] {
        stage.host.shutdown(CloseCode::Draining).await;
    }
}
