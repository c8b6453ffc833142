//! [`Inquiry`]: the state of one client's desync, used to check its report of where the worlds differ.
//!
//! ```text
//!  it differs at t ─▶ begin ─▶ (the journal's verdict: correct) ─▶ it asks for t: show ─▶ one report
//! ```
//!
//! Invariant: a client may send one report for each piece of evidence that it was sent, and no other reports.

use std::sync::Arc;

use twinstep_core::Tick;

/// The side that is at fault for a desync, as far as the journal shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) server_at_fault: bool,
    pub(crate) step_impure: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Inquiry {
    /// The tick at which the worlds differ, and the server's world of that tick.
    evidence: Option<(Tick, Arc<[u8]>)>,
    reports_due: u32,
    verdict: Verdict,
}

impl Inquiry {
    /// Starts an inquiry into a new desync. `evidence` is the server's world of that tick, if it is still kept.
    pub(crate) fn begin(&mut self, evidence: Option<(Tick, Arc<[u8]>)>) {
        self.evidence = evidence;
    }

    pub(crate) fn judge(&mut self, verdict: Verdict) {
        self.verdict.server_at_fault |= verdict.server_at_fault;
        self.verdict.step_impure |= verdict.step_impure;
    }

    /// Records the journal's world of a tick. It replaces the server's own world if that world was wrong or is missing.
    pub(crate) fn correct(&mut self, tick: Tick, world: Arc<[u8]>, was_wrong: bool) {
        if was_wrong || self.evidence.is_none() {
            self.evidence = Some((tick, world));
        }
    }

    pub(crate) fn take_evidence(&mut self, tick: Tick) -> Option<Arc<[u8]>> {
        let (_, world) = self.evidence.take_if(|(kept, _)| *kept == tick)?;
        Some(world)
    }

    pub(crate) fn expect_report(&mut self) {
        self.reports_due += 1;
    }

    pub(crate) fn take_report(&mut self) -> bool {
        let is_due = self.reports_due > 0;
        self.reports_due -= u32::from(is_due);
        is_due
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict
    }
}
