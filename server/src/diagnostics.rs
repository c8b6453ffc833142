//! [`Diagnostics`]: what a match has counted, what went wrong in it, and what clients say of where they differed.

use std::time::Duration;

use twinstep_core::Tick;

use crate::caught::Panics;
use crate::incident::{INCIDENTS_MAX, Incident, Notices};
use crate::stopwatch::Timing;
use crate::tally::Tally;
use twinstep_protocol::identity::SessionId;

/// Desync reports that wait to be taken.
const REPORTS_MAX: usize = 16;

/// What a match has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchStats {
    /// Ticks sealed.
    pub ticks: u64,
    /// Turns sent.
    pub turns: u64,
    /// Inputs that did not come in time and were filled, over all players.
    pub fills: u64,
    /// Queries asked.
    pub queries: u64,
    /// Outcomes decided (`None`s not counted).
    pub outcomes: u64,
    /// Outcomes that the client of the player who asked gave.
    pub owner_answers: u64,
    /// Answers of owners that the referee refused.
    pub forged_answers: u64,
    /// Queries that stayed without an answer.
    pub unanswered: u64,
    /// Players whose clients differed from the server, each counted at most once in an hour.
    pub desyncs: u64,
    /// Desyncs at which the journal says that this server's own world differs.
    pub server_faults: u64,
    /// Desyncs at which the journal's frames lead to another world each time: the step is not pure.
    pub impure_steps: u64,
    /// Desync reports that nobody asked for, or for which there was no room.
    pub reports_dropped: u64,
    /// Worlds sent to heal.
    pub heals: u64,
    /// Sessions that began with what the match began with, which they had, and the frames since: without a world.
    pub joined_by_frames: u64,
    /// Returns of players that counted as a sign of life: each identity's first one in a minute.
    pub excused: u64,
    /// Packets that could not be read.
    pub malformed: u64,
    /// Panics of the step or a hook that were caught.
    pub panics: u64,
    /// Steps that brought a NaN into the state, and did not count.
    pub nans: u64,
    /// Outcomes that were over their bound, or could not be read again: their queries stayed unanswered.
    pub outcomes_unsent: u64,
    /// The world's size when it was last looked at (every 10 s, and when it is sent), in bytes. Above
    /// [`WORLD_BYTES_MAX`](twinstep_core::bounds::WORLD_BYTES_MAX) nobody can join or be healed, and from half of it on
    /// an incident warns.
    pub world_bytes: usize,
    /// Worlds that were not written, kept or sent, because they were too large.
    pub worlds_too_large: u64,
    /// The first tick that is not in the journal, if that cannot be written any more and the match goes on.
    pub journal_lost: Option<Tick>,
    /// By how much the match's clock gave way, because it was not advanced in time.
    pub slipped: Duration,
    /// For how long the match stood still for machines that trailed.
    pub held: Duration,
}

/// A client's word on where its state differed, as it came (escaped and bounded by the client; not
/// trusted).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whose word.
    pub peer: SessionId,
    /// Its text.
    pub text: String,
    /// The journal says that the client was right: this server's own world differs from it.
    pub server_at_fault: bool,
    /// The journal's frames lead to another world each time: the step is not pure, and neither side is at fault.
    pub step_impure: bool,
}

/// See the [module](self).
pub(super) struct Diagnostics {
    pub(super) stats: MatchStats,
    /// How sessions came in, and why they were removed.
    pub(super) tally: Tally,
    /// What an author's code takes, if somebody wants to know.
    pub(super) timing: Timing,
    /// Panics that hooks were saved from, and that are not told yet.
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
    /// Something went wrong.
    pub(super) fn note(&mut self, incident: Incident) {
        self.incidents.push(incident);
    }

    /// Tells of the panics that hooks were saved from.
    pub(super) fn note_panics(&mut self) {
        self.stats.panics += std::mem::take(&mut self.panics.count);
        for incident in std::mem::take(&mut self.panics.incidents) {
            self.note(incident);
        }
    }
}
