//! Units: villagers go to and fro, soldiers march and strike. Each sleeps until its next moment.
//!
//! ```text
//!   villager   town ──walks──▶ mine, digs ──walks──▶ town: gold ─▶ again and again
//!   soldier    an enemy in reach? strike, rest : one in sight? a stride to it :
//!              at its goal? sleep until sent or struck : a stride to it
//! ```

use twinstep_core::{Effects, PlayerId, Tick};

use super::map::{FieldPoint, STEPS, Trip};
use super::messages::Cue;
use super::rules::Rules;
use super::state::{Skirmish, SkirmishTimer};
use super::unit::{Unit, UnitId, UnitKind};

/// Gold that a villager brings home.
const LOAD: u32 = 10;
/// How far a soldier strikes, in steps.
const REACH: u32 = 20;
/// How far it sees, in steps: it goes for whom it sees before it goes on.
const SIGHT: u32 = 80;
/// What a strike takes.
const DAMAGE: i16 = 10;
/// From one strike to the next.
const STRIKE_TICKS: u32 = 8;
/// A soldier looks for enemies once in so many steps of its way.
const STRIDE: u32 = 12;

impl Skirmish {
    /// A unit comes out of its town: a villager goes to work, a soldier waits.
    pub(super) fn enter(&mut self, id: UnitId, kind: UnitKind, now: Tick, rules: &Rules) {
        if self.towns.get(&id.owner).is_none_or(|town| !town.is_open) {
            return;
        }
        let home = rules.town(id.owner);
        let to = match kind {
            UnitKind::Villager => rules.mine(id),
            UnitKind::Soldier => home,
        };
        let trip = Trip::walk(home, to, now, kind.steps_per_tick());
        if kind == UnitKind::Villager {
            self.timers
                .at(trip.arrives, id.key(), SkirmishTimer::Unit(id));
        }
        let unit = Unit {
            kind,
            health: kind.health(),
            trip,
            goal: home,
        };
        self.units.insert(id, unit);
    }

    /// All soldiers of a player set out, each for a place of its own around `to`.
    pub(super) fn send(&mut self, player: PlayerId, to: FieldPoint, now: Tick, rules: &Rules) {
        for (id, unit) in &mut self.units {
            if id.owner == player && unit.kind == UnitKind::Soldier {
                let place = |n: u32| (n % 5) as i16 - 2;
                unit.goal = rules.clamp(FieldPoint {
                    x: to.x + place(id.n) * STEPS,
                    y: to.y + place(id.n / 5) * STEPS,
                });
                self.timers.at(now, id.key(), SkirmishTimer::Unit(*id));
            }
        }
    }

    /// A unit's moment has come.
    pub(super) fn wake(
        &mut self,
        id: UnitId,
        now: Tick,
        rules: &Rules,
        fx: &mut Effects<Skirmish>,
    ) {
        match self.units.get(&id).map(|unit| unit.kind) {
            Some(UnitKind::Villager) => self.gather(id, now, rules),
            Some(UnitKind::Soldier) => self.march(id, now, fx),
            None => {} // It died.
        }
    }

    /// A villager has arrived: at the mine it digs and turns back, at home it unloads and turns back.
    fn gather(&mut self, id: UnitId, now: Tick, rules: &Rules) {
        let (Some(unit), Some(town)) = (self.units.get_mut(&id), self.towns.get_mut(&id.owner))
        else {
            return;
        };
        let (home, mine) = (rules.town(id.owner), rules.mine(id));
        let (to, left) = if unit.trip.to == mine {
            (home, now + rules.dig_ticks)
        } else {
            town.gold = town.gold.saturating_add(LOAD);
            (mine, now)
        };
        unit.trip = Trip::walk(unit.trip.to, to, left, unit.kind.steps_per_tick());
        self.timers
            .at(unit.trip.arrives, id.key(), SkirmishTimer::Unit(id));
    }

    /// A soldier strikes, or goes on, or has nothing to do and sleeps.
    fn march(&mut self, id: UnitId, now: Tick, fx: &mut Effects<Skirmish>) {
        let Some(unit) = self.units.get(&id) else {
            return;
        };
        let (at, goal) = (unit.trip.at(now), unit.goal);
        let enemy = self.enemy_near(id.owner, at, now);
        let struck = enemy.filter(|(distance, ..)| *distance <= REACH);
        let (to, next) = match (struck, enemy) {
            (Some(_), _) => (at, now + STRIKE_TICKS),
            (None, None) if at == goal => return,
            (None, enemy) => {
                let to = at.toward(enemy.map_or(goal, |(_, place, _)| place), STRIDE);
                let walk = Trip::walk(at, to, now, UnitKind::Soldier.steps_per_tick());
                (to, walk.arrives.max(now + 1))
            }
        };
        if let Some(unit) = self.units.get_mut(&id) {
            unit.trip = Trip::walk(at, to, now, UnitKind::Soldier.steps_per_tick());
        }
        self.timers.at(next, id.key(), SkirmishTimer::Unit(id));
        if let Some((.., enemy)) = struck {
            self.hurt(enemy, DAMAGE, id.owner, now, fx);
        }
    }

    /// How far, where and who the nearest enemy in sight is; of equals the first by place and name.
    fn enemy_near(
        &self,
        owner: PlayerId,
        from: FieldPoint,
        now: Tick,
    ) -> Option<(u32, FieldPoint, UnitId)> {
        let enemies = self.units.iter().filter(|(id, _)| id.owner != owner);
        let near = enemies.map(|(id, unit)| {
            let at = unit.trip.at(now);
            (from.distance(at), at, *id)
        });
        near.filter(|(distance, ..)| *distance <= SIGHT).min()
    }

    /// Takes health of a unit; the last of it is its death, and a kill for `by`. A soldier that is hurt wakes.
    pub(super) fn hurt(
        &mut self,
        id: UnitId,
        damage: i16,
        by: PlayerId,
        now: Tick,
        fx: &mut Effects<Skirmish>,
    ) {
        let Some(unit) = self.units.get_mut(&id) else {
            return;
        };
        if unit.health > damage {
            unit.health -= damage;
            if unit.kind == UnitKind::Soldier && self.timers.get(id.key()).is_none() {
                self.timers.at(now + 1, id.key(), SkirmishTimer::Unit(id));
            }
            return;
        }
        self.units.remove(&id);
        self.timers.cancel(id.key());
        fx.cue(id.key(), Cue::Fell(id));
        if id.owner != by
            && let Some(town) = self.towns.get_mut(&by)
        {
            town.kills += 1;
        }
    }
}
