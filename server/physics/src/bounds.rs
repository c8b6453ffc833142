//! Limits on positions and speeds that the engine's `f32` can represent well.

/// The limit of coordinates and sizes in units, in both directions (2^18): beyond it an `f32` cannot represent a 64th.
pub const COORDINATE_MAX: f32 = 262_144.0;
/// The maximum number of bodies in one [`Bodies`](crate::bodies::Bodies).
pub const BODIES_MAX: usize = 1_024;
/// The highest speed of a thrown body, in units per second, and its highest spin, in radians per second.
pub const SPEED_MAX: f32 = 240.0;
/// The strongest push and gravity of a flight, in units per second squared, and the strongest twist, in radians per
/// second squared: from rest to [`SPEED_MAX`] in a quarter of a second.
pub const PUSH_MAX: f32 = 960.0;
/// The limit of flights in units, in both directions: beyond it an `f32` is too coarse for contacts.
pub const REACH: f32 = 4_096.0;
