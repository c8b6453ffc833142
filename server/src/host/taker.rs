//! What one server process says to another one that hands its matches over: see `host/admin.rs`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_core::packet::hello::Hello;

use super::admin::AdminError;
use super::admin_port::AdminToken;

/// How long the next process waits for an answer: clients get their tickets, and the journal its end, meanwhile.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// An answer is at most so large.
const ANSWER_BYTES_MAX: u64 = 64 * 1_024;

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

/// A match that another process was asked for, and keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its id.
    pub id: u64,
    /// Why, in its words.
    pub why: String,
}

/// What became of the matches of another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// Those that were handed over: somebody must take them up now.
    pub moved: Vec<HandedOver>,
    /// Those that play on where they are.
    pub stays: Vec<Kept>,
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
    /// The only match that it takes; `None`: all of them.
    #[serde(default)]
    pub only: Option<u64>,
    /// Where it can be asked from its own machine, if players dial it elsewhere (behind NAT).
    #[serde(default)]
    pub door: Option<SocketAddr>,
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
            only: None,
            door: None,
        }
    }

    /// It takes this match alone: others stay where they are.
    #[must_use]
    pub fn only(mut self, id: u64) -> Taker {
        self.only = Some(id);
        self
    }

    /// Why a match of this kind stays where it is; `None`: `other` can run it too.
    pub(super) fn refusal(&self, other: &Taker) -> Option<String> {
        let theirs = Taker {
            seats: self.seats,
            only: self.only,
            door: self.door,
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

/// Asks the process whose admin port is at `admin` to hand over its matches to a server at `to`, which must run already
/// (or be a [`Server`](super::Server) that takes over). `token` is the file that both processes have:
/// [`HostConfig::admin_token`](super::HostConfig::admin_token).
///
/// # Errors
/// It cannot be reached, or does not.
pub fn take_over(
    admin: SocketAddr,
    to: &[SocketAddr],
    taker: &Taker,
    token: &Path,
) -> Result<Drained, AdminError> {
    let token = AdminToken::load_or_make(token)?;
    let failed = |source| AdminError::Ask {
        address: admin,
        source,
    };
    let to: Vec<String> = to.iter().map(ToString::to_string).collect();
    let path = format!("/drain?to={}", to.join(","));
    let said = serde_json::to_string(taker).map_err(|error| failed(error.into()))?;
    let (status, body) = ask(admin, &path, &said, &token).map_err(failed)?;
    if status != 200 {
        return Err(AdminError::Refused {
            address: admin,
            said: body.trim().to_owned(),
        });
    }
    serde_json::from_str(&body).map_err(|error| failed(error.into()))
}

/// One request, as small as HTTP can be; its answer's status and body.
fn ask(
    address: SocketAddr,
    path: &str,
    body: &str,
    token: &AdminToken,
) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_PATIENCE)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    stream.set_write_timeout(Some(ANSWER_PATIENCE))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        token.header(),
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
