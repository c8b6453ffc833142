//! How an operator asks a server to end.

/// Waits until this process is asked to end: Ctrl-C, or SIGTERM where there is such a thing.
///
/// # Errors
/// The operating system does not let the process listen.
pub async fn stop_requested() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
