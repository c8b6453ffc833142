//! Assumed inputs are compared with the confirmed ones. Correct predictions are kept, others are rebuilt, and good
//! guesses make rebuilds rare.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::internal::{LocalActions, Timeline, Watch};
use twinstep_client::{NoPicture, Repeat, Wait};
use twinstep_core::frame::{FrameData, Perspective, RosterChange};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, PlayerSet, Simulation, Tick};
use twinstep_rig::direct::no_queries;
use twinstep_rig::game_types;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};
use twinstep_server::Resolver;
use twinstep_server::config::Announce;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Trace {
    held: [u64; 3],
}

impl Simulation for Trace {
    game_types!("trace");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, held) in frame.inputs() {
            let trace = &mut self.held[player.index()];
            *trace = trace.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(*held);
        }
    }
}

struct Blind;

impl<S: Simulation> Watch<S> for Blind {
    fn confirmed(&mut self, _: &World<S>, _: &Effects<S>, _: bool) {}
    fn predicted(&mut self, _: &World<S>, _: &Effects<S>) {}
    fn resimulated(&mut self, _: &World<S>, _: bool) {}
    fn rebuilt(
        &mut self,
        _: Tick,
        _: &World<S>,
        _: &mut dyn Iterator<Item = (Tick, &[(Key, S::Cue)])>,
    ) {
    }
}

/// Row 36: a corrected prediction equals a run from the start with the true actions of all players. Two remote players
/// sometimes change their input, and the client receives the change up to 9 ticks late.
#[test]
fn a_correction_equals_a_run_from_the_start() {
    const TICKS: u32 = 3_000;
    let mut luck = Mwc::seed(36);
    let mut held = [0_u8; 3];
    let mut changed = vec![Tick(0)];
    let frames: Vec<FrameData<Trace>> = (0..TICKS)
        .map(|tick| {
            let mut frame = FrameData::empty(Tick(tick));
            let remote_changes = tick.is_multiple_of(25);
            for (i, held) in held.iter_mut().enumerate() {
                if i == 0 || remote_changes {
                    *held = luck.next_u32() as u8;
                }
                let player = PlayerId(i as u8);
                if tick == 0 {
                    frame.roster.push((player, RosterChange::Joined));
                }
                frame.inputs.set(player, Some(*held));
            }
            changed.push(if remote_changes {
                Tick(tick)
            } else {
                changed[tick as usize]
            });
            frame
        })
        .collect();
    // This is the run from the start.
    let mut world = World::new(Trace::default(), Tick(0));
    let mut stepper = Stepper::default();
    let mut truth = vec![world.digest().unwrap()];
    for frame in &frames {
        let perspective = Perspective::authority(frame.tick);
        let stepped = stepper.step(&mut world, frame, &(), perspective, PlayerSet::default());
        stepped.unwrap();
        truth.push(world.digest().unwrap());
    }
    let seats = [PlayerId(0)].into_iter().collect();
    let start = World::new(Trace::default(), Tick(0));
    let (guess, speculate) = (Box::new(Repeat), Box::new(Wait));
    let mut timeline = Timeline::new(
        Arc::new(()),
        start,
        LocalActions::new(seats, &[0]),
        guess,
        speculate,
        true,
    );
    let (mut lag, mut compared, mut corrected) = (3, 0, 0);
    for now in 0..TICKS {
        let own = *frames[now as usize].inputs.get(PlayerId(0)).unwrap();
        timeline.local_actions_mut().sample(|_| own);
        if luck.below(8) == 0 {
            lag = luck.below(10);
        }
        let rebuilds = timeline.stats().rebuilds;
        while timeline.authority().tick() + lag <= Tick(now) {
            let next = timeline.authority().tick();
            timeline
                .confirm(&frames[next.0 as usize], &mut Blind)
                .unwrap();
        }
        timeline.predict(Tick(now + 1), 200, &mut Blind);
        let (authority, prediction) = (timeline.authority(), timeline.prediction());
        assert_eq!(
            authority.digest().unwrap(),
            truth[authority.tick().0 as usize]
        );
        // This client knows of every change up to the prediction's tick.
        if authority.tick() > changed[prediction.tick().0 as usize] {
            assert_eq!(
                prediction.digest().unwrap(),
                truth[prediction.tick().0 as usize],
                "{now}"
            );
            compared += 1;
            corrected += u32::from(timeline.stats().rebuilds > rebuilds);
        }
    }
    println!("{compared} predictions compared, {corrected} of them just corrected");
    assert!(
        compared > 1_500 && corrected > 80,
        "{compared}, {corrected}"
    );
}

/// `Timeline::known`: another player's announced input counts as known once the prediction has used it: immediately if
/// the guess was equal, otherwise after the next rebuild.
#[test]
fn an_announced_input_of_another_player_stays_in_the_prediction() {
    let start = World::new(Trace::default(), Tick(0));
    let mut timeline = Timeline::new(
        Arc::new(()),
        start,
        LocalActions::new([PlayerId(0)].into_iter().collect(), &[0]),
        Box::new(Repeat),
        Box::new(Wait),
        true,
    );
    let mut watch = Blind;
    let (own, other) = (PlayerId(0), PlayerId(1));
    let frame = |tick: u32, held: u8| {
        let mut frame = FrameData::<Trace>::empty(Tick(tick));
        if tick == 0 {
            frame.roster.push((own, RosterChange::Joined));
            frame.roster.push((other, RosterChange::Joined));
        }
        frame.inputs.set(own, Some(1));
        frame.inputs.set(other, Some(held));
        frame
    };
    for _ in 0..20 {
        timeline.local_actions_mut().sample(|_| 1);
    }
    timeline.confirm(&frame(0, 7), &mut watch).unwrap();
    timeline.predict(Tick(6), 99, &mut watch);
    let known = timeline.known();
    assert!(known.covers(other, Tick(0)) && !known.covers(other, Tick(1)));
    assert!(known.covers(own, Tick(5)));
    // For two ticks the announcements equal the prediction, then they differ.
    for (tick, held) in [(1, 7), (2, 7), (3, 9), (4, 9)] {
        timeline.announce(other, Tick(tick), &held);
    }
    timeline.predict(Tick(7), 99, &mut watch);
    let known = timeline.known();
    assert!(known.covers(other, Tick(2)) && !known.covers(other, Tick(3)));
    // A rebuild assumes the announced inputs.
    timeline.confirm(&frame(1, 8), &mut watch).unwrap();
    timeline.predict(Tick(7), 99, &mut watch);
    let known = timeline.known();
    assert!(known.covers(other, Tick(4)) && !known.covers(other, Tick(5)));
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct March {
    steps: u64,
}

impl Simulation for March {
    game_types!("march");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.steps += frame
            .inputs()
            .map(|(_, held)| u64::from(*held))
            .sum::<u64>();
    }
}

impl Play for March {
    type Show = NoPicture;
    type Driver = u8;
    fn rules(_: u16) {}
    fn start((): &(), _: u64) -> Self {
        March::default()
    }
    fn show(_: &Arc<()>) -> NoPicture {
        NoPicture
    }
    fn resolver((): &(), _: u64) -> impl Resolver<Self> {
        no_queries()
    }
    fn driver(_: InputPattern, mut luck: Mwc) -> u8 {
        1 + luck.below(200) as u8
    }
    fn drive(&self, held: &mut u8, (): &(), _: PlayerId, _: Tick) -> (u8, Option<Never>) {
        (*held, None)
    }
    fn flip(&mut self) {
        self.steps ^= 1;
    }
}

/// Row 59: players with steady inputs are predicted correctly from their last known input, without a single
/// misprediction, however long the link is. An input's age does not indicate a change.
#[test]
fn a_remote_player_with_steady_inputs_costs_no_misprediction() {
    let ways = [
        ("rtt=100", Announce::Ahead),
        ("rtt=400", Announce::Ahead),
        ("rtt=40", Announce::Never),
        ("rtt=400", Announce::Never),
    ];
    for (link, announce) in ways {
        let mut config = RigConfig::new(3, link.parse().unwrap());
        config.policies.announce = announce;
        let mut rig = Rig::<March>::new(config);
        rig.run(SECOND * 5);
        let before: Vec<u64> = (0..4).map(|i| rig.stats(i).timeline.rebuilds).collect();
        rig.run(SECOND * 20);
        for (i, before) in before.into_iter().enumerate() {
            assert_eq!(rig.stats(i).timeline.rebuilds, before, "client {i}, {link}");
        }
        assert!(rig.match_.world().sim().steps > 10_000);
    }
}
