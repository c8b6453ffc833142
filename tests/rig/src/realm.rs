//! A strategy game for the rig's worlds in lockstep, after Return to the Roots and Stone Monarch: any number of
//! villagers, each of which schedules its own next event; selections as state; bombs whose hits the server decides.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, Schedule, Simulation, Table, Tick};
use twinstep_server::{Decision, HookContext, Resolver};

use crate::rig::{InputPattern, Play};

const MAP: (i16, i16) = (4_000, 2_000);
/// The number of ticks between two events of a villager.
const BEAT_TICKS: u32 = 20;
/// The number of steps that a villager walks between two events.
const STRIDE: i16 = 60;
/// The radius of a blast, in steps.
const BLAST_RADIUS: i16 = 100;
/// The health that a blast takes. A villager starts with 100.
const DAMAGE: u8 = 40;
/// The maximum number of villagers that one blast hits.
pub const HITS_MAX: usize = 48;

pub type Place = (i16, i16);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Realm {
    pub towns: Table<PlayerId, Town>,
    pub villagers: Table<u32, Villager>,
    pub woken: u64,
    pub hits: u64,
    timers: Schedule<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Town {
    pub gold: u32,
    /// The villagers to which the player's orders apply.
    pub selected: Vec<u32>,
    named: u32,
}

/// A villager. Its number is its key in [`Realm::villagers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Villager {
    pub owner: PlayerId,
    pub health: u8,
    pub at: Place,
    /// The villager's destination. A villager without an order turns back when it arrives.
    pub to: Place,
    is_ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Selects the player's villagers in a box, given by its upper left and lower right corners.
    Select(Place, Place),
    Go(Place),
    Bomb(Place),
}

impl Simulation for Realm {
    // The rules are the number of villagers per town.
    game_types!("realm", u16, (), Order, Place, Vec<u32>, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let now = frame.tick();
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => self.found(player, *frame.rules(), now),
                RosterChange::Left => self.villagers.retain(|_, one| one.owner != player),
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (_, _, hits) in frame.outcomes() {
            for id in hits.into_iter().flatten() {
                self.hurt(*id);
            }
        }
        for (player, order) in frame.commands() {
            self.obey(player, *order, fx);
        }
        while let Some((key, id)) = self.timers.pop_due(now) {
            if self.walk(id) {
                self.woken += 1;
                self.timers.at(now + BEAT_TICKS, key, id);
            }
        }
    }
}

fn town_of(player: PlayerId) -> Place {
    let n = player.index() as i16;
    (300 + n % 4 * 1_100, 300 + n / 4 * 450)
}

fn mine_of(player: PlayerId, n: u32) -> Place {
    let (x, y) = town_of(player);
    let (column, row) = (n % 40, n / 40 % 25);
    (x + column as i16 * 12 - 240, y + row as i16 * 12 + 60)
}

impl Realm {
    fn found(&mut self, player: PlayerId, villagers: u16, now: Tick) {
        let town = self.towns.get_or_insert_with(player, Town::default);
        for n in town.named..town.named + u32::from(villagers) {
            let id = (u32::from(player.0) << 24) | n;
            let villager = Villager {
                owner: player,
                health: 100,
                at: town_of(player),
                to: mine_of(player, n),
                is_ordered: false,
            };
            self.villagers.insert(id, villager);
            let first = now + 1 + n % BEAT_TICKS;
            self.timers.at(first, Key::player(player, n), id);
        }
        town.named += u32::from(villagers);
    }

    fn obey(&mut self, player: PlayerId, order: Order, fx: &mut Effects<Self>) {
        let Some(town) = self.towns.get_mut(&player) else {
            return;
        };
        match order {
            Order::Select(from, to) => {
                let is_in = |one: &Villager| {
                    (from.0..=to.0).contains(&one.at.0) && (from.1..=to.1).contains(&one.at.1)
                };
                let own = self.villagers.iter().filter(|(_, one)| one.owner == player);
                let own = own.filter(|(_, one)| is_in(one)).map(|(id, _)| *id);
                town.selected.clear();
                town.selected.extend(own);
            }
            Order::Go(to) => {
                for id in &town.selected {
                    if let Some(one) = self.villagers.get_mut(id) {
                        (one.to, one.is_ordered) = (to, true);
                    }
                }
            }
            Order::Bomb(at) => {
                fx.ask(Key::player(player, town.named), at);
                town.named += 1;
            }
        }
    }

    /// Moves a villager. Returns `false` if its player has left.
    fn walk(&mut self, id: u32) -> bool {
        let Some(one) = self.villagers.get_mut(&id) else {
            return false;
        };
        let step = |from: i16, to: i16| from + (to - from).clamp(-STRIDE, STRIDE);
        one.at = (step(one.at.0, one.to.0), step(one.at.1, one.to.1));
        if one.at == one.to && !one.is_ordered {
            let home = town_of(one.owner);
            if one.at == home {
                one.to = mine_of(one.owner, id & 0xff_ffff);
                if let Some(town) = self.towns.get_mut(&one.owner) {
                    town.gold = town.gold.saturating_add(1);
                }
            } else {
                one.to = home;
            }
        }
        true
    }

    fn hurt(&mut self, id: u32) {
        if let Some(one) = self.villagers.get_mut(&id) {
            self.hits += 1;
            one.health = one.health.saturating_sub(DAMAGE);
            if one.health == 0 {
                // Its town trains another one at once, so that the load stays the same.
                (one.at, one.health, one.is_ordered) = (town_of(one.owner), 100, false);
            }
        }
    }

    /// The server's answer to a bomb: the first [`HITS_MAX`] villagers in its reach.
    #[must_use]
    pub fn struck(&self, at: Place) -> Vec<u32> {
        let is_near = |one: &Villager| {
            one.at.0.abs_diff(at.0).max(one.at.1.abs_diff(at.1)) <= BLAST_RADIUS as u16
        };
        let near = self.villagers.iter().filter(|(_, one)| is_near(one));
        near.map(|(id, _)| *id).take(HITS_MAX).collect()
    }

    /// A simulated player's order, if one is due at `now`: one every `BEAT_TICKS`.
    pub fn think(&self, luck: &mut Mwc, now: Tick) -> Option<Order> {
        if !now.0.is_multiple_of(BEAT_TICKS) {
            return None;
        }
        let mut any = || {
            let (x, y) = (luck.below(MAP.0 as u32), luck.below(MAP.1 as u32));
            (x as i16, y as i16)
        };
        let (at, other) = (any(), any());
        Some(match luck.below(3) {
            0 => Order::Select(
                (at.0.min(other.0), at.1.min(other.1)),
                (at.0.max(other.0), at.1.max(other.1)),
            ),
            1 => Order::Go(at),
            // Bombs aim at villagers.
            _ => {
                let n = luck.below(self.villagers.len().max(1) as u32);
                Order::Bomb(self.villagers.values().nth(n as usize)?.at)
            }
        })
    }
}

impl Play for Realm {
    type Show = twinstep_client::NoPicture;
    /// `None` for an idle player.
    type Driver = Option<Mwc>;

    /// The crowd is the number of villagers per town.
    fn rules(crowd: u16) -> u16 {
        if crowd == 0 { 50 } else { crowd }
    }

    fn start(_rules: &u16, _seed: u64) -> Self {
        Realm::default()
    }

    fn show(_rules: &Arc<u16>) -> Self::Show {
        twinstep_client::NoPicture
    }

    fn resolver(_rules: &u16, _seed: u64) -> impl Resolver<Self> {
        |look: &HookContext<'_, Self>, _: Key, at: &Place| Decision::Now(look.sim().struck(*at))
    }

    fn driver(input_pattern: InputPattern, luck: Mwc) -> Option<Mwc> {
        (input_pattern != InputPattern::Still).then_some(luck)
    }

    fn drive(
        &self,
        luck: &mut Option<Mwc>,
        _rules: &u16,
        _me: PlayerId,
        now: Tick,
    ) -> ((), Option<Order>) {
        ((), luck.as_mut().and_then(|luck| self.think(luck, now)))
    }

    fn flip(&mut self) {
        self.woken ^= 1;
    }
}
