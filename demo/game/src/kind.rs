//! The kinds of enemies, and their traits.
//!
//! | kind | path | fire |
//! |---|---|---|
//! | gunner | an orbit | one bullet at the nearest player, with a small error |
//! | urchin | an orbit | a ring, turned at random |
//! | spinner | an orbit | a spiral |
//! | sapper | from barrel to barrel | none; lights each barrel that it passes |
//! | charger | rests, then darts along its lane | none; hits by touch |
//! | boss | a wide orbit | fans and rings; spirals and fans; spirals and rings, by its health |

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EnemyKind {
    Gunner,
    Urchin,
    Spinner,
    Sapper,
    Charger,
    Boss,
}

impl EnemyKind {
    pub const ALL: [EnemyKind; 6] = [
        EnemyKind::Gunner,
        EnemyKind::Urchin,
        EnemyKind::Spinner,
        EnemyKind::Sapper,
        EnemyKind::Charger,
        EnemyKind::Boss,
    ];

    #[must_use]
    pub fn of_arena(slot: u16) -> EnemyKind {
        EnemyKind::ALL[usize::from(slot % 4)]
    }

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
