//! What the admin port asks of a match, and what the match answers: carried out between two of its steps.

use std::path::PathBuf;

use serde::Serialize;
use tokio::sync::oneshot;

/// One person in a match, as the admin port tells it.
#[derive(Debug, Serialize)]
pub(super) struct PersonLine {
    /// Its seat; none: it watches.
    pub(super) seat: Option<u8>,
    pub(super) identity: String,
    pub(super) name: String,
    /// `playing`, `joining` or `away`.
    pub(super) state: &'static str,
    pub(super) connected: bool,
    /// For how long it has been in this state, in seconds.
    pub(super) since_s: f64,
    pub(super) margin_ticks: Option<i64>,
    pub(super) round_trip_ms: Option<f64>,
}

/// Something that an operator wants of a match.
pub(super) enum Order {
    /// Who is there?
    People(oneshot::Sender<Vec<PersonLine>>),
    /// This identity is to go, and to stay out of the match; whether it was there.
    Kick(String, oneshot::Sender<bool>),
    /// This identity may come back after a kick; whether it was kicked.
    Pardon(String, oneshot::Sender<bool>),
    /// Tickets of this identity that were made so far are worthless. Answers before which time, in milliseconds since the unix
    /// epoch.
    Revoke(String, oneshot::Sender<u64>),
    /// All who are there are to read this; how many these are.
    Notify(String, oneshot::Sender<usize>),
    /// The match is to end, for this reason.
    End(String, oneshot::Sender<()>),
    /// Where its journal is, as it can be found from any folder; or why there is none.
    Journal(oneshot::Sender<Result<PathBuf, &'static str>>),
    /// The match is to end here, so that another process can resume it from its journal. Answers with the next tick once that
    /// process can open the journal, or why the match stays.
    Release(oneshot::Sender<Result<u32, &'static str>>),
    /// The match is to end if nobody is there; whether it did.
    EndDeserted(oneshot::Sender<bool>),
}
