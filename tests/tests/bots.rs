//! Bots: the rules play seats without a human player.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Poses, Scene, Show, TimelineStats};
use twinstep_core::prelude::*;
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::replay::{Index, Replay};
use twinstep_protocol::simnet::{LegProfile, LinkProfile};
use twinstep_rig::rig::{InitialWorldKnowledge, InputPattern, Play, Rig, RigConfig};
use twinstep_server::{Decision, HookContext, Match, Resolver};
use twinstep_testing::{Script, check};

const SECOND: Duration = Duration::from_secs(1);
const ANNA: PlayerId = PlayerId(0);
const BEN: PlayerId = PlayerId(1);

/// Each player chases the nearest other player. The input is a direction; a command is a shout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Chase {
    runners: Table<PlayerId, Runner>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Runner {
    at: [i32; 2],
    shouts: u32,
    ticks_as_bot: u32,
}

impl Simulation for Chase {
    const NAME: &'static str = "chase";
    const VERSION: u32 = 1;
    /// The number of seats that a bot plays while no human does.
    type Rules = u8;
    type Input = [i8; 2];
    type Command = ();
    type Query = Never;
    type Outcome = Never;
    type Cue = PlayerId;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, way) in frame.inputs() {
            let start = || Runner {
                at: [i32::from(player.0) * 1_000, 0],
                ..Runner::default()
            };
            let runner = self.runners.get_or_insert_with(player, start);
            for (at, way) in runner.at.iter_mut().zip(way) {
                *at += i32::from(*way);
            }
            runner.ticks_as_bot += u32::from(frame.is_bot(player));
        }
        for (player, ()) in frame.commands() {
            if let Some(runner) = self.runners.get_mut(&player) {
                runner.shouts += 1;
                fx.cue(Key::player(player, runner.shouts), player);
            }
        }
    }

    fn bot(&self, player: PlayerId, tick: Tick, bots: &u8) -> Option<BotMove<Self>> {
        if player.0 >= *bots {
            return None;
        }
        let here = self.runners.get(&player).map_or([0, 0], |runner| runner.at);
        let apart = |at: [i32; 2]| (at[0] - here[0]).abs() + (at[1] - here[1]).abs();
        let others = self.runners.iter().filter(|(other, _)| **other != player);
        let near = others.min_by_key(|(_, runner)| apart(runner.at));
        let there = near.map_or(here, |(_, runner)| runner.at);
        Some(BotMove {
            input: [0, 1].map(|axis| (there[axis] - here[axis]).clamp(-7, 7) as i8),
            command: (tick.0 % 64 == u32::from(player.0)).then_some(()),
        })
    }
}

struct Sight;

impl Show<Chase> for Sight {
    type Key = PlayerId;
    type Pose = f32;

    fn poses(&self, scene: &Scene<'_, Chase>, out: &mut Poses<PlayerId, f32>) {
        for (player, runner) in scene.runners.iter() {
            out.put(*player, runner.at[0] as f32);
        }
    }
}

impl Play for Chase {
    type Show = Sight;
    type Driver = (Mwc, [i8; 2]);

    fn rules(crowd: u16) -> u8 {
        crowd as u8
    }

    fn start(_: &u8, _: u64) -> Self {
        Chase::default()
    }

    fn show(_: &Arc<u8>) -> Sight {
        Sight
    }

    fn resolver(_: &u8, _: u64) -> impl Resolver<Self> {
        |_: &HookContext<'_, Self>, _: Key, query: &Never| -> Decision<Never> { match *query {} }
    }

    fn driver(_: InputPattern, luck: Mwc) -> Self::Driver {
        (luck, [0, 0])
    }

    // The actions are the same with and without bots.
    fn drive(
        &self,
        (luck, way): &mut Self::Driver,
        _: &u8,
        _: PlayerId,
        _: Tick,
    ) -> ([i8; 2], Option<()>) {
        if luck.below(12) == 0 {
            *way = [0; 2].map(|_: i8| luck.below(15) as i8 - 7);
        }
        (*way, (luck.below(100) == 0).then_some(()))
    }

    fn flip(&mut self) {
        self.runners
            .values_mut()
            .for_each(|runner| runner.shouts ^= 1);
    }
}

/// A match with this many clients. Bots play the free seats with a number below `bots`.
fn played(seed: u64, link: &str, clients: usize, bots: u16) -> Rig<Chase> {
    let mut config = RigConfig::new(seed, link.parse().expect("a link"));
    config.clients = clients;
    config.crowd = bots;
    config.initial_world_knowledge = InitialWorldKnowledge::Known;
    let mut rig = Rig::new(config);
    // The guide's numbers are for 20 s.
    rig.run(SECOND * if cfg!(debug_assertions) { 5 } else { 20 });
    rig
}

fn timelines(rig: &Rig<Chase>) -> Vec<TimelineStats> {
    let timelines = (0..2).map(|client| rig.stats(client).timeline);
    timelines.collect()
}

#[test]
fn six_bots_cause_no_rebuilds_and_no_traffic() {
    for (seed, link) in [(1, "lan"), (2, "rtt=120,jitter=20"), (3, "bad")] {
        let (without, with) = (played(seed, link, 2, 0), played(seed, link, 2, 8));
        assert_eq!(timelines(&with), timelines(&without), "{link}");
        let sim = with.match_.world().sim();
        assert_eq!(sim.runners.len(), 8);
        assert!(sim.runners.get(&PlayerId(7)).unwrap().shouts > 2);
        let turns = |rig: &Rig<Chase>| {
            let bytes = Index::scan(&rig.journal[..]).expect("a journal").bytes;
            (bytes.turns, bytes.idle, bytes.digests)
        };
        assert_eq!(turns(&with), turns(&without), "{link}");
        // All bytes except worlds: the world sent to a late joiner has six more runners.
        let down = |rig: &Rig<Chase>| ByteCounts {
            bulk: 0,
            ..rig.bytes_down(0)
        };
        assert_eq!(down(&with), down(&without), "{link}");
        let as_clients = played(seed, link, 8, 0);
        let count = |rig: &Rig<Chase>| timelines(rig).iter().map(|t| t.rebuilds).sum::<u64>();
        println!(
            "{link}: {} rebuilds without bots, {} with six bots, {} with six clients in their place",
            count(&without),
            count(&with),
            count(&as_clients)
        );
        assert!(count(&as_clients) > count(&with) + 20, "{link}");
    }
}

/// The journal's last tick, and the digest of the world replayed up to it.
fn replayed(rig: &Rig<Chase>, rules: &u8) -> (Tick, u64) {
    let mut replay = Replay::<Chase>::open(&rig.journal, rules).expect("a journal");
    let verified = replay.verify();
    assert!(verified.fault.is_none(), "{:?}", verified.fault);
    let world = replay.world();
    (world.tick(), world.digest().expect("no NaN"))
}

#[test]
fn seats_pass_between_humans_and_bots_mid_match() {
    const RULES: u8 = 4;
    let mut rig = played(7, "bad", 2, RULES.into());
    let has_bot = |rig: &Rig<Chase>, player| rig.match_.world().has_bot(player, &RULES);
    let bot_seats = |rig: &Rig<Chase>| {
        let players = (0..16).map(PlayerId);
        Vec::from_iter(players.filter(|player| has_bot(rig, *player)))
    };
    assert_eq!(bot_seats(&rig), [PlayerId(2), PlayerId(3)]);
    // One human player leaves, and another is cut off.
    rig.leave(1);
    rig.run(SECOND);
    assert_eq!(bot_seats(&rig), [BEN, PlayerId(2), PlayerId(3)]);
    rig.relink(0, LinkProfile::both(LegProfile::BLACKOUT));
    rig.run(SECOND * 4);
    assert!(has_bot(&rig, ANNA));
    let by_bot = |rig: &Rig<Chase>, player| {
        let runners = &rig.match_.world().sim().runners;
        runners.get(&player).map_or(0, |runner| runner.ticks_as_bot)
    };
    assert!(by_bot(&rig, ANNA) > 60);
    rig.relink(0, "rtt=80,loss=2".parse().expect("a link"));
    rig.run(SECOND * 3);
    assert!(!has_bot(&rig, ANNA), "its person is back");
    rig.crash(SECOND / 2);
    rig.run(SECOND / 2);
    rig.redial(0);
    rig.run(SECOND * 4);
    assert_eq!(bot_seats(&rig), [BEN, PlayerId(2), PlayerId(3)]);
    // A newcomer takes the lowest seat that no human has had, with its runner; a returning player takes its own seat.
    rig.join("carl");
    rig.run(SECOND * 5);
    assert_eq!(bot_seats(&rig), [BEN, PlayerId(3)]);
    assert!(by_bot(&rig, BEN) > 200);
    rig.join("player 1");
    rig.run(SECOND * 5);
    assert_eq!(bot_seats(&rig), [PlayerId(3)]);
    let held = [BEN, PlayerId(2)].map(|player| by_bot(&rig, player));
    rig.run(SECOND * 2);
    let now = [BEN, PlayerId(2)].map(|player| by_bot(&rig, player));
    assert_eq!(now, held, "persons play there");
    let late = rig.clients[2].session.authority().expect("it is in");
    assert!(late.sim().runners.len() == 4 && late.has_bot(PlayerId(3), &RULES));
    rig.converge();
    let (tick, played_again) = replayed(&rig, &RULES);
    assert_eq!(rig.match_.digest_at(tick), Some(played_again));

    let save = rig.match_.save().expect("a save");
    let resolver = Chase::resolver(&RULES, 0);
    let config = rig.config.policies.clone();
    let loaded = Match::<Chase>::load(config, &save, Arc::new(RULES), resolver, None);
    let loaded = loaded.expect("it was just written");
    let world = loaded.world();
    assert!(world.has_bot(PlayerId(3), &RULES) && world.sim().runners.len() == 4);
}

#[test]
fn check_accepts_a_game_with_bots() {
    let script = Script::inputs([[0, 0], [3, -2], [-7, 7]])
        .players(3)
        .commands(|_, luck| (luck.below(60) == 0).then_some(()));
    let report = check(Chase::default(), 6, script).unwrap();
    assert!(report.tried.cues > 20, "{report}");
}
