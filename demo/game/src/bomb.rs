//! [`Bomb`]: what goes off, and how strongly.

use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::rules::Tuning;

/// What goes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bomb {
    /// A barrel, by number.
    Barrel(u8),
    /// A shell, where it lands.
    Shell {
        /// Who fired it.
        owner: PlayerId,
        /// Which of the player's shots.
        n: u32,
    },
}

impl Bomb {
    /// How far its blast reaches, in units.
    #[must_use]
    pub fn radius(self, tuning: &Tuning) -> f32 {
        match self {
            Bomb::Barrel(_) => tuning.blast_radius,
            Bomb::Shell { .. } => tuning.shell_radius,
        }
    }

    /// What its blast takes at its middle.
    #[must_use]
    pub fn damage(self, tuning: &Tuning) -> i16 {
        match self {
            Bomb::Barrel(_) => tuning.blast_damage,
            Bomb::Shell { .. } => tuning.shell_damage,
        }
    }
}
