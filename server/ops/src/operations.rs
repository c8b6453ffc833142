//! [`Ops`]: the operator's tools that run alongside a host, from before its start until after its end.
//!
//! ```text
//!  OpsConfig ─open─▶ Ops ─attach─▶ HostConfig ─▶ the host starts
//!                     └──start(HostControl)──▶ RunningOps: admin port, fleet, old journals ─leave─▶ the fleet is informed
//! ```
//!
//! Invariant: `open` binds the admin addresses and opens the token and ban files, so their errors are reported before
//! the host has created a file.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use twinstep_host::internal::unix_now;
use twinstep_host::{HostConfig, HostControl};

use crate::admin::state::Admin;
use crate::admin::{self, BoundSocket};
use crate::admin_error::AdminError;
use crate::admin_port::{AdminToken, LiveToken};
use crate::bans::{Bans, BansError};
use crate::fleet::{FleetNews, Membership, Sidecar};
use crate::keeping::{self, KeepJournals};
use crate::metrics::Metrics;

/// The configuration of the operator's tools.
#[derive(Clone, Debug, Default)]
pub struct OpsConfig {
    /// The admin port: an address on loopback.
    pub admin: Option<SocketAddr>,
    /// A Unix socket for the same requests, private to its owner. A process that can open it does not need a token.
    pub admin_socket: Option<PathBuf>,
    /// The file with the token for changes and lists of players at `admin`; created if it does not exist, private to
    /// its owner. If `None`, these are refused there.
    pub admin_token: Option<PathBuf>,
    /// The ban file, created with the first ban; shared by processes that share a folder of journals. If `None`, bans
    /// end with the process.
    pub bans_file: Option<PathBuf>,
    /// The folder in which the admin port saves games; created with the first one. If `None`, it does not save games.
    pub saves: Option<PathBuf>,
    /// The sidecar of the fleet manager, if the host belongs to a fleet.
    pub fleet: Option<Sidecar>,
    /// A folder of journals, and the limits for the journals of ended matches there.
    pub keep: Option<(PathBuf, KeepJournals)>,
}

/// The reason why the admin port or the bans cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum OpsError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Bans(#[from] BansError),
}

/// The opened tools, before the host starts.
pub struct Ops {
    saves: Option<PathBuf>,
    fleet: Option<Sidecar>,
    keep: Option<(PathBuf, KeepJournals)>,
    listener: Option<(SocketAddr, TcpListener)>,
    socket: Option<BoundSocket>,
    token: Option<LiveToken>,
    bans: Bans,
    metrics: Metrics,
}

impl Ops {
    /// Binds the admin port, creates its token and reads the bans. Blocks on the disk.
    ///
    /// # Errors
    /// If an address cannot be bound, or a file cannot be used.
    pub fn open(config: OpsConfig) -> Result<Ops, OpsError> {
        let OpsConfig {
            admin,
            admin_socket,
            admin_token,
            bans_file,
            saves,
            fleet,
            keep,
        } = config;
        let bans = Bans::open(bans_file.as_deref())?;
        let bind = |at| admin::bind(at).map(|listener| (at, listener));
        let listener = admin.map(bind).transpose()?;
        let token = admin_token.filter(|_| listener.is_some());
        let token = token.map(|path| AdminToken::load_or_make(&path));
        let token = token.transpose().map_err(AdminError::from)?;
        let socket = admin_socket.as_deref().map(admin::bind_socket);
        Ok(Ops {
            saves,
            fleet,
            keep,
            listener,
            socket: socket.transpose()?,
            token: token.map(LiveToken::new),
            bans,
            metrics: Metrics::default(),
        })
    }

    /// Connects the metrics and the bans to a host's configuration.
    pub fn attach(&self, host: &mut HostConfig) {
        host.observer = Arc::new(self.metrics.clone());
        host.admissions = Arc::new(self.bans.clone());
    }

    /// Starts the tools of a running host.
    ///
    /// # Errors
    /// If a bound socket failed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self, control: HostControl) -> Result<RunningOps, AdminError> {
        let about = Admin {
            control: control.clone(),
            metrics: self.metrics,
            bans: self.bans.clone(),
            saves: self.saves,
        };
        let (mut tasks, mut address) = (Vec::new(), None);
        if let Some((at, listener)) = self.listener {
            let (bound, task) = admin::start(listener, at, about.clone(), self.token.clone())?;
            tasks.push(task);
            address = Some(bound);
        }
        let socket = self.socket.map(|socket| admin::start_at(socket, about));
        if let Some((folder, keep)) = self.keep {
            tasks.push(tokio::spawn(keeping::retain(folder, keep)));
        }
        let fleet = self
            .fleet
            .map(|fleet| Membership::start(fleet, control.clone()));
        Ok(RunningOps {
            address,
            _socket: socket.transpose()?,
            tasks,
            fleet,
            bans: self.bans,
            token: self.token,
            control,
        })
    }
}

/// The tools of a running host. If they are dropped, they end without informing the fleet.
pub struct RunningOps {
    address: Option<SocketAddr>,
    _socket: Option<admin::AtSocket>,
    tasks: Vec<JoinHandle<()>>,
    fleet: Option<Membership>,
    bans: Bans,
    token: Option<LiveToken>,
    control: HostControl,
}

impl Drop for RunningOps {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The changes found by rereading the ban file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadedBans {
    /// Newly banned identities. Their sessions are removed.
    pub banned: Vec<String>,
    /// Identities whose ban was lifted.
    pub forgiven: Vec<String>,
}

impl RunningOps {
    /// The loopback address of the admin port. Returns `None` if it has none.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// A channel that watches the state of this server as the fleet manager sees it. Returns `None` without a fleet.
    #[must_use]
    pub fn fleet_news(&self) -> Option<watch::Receiver<FleetNews>> {
        self.fleet.as_ref().map(Membership::news)
    }

    /// Reads the ban file again, after another process or an operator changed it. Waits for the disk.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged. In both cases, the bans are unchanged.
    pub async fn reload_bans(&self) -> Result<ReloadedBans, BansError> {
        let (bans, now) = (self.bans.clone(), unix_now());
        let reread = tokio::task::spawn_blocking(move || bans.reread(now)).await;
        let (banned, forgiven) = reread.expect("nothing panics there")?;
        for ban in &banned {
            let code = ban.code(now);
            drop(self.control.begin_removal(&ban.identity, code).await);
        }
        let banned = banned.into_iter().map(|ban| ban.identity).collect();
        Ok(ReloadedBans { banned, forgiven })
    }

    /// Reads the admin port's token again. Returns `true` if it changed. Returns `false` if it is the same, or if there
    /// is no admin port or no token.
    ///
    /// # Errors
    /// If the file cannot be read, or does not hold a token. In both cases, the old token stays valid.
    pub fn reload_token(&self, path: &Path) -> Result<bool, AdminError> {
        let Some(live) = &self.token else {
            return Ok(false);
        };
        Ok(live.replace(AdminToken::load(path)?))
    }

    /// Reports to the fleet that this server has shut down; call it after the host was shut down. Waits a few seconds
    /// for a sidecar that does not respond.
    pub async fn leave(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.leave().await;
        }
    }
}
