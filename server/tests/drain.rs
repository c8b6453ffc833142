//! A hand-over is whole and bounded: all matches move or none does, one that stands still stays alone, and whoever is on
//! the way into a match arrives. Over real sockets on loopback; time is the machine's, so every wait has an end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use twinstep_client::{Client, Event, SessionConfig};
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::Index;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Simulation, Tick};
use twinstep_server::config::TurnLength;
use twinstep_server::host::{
    Host, HostConfig, Journal, MatchHandle, OnJournalFailure, Running, Server,
};
use twinstep_server::{Decision, Look, Match, MatchConfig, PeerId};
use twinstep_udp::{Ticket, TicketKey};

const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of one test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("twinstep-drain-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn journal(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id}.journal"))
    }

    /// Why the match of a journal ended, as the journal says.
    fn ended(&self, id: u64) -> Option<String> {
        let bytes = std::fs::read(self.journal(id)).unwrap();
        Index::scan(&bytes).unwrap().ended
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A host with matches, and another one to which players may be sent.
struct Hosts {
    folder: Folder,
    host: Host,
    other: Host,
}

impl Hosts {
    async fn new(name: &str) -> Hosts {
        let folder = Folder::new(name);
        let config = |token: &str| HostConfig {
            admin: Some(loopback()),
            admin_token: Some(folder.0.join(token)),
            ..HostConfig::new(Counter::NAME, loopback(), TicketKey::generate())
        };
        Hosts {
            host: Host::start(config("token")).await.unwrap(),
            other: Host::start(config("other-token")).await.unwrap(),
            folder,
        }
    }

    async fn add(&self, id: u64, has_journal: bool) -> MatchHandle<Counter> {
        let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
        let (config, sim) = (MatchConfig::action(), Counter::default());
        let game = Match::new(config, sim, Arc::new(()), nobody).unwrap();
        let journal = has_journal.then(|| Journal::create(self.folder.journal(id)).unwrap());
        self.host.add_match(id, game, journal).await.unwrap()
    }

    /// What the admin port answers.
    async fn ask(&self, request: String) -> String {
        let admin = self.host.admin_addr().unwrap();
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(admin).unwrap();
            let head = format!("{request}\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        asked.await.unwrap()
    }

    fn drain_request(&self) -> String {
        let token = std::fs::read_to_string(self.folder.0.join("token")).unwrap();
        let (to, token) = (self.other.local_addr(), token.lines().last().unwrap());
        format!("POST /drain?to={to} HTTP/1.1\r\nAuthorization: Bearer {token}")
    }

    async fn drain(&self) -> String {
        self.ask(self.drain_request()).await
    }
}

/// Waits until a match has played on.
async fn plays_on(game: &MatchHandle<Counter>) {
    let tick = async || game.inspect(|game| game.world().tick()).await.unwrap();
    let before = tick().await;
    let later = async { while tick().await <= before + 5 {} };
    tokio::time::timeout(PATIENCE, later).await.unwrap();
}

/// Holds a match up until the sender is dropped or says so. It stands still when this returns.
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

/// Finding H2: one match refused when another one had been closed as moved already, and nobody took that up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_matches_are_handed_over_or_none() {
    let hosts = Hosts::new("all").await;
    let (one, two, three) = (
        hosts.add(1, true).await,
        hosts.add(2, false).await,
        hosts.add(3, true).await,
    );
    let answer = hosts.drain().await;
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(
        answer.contains("match 2 stays here: it has no journal"),
        "{answer}"
    );
    for game in [&one, &two, &three] {
        plays_on(game).await;
    }
    assert_eq!((hosts.folder.ended(1), hosts.folder.ended(3)), (None, None));

    two.inspect(|game| game.close(CloseCode::MatchOver))
        .await
        .unwrap();
    two.ended().await;
    let answer = hosts.drain().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for (id, game) in [(1, one), (3, three)] {
        assert!(answer.contains(&format!("{id}.journal")), "{answer}");
        assert_eq!(game.ended().await, Some(CloseCode::Moved));
        assert_eq!(hosts.folder.ended(id).as_deref(), Some("moved"));
    }
    assert!(answer.contains("\"stays\":[]"), "{answer}");
}

/// Finding H2: a match that hung made the hand-over wait for ever, when the others had been ended; and it was listed for
/// ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn a_match_that_stands_still_stays_and_holds_nothing_up() {
    let hosts = Hosts::new("still").await;
    let mut games = Vec::new();
    for id in 1..=4 {
        games.push(hosts.add(id, true).await);
    }
    let (for_a_while, for_ever) = (hold_up(&games[1]).await, hold_up(&games[3]).await);
    let began = Instant::now();
    let answer = hosts.drain().await;
    let took = began.elapsed();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(took < Duration::from_secs(4), "it took {took:?}");
    for id in [1, 3] {
        assert_eq!(hosts.folder.ended(id).as_deref(), Some("moved"));
    }
    for id in [2, 4] {
        let stays = format!("{{\"id\":{id},\"why\":\"it stands still\"}}");
        assert!(answer.contains(&stays), "{answer}");
        assert_eq!(hosts.folder.ended(id), None);
    }
    drop(for_a_while);
    plays_on(&games[1]).await;
    assert_eq!(games[3].ended().await, Some(CloseCode::Fault));
    let listed = hosts.ask("GET /matches HTTP/1.1".to_owned()).await;
    assert!(listed.contains("\"id\":2"), "{listed}");
    for gone in [1, 3, 4] {
        assert!(!listed.contains(&format!("\"id\":{gone}")), "{listed}");
    }
    drop(for_ever);
}

/// Finding H2: a match was closed as moved though whoever had asked for it was gone, and nobody took it up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_whose_asker_is_gone_is_called_off() {
    let hosts = Hosts::new("gone").await;
    let game = hosts.add(1, true).await;
    // Somebody who has dialled and not greeted yet keeps the match here for some seconds.
    let dials = game.inspect(|game| {
        let (one, two) = (PeerId(900), PeerId(901));
        let now = game.next_due();
        game.connect(now, one, "anna", 1).unwrap();
        game.connect(now, two, "anna", 1).unwrap();
    });
    dials.await.unwrap();
    let mut stream = TcpStream::connect(hosts.host.admin_addr().unwrap()).unwrap();
    let request = hosts.drain_request();
    let head = format!("{request}\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(hosts.folder.ended(1), None);
    plays_on(&game).await;
}

/// A match whose journal can be written until the other end of it is dropped; between its first world and its end nothing
/// is written for 20 s.
#[cfg(unix)]
async fn add_over_a_pipe(
    hosts: &Hosts,
    id: u64,
    on_failure: OnJournalFailure,
) -> (MatchHandle<Counter>, std::os::unix::net::UnixStream) {
    let config = MatchConfig {
        tick: Duration::from_secs(1),
        turn: TurnLength::Fixed(20),
        ..MatchConfig::action()
    };
    let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
    let game = Match::new(config, Counter::default(), Arc::new(()), nobody).unwrap();
    let (ours, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::from(std::os::fd::OwnedFd::from(ours));
    let journal = Journal::from_file(hosts.folder.journal(id), file).on_failure(on_failure);
    let game = hosts.host.add_match(id, game, Some(journal)).await.unwrap();
    game.inspect(|_| ()).await.unwrap();
    (game, reader)
}

/// A match that played on without a journal, as it was told to, was ended by a hand-over whose very last write failed;
/// its players were sent to where nobody had it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_whose_journal_fails_at_its_last_write_is_not_handed_over() {
    let hosts = Hosts::new("last-write").await;
    let (goes_on, reader) = add_over_a_pipe(&hosts, 1, OnJournalFailure::GoOn).await;
    let (ends, other_reader) = add_over_a_pipe(&hosts, 2, OnJournalFailure::End).await;
    drop((reader, other_reader));
    let answer = hosts.drain().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for why in [
        "{\"id\":1,\"why\":\"its journal was lost\"}",
        "{\"id\":2,\"why\":\"it ended meanwhile\"}",
    ] {
        assert!(answer.contains(why), "{answer}");
    }
    assert_eq!(ends.ended().await, Some(CloseCode::Fault));
    let tick = async || goes_on.inspect(|game| game.world().tick()).await.unwrap();
    let before = tick().await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(tick().await > before, "it plays on");
    let lost = goes_on.inspect(|game| game.stats().journal_lost).await;
    assert!(lost.unwrap().is_some(), "and says that it has no journal");
}

/// A match was said to be kept though the world that it is kept by could not be written.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_is_said_to_be_kept_only_if_it_is() {
    let hosts = Hosts::new("kept").await;
    let (kept, _reader) = add_over_a_pipe(&hosts, 1, OnJournalFailure::GoOn).await;
    let (lost, reader) = add_over_a_pipe(&hosts, 2, OnJournalFailure::GoOn).await;
    drop(reader);
    hosts.host.shutdown(CloseCode::Draining).await;
    let said = kept.ended().await;
    assert!(
        matches!(said, Some(CloseCode::Restarting { .. })),
        "{said:?}"
    );
    assert_eq!(lost.ended().await, Some(CloseCode::Draining));
}

/// Asked one after the other, matches that stood still used up the time for which whoever asks waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
async fn many_matches_that_stand_still_are_asked_at_once() {
    let hosts = Hosts::new("many").await;
    let mut held = Vec::new();
    for id in 1..=4 {
        let game = hosts.add(id, true).await;
        held.push((hold_up(&game).await, game));
    }
    let plays = hosts.add(5, true).await;
    let began = Instant::now();
    let answer = hosts.drain().await;
    let took = began.elapsed();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("5.journal"), "{answer}");
    assert!(took < Duration::from_millis(2_500), "it took {took:?}");
    assert_eq!(plays.ended().await, Some(CloseCode::Moved));
}

/// Players were sent back to the very server that had just ended their match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_hand_its_matches_over_to_itself() {
    let hosts = Hosts::new("itself").await;
    let game = hosts.add(1, true).await;
    let (ours, other) = (hosts.host.local_addr(), hosts.other.local_addr());
    for to in [ours.to_string(), format!("{other},{ours}")] {
        let request = hosts.drain_request().replace(&other.to_string(), &to);
        let answer = hosts.ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
        let why = format!("{ours} leads to this very server");
        assert!(answer.contains(&why), "{answer}");
    }
    plays_on(&game).await;
    assert_eq!(hosts.folder.ended(1), None);
}

struct Player {
    client: Client<Counter>,
    tickets: mpsc::Receiver<Ticket>,
    newest: Ticket,
    events: Vec<Event>,
}

fn join(ticket: &Ticket) -> Player {
    let (send, tickets) = mpsc::sync_channel(64);
    let client = Client::connect(ticket, SessionConfig::new(Arc::new(()))).unwrap();
    Player {
        client: client.keeping(move |ticket| send.try_send(ticket.clone()).is_ok()),
        tickets,
        newest: ticket.clone(),
        events: Vec::new(),
    }
}

impl Player {
    fn advance(&mut self) {
        self.client.advance(|_| Default::default()).unwrap();
        let events = std::iter::from_fn(|| self.client.session.poll_event());
        self.events.extend(events);
        if let Some(newer) = self.tickets.try_iter().last() {
            self.newest = newer;
        }
    }

    fn tick(&self) -> Tick {
        let authority = self.client.session.authority();
        authority.map_or(Tick(0), |world| world.tick())
    }

    fn dials(&self) -> SocketAddr {
        self.newest.servers().next().unwrap()
    }
}

/// Advances these players until `done`.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
fn play(what: &str, players: &mut [&mut Player], mut done: impl FnMut(&[&mut Player]) -> bool) {
    let began = Instant::now();
    while !done(players) {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        players.iter_mut().for_each(|player| player.advance());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[expect(clippy::disallowed_methods, reason = "real servers take real time")]
fn play_for(time: Duration, players: &mut [&mut Player]) {
    let until = Instant::now() + time;
    play("a while", players, |_| Instant::now() >= until);
}

fn sessions(server: &Running<Counter>) -> usize {
    server.inspect(|game| game.sessions()).unwrap()
}

/// Finding H5: a hand-over lost whoever joined, returned or was healed at that moment.
#[test]
fn who_joins_returns_or_is_healed_during_a_hand_over_arrives() {
    let (key, folder) = (TicketKey::generate(), Folder::new("arrives"));
    let server = || {
        Server::action(Counter::default(), ())
            .players(5)
            .key(key.clone())
            .serials_file(folder.0.join("serials"))
            .admin(loopback())
            .admin_token(folder.0.join("token"))
    };
    let old = server().journal(folder.journal(1));
    let old = old.listen("127.0.0.1:0").unwrap();
    let admin = old.admin_addr().unwrap();
    let [mut anna, mut cara, mut dave, mut eve] =
        ["anna", "cara", "dave", "eve"].map(|who| join(&old.ticket(who).unwrap()));
    let all = &mut [&mut anna, &mut cara, &mut dave, &mut eve];
    play("playing", all, |all| {
        all.iter().all(|p| p.tick() > Tick(60))
    });
    // Dave's process ends before anybody hears of a hand-over.
    let ticket = dave.newest.clone();
    drop(dave);
    std::thread::scope(|scope| {
        // Cara hears nothing for a while: so long it takes until everybody has a ticket that leads on.
        let taking = scope.spawn(|| server().take_over(admin).listen("127.0.0.1:0"));
        play("the hand-over", &mut [&mut anna, &mut eve], |all| {
            all.iter().all(|p| p.dials() != old.local_addr())
        });
        anna.client.session.corrupt(|counter| counter.total += 1);
        // Dave's next process dials where his ticket leads.
        let mut dave = join(&ticket);
        // Bob's world is on its way to him, and he does not hear of it yet.
        let mut bob = join(&old.ticket("bob").unwrap());
        let all = &mut [&mut anna, &mut bob, &mut dave, &mut eve];
        play("dialling", all, |_| sessions(&old) == 5);
        let all = &mut [&mut anna, &mut cara, &mut dave, &mut eve];
        play_for(Duration::from_millis(400), all);
        assert!(old.inspect(|_| ()).is_ok(), "bob is not in yet");
        let all = &mut [&mut anna, &mut bob, &mut cara, &mut dave, &mut eve];
        play("moving", all, |_| taking.is_finished());
        let new = taking.join().unwrap().unwrap();
        // Eve's process ends too: her ticket leads to the other server.
        let ticket = eve.newest.clone();
        drop(eve);
        let mut eve = join(&ticket);
        let all = &mut [&mut anna, &mut bob, &mut cara, &mut dave, &mut eve];
        play("arriving", all, |all| {
            all.iter().all(|p| p.dials() == new.local_addr()) && sessions(&new) == 5
        });
        let seen = all.iter().map(|p| p.tick()).max().unwrap();
        play("playing on", all, |all| {
            all.iter().all(|p| p.tick() > seen + 60)
        });
        let differs = |event: &Event| matches!(event, Event::Differs { .. });
        assert!(anna.events.iter().any(differs), "{:?}", anna.events);
        let world = anna.client.session.authority().unwrap();
        let (tick, ours) = (world.tick(), world.digest().unwrap());
        let theirs = new.inspect(move |game| game.digest_at(tick));
        assert_eq!(theirs, Ok(Some(ours)), "she is healed");
        new.shutdown();
    });
    old.shutdown();
}
