//! [`AllowedLead`]: how far the prediction may run ahead of the authority, so that its steps fit into the budget.
//!
//! Invariant: over budget, less of the future is shown at once; it comes back by a tick an `advance`, after a while in
//! which the budget sufficed.

use std::time::Duration;

use twinstep_core::bounds::LEAD_MAX;

/// Over budget for so long without a break in it, the lead grows by a tick an advance again.
const CALM: Duration = Duration::from_millis(500);

/// See the [module](self).
pub(super) struct AllowedLead {
    ticks: u32,
    shed_at: Duration,
}

impl AllowedLead {
    /// As far as there is any use in it.
    pub(super) fn new() -> AllowedLead {
        AllowedLead {
            ticks: LEAD_MAX,
            shed_at: Duration::ZERO,
        }
    }

    /// The lead that is allowed.
    pub(super) fn ticks(&self) -> u32 {
        self.ticks
    }

    /// Ticks have another length: it is no more than this.
    pub(super) fn bound(&mut self, max: u32) {
        self.ticks = self.ticks.min(max);
    }

    /// Of a lead of so many ticks less is shown from now on, rather than fall behind.
    pub(super) fn shed(&mut self, now: Duration, lead: u32) {
        self.ticks = self.ticks.min(lead).saturating_sub(1 + lead / 8);
        self.shed_at = now;
    }

    /// The budget sufficed.
    pub(super) fn grow(&mut self, now: Duration, max: u32) {
        if now.saturating_sub(self.shed_at) > CALM {
            self.ticks = (self.ticks + 1).min(max);
        }
    }
}
