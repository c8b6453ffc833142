//! [`TourFrame`]: the four pictures of a moment; and [`Truth`], the server's worlds with which they are compared.

use std::collections::VecDeque;

use glam::Vec2;
use powderkeg_game::{Game, ShowKey, poses};
use twinstep_core::PlayerId;

pub(super) const FRAMES_PER_SECOND: u32 = 60;
pub(super) const OWN: PlayerId = PlayerId(0);
pub(super) const FRIEND: PlayerId = PlayerId(1);

// The place of each pane.
pub(super) const LOCKSTEP: usize = 0;
pub(super) const RAW: usize = 1;
pub(super) const SMOOTHED: usize = 2;
pub(super) const AUTO: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub(super) key: ShowKey,
    pub(super) at: Vec2,
    pub(super) is_lit: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PaneShot {
    pub(super) bodies: Vec<Body>,
    /// The drawn time of the friend, in ticks.
    pub(super) friend_time: f64,
    /// The drawn time of things without an owner, in ticks.
    pub(super) thing_time: f64,
    pub(super) blasts: Vec<(Vec2, u32)>,
}

impl PaneShot {
    pub(super) fn player(&self, id: PlayerId) -> Option<Vec2> {
        let is =
            |body: &&Body| matches!(body.key, ShowKey::Player { id: other, .. } if other == id);
        self.bodies.iter().find(is).map(|body| body.at)
    }
}

#[derive(Clone, Debug)]
pub(super) struct TourFrame {
    pub(super) n: u32,
    pub(super) chapter: usize,
    pub(super) age: u32,
    pub(super) panes: [PaneShot; 4],
    pub(super) is_killed: bool,
}

/// A pressed key, the directions before and after it, and the frames in which it was pressed and became visible in each
/// pane.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyMark {
    pub(super) turn: [Vec2; 2],
    pub(super) pressed: u32,
    pub(super) seen: [Option<u32>; 4],
}

#[derive(Default)]
pub(super) struct Truth {
    first: u32,
    ticks: VecDeque<Vec<(ShowKey, Vec2)>>,
}

impl Truth {
    const TICKS_MAX: usize = 600;

    pub(super) fn record(&mut self, tick: u32, game: &Game) {
        let end = self.first + self.ticks.len() as u32;
        if tick < end {
            return;
        }
        if tick > end {
            self.ticks.clear();
            self.first = tick;
        }
        let mut bodies = Vec::new();
        poses(game, |key, pose, _| bodies.push((key, pose.at)));
        self.ticks.push_back(bodies);
        if self.ticks.len() > Truth::TICKS_MAX {
            self.ticks.pop_front();
            self.first += 1;
        }
    }

    /// The position of a body at a time in ticks, if the server has played it.
    pub(super) fn at(&self, time: f64, key: ShowKey) -> Option<Vec2> {
        let place = |tick: u32| {
            let bodies = self.ticks.get(tick.checked_sub(self.first)? as usize)?;
            let found = bodies.iter().find(|(other, _)| *other == key);
            found.map(|(_, at)| *at)
        };
        let from = place(time as u32)?;
        match time.fract() {
            0.0 => Some(from),
            part => Some(from.lerp(place(time as u32 + 1)?, part as f32)),
        }
    }
}
