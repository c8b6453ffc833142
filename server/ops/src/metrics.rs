//! Metrics for Prometheus: the response to `GET /metrics`.
//!
//! ```text
//!  each match ──────▶ MatchCounts ──┐ while it runs
//!                        │ over     ├─▶ Metrics ─▶ Page ─▶ text
//!                        └──▶ sum ──┤
//!  I/O task ──▶ IoCounts ───────────┘
//! ```
//!
//! Invariant: a scrape does not cost the matches time: it reads published numbers, and takes a lock that matches do not
//! need.

mod counts;
mod ledger;
mod names;
mod text;

use counts::{DROPS, TOLD, WEB_CLOSED};
use text::Page;
use twinstep_host::{HostStatus, MatchEnd, NotMade};
use twinstep_server::incident::Trouble;
use twinstep_server::internal::{JoinResult, KickReason};

pub use ledger::Metrics;
pub(crate) use text::CONTENT_TYPE;

pub(crate) fn page(game: &str, is_ready: bool, status: &HostStatus, metrics: &Metrics) -> String {
    let (sum, io) = (metrics.sum(), metrics.io());
    let (made, not_made, ended) = metrics.demand();
    let mut page = Page::default();
    let wire = twinstep_protocol::packet::WIRE_VERSION.to_string();
    let version = env!("CARGO_PKG_VERSION");
    let build = [("version", version), ("wire", &wire), ("game", game)];
    page.labelled(&names::BUILD_INFO, &build, 1);
    page.one(&names::READY, u8::from(is_ready));
    page.one(&names::MATCHES, status.matches);
    page.one(&names::MATCHES_MAX, status.matches_max);
    page.one(&names::PLAYERS, status.players);
    page.one(&names::SPECTATORS, status.spectators);
    page.one(&names::SEATS_FREE, status.seats_free);
    page.one(&names::SESSIONS, status.sessions);
    page.one(&names::SESSIONS_MAX, status.sessions_max);
    page.one(&names::RELIEF, status.relief_steps);
    page.if_known(&names::MEMORY, status.memory_bytes);
    page.if_known(&names::DISK_FREE, status.disk_free_bytes);
    page.spread(&names::TICK_LATENESS, &sum.lateness);
    page.spread(&names::STEP_TIME, &sum.step);
    page.spread(&names::SEAL_TO_SEND, &io.seal_to_send.spread());
    page.spread(&names::RESOLVER_TIME, &sum.resolver);
    for ((family, _), number) in TOLD.iter().zip(sum.stats) {
        page.one(family, number);
    }
    page.one(&names::PANICS, sum.panics);
    page.one(&names::JOURNAL_BYTES, sum.journal_bytes);
    page.one(&names::JOURNAL_WRITES, sum.journal_writes);
    page.one(&names::JOURNAL_ERRORS, sum.journal_errors);
    page.one(&names::MADE, made);
    let not_made = NotMade::NAMES.into_iter().zip(not_made);
    page.by(&names::NOT_MADE, "reason", not_made);
    let ended = MatchEnd::NAMES.into_iter().zip(ended);
    page.by(&names::ENDED, "reason", ended);
    let joins = JoinResult::NAMES.into_iter().zip(sum.joins);
    page.by(&names::JOINS, "result", joins);
    let kicks = KickReason::NAMES.into_iter().zip(sum.kicks);
    page.by(&names::KICKS, "reason", kicks);
    let incidents = Trouble::NAMES.into_iter().zip(metrics.incidents());
    page.by(&names::INCIDENTS, "kind", incidents);
    for (family, number) in io.traffic() {
        page.one(family, number);
    }
    page.by(
        &names::DROPPED,
        "reason",
        DROPS.into_iter().zip(io.dropped()),
    );
    page.one(&names::WEB_LINES, io.web_lines());
    page.by(
        &names::WEB_CLOSED,
        "reason",
        WEB_CLOSED.into_iter().zip(io.web_closed()),
    );
    page.finish()
}

#[cfg(test)]
mod tests;
