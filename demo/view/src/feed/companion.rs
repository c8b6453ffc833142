//! [`Companion`]: who plays along, as far as a view tells of it.

use twinstep_core::PlayerId;
use twinstep_core::company::LinkQuality;

/// A player, as the lobby and the lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Companion {
    /// Who.
    pub id: PlayerId,
    /// What it wants to be called (which proves nothing), or its number.
    pub name: String,
    /// Whether it sits at this screen.
    pub is_local: bool,
    /// Whether it has its hands on its controls, else it was silent for long.
    pub is_here: bool,
    /// Whether the match waits for it (seed row 8).
    pub is_late: bool,
    /// Its link, as the server measures it; none: it is not connected, or nothing was told yet.
    pub link: Option<LinkQuality>,
}
