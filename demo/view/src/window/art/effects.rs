//! Shots, light, smoke and sparks.

use glam::{Vec2, vec2};

use super::canvas::shape::{disc, folded, polygon, ring, slab, stroke};
use super::canvas::{Canvas, gray, veil};
use crate::scene::Sprite;

pub(super) fn draw(sprite: Sprite, canvas: &mut Canvas) {
    match sprite {
        Sprite::Glow => canvas.each(|at| {
            let near = (1.0 - at.length()).max(0.0);
            veil(1.0, near * near)
        }),
        Sprite::Shadow => canvas.each(|at| {
            let near = (1.0 - at.length()).max(0.0);
            veil(0.0, (near * 2.0).min(1.0) * 0.55)
        }),
        Sprite::Dot => canvas.white(|at| disc(at, Vec2::ZERO, 0.96)),
        Sprite::Ring => canvas.white(|at| ring(at, 0.93, 0.05)),
        Sprite::Reach => canvas.white(|at| ring(at, 0.97, 0.018)),
        Sprite::Wave => canvas.each(|at| {
            let distance = at.length();
            let front = 1.0 - ((distance - 0.86) / 0.12).abs().min(1.0);
            let inside = if distance < 0.86 {
                distance * distance * 0.45
            } else {
                0.0
            };
            veil(1.0, front.max(inside))
        }),
        Sprite::Dashes => canvas.white(|at| {
            let dash = folded(at, 12);
            slab(dash, vec2(0.85, 0.0), vec2(0.035, 0.13), 0.03)
        }),
        Sprite::Streak => canvas.each(|at| {
            // 5.3 units wide: pale at its tail, bright at its head.
            let along = (at.x / 5.0 * 0.5 + 0.5).clamp(0.0, 1.0);
            let across = (1.0 - (at.y / (0.25 + 0.65 * along)).abs()).max(0.0);
            let tip = ((5.2 - at.x) * 1.2).clamp(0.0, 1.0);
            veil(1.0, along * along * across * tip)
        }),
        Sprite::Smoke => canvas.each(|at| {
            let lumps = 0.10 * libm::sinf(at.x * 7.0 + 1.0) * libm::sinf(at.y * 6.0 + 2.0);
            let near = (0.92 - at.length() + lumps).clamp(0.0, 1.0);
            veil(1.0, (near * 1.6).min(1.0) * 0.7)
        }),
        Sprite::Shard => {
            canvas.white(|at| polygon(at, &[vec2(0.85, 0.1), vec2(-0.6, 0.6), vec2(-0.5, -0.7)]))
        }
        Sprite::Flash => {
            // A hot middle, and short rays that fade.
            canvas.each(|at| {
                let ray = folded(at, 7);
                let ray = (1.0 - (ray.y / (0.16 * (1.0 - ray.x).max(0.01))).abs()).clamp(0.0, 1.0)
                    * (0.92 - ray.x).max(0.0);
                let middle = (1.0 - at.length() / 0.62).max(0.0);
                veil(1.0, (ray * 0.8 + middle * middle * 1.3).min(1.0))
            });
        }
        Sprite::Shot => {
            let core = |at: Vec2| stroke(at, vec2(-1.2, 0.0), vec2(1.7, 0.0), 0.16);
            canvas.glow(core, 0.75, veil(0.85, 0.75));
            canvas.white(core);
        }
        Sprite::Bolt => {
            let core = |at: Vec2| stroke(at, vec2(-3.2, 0.0), vec2(3.2, 0.0), 0.20);
            canvas.glow(core, 0.75, veil(0.85, 0.8));
            canvas.white(core);
        }
        Sprite::Shell => {
            canvas.fill(|at| disc(at, Vec2::ZERO, 0.80), |_| gray(0.05));
            canvas.fill(
                |at| disc(at, Vec2::ZERO, 0.66),
                |at| gray(0.55 + 0.3 * at.y),
            );
            canvas.white(|at| slab(at, Vec2::ZERO, vec2(0.12, 0.66), 0.05));
        }
        Sprite::Bullet => {
            // A narrow halo, because there are thousands of bullets.
            canvas.glow(|at| disc(at, Vec2::ZERO, 0.56), 0.32, veil(0.8, 0.55));
            canvas.fill(|at| disc(at, Vec2::ZERO, 0.60), |_| gray(0.80));
            canvas.white(|at| disc(at, Vec2::ZERO, 0.36));
        }
        Sprite::Bubble => canvas.each(|at| {
            let distance = at.length();
            let rim = (1.0 - ((distance - 0.88) / 0.08).abs()).max(0.0);
            let inside = if distance < 0.88 {
                distance * distance * 0.30
            } else {
                0.0
            };
            veil(1.0, rim.max(inside))
        }),
        _ => unreachable!("{sprite:?} is no effect"),
    }
}
