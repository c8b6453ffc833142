//! [`Outages`]: counts and times the losses of the server, and records when the current path was first used.
//!
//! Invariant: an outage ends once, by recovery or by reconnecting, and is added to the total once.

use std::time::Duration;

use twinstep_protocol::packet::closed::CloseCode;

use crate::stats::SessionStats;

#[derive(Default)]
pub(crate) struct Outages {
    /// The time at which the session started to play, or moved to its current path.
    pub(crate) met_at: Duration,
    /// The code with which the server closed the transport, if this player may reconnect.
    pub(crate) cut: Option<CloseCode>,
    since: Option<Duration>,
    away: Duration,
    returns: u64,
    /// The number of silences after which packets arrived again on the same transport.
    silences: u64,
}

impl Outages {
    pub(crate) fn meet(&mut self, now: Duration) {
        self.met_at = now;
    }

    /// Starts an outage. Returns `true` if no outage was in progress.
    pub(crate) fn lose(&mut self, now: Duration) -> bool {
        let is_new = self.since.is_none();
        self.since.get_or_insert(now);
        is_new
    }

    /// Ends an outage after which the same transport works again. Returns `true` if an outage was in progress.
    pub(crate) fn recover(&mut self, now: Duration) -> bool {
        let was_lost = self.since.is_some();
        self.silences += u64::from(was_lost);
        self.end(now);
        was_lost
    }

    /// Records that another path is connected, over which the session sends its hello again.
    pub(crate) fn take_path(&mut self, now: Duration) {
        self.cut = None;
        self.met_at = now;
    }

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

    pub(crate) fn is_lost(&self) -> bool {
        self.since.is_some()
    }

    pub(crate) fn record_cut(&mut self, code: CloseCode) {
        self.cut = Some(code);
    }

    pub(crate) fn fill_stats(&self, now: Duration, stats: &mut SessionStats) {
        let since = self.since.map(|since| now.saturating_sub(since));
        stats.returns = self.returns;
        stats.silences = self.silences;
        stats.away_ms = (self.away + since.unwrap_or_default()).as_secs_f64() * 1e3;
    }
}
