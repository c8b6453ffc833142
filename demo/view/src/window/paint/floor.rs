//! The floor, the walls, and the area outside of the arena.

use glam::{Vec2, vec2};

use super::picture::WindowPicture;
use crate::scene::Sprite;
use crate::scene::palette::{ACCENT, Tint, WHITE};
use crate::window::batch::Batch;
use crate::window::rect::Rect;

const PLATE: f32 = 4.0;
const LIT_SEAM: Tint = Tint::new(0x1c_25_2f);
const SEAM: Tint = Tint::new(0x23_2d_39);
const DARK_SEAM: Tint = Tint::new(0x0a_0e_13);
const BEYOND: Tint = Tint::new(0x06_08_0c);
/// Below this zoom, in pixels per unit, seams have no lit edge and spawns are not marked: a crowd is hard enough to
/// read.
const DETAIL_ZOOM: f32 = 18.0;

pub(super) fn paint(batch: &mut Batch, picture: &WindowPicture<'_>) {
    let (camera, rules) = (picture.camera, &picture.scene.rules);
    let half = rules.half;
    let zoom = camera.zoom();
    let line = (zoom * 0.05).max(1.0);
    let corner = |x: f32, y: f32| camera.to_screen(vec2(x, y));
    let (from, to) = (corner(-half.x, half.y), corner(half.x, -half.y));
    plates(batch, picture, line);
    // The area outside of the arena.
    let screen = picture.screen;
    let mut rest = screen;
    for beyond in [
        rest.cut_top((from.y - rest.at.y).max(0.0)),
        rest.cut_bottom((rest.bottom() - to.y).max(0.0)),
        rest.cut_left((from.x - rest.at.x).max(0.0)),
        rest.cut_right((rest.right() - to.x).max(0.0)),
    ] {
        if beyond.size.min_element() > 0.0 {
            batch.fill(beyond, BEYOND);
        }
    }
    // A bright kerb.
    for (tint, width) in [
        (Tint::new(0x2a_36_44), zoom * 0.34),
        (ACCENT.mixed(BEYOND, 0.2), (zoom * 0.06).max(1.0)),
    ] {
        let way = [from, vec2(to.x, from.y), to, vec2(from.x, to.y), from];
        for pair in way.windows(2) {
            let along = (pair[1] - pair[0]).normalize_or_zero() * width * 0.5;
            batch.line(pair[0] - along, pair[1] + along, width, tint);
        }
    }
    batch.end_plain();
    for spawn in &rules.spawns {
        if zoom >= DETAIL_ZOOM && camera.sees(*spawn, 1.0) {
            batch.disc(Sprite::Dashes, camera.to_screen(*spawn), zoom * 0.9, SEAM);
        }
    }
    for wall in &rules.walls {
        if camera.sees(wall.center, wall.half.max_element()) {
            let at = camera.to_screen(wall.center + vec2(-wall.half.x, wall.half.y));
            let rect = Rect {
                at,
                size: wall.half * 2.0 * zoom,
            };
            let shade = zoom * 0.30;
            let shadow = Rect {
                at: rect.at + vec2(shade * 0.4, shade),
                size: rect.size,
            };
            batch.nine_below(Sprite::Panel, shadow, zoom * 0.4, Tint::new(0).alpha(0.45));
            batch.nine(Sprite::Wall, rect, zoom * 0.55, WHITE);
        }
    }
}

/// Draws seams with a lit edge between plates, and some lighter plates, so that motion shows.
fn plates(batch: &mut Batch, picture: &WindowPicture<'_>, line: f32) {
    let (camera, half) = (picture.camera, picture.scene.rules.half);
    let count = (half * 2.0 / PLATE).ceil();
    for row in 0..count.y as i32 {
        for column in 0..count.x as i32 {
            // A pattern without a visible period.
            let odd = (column * 7 + row * 13 + column * row * 3).rem_euclid(11);
            let middle = vec2(column as f32 + 0.5, row as f32 + 0.5) * PLATE - half;
            if odd < 3 && camera.sees(middle, PLATE) {
                let rect = Rect {
                    at: camera.to_screen(middle + vec2(-PLATE, PLATE) * 0.5),
                    size: Vec2::splat(PLATE * camera.zoom()),
                };
                let tint = [
                    Tint::new(0x16_1e_28),
                    Tint::new(0x0f_15_1c),
                    Tint::new(0x14_1b_24),
                ][odd as usize];
                batch.fill(rect, tint);
            }
        }
    }
    let (left, right) = (-half.x, half.x);
    let (low, high) = (-half.y, half.y);
    let shift = vec2(line, line);
    let is_lit = camera.zoom() >= DETAIL_ZOOM;
    for n in 1..count.x as i32 {
        let x = left + n as f32 * PLATE;
        let (from, to) = (
            camera.to_screen(vec2(x, high)),
            camera.to_screen(vec2(x, low)),
        );
        batch.line(from, to, line, DARK_SEAM);
        if is_lit {
            batch.line(from + shift, to + shift, line, LIT_SEAM);
        }
    }
    for n in 1..count.y as i32 {
        let y = low + n as f32 * PLATE;
        let (from, to) = (
            camera.to_screen(vec2(left, y)),
            camera.to_screen(vec2(right, y)),
        );
        batch.line(from, to, line, DARK_SEAM);
        if is_lit {
            batch.line(from + shift, to + shift, line, LIT_SEAM);
        }
    }
}
