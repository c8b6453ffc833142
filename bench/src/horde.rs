//! *Horde*: a game with a one-millisecond step, run once with [`Effects::each`] and once with a plain loop.
//!
//! A thousand agents cast rays against walls every tick, and walk where there is no wall. Every sixteenth tick an agent
//! looks for a player within sight, and walks to the place where it saw one.
//!
//! Times are processor time within the clients of a world in virtual time, so other work on the machine affects them
//! little. Shares and leads are exact.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{NoPicture, Reconcile};
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::memo::{LoopContext, Memos, Outputs};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Effects, Frame, Mwc, Never, PlayerId, Simulation, Tick};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::no_queries;
use twinstep_rig::game_types;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};
use twinstep_server::Resolver;

use crate::effort::Effort;
use crate::process::cpu_us;
use crate::rows::{Row, Section};

const AGENTS: usize = 1_000;
/// The number of cells per side of the map, and of parts per cell.
const SIDE: i32 = 128;
const PARTS: i32 = 16;
/// The distance at which an agent sees players, in cells.
const SIGHT: i32 = 8;
const LOOKS_EVERY: u32 = 16;
/// The length of a ray in cells. With this length, a step takes about a millisecond.
const REACH: i32 = 176;
/// The worlds in which shares are measured: they depend on where the players go.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// The number of steps that fit into a frame's default time of 4 ms.
const BUDGET: u32 = 4;
const LINES: [(&str, LinkProfile); 3] = [
    ("wan", LinkProfile::WAN),
    ("bad", LinkProfile::BAD),
    ("awful", LinkProfile::AWFUL),
];
const HEADINGS: [[i32; 2]; 8] = [
    [1, 0],
    [1, 1],
    [0, 1],
    [-1, 1],
    [-1, 0],
    [-1, -1],
    [0, -1],
    [1, -1],
];

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Map {
    walls: Vec<bool>,
    is_plain: bool,
}

impl Map {
    fn is_wall(&self, [x, y]: [i32; 2]) -> bool {
        let cell = x.rem_euclid(SIDE) + y.rem_euclid(SIDE) * SIDE;
        self.walls[cell as usize]
    }

    /// The number of open cells within [`REACH`] in the direction of `heading`.
    fn cast(&self, from: [i32; 2], heading: [i32; 2]) -> i32 {
        let cell = |n: i32| [from[0] + heading[0] * n, from[1] + heading[1] * n];
        let is_open = |n: &i32| !self.is_wall(cell(*n));
        (1..REACH).filter(is_open).count() as i32
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Agent {
    at: [i32; 2],
    goal: Option<[i32; 2]>,
}

fn cell([x, y]: [i32; 2]) -> [i32; 2] {
    [x.div_euclid(PARTS), y.div_euclid(PARTS)]
}

impl Agent {
    fn think(&mut self, seen: &Option<[i32; 2]>, map: &Map) {
        self.goal = seen.or(self.goal);
        let from = cell(self.at);
        let worth = |heading: &[i32; 2]| {
            let open = map.cast(from, *heading);
            let nearer = self.goal.map_or(0, |goal| {
                (goal[0] - from[0]) * heading[0] + (goal[1] - from[1]) * heading[1]
            });
            open + nearer.signum() * REACH
        };
        let best = HEADINGS.iter().max_by_key(|heading| worth(heading));
        let [x, y] = best.copied().unwrap_or_default();
        self.at = [self.at[0] + x, self.at[1] + y];
        self.goal = self.goal.filter(|goal| *goal != cell(self.at));
    }

    fn run(
        &mut self,
        seen: &Option<[i32; 2]>,
        given: &LoopContext<'_, Map>,
        _: &mut Outputs<'_, ()>,
    ) {
        self.think(seen, given.rules);
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Horde {
    agents: Vec<Agent>,
    players: BTreeMap<PlayerId, [i32; 2]>,
}

impl Simulation for Horde {
    game_types!("horde", Map, u8, Never, Never, Never, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, heading) in frame.inputs() {
            let id = i32::from(player.0);
            let at = self.players.entry(player);
            let at = at.or_insert([SIDE * PARTS / 4 * (1 + id), SIDE * PARTS / 2]);
            let [x, y] = HEADINGS[usize::from(*heading) % HEADINGS.len()];
            *at = [at[0] + 2 * x, at[1] + 2 * y];
        }
        let (now, players) = (frame.tick().0, &self.players);
        let seen = |n: usize, agent: &Agent| {
            let looks = (now + n as u32).is_multiple_of(LOOKS_EVERY);
            let from = cell(agent.at);
            let near = |at: &[i32; 2]| at[0].abs_diff(from[0]).max(at[1].abs_diff(from[1]));
            let seen = players.values().map(|at| cell(*at)).filter(|_| looks);
            let seen = seen.filter(|at| near(at) <= SIGHT as u32);
            seen.min_by_key(near)
        };
        if frame.rules().is_plain {
            for (n, agent) in self.agents.iter_mut().enumerate() {
                agent.think(&seen(n, agent), frame.rules());
            }
        } else {
            fx.each(
                "agents",
                frame,
                &mut self.agents,
                seen,
                Agent::run,
                |_, ()| {},
            );
        }
    }
}

struct Hand {
    luck: Mwc,
    heading: u8,
    until: Tick,
}

impl Play for Horde {
    type Show = NoPicture;
    type Driver = Hand;

    /// With `crowd` = 1, the loop is plain.
    fn rules(crowd: u16) -> Map {
        let mut luck = Mwc::seed(7);
        Map {
            walls: (0..SIDE * SIDE).map(|_| luck.below(5) == 0).collect(),
            is_plain: crowd == 1,
        }
    }

    fn start(_: &Map, seed: u64) -> Self {
        let mut luck = Mwc::seed(seed);
        let size = (SIDE * PARTS) as u32;
        let agent = |_| Agent {
            at: [luck.below(size) as i32, luck.below(size) as i32],
            goal: None,
        };
        Horde {
            agents: (0..AGENTS).map(agent).collect(),
            players: BTreeMap::new(),
        }
    }

    fn show(_: &Arc<Map>) -> NoPicture {
        NoPicture
    }

    fn resolver(_: &Map, _: u64) -> impl Resolver<Self> {
        no_queries()
    }

    fn driver(_: InputPattern, luck: Mwc) -> Hand {
        Hand {
            luck,
            heading: 0,
            until: Tick(0),
        }
    }

    /// Chooses a new heading every 0.1 to 0.6 s.
    fn drive(&self, hand: &mut Hand, _: &Map, _: PlayerId, now: Tick) -> (u8, Option<Never>) {
        if now >= hand.until {
            hand.heading = hand.luck.below(8) as u8;
            hand.until = now + 6 + hand.luck.below(30);
        }
        (hand.heading, None)
    }

    fn flip(&mut self) {
        self.agents[0].at[0] ^= 1;
    }
}

#[derive(Clone, Copy)]
struct Way {
    is_plain: bool,
    how: Reconcile,
    /// The number of new steps in a frame, and the cost of a repeated step in 256ths.
    budget: [u32; 2],
}

struct Played {
    /// The processor time of a client's session, in cores.
    cores: f64,
    lead: f64,
    /// The items run in repeated ticks, in percent.
    again: f64,
}

/// Over all clients so far: the number of loop items with a reused result, and the number that were run again.
fn items(rig: &Rig<Horde>) -> [u64; 2] {
    let loops = rig.clients.iter().flat_map(|client| client.session.loops());
    loops.fold([0; 2], |[taken, run], of| [taken + of.taken, run + of.run])
}

fn play(seed: u64, link: LinkProfile, way: Way, time: Duration) -> Played {
    let mut config = RigConfig::new(seed, link);
    config.input_pattern = InputPattern::Human;
    config.crowd = way.is_plain.into();
    config.fps = 60;
    config.verify = false;
    config.journal = false;
    config.reconcile = way.how;
    config.rebuilds_late = (way.how != Reconcile::Inline).then_some(1);
    [config.budget, config.repeated_cost] = way.budget;
    let mut rig = Rig::<Horde>::new(config);
    rig.observe(false);
    rig.count_with(|| cpu_us().unwrap_or(0));
    rig.run(Duration::from_secs(2));
    let (before, items_before) = (rig.counts().client, items(&rig));
    rig.run(time);
    let clients = rig.clients.len() as f64;
    let cores = (rig.counts().client - before) as f64 / (time.as_secs_f64() * 1e6 * clients);
    let lead = |client| rig.stats(client).lead_ticks_mean;
    let lead = (0..rig.clients.len()).map(lead).sum::<f64>() / clients;
    let [taken, run] = items(&rig);
    let (taken, run) = (taken - items_before[0], run - items_before[1]);
    Played {
        cores,
        lead,
        again: 100.0 * run as f64 / (taken + run) as f64,
    }
}

/// The time in milliseconds of a plain step, of a new predicted step, and of a step repeated with equal items.
fn steps() -> [f64; 3] {
    const STEPS: u32 = 200;
    let lap = |is_plain: bool, repeats: bool| {
        let rules = Horde::rules(is_plain.into());
        let mut world = World::new(Horde::start(&rules, 1), Tick(0));
        let (mut stepper, mut memos) = (Stepper::default(), Memos::default());
        let mut spent = 0;
        for tick in (0..STEPS).map(Tick) {
            let mut frame = FrameData::preallocated(tick);
            frame.reset(tick);
            let mut step = |world: &mut World<Horde>| {
                let view = Perspective::authority(tick);
                let none = PlayerSet::default();
                let began = cpu_us().unwrap_or(0);
                let stepped = stepper.step_with(world, &frame, &rules, view, none, &mut memos);
                stepped.expect("a step without a fault");
                cpu_us().unwrap_or(0) - began
            };
            let before = repeats.then(|| world.clone());
            let took = step(&mut world);
            spent += match before {
                Some(mut before) => step(&mut before),
                None => took,
            };
            memos.forget(tick);
        }
        spent as f64 / 1e3 / f64::from(STEPS)
    };
    [lap(true, false), lap(false, false), lap(false, true)]
}

pub(crate) fn measure(effort: &Effort) -> Section {
    let [plain, new, repeated] = steps();
    let cost = (repeated / new * 256.0).ceil() as u32;
    let mut section = Section::new(
        "A step of a millisecond",
        format!(
            "*Horde*: 1,000 agents that cast rays; a plain step takes {plain:.2} ms. Four clients draw 60 frames a second. The loop \
             is one by `each`, beside a plain one. A frame has time for {BUDGET} new steps where it says so; rebuilds that do not \
             fit are handed back a frame later."
        ),
    );
    let rows = &mut section.rows;
    rows.push(Row::one("horde, a new predicted step", "ms", new).beside("plain loop", vec![plain]));
    rows.push(Row::one("horde, a repeated step", "ms", repeated).beside("plain loop", vec![plain]));
    let free = Way {
        is_plain: false,
        how: Reconcile::Inline,
        budget: [160, 256],
    };
    for (name, link) in LINES {
        let each = SEEDS.map(|seed| play(seed, link, free, effort.horde));
        let again = each.iter().map(|played| played.again).collect();
        rows.push(Row::new(
            format!("horde, agents run again, {name}"),
            "%",
            again,
        ));
        let [each, ..] = each;
        let play = |way| play(SEEDS[0], link, way, effort.horde);
        if name == "awful" {
            continue;
        }
        let loops = play(Way {
            is_plain: true,
            ..free
        });
        let cores = Row::one(format!("horde, cores of a client, {name}"), "", each.cores);
        rows.push(cores.beside("plain loop", vec![loops.cores]));
        let kept = |way: Way| 100.0 * play(way).lead / each.lead;
        let inline = kept(Way {
            budget: [BUDGET, cost],
            ..free
        });
        let plain = Way {
            is_plain: true,
            budget: [BUDGET, 256],
            ..free
        };
        let row = Row::one(
            format!("horde, lead kept inline in 4 ms, {name}"),
            "%",
            inline,
        );
        rows.push(row.beside("plain loop", vec![kept(plain)]));
        let auto = kept(Way {
            how: Reconcile::Auto,
            ..plain
        });
        rows.push(Row::one(
            format!("horde, lead kept by a plain loop with a thread, {name}"),
            "%",
            auto,
        ));
    }
    section
}
