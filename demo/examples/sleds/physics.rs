//! The physics: the server's resolver. A client guesses with its own copy.

use glam::Vec2;
use twinstep_core::prelude::*;
use twinstep_rapier2d::flight::{Body, Flights, Material, Motion, Sample};
use twinstep_rapier2d::{STEPS_PER_UNIT, Shape};
use twinstep_server::{Decision, HookContext, Resolver};

use super::rules::{LEFT, Paths, Place, RIGHT, Sled, Sleds, UP, WINDOW, WINDOWS};

// The corners of the ground, in units from left to right; y points up.
pub(super) const GROUND: [Vec2; 9] = [
    Vec2::new(-30.0, 40.0),
    Vec2::new(-30.0, 3.0),
    Vec2::new(-18.0, 0.0),
    Vec2::new(-8.0, 3.0),
    Vec2::new(-2.0, 3.0),
    Vec2::new(6.0, 0.0),
    Vec2::new(16.0, 0.0),
    Vec2::new(30.0, 5.0),
    Vec2::new(30.0, 40.0),
];
// The acceleration by a jet, in units per second squared.
const JET: f32 = 14.0;

pub(super) struct Physics(Flights);

impl Physics {
    pub(super) fn new() -> Physics {
        let material = Material {
            bounce: 0.1,
            friction: 0.5,
            drag: 0.3,
        };
        let mut flights = Flights::new(material).gravity(Vec2::new(0.0, -9.81));
        for ends in GROUND.windows(2) {
            let (a, b, radius) = (ends[0], ends[1], 0.5);
            flights
                .add_wall::<PlayerId>(Shape::Capsule { a, b, radius }, Vec2::ZERO, 0.0)
                .expect("sound ground");
        }
        Physics(flights)
    }

    // Decides how all sleds move for the next half second, if the burning jets stay on.
    pub(super) fn paths(&self, game: &Sleds) -> Option<Paths> {
        let bodies: Vec<_> = game
            .sleds
            .iter()
            .map(|(id, sled)| body(*id, sled))
            .collect();
        let tracks = self.0.run(&bodies, WINDOWS, WINDOW).ok()?;
        let paths = tracks
            .into_iter()
            .zip(game.sleds.values())
            .map(|(track, sled)| {
                let path = [sled.at].into_iter().chain(track.samples.iter().map(place));
                (track.id, path.collect())
            });
        Some((game.now, paths.collect()))
    }
}

pub(super) fn to_units(at: &Place) -> Vec2 {
    Vec2::new(at[0] as f32, at[1] as f32) / STEPS_PER_UNIT
}

fn place(sample: &Sample) -> Place {
    let ([x, y], [vx, vy]) = (sample.at_64ths, sample.velocity_64ths);
    let [vx, vy, spin] = [vx, vy, sample.spin_64ths].map(i32::from);
    [x, y, sample.turn_65536ths.into(), vx, vy, spin]
}

fn body(id: PlayerId, sled: &Sled) -> Body<PlayerId> {
    let [x, y, spin] = [3, 4, 5].map(|i| sled.at[i] as f32 / STEPS_PER_UNIT);
    let burns = |jet| f32::from(u8::from(sled.jets & jet != 0));
    Body {
        id,
        shape: Shape::Box {
            half: Vec2::new(0.6, 0.3),
        },
        at: to_units(&sled.at),
        angle: sled.at[2] as f32 / 65_536.0 * std::f32::consts::TAU,
        motion: Motion::Tumbles {
            velocity: Vec2::new(x, y),
            spin,
        },
        push: Vec2::new(burns(RIGHT) - burns(LEFT), burns(UP)) * JET,
        twist: 0.0,
    }
}

impl Resolver<Sleds> for Physics {
    fn resolve(&mut self, look: &HookContext<'_, Sleds>, _: Key, _: &()) -> Decision<Paths> {
        match self.paths(look.sim()) {
            Some(paths) => Decision::Now(paths),
            None => Decision::Unanswered, // a sled is beyond the edge of the physics: it stays
        }
    }
}
