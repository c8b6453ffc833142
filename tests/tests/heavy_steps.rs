//! Games with expensive steps keep their prediction if their loops reuse results ([`Effects::each`]): a rebuild runs
//! only items touched by a wrong guess, and the lead is not shortened. Reused results equal those of a plain loop.
//!
//! [`Effects::each`]: twinstep_core::Effects::each

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use powderkeg_game::Game;
use serde::{Deserialize, Serialize};
use twinstep_client::Reconcile;
use twinstep_core::bounds::{LEAD_MAX, MEMO_BYTES_MAX};
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::memo::{LoopContext, Memos, Outputs};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Effects, Frame, Simulation, Tick};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::game_types;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};

struct Played {
    /// The mean lead, in ticks.
    lead: f64,
    /// The share of items in repeated ticks that were run.
    run: f64,
    rebuilds: u64,
    /// The number of deferred rebuilds.
    put_off: u64,
    away_steps: u64,
}

/// Runs for six seconds. A frame has time for `budget` steps; a repeated step costs `cost` / 256 of a step.
fn played(link: LinkProfile, crowd: u16, how: Reconcile, [budget, cost]: [u32; 2]) -> Played {
    let mut config = RigConfig::new(7, link);
    config.input_pattern = InputPattern::Human;
    config.crowd = crowd;
    config.fps = 60;
    config.verify = false;
    config.journal = false;
    config.rebuilds_late = (how != Reconcile::Inline).then_some(1);
    config.reconcile = how;
    (config.budget, config.repeated_cost) = (budget, cost);
    let mut rig = Rig::<Game>::new(config);
    rig.run(Duration::from_secs(6));
    let (mut taken, mut run, mut lead) = (0, 0, 0.0);
    let (mut rebuilds, mut put_off, mut away_steps) = (0, 0, 0);
    for client in 0..4 {
        let stats = rig.stats(client);
        lead += stats.lead_ticks_mean / 4.0;
        rebuilds += stats.timeline.rebuilds;
        put_off += stats.timeline.put_off;
        away_steps += stats.timeline.away_steps;
        assert_eq!(stats.timeline.without_memo, 0);
        let (taken_before, run_before) = (taken, run);
        for of in rig.clients[client].session.loops() {
            (taken, run) = (taken + of.taken, run + of.run);
        }
        let of_loops = (taken - taken_before, run - run_before);
        let timeline = stats.timeline;
        assert_eq!((timeline.items_taken, timeline.items_run), of_loops);
    }
    rig.converge();
    Played {
        lead,
        run: run as f64 / (taken + run) as f64,
        rebuilds,
        put_off,
        away_steps,
    }
}

#[test]
fn a_rebuild_runs_only_the_items_touched_by_a_wrong_guess() {
    for (name, link, how, most) in [
        ("wan", LinkProfile::WAN, Reconcile::Auto, 0.02),
        ("bad", LinkProfile::BAD, Reconcile::Background, 0.03),
        ("awful", LinkProfile::AWFUL, Reconcile::Inline, 0.05),
    ] {
        let played = played(link, 300, how, [160, 256]);
        let share = played.run * 100.0;
        println!(
            "{name}: {share:.2} % run again in {} rebuilds",
            played.rebuilds
        );
        assert!(played.rebuilds > 200, "{name}: {}", played.rebuilds);
        assert!(played.run <= most, "{name}: {share:.2} %");
    }
}

/// With a 1 ms step, a 4 ms frame has time for four steps. At an eighth of that cost, repeated steps fit. Without
/// memos, rebuilds become rare before the lead is shortened.
#[test]
fn a_game_with_one_millisecond_steps_keeps_its_lead() {
    for (name, link, least) in [
        ("wan", LinkProfile::WAN, 0.95),
        ("bad", LinkProfile::BAD, 0.9),
    ] {
        let free = played(link, 0, Reconcile::Inline, [160, 256]);
        let same = played(link, 0, Reconcile::Inline, [4, 256]);
        let cheap = played(link, 0, Reconcile::Inline, [4, 32]);
        println!(
            "{name}: a lead of {:.1} ticks; {:.1} at four steps a frame with {} of {} rebuilds, {} put off; {:.1} with memos",
            free.lead, same.lead, same.rebuilds, free.rebuilds, same.put_off, cheap.lead
        );
        assert_eq!(free.put_off, 0, "{name}");
        assert!(same.rebuilds * 2 < free.rebuilds, "{name}");
        assert!(same.lead >= free.lead * least, "{name}: {}", same.lead);
        assert!(cheap.lead >= free.lead * least, "{name}: {}", cheap.lead);
    }
}

/// A rebuild that does not fit into a frame leaves the game's thread, and one that fits stays there.
#[test]
fn rebuilds_too_long_for_a_frame_run_in_the_background() {
    for (name, link, least) in [
        ("wan", LinkProfile::WAN, 0.95),
        ("bad", LinkProfile::BAD, 0.9),
    ] {
        let free = played(link, 0, Reconcile::Auto, [160, 256]);
        let heavy = played(link, 0, Reconcile::Auto, [4, 256]);
        println!(
            "{name}: a lead of {:.1} ticks, {:.1} at four steps a frame with {} steps in the background",
            free.lead, heavy.lead, heavy.away_steps
        );
        assert_eq!(free.away_steps, 0, "{name}");
        assert!(heavy.away_steps > 1_000, "{name}: {}", heavy.away_steps);
        assert!(heavy.lead >= free.lead * least, "{name}: {}", heavy.lead);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Agent {
    at: f32,
    pushed: Vec<u8>,
}

static SECRET: AtomicI32 = AtomicI32::new(0);

impl Agent {
    fn walk(&mut self, goal: &f32, given: &LoopContext<'_, ()>, out: &mut Outputs<'_, f32>) {
        self.at = (self.at + goal) / 2.0;
        self.pushed.push(given.tick.0 as u8);
        if self.at < *goal {
            out.push(self.at);
            out.push(*goal);
        }
    }

    fn peek(&mut self, _: &f32, _: &LoopContext<'_, ()>, _: &mut Outputs<'_, f32>) {
        self.at += SECRET.load(Ordering::Relaxed) as f32;
    }

    fn fall(&mut self, _: &f32, _: &LoopContext<'_, ()>, _: &mut Outputs<'_, f32>) {
        assert!(self.at < 5.0, "agent 5 falls");
    }
}

fn farthest(goals: &[f32], _: &LoopContext<'_, ()>) -> f32 {
    goals.iter().copied().fold(0.0, f32::max)
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Town {
    agents: Vec<Agent>,
    goals: Vec<f32>,
    reached: Vec<f32>,
    peeks: bool,
    twice: bool,
    falls: bool,
    far: f32,
}

impl Simulation for Town {
    game_types!("town");

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let run = match (self.peeks, self.falls) {
            (true, _) => Agent::peek,
            (_, true) => Agent::fall,
            _ => Agent::walk,
        };
        for _ in 0..1 + u8::from(self.twice) {
            let (goals, reached) = (&self.goals, &mut self.reached);
            let goal = |n: usize, _: &Agent| goals[n % goals.len()];
            let tell = |_: &mut Effects<Town>, at| reached.push(at);
            fx.each("walk", frame, &mut self.agents, goal, run, tell);
        }
        self.far = fx.recall("far", frame, &self.goals[..], farthest);
    }
}

fn town(count: usize) -> Town {
    let agent = |n| Agent {
        at: n as f32,
        pushed: Vec::new(),
    };
    Town {
        agents: (0..count).map(agent).collect(),
        goals: Vec::from([0.0, 50.0, 7.0]),
        ..Town::default()
    }
}

/// Steps a world with this town once, as a rebuild does, with these memos. Returns the town, and `[reused, run]` for
/// the loop over items and for the loop over values: the results that were reused, and those that were computed in a
/// repeated tick.
fn step(town: &Town, memos: &mut Memos) -> (Town, [u64; 2], [u64; 2]) {
    step_at(town, memos, Tick(5))
}

fn step_at(town: &Town, memos: &mut Memos, tick: Tick) -> (Town, [u64; 2], [u64; 2]) {
    let mut world = World::new(town.clone(), tick);
    let mut frame = FrameData::preallocated(tick);
    frame.reset(tick);
    let perspective = Perspective::authority(tick);
    let mut stepper = Stepper::default();
    let mut plain = world.clone();
    let no_claimants = PlayerSet::default();
    // In a timeline, the authority has stepped before; a stepper that has not run a loop yet uses no memos.
    let stepped = stepper.step(&mut plain, &frame, &(), perspective, no_claimants);
    stepped.unwrap();
    let stepped = stepper.step_with(&mut world, &frame, &(), perspective, no_claimants, memos);
    stepped.unwrap();
    if !town.peeks {
        assert_eq!(world.sim(), plain.sim(), "differs from a plain loop");
    }
    let mut loops = Vec::new();
    memos.take_stats(&mut loops);
    let counts = |name| {
        let of = loops.iter().find(|of| of.name == name);
        of.map_or([0, 0], |of| [of.taken, of.run])
    };
    (world.sim().clone(), counts("walk"), counts("far"))
}

#[test]
fn results_of_equal_items_are_reused_and_other_items_run() {
    let mut memos = Memos::default();
    let mut town = town(100);
    assert_eq!(step(&town, &mut memos).1, [0, 0], "a new tick");
    assert_eq!(step(&town, &mut memos).1, [100, 0]);
    town.agents[3].at += 1.0;
    assert_eq!(step(&town, &mut memos).1, [99, 1], "another item");
    town.goals[1] = 51.0;
    assert_eq!(step(&town, &mut memos).1, [67, 33], "other reads");
    town.agents[0].at = -0.0;
    assert_eq!(step(&town, &mut memos).1, [99, 1], "bytes count, not `==`");
    town.agents.drain(30..33);
    assert_eq!(
        step(&town, &mut memos).1,
        [97, 0],
        "three items left the list"
    );
    let step_at = |tick, memos: &mut Memos| step_at(&town, memos, tick).1;
    assert_eq!(step_at(Tick(6), &mut memos), [0, 0]);
    memos.forget(Tick(6));
    assert_eq!(step_at(Tick(6), &mut memos), [0, 0], "it is confirmed");
    let later = Tick(6) + (LEAD_MAX + 1);
    assert_eq!(step_at(later, &mut memos), [0, 0], "in the same slot");
}

#[test]
fn a_value_is_reused_for_an_equal_input() {
    let mut memos = Memos::default();
    let mut town = town(3);
    step(&town, &mut memos);
    assert_eq!(step(&town, &mut memos).2, [1, 0]);
    town.goals[2] = 70.0;
    let (stepped, _, counts) = step(&town, &mut memos);
    assert_eq!((stepped.far, counts), (70.0, [0, 1]));
}

#[test]
fn absorbed_memos_of_new_ticks_are_reused() {
    let (mut ours, mut theirs) = (Memos::default(), Memos::default());
    let town = town(10);
    step_at(&town, &mut ours, Tick(1));
    step_at(&town, &mut theirs, Tick(2));
    ours.absorb(&mut theirs);
    assert_eq!(theirs.bytes(), 0);
    for tick in [1, 2] {
        assert_eq!(step_at(&town, &mut ours, Tick(tick)).1, [10, 0]);
    }
}

#[test]
fn memos_stay_within_their_size_limit() {
    let mut memos = Memos::default();
    let town = town(20_000);
    for tick in 0..40 {
        step_at(&town, &mut memos, Tick(tick));
        assert!(
            memos.bytes() < MEMO_BYTES_MAX + (4 << 20),
            "{}",
            memos.bytes()
        );
    }
    assert!(memos.take_without() > 0);
}

#[test]
fn a_function_reading_a_static_is_detected() {
    let mut memos = Memos::default();
    let town = Town {
        peeks: true,
        ..town(300)
    };
    for secret in 0..4 {
        SECRET.store(secret, Ordering::Relaxed);
        step(&town, &mut memos);
    }
    assert_eq!(memos.take_impure(), Some("walk"));
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "a name of its own"))]
fn two_loops_with_one_name_are_an_error() {
    let town = Town {
        twice: true,
        ..town(3)
    };
    step(&town, &mut Memos::default());
}

#[test]
fn a_panic_in_a_loop_is_reported_with_its_name_and_costs_only_the_memo_of_its_tick() {
    let mut memos = Memos::default();
    let mut stepper = Stepper::default();
    let mut frame = FrameData::preallocated(Tick(5));
    frame.reset(Tick(5));
    let mut step = |town: &Town| {
        let mut world = World::new(town.clone(), Tick(5));
        let view = Perspective::authority(Tick(5));
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            let none = PlayerSet::default();
            let stepped = stepper.step_with(&mut world, &frame, &(), view, none, &mut memos);
            stepped.map(drop).unwrap();
        }));
        let mut loops = Vec::new();
        memos.take_stats(&mut loops);
        let walked = loops.iter().find(|of| of.name == "walk");
        let taken = walked.map_or(0, |of| of.taken);
        (
            stepped.is_ok(),
            taken,
            stepper.explain_panic("agent 5 falls"),
        )
    };
    let sound = town(10);
    let falls = Town {
        falls: true,
        goals: [1.0].into(),
        ..sound.clone()
    };
    // The first step has no memo yet, because no loop has run before.
    assert_eq!(step(&sound), (true, 0, "agent 5 falls".into()));
    assert_eq!(step(&sound), (true, 0, "agent 5 falls".into()));
    assert_eq!(step(&sound), (true, 10, "agent 5 falls".into()));
    let named = r#"agent 5 falls (in the loop "walk")"#;
    assert_eq!(step(&falls), (false, 0, named.into()));
    for taken in [0, 0, 10] {
        assert_eq!(step(&sound), (true, taken, "agent 5 falls".into()));
    }
}
