//! [`Host`]: the matches of one process, from the first socket to the last goodbye.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{LineageFile, ServerAddress, ServerEndpoint};

use super::clock::HostClock;
use super::config::{HostConfig, HostError, bind, make_room, public_of};
use super::control::{Drains, HostControl};
use super::demand::{Demand, Making};
use super::handle::MatchHandle;
use super::io::{self, Around, ToIo};
use super::isolation::Lost;
use super::journal_file::Journal;
use super::lineages::LineageKeeper;
use super::listener::Listeners;
use super::load_monitor::LoadMonitor;
use super::logged;
use super::match_spawner::{Hosted, MatchSpawner};
use super::minting::MintingKey;
use super::pulse::Beat;
use super::register::Register;
use super::runner::Ending;
use super::thread_pool::{Limited, ThreadPool};
use super::udp_listener::UdpListener;
use super::workers::Workers;
use twinstep_server::Match;

/// Packets and orders that may wait for the I/O task.
const TO_IO_MAX: usize = 16_384;
/// A shutdown waits this long for matches to end, and as long again for goodbyes to arrive.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);
/// For each match it waits this much longer: 1,000 have 10 s. A supervisor should wait for longer than that.
const PATIENCE_PER_MATCH: Duration = Duration::from_millis(8);
/// Whether everybody has left a host that drains is looked at so often.
const DRAIN_LOOK: Duration = Duration::from_millis(100);

/// Many matches over one socket. Made within a tokio runtime; [`Server`](super::Server) brings its own.
///
/// Dropped, it ends at once and without a word to its clients: its matches stop as if the process had been killed, so a
/// journal can be taken up again, and the threads that ran them end a moment later.
pub struct Host {
    address: SocketAddr,
    spawner: Arc<MatchSpawner>,
    control: HostControl,
    io: JoinHandle<()>,
    measuring: JoinHandle<()>,
    drain_within: Duration,
    /// What makes matches on demand, if something does.
    pub(super) maker: Mutex<Option<Making>>,
}

impl Host {
    /// Binds the socket and starts the I/O task.
    ///
    /// # Errors
    /// An address that cannot be bound, a configuration out of range, or a damaged file of what is out of date.
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
        let listen = config.listen;
        let failed = |source| HostError::Listen {
            address: listen,
            source,
        };
        let address = socket.local_addr().map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        make_room(&socket);
        let socket = UdpSocket::from_std(socket).map_err(failed)?;
        let clock = HostClock::start();
        let public = public_of(address, config.public.clone());
        let endpoint = config.endpoint(&public);
        // Each field by name: one that is forgotten here is an error.
        let HostConfig {
            game,
            listen: _,
            public: _,
            keys,
            lineages_file,
            incidents,
            back_after,
            drain_within,
            sessions_max: _,
            limits,
            heeds_stop: _,
            observer,
            admissions,
        } = &config;
        let sessions_max = endpoint.sessions_max;
        let opened = lineages_file.as_ref().map(LineageFile::open);
        let lineages = LineageKeeper::start(opened.transpose()?);
        let endpoint = ServerEndpoint::new(endpoint, clock.now())?;
        let (to_io, orders) = mpsc::channel(TO_IO_MAX);
        let (beat, register) = (Arc::new(Beat::default()), Register::default());
        let (drains, demand, load_monitor) =
            (Drains::default(), Demand::default(), LoadMonitor::default());
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::new(address.port().to_string(), most, clock);
        let key = MintingKey::new(keys[0].clone());
        let control = HostControl {
            clock,
            beat: beat.clone(),
            matches: register.clone(),
            game: game.as_str().into(),
            sessions_max,
            drains: drains.clone(),
            to_io: to_io.clone(),
            demand: demand.clone(),
            lineages: lineages.clone(),
            load_monitor: load_monitor.clone(),
            minting: key.clone(),
        };
        let around = Around {
            beat,
            observer: observer.clone(),
            admissions: admissions.clone(),
            workers: workers.clone(),
            demand: demand.clone(),
        };
        let listener = UdpListener::new(socket, endpoint);
        let listeners = Listeners::new(vec![Box::new(listener)]);
        let io = io::start(listeners, clock, orders, around);
        logged::info!(%address, ?public, sessions_max, "listening");
        let measuring = load_monitor.clone();
        let measuring = measuring.measure(limits.clone(), register.clone(), clock);
        let pool = ThreadPool::new();
        let spawner = MatchSpawner {
            public,
            key,
            game: game.clone(),
            incidents: incidents.clone(),
            back_after: *back_after,
            clock,
            lineages,
            to_io,
            closing: watch::Sender::new(None),
            matches: Arc::default(),
            register,
            observer: observer.clone(),
            drains,
            demand,
            load_monitor,
            workers,
            encoders: Limited::new(pool.clone(), most),
            pool,
            lost: Lost::new(clock),
        };
        Ok(Host {
            address,
            spawner: Arc::new(spawner),
            control,
            io: tokio::spawn(io),
            measuring: tokio::spawn(measuring),
            drain_within: *drain_within,
            maker: Mutex::default(),
        })
    }

    /// Where the socket is bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What tickets should name.
    #[must_use]
    pub fn public_addresses(&self) -> &[ServerAddress] {
        &self.spawner.public
    }

    pub(super) fn spawner(&self) -> &Arc<MatchSpawner> {
        &self.spawner
    }

    /// What an operator's tools see of the host, and do with it.
    #[must_use]
    pub fn control(&self) -> HostControl {
        self.control.clone()
    }

    /// Starts a match; tickets that name `id` lead to it. `journal` is a new one, or the
    /// one that it was taken up from.
    ///
    /// # Errors
    /// The id runs here already, the journal cannot be begun, or the host was shut down.
    pub async fn add_match<S: Simulation>(
        &self,
        id: u64,
        match_: Match<S>,
        journal: Option<Journal>,
    ) -> Result<MatchHandle<S>, HostError> {
        self.spawner.add_match(id, match_, journal).await
    }

    /// Waits until nobody plays any more, at most for [`HostConfig::drain_within`]. From here on the host is not ready, makes no
    /// matches and lets no newcomer in; who has a seat may come back. What is left then ends with
    /// [`shutdown`](Host::shutdown).
    pub async fn drain(&self) {
        if self.drain_within.is_zero() {
            return;
        }
        self.spawner.drains.begin();
        self.spawner.load_monitor.begin_drain();
        logged::info!(within = ?self.drain_within, "draining: whoever plays may play on, nobody new is let in");
        let all_gone = async {
            while !self.spawner.is_deserted() {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        let in_time = tokio::time::timeout(self.drain_within, all_gone).await;
        logged::info!(everybody_left = in_time.is_ok(), "drained");
    }

    /// Ends all matches, tells every client why, waits a little for that to arrive, and closes the socket.
    /// Takes at most 4 s and 8 ms for each match.
    ///
    /// For [`Draining`](CloseCode::Draining) a match with a journal is kept: its last world stands there, the disk has
    /// it, it can be taken up again, and its clients hear when to come back ([`HostConfig::back_after`]). So do the clients
    /// of a match that does not end in time: its journal goes on as after a crash.
    pub async fn shutdown(mut self, code: CloseCode) {
        self.spawner.drains.begin();
        // Whoever comes now would spend a ticket for nothing, or hear that its match is not here.
        let _ = self.spawner.to_io.send(ToIo::Shut).await;
        self.spawner.closing.send_replace(Some(Ending::Told(code)));
        self.spawner.workers.wake_all();
        let matches = self.spawner.with_matches(std::mem::take);
        let count = matches.len().try_into().unwrap_or(u32::MAX);
        let patience = SHUTDOWN_PATIENCE + PATIENCE_PER_MATCH.saturating_mul(count);
        let all_end = async {
            for hosted in matches.into_values() {
                if let Hosted::Runs(watching) = hosted {
                    let _ = watching.await;
                }
            }
        };
        if tokio::time::timeout(patience, all_end).await.is_err() {
            logged::error!(?patience, "a match did not end in time");
        }
        self.spawner.lineages.write_last().await;
        let _ = self.spawner.to_io.send(ToIo::Drain(code)).await;
        // What is left of it ends when this is dropped.
        let _ = tokio::time::timeout(SHUTDOWN_PATIENCE, &mut self.io).await;
        logged::sum_up();
        logged::info!(reason = %code, "shut down");
    }

    /// Ends all matches as if the process had been killed.
    pub(super) fn abandon(&self) {
        self.spawner.closing.send_replace(Some(Ending::Abandoned));
        self.spawner.with_matches(std::mem::take);
        self.spawner.workers.shut();
    }

    /// Whether all matches are over, and have let go of what they held.
    pub(super) fn is_empty(&self) -> bool {
        self.spawner.workers.is_done()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.abandon();
        self.io.abort();
        self.measuring.abort();
    }
}
