//! The admin port: an operator's requests to this server, on loopback or at a Unix socket.
//!
//! ```text
//!  GET  /livez           200 while the I/O loop beats and matches are run, else 503
//!  GET  /readyz          200 while new players can join here, else 503 and the reason
//!  GET  /metrics         metrics, in Prometheus' text format 0.0.4
//!  GET  /matches         [{ match, players, spectators, tick, lateness_ms }]
//!
//!  with the token (`admin/act.rs`); fields in the query, or in a JSON object as the body:
//!  GET  /matches/ID      { match, players: [{ seat, identity, name, state, connected, since_s, margin_ticks, round_trip_ms }] }
//!  POST /kick            match, identity                       removed from that match until it ends
//!  POST /ban             identity, for_s | until_unix_s, reason   out of all matches with any ticket; without an end: for good
//!  POST /unban           identity                              lifts a ban, and kicks
//!  GET  /bans            [{ identity, since_unix_s, until_unix_s, reason }]
//!  POST /revoke          identity, match?                      its existing tickets are refused
//!  POST /message         text; match                           shown to all who are present
//!  POST /request         match, request, ticks | tick_us       pause, resume, step or speed
//!  POST /end             match, reason                         ends a match for good; its journal has the reason
//!  POST /copy-journal    match                                 copies its journal; returns the path
//!  POST /save-game       match, name                           saves it as NAME.save in the state folder; returns the path
//!  POST /release         match                                 ends a match here; another server resumes its journal
//! ```
//!
//! Errors: 400 with the expected and the given value, 401 and 403 for a missing token, 404 for an unknown match or
//! player, 409 for what cannot be done now, 500 for a failed disk, 503 for a match that does not respond.
//!
//! Invariant: the port cannot be reached from other machines (`admin_port.rs`), and without the token it changes
//! nothing and does not show players' names. Only its owner can open a Unix socket: a process that can open it does not
//! need a token.

use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::net::TcpListener;

use super::admin_address::AdminAddress;
#[cfg(unix)]
use super::admin_address::AdminSocket;
use super::admin_error::AdminError;
use super::admin_port::{self, LiveToken};
use twinstep_host::internal::logged;

mod act;
mod fields;
mod look;
mod save;
pub(crate) mod state;

use state::Admin;

pub(super) fn bind(address: SocketAddr) -> Result<std::net::TcpListener, AdminError> {
    if !address.ip().is_loopback() {
        return Err(AdminError::NotLoopback(address));
    }
    std::net::TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|source| AdminError::Listen {
            address: address.into(),
            source,
        })
}

/// Serves a bound admin port until its task is aborted. Returns its address. Without a token, guarded requests are
/// refused.
pub(super) fn start(
    listener: std::net::TcpListener,
    address: SocketAddr,
    admin: Admin,
    token: Option<LiveToken>,
) -> Result<(SocketAddr, tokio::task::JoinHandle<()>), AdminError> {
    let failed = |source| AdminError::Listen {
        address: address.into(),
        source,
    };
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let (open, guarded) = routes(admin);
    let router = open.merge(admin_port::guard(guarded, token));
    let router = admin_port::on_loopback(router);
    logged::info!(address = %bound, "admin port listening");
    Ok((bound, tokio::spawn(admin_port::serve(listener, router))))
}

pub(super) struct BoundSocket {
    #[cfg(unix)]
    bound: (std::os::unix::net::UnixListener, AdminSocket),
    #[cfg(unix)]
    path: std::path::PathBuf,
}

#[cfg(unix)]
pub(super) fn bind_socket(path: &Path) -> Result<BoundSocket, AdminError> {
    let path = path.to_owned();
    match AdminSocket::bind(&path) {
        Ok(bound) => Ok(BoundSocket { bound, path }),
        Err(source) => Err(AdminError::Listen {
            address: AdminAddress::Unix(path),
            source,
        }),
    }
}

/// Serves a Unix socket until its task is aborted. A process that can open it may do everything.
#[cfg(unix)]
pub(super) fn start_at(socket: BoundSocket, admin: Admin) -> Result<AtSocket, AdminError> {
    let BoundSocket {
        bound: (listener, socket),
        path,
    } = socket;
    let listener = tokio::net::UnixListener::from_std(listener);
    let listener = listener.map_err(|source| AdminError::Listen {
        address: AdminAddress::Unix(path.clone()),
        source,
    })?;
    let (open, guarded) = routes(admin);
    logged::info!(path = %path.display(), "admin socket listening");
    let task = tokio::spawn(admin_port::serve(listener, open.merge(guarded)));
    Ok(AtSocket {
        task,
        _socket: socket,
    })
}

#[cfg(not(unix))]
pub(super) fn start_at(_: BoundSocket, _: Admin) -> Result<AtSocket, AdminError> {
    unreachable!("none was bound")
}

#[cfg(not(unix))]
pub(super) fn bind_socket(path: &Path) -> Result<BoundSocket, AdminError> {
    Err(AdminError::Listen {
        address: AdminAddress::Unix(path.to_owned()),
        source: std::io::ErrorKind::Unsupported.into(),
    })
}

pub(super) struct AtSocket {
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are none"))]
    task: tokio::task::JoinHandle<()>,
    #[cfg(unix)]
    _socket: AdminSocket,
}

impl Drop for AtSocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The routes open to everyone on this machine, and the routes that need a token.
fn routes(admin: Admin) -> (Router, Router) {
    let open = Router::new()
        .route("/livez", get(look::livez))
        .route("/readyz", get(look::readyz))
        .route("/metrics", get(look::metrics))
        .route("/matches", get(look::list))
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .with_state(admin.clone());
    let guarded = Router::new()
        .route("/matches/{id}", get(act::players))
        .route("/bans", get(act::bans))
        .route("/kick", post(act::kick))
        .route("/ban", post(act::ban))
        .route("/unban", post(act::unban))
        .route("/revoke", post(act::revoke))
        .route("/message", post(act::message))
        .route("/request", post(act::request))
        .route("/end", post(act::end))
        .route("/copy-journal", post(save::save))
        // The earlier name.
        .route("/save", post(save::save))
        .route("/save-game", post(save::save_game))
        .route("/release", post(act::release))
        .method_not_allowed_fallback(wrong_method)
        .with_state(admin);
    (open, guarded)
}

const REQUESTS: &str = "no such request; expected GET /livez, /readyz, /metrics, /matches, /matches/ID or /bans, or POST /kick, \
                        /ban, /unban, /revoke, /message, /request, /end, /copy-journal, /save-game or /release\n";

async fn unknown() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, REQUESTS)
}

async fn wrong_method() -> (StatusCode, &'static str) {
    (StatusCode::METHOD_NOT_ALLOWED, REQUESTS)
}
