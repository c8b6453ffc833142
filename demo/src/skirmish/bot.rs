//! A player made of numbers: about once a second it looks at the map and gives one order.

use twinstep_core::{Mwc, PlayerId, Tick};

use super::{BOMB_COST, Command, Kind, Point, Rules, STEPS, Skirmish};

/// Villagers that it wants before anything else.
const VILLAGERS: usize = 10;
/// Soldiers that it waits for before it attacks.
const TROOP: usize = 4;

/// One bot. The same seed and the same states make the same bot.
#[derive(Clone, Debug)]
pub struct Bot {
    luck: Mwc,
    next_order: Tick,
}

impl Bot {
    /// A bot with luck of its own.
    #[must_use]
    pub fn new(luck: Mwc) -> Bot {
        Bot {
            luck,
            next_order: Tick(0),
        }
    }

    /// What it orders at `now`. Call it once for each tick.
    pub fn think(
        &mut self,
        game: &Skirmish,
        rules: &Rules,
        me: PlayerId,
        now: Tick,
    ) -> Option<Command> {
        let town = game.towns.get(&me).filter(|town| town.stands())?;
        if now < self.next_order {
            return None;
        }
        self.next_order = now + 15 + self.luck.below(10);
        let count = |kind| {
            let own = game.units.iter().filter(|(id, _)| id.owner == me);
            own.filter(|(_, unit)| unit.kind == kind).count()
        };
        let (villagers, soldiers) = (count(Kind::Villager), count(Kind::Soldier));
        let chance = self.luck.below(4);
        if villagers < VILLAGERS && town.gold >= Kind::Villager.price() && chance < 2 {
            Some(Command::Train(Kind::Villager))
        } else if town.gold >= BOMB_COST + Kind::Soldier.price() && chance == 2 {
            self.prey(game, me, now).map(Command::Bomb)
        } else if town.gold >= Kind::Soldier.price() {
            Some(Command::Train(Kind::Soldier))
        } else if soldiers >= TROOP {
            self.victim(game, rules, me).map(Command::Send)
        } else {
            None
        }
    }

    /// A unit of an enemy, by chance; and as it walks, where it is now.
    fn prey(&mut self, game: &Skirmish, me: PlayerId, now: Tick) -> Option<Point> {
        let enemies = || game.units.iter().filter(|(id, _)| id.owner != me);
        let n = self.luck.below((enemies().count() as u32).max(1));
        let (_, unit) = enemies().nth(n as usize)?;
        Some(unit.trip.at(now))
    }

    /// The place before an enemy's town.
    fn victim(&mut self, game: &Skirmish, rules: &Rules, me: PlayerId) -> Option<Point> {
        let enemies = || {
            let mut towns = game.towns.iter();
            std::iter::from_fn(move || towns.find(|(id, town)| **id != me && town.stands()))
        };
        let n = self.luck.below((enemies().count() as u32).max(1));
        let (&whose, _) = enemies().nth(n as usize)?;
        let at = rules.town(whose);
        Some(at.toward(rules.town(me), STEPS as u32))
    }
}
