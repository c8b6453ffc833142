//! The HTTP side of the admin port: who is listened to, for how long, and how many at once.
//!
//! Invariant: whoever connects costs at most [`REQUEST_PATIENCE`] of one of [`CONNECTIONS_MAX`] places, whatever it sends
//! or does not send; and when all are taken, the oldest one that has not asked anything yet gives way, so that the port
//! answers however many do nothing.

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

/// The head of a request must be here so soon.
const HEAD_PATIENCE: Duration = Duration::from_secs(2);
/// A whole request and its answer take at most so long; releasing a match is the longest.
const REQUEST_PATIENCE: Duration = Duration::from_secs(15);
/// Connections at once.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of a request's head, and of its body.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// The pause after a connection could not be accepted: there may be no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The secret of whoever may change something through an admin port.
#[derive(Clone)]
pub(super) struct AdminToken(String);

impl AdminToken {
    /// Reads the token's file, which is a key file of its own; it is made if it is not there.
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

    /// Reads the token's file, which must be there.
    pub(super) fn load(path: &Path) -> Result<AdminToken, TicketKeyError> {
        // Its own rules say whether it is sound, and nobody else's.
        load_secret(path)?;
        let text = std::fs::read_to_string(path).map_err(|source| TicketKeyError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let last = text.lines().last().unwrap_or_default();
        Ok(AdminToken(last.trim().to_owned()))
    }

    /// As a header of a request.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether a request has it; takes as long whatever it has.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let expected = self.header();
        let given = headers.get(header::AUTHORIZATION);
        let given = given.map(|value| value.as_bytes()).unwrap_or_default();
        let pairs = given.iter().zip(expected.as_bytes());
        let differs = pairs.fold(0, |differs, (a, b)| differs | (a ^ b));
        given.len() == expected.len() && differs == 0
    }
}

struct Connection {
    task: JoinHandle<()>,
    /// Its request was heard.
    asked: Arc<AtomicBool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Routes for whoever has the token.
pub(super) fn guard(router: Router, token: Option<LiveToken>) -> Router {
    router.route_layer(middleware::from_fn_with_state(token, only_who_may))
}

/// The token that is good now. Clones share it.
#[derive(Clone)]
pub(super) struct LiveToken(Arc<Mutex<AdminToken>>);

impl LiveToken {
    pub(super) fn new(token: AdminToken) -> LiveToken {
        LiveToken(Arc::new(Mutex::new(token)))
    }

    /// Whether the new one is another one.
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

/// Where connections come from.
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

/// Routes for this machine alone: a browser on it could be made to ask.
pub(super) fn on_loopback(router: Router) -> Router {
    router.layer(middleware::from_fn(only_this_machine))
}

/// Answers requests until it is dropped.
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

/// One request of one connection.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Whatever goes wrong is the asker's own matter.
    let _ = tokio::time::timeout(REQUEST_PATIENCE, connection).await;
}

/// What is longer or no text is refused in words of ours, whoever would read it.
async fn only_short_text(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, REQUEST_BYTES_MAX).await else {
        let said = format!("expected a body of at most {REQUEST_BYTES_MAX} bytes, got more\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, said).into_response();
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

/// A web page names its origin; one whose name was made to lead here (DNS rebinding) names that as the host.
async fn only_this_machine(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "not for web pages\n").into_response();
    }
    let host = request.headers().get(header::HOST);
    if !host
        .and_then(|host| host.to_str().ok())
        .is_some_and(is_local)
    {
        let said = "expected a loopback address or localhost as the Host of the request\n";
        return (StatusCode::FORBIDDEN, said).into_response();
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

/// Who changes something, or asks who is there, needs the token.
async fn only_who_may(
    State(token): State<Option<LiveToken>>,
    request: Request,
    next: Next,
) -> Response {
    match token {
        Some(token) if token.is_in(request.headers()) => next.run(request).await,
        Some(_) => {
            let said = "expected the header `Authorization: Bearer TOKEN`: the last line of this server's admin token file\n";
            (StatusCode::UNAUTHORIZED, said).into_response()
        }
        None => {
            let said = "this server has no admin token file, so nothing can be changed here, and nobody is named; start it with one\n";
            (StatusCode::FORBIDDEN, said).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two servers that started together, one read the half file of the other and did not start.
    #[test]
    fn servers_that_start_at_once_have_the_same_token() {
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
