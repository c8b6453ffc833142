//! Players in light steel, and enemies in dark steel; each kind has its own silhouette.

use core::f32::consts::PI;

use glam::{Vec2, vec2};

use super::canvas::shape::{disc, folded, polygon, regular, ring, slab, stroke, turned};
use super::canvas::{Canvas, Ink, gray};
use crate::scene::Sprite;

/// Light steel, brighter towards the middle, so that it looks right in every orientation.
fn steel(at: Vec2) -> Ink {
    gray(0.86 - 0.34 * at.length())
}

fn iron(at: Vec2) -> Ink {
    let value = 0.30 - 0.14 * at.length();
    [value * 0.92, value * 0.98, value * 1.12, 1.0]
}

const RIM: fn(Vec2) -> Ink = |_| [0.03, 0.04, 0.06, 1.0];
const RIM_WIDTH: f32 = 0.07;

fn body(canvas: &mut Canvas, shape: impl Fn(Vec2) -> f32 + Copy, ink: fn(Vec2) -> Ink) {
    canvas.fill(move |at| shape(at) - RIM_WIDTH, RIM);
    canvas.fill(shape, ink);
}

pub(super) fn draw(sprite: Sprite, canvas: &mut Canvas) {
    match sprite {
        Sprite::PlayerHull => {
            // Barrel, two tracks, a round hull.
            body(
                canvas,
                |at| slab(at, vec2(0.52, 0.0), vec2(0.33, 0.10), 0.04),
                steel,
            );
            for side in [-1.0, 1.0] {
                body(
                    canvas,
                    |at| slab(at, vec2(-0.08, side * 0.52), vec2(0.46, 0.15), 0.10),
                    |at| {
                        gray(if libm::fmodf(at.x * 9.0 + 20.0, 1.0) < 0.5 {
                            0.36
                        } else {
                            0.46
                        })
                    },
                );
            }
            body(canvas, |at| disc(at, vec2(-0.04, 0.0), 0.50), steel);
            canvas.fill(|at| disc(at, vec2(-0.04, 0.0), 0.36), |_| gray(0.22));
        }
        Sprite::PlayerTrim => {
            canvas.white(|at| ring(at - vec2(-0.04, 0.0), 0.43, 0.10));
            canvas.white(|at| slab(at, vec2(0.62, 0.0), vec2(0.19, 0.045), 0.02));
            for side in [-1.0, 1.0] {
                canvas.white(|at| slab(at, vec2(-0.08, side * 0.60), vec2(0.34, 0.035), 0.03));
            }
        }
        Sprite::GunnerHull => {
            for side in [-1.0, 1.0] {
                body(
                    canvas,
                    |at| slab(at, vec2(0.52, side * 0.24), vec2(0.32, 0.09), 0.02),
                    iron,
                );
            }
            body(canvas, |at| polygon(at, &KITE), iron);
        }
        Sprite::GunnerTrim => {
            canvas.white(|at| (polygon(at, &KITE) + 0.13).abs() - 0.05);
            canvas.white(|at| disc(at, vec2(0.02, 0.0), 0.16));
        }
        Sprite::UrchinHull => {
            body(
                canvas,
                |at| {
                    let spike = polygon(
                        folded(at, 8),
                        &[vec2(0.30, -0.24), vec2(0.86, 0.0), vec2(0.30, 0.24)],
                    );
                    spike.min(disc(at, Vec2::ZERO, 0.52))
                },
                iron,
            );
        }
        Sprite::UrchinTrim => {
            canvas.white(|at| ring(at, 0.38, 0.10));
            canvas.white(|at| stroke(folded(at, 8), vec2(0.58, 0.0), vec2(0.72, 0.0), 0.045));
            canvas.white(|at| disc(at, Vec2::ZERO, 0.14));
        }
        Sprite::SpinnerHull => {
            body(
                canvas,
                |at| arms(at, 0.12).min(disc(at, Vec2::ZERO, 0.30)),
                iron,
            );
        }
        Sprite::SpinnerTrim => {
            canvas.white(|at| arms(at, 0.035));
            canvas.white(|at| disc(at, Vec2::ZERO, 0.16));
        }
        Sprite::SapperHull => {
            body(canvas, |at| regular(turned(at, PI / 6.0), 6, 0.80), iron);
            body(canvas, |at| disc(at, Vec2::ZERO, 0.30), |_| gray(0.10));
        }
        Sprite::SapperTrim => {
            canvas.white(|at| (regular(turned(at, PI / 6.0), 6, 0.80) + 0.14).abs() - 0.05);
            // A flame.
            canvas.white(|at| {
                polygon(
                    at,
                    &[
                        vec2(-0.16, -0.20),
                        vec2(0.16, -0.20),
                        vec2(0.18, 0.02),
                        vec2(0.0, 0.28),
                        vec2(-0.18, 0.02),
                    ],
                )
            });
        }
        Sprite::ChargerHull => {
            body(canvas, |at| polygon(at, &WEDGE), iron);
            body(
                canvas,
                |at| polygon(at, &[vec2(0.40, -0.34), vec2(0.86, 0.0), vec2(0.40, 0.34)]),
                |_| gray(0.62),
            );
        }
        Sprite::ChargerTrim => {
            for back in [0.0, 0.32] {
                canvas.white(|at| {
                    let at = at + vec2(back + 0.05, 0.0);
                    stroke(at, vec2(-0.15, 0.36), vec2(0.22, 0.0), 0.06).min(stroke(
                        at,
                        vec2(-0.15, -0.36),
                        vec2(0.22, 0.0),
                        0.06,
                    ))
                });
            }
        }
        Sprite::BossHull => boss_hull(canvas),
        Sprite::BossTrim => {
            canvas.white(|at| ring(at, 0.60, 0.035));
            canvas.white(|at| ring(at, 0.30, 0.05));
            canvas.white(|at| disc(at, Vec2::ZERO, 0.15));
            canvas.white(|at| disc(folded(at, 8), vec2(0.80, 0.0), 0.045));
            canvas.white(|at| stroke(folded(at, 4), vec2(0.40, 0.0), vec2(0.52, 0.0), 0.025));
        }
        _ => unreachable!("{sprite:?} is no actor"),
    }
}

const KITE: [Vec2; 4] = [
    vec2(0.62, 0.0),
    vec2(-0.10, 0.68),
    vec2(-0.70, 0.0),
    vec2(-0.10, -0.68),
];
const WEDGE: [Vec2; 6] = [
    vec2(0.86, 0.0),
    vec2(-0.30, 0.74),
    vec2(-0.74, 0.58),
    vec2(-0.36, 0.0),
    vec2(-0.74, -0.58),
    vec2(-0.30, -0.74),
];

fn arms(at: Vec2, radius: f32) -> f32 {
    let mut nearest = f32::MAX;
    for n in 0..3 {
        let at = turned(at, n as f32 * PI * 2.0 / 3.0);
        let arm = stroke(at, Vec2::ZERO, vec2(0.49, 0.14), radius).min(stroke(
            at,
            vec2(0.49, 0.14),
            vec2(0.60, 0.47),
            radius,
        ));
        nearest = nearest.min(arm);
    }
    nearest
}

fn boss_hull(canvas: &mut Canvas) {
    body(
        canvas,
        |at| slab(folded(at, 8), vec2(0.73, 0.0), vec2(0.17, 0.075), 0.02),
        iron,
    );
    body(canvas, |at| regular(turned(at, PI / 8.0), 8, 0.78), iron);
    canvas.fill(
        |at| (regular(turned(at, PI / 8.0), 8, 0.78) + 0.06).abs() - 0.012,
        |_| gray(0.40),
    );
    body(
        canvas,
        |at| slab(folded(at, 4), vec2(0.46, 0.0), vec2(0.13, 0.17), 0.03),
        |_| [0.17, 0.19, 0.23, 1.0],
    );
    body(
        canvas,
        |at| disc(at, Vec2::ZERO, 0.38),
        |at| gray(0.30 - 0.4 * at.length()),
    );
    canvas.fill(|at| disc(at, Vec2::ZERO, 0.24), |_| gray(0.05));
}
