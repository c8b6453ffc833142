//! [`Sidecar`]: a client of a fleet manager's sidecar, over HTTP on loopback. Each request has its own connection, and
//! a time-out.
//!
//! Requests use HTTP/1.0, so that a response ends with its connection, and is never chunked.
//!
//! Invariant: even if the sidecar misbehaves, a request takes at most [`ASK_PATIENCE`], and a response at most
//! [`ANSWER_BYTES_MAX`].

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use twinstep_protocol::text::line;

use twinstep_host::internal::HostClock;

const ASK_PATIENCE: Duration = Duration::from_secs(2);
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(500);
/// The stream is opened again if no report arrives for this long.
const NEWS_PATIENCE: Duration = Duration::from_secs(30);
/// The size limit for a response or a report.
const ANSWER_BYTES_MAX: u64 = 256 << 10;
const PORT: u16 = 9_358;
const PORT_VARIABLE: &str = "AGONES_SDK_HTTP_PORT";

/// The address of a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sidecar(SocketAddr);

/// The reason why a request to a sidecar failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SidecarError {
    #[error("environment variable {PORT_VARIABLE}: expected a port, got {:?}", line(.0))]
    Port(String),
    #[error(
        "Agones' sidecar at {0} does not answer: {1}; is this pod part of an Agones fleet? Without one: --fleet none"
    )]
    Gone(SocketAddr, std::io::Error),
    #[error("Agones' sidecar at {} did not answer within {} s; is this pod part of an Agones fleet? Without one: --fleet none", .0, ASK_PATIENCE.as_secs())]
    Slow(SocketAddr),
    #[error(
        "Agones' sidecar refused {path} with HTTP status {status}; for a counter: declare it in the Fleet"
    )]
    Refused { path: String, status: u16 },
    #[error(
        "unexpected answer from Agones' sidecar to {path}: check that {PORT_VARIABLE} is its port"
    )]
    Garbage { path: String },
    #[error(
        "Agones has given no address yet that players can dial (GameServer state {:?}, address {:?}): check the Fleet's `ports`, \
         and whether this pod can look up that address",
        line(.state),
        line(.address)
    )]
    NoAddress { state: String, address: String },
}

/// The state of this server, as seen by the fleet manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetNews {
    /// The state, such as `Ready` or `Allocated`.
    pub state: String,
    /// The address that players dial, which is an IP address or a name.
    pub address: String,
    /// The ports that players dial, with their names from the manifest.
    pub ports: Vec<(String, u16)>,
    /// Labels, including allocation labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations, including allocation annotations.
    pub annotations: BTreeMap<String, String>,
}

impl FleetNews {
    /// The address that players dial. Looks up a name, which may take seconds.
    fn dialled(&self) -> Option<SocketAddr> {
        let (_, port) = self.ports.first().filter(|(_, port)| *port != 0)?;
        let mut found = (self.address.as_str(), *port).to_socket_addrs().ok()?;
        found.next()
    }
}

#[derive(Deserialize)]
struct GameServer {
    #[serde(default)]
    object_meta: Meta,
    status: Status,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Status {
    state: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct Port {
    #[serde(default)]
    name: String,
    port: u16,
}

impl From<GameServer> for FleetNews {
    fn from(server: GameServer) -> FleetNews {
        let ports = server.status.ports.into_iter();
        FleetNews {
            state: server.status.state,
            address: server.status.address,
            ports: ports.map(|port| (port.name, port.port)).collect(),
            labels: server.object_meta.labels,
            annotations: server.object_meta.annotations,
        }
    }
}

#[derive(Deserialize)]
struct NewsLine {
    result: GameServer,
}

impl Sidecar {
    /// A sidecar at this address, which must be on loopback.
    #[must_use]
    pub fn at(address: SocketAddr) -> Sidecar {
        Sidecar(address)
    }

    /// Agones' sidecar on this machine: at the port in the environment, or else 9358.
    ///
    /// # Errors
    /// [`SidecarError::Port`] if the port in the environment is not valid.
    pub fn agones() -> Result<Sidecar, SidecarError> {
        let port = match std::env::var(PORT_VARIABLE) {
            Err(_) => PORT,
            Ok(text) => text.parse().map_err(|_| SidecarError::Port(text))?,
        };
        Ok(Sidecar((Ipv4Addr::LOCALHOST, port).into()))
    }

    /// Waits for the address that players dial.
    ///
    /// # Errors
    /// If no address is known within `patience`. Returns the last error.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn where_dialled(self, patience: Duration) -> Result<SocketAddr, SidecarError> {
        // There is no host yet whose clock could be used.
        let clock = HostClock::start();
        loop {
            let error = match self.game_server().await {
                Ok(news) => {
                    let (state, address) = (news.state.clone(), news.address.clone());
                    // The operating system's name lookup blocks.
                    let found = tokio::task::spawn_blocking(move || news.dialled()).await;
                    match found.ok().flatten() {
                        Some(address) => return Ok(address),
                        None => SidecarError::NoAddress { state, address },
                    }
                }
                Err(error) => error,
            };
            if clock.now() >= patience {
                return Err(error);
            }
            sleep(ASK_AGAIN).await;
        }
    }

    pub(super) async fn post(self, path: &str) -> Result<(), SidecarError> {
        self.ask("POST", path, "{}").await.map(drop)
    }

    pub(super) async fn label(self, key: &str, value: &str) -> Result<(), SidecarError> {
        let body = serde_json::json!({ "key": key, "value": value });
        let path = "/metadata/label";
        self.ask("PUT", path, &body.to_string()).await.map(drop)
    }

    pub(super) async fn annotate(self, key: &str, value: &str) -> Result<(), SidecarError> {
        let body = serde_json::json!({ "key": key, "value": value });
        let path = "/metadata/annotation";
        self.ask("PUT", path, &body.to_string()).await.map(drop)
    }

    /// Sets a counter. The interface encodes 64-bit numbers as text.
    pub(super) async fn count(
        self,
        name: &str,
        count: u64,
        capacity: u64,
    ) -> Result<(), SidecarError> {
        let body =
            serde_json::json!({ "count": count.to_string(), "capacity": capacity.to_string() });
        let path = format!("/v1beta1/counters/{name}");
        self.ask("PATCH", &path, &body.to_string()).await.map(drop)
    }

    pub(super) async fn game_server(self) -> Result<FleetNews, SidecarError> {
        let path = "/gameserver";
        let body = self.ask("GET", path, "").await?;
        Ok(read::<GameServer>(path, &body)?.into())
    }

    /// Receives changes, until the sidecar closes the stream, is silent for too long, or sends a malformed report.
    pub(super) async fn watch(self, mut handle: impl FnMut(FleetNews)) -> Result<(), SidecarError> {
        let path = "/watch/gameserver";
        let stream = within(ASK_PATIENCE, self, self.send("GET", path, "")).await?;
        let mut lines = BufReader::new(stream);
        let mut is_head = true;
        loop {
            let mut text = Vec::new();
            let mut limited = (&mut lines).take(ANSWER_BYTES_MAX);
            let read_line = limited.read_until(b'\n', &mut text);
            let bytes = within(NEWS_PATIENCE, self, read_line).await?;
            if bytes == 0 {
                return Ok(());
            }
            if text.last() != Some(&b'\n') {
                return Err(garbage(path));
            }
            let text = text.trim_ascii();
            if is_head {
                is_head = !text.is_empty();
                continue;
            }
            let text = std::str::from_utf8(text).map_err(|_| garbage(path))?;
            handle(read::<NewsLine>(path, text)?.result.into());
        }
    }

    async fn ask(self, method: &str, path: &str, body: &str) -> Result<String, SidecarError> {
        let answer = within(ASK_PATIENCE, self, async {
            let stream = self.send(method, path, body).await?;
            let mut answer = Vec::new();
            let mut limited = stream.take(ANSWER_BYTES_MAX);
            limited.read_to_end(&mut answer).await?;
            Ok(answer)
        })
        .await?;
        let answer = String::from_utf8(answer).map_err(|_| garbage(path))?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| garbage(path))?;
        let status = head.strip_prefix("HTTP/1.").and_then(|rest| {
            let word = rest.split(' ').nth(1)?;
            word.trim_end().parse::<u16>().ok()
        });
        match status {
            Some(200..=299) => Ok(body.to_owned()),
            Some(status) => Err(SidecarError::Refused {
                path: path.to_owned(),
                status,
            }),
            None => Err(garbage(path)),
        }
    }

    async fn send(self, method: &str, path: &str, body: &str) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.0).await?;
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.0,
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        Ok(stream)
    }
}

async fn within<T>(
    patience: Duration,
    sidecar: Sidecar,
    does: impl Future<Output = std::io::Result<T>>,
) -> Result<T, SidecarError> {
    match timeout(patience, does).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(SidecarError::Gone(sidecar.0, error)),
        Err(_) => Err(SidecarError::Slow(sidecar.0)),
    }
}

fn garbage(path: &str) -> SidecarError {
    SidecarError::Garbage {
        path: path.to_owned(),
    }
}

fn read<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, SidecarError> {
    // Fields of later versions are ignored.
    serde_json::from_str::<Value>(text)
        .and_then(serde_json::from_value)
        .map_err(|_| garbage(path))
}
