//! The admin port: what an operator, or the next server process, asks of this one. On loopback only.
//!
//! ```text
//!  GET  /livez           200 while the I/O loop beats, else 503
//!  GET  /matches         [{ id, players, spectators, tick, lateness_ms }]
//!  POST /drain?to=ADDR   hands the matches over to a server at ADDR (or several, with commas), and answers with
//!                        { moved: [{ id, journal, tick, stopped_unix_ms }], stays: [{ id, why }] }. A server says in the
//!                        body what it can take over: { wire, game, version, rules, seats, only, door }. Needs the token.
//! ```
//!
//! The hand-over, seen from both processes and a client:
//!
//! ```text
//!  old   play ──▶ fits? is it there? ──▶ tickets for the new address ──heard──▶ seal, "moved" into the journal ──▶ done
//!  new   bind ──▶ POST /drain ────────── waits ────────────────────────────────▶ take the journal up ──▶ play
//!  client                                                               "moved" ──▶ dials with the new ticket ──▶ play
//! ```
//!
//! First all are asked, then all move. If one of them refuses, none moves; one that stands still and does not answer stays,
//! alone. Each step has its time, so the answer comes within 12 s whatever a match does.
//!
//! Invariant: whoever is not on this machine reaches nothing of this (`host/admin_port.rs`), and who has not the token
//! changes nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use twinstep_core::text::line;
use twinstep_udp::KeyError;

use super::Clock;
use super::admin_port::{self, AdminToken};
use super::isolation::Pulse;
use super::knock;
use super::taker::{Drained, HandedOver, Kept, Taker};

/// Without a beat of the I/O loop for so long, the process is not alive.
const BEATLESS_MAX: Duration = Duration::from_secs(2);
/// A match says within so long whether it can move. One that does not stands still.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// A match that said so has moved within so long: its clients get their tickets, and its journal its end.
const MOVE_PATIENCE: Duration = Duration::from_secs(8);

/// Why there is no admin port, or nothing could be taken over through it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// Others could reach it.
    #[error(
        "expected an admin address on loopback, such as 127.0.0.1:7700, got {0}: whoever reaches it can stop the server"
    )]
    NotLoopback(SocketAddr),
    /// The file of the token.
    #[error("the admin token: {0}\n(an admin token that is not there is made at the next start)")]
    Token(#[from] KeyError),
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
    #[error("the server at {address} does not hand over its match: {}", line(said))]
    Refused {
        /// Whom.
        address: SocketAddr,
        /// Its words.
        said: String,
    },
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

/// What a match is asked on its way to another process.
pub(super) enum Move {
    /// Whether it can.
    Can(oneshot::Sender<Result<(), &'static str>>),
    /// To go.
    Go(MoveOrder),
}

/// A match is to be handed over.
pub(super) struct MoveOrder {
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
    /// The game that is played here.
    game: String,
    /// What players of this server dial.
    public: Vec<SocketAddr>,
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

/// What an admin port is about.
pub(super) struct About {
    pub(super) clock: Clock,
    pub(super) beat: Arc<Beat>,
    pub(super) matches: Register,
    pub(super) game: String,
    pub(super) public: Vec<SocketAddr>,
    /// Without one nothing can be changed.
    pub(super) token: Option<AdminToken>,
}

/// Serves a bound admin port until its task is aborted; where it listens.
pub(super) fn start(
    listener: std::net::TcpListener,
    address: SocketAddr,
    about: About,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), AdminError> {
    let failed = |source| AdminError::Listen { address, source };
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let token = about.token;
    let admin = Admin {
        clock: about.clock,
        beat: about.beat,
        matches: about.matches,
        game: about.game,
        public: about.public,
    };
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/matches", get(list))
        .route("/drain", post(drain))
        .with_state(admin);
    tracing::info!(address = %bound, "admin port");
    Ok((
        bound,
        tokio::spawn(admin_port::serve(listener, router, token)),
    ))
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
    let (mut only, mut door) = (None, None);
    // An operator who asks says nothing of what that server is; a server does.
    if !body.is_empty() {
        let taker: Taker = match serde_json::from_str(&body) {
            Ok(taker) => taker,
            Err(error) => {
                let said = format!("expected no body, or what a server can take over: {error}\n");
                return (StatusCode::BAD_REQUEST, said).into_response();
            }
        };
        (only, door) = (taker.only, taker.door);
        // All of them are looked at before any is stopped.
        let wanted = known
            .iter()
            .filter(|(id, _)| only.is_none_or(|only| only == **id));
        for (id, known) in wanted {
            if let Some(why) = known.needs.refusal(&taker) {
                tracing::warn!(?to, id, %why, "not handed over");
                let said = format!("match {id} stays here: {why}\n");
                return (StatusCode::CONFLICT, said).into_response();
            }
        }
    }
    let mut drained = Drained::default();
    let (known, others): (Vec<_>, Vec<_>) = known
        .into_iter()
        .partition(|(id, _)| only.is_none_or(|only| only == *id));
    for (id, _) in others {
        let why = "the other server does not take it".to_owned();
        drained.stays.push(Kept { id, why });
    }
    if let Some(why) = admin.nobody_at(&to, door).await {
        tracing::warn!(?to, %why, "not handed over");
        return (StatusCode::CONFLICT, why).into_response();
    }
    tracing::info!(?to, "asked to hand over");
    let mut ready = Vec::new();
    for (id, known) in known {
        match known.can_move().await {
            Some(Ok(())) => ready.push((id, known)),
            Some(Err(why)) => {
                let said = format!("match {id} stays here: {why}\n");
                return (StatusCode::CONFLICT, said).into_response();
            }
            None => {
                let why = "it stands still".to_owned();
                drained.stays.push(Kept { id, why });
            }
        }
    }
    let mut moving = Vec::new();
    for (id, known) in ready {
        let (done, moved) = oneshot::channel();
        let order = Move::Go(MoveOrder {
            to: to.clone(),
            done,
        });
        if known.moves.try_send(order).is_ok() {
            moving.push((id, moved));
        }
    }
    // All of them at once, whatever one of them does.
    let by = tokio::time::Instant::now() + MOVE_PATIENCE;
    for (id, moved) in moving {
        match tokio::time::timeout_at(by, moved).await {
            Ok(Ok(Ok(moved))) => drained.moved.push(HandedOver {
                id,
                journal: moved.journal,
                tick: moved.tick,
                stopped_unix_ms: moved.stopped_unix_ms,
            }),
            Ok(Ok(Err(why))) => drained.stays.push(Kept {
                id,
                why: why.to_owned(),
            }),
            // It ended meanwhile.
            Ok(Err(_)) => {}
            Err(_) => {
                let why = "it stands still".to_owned();
                drained.stays.push(Kept { id, why });
            }
        }
    }
    Json(drained).into_response()
}

impl Known {
    /// Whether the match can move; `None`: it does not answer.
    async fn can_move(&self) -> Option<Result<(), &'static str>> {
        let (answer, answered) = oneshot::channel();
        self.moves.try_send(Move::Can(answer)).ok()?;
        let answered = tokio::time::timeout(ASK_PATIENCE, answered).await;
        answered.ok()?.ok()
    }
}

impl Admin {
    /// The matches that run.
    fn known(&self) -> BTreeMap<u64, Known> {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, known| !known.moves.is_closed() && !known.pulse.is_condemned());
        matches.clone()
    }

    /// Why players are not sent to these addresses: a server of this game must answer at one of them, or at its `door`,
    /// and those that do not answer must lead to where this very server is dialled.
    async fn nobody_at(&self, to: &[SocketAddr], door: Option<SocketAddr>) -> Option<String> {
        let asked: Vec<_> = to
            .iter()
            .copied()
            .chain(door)
            .map(|at| {
                let game = self.game.clone();
                let knock = tokio::task::spawn_blocking(move || knock::is_there(at, &game));
                (at, knock)
            })
            .collect();
        let mut there = Vec::new();
        for (at, knock) in asked {
            if knock.await.unwrap_or(false) {
                there.push(at);
            }
        }
        let is_ours = |at: &SocketAddr| self.public.iter().any(|ours| ours.ip() == at.ip());
        let known = |at: &&SocketAddr| there.contains(at) || (!there.is_empty() && is_ours(at));
        let stranger = to.iter().find(|at| !known(at))?;
        Some(format!(
            "expected a server of {:?} at {stranger} before players are sent there, but none answers; start it first\n",
            self.game
        ))
    }
}
