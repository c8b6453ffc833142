//! [`Diagnostics`]: a match's counters, its incidents, and the reports of clients that differed.

use std::time::Duration;

use twinstep_core::Tick;

use crate::caught::Panics;
use crate::incident::{INCIDENTS_MAX, Incident, Notices};
use crate::stopwatch::Timing;
use crate::tally::Tally;
use twinstep_protocol::identity::SessionId;

const REPORTS_MAX: usize = 16;

/// The counters of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchStats {
    /// The number of ticks sealed.
    pub ticks: u64,
    /// The number of turns sent.
    pub turns: u64,
    /// Inputs that did not arrive in time and were filled, over all players.
    pub fills: u64,
    /// Queries asked by steps.
    pub queries: u64,
    /// The number of outcomes decided; `None` is not counted.
    pub outcomes: u64,
    /// Outcomes that came from the client of the asking player.
    pub owner_answers: u64,
    /// Owners' answers that were empty or invalid, or that the referee refused.
    pub forged_answers: u64,
    /// Queries that got no answer.
    pub unanswered: u64,
    /// Players whose world differed from the server's, each counted at most once in an hour.
    pub desyncs: u64,
    /// Desyncs where the journal shows that the server's own world is wrong.
    pub server_faults: u64,
    /// Desyncs where the journal's frames give a different world on each replay: the step is not pure.
    pub impure_steps: u64,
    /// Desync reports dropped because the server did not request them or had no space for them.
    pub reports_dropped: u64,
    /// The number of worlds sent to heal clients.
    pub heals: u64,
    /// Sessions started without a world download: their clients had the match's first world and got the later frames.
    pub joined_by_frames: u64,
    /// Player reconnects that counted as activity: each identity's first reconnect in a minute.
    pub excused: u64,
    /// The total time for which requests paused the match, in finished pauses.
    pub paused: Duration,
    /// Admitted requests to the match, such as pauses.
    pub requests: u64,
    /// The number of refused requests to the match.
    pub requests_refused: u64,
    /// Packets and lane messages that could not be read, or were not allowed.
    pub malformed: u64,
    /// Caught panics in the step or in a hook.
    pub panics: u64,
    /// Steps that brought a NaN into the state and were undone.
    pub nans: u64,
    /// Outcomes that exceeded their bound or could not be decoded again. Their queries stayed unanswered.
    pub outcomes_unsent: u64,
    /// The number of queries that the step asked while
    /// [`QUERIES_WAITING_MAX`](twinstep_core::bounds::QUERIES_WAITING_MAX) others waited. Such queries are dropped and
    /// get no answer.
    pub asks_dropped: u64,
    /// The world's size in bytes when it was last measured (every 10 s, and when it is sent). Above
    /// [`WORLD_BYTES_MAX`](twinstep_core::bounds::WORLD_BYTES_MAX) clients cannot join or be healed; above half of it,
    /// an incident is reported.
    pub world_bytes: usize,
    /// Worlds that were too large to be written, kept or sent.
    pub worlds_too_large: u64,
    /// The first tick that is not in the journal, if the journal became unwritable and the match continued.
    pub journal_lost: Option<Tick>,
    /// The time that the match's clock skipped because `advance` was called too late.
    pub slipped: Duration,
    /// The time for which the match paused for machines that trailed.
    pub held: Duration,
}

/// A client's report of the place where its state differed. The text is escaped and bounded, but not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The session that sent it.
    pub peer: SessionId,
    /// The report's text.
    pub text: String,
    /// Whether the server is at fault: its world, or a digest in its journal, differs from the journal's frames.
    pub server_at_fault: bool,
    /// Whether the journal's frames give a different world on each replay: the step is impure, and no side is at fault.
    pub step_impure: bool,
}

pub(super) struct Diagnostics {
    pub(super) stats: MatchStats,
    pub(super) tally: Tally,
    pub(super) timing: Timing,
    pub(super) panics: Panics,
    pub(super) reports: Notices<Report>,
    pub(super) incidents: Notices<Incident>,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Diagnostics {
            stats: MatchStats::default(),
            tally: Tally::default(),
            timing: Timing::default(),
            panics: Panics::default(),
            reports: Notices::new(REPORTS_MAX),
            incidents: Notices::new(INCIDENTS_MAX),
        }
    }
}

impl Diagnostics {
    pub(super) fn report(&mut self, incident: Incident) {
        self.incidents.push(incident);
    }

    pub(super) fn report_panics(&mut self) {
        self.stats.panics += std::mem::take(&mut self.panics.count);
        for incident in std::mem::take(&mut self.panics.incidents) {
            self.report(incident);
        }
    }
}
