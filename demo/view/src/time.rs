//! The wall clock, and the clock of frames.

use std::time::{Duration, Instant};

/// Reads the wall clock, as time since 1970, for tickets and file names.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
pub fn unix_now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Reads the clock of frames.
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}
