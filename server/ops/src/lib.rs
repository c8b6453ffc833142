//! The operator's tools for a server: settings from flags, environment and file; an admin port and its client; metrics;
//! bans; retention of journals; membership in a fleet.
//!
//! ```text
//!  flags, environment, file ─▶ operator ─▶ Server (twinstep_host) ──HostControl──▶ RunningOps ◀── operators, fleet, SIGHUP
//!                                            │  ▲
//!                                 Observer ──┘  └── AdmissionPolicy
//!                                 metrics           bans
//! ```
//!
//! The host does not depend on this crate. It calls its own traits [`Observer`](twinstep_host::Observer) and
//! [`AdmissionPolicy`](twinstep_host::AdmissionPolicy), which [`Metrics`] and the bans implement. [`Ops`] adds all
//! tools to your own host; [`operator`] provides a whole program.

mod admin;
mod admin_address;
mod admin_client;
mod admin_error;
mod admin_port;
mod bans;
mod fleet;
mod inspect;
mod journal_care;
mod journal_export;
mod keeping;
mod metrics;
mod operations;
pub mod operator;

pub use admin_address::AdminAddress;
pub use admin_client::{AdminAnswer, AdminClient};
pub use admin_error::AdminError;
pub use bans::BansError;
pub use fleet::{FleetNews, Sidecar, SidecarError};
pub use inspect::{INSPECT_TICKS_MAX, InspectError, Inspected, Inspector};
pub use journal_care::{Checkup, Harm};
pub use journal_export::{ExportError, Exported, export_journal};
pub use keeping::KeepJournals;
pub use metrics::Metrics;
pub use operations::{Ops, OpsConfig, OpsError, ReloadedBans, RunningOps};
