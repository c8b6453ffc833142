//! The admin port: what an operator asks of this server. On loopback, or at a Unix socket.
//!
//! ```text
//!  GET  /livez           200 while the I/O loop beats and matches are run, else 503
//!  GET  /readyz          200 while newcomers find a place here, else 503 and why not
//!  GET  /metrics         what was counted, in Prometheus' text format 0.0.4
//!  GET  /matches         [{ id, players, spectators, tick, lateness_ms }]
//!
//!  with the token (`host/admin/act.rs`); fields in the query, or in a JSON object as the body:
//!  GET  /matches/ID      { id, people: [{ seat, identity, name, state, connected, since_s, margin_ticks, round_trip_ms }] }
//!  POST /kick            match, identity                       out of that match, until it ends
//!  POST /ban             identity, for_s | until_unix_s, reason   out of all, whatever ticket; without an end: for good
//!  POST /unban           identity                              lets in again who was banned or kicked
//!  GET  /bans            [{ identity, since_unix_s, until_unix_s, reason }]
//!  POST /revoke          identity, match?                      its tickets so far are worthless
//!  POST /message         words; match                          all who are there read it
//!  POST /end             match, words                          ends a match, for good; the words stand in its journal
//!  POST /save            match                                 copies its journal; says where to
//!  POST /release         match                                 ends a match here; another server resumes its journal
//! ```
//!
//! 400 says what was expected and what came, 401 and 403 that the token is missing, 404 who or what is not here, 503 that a
//! match does not answer.
//!
//! Invariant: whoever is not on this machine reaches nothing of this (`host/admin_port.rs`), and who has not the token
//! changes nothing, and learns of nobody by name. A Unix socket is its owner's alone: who can open it needs no token.

use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
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

/// Binds the admin port.
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

/// Serves a bound admin port until its task is aborted; where it listens. Without a token nothing can be changed.
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
    logged::info!(address = %bound, "admin port");
    Ok((bound, tokio::spawn(admin_port::serve(listener, router))))
}

/// A Unix socket that is bound, and not served yet.
pub(super) struct BoundSocket {
    #[cfg(unix)]
    bound: (std::os::unix::net::UnixListener, AdminSocket),
    #[cfg(unix)]
    path: std::path::PathBuf,
}

/// Binds a Unix socket.
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

/// Serves a Unix socket until its task is aborted. Who can open it may do everything.
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
    logged::info!(path = %path.display(), "admin socket");
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

/// A Unix socket that is served; dropped, it is no more.
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

/// What anybody on this machine may ask, and what needs a token.
fn routes(admin: Admin) -> (Router, Router) {
    let open = Router::new()
        .route("/livez", get(look::livez))
        .route("/readyz", get(look::readyz))
        .route("/metrics", get(look::metrics))
        .route("/matches", get(look::list))
        .with_state(admin.clone());
    let guarded = Router::new()
        .route("/matches/{id}", get(act::people))
        .route("/bans", get(act::bans))
        .route("/kick", post(act::kick))
        .route("/ban", post(act::ban))
        .route("/unban", post(act::unban))
        .route("/revoke", post(act::revoke))
        .route("/message", post(act::message))
        .route("/end", post(act::end))
        .route("/save", post(save::save))
        .route("/release", post(act::release))
        .with_state(admin);
    (open, guarded)
}
