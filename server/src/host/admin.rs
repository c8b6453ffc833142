//! The admin port: what an operator, or the next server process, asks of this one. On loopback only.
//!
//! ```text
//!  GET  /livez           200 while the I/O loop beats, else 503
//!  GET  /matches         [{ id, players, spectators, tick, lateness_ms }]
//!  POST /drain?to=ADDR   hands the matches over to a server at ADDR (or several, with commas), and answers with
//!                        their journals: [{ id, journal, tick, stopped_unix_ms }]. A server says in the body what it
//!                        can take over: { wire, game, version, rules, seats }
//! ```
//!
//! The hand-over, seen from both processes and a client:
//!
//! ```text
//!  old   play ──▶ fits? ──▶ tickets for the new address ──heard──▶ seal, "moved" into the journal ──▶ done
//!  new   bind ──▶ POST /drain ────────── waits ──────────────────▶ take the journal up ──▶ play
//!  client                                                 "moved" ──▶ dials with the new ticket ──▶ play
//! ```
//!
//! A match that the new server could not run is not stopped: the old one says why not, and plays on.
//!
//! Invariant: whoever is not on this machine reaches nothing of this: other addresses are refused at the start, and so
//! is every request that a web page made (it names its origin).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use twinstep_core::packet::hello::Hello;

use super::Clock;
use super::isolation::Pulse;

/// Without a beat of the I/O loop for so long, the process is not alive.
const BEATLESS_MAX: Duration = Duration::from_secs(2);
/// How long the next process waits for an answer: clients get their tickets, and the journal its end, meanwhile.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// An answer is at most so large.
const ANSWER_BYTES_MAX: u64 = 64 * 1_024;

/// Why there is no admin port, or nothing could be taken over through it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// Others could reach it.
    #[error(
        "expected an admin address on loopback, such as 127.0.0.1:7700, got {0}: whoever reaches it can stop the server"
    )]
    NotLoopback(SocketAddr),
    /// It cannot be listened on.
    #[error("cannot listen on the admin address {address}: {source}; choose another port")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The other process cannot be asked.
    #[error("cannot ask the server at {address} to hand over: {source}; give its --admin address")]
    Ask {
        /// Whom.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The other process does not hand over.
    #[error("the server at {address} does not hand over its match: {said}")]
    Refused {
        /// Whom.
        address: SocketAddr,
        /// Its words.
        said: String,
    },
}

/// A match that another process has handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Its id.
    pub id: u64,
    /// Its journal, which ends with "moved".
    pub journal: PathBuf,
    /// Its next tick.
    pub tick: u32,
    /// When it stopped, in milliseconds since the unix epoch.
    pub stopped_unix_ms: u64,
}

/// What a server can take over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taker {
    /// The version of the wire format.
    pub wire: u16,
    /// The game's name.
    pub game: String,
    /// The author's version of the simulation.
    pub version: u32,
    /// The digest of the rules.
    pub rules: u64,
    /// Seats.
    pub seats: usize,
}

impl Taker {
    /// A server of `seats` whose clients say `hello`.
    #[must_use]
    pub fn new(hello: &Hello, seats: usize) -> Taker {
        Taker {
            wire: hello.wire,
            game: hello.game.clone(),
            version: hello.version,
            rules: hello.rules,
            seats,
        }
    }

    /// Why a match of this kind stays where it is; `None`: `other` can run it too.
    fn refusal(&self, other: &Taker) -> Option<String> {
        let theirs = Taker {
            seats: self.seats,
            ..other.clone()
        };
        if theirs != *self {
            let said = |it: &Taker| {
                let Taker {
                    wire,
                    game,
                    version,
                    rules,
                    ..
                } = it;
                format!("{game:?} version {version}, rules {rules:016x}, wire {wire}")
            };
            return Some(format!(
                "it is of {}, the other server of {}; start that with the same build and rules",
                said(self),
                said(other)
            ));
        }
        (other.seats < self.seats).then(|| {
            format!(
                "it has {} seats, the other server {}; allow as many players there",
                self.seats, other.seats
            )
        })
    }
}

/// Asks the process whose admin port is at `admin` to hand over its matches to a server at `to`.
///
/// # Errors
/// It cannot be reached, or does not.
pub fn take_over(
    admin: SocketAddr,
    to: &[SocketAddr],
    taker: &Taker,
) -> Result<Vec<HandedOver>, AdminError> {
    let failed = |source| AdminError::Ask {
        address: admin,
        source,
    };
    let to: Vec<String> = to.iter().map(ToString::to_string).collect();
    let path = format!("/drain?to={}", to.join(","));
    let said = serde_json::to_string(taker).map_err(|error| failed(error.into()))?;
    let (status, body) = ask(admin, &path, &said).map_err(failed)?;
    if status != 200 {
        return Err(AdminError::Refused {
            address: admin,
            said: body.trim().to_owned(),
        });
    }
    serde_json::from_str(&body).map_err(|error| failed(error.into()))
}

/// One request, as small as HTTP can be; its answer's status and body.
fn ask(address: SocketAddr, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_PATIENCE)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    stream.set_write_timeout(Some(ANSWER_PATIENCE))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    let parsed = answer.split_once("\r\n\r\n").and_then(|(head, body)| {
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    });
    parsed.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// When the I/O loop moved time on last.
#[derive(Debug, Default)]
pub(super) struct Beat(AtomicU64);

impl Beat {
    pub(super) fn beat(&self, now: Duration) {
        self.0.store(now.as_millis() as u64, Ordering::Relaxed);
    }

    fn is_alive(&self, now: Duration) -> bool {
        let last = Duration::from_millis(self.0.load(Ordering::Relaxed));
        now.saturating_sub(last) < BEATLESS_MAX
    }
}

/// A match is to be handed over.
pub(super) struct Move {
    /// What its clients shall dial.
    pub(super) to: Vec<SocketAddr>,
    /// Where the answer goes: the journal and the tick at which it ended, or why not.
    pub(super) done: oneshot::Sender<Result<Moved, &'static str>>,
}

/// A match was handed over.
pub(super) struct Moved {
    pub(super) journal: PathBuf,
    pub(super) tick: u32,
    pub(super) stopped_unix_ms: u64,
}

/// What the admin port knows of a match.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) pulse: Arc<Pulse>,
    pub(super) moves: mpsc::Sender<Move>,
    /// What another server must be able to run to take it over.
    pub(super) needs: Taker,
}

/// The matches of a host, as its admin port sees them.
pub(super) type Register = Arc<Mutex<BTreeMap<u64, Known>>>;

#[derive(Clone)]
struct Admin {
    clock: Clock,
    beat: Arc<Beat>,
    matches: Register,
}

#[derive(Serialize)]
struct MatchLine {
    id: u64,
    players: u32,
    spectators: u32,
    tick: u32,
    lateness_ms: f64,
}

#[derive(Deserialize)]
struct DrainTo {
    to: String,
}

/// Binds the admin port.
pub(super) fn bind(address: SocketAddr) -> Result<std::net::TcpListener, AdminError> {
    if !address.ip().is_loopback() {
        return Err(AdminError::NotLoopback(address));
    }
    std::net::TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|source| AdminError::Listen { address, source })
}

/// Serves a bound admin port until its task is aborted; where it listens.
pub(super) fn start(
    listener: std::net::TcpListener,
    address: SocketAddr,
    clock: Clock,
    beat: Arc<Beat>,
    matches: Register,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), AdminError> {
    let failed = |source| AdminError::Listen { address, source };
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let admin = Admin {
        clock,
        beat,
        matches,
    };
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/matches", get(list))
        .route("/drain", post(drain))
        .layer(middleware::from_fn(no_web_page))
        .with_state(admin);
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the admin port is gone");
        }
    });
    tracing::info!(address = %bound, "admin port");
    Ok((bound, task))
}

async fn no_web_page(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "not for web pages\n").into_response();
    }
    next.run(request).await
}

async fn livez(State(admin): State<Admin>) -> Response {
    if admin.beat.is_alive(admin.clock.now()) {
        (StatusCode::OK, "alive\n").into_response()
    } else {
        let said = "the I/O loop stands still\n";
        (StatusCode::SERVICE_UNAVAILABLE, said).into_response()
    }
}

async fn list(State(admin): State<Admin>) -> Response {
    let lines: Vec<MatchLine> = admin
        .known()
        .into_iter()
        .map(|(id, known)| {
            let shown = known.pulse.shown();
            MatchLine {
                id,
                players: shown.players,
                spectators: shown.spectators,
                tick: shown.tick.0,
                lateness_ms: shown.lateness.as_secs_f64() * 1e3,
            }
        })
        .collect();
    Json(lines).into_response()
}

async fn drain(State(admin): State<Admin>, Query(query): Query<DrainTo>, body: String) -> Response {
    let to: Result<Vec<SocketAddr>, _> = query.to.split(',').map(str::parse).collect();
    let to = match to {
        Ok(to) if (1..=twinstep_udp::SERVERS_MAX).contains(&to.len()) => to,
        _ => {
            let said = format!(
                "expected ?to=ADDR[,ADDR], such as 203.0.113.7:7777, got {:?}\n",
                query.to
            );
            return (StatusCode::BAD_REQUEST, said).into_response();
        }
    };
    let known = admin.known();
    // An operator who asks says nothing of what that server is; a server does.
    if !body.is_empty() {
        let taker: Taker = match serde_json::from_str(&body) {
            Ok(taker) => taker,
            Err(error) => {
                let said = format!("expected no body, or what a server can take over: {error}\n");
                return (StatusCode::BAD_REQUEST, said).into_response();
            }
        };
        // All of them are asked before any is stopped.
        for (id, known) in &known {
            if let Some(why) = known.needs.refusal(&taker) {
                tracing::warn!(?to, id, %why, "not handed over");
                let said = format!("match {id} stays here: {why}\n");
                return (StatusCode::CONFLICT, said).into_response();
            }
        }
    }
    tracing::info!(?to, "asked to hand over");
    let mut waiting = Vec::new();
    for (id, known) in known {
        let (done, moved) = oneshot::channel();
        let order = Move {
            to: to.clone(),
            done,
        };
        if known.moves.send(order).await.is_ok() {
            waiting.push((id, moved));
        }
    }
    let mut handed = Vec::new();
    for (id, moved) in waiting {
        match moved.await {
            Ok(Ok(moved)) => handed.push(HandedOver {
                id,
                journal: moved.journal,
                tick: moved.tick,
                stopped_unix_ms: moved.stopped_unix_ms,
            }),
            Ok(Err(why)) => {
                let said = format!("match {id} stays here: {why}\n");
                return (StatusCode::CONFLICT, said).into_response();
            }
            // It ended meanwhile.
            Err(_) => {}
        }
    }
    Json(handed).into_response()
}

impl Admin {
    /// The matches that run.
    fn known(&self) -> BTreeMap<u64, Known> {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, known| !known.moves.is_closed());
        matches.clone()
    }
}
