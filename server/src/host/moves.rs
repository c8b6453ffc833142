//! What passes between the admin port, which hands matches over, and a match that goes.

use std::path::PathBuf;
use twinstep_udp::ServerAddress;

use tokio::sync::oneshot;

/// What a match is asked on its way to another process.
pub(super) enum Move {
    /// Whether it can: its journal, or why not.
    Can(oneshot::Sender<Result<PathBuf, &'static str>>),
    /// To go.
    Go(MoveOrder),
}

/// A match is to be handed over.
pub(super) struct MoveOrder {
    /// What its clients shall dial.
    pub(super) to: Vec<ServerAddress>,
    /// Where the answer goes: the journal and the tick at which it ended, or why not.
    pub(super) done: oneshot::Sender<Result<Moved, &'static str>>,
}

/// A match was handed over.
pub(super) struct Moved {
    pub(super) journal: PathBuf,
    pub(super) tick: u32,
    pub(super) stopped_unix_ms: u64,
}
