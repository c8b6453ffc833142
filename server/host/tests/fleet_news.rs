//! Tests of `RunningOps::fleet_news`, the state of a host's server according to its fleet manager, with a fake sidecar.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use twinstep_host::{Host, HostConfig};
use twinstep_ops::{FleetNews, OpsConfig, RunningOps, Sidecar};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::TicketKey;

use crate::loopback::{Setup, loopback};
use crate::players::{PATIENCE, wait};

/// Agones' report of a server: its state, and the label of its allocation.
fn agones_state(state: &str, label: &str) -> String {
    let meta = format!("{{\"labels\":{{\"mode\":\"{label}\"}},\"annotations\":{{\"map\":\"9\"}}}}");
    let ports = "[{\"name\":\"game\",\"port\":7123},{\"port\":1}]";
    format!(
        "{{\"object_meta\":{meta},\"status\":{{\"state\":\"{state}\",\"address\":\"192.0.2.7\",\"ports\":{ports}}}}}"
    )
}

fn news_of(state: &str, label: &str) -> FleetNews {
    let pairs = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    FleetNews {
        state: state.to_owned(),
        address: "192.0.2.7".to_owned(),
        ports: vec![("game".to_owned(), 7_123), (String::new(), 1)],
        labels: pairs("mode", label),
        annotations: pairs("map", "9"),
    }
}

/// A sidecar with scripted reports. An empty report closes the stream.
struct Manager {
    at: SocketAddr,
    says: watch::Sender<String>,
    watched: Arc<AtomicUsize>,
}

impl Manager {
    async fn start(says: String) -> Manager {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let manager = Manager {
            at: listener.local_addr().unwrap(),
            says: watch::Sender::new(says),
            watched: Arc::default(),
        };
        let (says, watched) = (manager.says.clone(), manager.watched.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, says.subscribe(), watched.clone()));
            }
        });
        manager
    }

    fn send(&self, words: String) {
        self.says.send_replace(words);
    }

    async fn is_watched(&self, times: usize) {
        let is_watched = async || self.watched.load(Ordering::Relaxed) >= times;
        wait("a reader of the stream", is_watched).await;
    }

    async fn host(&self) -> (Host, RunningOps) {
        let ops = OpsConfig {
            fleet: Some(Sidecar::at(self.at)),
            ..OpsConfig::default()
        };
        let host = HostConfig::new("counter", loopback(), TicketKey::generate());
        Setup { host, ops }.start().await.unwrap()
    }
}

async fn answer(
    stream: TcpStream,
    mut says: watch::Receiver<String>,
    watched: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut head = String::from("?");
    while !head.trim().is_empty() {
        head.clear();
        stream.read_line(&mut head).await?;
    }
    stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").await?;
    if request.starts_with("GET /watch/gameserver ") {
        // A stream starts with the next change, as it may with Agones.
        says.mark_unchanged();
        watched.fetch_add(1, Ordering::Relaxed);
        while says.changed().await.is_ok() {
            let words = says.borrow_and_update().clone();
            if words.is_empty() {
                break;
            }
            let line = format!("{{\"result\":{words}}}\n");
            stream.write_all(line.as_bytes()).await?;
        }
        return Ok(());
    }
    let words = match request.starts_with("GET /gameserver ") {
        true => says.borrow().clone(),
        false => "{}".to_owned(),
    };
    stream.write_all(words.as_bytes()).await
}

async fn until(news: &mut watch::Receiver<FleetNews>, expected: &FleetNews) {
    let comes = news.wait_for(|news| news == expected);
    let came = tokio::time::timeout(PATIENCE, comes).await;
    came.expect("it arrives in time").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fleet_managers_messages_are_applied_once() {
    let manager = Manager::start(agones_state("Scheduled", "none")).await;
    let (host, ops) = manager.host().await;
    let mut news = ops.fleet_news().unwrap();
    until(&mut news, &news_of("Scheduled", "none")).await;
    manager.is_watched(1).await;
    // An allocation: the label and the state come together.
    manager.send(agones_state("Allocated", "duel"));
    until(&mut news, &news_of("Allocated", "duel")).await;
    assert!(!news.has_changed().unwrap());
    manager.send(agones_state("Allocated", "duel"));
    manager.send(agones_state("Allocated", "duel"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!news.has_changed().unwrap(), "it is the same");
    // A change of only the label is also reported.
    manager.send(agones_state("Allocated", "brawl"));
    until(&mut news, &news_of("Allocated", "brawl")).await;
    // A later subscriber gets the current state.
    assert_eq!(
        *ops.fleet_news().unwrap().borrow(),
        news_of("Allocated", "brawl")
    );
    host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_reconnects_to_a_lost_manager_and_keeps_its_last_state() {
    let manager = Manager::start(agones_state("Ready", "none")).await;
    let (host, ops) = manager.host().await;
    let mut news = ops.fleet_news().unwrap();
    until(&mut news, &news_of("Ready", "none")).await;
    manager.is_watched(1).await;
    manager.send(String::new());
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(*news.borrow(), news_of("Ready", "none"));
    manager.send(agones_state("Ready", "none"));
    manager.is_watched(2).await;
    assert!(!news.has_changed().unwrap(), "it is the same");
    manager.send(agones_state("Allocated", "duel"));
    until(&mut news, &news_of("Allocated", "duel")).await;
    // The stream of a removed host ends.
    host.shutdown(CloseCode::Draining).await;
    drop(ops);
    let over = async { while news.changed().await.is_ok() {} };
    tokio::time::timeout(PATIENCE, over).await.unwrap();
}

#[tokio::test]
async fn a_host_without_a_fleet_receives_no_fleet_messages() {
    let host = HostConfig::new("counter", loopback(), TicketKey::generate());
    let ops = OpsConfig::default();
    let (_host, ops) = Setup { host, ops }.start().await.unwrap();
    assert!(ops.fleet_news().is_none());
}
