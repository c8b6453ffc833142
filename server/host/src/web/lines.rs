//! [`WebLines`]: the WebTransport sessions of browsers, and their datagrams.
//!
//! ```text
//!  dial ─▶ slots for strangers?  ─▶ handshake, at most 5 s ─▶ a task reads its datagrams ─▶ bounded channel ─▶ receive
//!               │ no: refused                                     └─ a stream: closed
//! ```
//!
//! Invariant: a silent connection is not kept alive. Sessions send several times a second, so their connections stay
//! open.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use twinstep_udp::{AddressPair, DATAGRAM_MAX, ServerAddress, WebAddress};
use wtransport::config::Ipv6DualStackConfig;
use wtransport::datagram::Datagram;
use wtransport::endpoint::IncomingSession;
use wtransport::endpoint::endpoint_side::Server;
use wtransport::quinn::TransportConfig;
use wtransport::{Connection, Endpoint, Identity, ServerConfig, VarInt};

use super::certificates::{Certificates, of_files, tls};
use super::strangers::{StrangerPlace, Strangers};
use super::{
    Heard, OnWebChange, TICKET_WITHIN, WebCertificate, WebConfig, WebTraffic, here, line_address,
};
use crate::clock::unix_now;
use crate::logged;

/// The maximum number of queued datagrams, over all connections. Excess datagrams are dropped, as on any network.
const CAME_MAX: usize = 4_096;
/// The maximum size of a connection's send queue in QUIC, which exceeds the burst of a join. QUIC drops the oldest
/// datagrams.
const LINE_OUT_BYTES: usize = 32 * 1_024;
const LINE_IN_BYTES: usize = 16 * 1_024;
/// The time-out for a handshake. A browser on a bad network needs 1.5 s for QUIC, TLS and HTTP/3.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// A silent connection is closed after this time, which is longer than a session is kept without a response.
const IDLE_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_secs(3_600);
/// The codes with which connections are closed; a page can read them.
const MUTE: u32 = 1;
const STREAM: u32 = 2;

enum FromLine {
    Line(SocketAddr, Connection, StrangerPlace),
    Datagram(SocketAddr, Datagram),
    Gone(SocketAddr),
}

struct Line {
    connection: Connection,
    /// The time since which the peer has had no session; at first, the start of the connection. `None` while the peer
    /// has a session, or is about to have one.
    known_at: Option<Duration>,
    /// The connection's slot among those without a ticket; released once the client presents a valid one.
    place: Option<StrangerPlace>,
}

#[derive(Default)]
struct Counters {
    lost: AtomicU64,
    refused: AtomicU64,
    streams: AtomicU64,
}

pub(crate) struct WebLines {
    lines: BTreeMap<SocketAddr, Line>,
    came: mpsc::Receiver<FromLine>,
    /// Taken from the channel to see whether it is empty.
    first: Option<FromLine>,
    rouses: bool,
    counters: Arc<Counters>,
    traffic: WebTraffic,
    accepting: JoinHandle<()>,
    renewing: JoinHandle<()>,
}

impl WebLines {
    /// Binds the address of `config`. Passes the address for tickets to `on_change`, now and after each change.
    ///
    /// # Errors
    /// If the address cannot be bound, or a certificate cannot be read or kept.
    pub(crate) async fn start(
        config: &WebConfig,
        public: &[ServerAddress],
        on_change: OnWebChange,
    ) -> io::Result<WebLines> {
        let mut shown = Shown::open(&config.certificate)?;
        let endpoint = Endpoint::server(shown.server(config.listen)?)?;
        let endpoint = Arc::new(endpoint);
        let address = endpoint.local_addr()?;
        let dialled = config.dialled(address, public);
        let tell = move |shown: &Shown| {
            let web = WebAddress::new(&dialled, &shown.hashes());
            // A host has at most as many addresses as fit into a ticket.
            web.map_err(io::Error::other).map(|web| {
                logged::info!(%address, public = %web, "accepting browsers");
                on_change(web);
            })
        };
        tell(&shown)?;
        let (came_in, came) = mpsc::channel(CAME_MAX);
        let counters = Arc::<Counters>::default();
        let dials = Dials {
            endpoint: endpoint.clone(),
            came: came_in,
            strangers: Strangers::default(),
            counters: counters.clone(),
        };
        let listen = config.listen;
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let looked = tokio::task::spawn_blocking(move || {
                    let changed = shown.renew();
                    (shown, changed)
                });
                let Ok((looked_at, changed)) = looked.await else {
                    return;
                };
                shown = looked_at;
                match changed {
                    Ok(false) => {}
                    Ok(true) => {
                        let renewed = shown.server(listen);
                        let renewed =
                            renewed.and_then(|config| endpoint.reload_config(config, false));
                        if let Err(error) = renewed.and_then(|()| tell(&shown)) {
                            logged::error!(%error, "cannot use the new certificate for browsers: the old one stays until it expires; restart the server");
                        }
                    }
                    Err(error) => {
                        logged::error!(%error, "cannot read the certificate for browsers: the old one stays in use until it expires; check --tls-cert and --tls-key; retrying in an hour");
                    }
                }
            }
        });
        Ok(WebLines {
            lines: BTreeMap::new(),
            came,
            first: None,
            rouses: true,
            counters,
            traffic: WebTraffic::default(),
            accepting: tokio::spawn(dials.accept()),
            renewing,
        })
    }

    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.rouses {
            return Poll::Pending;
        }
        if self.first.is_none() {
            self.first = match self.came.poll_recv(context) {
                Poll::Ready(came) => came,
                Poll::Pending => return Poll::Pending,
            };
        }
        // The channel may have ended.
        match self.first {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }

    pub(crate) fn rouse(&mut self, rouses: bool) {
        self.rouses = rouses;
    }

    /// Takes at most `at_most` entries from the channel, and passes datagrams and connection ends to `handle`. Returns
    /// the number of entries.
    pub(crate) fn receive(
        &mut self,
        now: Duration,
        at_most: usize,
        mut handle: impl FnMut(Heard<'_>),
    ) -> usize {
        let mut count = 0;
        while count < at_most {
            let first = self.first.take();
            let Some(came) = first.or_else(|| self.came.try_recv().ok()) else {
                break;
            };
            count += 1;
            match came {
                FromLine::Line(from, connection, place) => {
                    let line = Line {
                        connection,
                        known_at: Some(now),
                        place: Some(place),
                    };
                    self.lines.insert(from, line);
                }
                FromLine::Datagram(from, datagram) => {
                    self.traffic.datagrams_in += 1;
                    let path = AddressPair {
                        peer: from,
                        local: Some(here().ip()),
                    };
                    handle(Heard::Datagram(path, &datagram));
                }
                FromLine::Gone(from) => {
                    self.lines.remove(&from);
                    handle(Heard::Gone(from));
                }
            }
        }
        count
    }

    /// Sends a datagram. Returns `false` if it was lost.
    pub(crate) fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> bool {
        let Some(line) = self.lines.get(&to) else {
            // The last datagrams of a session whose connection is closed do not count as lost.
            return true;
        };
        let sent = line.connection.send_datagram(datagram).is_ok();
        self.traffic.datagrams_out += u64::from(sent);
        sent
    }

    /// Closes the connections that had no session for [`TICKET_WITHIN`]. `is_known` returns `true` for an address that
    /// has a session, or has shown a valid ticket.
    pub(crate) fn advance(&mut self, now: Duration, is_known: impl Fn(SocketAddr) -> bool) {
        self.lines.retain(|from, line| {
            if is_known(*from) {
                line.known_at = None;
                line.place = None;
                return true;
            }
            let since = *line.known_at.get_or_insert(now);
            let stays = now.saturating_sub(since) < TICKET_WITHIN;
            if !stays {
                self.traffic.mute += u64::from(line.place.is_some());
                line.connection
                    .close(VarInt::from_u32(MUTE), b"no valid ticket in time");
            }
            stays
        });
        self.traffic.lines = self.lines.len() as u64;
    }

    pub(crate) fn traffic(&self) -> WebTraffic {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WebTraffic {
            lost: load(&self.counters.lost),
            refused: load(&self.counters.refused),
            streams: load(&self.counters.streams),
            ..self.traffic
        }
    }
}

impl Drop for WebLines {
    fn drop(&mut self) {
        self.accepting.abort();
        self.renewing.abort();
    }
}

enum Shown {
    Made(Certificates, Option<PathBuf>),
    Files {
        chain: PathBuf,
        key: PathBuf,
        identity: Identity,
    },
}

impl Shown {
    fn open(certificate: &WebCertificate) -> io::Result<Shown> {
        match certificate {
            WebCertificate::Made { kept } => {
                let made = Certificates::open(kept.as_deref(), unix_now())?;
                Ok(Shown::Made(made, kept.clone()))
            }
            WebCertificate::Files { chain, key } => Ok(Shown::Files {
                identity: of_files(chain, key)?,
                chain: chain.clone(),
                key: key.clone(),
            }),
        }
    }

    /// Checks whether the certificate must be renewed. Returns `true` if anything changed.
    fn renew(&mut self) -> io::Result<bool> {
        match self {
            Shown::Made(made, kept) => {
                let (is_changed, saved) = made.renew(kept.as_deref(), unix_now());
                if let Err(error) = saved {
                    logged::error!(%error, "cannot save the certificates for browsers: after a restart, tickets made before it do not admit browsers; retrying in an hour");
                }
                Ok(is_changed)
            }
            Shown::Files {
                chain,
                key,
                identity,
            } => {
                let read = of_files(chain, key)?;
                let der = |of: &Identity| of.certificate_chain().as_slice()[0].der().to_vec();
                let is_changed = der(&read) != der(identity);
                *identity = read;
                Ok(is_changed)
            }
        }
    }

    fn hashes(&self) -> Vec<[u8; 32]> {
        match self {
            Shown::Made(made, _) => made.hashes(),
            Shown::Files { .. } => Vec::new(),
        }
    }

    fn server(&self, listen: SocketAddr) -> io::Result<ServerConfig> {
        let tls = match self {
            Shown::Made(made, _) => tls(&made.current())?,
            Shown::Files { identity, .. } => tls(identity)?,
        };
        let builder = ServerConfig::builder();
        let builder = match listen {
            SocketAddr::V4(_) => builder.with_bind_address(listen),
            SocketAddr::V6(at) if at.ip().is_unspecified() => {
                builder.with_bind_address_v6(at, Ipv6DualStackConfig::Allow)
            }
            SocketAddr::V6(at) => builder.with_bind_address_v6(at, Ipv6DualStackConfig::OsDefault),
        };
        let mut transport = TransportConfig::default();
        transport
            .datagram_send_buffer_size(LINE_OUT_BYTES)
            .datagram_receive_buffer_size(Some(LINE_IN_BYTES))
            // HTTP/3 needs one stream for the session, and three for itself. A page that opens more loses its
            // connection.
            .max_concurrent_bidi_streams(4_u8.into())
            .max_concurrent_uni_streams(8_u8.into())
            .stream_receive_window(4_096_u16.into())
            .receive_window(16_384_u16.into());
        let mut config = builder
            .with_custom_tls_and_transport(tls, transport)
            .max_idle_timeout(Some(IDLE_MAX))
            .expect("a time that QUIC can write")
            .build();
        config
            .quic_config_mut()
            .max_incoming(1_024)
            .incoming_buffer_size(16 * 1_024)
            .incoming_buffer_size_total(4 << 20);
        Ok(config)
    }
}

struct Dials {
    endpoint: Arc<Endpoint<Server>>,
    came: mpsc::Sender<FromLine>,
    strangers: Strangers,
    counters: Arc<Counters>,
}

impl Dials {
    async fn accept(self) {
        let mut n = 0;
        loop {
            let dial = self.endpoint.accept().await;
            if self.strangers.want_proof() && !dial.remote_address_validated() {
                dial.retry();
                continue;
            }
            let Some(place) = self.strangers.take(dial.remote_address().ip()) else {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                dial.refuse();
                continue;
            };
            n += 1;
            let (came, counters) = (self.came.clone(), self.counters.clone());
            tokio::spawn(line(dial, line_address(n), place, came, counters));
        }
    }
}

async fn line(
    dial: IncomingSession,
    from: SocketAddr,
    place: StrangerPlace,
    came: mpsc::Sender<FromLine>,
    counters: Arc<Counters>,
) {
    let handshake = async { dial.await.ok()?.accept().await.ok() };
    let Ok(Some(connection)) = tokio::time::timeout(HANDSHAKE_WITHIN, handshake).await else {
        return;
    };
    let begun = FromLine::Line(from, connection.clone(), place);
    if came.send(begun).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            datagram = connection.receive_datagram() => match datagram {
                Ok(datagram) if datagram.len() <= DATAGRAM_MAX => {
                    if came.try_send(FromLine::Datagram(from, datagram)).is_err() {
                        counters.lost.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            },
            stream = connection.accept_uni() => if refuse(&connection, &counters, stream.is_ok()) { break },
            stream = connection.accept_bi() => if refuse(&connection, &counters, stream.is_ok()) { break },
        }
    }
    // This waits for space, so other connections cannot prevent it.
    let _ = came.send(FromLine::Gone(from)).await;
}

/// If the page opened a stream, closes the connection. Returns `true`, because the connection is over.
fn refuse(connection: &Connection, counters: &Counters, is_stream: bool) -> bool {
    if is_stream {
        counters.streams.fetch_add(1, Ordering::Relaxed);
        connection.close(VarInt::from_u32(STREAM), b"datagrams only: no streams");
    }
    true
}
