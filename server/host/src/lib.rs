//! The host: many matches in one process over one UDP socket, on tokio. The edge of this crate, where the
//! clock is read and bytes meet the operating system.
//!
//! ```text
//!             one task                           a few workers, whichever is free
//!  socket ◀─▶ io: ServerEndpoint ── heard ─────▶ runner: Match 1 ──▶ journal file, jobs
//!                  ▲        └────── heard ─────▶ runner: Match 2 ──▶ journal file, jobs
//!                  └─────────────── told ◀────────────┴──┘
//! ```
//!
//! It only moves what the state machines give and take. Every channel is bounded, and who finds one full drops
//! what it holds, as a network would: no match ever waits for another one, nor for the socket. A match that
//! panics or hangs ends alone (`host/workers.rs`, `host/isolation.rs`).
//!
//! Law **Journal first**: a runner appends a match's journal bytes before it hands on any packet that follows
//! them.

mod blueprint;
mod clock;
mod config;
mod control;
mod demand;
mod embed;
mod handle;
mod histogram;
mod incidents;
mod io;
mod isolation;
mod jobs;
mod journal_file;
mod journal_folder;
mod journal_read;
mod lineages;
mod listener;
mod load;
mod load_monitor;
mod logged;
mod mailbox;
mod match_inbox;
mod match_spawner;
mod matches;
mod minting;
mod observer;
mod orders;
mod own_files;
mod packets;
mod phase;
pub mod prelude;
mod pulse;
mod register;
mod rejoin;
mod routes;
mod runner;
mod secret;
mod signal;
mod socket;
mod thread_pool;
mod udp_listener;
mod waker;
mod workers;

pub use blueprint::Blueprint;
pub use config::{HostConfig, HostError};
pub use control::{HostControl, HostStatus, Unready};
pub use demand::{MatchEnd, NotMade, OnDemand, Template};
pub use embed::{Running, RunningMany, Server, Stopped, TicketIssuer};
pub use handle::{MatchEnded, MatchHandle};
pub use journal_file::{Durability, Journal, JournalFileError, OnJournalFailure};
pub use journal_folder::{JOURNAL_EXTENSION, LeftAlone, Unfinished, journals, newest_unfinished};
pub use journal_read::StoredJournal;
pub use load_monitor::{Full, Limits};
pub use matches::Host;
pub use observer::{AdmissionPolicy, MatchNumbers, MatchObserver, Observer, Traffic};
pub use orders::{MatchOrder, PersonLine};
pub use pulse::MatchGlance;
pub use register::ListedMatch;
pub use signal::{StopSignal, stop_requested};
/// What a game that lets players in meets of tickets; the crate `twinstep-udp` has the rest.
pub use twinstep_udp::{ServerAddress, Ticket, TicketError, TicketKey, TicketKeyError, TicketSpec};

/// What `twinstep-ops` shares with the host: its clock, its log, its way with files. Internal: it changes without notice.
pub mod internal {
    pub use crate::clock::{HostClock, unix_now};
    pub use crate::histogram::{BOUNDS_US, Histogram, Spread};
    pub use crate::journal_folder::ended;
    pub use crate::journal_read::COMPRESSED_EXTENSION;
    pub use crate::own_files::{Opened, copy_to_new, make_new, open_alone, open_to_read, with_end};
    pub use crate::secret::{CREDENTIALS_VARIABLE, load_secret};
    pub use tracing;

    /// Lines of the log, bounded by their kind.
    pub mod logged {
        pub use crate::logged::{LogKind, debug, error, info, warn};
    }
}
