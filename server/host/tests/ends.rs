//! Servers and hosts that are dropped or drained, matches that end, and concurrent requests.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::Event;
use twinstep_core::Tick;
use twinstep_core::testing::doc::Counter;
use twinstep_host::{Host, HostConfig, HostError, Journal, MatchEnded, Server, Stopped};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Index;
use twinstep_server::{Decision, HookContext, Match, MatchConfig};
use twinstep_udp::{Identity, MatchId, Role, TicketKey};

use crate::folder::Folder;
use crate::loopback::{counter, loopback};
use crate::players::{Player, closed_by, wait, wait_blocking};

fn server() -> Server<Counter> {
    Server::action(Counter::default(), ()).players(4)
}

fn new_match() -> Match<Counter> {
    counter(MatchConfig::action())
}

async fn host() -> Host {
    let config = HostConfig::new("counter", loopback(), TicketKey::generate());
    Host::start(config).await.unwrap()
}

/// The number of threads that run the matches of the host at this port.
#[cfg(target_os = "linux")]
fn workers(port: u16) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let ours = format!("match-{port}-");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with(&ours))
        .count()
}

/// Finding H1: a dropped server's match kept running, and kept the thread, the socket and the lock of the journal.
#[test]
fn a_dropped_server_frees_its_resources_and_its_match_can_be_resumed() {
    let folder = Folder::new("ends-dropped");
    let path = folder.0.join("match.journal");
    let mut address = "127.0.0.1:0".to_owned();
    for n in 0..20 {
        let made = match n {
            0 => server().journal(&path),
            _ => server().resume(&path),
        };
        let running = made.listen(&address).unwrap();
        // The same port each time, so the socket must also be closed.
        address = running.local_addr().to_string();
        let ticks = running.inspect(|match_| match_.world().tick()).unwrap();
        wait_blocking("its first ticks", || {
            running.inspect(|match_| match_.world().tick()).unwrap() > ticks
        });
        drop(running);
        let written = std::fs::metadata(&path).unwrap().len();
        std::thread::sleep(Duration::from_millis(50));
        let later = std::fs::metadata(&path).unwrap().len();
        assert_eq!(written, later, "it still writes");
    }
    let index = Index::scan(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((index.resumes, index.ended), (19, None));
}

/// Finding H1, for a host in its caller's runtime.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_host_ends_the_threads_of_its_matches() {
    for n in 0..20 {
        let host = host().await;
        let handle = host.add_match(MatchId(n), new_match(), None).await.unwrap();
        handle
            .inspect(|match_| match_.world().tick())
            .await
            .unwrap();
        // Other tests in this process also have hosts.
        let port = host.local_addr().port();
        assert!(workers(port) >= 1);
        drop(host);
        let gone = async || workers(port) == 0 && handle.is_over();
        wait("its end", gone).await;
    }
}

/// Finding K10: draining a server ended its match, and its players could not reconnect.
#[test]
fn a_drained_server_keeps_its_match_and_its_players_reconnect() {
    let folder = Folder::new("drained");
    let path = folder.0.join("match.journal");
    let key = TicketKey::generate();
    let first = server().keys(key.clone(), None).journal(&path);
    let first = first.listen("127.0.0.1:0").unwrap();
    let address = first.local_addr().to_string();
    let ticket = first.ticket("anna").unwrap();
    let mut anna = Player::<Counter>::join_and_keep_nothing(&ticket).holding(1);
    anna.play_until(|anna| anna.tick() > Tick(90)).unwrap();
    let ending = std::thread::Builder::new();
    let ending = ending.spawn(move || first.shutdown()).unwrap();
    anna.play_until(|_| ending.is_finished()).unwrap();
    ending.join().unwrap();

    let bytes = std::fs::read(&path).unwrap();
    let index = Index::scan(&bytes).unwrap();
    let last = index.worlds.last().unwrap().tick;
    assert!(last > Tick(90), "a world at the end, not at {last}");
    assert_eq!(index.newest, last);
    let second = server()
        .keys(key, None)
        .resume(&path)
        .listen(&address)
        .unwrap();
    let back = |event: &Event| matches!(event, Event::Reconnected { .. });
    anna.play_until(|anna| anna.events.iter().any(back) && anna.tick() > last + 60)
        .unwrap();
    second.shutdown();
}

#[test]
fn a_match_ended_by_its_host_is_over_for_its_players_and_its_journal() {
    let folder = Folder::new("ended");
    let path = folder.0.join("match.journal");
    let running = server().journal(&path).listen("127.0.0.1:0").unwrap();
    let mut anna = Player::<Counter>::join(&running.ticket("anna").unwrap());
    anna.play_until(|anna| anna.tick() > Tick(10)).unwrap();
    let ending = std::thread::Builder::new();
    let ending = ending.spawn(move || running.end()).unwrap();
    let ended = anna.play_until(|_| false);
    assert_eq!(ended, Err(closed_by(CloseCode::MatchOver)));
    ending.join().unwrap();
    let refused = server().resume(&path).listen("127.0.0.1:0").err().unwrap();
    assert!(refused.to_string().contains("is over"), "{refused}");
}

/// Finding O5: the process of a failed match exited with success.
#[test]
fn a_server_reports_whether_its_match_was_over_before_the_shutdown() {
    let running = server().listen("127.0.0.1:0").unwrap();
    running
        .inspect(|match_| match_.close(CloseCode::Fault))
        .unwrap();
    let stopped = running.run_until_stopped().unwrap();
    assert_eq!(stopped, Stopped::Over(CloseCode::Fault));
    let running = server().listen("127.0.0.1:0").unwrap();
    let mut anna = Player::<Counter>::join(&running.ticket("anna").unwrap());
    anna.play_until(|anna| anna.tick() > Tick(10)).unwrap();
    anna.client.leave();
    assert_eq!(running.run_until_deserted().unwrap(), Stopped::InOrder);
}

#[test]
fn a_server_without_its_first_player_is_not_deserted() {
    let running = server().listen("127.0.0.1:0").unwrap();
    let ticket = running.ticket("anna").unwrap();
    std::thread::scope(|scope| {
        let runs_on = scope.spawn(|| running.run_until_deserted());
        std::thread::sleep(Duration::from_millis(400));
        assert!(!runs_on.is_finished());
        let mut anna = Player::<Counter>::join(&ticket);
        anna.play_until(|anna| anna.tick() > Tick(10)).unwrap();
        assert!(!runs_on.is_finished());
        anna.client.leave();
        assert_eq!(runs_on.join().unwrap().unwrap(), Stopped::InOrder);
    });
}

/// Finding A7: an inspection that closes the match got a response only by chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inspection_that_closes_its_match_gets_a_response() {
    let host = host().await;
    for id in 0..200 {
        let match_ = host
            .add_match(MatchId(id), new_match(), None)
            .await
            .unwrap();
        let close = |match_: &mut Match<Counter>| match_.close(CloseCode::Fault);
        assert_eq!(match_.inspect(close).await, Ok(()), "match {id}");
        assert_eq!(match_.ended().await, Some(CloseCode::Fault));
        assert_eq!(match_.inspect(|_| ()).await, Err(MatchEnded));
    }
}

/// Finding H11: two concurrent calls could both get the id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_matches_added_concurrently_under_one_id_starts() {
    let host = Arc::new(host().await);
    for id in 0..60 {
        let add = || {
            let host = host.clone();
            tokio::spawn(async move { host.add_match(MatchId(id), new_match(), None).await })
        };
        let (one, two) = (add(), add());
        let refused: Vec<_> = [one.await.unwrap(), two.await.unwrap()]
            .into_iter()
            .filter_map(Result::err)
            .collect();
        let [HostError::MatchExists(of)] = refused[..] else {
            panic!("match {id}: {refused:?}");
        };
        assert_eq!(of, MatchId(id));
    }
}

/// Finding H11: the match continued with the events it had received, while its sessions were closed.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_condemned_match_does_no_work_when_it_wakes() {
    let folder = Folder::new("condemned");
    let path = folder.0.join("match.journal");
    let host = host().await;
    let journal = Journal::create(&path).unwrap();
    let handle = host
        .add_match(MatchId(9), new_match(), Some(journal))
        .await
        .unwrap();
    let hangs = handle.clone();
    let (wake, asleep) = std::sync::mpsc::channel::<()>();
    let (acted, done) = std::sync::mpsc::channel();
    tokio::spawn(async move {
        let errand = hangs.inspect(move |match_| {
            let _ = asleep.recv();
            // Its outputs must not be sent.
            match_.revoke(&Identity::new("late", Role::Player), 77);
            let _ = acted.send(());
        });
        let _ = errand.await;
    });
    assert_eq!(handle.ended().await, Some(CloseCode::Fault));
    let written = std::fs::read(&path).unwrap();
    wake.send(()).unwrap();
    done.recv().unwrap();
    // Its thread ends, and unlocks the journal.
    let free = || {
        Journal::resume(
            &path,
            MatchConfig::action(),
            Arc::new(()),
            |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered,
        )
    };
    wait("the journal", async || free().is_ok()).await;
    assert_eq!(std::fs::read(&path).unwrap(), written, "it wrote on");
    host.shutdown(CloseCode::Draining).await;
}
