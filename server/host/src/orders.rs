//! [`MatchOrder`]: an operator's orders to a match, and its responses. Executed between two steps.

use std::path::PathBuf;

use serde::Serialize;
use tokio::sync::oneshot;
use twinstep_server::config::ConfigError;
use twinstep_server::{MatchRequest, SaveWriteError};

/// One player or spectator in a match, as listed by the admin port.
#[derive(Debug, Serialize)]
pub struct PersonLine {
    /// The seat; `None` for a spectator.
    pub seat: Option<u8>,
    /// The identity on the ticket.
    pub identity: String,
    /// The display name.
    pub name: String,
    /// `playing`, `joining` or `away`.
    pub state: &'static str,
    /// `true` if the player or spectator has a session.
    pub connected: bool,
    /// The time that the player or spectator has been in this state, in seconds.
    pub since_s: f64,
    /// The tick of the newest input minus the next tick to seal.
    pub margin_ticks: Option<i64>,
    /// The round-trip time.
    pub round_trip_ms: Option<f64>,
}

/// An operator's order to a match.
#[non_exhaustive]
pub enum MatchOrder {
    /// Lists players and spectators.
    People(oneshot::Sender<Vec<PersonLine>>),
    /// Removes an identity for the rest of the match. Responds with `true` if the identity was in the match.
    Kick(String, oneshot::Sender<bool>),
    /// Lifts a kick. Responds with `true` if the identity was kicked.
    Pardon(String, oneshot::Sender<bool>),
    /// Revokes the tickets of an identity. Responds with the cutoff in milliseconds since the Unix epoch: tickets
    /// issued before it are refused.
    Revoke(String, oneshot::Sender<u64>),
    /// Sends a message to all players and spectators. Responds with the number of recipients.
    Notify(String, oneshot::Sender<usize>),
    /// Sends a request to the match, such as a pause. Responds with an error if the match refuses it.
    Request(MatchRequest, oneshot::Sender<Result<(), ConfigError>>),
    /// Ends the match, for this reason.
    End(String, oneshot::Sender<()>),
    /// Saves the match. Responds with the bytes of the save, or with an error.
    Save(oneshot::Sender<Result<Vec<u8>, SaveWriteError>>),
    /// Responds with the absolute path of the journal, or with the reason why there is none.
    Journal(oneshot::Sender<Result<PathBuf, &'static str>>),
    /// Ends the match here, so that another process can resume it from its journal. Responds with the next tick once
    /// that process can open the journal, or with the reason why the match stays.
    Release(oneshot::Sender<Result<u32, &'static str>>),
    /// Ends the match if it is deserted. Responds with `true` if it ends.
    EndDeserted(oneshot::Sender<bool>),
}
