//! The rules, shared with the server: pucks that slide over a table, and bump against its edge.

use serde::{Deserialize, Serialize};
use twinstep_client::{Poses, Scene, Show};
use twinstep_core::prelude::*;

pub const LEFT: u8 = 1;
pub const RIGHT: u8 = 2;
pub const DOWN: u8 = 4;
pub const UP: u8 = 8;

/// Half the length of the table, in m.
pub const EDGE: f32 = 2.0;
const ACCELERATION: f32 = 0.3; // m/s per tick
const FRICTION: f32 = 0.93; // factor of the speed, per tick
const BUMP: f32 = 1.0; // m/s; slower bumps are silent

#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Pucks {
    pub pucks: Table<PlayerId, Puck>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Puck {
    pub at: [f32; 2],
    pub speed: [f32; 2],
    pub bumps: u32,
}

/// Moves the player's puck to a position on the table, in mm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jump(pub [i16; 2]);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bump(pub PlayerId);

impl Simulation for Pucks {
    const NAME: &'static str = "pucks";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Jump;
    type Query = Never;
    type Outcome = Never;
    type Cue = Bump;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => drop(self.pucks.insert(player, Puck::default())),
                RosterChange::Left => drop(self.pucks.remove(&player)),
                _ => {}
            }
        }
        for (player, Jump(to)) in frame.commands() {
            if let Some(puck) = self.pucks.get_mut(&player) {
                puck.at = to.map(|mm| (f32::from(mm) / 1000.0).clamp(-EDGE, EDGE));
            }
        }
        let tick = frame.tick_length().as_secs_f32();
        for (player, held) in frame.inputs() {
            let Some(puck) = self.pucks.get_mut(&player) else {
                continue;
            };
            for (axis, [less, more]) in [[LEFT, RIGHT], [DOWN, UP]].into_iter().enumerate() {
                let (at, speed) = (&mut puck.at[axis], &mut puck.speed[axis]);
                *speed *= FRICTION;
                *speed -= if held & less != 0 { ACCELERATION } else { 0.0 };
                *speed += if held & more != 0 { ACCELERATION } else { 0.0 };
                *at += *speed * tick;
                if at.abs() > EDGE {
                    *at = at.clamp(-EDGE, EDGE);
                    if speed.abs() > BUMP {
                        fx.cue(Key::player(player, puck.bumps), Bump(player));
                        puck.bumps += 1;
                    }
                    *speed *= -0.5;
                }
            }
        }
    }
}

/// Shows each player's puck at its position.
pub struct Picture;

impl Show<Pucks> for Picture {
    type Key = PlayerId;
    type Pose = [f32; 2];

    fn poses(&self, scene: &Scene<'_, Pucks>, out: &mut Poses<PlayerId, [f32; 2]>) {
        for (&player, puck) in scene.pucks.iter() {
            out.put_player(player, player, puck.at);
        }
    }
}
