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
pub enum EnemyKind {
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

impl EnemyKind {
    /// All kinds.
    pub const ALL: [EnemyKind; 6] = [
        EnemyKind::Gunner,
        EnemyKind::Urchin,
        EnemyKind::Spinner,
        EnemyKind::Sapper,
        EnemyKind::Charger,
        EnemyKind::Boss,
    ];

    /// The kind of every life in a slot of an endless arena.
    #[must_use]
    pub fn of_arena(slot: u16) -> EnemyKind {
        EnemyKind::ALL[usize::from(slot % 4)]
    }

    /// In units.
    #[must_use]
    pub const fn radius(self) -> f32 {
        match self {
            EnemyKind::Gunner => 0.6,
            EnemyKind::Urchin => 0.8,
            EnemyKind::Spinner => 0.7,
            EnemyKind::Sapper => 0.5,
            EnemyKind::Charger => 0.7,
            EnemyKind::Boss => 2.2,
        }
    }

    /// Health at birth, when one player plays.
    #[must_use]
    pub const fn health(self) -> i16 {
        match self {
            EnemyKind::Gunner => 30,
            EnemyKind::Urchin => 60,
            EnemyKind::Spinner => 50,
            EnemyKind::Sapper => 20,
            EnemyKind::Charger => 50,
            EnemyKind::Boss => 1_800,
        }
    }

    /// What its death is worth.
    #[must_use]
    pub const fn points(self) -> u16 {
        match self {
            EnemyKind::Gunner => 10,
            EnemyKind::Urchin => 25,
            EnemyKind::Spinner => 20,
            EnemyKind::Sapper => 15,
            EnemyKind::Charger => 20,
            EnemyKind::Boss => 500,
        }
    }
}
