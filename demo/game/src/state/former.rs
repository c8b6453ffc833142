//! [`Former`]: what a seat remembers of who left it. What becomes of that stands in `player::former`.

use serde::{Deserialize, Serialize};
use twinstep_core::Tick;

/// What is remembered of who has left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Former {
    /// How far its names are used up.
    pub(crate) life: u32,
    pub(crate) shots: u32,
    /// When it could have sprinted again.
    pub(crate) next_dash: Tick,
    /// In which round it left, and when.
    pub(crate) round: u32,
    pub(crate) left: Tick,
    pub(crate) fate: Fate,
}

/// How it stood with who left.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// Nothing could hurt it there.
    Well,
    /// In a fight, with so much health.
    Hurt(i16),
    /// It was dead, and would be back at this tick.
    Dead(Tick),
    /// It would not have lived; the life that this costs the team is taken when somebody joins in its place.
    Fell(Tick),
    /// No life was left for it in this wave.
    Out(u8),
}
