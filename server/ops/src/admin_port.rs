//! The HTTP side of the admin port: access, time-outs and the number of connections.
//!
//! Invariant: a connection occupies one of [`CONNECTIONS_MAX`] slots for at most [`REQUEST_PATIENCE`]. When all slots
//! are taken, the oldest connection without a request is closed, so the port responds even if many connections are
//! idle.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use twinstep_udp::{TicketKey, TicketKeyError};

use twinstep_host::internal::load_secret;
use twinstep_protocol::text::line;

const HEAD_PATIENCE: Duration = Duration::from_secs(2);
/// The time-out for a whole request and its response; releasing a match takes the longest.
const REQUEST_PATIENCE: Duration = Duration::from_secs(15);
const CONNECTIONS_MAX: usize = 64;
/// The size limit of a request's header, and of its body.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// The pause after a failed accept: the process may have no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(super) struct AdminToken(String);

impl AdminToken {
    /// Reads the token's file, which is a separate key file. Creates the file if it does not exist.
    pub(super) fn load_or_make(path: &Path) -> Result<AdminToken, TicketKeyError> {
        if !path.exists() {
            match TicketKey::generate().save(path) {
                // Another process of this machine was faster.
                Ok(()) | Err(TicketKeyError::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        AdminToken::load(path)
    }

    pub(super) fn load(path: &Path) -> Result<AdminToken, TicketKeyError> {
        // The token file is a key file, so it is checked as one.
        load_secret(path)?;
        let text = std::fs::read_to_string(path).map_err(|source| TicketKeyError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let last = text.lines().last().unwrap_or_default();
        Ok(AdminToken(last.trim().to_owned()))
    }

    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns `true` if a request has the token. Takes the same time for every header of the same length.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let expected = self.header();
        let given = headers.get(header::AUTHORIZATION);
        let given = given.map(|value| value.as_bytes()).unwrap_or_default();
        // There is no early exit, because the time must not reveal how much of the token matches.
        let pairs = given.iter().zip(expected.as_bytes());
        let differs = pairs.fold(0, |differs, (a, b)| differs | (a ^ b));
        given.len() == expected.len() && differs == 0
    }
}

struct Connection {
    task: JoinHandle<()>,
    asked: Arc<AtomicBool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn guard(router: Router, token: Option<LiveToken>) -> Router {
    router.route_layer(middleware::from_fn_with_state(token, only_who_may))
}

#[derive(Clone)]
pub(super) struct LiveToken(Arc<Mutex<AdminToken>>);

impl LiveToken {
    pub(super) fn new(token: AdminToken) -> LiveToken {
        LiveToken(Arc::new(Mutex::new(token)))
    }

    /// Returns `true` if the new token differs from the old one.
    pub(super) fn replace(&self, token: AdminToken) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = known.0 != token.0;
        *known = token;
        is_new
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_in(headers)
    }
}

pub(super) trait Accept {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> std::io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

#[cfg(unix)]
impl Accept for tokio::net::UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn next(&self) -> std::io::Result<tokio::net::UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

/// Restricts routes to this machine, and refuses browsers, because a web page could send requests.
pub(super) fn on_loopback(router: Router) -> Router {
    router.layer(middleware::from_fn(only_this_machine))
}

pub(super) async fn serve(listener: impl Accept, router: Router) {
    let router = router.layer(middleware::from_fn(only_short_text));
    let mut open: VecDeque<Connection> = VecDeque::new();
    loop {
        let Ok(stream) = listener.next().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        open.retain(|connection| !connection.task.is_finished());
        if open.len() == CONNECTIONS_MAX {
            let idle = |connection: &Connection| !connection.asked.load(Ordering::Relaxed);
            match open.iter().position(idle) {
                Some(oldest) => drop(open.remove(oldest)),
                // All connections have a request under way, so the new one is dropped.
                None => continue,
            }
        }
        let asked = Arc::new(AtomicBool::new(false));
        let router = router
            .clone()
            .layer(middleware::from_fn_with_state(asked.clone(), mark_answered));
        let task = tokio::spawn(answer(stream, router));
        open.push_back(Connection { task, asked });
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // An error concerns the client only.
    let _ = tokio::time::timeout(REQUEST_PATIENCE, connection).await;
}

async fn only_short_text(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, REQUEST_BYTES_MAX).await else {
        let message = format!("expected a body of at most {REQUEST_BYTES_MAX} bytes, got more\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, message).into_response();
    };
    if std::str::from_utf8(&body).is_err() {
        return (StatusCode::BAD_REQUEST, "expected a body in UTF-8\n").into_response();
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}

async fn mark_answered(
    State(asked): State<Arc<AtomicBool>>,
    request: Request,
    next: Next,
) -> Response {
    asked.store(true, Ordering::Relaxed);
    next.run(request).await
}

/// Accepts requests from this machine only. A web page sends its origin; a page whose host name was
/// pointed at this machine (DNS rebinding) sends that name as the host.
async fn only_this_machine(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return (
            StatusCode::FORBIDDEN,
            "requests from web pages are refused (header Origin)\n",
        )
            .into_response();
    }
    let host = request.headers().get(header::HOST);
    if !host
        .and_then(|host| host.to_str().ok())
        .is_some_and(is_local)
    {
        let got = host.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        let got = got.map_or_else(
            || "none".to_owned(),
            |host| format!("{:?}", line(&host).at_most(100)),
        );
        let message =
            format!("expected the header Host to be localhost or a loopback address, got {got}\n");
        return (StatusCode::FORBIDDEN, message).into_response();
    }
    next.run(request).await
}

fn is_local(host: &str) -> bool {
    let port_at = host.rfind(':').filter(|at| {
        let port = &host[at + 1..];
        !host.ends_with(']') && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let name = &host[..port_at.unwrap_or(host.len())];
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

/// Requires the token for changes and for lists of players.
async fn only_who_may(
    State(token): State<Option<LiveToken>>,
    request: Request,
    next: Next,
) -> Response {
    match token {
        Some(token) if token.is_in(request.headers()) => next.run(request).await,
        Some(_) => {
            let message = "missing or wrong token: send the header `Authorization: Bearer TOKEN`, where TOKEN is the last line of this server's admin token file\n";
            (StatusCode::UNAUTHORIZED, message).into_response()
        }
        None => {
            let message = "this server has no admin token file, so changes and lists of players are refused here; start the server with one\n";
            (StatusCode::FORBIDDEN, message).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: two servers started together; one read the half-written file of the other and did not start.
    #[test]
    fn servers_started_together_have_the_same_token() {
        let folder = std::env::temp_dir().join(format!("twinstep-tokens-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for n in 0..100 {
            let path = folder.join(n.to_string());
            let load = || AdminToken::load_or_make(&path).unwrap().0;
            let tokens: Vec<String> = std::thread::scope(|scope| {
                let loaded: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
                loaded.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(tokens.iter().all(|token| *token == tokens[0]), "round {n}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7700",
            "127.8.9.1:1",
            "[::1]",
            "[::1]:7700",
            "localhost",
            "LocalHost:80",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "x",
            "example.org:7700",
            "127.0.0.1.example.org",
            "0.0.0.0:1",
            "10.0.0.1",
            "localhost.example.org",
            "[::2]:80",
            ":80",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
