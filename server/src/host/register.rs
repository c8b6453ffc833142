//! The matches of a host, as its admin port sees them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::clock::HostClock;
use super::knock::OwnKnocks;
use super::moves::Move;
use super::pulse::{Beat, Pulse};
use super::taker::Taker;

/// What the admin port knows of a match.
#[derive(Clone)]
pub(super) struct ListedMatch {
    pub(super) pulse: Arc<Pulse>,
    pub(super) moves: mpsc::Sender<Move>,
    /// What another server must be able to run to take it over.
    pub(super) needs: Taker,
}

/// The matches of a host, as its admin port sees them.
pub(super) type Register = Arc<Mutex<BTreeMap<u64, ListedMatch>>>;

/// What an admin port is about.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) clock: HostClock,
    pub(super) beat: Arc<Beat>,
    pub(super) matches: Register,
    /// The game that is played here.
    pub(super) game: String,
    /// What players of this server dial.
    pub(super) public: Vec<SocketAddr>,
    pub(super) own_knocks: OwnKnocks,
}

impl Admin {
    /// The matches that run.
    pub(super) fn known(&self) -> BTreeMap<u64, ListedMatch> {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, known| !known.moves.is_closed() && !known.pulse.is_condemned());
        matches.clone()
    }
}
