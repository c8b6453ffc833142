//! A strategy game in lockstep: selections, marches, and bombs. The server decides which units a bomb hits.
//!
//! `cargo run --release --example strategy -- 3` is you and two bots, in a window. Without a display, or if a second
//! argument names a PNG for its last picture, the program plays automatically for ten seconds.

use std::hash::{BuildHasher, RandomState};
use std::{error::Error, path::Path, sync::Arc, thread::sleep, time::Duration};

use powderkeg_view::window::{Sketch, display, run_sketch};
use serde::{Deserialize, Serialize};
use twinstep_client::prelude::*;
use twinstep_core::prelude::*;
use twinstep_host::prelude::*;

const MAP: Spot = (160, 90); // fields
const ARMY: u16 = 600;
const CAMPS: [Spot; 4] = [(44, 24), (115, 65), (115, 24), (44, 65)];
const TICK: Duration = Duration::from_millis(100);
const SAVE: &str = "wars/match-1.save";
const SCREEN: [f32; 2] = [160.0, 96.0]; // the map, and a line of words
const KEYS: &str = "drag: select  right click: march  B: bomb  1 2: speed  P R: pause  S L: save";
type Spot = (i16, i16);
type UnitId = (PlayerId, u16);
type Look<'a> = HookContext<'a, Realm>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Realm {
    units: Table<Spot, Unit>, // at most one on a field
    wakes: Schedule<Spot>,    // when each unit acts next, and where it is then
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit {
    id: UnitId,
    selected: bool, // a part of the state, so that orders are small
    to: Spot,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    Select(Spot, Spot), // the own units in a box
    March(Spot),
    Bomb(Spot),
}

impl Simulation for Realm {
    const NAME: &'static str = "strategy";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = (); // Nothing is held: all that counts is ordered.
    type Command = Order;
    type Query = Spot; // Which units does a bomb here hit?
    type Outcome = Vec<UnitId>;
    type Cue = Spot; // A blast.

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let now = frame.tick();
        for (player, change) in frame.roster() {
            let has_army = self.units.values().any(|unit| unit.id.0 == player);
            if change == RosterChange::Joined && !has_army {
                (0..ARMY).for_each(|n| self.recruit(player, n, now));
            }
        }
        for (key, at, hits) in frame.outcomes() {
            fx.cue(key, *at);
            let is_hit = |id| hits.is_some_and(|hits| hits.contains(&id));
            self.units.retain(|_, unit| !is_hit(unit.id));
        }
        for (player, order) in frame.commands() {
            self.obey(player, order, now, fx);
        }
        // Only due units cost time. Dead units are removed.
        while let Some((key, at)) = self.wakes.pop_due(now) {
            let is_it = |unit: &&Unit| key == Key::player(unit.id.0, unit.id.1.into());
            if let Some(unit) = self.units.get(&at).filter(is_it).cloned() {
                let (at, rest) = self.act(at, unit);
                self.wakes.at(now + rest, key, at);
            }
        }
    }
}

/// The `n`th position in a block of `count` units around `middle`.
fn formation(middle: Spot, n: u16, count: usize) -> Spot {
    let side = count.isqrt().max(1) as i16;
    let place = |at: i16, n: i16, end| (at + n - side / 2).clamp(0, end - 1);
    let (column, row) = (n as i16 % side, n as i16 / side);
    (place(middle.0, column, MAP.0), place(middle.1, row, MAP.1))
}

impl Realm {
    fn recruit(&mut self, player: PlayerId, n: u16, now: Tick) {
        let to = formation(CAMPS[player.index() % 4], n, ARMY.into());
        let (id, selected) = ((player, n), false);
        let unit = Unit { id, selected, to };
        self.units.insert(to, unit);
        let first = now + 1 + u32::from(n) % 10;
        self.wakes.at(first, Key::player(player, n.into()), to);
    }

    fn obey(&mut self, player: PlayerId, order: &Order, now: Tick, fx: &mut Effects<Self>) {
        let units = self.units.iter_mut();
        let own = units.filter(|(_, unit)| unit.id.0 == player);
        match *order {
            Order::Select((left, top), (right, bottom)) => own.for_each(|((x, y), unit)| {
                unit.selected = (left..=right).contains(x) && (top..=bottom).contains(y);
            }),
            Order::March(to) => {
                let selected = Vec::from_iter(own.filter(|(_, unit)| unit.selected));
                let count = selected.len();
                for (n, (_, unit)) in (0..).zip(selected) {
                    unit.to = formation(to, n, count);
                }
            }
            Order::Bomb(at) => {
                let ready = Key::new(1, player.0.into()); // it sleeps until then
                if self.wakes.get(ready).is_none() {
                    self.wakes.at(now + 30, ready, at);
                    fx.ask(Key::player(player, now.0), at);
                }
            }
        }
    }

    /// Lets a unit strike, walk or rest. Returns its position, and the ticks until it acts again.
    fn act(&mut self, at: Spot, unit: Unit) -> (Spot, u32) {
        let mut around = (0..9).map(|n| (at.0 + n % 3 - 1, at.1 + n / 3 - 1));
        let is_foe = |other: &Unit| other.id.0 != unit.id.0;
        if let Some(foe) = around.find(|at| self.units.get(at).is_some_and(is_foe)) {
            self.units.remove(&foe);
            return (at, 30);
        }
        let (x, y) = ((unit.to.0 - at.0).signum(), (unit.to.1 - at.1).signum());
        for (x, y) in [(x, y), (x, 0), (0, y), (x - y, y + x), (x + y, y - x)] {
            let next = (at.0 + x.signum(), at.1 + y.signum());
            if at != unit.to && !self.units.contains_key(&next) {
                self.units.remove(&at);
                self.units.insert(next, unit);
                return (next, 1);
            }
        }
        (at, 10)
    }
}

/// The server's decision, made at random: a hit is more likely near the bomb.
fn blast(look: &Look<'_>, _: Key, bomb: &Spot) -> Decision<Vec<UnitId>> {
    let chance = RandomState::new();
    let is_hit = |(at, unit): &(&Spot, &Unit)| {
        let far = at.0.abs_diff(bomb.0).max(at.1.abs_diff(bomb.1));
        u64::from(far) <= chance.hash_one(unit.id) % 8
    };
    let hit = look.sim().units.iter().filter(is_hit);
    Decision::Now(hit.map(|(_, unit)| unit.id).collect())
}

struct Judge;
impl Referee<Realm> for Judge {
    fn admit(&mut self, _: &Look<'_>, _: PlayerId, _: &Order, _: bool) -> Admission {
        Admission::Admitted
    }
    fn admit_request(&mut self, _: &Look<'_>, _: PlayerId, _: MatchRequest) -> Admission {
        Admission::Admitted
    }
}

struct Sight;
impl Show<Realm> for Sight {
    type Key = UnitId;
    type Pose = [f32; 3];
    fn poses(&self, scene: &Scene<'_, Realm>, out: &mut Poses<UnitId, [f32; 3]>) {
        for ((x, y), unit) in &scene.units {
            out.put(unit.id, [*x, *y, unit.selected.into()].map(f32::from));
        }
    }
}

/// A bot's order. An enemy's unit is a goal; a unit of its own is the middle of a selection.
fn think(session: &Session<Realm, Sight>, luck: &mut Mwc) -> Option<Order> {
    let (world, me) = session.authority().zip(session.seats().first())?;
    let (units, orders) = (&world.sim().units, session.stats().commands_sent);
    let n = luck.below(1 + units.len() as u32);
    let ((x, y), unit) = units.iter().nth(n as usize)?;
    (orders < u64::from(world.tick().0 / 8)).then(|| match luck.below(2) {
        _ if unit.id.0 == *me => Order::Select((x - 12, y - 12), (x + 12, y + 12)),
        0 => Order::March((*x, *y)),
        _ => Order::Bomb((*x, *y)),
    })
}

/// A server and its clients. The screen shows the first client.
struct War {
    server: Running<Realm>,
    clients: Vec<Client<Realm, Sight>>,
    luck: Mwc,
    blasts: Vec<(Spot, f32)>, // they are drawn with this opacity
}

impl War {
    fn new(players: u8, loads: bool) -> Result<War, Box<dyn Error>> {
        let mut config = MatchConfig::strategy();
        (config.tick, config.turn) = (TICK, TurnLength::adaptive(1, 4));
        let game = Server::with(config, Realm::default(), ()).players(players.into());
        let game = if loads { game.load(SAVE) } else { game };
        let game = game.resolver(blast).referee(Judge).saves("wars");
        let server = game.listen("127.0.0.1:0")?;
        let mut clients = Vec::new();
        for n in 0..players {
            let config = SessionConfig::new(Arc::new(())).start(Realm::default());
            let smoothing = Smoothing::new(4.0, TICK);
            let config = config.show(Sight, smoothing);
            let ticket = server.ticket(&format!("player {n}"))?;
            clients.push(Client::connect(&ticket, config)?);
        }
        Ok(War {
            server,
            clients,
            luck: Mwc::seed(7),
            blasts: Vec::new(),
        })
    }

    fn frame(&mut self, sketch: &mut Sketch, bots: usize) -> Result<(), Box<dyn Error>> {
        for (n, client) in self.clients.iter_mut().enumerate() {
            client.advance(|_seat| ())?;
            if let Some(order) = think(client.session(), &mut self.luck).filter(|_| n >= bots) {
                client.session_mut().command(0, order).ok();
            }
        }
        let players = self.clients.len() as u8;
        let session = self.clients[0].session_mut();
        let spot = |[x, y]: [f32; 2]| (x as i16, y as i16);
        // Before the session plays, and while a loaded match waits for its players, orders are not taken.
        if let Some([from, to]) = sketch.dragged() {
            session.command(0, Order::Select(spot(from), spot(to))).ok();
        }
        if let Some(to) = sketch.clicked() {
            session.command(0, Order::March(spot(to))).ok();
        }
        while let Some(cue) = session.poll_cue() {
            if let CueKind::Started { cue, .. } = cue.kind {
                self.blasts.push((cue, 0.6));
            }
        }
        sketch.clear(0x1a_22_1c);
        for (id, [x, y, selected]) in session.shown() {
            let color = [0x56_b4_e9, 0xf0_e4_42, 0x2f_c4_95, 0xe3_8f_c0][id.0.index()];
            sketch.fill([x, y], [0.9, 0.9], 0xff_ff_ff, selected);
            sketch.fill([x + 0.1, y + 0.1], [0.7, 0.7], color, 1.0);
        }
        self.blasts.retain_mut(|((x, y), alpha)| {
            let corner = [*x - 7, *y - 7].map(f32::from);
            sketch.fill(corner, [15.0; 2], 0xff_b0_40, *alpha);
            *alpha -= 0.02;
            *alpha > 0.0
        });
        sketch.words([1.0, 94.0], 0xc0_c8_c0, KEYS);
        match sketch.letter() {
            Some('b') => drop(session.command(0, Order::Bomb(spot(sketch.mouse())))),
            Some('1') => drop(session.request(0, MatchRequest::Tick(TICK))),
            Some('2') => drop(session.request(0, MatchRequest::Tick(TICK / 2))),
            Some('p') => drop(session.request(0, MatchRequest::Pause)),
            Some('r') => drop(session.request(0, MatchRequest::Resume)),
            Some('s') => drop(session.request(0, MatchRequest::Save)),
            Some('l') if Path::new(SAVE).exists() => *self = War::new(players, true)?,
            _ => {}
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let players = args.next().map_or(Ok(4), |players| players.parse::<u8>())?;
    let (mut war, picture) = (War::new(players.clamp(2, 4), false)?, args.next());
    if picture.is_some() || display().is_err() {
        return play_itself(war, picture.as_deref());
    }
    run_sketch("Strategy", SCREEN, move |sketch| war.frame(sketch, 1))
}

fn play_itself(mut war: War, picture: Option<&str>) -> Result<(), Box<dyn Error>> {
    let mut sketch = Sketch::new(SCREEN);
    while war.clients[0].now() < Duration::from_secs(10) {
        war.frame(&mut sketch, 0)?;
        sleep(Duration::from_millis(8));
    }
    picture.map_or(Ok(()), |picture| sketch.save(Path::new(picture)))?;
    for (n, client) in war.clients.iter().enumerate() {
        let stats = client.session().stats();
        let (orders, heals) = (stats.commands_executed, stats.heals);
        println!("player {n}: {orders} orders, {heals} desyncs");
        assert!(orders > 0 && heals == 0, "other worlds");
    }
    war.server.shutdown();
    Ok(())
}

#[test]
fn bots_play_without_a_fault() {
    play_itself(War::new(3, false).unwrap(), None).unwrap();
}
