//! A game with physical bodies in its state: players run, and kick a ball between crates and a wall of tiles.

use std::sync::Arc;

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_client::{Poses, Scene, Show};
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, RosterChange, Simulation, Tick};
use twinstep_rapier2d::Shape;
use twinstep_rapier2d::bodies::Bodies;
use twinstep_rapier2d::flight::{Body, Flights, Material, Motion};
use twinstep_server::{Decision, HookContext, Resolver};

use crate::rig::{InputPattern, Play};

pub const BALL: u8 = 100;
const CRATES: u8 = 6;
// The input's bits: a direction, and the kick.
pub const LEFT: u8 = 1;
pub const RIGHT: u8 = 2;
pub const UP: u8 = 4;
pub const DOWN: u8 = 8;
pub const KICK: u8 = 16;
// The reach of a kick: the maximum distance between the centres of player and ball.
const LEG: f32 = 1.6;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pitch {
    // The ids of players are their indices; the ball and then the crates follow.
    pub bodies: Bodies<u8>,
    pub kicks: u32,
    // The number of audible hits of the ball.
    pub hits: u32,
    held: [u8; 16],
}

// A closed pitch with a wall of tiles in its middle.
#[must_use]
pub fn room() -> Flights {
    let mut room = Flights::new(Material {
        bounce: 0.7,
        friction: 0.4,
        drag: 1.5,
    });
    room.add_tiles::<u8>(Vec2::new(-15.0, -10.0), Vec2::ONE, [30, 20], |x, y| {
        x == 0 || y == 0 || x == 29 || y == 19 || (x == 14 && y % 6 < 3)
    })
    .expect("sound tiles");
    room
}

impl Pitch {
    #[must_use]
    pub fn new() -> Pitch {
        let mut pitch = Pitch::default();
        pitch.place(BALL, Shape::Ball { radius: 0.4 }, Vec2::new(-5.0, 0.0));
        for n in 0..CRATES {
            let at = Vec2::new(4.0 + f32::from(n % 3) * 1.1, f32::from(n / 3) * 1.1);
            let half = Vec2::splat(0.5);
            pitch.place(BALL + 1 + n, Shape::Box { half }, at);
        }
        pitch
    }

    fn place(&mut self, id: u8, shape: Shape, at: Vec2) {
        let velocity = Vec2::ZERO;
        let motion = match id {
            0..BALL => Motion::Slides { velocity },
            _ => Motion::Tumbles {
                velocity,
                spin: 0.0,
            },
        };
        let body = Body {
            id,
            shape,
            at,
            angle: 0.0,
            motion,
            push: Vec2::ZERO,
            twist: 0.0,
        };
        self.bodies.put(body).expect("a place on the pitch");
    }

    fn way(held: u8) -> Vec2 {
        let axis = |minus, plus| {
            f32::from(u8::from(held & plus != 0)) - f32::from(u8::from(held & minus != 0))
        };
        Vec2::new(axis(LEFT, RIGHT), axis(DOWN, UP)).normalize_or_zero()
    }

    // A player's kick, or `None` if the ball is out of reach.
    fn kick(&self, player: PlayerId) -> Option<Vec2> {
        let at = |id| Some(self.bodies.get(id)?.at);
        let way = at(BALL)? - at(player.index() as u8)?;
        (way.length() < LEG).then(|| way.normalize_or_zero() * 14.0)
    }
}

impl Simulation for Pitch {
    crate::game_types!("ball", Flights, u8, Never, Never, Never, u32);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, change) in frame.roster() {
            let id = player.index() as u8;
            match change {
                RosterChange::Joined => {
                    let at = Vec2::new(-12.0, f32::from(id) - 8.0);
                    self.place(id, Shape::Ball { radius: 0.45 }, at);
                }
                RosterChange::Left => drop(self.bodies.remove(id)),
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (player, &held) in frame.inputs() {
            let push = Pitch::way(held) * 30.0;
            let _ = self
                .bodies
                .change(player.index() as u8, |me| me.push = push);
            let is_pressed = held & !self.held[player.index()] & KICK != 0;
            self.held[player.index()] = held;
            if is_pressed && let Some(kick) = self.kick(player) {
                let _ = self.bodies.change(BALL, |ball| ball.kick(kick));
                self.kicks += 1;
                fx.cue(Key::player(player, frame.tick().0), 0);
            }
        }
        self.bodies.step(frame.rules(), frame.tick_length());
        for hit in self.bodies.contacts() {
            let is_ball = hit.first == BALL || hit.second == Some(BALL);
            if is_ball && hit.is_new && hit.impulse > 1.0 {
                self.hits += 1;
            }
        }
    }
}

pub struct Sight;

impl Show<Pitch> for Sight {
    type Key = u8;
    type Pose = Vec2;

    fn poses(&self, scene: &Scene<'_, Pitch>, out: &mut Poses<u8, Vec2>) {
        for body in scene.bodies.iter() {
            out.put(body.id, body.at);
        }
    }
}

impl Play for Pitch {
    type Show = Sight;
    type Driver = Option<Mwc>;

    fn rules(_: u16) -> Flights {
        room()
    }

    fn start(_: &Flights, _: u64) -> Pitch {
        Pitch::new()
    }

    fn show(_: &Arc<Flights>) -> Sight {
        Sight
    }

    fn resolver(_: &Flights, _: u64) -> impl Resolver<Self> {
        |_: &HookContext<'_, Pitch>, _: Key, asked: &Never| -> Decision<Never> { match *asked {} }
    }

    fn driver(input_pattern: InputPattern, luck: Mwc) -> Option<Mwc> {
        (input_pattern != InputPattern::Still).then_some(luck)
    }

    // Usually runs to the ball, and kicks it.
    fn drive(
        &self,
        luck: &mut Option<Mwc>,
        _: &Flights,
        me: PlayerId,
        now: Tick,
    ) -> (u8, Option<Never>) {
        let held = self.held[me.index()];
        let Some(luck) = luck.as_mut().filter(|_| now.0.is_multiple_of(7)) else {
            return (held & !KICK, None);
        };
        let at = |id| Some(self.bodies.get(id)?.at);
        let (Some(me), Some(ball)) = (at(me.index() as u8), at(BALL)) else {
            return (0, None);
        };
        let way = ball - me;
        let mut held = if luck.below(4) == 0 { KICK } else { 0 };
        let side = |part: f32, minus, plus| match part {
            ..-0.3 => minus,
            0.3.. => plus,
            _ => 0,
        };
        held |= side(way.x, LEFT, RIGHT) | side(way.y, DOWN, UP);
        if luck.below(5) == 0 {
            held ^= [LEFT, RIGHT, UP, DOWN][luck.below(4) as usize];
        }
        (held | if way.length() < LEG { KICK } else { 0 }, None)
    }

    fn flip(&mut self) {
        let _ = self.bodies.change(BALL, |ball| ball.at.x += 0.001);
    }
}
