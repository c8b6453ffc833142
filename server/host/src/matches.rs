//! [`Host`]: the matches of one process, from binding the socket to the last close code.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::lineage::LineageTable;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{
    LINEAGES_MAX, LineageFile, ServerAddress, ServerEndpoint, TicketLedger, WebAddress,
};

use super::clock::{HostClock, unix_now};
use super::config::{HostConfig, HostError, bind, make_room, public_of};
use super::control::{Drains, HostControl};
use super::datagram_listener::DatagramListener;
use super::demand::{Demand, Making};
use super::handle::MatchHandle;
use super::io::{self, Around, ToIo};
use super::isolation::HungMatches;
use super::journal_file::Journal;
use super::listener::Listeners;
use super::load_monitor::LoadMonitor;
use super::logged;
use super::match_spawner::{Hosted, MatchSpawner};
use super::pulse::Beat;
use super::register::Register;
use super::runner::Ending;
use super::thread_pool::{Limited, ThreadPool};
use super::tickets::{TicketOffice, TicketPrint};
use super::web::{WebConfig, WebLines};
use super::workers::Workers;
use twinstep_server::Match;

/// The maximum number of packets and orders waiting for the I/O task.
const TO_IO_MAX: usize = 16_384;
/// A shutdown waits this long, plus `PATIENCE_PER_MATCH` for each match, for matches to end, and then at most this long
/// for close codes to arrive.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);
/// Each match adds this to the wait: 10 s for 1,000 matches. A supervisor should wait for longer than that.
const PATIENCE_PER_MATCH: Duration = Duration::from_millis(8);
const DRAIN_LOOK: Duration = Duration::from_millis(100);

/// Many matches over one socket. It must be created within a tokio runtime; [`Server`](super::Server) has its own.
///
/// Dropping a host ends it without close codes for the clients: the matches stop as if the process had been killed, so
/// a journal can be resumed. The threads that ran the matches end a moment later.
pub struct Host {
    address: SocketAddr,
    spawner: Arc<MatchSpawner>,
    control: HostControl,
    io: JoinHandle<()>,
    measuring: JoinHandle<()>,
    drain_within: Duration,
    pub(super) maker: Mutex<Option<Making>>,
}

impl Host {
    /// Binds the socket and starts the I/O task.
    ///
    /// # Errors
    /// If an address cannot be bound, the configuration is out of range, or a certificate or the lineages file cannot
    /// be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(config: HostConfig) -> Result<Host, HostError> {
        let socket = bind(config.listen)?;
        Host::start_on(socket, config).await
    }

    /// Like [`start`](Host::start), on a bound socket; `config.listen` is ignored.
    ///
    /// # Errors
    /// The errors of [`start`](Host::start).
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
        let opened = config.lineages_file.as_ref().map(LineageFile::open);
        let (file, lineages) = opened.transpose()?.unzip();
        let lineages = lineages.unwrap_or_else(|| LineageTable::new(LINEAGES_MAX));
        let ledger = TicketLedger::with_lineages(lineages, clock.now(), unix_now());
        let endpoint = config.endpoint(&public, ledger.clone());
        // By name, so that a forgotten field is a compile error.
        let HostConfig {
            game,
            listen: _,
            public: _,
            web,
            keys,
            lineages_file: _,
            incidents,
            saves,
            back_after,
            drain_within,
            sessions_max: _,
            limits,
            heeds_stop: _,
            observer,
            admissions,
        } = &config;
        let sessions_max = endpoint.sessions_max;
        let endpoint = ServerEndpoint::new(endpoint, clock.now())?;
        let (to_io, orders) = mpsc::channel(TO_IO_MAX);
        let (beat, register) = (Arc::new(Beat::default()), Register::default());
        let (drains, demand, load_monitor) =
            (Drains::default(), Demand::default(), LoadMonitor::default());
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::new(address.port().to_string(), most, clock);
        let print = TicketPrint {
            game: game.clone(),
            servers: public.clone(),
            key: keys[0].clone(),
            ledger: ledger.clone(),
        };
        let tickets = TicketOffice::start(print, file);
        let control = HostControl {
            clock,
            beat: beat.clone(),
            matches: register.clone(),
            game: game.as_str().into(),
            sessions_max,
            drains: drains.clone(),
            to_io: to_io.clone(),
            demand: demand.clone(),
            tickets: tickets.clone(),
            load_monitor: load_monitor.clone(),
        };
        let around = Around {
            beat,
            observer: observer.clone(),
            admissions: admissions.clone(),
            workers: workers.clone(),
            demand: demand.clone(),
            ledger,
        };
        let web = match web {
            Some(web) => Some(start_web(web, &public, &tickets).await?),
            None => None,
        };
        let listener = DatagramListener::new(socket, web, endpoint);
        let listeners = Listeners::new(vec![Box::new(listener)]);
        let io = io::start(listeners, clock, orders, around);
        // Nobody dials 0.0.0.0, although a ticket may name it.
        let is_dialled =
            |at: &&ServerAddress| !at.socket().is_some_and(|at| at.ip().is_unspecified());
        let dialled = public.iter().filter(is_dialled);
        let dialled: Vec<String> = dialled.map(ToString::to_string).collect();
        logged::info!(%address, public = dialled.join(","), sessions_max, "listening");
        let measuring = load_monitor.clone();
        let measuring = measuring.measure(limits.clone(), register.clone(), clock);
        let pool = ThreadPool::new();
        let spawner = MatchSpawner {
            incidents: incidents.clone(),
            saves: saves.clone(),
            back_after: *back_after,
            clock,
            tickets,
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
            lost: HungMatches::new(clock),
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

    /// The address of the socket.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The addresses that tickets should name.
    #[must_use]
    pub fn public_addresses(&self) -> &[ServerAddress] {
        self.spawner.tickets.servers()
    }

    /// The address at which browsers dial, and the hashes of the certificates there. Returns `None` if the host does
    /// not accept browsers.
    #[must_use]
    pub fn web_address(&self) -> Option<WebAddress> {
        self.spawner.tickets.web()
    }

    pub(super) fn spawner(&self) -> &Arc<MatchSpawner> {
        &self.spawner
    }

    /// The interface for an operator's tools.
    #[must_use]
    pub fn control(&self) -> HostControl {
        self.control.clone()
    }

    /// Starts a match for tickets that name `id`. `journal` is new, or the journal from which the match was resumed.
    ///
    /// # Errors
    /// If a match with this id already runs here, its journal or thread cannot be started, or the host was shut down.
    pub async fn add_match<S: Simulation>(
        &self,
        id: MatchId,
        match_: Match<S>,
        journal: Option<Journal>,
    ) -> Result<MatchHandle<S>, HostError> {
        self.spawner.add_match(id, match_, journal).await
    }

    /// Waits until all players and spectators have left, at most for [`HostConfig::drain_within`]. No effect if that is
    /// zero. From now on the host is not ready, does not create matches, and refuses newcomers; players with a seat may
    /// reconnect. The remaining matches end with [`shutdown`](Host::shutdown).
    pub async fn drain(&self) {
        if self.drain_within.is_zero() {
            return;
        }
        self.spawner.drains.begin();
        self.spawner.load_monitor.begin_drain();
        logged::info!(
            within_s = self.drain_within.as_secs(),
            "draining: players may finish, new players are refused"
        );
        let all_gone = async {
            while !self.spawner.is_deserted() {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        let in_time = tokio::time::timeout(self.drain_within, all_gone).await;
        match in_time {
            Ok(()) => logged::info!("drain ended: all players and spectators have left"),
            Err(_) => {
                let players = self.control.status().players;
                logged::info!(
                    players,
                    "drain timed out: some players or spectators have not left"
                );
            }
        }
    }

    /// Ends all matches, sends every client its close code, waits a little for these to arrive, and closes the socket.
    /// Takes at most 4 s and 8 ms per match, and up to 6 s more if the disk with `lineages_file` does not respond.
    ///
    /// A match with a journal is kept if `code` is [`Draining`](CloseCode::Draining): the journal ends with the last
    /// world and is synced, and the match can be resumed. The close code tells clients when to reconnect
    /// ([`HostConfig::back_after`]). The clients of a match that does not end in time also get this code, because its
    /// journal continues as after a crash.
    pub async fn shutdown(mut self, code: CloseCode) {
        self.spawner.drains.begin();
        // A new session would use up a ticket without playing, or be refused with `NoMatch`.
        let _ = self.spawner.to_io.send(ToIo::Shut).await;
        self.spawner.closing.send_replace(Some(Ending::Told(code)));
        // Resting matches would notice the end only in their next round.
        self.spawner.workers.wake_all();
        let matches = self.spawner.with_matches(std::mem::take);
        let count = matches.len().try_into().unwrap_or(u32::MAX);
        let patience = SHUTDOWN_PATIENCE + PATIENCE_PER_MATCH.saturating_mul(count);
        let mut watching: Vec<_> = matches
            .into_iter()
            .filter_map(|(id, hosted)| match hosted {
                Hosted::Runs(watching) => Some((id.0, watching)),
                Hosted::Starting => None,
            })
            .collect();
        let all_end = async {
            for (_, watching) in &mut watching {
                // A panicked task has also ended.
                let _ = watching.await;
            }
        };
        if tokio::time::timeout(patience, all_end).await.is_err() {
            let left = watching
                .iter()
                .filter(|(_, watching)| !watching.is_finished());
            let matches: Vec<u64> = left.map(|(id, _)| *id).collect();
            logged::error!(
                ?matches,
                within_s = patience.as_secs(),
                "matches did not end in time and were stopped: those with a journal can be resumed, as after a crash"
            );
        }
        // After the matches, so that their last rulings are in the file.
        self.spawner.tickets.write_last().await;
        let _ = self.spawner.to_io.send(ToIo::Drain(code)).await;
        // If this takes longer, the task is aborted when the host is dropped.
        let _ = tokio::time::timeout(SHUTDOWN_PATIENCE, &mut self.io).await;
        logged::sum_up();
        logged::info!(code = code.name(), "shut down");
    }

    /// Ends all matches as if the process had been killed.
    pub(super) fn abandon(&self) {
        self.spawner.closing.send_replace(Some(Ending::Abandoned));
        self.spawner.with_matches(std::mem::take);
        self.spawner.workers.shut_down();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spawner.workers.is_done()
    }
}

async fn start_web(
    config: &WebConfig,
    public: &[ServerAddress],
    tickets: &TicketOffice,
) -> Result<WebLines, HostError> {
    let tickets = tickets.clone();
    let started = WebLines::start(config, public, Box::new(move |web| tickets.set_web(web))).await;
    started.map_err(|source| HostError::Web {
        address: config.listen,
        source,
    })
}

impl Drop for Host {
    fn drop(&mut self) {
        self.abandon();
        self.io.abort();
        self.measuring.abort();
    }
}
