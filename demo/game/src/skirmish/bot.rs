//! A player made of numbers: about once a second it looks at the map and gives one order.

use twinstep_core::{Mwc, PlayerId, Tick};

use super::map::FieldPoint;
use super::messages::{BOMB_COST, Command};
use super::state::Skirmish;
use super::unit::UnitKind;

/// Villagers that it wants before anything else.
const VILLAGERS: usize = 10;
/// Soldiers that it waits for before it attacks.
const TROOP: usize = 4;

/// One bot. The same seed and the same states make the same bot.
#[derive(Clone, Debug)]
pub struct SkirmishBot {
    luck: Mwc,
    next_order: Tick,
}

impl SkirmishBot {
    /// A bot with luck of its own.
    #[must_use]
    pub fn new(luck: Mwc) -> SkirmishBot {
        SkirmishBot {
            luck,
            next_order: Tick(0),
        }
    }

    /// What it orders at `now`. Call it once for each tick.
    pub fn think(&mut self, game: &Skirmish, me: PlayerId, now: Tick) -> Option<Command> {
        let town = game.towns.get(&me)?;
        if now < self.next_order {
            return None;
        }
        self.next_order = now + 15 + self.luck.below(10);
        let count = |kind| {
            let own = game.units.iter().filter(|(id, _)| id.owner == me);
            own.filter(|(_, unit)| unit.kind == kind).count()
        };
        let (villagers, soldiers) = (count(UnitKind::Villager), count(UnitKind::Soldier));
        let chance = self.luck.below(4);
        if villagers < VILLAGERS && town.gold >= UnitKind::Villager.price() && chance < 2 {
            Some(Command::Train(UnitKind::Villager))
        } else if town.gold >= BOMB_COST + UnitKind::Soldier.price() && chance == 2 {
            self.prey(game, me, now).map(Command::Bomb)
        } else if soldiers >= TROOP && chance == 3 {
            self.prey(game, me, now).map(Command::Send)
        } else if town.gold >= UnitKind::Soldier.price() {
            Some(Command::Train(UnitKind::Soldier))
        } else {
            None
        }
    }

    /// Where a unit of an enemy is, by chance.
    fn prey(&mut self, game: &Skirmish, me: PlayerId, now: Tick) -> Option<FieldPoint> {
        let enemies = || game.units.iter().filter(|(id, _)| id.owner != me);
        let n = self.luck.below((enemies().count() as u32).max(1));
        let (_, unit) = enemies().nth(n as usize)?;
        Some(unit.trip.at(now))
    }
}
