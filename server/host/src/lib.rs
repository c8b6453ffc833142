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

mod admin;
mod admin_address;
mod admin_client;
mod admin_error;
mod admin_port;
mod bans;
mod blueprint;
mod clock;
mod config;
mod demand;
mod door;
mod embed;
mod fleet;
mod floor;
mod handle;
mod hands;
mod incidents;
mod io;
mod isolation;
mod jobs;
mod journal_care;
mod journal_export;
mod journal_file;
mod journal_folder;
mod journal_read;
mod keeping;
mod line;
mod lineages;
mod load;
mod logged;
mod matches;
mod metrics;
mod minting;
pub mod operator;
mod orders;
mod own_files;
mod packets;
mod phase;
mod post;
pub mod prelude;
mod pulse;
mod register;
mod rejoin;
mod reload;
mod routes;
mod runner;
mod secret;
mod signal;
mod socket;
mod strain;
mod udp_door;
mod waker;
mod workers;

pub(crate) use bans::check as check_bans;
pub(crate) use clock::unix_now;
pub(crate) use config::BACK_AFTER;
pub(crate) use secret::{CREDENTIALS_VARIABLE, load_secret};

pub use admin_address::AdminAddress;
pub use admin_client::{AdminAnswer, AdminClient};
pub use admin_error::AdminError;
pub use bans::BansError;
pub use blueprint::Blueprint;
pub use config::{HostConfig, HostError};
pub use demand::{OnDemand, Template};
pub use embed::{Running, RunningMany, Server, Stopped, TicketIssuer};
pub use fleet::{FleetNews, Sidecar, SidecarError};
pub use handle::{MatchEnded, MatchHandle};
pub use journal_care::{Checkup, Harm};
pub use journal_export::{ExportError, Exported, export_journal};
pub use journal_file::{Durability, Journal, JournalFileError, OnJournalFailure};
pub use journal_folder::{JOURNAL_EXTENSION, LeftAlone, Unfinished, journals, newest_unfinished};
pub use journal_read::StoredJournal;
pub use keeping::KeepJournals;
pub use matches::Host;
pub use reload::{Reloader, RereadBans};
pub use signal::{StopSignal, stop_requested};
pub use strain::Limits;
/// What a game that lets players in meets of tickets; the crate `twinstep-udp` has the rest.
pub use twinstep_udp::{ServerAddress, Ticket, TicketError, TicketKey, TicketKeyError, TicketSpec};
