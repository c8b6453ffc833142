//! One tick of a skirmish: who comes and goes, what was answered and ordered, who wakes.

use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, PlayerId, Simulation, Tick};

use super::messages::{BLAST_RADIUS, BOMB_COST, Blast, BombHits, Command, Cue};
use super::rules::Rules;
use super::state::{Skirmish, SkirmishTimer, Town};
use super::unit::{UnitId, UnitKind};

/// Gold that a town begins with.
pub(super) const GOLD: u32 = 120;
/// Training a unit takes so long.
pub(super) const TRAIN_TICKS: u32 = 30;
/// From a bomb's order to its blast.
pub(super) const FUSE_TICKS: u32 = 20;

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
                SkirmishTimer::Unit(unit) => self.wake(unit, now, rules, fx),
                SkirmishTimer::Trained(unit, kind) => self.enter(unit, kind, now, rules),
                SkirmishTimer::Fuse(blast) => fx.ask(key, blast),
            }
        }
    }
}

impl Skirmish {
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
                self.enter(id, UnitKind::Villager, now, rules);
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

    pub(super) fn name(&mut self, owner: PlayerId) -> Option<UnitId> {
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

    /// The answer has come: who is hit loses health, the more the nearer. Who died meanwhile stays dead.
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
