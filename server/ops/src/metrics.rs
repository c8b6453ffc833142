//! What a server has counted, for Prometheus: the answer to `GET /metrics`.
//!
//! ```text
//!  each match ──────▶ MatchCounts ──┐ while it runs
//!                        │ over     ├─▶ Ledger ──┐
//!                        └──▶ sum ──┘            ├─▶ Page ─▶ text
//!  I/O task ──▶ IoCounts ────────────────────────┘
//! ```
//!
//! Invariant: a scrape costs the matches nothing: it reads what they show, and takes a lock that they do not need.

mod counts;
mod histogram;
mod ledger;
mod names;
mod text;

use counts::{DROPS, TOLD};
pub(super) use counts::{Gauges, HostStopwatch, IoCounts, MatchCounts, Traffic};
pub(super) use histogram::Spread;
pub(super) use ledger::{Entry, Ledger};
use text::Page;

use twinstep_server::incident::Trouble;
use twinstep_server::internal::{JoinResult, KickReason};

pub(super) use text::CONTENT_TYPE;

/// What a server says of itself besides what it has counted.
pub(super) struct About<'a> {
    pub(super) game: &'a str,
    pub(super) is_ready: bool,
    pub(super) sessions_max: usize,
    pub(super) demand: DemandTold,
    pub(super) strain: StrainTold,
}

/// What became of wishes for matches, by the names of the reasons.
#[derive(Default)]
pub(super) struct DemandTold {
    pub(super) at_once: usize,
    pub(super) made: u64,
    pub(super) not_made: Vec<(&'static str, u64)>,
    pub(super) ended: Vec<(&'static str, u64)>,
}

/// What was measured last.
#[derive(Default)]
pub(super) struct StrainTold {
    pub(super) steps: u8,
    pub(super) memory_bytes: u64,
    pub(super) disk_free_bytes: u64,
}

/// All metrics, as text.
pub(super) fn page(about: &About<'_>, ledger: &Ledger, io: &IoCounts) -> String {
    let (sum, gauges) = (ledger.sum(), ledger.gauges());
    let mut page = Page::default();
    let wire = twinstep_protocol::packet::WIRE_VERSION.to_string();
    let version = env!("CARGO_PKG_VERSION");
    let build = [("version", version), ("wire", &wire), ("game", about.game)];
    page.labelled(&names::BUILD_INFO, &build, 1);
    page.one(&names::READY, u8::from(about.is_ready));
    page.one(&names::MATCHES, gauges.matches);
    page.one(&names::MATCHES_MAX, about.demand.at_once);
    page.one(&names::PLAYERS, gauges.players);
    page.one(&names::SPECTATORS, gauges.spectators);
    page.one(&names::SEATS_FREE, gauges.seats_free);
    page.one(&names::SESSIONS, io.sessions());
    page.one(&names::SESSIONS_MAX, about.sessions_max);
    page.one(&names::RELIEF, about.strain.steps);
    page.one(&names::MEMORY, about.strain.memory_bytes);
    page.one(&names::DISK_FREE, about.strain.disk_free_bytes);
    let mut sent = Spread::default();
    io.seal_to_send.add_to(&mut sent);
    page.spread(&names::TICK_LATENESS, &sum.lateness);
    page.spread(&names::STEP_TIME, &sum.step);
    page.spread(&names::SEAL_TO_SEND, &sent);
    page.spread(&names::RESOLVER_TIME, &sum.resolver);
    for ((family, _), number) in TOLD.iter().zip(sum.stats) {
        page.one(family, number);
    }
    page.one(&names::PANICS, sum.panics);
    page.one(&names::JOURNAL_BYTES, sum.journal_bytes);
    page.one(&names::JOURNAL_WRITES, sum.journal_writes);
    page.one(&names::JOURNAL_ERRORS, sum.journal_errors);
    page.one(&names::MADE, about.demand.made);
    let not_made = about.demand.not_made.iter().copied();
    page.by(&names::NOT_MADE, "reason", not_made);
    page.by(&names::ENDED, "how", about.demand.ended.iter().copied());
    let joins = JoinResult::NAMES.into_iter().zip(sum.joins);
    page.by(&names::JOINS, "result", joins);
    let kicks = KickReason::NAMES.into_iter().zip(sum.kicks);
    page.by(&names::KICKS, "reason", kicks);
    let incidents = Trouble::NAMES.into_iter().zip(ledger.incidents());
    page.by(&names::INCIDENTS, "kind", incidents);
    for (family, number) in io.traffic() {
        page.one(family, number);
    }
    page.by(
        &names::DROPPED,
        "reason",
        DROPS.into_iter().zip(io.dropped()),
    );
    page.finish()
}

#[cfg(test)]
mod tests;
