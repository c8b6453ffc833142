//! The rules, shared with the server: boxes that slide over a plate and bump into its edge.

use serde::{Deserialize, Serialize};
use twinstep_client::{Poses, Scene, Show};
use twinstep_core::prelude::*;

pub(crate) const LEFT: u8 = 1;
pub(crate) const RIGHT: u8 = 2;
pub(crate) const DOWN: u8 = 4;
pub(crate) const UP: u8 = 8;

const ACCELERATION: f32 = 0.3; // m/s per tick
const SPEED_MAX: f32 = 3.0; // m/s
const FRICTION: f32 = 0.9; // factor of the speed, per tick
const EDGE: f32 = 2.4; // m
const BUMP: f32 = 1.0; // m/s; slower bumps are silent

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Boxes {
    pub(crate) cubes: Table<PlayerId, CubeState>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct CubeState {
    pub(crate) at: [f32; 2],
    pub(crate) speed: [f32; 2],
    pub(crate) bumps: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bump(pub(crate) PlayerId);

impl Simulation for Boxes {
    const NAME: &'static str = "boxes";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Bump;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => drop(self.cubes.insert(player, CubeState::default())),
                RosterChange::Left => drop(self.cubes.remove(&player)),
                _ => {}
            }
        }
        let tick = frame.tick_length().as_secs_f32();
        for (player, held) in frame.inputs() {
            let Some(cube) = self.cubes.get_mut(&player) else {
                continue;
            };
            for (speed, [less, more]) in cube.speed.iter_mut().zip([[LEFT, RIGHT], [DOWN, UP]]) {
                match (held & less != 0, held & more != 0) {
                    (true, false) => *speed -= ACCELERATION,
                    (false, true) => *speed += ACCELERATION,
                    _ => *speed *= FRICTION,
                }
            }
            let [x, y] = cube.speed;
            let length = (x * x + y * y).sqrt();
            if length > SPEED_MAX {
                cube.speed = cube.speed.map(|speed| speed * SPEED_MAX / length);
            }
            for (at, speed) in cube.at.iter_mut().zip(&mut cube.speed) {
                *at += *speed * tick;
                if at.abs() > EDGE {
                    *at = at.clamp(-EDGE, EDGE);
                    if speed.abs() > BUMP {
                        fx.cue(Key::player(player, cube.bumps), Bump(player));
                        cube.bumps += 1;
                    }
                    *speed *= -0.5;
                }
            }
        }
    }
}

pub(crate) struct Cubes;

impl Show<Boxes> for Cubes {
    type Key = PlayerId;
    type Pose = [f32; 2];

    fn poses(&self, scene: &Scene<'_, Boxes>, out: &mut Poses<PlayerId, [f32; 2]>) {
        for (&player, cube) in scene.cubes.iter() {
            out.put_player(player, player, cube.at);
        }
    }
}
