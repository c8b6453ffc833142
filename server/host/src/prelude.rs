//! What the server of a game imports: `use twinstep_host::prelude::*;`
//!
//! The words of the rules themselves are in `twinstep_core::prelude`.

pub use crate::{Host, HostConfig, HostError, Running, Server, Ticket, TicketKey};
pub use twinstep_server::prelude::*;
