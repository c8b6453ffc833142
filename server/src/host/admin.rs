//! The admin port: what an operator, or the next server process, asks of this one. On loopback only.
//!
//! ```text
//!  GET  /livez           200 while the I/O loop beats, else 503
//!  GET  /matches         [{ id, players, spectators, tick, lateness_ms }]
//!  POST /drain?to=ADDR   hands the matches over to a server at ADDR (or several, with commas): see `host/drain.rs`
//!  POST /ready?to=ADDR   what that would come to, and which journals are to be taken up; stops nothing
//! ```
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
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use twinstep_core::text::line;
use twinstep_udp::KeyError;

use super::Clock;
use super::admin_port::{self, AdminToken};
use super::drain::{self, Move};
use super::isolation::Pulse;
use super::knock::OwnKnocks;
use super::taker::Taker;

/// Without a beat of the I/O loop for so long, the process is not alive.
const BEATLESS_MAX: Duration = Duration::from_secs(2);
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
    /// The journal of a match that is to be taken over cannot be used here.
    #[error(
        "cannot open {path}, the journal of the match that is to be taken over: {source}; run this server as the user \
         that the other one runs as (its match plays on)"
    )]
    Journal {
        /// Which file.
        path: PathBuf,
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
pub(super) struct Admin {
    clock: Clock,
    beat: Arc<Beat>,
    matches: Register,
    /// The game that is played here.
    pub(super) game: String,
    /// What players of this server dial.
    pub(super) public: Vec<SocketAddr>,
    pub(super) own_knocks: OwnKnocks,
}

#[derive(Serialize)]
struct MatchLine {
    id: u64,
    players: u32,
    spectators: u32,
    tick: u32,
    lateness_ms: f64,
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
    pub(super) own_knocks: OwnKnocks,
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
        own_knocks: about.own_knocks,
    };
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/matches", get(list))
        .route("/ready", post(drain::ready))
        .route("/drain", post(drain::drain))
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

impl Admin {
    /// The matches that run.
    pub(super) fn known(&self) -> BTreeMap<u64, Known> {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, known| !known.moves.is_closed() && !known.pulse.is_condemned());
        matches.clone()
    }
}
