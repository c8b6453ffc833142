//! *Skirmish*: villagers gather, soldiers march and fight, bombs fall. A second game, for the `strategy()`
//! preset: it is played by commands alone, nothing of it is predicted, and all its numbers are whole.
//!
//! ```text
//!   frame ─▶ roster ─▶ outcomes ─▶ commands ─▶ timers that are due ─▶ next state
//!                      (blasts)    (orders)    (arrived, trained, fuse)
//! ```
//!
//! Invariant: a tick costs what *happens* in it. Each unit sleeps in the [`Schedule`] until it arrives or may
//! strike again; ten thousand of them cost a tick nothing, and a gathering villager sends no byte, because
//! every copy of the game knows when it will be back.
//!
//! | file | idea |
//! |---|---|
//! | `map` | places and trips in whole numbers, the rules |
//! | `unit` | gathering, marching, striking |
//! | `resolve` | whom a bomb hits: the server decides |
//! | `bot` | a player made of numbers |

mod bot;
mod map;
mod resolve;
#[cfg(test)]
mod tests;
mod unit;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, PlayerId, Schedule, Simulation, Table, Tick};

pub use bot::Bot;
pub use map::{Point, Rules, STEPS, Trip};
pub use resolve::{BLAST_RADIUS, Bombardier};
pub use unit::{Kind, Unit, UnitId};

/// Gold that a town begins with.
const GOLD: u32 = 120;
/// What a bomb costs.
pub const BOMB_COST: u32 = 40;
/// Training a unit takes so long.
const TRAIN_TICKS: u32 = 30;
/// From a bomb's order to its blast.
const FUSE_TICKS: u32 = 20;

/// Everything that changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skirmish {
    /// One for each player that ever came.
    pub towns: Table<PlayerId, Town>,
    /// All who live.
    pub units: Table<UnitId, Unit>,
    /// Events that were handled so far: what sleeps is not among them.
    pub woken: u64,
    timers: Schedule<Timer>,
}

/// A player's town.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Town {
    /// Whether its player is in the match.
    pub is_open: bool,
    /// What can be spent.
    pub gold: u32,
    /// Enemies' units that its side killed.
    pub kills: u32,
    /// Names for units, bombs and timers. It never goes back, so that no name is used twice.
    named: u32,
    /// When the units in training will be ready.
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

/// What a player orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Trains a unit, for its price.
    Train(Kind),
    /// Sends all own soldiers to a place. On the way they fight whoever comes into reach.
    Send(Point),
    /// Drops a bomb on a place: it hits friend and foe.
    Bomb(Point),
}

/// The question that the simulation may not answer itself: whom does this bomb hit?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blast {
    /// Who dropped it.
    pub by: PlayerId,
    /// Where.
    pub at: Point,
}

/// Units that one blast hits at most: the nearest. As many fit an outcome's bytes.
pub const HITS_MAX: usize = 24;

/// The answer: whom it hits, and how far from the middle, in steps.
pub type Hits = ArrayVec<(UnitId, u16), HITS_MAX>;

/// Something to show or play once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    /// A unit died.
    Fell(UnitId),
    /// A bomb went up.
    Blast(Point),
}

/// What a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Timer {
    /// A unit has arrived, or may strike again.
    Unit(UnitId),
    /// A unit is trained.
    Trained(UnitId, Kind),
    /// A bomb's fuse has burnt down.
    Fuse(Blast),
}

impl Simulation for Skirmish {
    const NAME: &'static str = "skirmish";
    const VERSION: u32 = 1;
    type Rules = Rules;
    type Input = ();
    type Command = Command;
    type Query = Blast;
    type Outcome = Hits;
    type Cue = Cue;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let (now, rules) = (frame.tick(), frame.rules());
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => self.open(player, now, rules),
                RosterChange::Left => self.close(player),
                // The army of who is only away stays.
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
                Timer::Unit(unit) => self.wake(unit, now, rules, fx),
                Timer::Trained(unit, kind) => self.enter(unit, kind, now, rules),
                Timer::Fuse(blast) => fx.ask(key, blast),
            }
        }
    }
}

impl Skirmish {
    /// A map without towns: each comes with its player.
    #[must_use]
    pub fn new() -> Skirmish {
        Skirmish::default()
    }

    /// How many units, bombs and towns sleep.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.timers.len()
    }

    /// Where bombs will go up.
    pub fn bombs(&self) -> impl Iterator<Item = Point> {
        self.timers.iter().filter_map(|(_, _, timer)| match timer {
            Timer::Fuse(blast) => Some(blast.at),
            _ => None,
        })
    }

    /// Whether the server takes a command: one that names a place names one on the map.
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
                self.enter(id, Kind::Villager, now, rules);
            }
        }
    }

    /// The player's units vanish. Their timers wake nobody then.
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

    /// What a player ordered. Who cannot pay gets nothing.
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
                        .at(town.trained_at, id.key(), Timer::Trained(id, kind));
                }
            }
            Command::Send(to) => self.send(player, to, now, rules),
            Command::Bomb(at) => {
                if town.pay(BOMB_COST) {
                    let key = Key::player(player, town.next_name());
                    let blast = Blast { by: player, at };
                    self.timers.at(now + FUSE_TICKS, key, Timer::Fuse(blast));
                }
            }
        }
    }

    /// The answer has come: who is hit loses health, the more the nearer. Who died meanwhile stays dead.
    fn explode(&mut self, key: Key, blast: &Blast, hits: &Hits, now: Tick, fx: &mut Effects<Self>) {
        fx.cue(key, Cue::Blast(blast.at));
        for &(unit, distance) in hits {
            let nearness = BLAST_RADIUS.saturating_sub(distance.into());
            let damage = 20 + 60 * nearness / BLAST_RADIUS;
            self.hurt(unit, damage as i16, blast.by, now, fx);
        }
    }
}
