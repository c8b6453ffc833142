//! The admin port of a server: reachable from this machine only, changes matches only with its token, and responds even
//! if clients misbehave.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tokio::runtime::Runtime;
use twinstep_core::Tick;
use twinstep_core::testing::doc::Counter;
use twinstep_host::{Running, Server};
use twinstep_ops::{AdminError, Ops, OpsConfig, OpsError, RunningOps};
use twinstep_udp::TicketKey;

use crate::folder::{Folder, token};
use crate::loopback::loopback;
use crate::players::Player;
use crate::scrape::ask_by_hand;

const IDLE_MAX: Duration = Duration::from_secs(20);

fn server(key: &TicketKey, folder: &Folder) -> Server<Counter> {
    Server::action(Counter::default(), ())
        .players(4)
        .spectators(4, 0)
        .keys(key.clone(), None)
        .host(|host| host.lineages_file = Some(folder.0.join("lineages")))
}

fn served(server: Server<Counter>, folder: &Folder) -> (Running<Counter>, RunningOps, Runtime) {
    let ops = Ops::open(OpsConfig {
        admin: Some(loopback()),
        admin_token: Some(folder.0.join("token")),
        ..OpsConfig::default()
    });
    let ops = ops.unwrap();
    let running = server.host(|host| ops.attach(host)).listen("127.0.0.1:0");
    let (running, runtime) = (running.unwrap(), Runtime::new().unwrap());
    let within = runtime.enter();
    let ops = ops.start(running.control()).unwrap();
    drop(within);
    (running, ops, runtime)
}

fn bearer(folder: &Folder) -> String {
    let token = token(&folder.file("token"));
    format!("Authorization: Bearer {token}")
}

fn is_over(server: &Running<Counter>) -> bool {
    server.inspect(|_| ()).is_err()
}

#[test]
fn the_admin_port_serves_health_and_matches_only_on_loopback() {
    let (key, folder) = (TicketKey::generate(), Folder::new("admin"));
    let (running, ops, _runtime) = served(server(&key, &folder), &folder);
    let mut players = [Player::<Counter>::join(&running.ticket("anna").unwrap())];
    players[0].play_until(|one| one.tick() > Tick(60)).unwrap();
    let admin = ops.admin_addr().unwrap();
    assert!(ask_by_hand(admin, "GET /livez HTTP/1.1", "").starts_with("HTTP/1.1 200"));
    let listed = ask_by_hand(admin, "GET /matches HTTP/1.1", "");
    for part in [
        "\"match\":1",
        "\"players\":1",
        "\"spectators\":0",
        "\"lateness_ms\":",
    ] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    let page = "GET /matches HTTP/1.1\r\nOrigin: https://example.org";
    assert!(ask_by_hand(admin, page, "").starts_with("HTTP/1.1 403"));
    let release = format!("POST /release?match=one HTTP/1.1\r\n{}", bearer(&folder));
    let release = ask_by_hand(admin, &release, "");
    assert!(release.starts_with("HTTP/1.1 400") && release.contains("got \"one\""));
    assert!(!is_over(&running));
    running.shutdown();

    let open = Ops::open(OpsConfig {
        admin: Some("0.0.0.0:0".parse().unwrap()),
        ..OpsConfig::default()
    });
    assert!(matches!(
        open.err(),
        Some(OpsError::Admin(AdminError::NotLoopback(_)))
    ));
}

/// Finding O9: any local user could end the process; silent connections stayed forever; and a web page could reach the
/// port under its own host name.
#[test]
fn the_admin_port_stays_responsive_and_requires_its_token() {
    let (key, folder) = (TicketKey::generate(), Folder::new("token"));
    let server = server(&key, &folder).journal(folder.0.join("match.journal"));
    let (running, ops, _runtime) = served(server, &folder);
    let admin = ops.admin_addr().unwrap();
    for header in ["X: y", "Authorization: Bearer 0", "Authorization: "] {
        let release = format!("POST /release?match=1 HTTP/1.1\r\n{header}");
        let answer = ask_by_hand(admin, &release, "");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(
        stream,
        "GET /matches HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    // Far more than the limit: the oldest are closed, and the rest times out soon.
    let mut idle: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = TcpStream::connect(admin).unwrap();
            stream.write_all(b"GET /li").unwrap();
            stream
        })
        .collect();
    assert!(ask_by_hand(admin, "GET /livez HTTP/1.1", "").starts_with("HTTP/1.1 200"));
    for stream in &mut idle {
        stream.set_read_timeout(Some(IDLE_MAX)).unwrap();
        let mut rest = Vec::new();
        // The connection ends or is reset, without a time-out.
        if let Err(error) = stream.read_to_end(&mut rest) {
            let gone = error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(gone, "it is still open: {error}");
        }
    }
    assert!(!is_over(&running));
    running.shutdown();
}
