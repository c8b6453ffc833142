//! How an operator asks a server to end: once to end in order, twice to end at once.

use std::io;

/// Hears each time that this process is asked to end, from when it was made: Ctrl-C, or SIGTERM where there is such a
/// thing.
#[derive(Debug)]
pub struct StopSignal {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignal {
    /// Begins to listen; from now on the signals no longer end the process by themselves.
    ///
    /// # Errors
    /// The operating system does not let the process listen.
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

    /// Waits until this process is asked to end, once more.
    pub async fn requested(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            // Nobody can ask: only the match's own end is left.
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until this process is asked to end.
///
/// # Errors
/// The operating system does not let the process listen.
pub async fn stop_requested() -> io::Result<()> {
    StopSignal::listen()?.requested().await;
    Ok(())
}
