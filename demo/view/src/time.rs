//! The wall clock, and the clock of frames.

#[cfg(not(target_arch = "wasm32"))]
pub use machine::{Instant, now, unix_now};

#[cfg(target_arch = "wasm32")]
pub use crate::page::{Instant, instant as now, unix_now};

#[cfg(not(target_arch = "wasm32"))]
mod machine {
    use std::time::Duration;
    pub use std::time::Instant;

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

    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    #[must_use]
    pub fn now() -> Instant {
        Instant::now()
    }
}
