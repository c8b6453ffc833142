//! What the admin port asks of a match, and what the match answers: carried out between two of its steps.

use std::path::PathBuf;

use serde::Serialize;
use tokio::sync::oneshot;

/// One person in a match, as the admin port tells it.
#[derive(Debug, Serialize)]
pub struct PersonLine {
    /// Its seat; none: it watches.
    pub seat: Option<u8>,
    /// The name on its ticket.
    pub identity: String,
    /// What it calls itself.
    pub name: String,
    /// `playing`, `joining` or `away`.
    pub state: &'static str,
    /// Whether it has a session.
    pub connected: bool,
    /// For how long it has been in this state, in seconds.
    pub since_s: f64,
    /// How early its inputs come.
    pub margin_ticks: Option<i64>,
    /// The round trip of its packets.
    pub round_trip_ms: Option<f64>,
}

/// Something that an operator wants of a match.
#[non_exhaustive]
pub enum MatchOrder {
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
