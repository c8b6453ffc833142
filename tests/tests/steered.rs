//! Bodies that are steered by players and moved by the server's physics, in `demo/examples/sleds`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use glam::Vec2;
use twinstep_client::{Poses, Scene, Show};
use twinstep_core::{Mwc, PlayerId, Tick, codec};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};
use twinstep_server::Resolver;
use twinstep_testing::{Script, check};

use physics::{Physics, to_units};
use rules::{LEFT, Paths, RIGHT, Sleds, UP, WINDOW};

#[path = "../../demo/examples/sleds/physics.rs"]
mod physics;
#[path = "../../demo/examples/sleds/rules.rs"]
mod rules;

const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    // Whether clients guess the server's answers, with their own physics.
    static GUESSES: Cell<bool> = const { Cell::new(true) };
}

struct Sight;

impl Show<Sleds> for Sight {
    type Key = PlayerId;
    type Pose = Vec2;

    fn poses(&self, scene: &Scene<'_, Sleds>, out: &mut Poses<PlayerId, Vec2>) {
        for (player, sled) in scene.sleds.iter() {
            let at = to_units(&sled.at);
            if out.is_local(*player) {
                out.put_local(*player, at);
            } else {
                out.put(*player, at);
            }
        }
    }
}

// A driver that holds jets for a third of a second to two seconds, and flies no higher than 15 units.
struct Pilot {
    luck: Mwc,
    jets: u8,
    until: Tick,
}

impl Play for Sleds {
    type Show = Sight;
    type Driver = Pilot;

    fn rules(_: u16) {}

    fn start((): &(), _: u64) -> Self {
        Sleds::default()
    }

    fn show(_: &Arc<()>) -> Sight {
        Sight
    }

    fn resolver((): &(), _: u64) -> impl Resolver<Self> {
        Physics::new()
    }

    fn speculate(sim: &Self, (): &(), (): &()) -> Option<Paths> {
        GUESSES.get().then(|| Physics::new().paths(sim))?
    }

    fn driver(_: InputPattern, luck: Mwc) -> Pilot {
        Pilot {
            luck,
            jets: 0,
            until: Tick(0),
        }
    }

    fn drive(
        &self,
        pilot: &mut Pilot,
        (): &(),
        me: PlayerId,
        now: Tick,
    ) -> (u8, Option<twinstep_core::Never>) {
        if now >= pilot.until {
            pilot.jets = [0, LEFT, RIGHT, UP, UP | LEFT, UP | RIGHT][pilot.luck.below(6) as usize];
            pilot.until = now + 20 + pilot.luck.below(100);
        }
        let is_high = self
            .sleds
            .get(&me)
            .is_some_and(|sled| to_units(&sled.at).y > 15.0);
        (
            if is_high {
                pilot.jets & !UP
            } else {
                pilot.jets
            },
            None,
        )
    }

    fn flip(&mut self) {
        self.sleds.values_mut().for_each(|sled| sled.at[0] ^= 1);
    }
}

fn hill(seed: u64, link: LinkProfile, guesses: bool) -> Rig<Sleds> {
    GUESSES.set(guesses);
    let mut config = RigConfig::new(seed, link);
    config.clients = 2;
    let mut rig = Rig::new(config);
    rig.run(SECOND * 4);
    assert!(rig.all_play());
    rig
}

// The positions of all sleds as the first client draws them.
fn drawn(rig: &Rig<Sleds>) -> BTreeMap<PlayerId, Vec2> {
    rig.clients[0].session.shown().collect()
}

// Row 92: two players drive for half a minute on each link, with and without guesses. There is no desync, and no
// picture in which a sled jumps. The journal produces the same world, and in it no sled moves further in a tick than
// its speed allows, although a new path starts every few ticks. Guesses by the same engine are correct.
#[test]
fn steered_sleds_agree_and_never_jump() {
    for (link, guesses) in [
        (LinkProfile::WAN, true),
        (LinkProfile::WAN, false),
        (LinkProfile::BAD, true),
        (LinkProfile::BAD, false),
    ] {
        let mut rig = hill(92, link, guesses);
        let (mut before, mut most) = (drawn(&rig), 0.0_f32);
        for _ in 0..3_600 {
            rig.run(SECOND / 120);
            let now = drawn(&rig);
            for (player, at) in &now {
                most = most.max(before.get(player).map_or(0.0, |from| from.distance(*at)));
            }
            before = now;
        }
        let timeline = rig.stats(0).timeline;
        rig.converge();
        let played = Played::of(&rig.journal);
        println!(
            "{link}, guesses {guesses}: {most} units a frame at most; {timeline:?}; {played:?}"
        );
        assert!(played.outcomes > 300 && played.fastest > 0.2);
        assert!(played.bytes <= 220 * played.outcomes, "two sleds");
        assert!(played.leap < 1.0 / 16.0, "farther than its speed");
        assert!(most < played.fastest + 1.0 / 16.0, "a jump in the picture");
        assert_eq!(timeline.by_outcome == 0, guesses);
    }
}

// A journal's measurements.
#[derive(Debug, Default)]
struct Played {
    outcomes: usize,
    bytes: usize,
    // The longest distance that a sled moves in a tick.
    fastest: f32,
    // The largest excess over the distance that the highest speed in the window around the tick allows.
    leap: f32,
}

impl Played {
    fn of(journal: &[u8]) -> Played {
        let open = || Replay::<Sleds>::open(journal, &()).unwrap();
        let verified = open().verify();
        assert_eq!(verified.fault, None);
        assert!(verified.digests > 10);
        let (mut replay, mut played) = (open(), Played::default());
        let mut paths: BTreeMap<PlayerId, Vec<(Vec2, f32)>> = BTreeMap::new();
        while replay.step().unwrap() {
            for answer in &replay.frame().outcomes {
                let outcome = answer.outcome.as_ref().expect("an answer");
                played.outcomes += 1;
                played.bytes += codec::size(outcome).unwrap();
            }
            for (player, sled) in replay.world().sim().sleds.iter() {
                let [_, _, _, x, y, _] = sled.at.map(|number| number as f32 / 64.0);
                let path = paths.entry(*player).or_default();
                path.push((to_units(&sled.at), Vec2::new(x, y).length()));
            }
        }
        let around = WINDOW as usize;
        for ticks in paths.values().flat_map(|path| path.windows(2 * around)) {
            let way = ticks[around - 1].0.distance(ticks[around].0);
            let speed = ticks.iter().map(|(_, speed)| *speed).fold(0.0, f32::max);
            played.fastest = played.fastest.max(way);
            played.leap = played.leap.max(way - speed / 60.0);
        }
        played
    }
}

#[test]
fn check_finds_no_fault_in_the_sled_game() {
    let physics = Physics::new();
    let script = Script::inputs(0..8)
        .players(2)
        .outcomes(move |asked, _| physics.paths(asked.sim));
    let report = check(Sleds::default(), (), script).unwrap();
    println!("{report}");
    assert!(report.tried.asked > 50, "{report}");
}

// The time from the press of a jet to the first move of the local sled in the picture, over 20 presses from rest.
fn delays(guesses: bool) -> Vec<Duration> {
    let mut rig = hill(7, "rtt=100".parse().unwrap(), guesses);
    let jets = |rig: &mut Rig<Sleds>, jets| rig.hold(0, Some(jets));
    rig.hold(1, Some(0));
    let x = |rig: &Rig<Sleds>| drawn(rig)[&PlayerId(0)].x;
    let mut delays: Vec<Duration> = (0..20_u8)
        .map(|n| {
            jets(&mut rig, 0);
            rig.run(SECOND * 3 + Duration::from_millis(u64::from(n) * 37));
            let (rest, pressed) = (x(&rig), rig.now);
            jets(&mut rig, [LEFT, RIGHT][usize::from(n % 2)]);
            while (x(&rig) - rest).abs() < 1.0 / 64.0 {
                rig.run(Duration::from_millis(4));
                assert!(rig.now - pressed < SECOND, "press {n} moves no sled");
            }
            rig.now - pressed
        })
        .collect();
    delays.sort_unstable();
    delays
}

// With a guess, a player sees its own steering at the next query, at most three ticks later. Without a guess, the
// player sees it when the answer arrives.
#[test]
fn a_guess_removes_the_round_trip_from_steering() {
    let [guessed, waited] = [true, false].map(delays);
    println!("moves after {guessed:?} with a guess, {waited:?} without");
    let ms = Duration::from_millis;
    assert!(
        guessed[10] < ms(130) && guessed[19] < ms(150),
        "{guessed:?}"
    );
    assert!(waited[10] > guessed[10] + ms(80), "{waited:?}");
    assert!(waited[19] < ms(350), "{waited:?}");
}
