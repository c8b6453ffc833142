//! How a remote projectile is shown: the glide from the muzzle.
//!
//! ```text
//!   fired by a remote player ──▶ known here k ticks late: a ghost, k ticks on its true path already
//!     simulation:  harmless until promoted (a hit withholds)                    `Frame::is_ghost`
//!     picture:     starts at the muzzle as shown, glides onto its true path     `muzzle_blend`
//! ```
//!
//! The simulated position is exact from the first tick; only what is drawn begins elsewhere. Nothing of this is state:
//! a frame tells it to each step anew.

use core::time::Duration;

use crate::smooth::{Correction, Pose};

/// Where a projectile came from.
#[derive(Clone, Copy)]
pub(crate) struct Muzzle<K, P> {
    pub(crate) shooter: K,
    pub(crate) at: P,
}

/// The glide of a projectile that is drawn at `origin` now onto its true path, where it is at `pose`: it
/// shrinks all the way and ends exactly on the path after `over`.
#[must_use]
pub fn muzzle_blend<P: Pose>(origin: P, pose: P, now: Duration, over: Duration) -> Correction<P> {
    Correction::new(origin.minus(pose), now, over)
}
