//! Float operations, each over the same thousands of inputs: tiny, huge, subnormal, infinite, and typical of games.
//!
//! The operations that the guide's chapter on determinism permits are in [`operations`], with one digest each. The
//! forbidden functions, which the system provides, are in [`system_functions`].

use std::fmt::Write as _;

use glam::{Mat2, Vec2, Vec3, Vec4};
use twinstep_core::Mwc;
use twinstep_core::digest::digest;

type Operation = (&'static str, fn(f32, f32, f32) -> u64);

const INPUTS: usize = 10_000;

const SIGN: u32 = 1 << 31;
const SIGN_F64: u64 = 1 << 63;

/// The bits of the result, with one fixed NaN: a machine may choose any NaN. The bits are tested, because the compiler
/// may remove `if x.is_nan() { f32::NAN } else { x }`, and does so after a square root.
fn two(x: f32, y: f32) -> u64 {
    let bits = |x: f32| {
        let bits = x.to_bits();
        if bits & !SIGN > f32::INFINITY.to_bits() {
            f32::NAN.to_bits()
        } else {
            bits
        }
    };
    u64::from(bits(x)) << 32 | u64::from(bits(y))
}

fn one(x: f32) -> u64 {
    two(x, 0.0)
}

fn double(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits & !SIGN_F64 > f64::INFINITY.to_bits() {
        f64::NAN.to_bits()
    } else {
        bits
    }
}

fn vector(v: Vec2) -> u64 {
    two(v.x, v.y)
}

const PERMITTED: &[Operation] = &[
    ("add", |a, b, _| one(a + b)),
    ("sub", |a, b, _| one(a - b)),
    ("mul", |a, b, _| one(a * b)),
    ("div", |a, b, _| one(a / b)),
    ("mul-add", |a, b, c| one(a * b + c)),
    ("sum", |a, b, c| one([a, b, c, b, a].into_iter().sum())),
    ("rem", |a, b, _| one(a % b)),
    ("rem-euclid", |a, b, _| one(a.rem_euclid(b))),
    ("sqrt", |a, _, _| one(a.sqrt())),
    ("neg-abs", |a, b, _| two(-a, b.abs())),
    ("signum-copysign", |a, b, _| two(a.signum(), a.copysign(b))),
    ("less-equal", |a, b, c| {
        u64::from(a < b) | u64::from(b <= c) << 1 | u64::from(a == c) << 2
    }),
    ("total-cmp", |a, b, _| a.total_cmp(&b) as u64),
    ("min-max", |a, b, _| two(a.min(b), a.max(b))),
    ("clamp", |a, _, _| one(a.clamp(-1.0, 1.0))),
    ("floor-ceil", |a, b, _| two(a.floor(), b.ceil())),
    ("round-trunc", |a, b, _| two(a.round(), b.trunc())),
    ("round-even-fract", |a, b, _| {
        two(a.round_ties_even(), b.fract())
    }),
    ("to-degrees", |a, b, _| two(a.to_degrees(), b.to_radians())),
    ("to-i32", |a, _, _| a as i32 as u64),
    ("to-i64", |a, _, _| a as i64 as u64),
    ("to-u8-u16", |a, b, _| {
        u64::from(a as u8) << 16 | u64::from(b as u16)
    }),
    ("of-i32-u64", |a, b, _| {
        let whole = u64::from(a.to_bits()) << 32 | u64::from(b.to_bits());
        two(a.to_bits() as i32 as f32, whole as f32)
    }),
    ("f64", |a, b, c| {
        let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
        double((a * b + c) / (a - c).abs().sqrt())
    }),
    ("f64-to-f32", |a, b, c| {
        let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
        one((a * b / c) as f32)
    }),
    ("libm/sin-cos", |a, _, _| two(libm::sinf(a), libm::cosf(a))),
    ("libm/sincos", |a, _, _| {
        let (sin, cos) = libm::sincosf(a);
        two(sin, cos)
    }),
    ("libm/tan-atan", |a, b, _| {
        two(libm::tanf(a), libm::atanf(b))
    }),
    ("libm/asin-acos", |a, b, _| {
        two(libm::asinf(a), libm::acosf(b))
    }),
    ("libm/atan2", |a, b, _| one(libm::atan2f(a, b))),
    ("libm/sinh-cosh", |a, b, _| {
        two(libm::sinhf(a), libm::coshf(b))
    }),
    ("libm/tanh", |a, _, _| one(libm::tanhf(a))),
    ("libm/exp-exp2", |a, b, _| {
        two(libm::expf(a), libm::exp2f(b))
    }),
    ("libm/expm1-log1p", |a, b, _| {
        two(libm::expm1f(a), libm::log1pf(b))
    }),
    ("libm/log-log2", |a, b, _| {
        two(libm::logf(a), libm::log2f(b))
    }),
    ("libm/log10-cbrt", |a, b, _| {
        two(libm::log10f(a), libm::cbrtf(b))
    }),
    ("libm/pow", |a, b, _| one(libm::powf(a, b))),
    ("libm/hypot", |a, b, _| one(libm::hypotf(a, b))),
    ("libm/fmod-round", |a, b, _| {
        two(libm::fmodf(a, b), libm::roundf(a))
    }),
    ("libm/sin-f64", |a, _, _| double(libm::sin(f64::from(a)))),
    ("libm/cos-f64", |a, _, _| double(libm::cos(f64::from(a)))),
    ("libm/atan2-f64", |a, b, _| {
        double(libm::atan2(f64::from(a), f64::from(b)))
    }),
    ("libm/exp-f64", |a, _, _| double(libm::exp(f64::from(a)))),
    ("libm/log-f64", |a, _, _| double(libm::log(f64::from(a)))),
    ("libm/pow-f64", |a, b, _| {
        double(libm::pow(f64::from(a), f64::from(b)))
    }),
    ("glam/length-dot", |a, b, c| {
        let v = Vec2::new(a, b);
        two(v.length(), v.dot(Vec2::new(b, c)))
    }),
    ("glam/normalize", |a, b, _| {
        vector(Vec2::new(a, b).normalize_or_zero())
    }),
    ("glam/lerp", |a, b, c| {
        vector(Vec2::new(a, b).lerp(Vec2::new(b, c), 0.3))
    }),
    ("glam/distance-angle", |a, b, c| {
        let (v, w) = (Vec2::new(a, b), Vec2::new(b, c));
        two(v.distance(w), v.to_angle())
    }),
    ("glam/from-angle", |a, b, c| {
        vector(Vec2::from_angle(a).rotate(Vec2::new(b, c)))
    }),
    ("glam/clamp-length", |a, b, _| {
        vector(Vec2::new(a, b).clamp_length_max(2.5))
    }),
    ("glam/reflect", |a, b, c| {
        vector(Vec2::new(a, b).reflect(Vec2::from_angle(c)))
    }),
    ("glam/mat2", |a, b, c| {
        vector(Mat2::from_angle(a).inverse() * Vec2::new(b, c))
    }),
    ("glam/vec3", |a, b, c| {
        let (v, w) = (Vec3::new(a, b, c), Vec3::new(c, a, b));
        two(v.dot(w), v.cross(w).length())
    }),
    ("glam/vec4", |a, b, c| {
        let v = Vec4::new(a, b, c, a);
        two(v.length(), v.dot(Vec4::new(c, c, b, b)))
    }),
];

#[expect(clippy::disallowed_methods, reason = "shows why they are forbidden")]
const OF_THE_SYSTEM: &[Operation] = &[
    ("std/sin", |a, _, _| one(a.sin())),
    ("std/cos", |a, _, _| one(a.cos())),
    ("std/tan", |a, _, _| one(a.tan())),
    ("std/asin", |a, _, _| one(a.asin())),
    ("std/acos", |a, _, _| one(a.acos())),
    ("std/atan", |a, _, _| one(a.atan())),
    ("std/atan2", |a, b, _| one(a.atan2(b))),
    ("std/sinh", |a, _, _| one(a.sinh())),
    ("std/cosh", |a, _, _| one(a.cosh())),
    ("std/tanh", |a, _, _| one(a.tanh())),
    ("std/exp", |a, _, _| one(a.exp())),
    ("std/ln", |a, _, _| one(a.ln())),
    ("std/powf", |a, b, _| one(a.powf(b))),
    ("std/hypot", |a, b, _| one(a.hypot(b))),
    ("std/cbrt", |a, _, _| one(a.cbrt())),
    ("std/powi", |a, b, _| two(a.powi(3), b.powi(-7))),
    ("std/mul-add", |a, b, c| one(a.mul_add(b, c))),
    ("std/min-max-of-zeros", |a, b, _| {
        let (a, b) = (0.0_f32.copysign(a), 0.0_f32.copysign(b));
        two(a.min(b), a.max(b))
    }),
    ("std/bits-of-nan", |a, b, _| {
        u64::from((a.sqrt() + b * f32::INFINITY).to_bits())
    }),
];

/// Adds the digest of each operation that a step may use.
pub(super) fn operations(lines: &mut String) {
    digests(PERMITTED, lines);
}

/// Returns the digest of each function that a step must not use: the system provides it, and systems differ.
#[must_use]
pub fn system_functions() -> String {
    let mut lines = String::new();
    digests(OF_THE_SYSTEM, &mut lines);
    lines
}

fn digests(operations: &[Operation], lines: &mut String) {
    let mut luck = Mwc::seed(73);
    let inputs: Vec<[f32; 3]> = (0..INPUTS)
        .map(|_| std::array::from_fn(|_| input(&mut luck)))
        .collect();
    for (name, operation) in operations {
        let results = inputs.iter().map(|&[a, b, c]| operation(a, b, c));
        let digest = digest(&Vec::from_iter(results)).expect("bits are no NaN");
        let _ = writeln!(lines, "{name} {digest:016x}");
    }
}

fn input(luck: &mut Mwc) -> f32 {
    const EDGES: [f32; 12] = [
        0.0,
        -1.0,
        1.0,
        0.5,
        -2.5,
        core::f32::consts::PI,
        f32::EPSILON,
        f32::MIN_POSITIVE,
        1e-40,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let whole = luck.below(2_000_001) as i32 - 1_000_000;
    match luck.below(8) {
        0 => EDGES[luck.below(EDGES.len() as u32) as usize],
        // Any bits; a NaN becomes a small number.
        1 => {
            let any = f32::from_bits(luck.below(u32::MAX));
            if any.is_nan() { 1e-3 } else { any }
        }
        2 | 3 => whole as f32 / 1_000_000.0,
        4 | 5 => whole as f32 / 100_000.0,
        _ => whole as f32 / 1_000.0,
    }
}
