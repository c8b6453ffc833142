//! Particles, rising score numbers, and pointers to players outside of the picture.

use glam::{Vec2, vec2};
use powderkeg_game::{EnemyKind, ShowKey};

use super::hud;
use super::picture::WindowPicture;
use crate::scene::Sprite;
use crate::scene::effects::FLOAT;
use crate::scene::palette::{INK, Tint};
use crate::window::atlas::Type;
use crate::window::batch::Batch;
use crate::window::rect::Rect;
use crate::window::text;

// Larger light is a flash.
const FLASH_HALF: f32 = 1.0;

pub(super) fn paint(batch: &mut Batch, picture: &WindowPicture<'_>) {
    let (camera, now) = (picture.camera, picture.scene.now);
    for seen in picture.effects.particles.seen(now) {
        if camera.sees(seen.at, seen.half.x) {
            // Only flashes are dimmed, so that sparks stay visible.
            let is_flash = seen.tint.is_light && seen.half.x > FLASH_HALF;
            let dimmed = if is_flash {
                picture.settings.flashes()
            } else {
                1.0
            };
            batch.sprite(
                seen.sprite,
                camera.to_screen(seen.at),
                seen.half * camera.zoom(),
                seen.angle,
                seen.tint.alpha(seen.tint.alpha * dimmed),
            );
        }
    }
    for float in &picture.effects.floats {
        let part = now.saturating_sub(float.born).as_secs_f32() / FLOAT.as_secs_f32();
        if part < 1.0 && camera.sees(float.at, 1.0) {
            let at = camera.to_screen(float.at + Vec2::Y * part * 1.2);
            let width = text::width(Type::Body, batch.atlas.scale, &float.words);
            batch.text(
                at - vec2(width * 0.5, 0.0),
                Type::Body,
                float.tint.alpha(1.0 - part * part),
                &float.words,
            );
        }
    }
    if !picture.screens.title {
        pointers(batch, picture);
    }
    if let Some(at) = picture.crosshair {
        crosshair(batch, at);
    }
}

pub(super) fn crosshair(batch: &mut Batch, at: Vec2) {
    let half = 15.0 * batch.atlas.scale;
    batch.disc(Sprite::Crosshair, at, half, Tint::new(0).alpha(0.5));
    batch.disc(Sprite::Crosshair, at, half * 0.96, INK);
}

fn pointers(batch: &mut Batch, picture: &WindowPicture<'_>) {
    let (camera, scale) = (picture.camera, batch.atlas.scale);
    let inside = picture.screen.shrunk(26.0 * scale);
    let covered: Vec<Rect> = hud::covered(picture, scale)
        .into_iter()
        .map(|one| one.shrunk(-16.0 * scale))
        .collect();
    for thing in &picture.scene.things {
        let tint = match thing.key {
            ShowKey::Player { id, .. } => picture.settings.colors.player(id.index()),
            ShowKey::Enemy {
                kind: EnemyKind::Boss,
                ..
            } => picture.settings.colors.hostile(),
            _ => continue,
        };
        if camera.sees(thing.at, 0.0) {
            continue;
        }
        let at = camera.to_screen(thing.at);
        let edge = at.clamp(inside.at, inside.at + inside.size);
        let edge = beside(edge, &covered, inside);
        let way = at - edge;
        let angle = libm::atan2f(-way.y, way.x);
        batch.sprite(
            Sprite::Pointer,
            edge,
            Vec2::splat(12.0 * scale),
            angle,
            Tint::new(0).alpha(0.6),
        );
        batch.sprite(Sprite::Pointer, edge, Vec2::splat(9.5 * scale), angle, tint);
    }
}

/// Returns the nearest point in `inside` that is next to the box that covers `at`; without a box or point, `at` itself.
fn beside(at: Vec2, covered: &[Rect], inside: Rect) -> Vec2 {
    let Some(over) = covered.iter().find(|one| one.contains(at)) else {
        return at;
    };
    let sides = [
        vec2(over.right(), at.y),
        vec2(over.at.x, at.y),
        vec2(at.x, over.bottom()),
        vec2(at.x, over.at.y),
    ];
    let free = sides.into_iter().filter(|side| inside.contains(*side));
    let distance = |side: &Vec2| side.distance_squared(at);
    free.min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_avoids_text_and_stays_on_the_screen() {
        let inside = Rect::new(10.0, 10.0, 600.0, 300.0);
        let covered = [Rect::new(0.0, 0.0, 150.0, 200.0)];
        assert_eq!(
            beside(vec2(10.0, 180.0), &covered, inside),
            vec2(10.0, 200.0)
        );
        assert_eq!(
            beside(vec2(140.0, 10.0), &covered, inside),
            vec2(150.0, 10.0)
        );
        assert_eq!(
            beside(vec2(300.0, 10.0), &covered, inside),
            vec2(300.0, 10.0)
        );
    }
}
