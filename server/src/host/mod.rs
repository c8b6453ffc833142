//! The host: many matches in one process over one UDP socket, on tokio. The edge of this crate, where the
//! clock is read and bytes meet the operating system.
//!
//! ```text
//!             one task                           one thread each
//!  socket ◀─▶ io: ServerEndpoint ── heard ─────▶ runner: Match 1 ──▶ journal file, jobs
//!                  ▲        └────── heard ─────▶ runner: Match 2 ──▶ journal file, jobs
//!                  └─────────────── told ◀────────────┴──┘
//! ```
//!
//! It only moves what the state machines give and take. Every channel is bounded, and who finds one full drops
//! what it holds, as a network would: no match ever waits for another one, nor for the socket. A match that
//! panics or hangs ends alone (`host/isolation.rs`).
//!
//! Law **Journal first**: a runner appends a match's journal bytes before it hands on any packet that follows
//! them, and a session is admitted only after its ticket was written down.

mod admin;
mod embed;
mod incidents;
mod io;
mod isolation;
mod jobs;
mod journal_file;
mod journal_folder;
mod rejoin;
mod runner;
mod signal;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use twinstep_core::Simulation;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_udp::{
    ConsumedError, ConsumedTickets, Key, ServerConfig, ServerConfigError, ServerEndpoint,
};

use crate::game::{Match, StartError};
use admin::{Beat, Known, Register};
use incidents::IncidentFiles;
use io::Told;
use isolation::Pulse;
use rejoin::RejoinTickets;
use runner::{Ends, Errand, Runner};

pub use admin::{AdminError, HandedOver, Taker, take_over};
pub use embed::{Running, Server};
pub use journal_file::{Durability, Journal, JournalFileError, OnJournalFailure, used_tickets};
pub use journal_folder::{JOURNAL_EXTENSION, LeftAlone, Unfinished, journals, newest_unfinished};
pub use signal::{StopSignal, stop_requested};

/// Packets and news that may wait for one match.
const HEARD_MAX: usize = 4_096;
/// Packets and orders that may wait for the I/O task.
const TOLD_MAX: usize = 16_384;
/// The part of a channel that packets leave free for what must not be lost.
const RESERVED: usize = 2_048;
/// Errands that may wait for one match.
const ERRANDS_MAX: usize = 16;
/// A shutdown waits this long for matches to end, and then as long for goodbyes to be heard.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

/// What a host starts from.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The game's id, [`Simulation::NAME`]: tickets of other games do not fit.
    pub game: String,
    /// Where the socket is bound; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What players dial and tickets name, if it is not `listen` (behind NAT, or bound to every address).
    pub public: Vec<SocketAddr>,
    /// One or two keys: tickets of each are good.
    pub keys: Vec<Key>,
    /// Where used tickets are written down, beside the key file. Needed wherever a key outlives the process.
    pub consumed_file: Option<PathBuf>,
    /// Ids of tickets that are known to be used, beyond those of the file: see [`used_tickets`].
    pub used_tickets: Vec<u64>,
    /// Where incident files go; without it, beside each match's journal.
    pub incidents: Option<PathBuf>,
    /// Sessions at once, over all matches, at most [`twinstep_udp::SESSIONS_MAX`].
    pub sessions_max: usize,
    /// Where operators and the next server process ask; an address on loopback.
    pub admin: Option<SocketAddr>,
}

impl HostConfig {
    /// 64 sessions, nothing remembered: for a key that lives as long as the process.
    #[must_use]
    pub fn new(game: &str, listen: SocketAddr, key: Key) -> HostConfig {
        HostConfig {
            game: game.to_owned(),
            listen,
            public: Vec::new(),
            keys: vec![key],
            consumed_file: None,
            used_tickets: Vec::new(),
            incidents: None,
            sessions_max: 64,
            admin: None,
        }
    }

    /// All of a start that can fail and stops nobody: asked before another process is made to stop.
    fn rehearse(&self, public: &[SocketAddr]) -> Result<(), HostError> {
        if let Some(path) = &self.consumed_file {
            ConsumedTickets::check(path)?;
        }
        ServerEndpoint::new(self.endpoint(public, Vec::new()), Duration::ZERO)?;
        Ok(())
    }

    fn endpoint<'a>(&'a self, public: &'a [SocketAddr], used: Vec<u64>) -> ServerConfig<'a> {
        ServerConfig {
            keys: &self.keys,
            public_addresses: public,
            sessions_max: self.sessions_max,
            game: &self.game,
            wire_version: u32::from(WIRE_VERSION),
            consumed: used,
            now_unix: unix_now(),
        }
    }
}

/// Why a host, or a match on it, could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The address is taken.
    #[error(
        "cannot listen on {address}: another program uses this port; stop it, or choose another address with \
         --listen (port 0 takes a free one)"
    )]
    PortInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be bound.
    #[error(
        "cannot listen on {address}: {source}; choose an address of this machine with --listen"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is not an address.
    #[error("expected an address to listen on, such as 127.0.0.1:7777, got {got:?}")]
    Address {
        /// What came.
        got: String,
    },
    /// The keys, the number of sessions or the addresses are out of range.
    #[error(transparent)]
    Config(#[from] ServerConfigError),
    /// The file of used tickets.
    #[error(transparent)]
    Consumed(#[from] ConsumedError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The match.
    #[error(transparent)]
    Match(#[from] StartError),
    /// The id is in use.
    #[error("expected a new match id, but match {0} runs here already; choose another id")]
    MatchExists(u64),
    /// The host was shut down.
    #[error("the host was shut down; start another one")]
    Stopped,
    /// The admin port, or what another process said through its own.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The other process has no such match.
    #[error("the server whose admin port is at {0} runs no match that could be taken over")]
    NothingToTakeOver(SocketAddr),
    /// No thread for the runtime.
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}

/// The match is over: nobody is there to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the match is over")]
pub struct MatchEnded;

/// Many matches over one socket. Made within a tokio runtime; [`Server`] brings its own.
pub struct Host {
    address: SocketAddr,
    public: Vec<SocketAddr>,
    key: Key,
    game: String,
    incidents: Option<PathBuf>,
    clock: Clock,
    told: mpsc::Sender<Told>,
    closing: watch::Sender<Option<CloseCode>>,
    matches: Mutex<BTreeMap<u64, JoinHandle<()>>>,
    /// The matches as the admin port sees them.
    register: Register,
    admin: Option<(SocketAddr, JoinHandle<()>)>,
    io: JoinHandle<()>,
}

impl Host {
    /// Binds the socket and starts the I/O task.
    ///
    /// # Errors
    /// An address that cannot be bound, a configuration out of range, or a damaged file of used tickets.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(config: HostConfig) -> Result<Host, HostError> {
        let socket = bind(config.listen)?;
        Host::start_on(socket, config).await
    }

    /// As [`start`](Host::start), on a socket that is bound already; `config.listen` is ignored.
    ///
    /// # Errors
    /// As [`start`](Host::start).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start_on(
        socket: std::net::UdpSocket,
        config: HostConfig,
    ) -> Result<Host, HostError> {
        let admin = config.admin.map(admin::bind).transpose()?;
        Host::start_bound(socket, admin, config).await
    }

    /// On sockets that are bound already; addresses of `config` are only told.
    async fn start_bound(
        socket: std::net::UdpSocket,
        admin: Option<std::net::TcpListener>,
        config: HostConfig,
    ) -> Result<Host, HostError> {
        let listen = config.listen;
        let failed = |source| HostError::Listen {
            address: listen,
            source,
        };
        let address = socket.local_addr().map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let socket = UdpSocket::from_std(socket).map_err(failed)?;
        let clock = Clock::start();
        let now_unix = unix_now();
        let public = public_of(address, config.public.clone());
        let mut used = config.used_tickets.clone();
        let consumed = match &config.consumed_file {
            None => None,
            Some(path) => {
                let file = ConsumedTickets::open(path, now_unix)?;
                used.extend(file.ids());
                Some(file)
            }
        };
        let endpoint = ServerEndpoint::new(config.endpoint(&public, used), clock.now())?;
        let (told, orders) = mpsc::channel(TOLD_MAX);
        let (beat, register) = (Arc::new(Beat::default()), Register::default());
        let admin = match config.admin.zip(admin) {
            None => None,
            Some((at, listener)) => Some(admin::start(
                listener,
                at,
                clock,
                beat.clone(),
                register.clone(),
            )?),
        };
        let io = io::start(
            socket,
            endpoint,
            clock,
            orders,
            told.clone(),
            consumed,
            beat,
        );
        tracing::info!(%address, ?public, sessions_max = config.sessions_max, "listening");
        Ok(Host {
            address,
            public,
            key: config.keys[0].clone(),
            game: config.game,
            incidents: config.incidents,
            clock,
            told,
            closing: watch::Sender::new(None),
            matches: Mutex::default(),
            register,
            admin,
            io: tokio::spawn(io),
        })
    }

    /// Where the socket is bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin port is, if there is one.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(address, _)| *address)
    }

    /// What tickets should name.
    #[must_use]
    pub fn public_addresses(&self) -> &[SocketAddr] {
        &self.public
    }

    /// Starts a match on a thread of its own; tickets that name `id` lead to it. `journal` is a new one, or the
    /// one that it was taken up from.
    ///
    /// # Errors
    /// The id runs here already, the journal cannot be begun, or the host was shut down.
    pub async fn add_match<S: Simulation>(
        &self,
        id: u64,
        mut game: Match<S>,
        journal: Option<Journal>,
    ) -> Result<MatchHandle<S>, HostError> {
        if self.closing.borrow().is_some() {
            return Err(HostError::Stopped);
        }
        if self.with_matches(|matches| matches.contains_key(&id)) {
            return Err(HostError::MatchExists(id));
        }
        if journal.as_ref().is_some_and(Journal::is_new) {
            game.keep_journal()?;
        }
        let path = journal.as_ref().map(|journal| journal.path().to_owned());
        let beside = path.as_ref().and_then(|path| path.parent());
        let files = IncidentFiles {
            id,
            folder: self.incidents.clone().or(beside.map(PathBuf::from)),
            journal: path,
            about: format!("{} version {}", S::NAME, S::VERSION),
        };
        let (hear, heard) = mpsc::channel(HEARD_MAX);
        let (send, errands) = mpsc::channel(ERRANDS_MAX);
        let opened = self.told.send(Told::Open(id, hear)).await;
        opened.map_err(|_| HostError::Stopped)?;
        let pulse = Arc::new(Pulse::default());
        let (move_to, moves) = mpsc::channel(1);
        let ends = Ends {
            clock: self.clock,
            heard,
            errands,
            told: self.told.clone(),
            closing: self.closing.subscribe(),
            pulse: pulse.clone(),
            moves,
        };
        let tickets = RejoinTickets {
            key: self.key.clone(),
            game: self.game.clone(),
            match_id: id,
            servers: self.public.clone(),
        };
        let tick = game.world().tick().0;
        let needs = Taker::new(&game.origin().1, game.config().players_max);
        let runner = Runner::new(id, game, journal, tickets, files.clone(), ends);
        let end = isolation::start(id, runner).map_err(HostError::Threads)?;
        let known = Known {
            pulse: pulse.clone(),
            moves: move_to,
            needs,
        };
        let register = &self.register;
        register
            .lock()
            .expect("nothing panics under this lock")
            .insert(id, known);
        let (over, is_over) = watch::channel(false);
        let watching = isolation::watch(id, end, pulse, files, self.told.clone(), over);
        let task = tokio::spawn(watching);
        self.with_matches(|matches| matches.insert(id, task));
        tracing::info!(id, tick, "match started");
        Ok(MatchHandle {
            errands: send,
            over: is_over,
        })
    }

    /// Ends all matches, tells every client why, waits a little for that to arrive, and closes the socket.
    /// Takes at most 4 s.
    pub async fn shutdown(self, code: CloseCode) {
        self.closing.send_replace(Some(code));
        let matches = self.with_matches(std::mem::take);
        let all_end = async {
            for (_, task) in matches {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(SHUTDOWN_PATIENCE, all_end)
            .await
            .is_err()
        {
            tracing::error!("a match did not end in time");
        }
        let _ = self.told.send(Told::Drain(code)).await;
        let abort = self.io.abort_handle();
        if tokio::time::timeout(SHUTDOWN_PATIENCE, self.io)
            .await
            .is_err()
        {
            abort.abort();
        }
        if let Some((_, admin)) = self.admin {
            admin.abort();
        }
        tracing::info!(reason = %code, "shut down");
    }

    fn with_matches<R>(&self, f: impl FnOnce(&mut BTreeMap<u64, JoinHandle<()>>) -> R) -> R {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, task| !task.is_finished());
        f(&mut matches)
    }
}

/// Reaches a running match from anywhere.
pub struct MatchHandle<S: Simulation> {
    errands: mpsc::Sender<Errand<S>>,
    over: watch::Receiver<bool>,
}

impl<S: Simulation> Clone for MatchHandle<S> {
    fn clone(&self) -> Self {
        MatchHandle {
            errands: self.errands.clone(),
            over: self.over.clone(),
        }
    }
}

impl<S: Simulation> MatchHandle<S> {
    /// Runs `look` on the match between two of its steps. It holds the match up, so it must be short; a panic
    /// in it ends the match.
    ///
    /// # Errors
    /// The match is over.
    pub async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Match<S>) -> R + Send + 'static,
    ) -> Result<R, MatchEnded> {
        let (answer, answered) = oneshot::channel();
        let errand: Errand<S> = Box::new(move |game| {
            let _ = answer.send(look(game));
        });
        let asked = async {
            self.errands.send(errand).await.map_err(|_| MatchEnded)?;
            answered.await.map_err(|_| MatchEnded)
        };
        let mut over = self.over.clone();
        tokio::select! {
            answer = asked => answer,
            // It stands still, and will never answer.
            _ = over.wait_for(|over| *over) => Err(MatchEnded),
        }
    }

    /// Whether the match is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.errands.is_closed() || *self.over.borrow()
    }
}

/// Binds the socket of a host.
fn bind(listen: SocketAddr) -> Result<std::net::UdpSocket, HostError> {
    std::net::UdpSocket::bind(listen).map_err(|source| {
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

/// What players dial.
fn public_of(bound: SocketAddr, said: Vec<SocketAddr>) -> Vec<SocketAddr> {
    match said.is_empty() {
        false => said,
        true => guess_public(bound),
    }
}

/// What to dial when nothing was said: the bound address, or this very machine if that is every address.
fn guess_public(bound: SocketAddr) -> Vec<SocketAddr> {
    let loopback: IpAddr = match bound.ip() {
        ip if !ip.is_unspecified() => return vec![bound],
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    tracing::warn!(
        %bound,
        "bound to every address without a public one: only players on this machine can join; give --public"
    );
    vec![SocketAddr::new(loopback, bound.port()), bound]
}

/// Time since the host started: the one clock of all its matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    fn start() -> Clock {
        Clock {
            began: Instant::now(),
        }
    }

    fn now(self) -> Duration {
        self.began.elapsed()
    }

    /// When it will be `due`, as tokio's timers want it.
    fn instant(self, due: Duration) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.began + due)
    }
}

/// The wall clock, for tickets only.
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
fn unix_now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
