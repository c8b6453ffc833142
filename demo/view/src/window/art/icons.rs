//! Signs: weapons, pick-ups, and what the panels point with. White, to be tinted.

use core::f32::consts::PI;

use glam::{Vec2, vec2};

use super::canvas::shape::{disc, folded, polygon, regular, ring, slab, stroke, turned};
use super::canvas::{Canvas, Ink, gray};
use crate::scene::Sprite;

const WHITE: fn(Vec2) -> Ink = |_| gray(1.0);

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
            canvas.fill(
                |at| polygon(at, &[vec2(0.28, -0.38), vec2(0.9, 0.0), vec2(0.28, 0.38)]),
                WHITE,
            );
            canvas.fill(|at| ring(at + vec2(0.25, 0.0), 0.34, 0.12), WHITE);
        }
        Sprite::IconThumper => {
            canvas.fill(|at| disc(at, vec2(0.0, -0.08), 0.46), WHITE);
            lines(canvas, 0.10, &[&[(0.28, 0.3), (0.5, 0.55), (0.75, 0.55)]]);
            canvas.fill(|at| disc(at, vec2(0.80, 0.72), 0.10), WHITE);
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
            canvas.fill(heart, WHITE);
        }
        Sprite::IconShield => canvas.fill(
            |at| {
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
            },
            WHITE,
        ),
        Sprite::IconLife => {
            canvas.fill(|at| ring(at, 0.70, 0.18), WHITE);
            lines(
                canvas,
                0.12,
                &[&[(-0.32, 0.0), (0.32, 0.0)], &[(0.0, -0.32), (0.0, 0.32)]],
            );
        }
        Sprite::IconSkull => {
            canvas.fill(
                |at| {
                    let head = disc(at, vec2(0.0, 0.16), 0.62).min(slab(
                        at,
                        vec2(0.0, -0.45),
                        vec2(0.36, 0.30),
                        0.08,
                    ));
                    let eye = disc(vec2(at.x.abs(), at.y), vec2(0.26, 0.12), 0.18);
                    let teeth = slab(
                        vec2(at.x.abs(), at.y),
                        vec2(0.12, -0.62),
                        vec2(0.035, 0.16),
                        0.0,
                    );
                    head.max(-eye).max(-teeth)
                },
                WHITE,
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
        Sprite::IconPad => {
            canvas.fill(
                |at| {
                    let at = vec2(at.x.abs(), at.y);
                    let shell = disc(at, vec2(0.48, -0.02), 0.42).min(slab(
                        at,
                        vec2(0.0, 0.08),
                        vec2(0.55, 0.30),
                        0.10,
                    ));
                    shell.max(-disc(at, vec2(0.46, 0.04), 0.15))
                },
                WHITE,
            );
        }
        Sprite::IconKeys => {
            canvas.fill(
                |at| slab(at, Vec2::ZERO, vec2(0.84, 0.56), 0.14).abs() - 0.07,
                WHITE,
            );
            for x in [-0.5, 0.0, 0.5] {
                canvas.fill(|at| slab(at, vec2(x, 0.20), vec2(0.13, 0.10), 0.02), WHITE);
            }
            canvas.fill(
                |at| slab(at, vec2(0.0, -0.20), vec2(0.46, 0.09), 0.02),
                WHITE,
            );
        }
        Sprite::IconBot => {
            canvas.fill(
                |at| {
                    let head = slab(at, vec2(0.0, -0.14), vec2(0.66, 0.50), 0.16);
                    head.max(-disc(vec2(at.x.abs(), at.y), vec2(0.28, -0.08), 0.14))
                },
                WHITE,
            );
            lines(canvas, 0.08, &[&[(0.0, 0.3), (0.0, 0.68)]]);
            canvas.fill(|at| disc(at, vec2(0.0, 0.74), 0.13), WHITE);
        }
        Sprite::IconReady => lines(canvas, 0.14, &[&[(-0.6, 0.0), (-0.15, -0.45), (0.65, 0.5)]]),
        Sprite::Crosshair => {
            canvas.fill(|at| ring(at, 0.50, 0.07), WHITE);
            canvas.fill(
                |at| stroke(folded(at, 4), vec2(0.62, 0.0), vec2(0.86, 0.0), 0.04),
                WHITE,
            );
            canvas.fill(|at| disc(at, Vec2::ZERO, 0.08), WHITE);
        }
        Sprite::Pointer => canvas.fill(|at| regular(turned(at, PI * 2.0 / 3.0), 3, 0.84), WHITE),
        _ => unreachable!("{sprite:?} is no icon"),
    }
}

/// Ways drawn with a round pen.
fn lines(canvas: &mut Canvas, radius: f32, ways: &[&[(f32, f32)]]) {
    for way in ways {
        for pair in way.windows(2) {
            canvas.fill(
                |at| stroke(at, pair[0].into(), pair[1].into(), radius),
                WHITE,
            );
        }
    }
}
