//! A plan of misfortunes from a seed.

use std::time::Duration;

use powderkeg::game::Game;
use twinstep_core::simnet::LinkProfile;
use twinstep_server::MatchConfig;
use twinstep_server::config::{Announce, Laggards, Sealing, TickLength, TurnLength};

use crate::history::History;
use crate::rig::{Play, Rig, RigConfig, Sticks};

/// What one run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Virtual time.
    pub virtual_time: Duration,
    /// How often the server was killed.
    pub crashes: u64,
    /// Desyncs that were planted.
    pub planted: u64,
    /// Desyncs that the server heard of.
    pub desyncs: u64,
    /// Rebuilds of all clients that were there at the end.
    pub rebuilds: u64,
    /// Cues of all clients that were there at the end.
    pub cues: u64,
    /// Queries asked.
    pub queries: u64,
    /// Commands that ran.
    pub commands: u64,
    /// Returns of all clients that were there at the end: by frames.
    pub resumed: u64,
    /// Returns of all clients that were there at the end: by a world.
    pub reloaded: u64,
}

impl Run {
    /// Takes what a match has counted, before it is over or forgotten by a crash.
    fn forget<S: Play>(&mut self, rig: &Rig<S>) {
        let stats = rig.game.stats();
        self.desyncs += stats.desyncs;
        self.queries += stats.queries;
    }
}

/// Chaos in the history game: seed and virtual seconds. All that a world consists of is compiled with this and shared
/// by the test programs; each would compile it again for itself.
pub static HISTORY: fn(u64, u64) -> Run = run::<History>;
/// The same in Powderkeg.
pub static POWDERKEG: fn(u64, u64) -> Run = run::<Game>;

/// Plays `seconds` of chaos from `seed`, then heals the network and requires convergence.
///
/// # Panics
/// If anything happens that must never happen; the message names the seed that reruns it.
pub fn run<S: Play>(seed: u64, seconds: u64) -> Run {
    let mut luck = twinstep_core::Mwc::seed(seed ^ 0xc4a0_5000);
    let mut config = RigConfig::new(seed, random_link(&mut luck));
    config.clients = 1 + luck.below(4) as usize;
    config.policies = random_policies(&mut luck);
    config.sticks = [Sticks::Analog, Sticks::Sticky][luck.below(2) as usize];
    config.fps = [30, 60, 75, 144][luck.below(4) as usize];
    let mut rig = Rig::<S>::new(config);
    let mut run = Run::default();
    let mut planted = 0;
    let mut joined = 0;
    let end = Duration::from_secs(seconds);
    while rig.now < end {
        let pause = Duration::from_millis(500 + u64::from(luck.below(4_000)));
        rig.run(pause.min(end - rig.now));
        let clients = rig.clients.len();
        let who = luck.below(clients.max(1) as u32) as usize;
        let while_ = Duration::from_millis(u64::from(luck.below(3_000)));
        match luck.below(13) {
            0 if clients < 6 => {
                joined += 1;
                rig.join(&format!("joiner {joined}"));
            }
            1 if clients > 1 => drop(rig.leave(who)),
            2 if clients > 0 => rig.freeze(who, rig.now + while_),
            3 => rig.stall(rig.now + while_),
            4 | 5 if clients > 0 => rig.relink(who, random_link(&mut luck)),
            6 if planted == 0
                && clients > 0
                && rig.clients[who].session.prediction().is_some()
                && rig.all_play() =>
            {
                rig.flip(who);
                planted += 1;
            }
            // A transport dies; who dials again does so from a new address.
            7 if clients > 0 => {
                rig.cut(who);
                rig.run(while_.min(end.saturating_sub(rig.now)));
                rig.redial(who);
            }
            // A transport is given up while it still works.
            8 if clients > 0 => rig.redial(who),
            9 if clients > 0 && luck.below(2) == 0 => rig.restart(who),
            10 if clients > 0 => {
                rig.cut(who);
                rig.run(while_.min(end.saturating_sub(rig.now)));
                rig.hang_up(who);
                rig.run(while_.min(end.saturating_sub(rig.now)));
                rig.redial(who);
            }
            // The server is killed; its successor goes on, and everybody comes back in some way.
            11 => {
                run.forget(&rig);
                rig.crash(while_);
                run.crashes += 1;
                rig.run(while_.min(end.saturating_sub(rig.now)));
                for client in 0..rig.clients.len() {
                    match luck.below(4) {
                        0 => rig.restart(client),
                        _ => rig.redial(client),
                    }
                }
            }
            _ => {}
        }
    }
    rig.converge();
    run.forget(&rig);
    run.virtual_time = rig.now;
    run.planted = planted;
    for (i, client) in rig.clients.iter().enumerate() {
        let (resumed, reloaded) = rig.returns(i);
        run.resumed += resumed as u64;
        run.reloaded += reloaded as u64;
        let stats = client.session.stats();
        run.rebuilds += stats.timeline.rebuilds;
        run.cues += stats.cues_started;
        run.commands += stats.commands_executed;
    }
    run
}

/// Every policy there is, in every combination that may be run.
fn random_policies(luck: &mut twinstep_core::Mwc) -> MatchConfig {
    let mut config = if luck.below(3) == 0 {
        MatchConfig {
            command_delay: 1 + luck.below(4) as u8,
            sealing: match luck.below(3) {
                0 => Sealing::Deadline,
                _ => Sealing::WaitForAll {
                    kick_after: Duration::from_secs(20),
                },
            },
            ..MatchConfig::strategy()
        }
    } else {
        MatchConfig {
            delay_ticks: [0, 0, 2, 5][luck.below(4) as usize],
            announce: [Announce::Ahead, Announce::Ahead, Announce::Never][luck.below(3) as usize],
            ..MatchConfig::action()
        }
    };
    config.turn = match luck.below(4) {
        0 => TurnLength::Adaptive { min: 1, max: 8 },
        _ => TurnLength::Fixed(1 + luck.below(4) as u8),
    };
    if luck.below(4) == 0 {
        let max = config.tick * 2;
        config.tick_length = TickLength::Adaptive { max };
    }
    config.laggards = match luck.below(4) {
        0 => Laggards::Hold {
            at_once: Duration::from_millis(250),
            per_minute: Duration::from_secs(2),
        },
        1 => Laggards::Kick {
            after: Duration::from_secs(20),
        },
        _ => Laggards::Ignore,
    };
    config
}

fn random_link(luck: &mut twinstep_core::Mwc) -> LinkProfile {
    match luck.below(6) {
        0 => LinkProfile::PERFECT,
        1 => LinkProfile::LAN,
        2 => LinkProfile::WAN,
        3 => LinkProfile::BAD,
        4 => LinkProfile::AWFUL,
        _ => {
            let text = format!(
                "rtt={},jitter={},loss={},dup={}",
                luck.below(250),
                luck.below(60),
                luck.below(12),
                luck.below(6)
            );
            text.parse().expect("a link in words")
        }
    }
}
