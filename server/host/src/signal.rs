//! [`StopSignal`]: receives an operator's requests to end a server. The first ends it cleanly, the second immediately.

use std::io;

/// Receives requests to end this process: Ctrl-C, and SIGTERM on unix.
#[derive(Debug)]
pub struct StopSignal {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignal {
    /// Starts to listen. On unix, these signals no longer end the process directly; elsewhere, from the first
    /// [`requested`](StopSignal::requested) on.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn listen() -> io::Result<StopSignal> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(StopSignal {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        }
        #[cfg(not(unix))]
        Ok(StopSignal {})
    }

    /// Waits for the next request.
    pub async fn requested(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            // No signal can arrive: only the match's own end is left.
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for a request to end this process.
///
/// # Errors
/// If the process cannot listen for signals.
pub async fn stop_requested() -> io::Result<()> {
    StopSignal::listen()?.requested().await;
    Ok(())
}
