//! Icons of weapons and pick-ups, crosshair and pointer. White, to be tinted.

use core::f32::consts::PI;

use glam::{Vec2, vec2};

use super::canvas::Canvas;
use super::canvas::shape::{disc, folded, polygon, regular, ring, stroke, turned};
use crate::scene::Sprite;

pub(super) fn draw(sprite: Sprite, canvas: &mut Canvas) {
    match sprite {
        Sprite::IconBlaster => lines(
            canvas,
            0.12,
            &[
                &[(-0.75, 0.0), (-0.25, 0.0)],
                &[(0.15, 0.0), (0.75, 0.0)],
                &[(-0.45, 0.45), (0.0, 0.45)],
                &[(-0.1, -0.45), (0.4, -0.45)],
            ],
        ),
        Sprite::IconScatter => lines(
            canvas,
            0.11,
            &[
                &[(-0.75, 0.0), (-0.3, 0.0)],
                &[(0.0, 0.0), (0.78, 0.0)],
                &[(-0.05, 0.22), (0.66, 0.6)],
                &[(-0.05, -0.22), (0.66, -0.6)],
            ],
        ),
        Sprite::IconLance => {
            lines(canvas, 0.10, &[&[(-0.8, 0.0), (0.4, 0.0)]]);
            canvas.white(|at| polygon(at, &[vec2(0.28, -0.38), vec2(0.9, 0.0), vec2(0.28, 0.38)]));
            canvas.white(|at| ring(at + vec2(0.25, 0.0), 0.34, 0.12));
        }
        Sprite::IconThumper => {
            canvas.white(|at| disc(at, vec2(0.0, -0.08), 0.46));
            lines(canvas, 0.10, &[&[(0.28, 0.3), (0.5, 0.55), (0.75, 0.55)]]);
            canvas.white(|at| disc(at, vec2(0.80, 0.72), 0.10));
        }
        Sprite::IconHeart => {
            let heart = |at: Vec2| {
                let at = vec2(at.x.abs(), at.y);
                disc(at, vec2(0.36, 0.26), 0.40).min(polygon(
                    at,
                    &[
                        vec2(-0.2, 0.4),
                        vec2(0.70, 0.06),
                        vec2(0.0, -0.80),
                        vec2(-0.2, -0.6),
                    ],
                ))
            };
            canvas.white(heart);
        }
        Sprite::IconShield => canvas.white(|at| {
            polygon(
                at,
                &[
                    vec2(-0.62, 0.58),
                    vec2(0.0, 0.79),
                    vec2(0.62, 0.58),
                    vec2(0.52, -0.24),
                    vec2(0.0, -0.80),
                    vec2(-0.52, -0.24),
                ],
            )
            .abs()
                - 0.10
        }),
        Sprite::IconLife => {
            canvas.white(|at| ring(at, 0.70, 0.18));
            lines(
                canvas,
                0.12,
                &[&[(-0.32, 0.0), (0.32, 0.0)], &[(0.0, -0.32), (0.0, 0.32)]],
            );
        }
        Sprite::IconDash => lines(
            canvas,
            0.12,
            &[
                &[(-0.6, 0.5), (-0.1, 0.0), (-0.6, -0.5)],
                &[(0.1, 0.5), (0.6, 0.0), (0.1, -0.5)],
            ],
        ),
        Sprite::IconReady => lines(canvas, 0.14, &[&[(-0.6, 0.0), (-0.15, -0.45), (0.65, 0.5)]]),
        Sprite::Crosshair => {
            canvas.white(|at| ring(at, 0.50, 0.07));
            canvas.white(|at| stroke(folded(at, 4), vec2(0.62, 0.0), vec2(0.86, 0.0), 0.04));
            canvas.white(|at| disc(at, Vec2::ZERO, 0.08));
        }
        Sprite::Pointer => canvas.white(|at| regular(turned(at, PI * 2.0 / 3.0), 3, 0.84)),
        _ => unreachable!("{sprite:?} is no icon"),
    }
}

fn lines(canvas: &mut Canvas, radius: f32, ways: &[&[(f32, f32)]]) {
    for way in ways {
        for pair in way.windows(2) {
            canvas.white(|at| stroke(at, pair[0].into(), pair[1].into(), radius));
        }
    }
}
