//! How far out and how fast things may be: what the engine's `f32` can bear.

/// Coordinates and sizes lie within ± this many units (2^18): beyond it an `f32` cannot hold a 64th.
pub const COORDINATE_MAX: f32 = 262_144.0;
/// Nothing is thrown faster, in units a second; nor turns faster, in radians a second.
pub const SPEED_MAX: f32 = 240.0;
/// Flights take place within ± this many units: beyond it an `f32` is too coarse for contacts.
pub const REACH: f32 = 4_096.0;
