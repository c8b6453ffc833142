//! What a session notes while its server is lost or gives it nothing, and on its way back.

use std::time::Duration;

use twinstep_core::packet::hello::Welcome;

/// For how long, and how often, the server was lost.
#[derive(Debug, Default)]
pub(crate) struct Absence {
    /// Since when it is.
    pub(crate) since: Option<Duration>,
    /// How long it was, added up.
    away: Duration,
    /// How often the session came back over another transport.
    pub(crate) returns: u64,
    /// How often the server was silent, and then heard again by the same transport.
    pub(crate) silences: u64,
}

impl Absence {
    /// The server is here again.
    pub(crate) fn end(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.away += now.saturating_sub(since);
        }
    }

    /// For how long the server was lost, so far and at once.
    pub(crate) fn away(&self, now: Duration) -> Duration {
        let since = self.since.map(|since| now.saturating_sub(since));
        self.away + since.unwrap_or_default()
    }
}

/// How long a server has been giving nothing to a session that waits for its world.
#[derive(Debug, Default)]
pub(crate) struct HeldUp {
    pub(crate) since: Option<Duration>,
    /// What had come by then: whether a welcome, and bytes of a world.
    pub(crate) had: (bool, usize),
}

/// A session on its way back into its match.
pub(crate) struct Returning {
    /// What the server said; a world follows.
    pub(crate) welcome: Option<Welcome>,
}
