//! Walls, barrels, crates and pick-ups; and the boxes of panels.

use glam::{Vec2, vec2};

use super::canvas::shape::{disc, polygon, regular, ring, slab, stroke};
use super::canvas::{Canvas, veil};
use crate::scene::Sprite;

pub(super) fn draw(sprite: Sprite, canvas: &mut Canvas) {
    match sprite {
        Sprite::Panel => canvas.white(|at| slab(at, Vec2::ZERO, Vec2::ONE, 0.5)),
        Sprite::Frame => {
            canvas.white(|at| (slab(at, Vec2::ZERO, Vec2::splat(0.94), 0.45)).abs() - 0.05);
        }
        Sprite::Wall => {
            canvas.fill(
                |at| slab(at, Vec2::ZERO, Vec2::ONE, 0.22),
                |_| [0.05, 0.06, 0.08, 1.0],
            );
            // Light from the upper left on the bevel.
            canvas.fill(
                |at| slab(at, Vec2::ZERO, Vec2::splat(0.90), 0.18),
                |at| {
                    let lit = 0.40 + 0.16 * (at.y - at.x).clamp(-1.0, 1.0);
                    [lit * 0.88, lit * 0.97, lit * 1.12, 1.0]
                },
            );
            canvas.fill(
                |at| slab(at, Vec2::ZERO, Vec2::splat(0.70), 0.10),
                |_| [0.25, 0.285, 0.335, 1.0],
            );
        }
        Sprite::Barrel => {
            canvas.fill(|at| disc(at, Vec2::ZERO, 0.88), |_| [0.04, 0.03, 0.03, 1.0]);
            canvas.fill(
                |at| disc(at, Vec2::ZERO, 0.80),
                |at| {
                    let lit = 0.78 + 0.22 * (at.y - at.x * 0.6).clamp(-1.0, 1.0);
                    [0.72 * lit, 0.20 * lit, 0.10 * lit, 1.0]
                },
            );
            canvas.fill(|at| ring(at, 0.60, 0.09), |_| [0.30, 0.07, 0.04, 1.0]);
            canvas.fill(
                |at| disc(at, vec2(0.34, 0.30), 0.10),
                |_| [0.12, 0.04, 0.03, 1.0],
            );
        }
        Sprite::BarrelTrim => {
            // Danger: a triangle with an exclamation mark.
            canvas.fill(
                |at| polygon(at, &SIGN).abs() - 0.055,
                |_| [1.0, 0.88, 0.45, 1.0],
            );
            canvas.fill(
                |at| stroke(at, vec2(0.0, 0.14), vec2(0.0, -0.08), 0.055),
                |_| [1.0, 0.88, 0.45, 1.0],
            );
            canvas.fill(
                |at| disc(at, vec2(0.0, -0.22), 0.06),
                |_| [1.0, 0.88, 0.45, 1.0],
            );
        }
        Sprite::Crate => crate_(canvas),
        Sprite::CrateTrim => {
            for (from, to) in [
                ((-0.7, 0.55), (-0.1, 0.1)),
                ((-0.1, 0.1), (0.25, -0.25)),
                ((0.25, -0.25), (0.7, -0.35)),
                ((-0.1, 0.1), (0.2, 0.6)),
            ] {
                canvas.fill(
                    |at| stroke(at, from.into(), to.into(), 0.05),
                    |_| [0.08, 0.05, 0.03, 1.0],
                );
            }
        }
        Sprite::Capsule => {
            canvas.fill(|at| regular(at, 6, 0.92), |_| veil(0.02, 0.85));
            canvas.white(|at| (regular(at, 6, 0.86)).abs() - 0.055);
        }
        _ => unreachable!("{sprite:?} is no thing"),
    }
}

const SIGN: [Vec2; 3] = [vec2(-0.44, -0.36), vec2(0.44, -0.36), vec2(0.0, 0.42)];

fn crate_(canvas: &mut Canvas) {
    const DARK: [f32; 4] = [0.16, 0.10, 0.055, 1.0];
    canvas.fill(|at| slab(at, Vec2::ZERO, Vec2::splat(0.88), 0.08), |_| DARK);
    canvas.fill(
        |at| slab(at, Vec2::ZERO, Vec2::splat(0.80), 0.04),
        |at| {
            let plank = libm::floorf((at.y + 1.0) * 2.5);
            let lit =
                0.88 + 0.10 * libm::sinf(plank * 2.4) + 0.03 * libm::sinf(at.x * 31.0 + plank);
            [0.52 * lit, 0.36 * lit, 0.20 * lit, 1.0]
        },
    );
    let frame = |at: Vec2| {
        slab(at, Vec2::ZERO, Vec2::splat(0.80), 0.04).max(-slab(
            at,
            Vec2::ZERO,
            Vec2::splat(0.56),
            0.02,
        ))
    };
    let brace = |at: Vec2| stroke(at, vec2(-0.58, -0.58), vec2(0.58, 0.58), 0.11);
    canvas.fill(move |at| brace(at) - 0.04, |_| DARK);
    canvas.fill(move |at| frame(at) - 0.03, |_| DARK);
    for part in [0, 1] {
        canvas.fill(
            move |at| if part == 0 { brace(at) } else { frame(at) },
            |at| {
                let lit = 0.92 + 0.16 * (at.y - at.x).clamp(-1.0, 1.0);
                [0.66 * lit, 0.48 * lit, 0.28 * lit, 1.0]
            },
        );
    }
}
