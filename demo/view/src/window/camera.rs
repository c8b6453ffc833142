//! [`Camera`]: the part of the arena that is visible, and its position on the screen.
//!
//! Invariant: all local players are visible. The camera follows a single player without delay, so a key press shows
//! immediately.

use glam::{Vec2, vec2};
use twinstep_core::Mwc;

/// The height of the screen in units when one player is followed.
const TALL: f32 = 23.0;
const ROOM: Vec2 = vec2(9.0, 6.0);
const MARGIN: f32 = 2.5;
/// The camera looks ahead by this fraction of the distance to the player's aim.
const AHEAD: f32 = 0.16;
/// The rate at which zoom and look-ahead approach their targets, per second.
const HASTE: f32 = 5.0;
/// The amplitude of a full shake, in units.
const SHAKE: f32 = 0.55;
const CALM: f32 = 0.75;

#[derive(Clone, Debug)]
pub(crate) struct Camera {
    at: Vec2,
    /// Pixels per unit.
    zoom: f32,
    screen: Vec2,
    ahead: Vec2,
    trauma: f32,
    offset: Vec2,
    settled: bool,
}

pub(crate) struct Focus<'a> {
    /// The positions to follow; if empty, the whole arena is shown.
    pub(crate) whom: &'a [Vec2],
    /// The vector from a single player to its aim, in units.
    pub(crate) aim: Vec2,
    pub(crate) half: Vec2,
    pub(crate) screen: Vec2,
}

impl Camera {
    pub(crate) fn new() -> Camera {
        Camera {
            at: Vec2::ZERO,
            zoom: 30.0,
            screen: vec2(1_280.0, 720.0),
            ahead: Vec2::ZERO,
            trauma: 0.0,
            offset: Vec2::ZERO,
            settled: false,
        }
    }

    /// Advances by `dt` seconds. `shake` scales the shaking, from 0 to 1.
    pub(crate) fn follow(&mut self, focus: &Focus<'_>, dt: f32, shake: f32, luck: &mut Mwc) {
        self.screen = focus.screen;
        let whole = focus.half * 2.0 + MARGIN * 2.0;
        let least = (focus.screen / whole).min_element();
        let (wished, at) = match focus.whom {
            [] => (least, Vec2::ZERO),
            whom => {
                let (from, to) = whom.iter().fold((whom[0], whom[0]), |(from, to), at| {
                    (from.min(*at), to.max(*at))
                });
                let spread = to - from + ROOM * 2.0;
                let fits = (focus.screen / spread).min_element();
                (
                    fits.min(focus.screen.y / TALL).max(least),
                    (from + to) * 0.5,
                )
            }
        };
        // The first frame jumps to its target.
        let part = if self.settled {
            1.0 - libm::expf(-dt * HASTE)
        } else {
            1.0
        };
        self.settled = true;
        self.zoom += (wished - self.zoom) * part;
        let ahead = if focus.whom.len() == 1 {
            focus.aim * AHEAD
        } else {
            Vec2::ZERO
        };
        self.ahead += (ahead - self.ahead) * part;
        self.at = kept_inside(
            at + self.ahead,
            focus.half + MARGIN,
            self.screen / self.zoom * 0.5,
        );
        self.trauma = (self.trauma - dt / CALM).max(0.0);
        // Squared, so that a small shock hardly shows.
        let strength = self.trauma * self.trauma * SHAKE * shake;
        self.offset = vec2(luck.unit() - 0.5, luck.unit() - 0.5) * 2.0 * strength;
    }

    /// Adds a shake with a strength of 0 to 1.
    pub(crate) fn shake(&mut self, strength: f32) {
        self.trauma = (self.trauma + strength).min(1.0);
    }

    pub(crate) fn zoom(&self) -> f32 {
        self.zoom
    }

    pub(crate) fn at(&self) -> Vec2 {
        self.at
    }

    /// The position on the screen, whose y axis points down.
    pub(crate) fn to_screen(&self, at: Vec2) -> Vec2 {
        let offset = (at - self.at - self.offset) * self.zoom;
        self.screen * 0.5 + vec2(offset.x, -offset.y)
    }

    #[cfg(test)]
    pub(crate) fn to_world(&self, at: Vec2) -> Vec2 {
        let offset = (at - self.screen * 0.5) / self.zoom;
        self.at + self.offset + vec2(offset.x, -offset.y)
    }

    pub(crate) fn sees(&self, at: Vec2, radius: f32) -> bool {
        let reach = self.screen / self.zoom * 0.5 + radius;
        (at - self.at - self.offset).abs().cmple(reach).all()
    }
}

/// The centre at which a picture with this half size shows as little as possible beyond `limit`.
fn kept_inside(at: Vec2, limit: Vec2, half: Vec2) -> Vec2 {
    let room = (limit - half).max(Vec2::ZERO);
    at.clamp(-room, room)
}

trait UnitDraw {
    fn unit(&mut self) -> f32;
}

impl UnitDraw for Mwc {
    fn unit(&mut self) -> f32 {
        self.below(65_536) as f32 / 65_535.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Vec2 = vec2(40.0, 24.0);

    fn looked(whom: &[Vec2], screen: Vec2) -> Camera {
        let mut camera = Camera::new();
        let focus = Focus {
            whom,
            aim: Vec2::ZERO,
            half: HALF,
            screen,
        };
        camera.follow(&focus, 0.016, 1.0, &mut Mwc::seed(1));
        camera
    }

    #[test]
    fn positions_survive_a_round_trip_through_the_screen() {
        let camera = looked(&[vec2(3.0, 4.0)], vec2(1_280.0, 720.0));
        for at in [vec2(3.0, 4.0), vec2(-7.0, 9.5)] {
            assert!(camera.to_world(camera.to_screen(at)).distance(at) < 1e-4);
        }
        let above = camera.to_screen(vec2(3.0, 5.0)) - camera.to_screen(vec2(3.0, 4.0));
        assert!(above.y < 0.0 && above.x == 0.0, "up is up");
    }

    #[test]
    fn all_local_players_are_on_the_screen_wherever_they_are() {
        for screen in [
            vec2(640.0, 360.0),
            vec2(1_280.0, 720.0),
            vec2(2_560.0, 1_440.0),
            vec2(900.0, 1_200.0),
        ] {
            for whom in [
                [vec2(-39.0, -23.0), vec2(39.0, 23.0)],
                [vec2(0.0, 0.0), vec2(1.0, 0.0)],
                [vec2(39.0, 0.0), vec2(39.0, 1.0)],
            ] {
                let camera = looked(&whom, screen);
                for at in whom {
                    let seen = camera.to_screen(at);
                    assert!(
                        seen.cmpge(Vec2::splat(8.0)).all() && seen.cmple(screen - 8.0).all(),
                        "{at} at {seen} of {screen}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_whole_arena_is_visible_without_a_player_to_follow() {
        let camera = looked(&[], vec2(1_280.0, 720.0));
        assert!(camera.sees(HALF, 0.0) && camera.sees(-HALF, 0.0));
        assert_eq!(camera.to_screen(Vec2::ZERO), vec2(640.0, 360.0));
    }

    #[test]
    fn a_shake_ends_and_can_be_turned_off() {
        let screen = vec2(1_280.0, 720.0);
        let focus = Focus {
            whom: &[Vec2::ZERO],
            aim: Vec2::ZERO,
            half: HALF,
            screen,
        };
        let mut luck = Mwc::seed(7);
        let mut moved = |shake: f32, frames: u32| {
            let mut camera = Camera::new();
            camera.shake(1.0);
            (0..frames).for_each(|_| camera.follow(&focus, 0.016, shake, &mut luck));
            camera.to_screen(Vec2::ZERO).distance(screen * 0.5)
        };
        assert!(moved(1.0, 2) > 0.0);
        assert_eq!(moved(0.0, 2), 0.0);
        assert_eq!(moved(1.0, 60), 0.0);
    }
}
