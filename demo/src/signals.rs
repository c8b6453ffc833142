//! The signals that ask this process to end: Ctrl-C (if it is not a key of the view), SIGTERM, or the end of the
//! terminal.
//!
//! Invariant: at the first signal the player leaves as after a key press, and the terminal is restored. At the second
//! signal, the process exits immediately, and also restores the terminal.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use powderkeg_view::{stop, terminal};
use twinstep_host::StopSignal;

use crate::failure::Failure;

static LISTENS: AtomicBool = AtomicBool::new(false);

/// Installs the handlers. From now on every wait must check [`stop::asked`].
///
/// # Errors
/// If the operating system refuses.
pub(crate) fn listen() -> Result<(), Failure> {
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(no_signals)?;
    let mut signals = runtime
        .block_on(async { Signals::listen() })
        .map_err(no_signals)?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(signals.requested());
            stop::ask();
            runtime.block_on(signals.requested());
            terminal::give_back();
            std::process::exit(130);
        })
        .map_err(no_signals)?;
    Ok(())
}

pub(crate) fn no_signals(source: io::Error) -> Failure {
    Failure::System {
        doing: "cannot install the handler for stop signals",
        source,
    }
}

struct Signals {
    stop: StopSignal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals {
            stop: StopSignal::listen()?,
            #[cfg(unix)]
            hangup: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    async fn requested(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            () = self.stop.requested() => {}
            _ = self.hangup.recv() => {}
        }
        #[cfg(not(unix))]
        self.stop.requested().await;
    }
}
