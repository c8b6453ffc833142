//! [`Rules`]: what a match is played on.

use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::map::{FieldPoint, STEPS};
use super::unit::UnitId;

/// What a match is played on, and how many play for each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Fields from left to right and from top to bottom.
    pub fields: (i16, i16),
    /// Where towns may stand; a player's is told by its number.
    pub towns: Vec<FieldPoint>,
    /// Where gold is.
    pub mines: Vec<FieldPoint>,
    /// Villagers that a town begins with.
    pub villagers: u16,
    /// Ticks that a villager digs for one load.
    pub dig_ticks: u32,
    /// Units that a town may train to.
    pub units_max: u16,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            fields: (48, 20),
            towns: [(4, 3), (43, 16), (43, 3), (4, 16)].map(at).to_vec(),
            mines: [(12, 2), (35, 17), (35, 2), (12, 17), (24, 10)]
                .map(at)
                .to_vec(),
            villagers: 6,
            dig_ticks: 40,
            units_max: 60,
        }
    }
}

fn at((x, y): (i16, i16)) -> FieldPoint {
    FieldPoint::field(x, y)
}

impl Rules {
    /// Where a player's town stands.
    #[must_use]
    pub fn town(&self, player: PlayerId) -> FieldPoint {
        self.towns[player.index() % self.towns.len()]
    }

    /// Where a villager digs: every fourth in the middle of the map, the others near their town.
    #[must_use]
    pub fn mine(&self, villager: UnitId) -> FieldPoint {
        let near = villager.owner.index() % self.mines.len();
        let far = self.mines.len() - 1;
        self.mines[if villager.n % 4 == 3 { far } else { near }]
    }

    /// The nearest place on the map.
    #[must_use]
    pub fn clamp(&self, place: FieldPoint) -> FieldPoint {
        let (width, height) = self.fields;
        FieldPoint {
            x: place.x.clamp(0, width * STEPS - 1),
            y: place.y.clamp(0, height * STEPS - 1),
        }
    }
}
