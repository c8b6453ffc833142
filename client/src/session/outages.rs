//! [`Outages`]: for how long, and how often, the server was lost; and since when it is met over the path that there is.
//!
//! Invariant: an absence that began ends once, by recovering or by returning, and is added up once.

use std::time::Duration;

use twinstep_protocol::packet::closed::CloseCode;

use crate::stats::SessionStats;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Outages {
    /// When the server was met, over the path that there is.
    pub(crate) met_at: Duration,
    /// The server ended the transport, and lets this player return.
    pub(crate) cut: Option<CloseCode>,
    /// Since when the server is lost.
    since: Option<Duration>,
    /// How long it was lost, added up.
    away: Duration,
    /// How often the session came back over another transport.
    returns: u64,
    /// How often the server was silent, and then heard again by the same transport.
    silences: u64,
}

impl Outages {
    /// The server is met: the session begins to play.
    pub(crate) fn meet(&mut self, now: Duration) {
        self.met_at = now;
    }

    /// The server is lost. Returns `true` if it was not lost before.
    pub(crate) fn lose(&mut self, now: Duration) -> bool {
        let is_new = self.since.is_none();
        self.since.get_or_insert(now);
        is_new
    }

    /// The server is heard again as before. Returns `true` if it was lost.
    pub(crate) fn recover(&mut self, now: Duration) -> bool {
        let was_lost = self.since.is_some();
        self.silences += u64::from(was_lost);
        self.end(now);
        was_lost
    }

    /// Another path is connected, by which the session greets the server anew.
    pub(crate) fn take_path(&mut self, now: Duration) {
        self.cut = None;
        self.met_at = now;
    }

    /// The session is back in its match.
    pub(crate) fn found(&mut self, now: Duration) {
        self.end(now);
        self.returns += 1;
        self.met_at = now;
    }

    fn end(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.away += now.saturating_sub(since);
        }
    }

    /// Whether the server is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.since.is_some()
    }

    /// The server ended the transport, and lets this player return.
    pub(crate) fn record_cut(&mut self, code: CloseCode) {
        self.cut = Some(code);
    }

    /// Adds for how long, so far and at once, and how often the server was lost.
    pub(crate) fn fill_stats(&self, now: Duration, stats: &mut SessionStats) {
        let since = self.since.map(|since| now.saturating_sub(since));
        stats.returns = self.returns;
        stats.silences = self.silences;
        stats.away_ms = (self.away + since.unwrap_or_default()).as_secs_f64() * 1e3;
    }
}
