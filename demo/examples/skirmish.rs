//! A strategy game in lockstep: villagers bring gold, and soldiers march where their player sends them.
//!
//! ```sh
//! cargo run --release -p powderkeg --example skirmish -- wan   # or perfect, lan, bad, awful, rtt=120,loss=5
//! ```
//!
//! Nothing is predicted. An order names a selection of units and runs two turns later, at the same tick for all
//! players. Units sleep in a schedule until something happens to them. So a match of any size sends only its orders.
//!
//! The program runs a server and bots over real UDP and a simulated link. It exits with 1 if a player's world differs
//! from the server's.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::UdpClient;
use twinstep_client::prelude::*;
use twinstep_client::simnet::LinkProfile;
use twinstep_core::prelude::*;
use twinstep_host::prelude::*;

// The rules: whole numbers only, so that every machine agrees.
/// The map's width and height, in fields.
const MAP: (i16, i16) = (60, 16);
const VILLAGER: u32 = 15;
const SOLDIER: u32 = 25;
const PLAYERS: u8 = 3;
/// The most units of one order.
const SELECTION_MAX: usize = 16;

type Spot = (i16, i16);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Skirmish {
    towns: Table<PlayerId, Town>,
    units: Table<Key, Unit>,
    /// The tick at which each unit acts next.
    wakes: Schedule<()>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Town {
    gold: u32,
    /// The number of the next unit; no number is used twice.
    next: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit {
    owner: PlayerId,
    fights: bool,
    health: i16,
    at: Spot,
    /// Its goal; a villager walks between mine and town.
    to: Spot,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    Train { soldier: bool },
    March { units: Vec<Key>, to: Spot },
}

impl Simulation for Skirmish {
    const NAME: &'static str = "skirmish";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = (); // Nothing is held: all that counts is ordered.
    type Command = Order;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        let now = frame.tick();
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => self.found(player, now),
                RosterChange::Left => self.units.retain(|_, unit| unit.owner != player),
                // The army of a player that is away stays.
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (player, order) in frame.commands() {
            self.execute(player, order, now);
        }
        // Only units that are due cost time.
        while let Some((id, ())) = self.wakes.pop_due(now) {
            self.act(id, now);
        }
    }
}

fn town_of(player: PlayerId) -> Spot {
    let n = player.index() as i16;
    (4 + n % 2 * (MAP.0 - 9), 3 + n / 2 * (MAP.1 - 7))
}

fn mine_of(player: PlayerId) -> Spot {
    let (x, y) = town_of(player);
    (x + if x < MAP.0 / 2 { 9 } else { -9 }, y)
}

impl Skirmish {
    fn found(&mut self, player: PlayerId, now: Tick) {
        let town = self.towns.get_or_insert_with(player, Town::default);
        town.gold = 4 * VILLAGER;
        (0..4).for_each(|_| self.train(player, false, now));
    }

    fn train(&mut self, player: PlayerId, soldier: bool, now: Tick) {
        let price = if soldier { SOLDIER } else { VILLAGER };
        let can_pay = |town: &&mut Town| town.gold >= price;
        let Some(town) = self.towns.get_mut(&player).filter(can_pay) else {
            return;
        };
        town.gold -= price;
        let id = Key::player(player, town.next);
        town.next += 1;
        let (home, mine) = (town_of(player), mine_of(player));
        let unit = Unit {
            owner: player,
            fights: soldier,
            health: if soldier { 60 } else { 20 },
            at: home,
            to: if soldier { home } else { mine },
        };
        self.units.insert(id, unit);
        self.wakes.at(now + 10, id, ());
    }

    fn execute(&mut self, player: PlayerId, order: &Order, now: Tick) {
        match order {
            Order::Train { soldier } => self.train(player, *soldier, now),
            Order::March { units, to } => {
                for &id in units {
                    let is_own = |unit: &&mut Unit| unit.owner == player && unit.fights;
                    if let Some(unit) = self.units.get_mut(&id).filter(is_own) {
                        unit.to = (to.0.clamp(0, MAP.0 - 1), to.1.clamp(0, MAP.1 - 1));
                        self.wakes.at(now, id, ());
                    }
                }
            }
        }
    }

    /// Lets a unit strike, or move by a field, or sleep until it is ordered or struck.
    fn act(&mut self, id: Key, now: Tick) {
        if let Some(foe) = self.foe_beside(id) {
            self.strike(foe, now);
            self.wakes.at(now + 8, id, ());
            return;
        }
        let Some(unit) = self.units.get_mut(&id) else {
            return; // It died.
        };
        if unit.at != unit.to {
            unit.at.0 += (unit.to.0 - unit.at.0).signum();
            unit.at.1 += (unit.to.1 - unit.at.1).signum();
            self.wakes.at(now + if unit.fights { 5 } else { 3 }, id, ());
        } else if !unit.fights {
            let (town, mine) = (town_of(unit.owner), mine_of(unit.owner));
            unit.to = if unit.at == town { mine } else { town };
            let arrived = self.towns.get_mut(&unit.owner).filter(|_| unit.at == town);
            arrived.into_iter().for_each(|town| town.gold += 5);
            self.wakes.at(now + 20, id, ());
        }
    }

    fn foe_beside(&self, id: Key) -> Option<Key> {
        let own = self.units.get(&id)?;
        let is_near = |at: Spot| at.0.abs_diff(own.at.0).max(at.1.abs_diff(own.at.1)) <= 1;
        let is_foe = |foe: &Unit| own.fights && foe.owner != own.owner && is_near(foe.at);
        let mut units = self.units.iter();
        units.find_map(|(id, unit)| is_foe(unit).then_some(*id))
    }

    fn strike(&mut self, foe: Key, now: Tick) {
        let struck = self.units.get_mut(&foe).expect("it was found");
        struck.health -= 10;
        if struck.health > 0 {
            // It strikes back, unless it acts soon anyway.
            if self.wakes.get(foe).is_none() {
                self.wakes.at(now + 1, foe, ());
            }
        } else {
            self.units.remove(&foe);
            self.wakes.cancel(foe);
        }
    }

    /// The map as text: towns `A` to `D`, villagers `a` to `d`, soldiers by their player's number.
    fn map(&self) -> String {
        let mut rows = vec![vec!['.'; MAP.0 as usize]; MAP.1 as usize];
        let mut put = |at: Spot, sign| rows[at.1 as usize][at.0 as usize] = sign;
        for player in self.towns.keys() {
            put(mine_of(*player), '$');
            put(town_of(*player), (b'A' + player.0) as char);
        }
        for unit in self.units.values() {
            let first = if unit.fights { b'0' } else { b'a' };
            put(unit.at, (first + unit.owner.0) as char);
        }
        let row = |row: Vec<char>| row.into_iter().collect::<String>() + "\n";
        rows.into_iter().map(row).collect()
    }
}

/// A bot: it turns gold into units, and sends all idle soldiers together to another player's town.
fn think(game: &Skirmish, me: PlayerId, luck: &mut Mwc) -> Option<Order> {
    let own = || game.units.iter().filter(|(_, unit)| unit.owner == me);
    let town = game.towns.get(&me)?;
    let idle = own().filter(|(_, unit)| unit.fights && unit.at == unit.to);
    let units: Vec<Key> = idle.map(|(id, _)| *id).take(SELECTION_MAX).collect();
    if units.len() >= 3 {
        let foes: Vec<_> = game.towns.keys().filter(|foe| **foe != me).collect();
        let foe = foes.get(luck.below(foes.len().max(1) as u32) as usize)?;
        let to = town_of(**foe);
        return Some(Order::March { units, to });
    }
    let soldier = own().count() >= 6;
    (town.gold >= SOLDIER).then_some(Order::Train { soldier })
}

/// Plays, prints the results, and returns the faults.
fn play(link: LinkProfile, length: Duration) -> Result<Vec<String>, Box<dyn Error>> {
    let rules = Arc::new(());
    // Lockstep: turns of three ticks of 50 ms, orders run two turns later, and the match waits for a late player.
    let config = MatchConfig::strategy();
    let admit =
        |_: &HookContext<'_, Skirmish>, _: PlayerId, order: &Order, _claimed: bool| match order {
            Order::Train { .. } => true,
            Order::March { units, .. } => units.len() <= SELECTION_MAX,
        };
    let server = Server::with(config, Skirmish::default(), rules.clone())
        .players(PLAYERS.into())
        .referee(admit)
        .listen("127.0.0.1:0")?;
    let mut players = Vec::new();
    for n in 0..PLAYERS {
        let through = move |udp: UdpClient| udp.with_conditioner(link, n.into());
        let config = SessionConfig::new(rules.clone()).start(Skirmish::default());
        let ticket = server.ticket(&format!("player {n}"))?;
        let client = Client::connect_through(&ticket, config, through)?;
        players.push((client, Mwc::seed(n.into()), Tick(0)));
    }
    while players[0].0.now() < length {
        for (client, luck, next) in &mut players {
            client.advance(|_seat| ())?;
            while client.session_mut().poll_event().is_some() {}
            let (Some(world), Some(&me)) = (
                client.session().authority(),
                client.session().seats().first(),
            ) else {
                continue;
            };
            if world.tick() >= *next {
                *next = world.tick() + 20;
                if let Some(order) = think(world.sim(), me, luck) {
                    client.session_mut().command(0, order)?;
                }
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    let mut faults = Vec::new();
    for (n, (client, ..)) in players.iter_mut().enumerate() {
        let stats = client.session().stats();
        let tick = Tick(stats.authority_tick);
        let (orders, ms) = (stats.commands_executed, stats.confirmed_ms_p50);
        println!("player {n}: {orders} orders by {tick}, each after {ms} ms");
        let world = client.session().authority();
        let own = world.and_then(|world| world.digest().ok());
        if own.is_none() || own != server.inspect(move |game| game.digest_at(tick))? {
            faults.push(format!("player {n}: another world than the server's"));
        }
        client.leave();
    }
    print!("{}", server.inspect(|game| game.world().sim().map())?);
    server.shutdown();
    Ok(faults)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let link = std::env::args().nth(1).unwrap_or("wan".to_owned());
    let faults = play(link.parse()?, Duration::from_secs(30))?;
    faults.iter().for_each(|fault| eprintln!("error: {fault}"));
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
}

#[test]
fn players_made_of_numbers_play_without_a_fault() {
    let faults = play(LinkProfile::LAN, Duration::from_secs(5)).expect("a server on this machine");
    assert!(faults.is_empty(), "{faults:?}");
}
