//! The host: many matches in one process over one UDP socket, on tokio; with the feature `web`, also for browsers. It
//! gives the matches, which do no I/O, their clock, sockets and files.
//!
//! ```text
//!             one task                           a few workers, whichever is free
//!  socket ◀─▶ io: ServerEndpoint ── FromIo ────▶ runner: Match 1 ──▶ journal file, jobs
//!                  ▲        └────── FromIo ────▶ runner: Match 2 ──▶ journal file, jobs
//!                  └─────────────── ToIo ◀────────────┴──┘
//! ```
//!
//! The host only moves the inputs and outputs of state machines. Each queue of packets is bounded; a sender whose queue
//! is full drops its packet, as a network would. So a match waits neither for another match nor for the socket. A match
//! that panics or hangs ends alone (`host/workers.rs`, `host/isolation.rs`).
//!
//! Law **Journal first**: a runner appends a match's journal bytes before it passes on any packet that follows them.

mod blueprint;
mod clock;
mod config;
mod control;
mod datagram_listener;
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
mod listener;
mod load;
mod load_monitor;
mod logged;
mod mailbox;
mod match_inbox;
mod match_spawner;
mod matches;
mod observer;
mod orders;
mod own_files;
mod packets;
mod phase;
pub mod prelude;
mod pulse;
mod register;
mod routes;
mod runner;
mod save_file;
mod secret;
mod signal;
mod socket;
mod thread_pool;
mod tickets;
mod waker;
mod web;
mod workers;

pub use blueprint::Blueprint;
pub use config::{HostConfig, HostError};
pub use control::{HostControl, HostStatus, NotReady};
pub use demand::{BlueprintSource, MatchEnd, NotMade, OnDemand};
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
pub use save_file::{SaveFileError, read_save, read_save_info, write_save, write_save_in};
pub use signal::{StopSignal, stop_requested};
/// The ticket types that a game needs to admit players; `twinstep-udp` has the rest.
pub use twinstep_udp::{
    MatchId, ServerAddress, Ticket, TicketError, TicketKey, TicketKeyError, TicketSpec, WebAddress,
};
pub use web::{WebCertificate, WebConfig, WebTraffic};

/// Parts of the host that `twinstep-ops` shares: clock, log, files. Internal: may change without notice.
pub mod internal {
    pub use crate::clock::{HostClock, unix_now, utc};
    pub use crate::histogram::{BOUNDS_US, Histogram, Spread};
    pub use crate::journal_folder::ended;
    pub use crate::journal_read::COMPRESSED_EXTENSION;
    pub use crate::own_files::{
        FileLock, access_advice, copy_to_new, create_locked, open_locked, open_to_read, with_end,
    };
    pub use crate::secret::{CREDENTIALS_VARIABLE, load_secret};
    pub use tracing;

    /// Log lines, rate-limited by their kind.
    pub mod logged {
        pub use crate::logged::{LogKind, debug, error, info, warn};
    }
}
