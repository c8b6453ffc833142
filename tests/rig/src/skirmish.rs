//! The skirmish: a strategy game by commands alone, for the rig's worlds in lockstep. Villagers gather, soldiers march
//! and fight, bombs fall.
//!
//! A tick costs only what *happens* in it. Each unit sleeps in the [`Schedule`] until it arrives or may strike again,
//! so a gathering villager costs no step and sends no byte: every copy of the game knows when it will be back.

use std::sync::Arc;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, Mwc, PlayerId, Schedule, Simulation, Table, Tick};
use twinstep_server::{Decision, HookContext, Resolver};

use crate::rig::{Play, Sticks};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skirmish {
    /// One town for each player that ever joined.
    pub towns: Table<PlayerId, Town>,
    /// All living units.
    pub units: Table<UnitId, Unit>,
    /// Events that were handled so far, without sleeping units.
    pub woken: u64,
    timers: Schedule<SkirmishTimer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Town {
    /// Whether the player is in the match.
    pub is_open: bool,
    pub gold: u32,
    pub kills: u32,
    /// The counter for names of units, bombs and timers. It never decreases, so a name is never reused.
    named: u32,
    /// The tick at which the units in training will be ready.
    trained_at: Tick,
}

impl Town {
    fn pay(&mut self, price: u32) -> bool {
        let can = self.gold >= price;
        if can {
            self.gold -= price;
        }
        can
    }

    fn next_name(&mut self) -> u32 {
        self.named = self.named.wrapping_add(1);
        self.named
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SkirmishTimer {
    Unit(UnitId),
    Trained(UnitId, UnitKind),
    Fuse(Blast),
}

impl Skirmish {
    /// A map without towns. A town appears with its player.
    #[must_use]
    pub fn new() -> Skirmish {
        Skirmish::default()
    }
}

const BOMB_COST: u32 = 40;
/// The radius of a blast, in steps.
const BLAST_RADIUS: u32 = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Train(UnitKind),
    /// Sends all own soldiers to a place. On the way they fight enemies that come into reach.
    Send(FieldPoint),
    /// Drops a bomb on a place. It hits friend and foe.
    Bomb(FieldPoint),
}

/// The query that the simulation must not answer itself: which units does this bomb hit?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blast {
    pub by: PlayerId,
    pub at: FieldPoint,
}

/// The largest number of units that one blast hits, nearest first. This many fit an outcome.
pub const HITS_MAX: usize = 24;

/// The answer: the units hit, and their distances from the middle, in steps.
pub type BombHits = ArrayVec<(UnitId, u16), HITS_MAX>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    Fell(UnitId),
    Blast(FieldPoint),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitKind {
    Villager,
    Soldier,
}

impl UnitKind {
    #[must_use]
    pub const fn price(self) -> u32 {
        match self {
            UnitKind::Villager => 20,
            UnitKind::Soldier => 30,
        }
    }

    const fn health(self) -> i16 {
        match self {
            UnitKind::Villager => 30,
            UnitKind::Soldier => 60,
        }
    }

    const fn steps_per_tick(self) -> u32 {
        match self {
            UnitKind::Villager => 4,
            UnitKind::Soldier => 3,
        }
    }
}

/// A unit's name: its player, and that player's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitId {
    /// The player that owns the unit.
    pub owner: PlayerId,
    /// The player's counter at its creation.
    pub n: u32,
}

impl UnitId {
    fn key(self) -> Key {
        Key::player(self.owner, self.n)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub kind: UnitKind,
    pub health: i16,
    /// The unit's path or rest: see [`Trip::at`].
    pub trip: Trip,
    /// The place that a soldier was sent to.
    pub goal: FieldPoint,
}

/// Steps in a field: the resolution of places.
pub const STEPS: i16 = 16;

/// A place, in 16ths of a field.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FieldPoint {
    /// The distance from the left edge.
    pub x: i16,
    /// The distance from the top edge.
    pub y: i16,
}

impl FieldPoint {
    #[must_use]
    pub const fn field(x: i16, y: i16) -> FieldPoint {
        FieldPoint {
            x: x * STEPS + STEPS / 2,
            y: y * STEPS + STEPS / 2,
        }
    }

    /// The distance to another place, rounded down.
    #[must_use]
    pub fn distance(self, other: FieldPoint) -> u32 {
        let square = |a: i16, b: i16| u32::from(a.abs_diff(b)).pow(2);
        (square(self.x, other.x) + square(self.y, other.y)).isqrt()
    }

    /// The place at `part` of `whole` on the way to another place.
    fn between(self, to: FieldPoint, part: u32, whole: u32) -> FieldPoint {
        let part = part.min(whole);
        let mix = |a: i16, b: i16| {
            let way = i64::from(b) - i64::from(a);
            (i64::from(a) + way * i64::from(part) / i64::from(whole.max(1))) as i16
        };
        FieldPoint {
            x: mix(self.x, to.x),
            y: mix(self.y, to.y),
        }
    }

    /// The place `steps` steps nearer to `to`, or `to` if it is not farther away.
    #[must_use]
    pub fn toward(self, to: FieldPoint, steps: u32) -> FieldPoint {
        self.between(to, steps, self.distance(to))
    }
}

/// A straight path at a steady speed. A path that ends where it began is a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    pub from: FieldPoint,
    pub to: FieldPoint,
    pub left: Tick,
    pub arrives: Tick,
}

impl Trip {
    /// A path that begins at `left`, with this many steps a tick.
    #[must_use]
    pub fn walk(from: FieldPoint, to: FieldPoint, left: Tick, steps_per_tick: u32) -> Trip {
        let arrives = left + from.distance(to).div_ceil(steps_per_tick);
        Trip {
            from,
            to,
            left,
            arrives,
        }
    }

    /// The walker's place.
    #[must_use]
    pub fn at(&self, now: Tick) -> FieldPoint {
        if now >= self.arrives {
            return self.to;
        }
        self.from
            .between(self.to, now - self.left, self.arrives - self.left)
    }
}

/// The map, and the size of each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Fields from left to right and from top to bottom.
    pub fields: (i16, i16),
    /// The places of towns, by player number.
    pub towns: Vec<FieldPoint>,
    pub mines: Vec<FieldPoint>,
    /// Villagers that a town begins with.
    pub villagers: u16,
    /// Ticks that a villager digs for one load.
    pub dig_ticks: u32,
    /// The number of units up to which a town may train.
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
    #[must_use]
    pub fn town(&self, player: PlayerId) -> FieldPoint {
        self.towns[player.index() % self.towns.len()]
    }

    /// The place where a villager digs: every fourth one in the middle of the map, the others near their town.
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

const GOLD: u32 = 120;
const TRAIN_TICKS: u32 = 30;
/// Ticks from a bomb's command to its blast.
const FUSE_TICKS: u32 = 20;

impl Simulation for Skirmish {
    const NAME: &'static str = "skirmish";
    const VERSION: u32 = 1;
    type Rules = Rules;
    type Input = ();
    type Command = Command;
    type Query = Blast;
    type Outcome = BombHits;
    type Cue = Cue;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let (now, rules) = (frame.tick(), frame.rules());
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => self.open(player, now, rules),
                RosterChange::Left => self.close(player),
                // A dropped player may return, so its army stays.
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (key, blast, hits) in frame.outcomes() {
            // A blast without an answer fizzles.
            if let Some(hits) = hits {
                self.explode(key, blast, hits, now, fx);
            }
        }
        for (player, command) in frame.commands() {
            self.obey(player, *command, now, rules);
        }
        while let Some((key, timer)) = self.timers.pop_due(now) {
            self.woken += 1;
            match timer {
                SkirmishTimer::Unit(unit) => self.wake(unit, now, rules, fx),
                SkirmishTimer::Trained(unit, kind) => self.enter(unit, kind, now, rules),
                SkirmishTimer::Fuse(blast) => fx.ask(key, blast),
            }
        }
    }
}

impl Skirmish {
    /// Returns `true` if the server admits a command: its place must be on the map.
    #[must_use]
    pub fn admits(&self, rules: &Rules, player: PlayerId, command: &Command) -> bool {
        self.towns.contains_key(&player)
            && match *command {
                Command::Train(_) => true,
                Command::Send(to) | Command::Bomb(to) => rules.clamp(to) == to,
            }
    }

    fn open(&mut self, player: PlayerId, now: Tick, rules: &Rules) {
        let named = self.towns.get(&player).map_or(0, |town| town.named);
        let town = Town {
            is_open: true,
            gold: GOLD,
            kills: 0,
            named,
            trained_at: now,
        };
        self.towns.insert(player, town);
        for _ in 0..rules.villagers {
            if let Some(id) = self.name(player) {
                self.enter(id, UnitKind::Villager, now, rules);
            }
        }
    }

    /// Removes the player's units. Their timers will find no unit.
    fn close(&mut self, player: PlayerId) {
        self.units.retain(|id, _| id.owner != player);
        if let Some(town) = self.towns.get_mut(&player) {
            town.is_open = false;
        }
    }

    fn name(&mut self, owner: PlayerId) -> Option<UnitId> {
        let n = self.towns.get_mut(&owner)?.next_name();
        Some(UnitId { owner, n })
    }

    /// Runs a player's command. A player that cannot pay gets no unit or bomb.
    fn obey(&mut self, player: PlayerId, command: Command, now: Tick, rules: &Rules) {
        let units = self.units.keys().filter(|id| id.owner == player).count();
        let Some(town) = self.towns.get_mut(&player) else {
            return;
        };
        match command {
            Command::Train(kind) => {
                if units < rules.units_max.into() && town.pay(kind.price()) {
                    town.trained_at = town.trained_at.max(now) + TRAIN_TICKS;
                    let n = town.next_name();
                    let id = UnitId { owner: player, n };
                    self.timers
                        .at(town.trained_at, id.key(), SkirmishTimer::Trained(id, kind));
                }
            }
            Command::Send(to) => self.send(player, to, now, rules),
            Command::Bomb(at) => {
                if town.pay(BOMB_COST) {
                    let key = Key::player(player, town.next_name());
                    let blast = Blast { by: player, at };
                    self.timers
                        .at(now + FUSE_TICKS, key, SkirmishTimer::Fuse(blast));
                }
            }
        }
    }

    /// Applies an answer: units hit lose health, more when nearer. Units that died meanwhile stay dead.
    fn explode(
        &mut self,
        key: Key,
        blast: &Blast,
        hits: &BombHits,
        now: Tick,
        fx: &mut Effects<Self>,
    ) {
        fx.cue(key, Cue::Blast(blast.at));
        for &(unit, distance) in hits {
            let nearness = BLAST_RADIUS.saturating_sub(distance.into());
            let damage = 20 + 60 * nearness / BLAST_RADIUS;
            self.hurt(unit, damage as i16, blast.by, now, fx);
        }
    }
}

/// Gold that a villager brings home.
const LOAD: u32 = 10;
/// The reach of a soldier's strike, in steps.
const REACH: u32 = 20;
/// The sight of a soldier, in steps. It attacks visible enemies before it marches on.
const SIGHT: u32 = 80;
/// Health lost to one strike.
const DAMAGE: i16 = 10;
/// Ticks from one strike to the next.
const STRIKE_TICKS: u32 = 8;
/// A soldier looks for enemies each time it has walked this many steps.
const STRIDE: u32 = 12;

impl Skirmish {
    /// Brings a unit out of its town: a villager goes to work, a soldier waits.
    fn enter(&mut self, id: UnitId, kind: UnitKind, now: Tick, rules: &Rules) {
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

    /// Sends all soldiers of a player, each to a place of its own around `to`.
    fn send(&mut self, player: PlayerId, to: FieldPoint, now: Tick, rules: &Rules) {
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

    /// Runs a unit's due event.
    fn wake(&mut self, id: UnitId, now: Tick, rules: &Rules, fx: &mut Effects<Skirmish>) {
        match self.units.get(&id).map(|unit| unit.kind) {
            Some(UnitKind::Villager) => self.gather(id, now, rules),
            Some(UnitKind::Soldier) => self.march(id, now, fx),
            None => {} // It died.
        }
    }

    /// Handles a villager's arrival: at the mine it digs and turns back, at home it unloads and turns back.
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

    /// Lets a soldier strike or march on, or sleep if there is no enemy and no goal.
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

    /// The nearest visible enemy: its distance, place and name. Of equals, the first by place and name.
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

    /// Reduces a unit's health. At zero it dies, which is a kill for `by`. A soldier that is hurt wakes.
    fn hurt(
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

impl Skirmish {
    /// The server's answer to a blast: the units in its reach, the nearest first, at most [`HITS_MAX`].
    #[must_use]
    pub fn struck(&self, blast: &Blast, now: Tick) -> BombHits {
        let distance = |(id, unit): (&UnitId, &Unit)| (unit.trip.at(now).distance(blast.at), *id);
        let mut near: Vec<_> = self.units.iter().map(distance).collect();
        near.retain(|(steps, _)| *steps <= BLAST_RADIUS);
        near.sort_unstable();
        near.truncate(HITS_MAX);
        near.into_iter()
            .map(|(steps, id)| (id, steps as u16))
            .collect()
    }
}

/// Villagers that a bot trains first.
const VILLAGERS: usize = 10;
/// Soldiers that a bot collects before it attacks.
const TROOP: usize = 4;

/// One bot. It is a function of its seed and of the states it sees.
#[derive(Clone, Debug)]
pub struct SkirmishBot {
    luck: Mwc,
    next_order: Tick,
}

impl SkirmishBot {
    #[must_use]
    pub fn new(luck: Mwc) -> SkirmishBot {
        SkirmishBot {
            luck,
            next_order: Tick(0),
        }
    }

    /// The bot's command at `now`. Call it once for each tick.
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

    /// The place of a random enemy unit.
    fn prey(&mut self, game: &Skirmish, me: PlayerId, now: Tick) -> Option<FieldPoint> {
        let enemies = || game.units.iter().filter(|(id, _)| id.owner != me);
        let n = self.luck.below((enemies().count() as u32).max(1));
        let (_, unit) = enemies().nth(n as usize)?;
        Some(unit.trip.at(now))
    }
}

impl Play for Skirmish {
    type Show = twinstep_client::Hidden;
    /// `None` for an idle player.
    type Driver = Option<SkirmishBot>;

    /// The crowd is the number of each town's villagers.
    fn rules(crowd: u16) -> Rules {
        let rules = Rules::default();
        Rules {
            villagers: if crowd == 0 { rules.villagers } else { crowd },
            ..rules
        }
    }

    fn start(_rules: &Rules, _seed: u64) -> Self {
        Skirmish::new()
    }

    fn show(_rules: &Arc<Rules>) -> Self::Show {
        twinstep_client::Hidden
    }

    fn resolver(_rules: &Rules, _seed: u64) -> impl Resolver<Self> {
        |look: &HookContext<'_, Self>, _: Key, blast: &Blast| {
            Decision::Now(look.sim().struck(blast, look.tick()))
        }
    }

    fn admit(&self, rules: &Rules, by: PlayerId, command: &Command) -> bool {
        self.admits(rules, by, command)
    }

    fn driver(sticks: Sticks, luck: Mwc) -> Option<SkirmishBot> {
        (sticks != Sticks::Still).then(|| SkirmishBot::new(luck))
    }

    fn drive(
        &self,
        bot: &mut Option<SkirmishBot>,
        _rules: &Rules,
        me: PlayerId,
        now: Tick,
    ) -> ((), Option<Command>) {
        let order = bot.as_mut().and_then(|bot| bot.think(self, me, now));
        ((), order)
    }

    fn flip(&mut self) {
        self.woken ^= 1;
    }
}
