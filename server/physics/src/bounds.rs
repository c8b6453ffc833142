//! Limits on positions and speeds that the engine's `f32` can represent well.

/// Coordinates and sizes lie within ± this many units (2^18): beyond it an `f32` cannot hold a 64th.
pub const COORDINATE_MAX: f32 = 262_144.0;
/// The highest speed of a thrown body, in units a second, and its highest spin, in radians a second.
pub const SPEED_MAX: f32 = 240.0;
/// Flights take place within ± this many units: beyond it an `f32` is too coarse for contacts.
pub const REACH: f32 = 4_096.0;
