//! The imports of a game's server: `use twinstep_host::prelude::*;`
//!
//! The names for the rules are in `twinstep_core::prelude`.

pub use crate::{Host, HostConfig, HostError, Running, Server, Stopped, Ticket, TicketKey};
pub use twinstep_server::prelude::*;
