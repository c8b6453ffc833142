//! [`Operated`], [`OperatedMatches`]: servers configured by their operator's settings, which run until they are asked to
//! end.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use twinstep_core::Simulation;
use twinstep_host::{HostControl, HostError, Running, RunningMany, StopSignal, Stopped};
use twinstep_udp::TicketKey;

use super::error::SettingError;
use super::files::Files;
use super::reload;
use super::settings::Settings;
use crate::{Ops, OpsError, RunningOps};

const END_PATIENCE: Duration = Duration::from_secs(1);

/// The tools next to a server, on a separate thread: an operator's request must not wait for a match.
pub(super) struct Operating {
    ops: Arc<RunningOps>,
    runtime: Runtime,
}

impl Operating {
    pub(super) fn start(
        ops: Ops,
        control: HostControl,
        settings: Settings,
        files: Files,
        keys: &[TicketKey],
    ) -> Result<Operating, SettingError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("twinstep-ops")
            .enable_all()
            .build()
            .map_err(HostError::Threads)?;
        let within = runtime.enter();
        let ops = Arc::new(ops.start(control.clone()).map_err(OpsError::from)?);
        reload::start(settings, files, keys, control, ops.clone());
        drop(within);
        Ok(Operating { ops, runtime })
    }

    fn end(self, stopped: Stopped) -> std::io::Result<Stopped> {
        let ended = self.runtime.block_on(async {
            let mut stop = StopSignal::listen()?;
            if stopped == Stopped::AtOnce {
                return Ok(stopped);
            }
            tokio::select! {
                () = self.ops.leave() => Ok(stopped),
                () = stop.requested() => Ok(Stopped::AtOnce),
            }
        });
        // Its tasks share the tools, so the socket is removed with the last task.
        self.runtime.shutdown_timeout(END_PATIENCE);
        ended
    }
}

/// A server configured by its operator's settings, which reloads its keys, bans and admin token at SIGHUP.
pub struct Operated<S: Simulation> {
    pub(super) running: Running<S>,
    pub(super) operating: Operating,
}

impl<S: Simulation> Operated<S> {
    /// The server.
    #[must_use]
    pub fn running(&self) -> &Running<S> {
        &self.running
    }

    /// The server's tools: admin port and fleet.
    #[must_use]
    pub fn ops(&self) -> &RunningOps {
        &self.operating.ops
    }

    /// Runs until the process is asked to end, or the match is over: see [`Running::run_until_stopped`].
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn run_until_stopped(self) -> std::io::Result<Stopped> {
        let stopped = self.running.run_until_stopped()?;
        self.operating.end(stopped)
    }
}

/// A server of many matches, configured by its operator's settings, which reloads keys, bans and admin token at SIGHUP.
pub struct OperatedMatches {
    pub(super) running: RunningMany,
    pub(super) operating: Operating,
}

impl OperatedMatches {
    /// The server.
    #[must_use]
    pub fn running(&self) -> &RunningMany {
        &self.running
    }

    /// The server's tools: admin port and fleet.
    #[must_use]
    pub fn ops(&self) -> &RunningOps {
        &self.operating.ops
    }

    /// Runs until the process is asked to end: see [`RunningMany::run_until_stopped`].
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn run_until_stopped(self) -> std::io::Result<Stopped> {
        let stopped = self.running.run_until_stopped()?;
        self.operating.end(stopped)
    }
}
