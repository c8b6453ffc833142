//! [`HostConfig`]: a host's addresses, keys and files; [`HostError`]: the reason why it cannot start.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_udp::{
    LineageFileError, ServerAddress, ServerConfig, ServerConfigError, TicketKey, TicketLedger,
};

use super::clock::unix_now;
use super::journal_file::JournalFileError;
use super::load_monitor::Limits;
use super::logged;
use super::observer::{AdmissionPolicy, Observer};
use super::save_file::SaveFileError;
use super::web::WebConfig;
use twinstep_server::MatchStartError;

/// The default time until a restarted server continues its matches.
pub(crate) const BACK_AFTER: Duration = Duration::from_secs(5);

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The game's id, [`Simulation::NAME`](twinstep_core::Simulation::NAME): tickets of other games are refused.
    pub game: String,
    /// The address of the socket; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The addresses that tickets name and players dial, if not `listen` (behind NAT, or bound to every address).
    pub public: Vec<ServerAddress>,
    /// If set, browsers can join too. Needs the feature `web`.
    pub web: Option<WebConfig>,
    /// One or two keys. Tickets sealed with any of them are accepted; the first seals new ones.
    pub keys: Vec<TicketKey>,
    /// The file that records outdated and revoked tickets, usually next to the key file. Needed if a key outlives a
    /// match's journal.
    pub lineages_file: Option<PathBuf>,
    /// The folder of incident files. If `None`, they are written next to the match's journal; without a journal,
    /// incidents are only logged.
    pub incidents: Option<PathBuf>,
    /// The folder for matches that players [ask to save](twinstep_server::MatchRequest::Save); created with the first
    /// one. Match 1 has the file `match-1.save` there, and each of its saves replaces that file. The file of an earlier
    /// match 1 is kept as `match-1.1.save`, `match-1.2.save` and so on. If `None`, such requests are refused.
    pub saves: Option<PathBuf>,
    /// The time until the next process continues a match that is kept at a [`shutdown`](super::Host::shutdown). Clients
    /// receive it in whole seconds.
    pub back_after: Duration,
    /// The time for which matches may continue after the process was asked to end. Then they are kept or ended: see
    /// [`Host::drain`](super::Host::drain). Default: zero.
    pub drain_within: Duration,
    /// The maximum number of sessions over all matches, at most [`twinstep_udp::SESSIONS_MAX`]. If `None`, 64. For a
    /// [`Server`](super::Server), twice the number of players and spectators, so that a reconnecting player need not
    /// wait until its old session times out.
    pub sessions_max: Option<usize>,
    /// The limits beyond which load is shed and newcomers are refused: see [`Limits`].
    pub limits: Limits,
    /// Keeps a stop signal (Ctrl-C, SIGTERM) that arrives while a server on its own threads starts, and handles it once
    /// the server runs.
    pub heeds_stop: bool,
    /// Observes the host, for metrics.
    pub observer: Arc<dyn Observer>,
    /// Decides which identities may connect.
    pub admissions: Arc<dyn AdmissionPolicy>,
}

const SESSIONS: usize = 64;

impl HostConfig {
    /// A configuration with 64 sessions, no files, and this key.
    #[must_use]
    pub fn new(game: &str, listen: SocketAddr, key: TicketKey) -> HostConfig {
        HostConfig {
            game: game.to_owned(),
            listen,
            public: Vec::new(),
            web: None,
            keys: vec![key],
            lineages_file: None,
            incidents: None,
            saves: None,
            back_after: BACK_AFTER,
            drain_within: Duration::ZERO,
            sessions_max: None,
            limits: Limits::default(),
            heeds_stop: false,
            observer: Arc::new(()),
            admissions: Arc::new(()),
        }
    }

    pub(super) fn check(&self) -> Result<(), HostError> {
        let public = public_of(self.listen, self.public.clone());
        let ledger = TicketLedger::new(Duration::ZERO, unix_now());
        twinstep_udp::ServerEndpoint::new(self.endpoint(&public, ledger), Duration::ZERO)?;
        match &self.web {
            Some(web) => web.check().map_err(|source| HostError::Web {
                address: web.listen,
                source,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn endpoint<'a>(
        &'a self,
        public: &'a [ServerAddress],
        tickets: TicketLedger,
    ) -> ServerConfig<'a> {
        ServerConfig {
            keys: &self.keys,
            public_addresses: public,
            sessions_max: self.sessions_max.unwrap_or(SESSIONS),
            game: &self.game,
            wire_version: u32::from(WIRE_VERSION),
            tickets,
        }
    }
}

/// The reason why a host, or a match on it, cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum HostError {
    #[error(
        "cannot listen on {address}: another program uses this port; stop it, or choose another address (port 0 \
         takes a free one)"
    )]
    PortInUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}; choose an address of this machine")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error(
        "cannot listen for browsers on {address}: {source}{}",
        web_advice(source)
    )]
    Web {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("expected IP:PORT to listen on, such as 127.0.0.1:7777, got {got:?}")]
    Address { got: String },
    #[error(transparent)]
    Config(#[from] ServerConfigError),
    #[error(transparent)]
    Lineages(#[from] LineageFileError),
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    #[error(transparent)]
    Match(#[from] MatchStartError),
    #[error(transparent)]
    Save(#[from] SaveFileError),
    #[error(
        "expected a match id that is not in use, got {0}, which runs here already; choose another id"
    )]
    MatchExists(MatchId),
    #[error("the host was shut down; start another one")]
    Stopped,
    #[error(
        "cannot start the server's threads or signal handlers: {0}; check the thread limit (TasksMax)"
    )]
    Threads(std::io::Error),
}

fn web_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        // The error of a bad certificate names its own flag.
        std::io::ErrorKind::InvalidData => "",
        _ => "; choose another address with --web",
    }
}

pub(super) fn bind(listen: SocketAddr) -> Result<std::net::UdpSocket, HostError> {
    bind_both(listen).map_err(|source| {
        if source.kind() == std::io::ErrorKind::AddrInUse {
            HostError::PortInUse { address: listen }
        } else {
            HostError::Listen {
                address: listen,
                source,
            }
        }
    })
}

/// Binds a socket. At `[::]` it receives IPv4 and IPv6 if the system can, whatever the system's default.
fn bind_both(listen: SocketAddr) -> std::io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(listen), Type::DGRAM, None)?;
    accept_both_families(&socket, listen);
    socket.bind(&listen.into())?;
    Ok(socket.into())
}

/// Lets a socket that is to listen at `[::]` also receive IPv4.
pub(super) fn accept_both_families(socket: &Socket, listen: SocketAddr) {
    if listen.is_ipv6()
        && listen.ip().is_unspecified()
        && let Err(error) = socket.set_only_v6(false)
    {
        logged::warn!(%error, "listening on IPv6 only: this system cannot receive IPv4 on the same socket; IPv4 players need a second server");
    }
}

/// The desired size of the socket's buffers: about 40 ms of traffic for 2,000 players at 60 Hz. Linux counts about 800
/// bytes for a small datagram.
const HELD_BYTES: usize = 4 << 20;

/// Enlarges the socket's buffers, and logs if they stay small, because datagrams are lost when a buffer is full.
pub(super) fn make_room(socket: &std::net::UdpSocket) {
    let socket = socket2::SockRef::from(socket);
    // The system may grant less; Linux reports twice the granted size.
    let _ = socket.set_recv_buffer_size(HELD_BYTES);
    let _ = socket.set_send_buffer_size(HELD_BYTES);
    match socket.recv_buffer_size() {
        Ok(bytes) if bytes >= HELD_BYTES => {}
        Ok(bytes) => logged::info!(
            bytes,
            wanted_bytes = HELD_BYTES,
            "the socket's receive buffer is small: 2,000 players need 4 MiB; on Linux: `sysctl -w net.core.rmem_max=4194304`, then restart this server"
        ),
        Err(error) => logged::warn!(%error, "cannot read the size of the socket's receive buffer"),
    }
}

pub(super) fn public_of(bound: SocketAddr, configured: Vec<ServerAddress>) -> Vec<ServerAddress> {
    match configured.is_empty() {
        false => configured,
        true => guess_public(bound).into_iter().map(Into::into).collect(),
    }
}

/// The addresses to dial if none is configured: the bound one, after loopback if the socket is bound to every address.
fn guess_public(bound: SocketAddr) -> Vec<SocketAddr> {
    let loopback: IpAddr = match bound.ip() {
        ip if !ip.is_unspecified() => return vec![bound],
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    logged::warn!(
        address = %bound,
        "no public address: tickets name this machine's loopback address, so only players on this machine can join; set --public"
    );
    vec![SocketAddr::new(loopback, bound.port()), bound]
}
