//! [`Inquiry`]: what is known of a client's difference, for its report of where the worlds differ.
//!
//! ```text
//!  it differs at t ─▶ begin ─▶ (the journal's verdict: correct) ─▶ it asks for t: show ─▶ one report
//! ```
//!
//! Invariant: a client may send one report for each evidence that it was shown, and no other.

use std::sync::Arc;

use twinstep_core::Tick;

/// Whose fault a difference is, as far as the journal says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    /// The journal says that this client was right.
    pub(crate) server_at_fault: bool,
    /// The journal's frames lead to another world each time.
    pub(crate) step_impure: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Inquiry {
    /// The tick that differed, and the server's world of it.
    evidence: Option<(Tick, Arc<[u8]>)>,
    /// Reports that the client may send.
    reports_due: u32,
    verdict: Verdict,
}

impl Inquiry {
    /// The client differs: this is the server's world of that tick, if it is still there.
    pub(crate) fn begin(&mut self, evidence: Option<(Tick, Arc<[u8]>)>) {
        self.evidence = evidence;
    }

    /// What the journal says; it stays so.
    pub(crate) fn judge(&mut self, verdict: Verdict) {
        self.verdict.server_at_fault |= verdict.server_at_fault;
        self.verdict.step_impure |= verdict.step_impure;
    }

    /// The journal's world of a tick: it counts where the server's own was wrong, or is not there.
    pub(crate) fn correct(&mut self, tick: Tick, world: Arc<[u8]>, was_wrong: bool) {
        if was_wrong || self.evidence.is_none() {
            self.evidence = Some((tick, world));
        }
    }

    /// The world of a tick, once, if it is kept.
    pub(crate) fn take_evidence(&mut self, tick: Tick) -> Option<Arc<[u8]>> {
        let (_, world) = self.evidence.take_if(|(kept, _)| *kept == tick)?;
        Some(world)
    }

    /// The client was shown evidence, and may report.
    pub(crate) fn expect_report(&mut self) {
        self.reports_due += 1;
    }

    /// A report came; whether it may be taken.
    pub(crate) fn take_report(&mut self) -> bool {
        let is_due = self.reports_due > 0;
        self.reports_due -= u32::from(is_due);
        is_due
    }

    /// Whose fault it is, as far as is known.
    pub(crate) fn verdict(&self) -> Verdict {
        self.verdict
    }
}
