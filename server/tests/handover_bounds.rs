//! A hand-over is whole and bounded: all matches of a host move or none does, and one that stands still stays alone.

use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::Index;
use twinstep_core::testing::doc::Counter;
use twinstep_server::config::TurnLength;
use twinstep_server::host::{Journal, MatchHandle, OnJournalFailure};
use twinstep_server::{MatchConfig, PeerId};

use crate::asking::ask;
use crate::loopback::{LoopbackHost, counter, hold_up};
use crate::players::PATIENCE;

/// A host with matches, and another one to which players may be sent.
struct Hosts {
    ours: LoopbackHost<Counter>,
    other: LoopbackHost<Counter>,
}

impl Hosts {
    async fn new(name: &str) -> Hosts {
        Hosts {
            ours: LoopbackHost::start(&format!("drain-{name}"), |_| {}).await,
            other: LoopbackHost::start(&format!("drain-{name}-to"), |_| {}).await,
        }
    }

    fn journal(&self, id: u64) -> PathBuf {
        self.ours.folder.file(&format!("{id}.journal"))
    }

    /// Why the match of a journal ended, as the journal says.
    fn ended(&self, id: u64) -> Option<String> {
        let bytes = std::fs::read(self.journal(id)).unwrap();
        Index::scan(&bytes).unwrap().ended
    }

    async fn add(&self, id: u64, has_journal: bool) -> MatchHandle<Counter> {
        let journal = has_journal.then(|| Journal::create(self.journal(id)).unwrap());
        let game = counter(MatchConfig::action());
        self.ours.host.add_match(id, game, journal).await.unwrap()
    }

    /// Asks for a hand-over of all matches to the other host.
    async fn drain(&self) -> (u16, String) {
        let to = self.other.host.local_addr();
        self.ours.ask(&format!("POST /drain?to={to}"), "").await
    }
}

/// Waits until a match has played on.
async fn plays_on(game: &MatchHandle<Counter>) {
    let tick = async || game.inspect(|game| game.world().tick()).await.unwrap();
    let before = tick().await;
    let later = async { while tick().await <= before + 5 {} };
    tokio::time::timeout(PATIENCE, later).await.unwrap();
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
    let (status, answer) = hosts.drain().await;
    assert_eq!(status, 409, "{answer}");
    assert!(
        answer.contains("match 2 stays here: it has no journal"),
        "{answer}"
    );
    for game in [&one, &two, &three] {
        plays_on(game).await;
    }
    assert_eq!((hosts.ended(1), hosts.ended(3)), (None, None));

    two.inspect(|game| game.close(CloseCode::MatchOver))
        .await
        .unwrap();
    two.ended().await;
    let (status, answer) = hosts.drain().await;
    assert_eq!(status, 200, "{answer}");
    for (id, game) in [(1, one), (3, three)] {
        assert!(answer.contains(&format!("{id}.journal")), "{answer}");
        assert_eq!(game.ended().await, Some(CloseCode::Moved));
        assert_eq!(hosts.ended(id).as_deref(), Some("moved"));
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
    let (status, answer) = hosts.drain().await;
    let took = began.elapsed();
    assert_eq!(status, 200, "{answer}");
    assert!(took < Duration::from_secs(4), "it took {took:?}");
    for id in [1, 3] {
        assert_eq!(hosts.ended(id).as_deref(), Some("moved"));
    }
    for id in [2, 4] {
        let stays = format!("{{\"id\":{id},\"why\":\"it stands still\"}}");
        assert!(answer.contains(&stays), "{answer}");
        assert_eq!(hosts.ended(id), None);
    }
    drop(for_a_while);
    plays_on(&games[1]).await;
    assert_eq!(games[3].ended().await, Some(CloseCode::Fault));
    let (_, _, listed) = ask(hosts.ours.admin(), "GET /matches", None, "").await;
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
    let mut stream = TcpStream::connect(hosts.ours.admin()).unwrap();
    let (to, token) = (hosts.other.host.local_addr(), hosts.ours.token());
    let request = format!("POST /drain?to={to} HTTP/1.1\r\nAuthorization: Bearer {token}");
    let head = format!("{request}\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    drop(stream);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(hosts.ended(1), None);
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
    let game = counter(config);
    let (ours, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::from(std::os::fd::OwnedFd::from(ours));
    let journal = Journal::from_file(hosts.journal(id), file).on_failure(on_failure);
    let game = hosts
        .ours
        .host
        .add_match(id, game, Some(journal))
        .await
        .unwrap();
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
    let (status, answer) = hosts.drain().await;
    assert_eq!(status, 200, "{answer}");
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
    hosts.ours.host.shutdown(CloseCode::Draining).await;
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
    let (status, answer) = hosts.drain().await;
    let took = began.elapsed();
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("5.journal"), "{answer}");
    assert!(took < Duration::from_millis(2_500), "it took {took:?}");
    assert_eq!(plays.ended().await, Some(CloseCode::Moved));
}

/// Players were sent back to the very server that had just ended their match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_hand_its_matches_over_to_itself() {
    let hosts = Hosts::new("itself").await;
    let game = hosts.add(1, true).await;
    let (ours, other) = (hosts.ours.host.local_addr(), hosts.other.host.local_addr());
    for to in [ours.to_string(), format!("{other},{ours}")] {
        let request = format!("POST /drain?to={to}");
        let (status, answer) = hosts.ours.ask(&request, "").await;
        assert_eq!(status, 409, "{answer}");
        let why = format!("{ours} leads to this very server");
        assert!(answer.contains(&why), "{answer}");
    }
    plays_on(&game).await;
    assert_eq!(hosts.ended(1), None);
}
