//! The part of a fleet that admits players: asks Agones for a server, makes a ticket for each player, and prints them.
//!
//! ```text
//!  this ── POST /gameserverallocation ──▶ Agones' allocator ──▶ a Ready server becomes Allocated
//!       ◀── address, port ───────────────
//!  key file ──▶ a ticket for each player, with that address ──▶ your login service hands them out
//! ```
//!
//! ```sh
//! cargo run -p powderkeg --example allocate -- match.key agones-allocator.agones-system:443 default powderkeg anna bob
//! ```
//!
//! Agones' allocator requires TLS with certificates on both sides unless it is configured otherwise: run this behind a
//! proxy that does TLS (a mesh, `stunnel`), or use an HTTP client with TLS in [`allocate`]. The rest stays the same.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use powderkeg_game::Game;
use serde_json::{Value, json};
use twinstep_core::Simulation;
use twinstep_host::{MatchId, Ticket, TicketKey, TicketSpec};
use twinstep_protocol::packet::WIRE_VERSION;

const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The match on a server that runs only one.
const MATCH: u64 = 1;
/// Players must join with their first ticket within this time. After that they get newer tickets.
const TICKET_LIFE: Duration = Duration::from_secs(600);

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [key, allocator, namespace, fleet, players @ ..] = &words[..] else {
        eprintln!("usage: allocate KEY-FILE ALLOCATOR:PORT NAMESPACE FLEET PLAYER...");
        return ExitCode::from(2);
    };
    let done = TicketKey::load(key).map_err(Failure::from).and_then(|key| {
        let server = allocate(allocator, namespace, fleet)?;
        tickets(&key, server, players)
    });
    match done {
        Ok(tickets) => {
            for (player, ticket) in tickets {
                println!("{player} {}", ticket.to_line());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn allocate(allocator: &str, namespace: &str, fleet: &str) -> Result<SocketAddr, Failure> {
    let wanted = json!({
        "namespace": namespace,
        "gameServerSelectors": [{ "matchLabels": { "agones.dev/fleet": fleet } }],
    });
    let (status, said) = post(allocator, "/gameserverallocation", &wanted.to_string())?;
    match status {
        200 => {}
        // Agones responds like this while no server is ready. The autoscaler starts more, so it is worth retrying.
        429 | 503 => return Err(format!("no server of the fleet {fleet} is ready: {said}").into()),
        status => return Err(format!("the allocator refused, status {status}: {said}").into()),
    }
    let told: Value = serde_json::from_str(&said)?;
    let port = told["ports"][0]["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    let (Some(address), Some(port)) = (told["address"].as_str(), port) else {
        return Err(format!("expected an address and a port of the allocator, got {said}").into());
    };
    // Agones may respond with a host name; resolve it here, so that the tickets hold an IP address.
    let found = (address, port).to_socket_addrs()?.next();
    found.ok_or_else(|| format!("{address} has no address").into())
}

#[expect(
    clippy::disallowed_methods,
    reason = "tickets have a life by the wall clock"
)]
fn tickets(
    key: &TicketKey,
    server: SocketAddr,
    players: &[String],
) -> Result<Vec<(String, Ticket)>, Failure> {
    let now_unix = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let ticket = |player: &String| {
        let spec = TicketSpec {
            game: Game::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity: player,
            match_id: MatchId(MATCH),
            seats: 1,
            servers: &[server.into()],
            life: TICKET_LIFE,
            timeout: Duration::from_secs(5),
            now_unix,
        };
        Ok((player.clone(), Ticket::issue(key, &spec)?))
    };
    players.iter().map(ticket).collect()
}

fn post(at: &str, path: &str, body: &str) -> Result<(u16, String), Failure> {
    let address = at.to_socket_addrs()?.next().ok_or("no address")?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!("POST {path} HTTP/1.0\r\nHost: {at}\r\nContent-Type: application/json");
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    let parsed = answer.split_once("\r\n\r\n").and_then(|(head, body)| {
        let status = head.split(' ').nth(1)?.trim_end().parse().ok()?;
        Some((status, body.to_owned()))
    });
    parsed.ok_or_else(|| format!("{at} does not speak HTTP").into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn allocator(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let answering = std::thread::Builder::new().spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"}") {
                let mut some = [0; 1 << 10];
                let bytes = stream.read(&mut some).unwrap();
                assert!(bytes > 0, "it broke off");
                asked.extend_from_slice(&some[..bytes]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (at, answering.unwrap())
    }

    #[test]
    fn players_get_tickets_for_the_allocated_server() {
        let (at, asked) = allocator(
            "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"gameServerName\":\"powderkeg-x\",\
             \"ports\":[{\"name\":\"default\",\"port\":7123}],\"address\":\"203.0.113.7\",\"nodeName\":\"n\"}",
        );
        let server = allocate(&at, "default", "powderkeg").unwrap();
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("POST /gameserverallocation HTTP/1.0\r\n"),
            "{asked}"
        );
        assert!(
            asked.contains("{\"agones.dev/fleet\":\"powderkeg\"}"),
            "{asked}"
        );
        let key = TicketKey::generate();
        let players = ["anna".to_owned(), "bob".to_owned()];
        let made = tickets(&key, server, &players).unwrap();
        assert_eq!(made.len(), 2);
        for (_, ticket) in made {
            let dials: Vec<SocketAddr> = ticket.servers().filter_map(|at| at.socket()).collect();
            assert_eq!(dials, ["203.0.113.7:7123".parse().unwrap()]);
            assert!(
                ticket
                    .check_program(Game::NAME, u32::from(WIRE_VERSION))
                    .is_ok()
            );
        }
    }

    #[test]
    fn a_failing_allocator_is_reported_with_a_clear_error() {
        for (answer, words) in [
            (
                "HTTP/1.0 429 Too Many Requests\r\n\r\nno server",
                "is ready: no server",
            ),
            ("HTTP/1.0 403 Forbidden\r\n\r\nwho?", "status 403: who?"),
            (
                "HTTP/1.0 200 OK\r\n\r\n{\"address\":\"203.0.113.7\",\"ports\":[]}",
                "an address and a port",
            ),
            (
                "HTTP/1.0 200 OK\r\n\r\n{\"address\":\"x\",\"ports\":[{\"port\":99999}]}",
                "an address and a port",
            ),
            ("hello", "does not speak HTTP"),
        ] {
            let (at, asked) = allocator(answer);
            let said = allocate(&at, "default", "powderkeg")
                .unwrap_err()
                .to_string();
            assert!(
                said.contains(words),
                "{answer:?} should say {words:?}: {said}"
            );
            asked.join().unwrap();
        }
    }
}
