//! [`OnThreads`]: a host on its own threads. When it is dropped, the threads end immediately, without close codes, as
//! if the process had been killed.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use twinstep_protocol::packet::closed::CloseCode;

use crate::config::HostError;
use crate::logged;
use crate::matches::Host;
use crate::signal::StopSignal;

/// The maximum time that dropping a server waits for its matches.
const DROP_PATIENCE: Duration = Duration::from_secs(1);
const DROP_LOOK: Duration = Duration::from_millis(1);

pub(super) struct OnThreads {
    host: Option<Host>,
    /// The signal listener that was set up before the host started.
    stop: Option<StopSignal>,
    runtime: Option<Runtime>,
}

impl OnThreads {
    pub(super) fn new(host: Host, (runtime, stop): (Runtime, Option<StopSignal>)) -> Self {
        OnThreads {
            host: Some(host),
            stop,
            runtime: Some(runtime),
        }
    }

    pub(super) fn host(&self) -> &Host {
        let host = self.host.as_ref();
        host.expect("a server runs until it is shut down")
    }

    pub(super) fn runtime(&self) -> &Runtime {
        let runtime = self.runtime.as_ref();
        runtime.expect("threads live as long as the server")
    }

    pub(super) fn run<R>(
        mut self,
        to_its_end: impl AsyncFnOnce(Host, StopSignal) -> io::Result<R>,
    ) -> io::Result<R> {
        let host = self.take();
        let stop = self.stop.take();
        self.runtime().block_on(async {
            let stop = stop.map_or_else(StopSignal::listen, Ok)?;
            to_its_end(host, stop).await
        })
    }

    pub(super) fn shutdown(mut self) {
        let host = self.take();
        self.runtime().block_on(host.shutdown(CloseCode::Draining));
    }

    fn take(&mut self) -> Host {
        let host = self.host.take();
        host.expect("a server runs until it is shut down")
    }
}

impl Drop for OnThreads {
    fn drop(&mut self) {
        if let Some(host) = &self.host {
            host.abandon();
            wait_for(host);
        }
        drop(self.host.take());
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        // Blocking is not allowed within the caller's own runtime.
        if tokio::runtime::Handle::try_current().is_ok() {
            runtime.shutdown_background();
        } else {
            runtime.shutdown_timeout(DROP_PATIENCE);
        }
    }
}

/// Starts the threads. If `heeds_stop`, starts to listen for stop signals.
pub(super) fn threads(heeds_stop: bool) -> Result<(Runtime, Option<StopSignal>), HostError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("twinstep-server")
        .enable_all()
        .build()
        .map_err(HostError::Threads)?;
    let within = runtime.enter();
    let stop = heeds_stop.then(StopSignal::listen).transpose();
    drop(within);
    Ok((runtime, stop.map_err(HostError::Threads)?))
}

/// Waits a while for the matches to end. A match that runs an author's code may never end.
fn wait_for(host: &Host) {
    let looks = DROP_PATIENCE.as_millis() / DROP_LOOK.as_millis();
    for _ in 0..looks {
        if host.is_empty() {
            return;
        }
        std::thread::sleep(DROP_LOOK);
    }
    let matches: Vec<_> = host
        .control()
        .matches()
        .into_keys()
        .map(|id| id.0)
        .collect();
    logged::warn!(
        ?matches,
        "matches do not end (a step or hook does not return); their threads are abandoned"
    );
}
