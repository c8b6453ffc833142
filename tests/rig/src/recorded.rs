//! Long matches without a network: simulated players' inputs step the server's world and are written to a journal.

use twinstep_core::frame::{Answer, FrameData, Order, Perspective, PlayerSet, RosterChange};
use twinstep_core::turn::Cadence;
use twinstep_core::world::Stepper;
use twinstep_core::{Key, Mwc, PlayerId, Tick, World};
use twinstep_protocol::journal::WrittenBy;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::Recorder;

use crate::rig::{InputPattern, Play};

pub struct Recorded<S: Play> {
    pub journal: Vec<u8>,
    pub world: World<S>,
    pub rules: S::Rules,
    pub hello: Hello,
}

/// Records a match with `players` players from tick 0, at 60 Hz, in turns of two ticks.
///
/// # Panics
/// If the game asks more queries than a frame may hold.
#[must_use]
pub fn recorded<S: Play>(
    seed: u64,
    players: u8,
    ticks: u32,
    input_pattern: InputPattern,
) -> Recorded<S> {
    let rules = S::rules(0);
    let hello = Hello::of::<S>(&rules, "recorded").expect("rules without NaN");
    let cadence = Cadence {
        turn_ticks: 2,
        ..Cadence::DEFAULT
    };
    let mut world = World::new(S::start(&rules, seed), Tick(0)).clocked(cadence);
    let mut journal = Vec::new();
    let mut recorder = Recorder::start(WrittenBy::Server, &hello, 0, 0, &world, &mut journal)
        .expect("short names");
    let mut stepper = Stepper::default();
    let root = Mwc::seed(seed);
    let mut drivers: Vec<S::Driver> = (0..players)
        .map(|n| S::driver(input_pattern, root.fork(Key::new(u64::from(n), 0))))
        .collect();
    for n in 0..players {
        let name = format!("player {n}");
        recorder
            .seat(PlayerId(n), &name, &mut journal)
            .expect("a short name");
    }
    let mut frame = FrameData::preallocated(Tick(0));
    for tick in (0..ticks).map(Tick) {
        frame.reset(tick);
        for (n, driver) in (0..players).zip(&mut drivers) {
            let me = PlayerId(n);
            if tick == Tick(0) {
                frame.roster.push((me, RosterChange::Joined));
            }
            let (input, order) = world.sim().drive(driver, &rules, me, tick);
            frame.inputs.set(me, Some(input));
            if let Some(command) = order
                && tick > Tick(0)
                && world.sim().admit(&rules, me, &command)
            {
                frame.commands.push(Order {
                    player: me,
                    seq: world.next_seq(me),
                    command,
                });
            }
        }
        for open in world.open_queries() {
            frame.outcomes.push(Answer {
                asked: open.asked,
                key: open.key,
                outcome: S::speculate(world.sim(), &rules, &open.query),
            });
        }
        let perspective = Perspective::authority(tick);
        stepper
            .step(
                &mut world,
                &frame,
                &rules,
                perspective,
                PlayerSet::default(),
            )
            .expect("a frame that fits");
        recorder.frame(&frame);
        if world.turn().began == world.tick() {
            let digest = world.digest().expect("no NaN");
            recorder
                .turn(&world, digest, &mut journal)
                .expect("a turn of two ticks");
        }
    }
    Recorded {
        journal,
        world,
        rules,
        hello,
    }
}
