//! The kinds of enemies, and what they are like.
//!
//! | kind | way | fire |
//! |---|---|---|
//! | gunner | an orbit | one bullet at the nearest player, nearly |
//! | urchin | an orbit | a ring, turned by chance |
//! | spinner | an orbit | a spiral |
//! | sapper | from barrel to barrel | none; lights each barrel that it passes |
//! | charger | rests, then darts along its lane | none; do not stand there |
//! | boss | a wide orbit | fans and rings; spirals and fans; spirals and rings, by its health |

use serde::{Deserialize, Serialize};

/// What an enemy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Aims.
    Gunner,
    /// Bursts.
    Urchin,
    /// Spirals.
    Spinner,
    /// Lights barrels.
    Sapper,
    /// Darts.
    Charger,
    /// The last one of a round.
    Boss,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] = [
        Kind::Gunner,
        Kind::Urchin,
        Kind::Spinner,
        Kind::Sapper,
        Kind::Charger,
        Kind::Boss,
    ];

    /// The kind of every life in a slot of an endless arena.
    #[must_use]
    pub fn of_arena(slot: u16) -> Kind {
        Kind::ALL[usize::from(slot % 4)]
    }

    /// In units.
    #[must_use]
    pub const fn radius(self) -> f32 {
        match self {
            Kind::Gunner => 0.6,
            Kind::Urchin => 0.8,
            Kind::Spinner => 0.7,
            Kind::Sapper => 0.5,
            Kind::Charger => 0.7,
            Kind::Boss => 2.2,
        }
    }

    /// Health at birth, when one player plays.
    #[must_use]
    pub const fn health(self) -> i16 {
        match self {
            Kind::Gunner => 30,
            Kind::Urchin => 60,
            Kind::Spinner => 50,
            Kind::Sapper => 20,
            Kind::Charger => 50,
            Kind::Boss => 1_800,
        }
    }

    /// What its death is worth.
    #[must_use]
    pub const fn points(self) -> u16 {
        match self {
            Kind::Gunner => 10,
            Kind::Urchin => 25,
            Kind::Spinner => 20,
            Kind::Sapper => 15,
            Kind::Charger => 20,
            Kind::Boss => 500,
        }
    }
}
