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

use std::net::SocketAddr;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::net::TcpListener;

use super::admin_error::AdminError;
use super::admin_port::{self, AdminToken};
use super::drain;
use super::register::Admin;

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

/// Serves a bound admin port until its task is aborted; where it listens. Without a token nothing can be changed.
pub(super) fn start(
    listener: std::net::TcpListener,
    address: SocketAddr,
    admin: Admin,
    token: Option<AdminToken>,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), AdminError> {
    let failed = |source| AdminError::Listen { address, source };
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
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
