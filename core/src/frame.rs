//! [`Frame`] and [`FrameData`]: one tick's input to the simulation, with the types of its entries.
//!
//! These types are defined next to their trait, in [`simulation`](crate::simulation).

pub use crate::entries::{Answer, Fragment, Inputs, LargeEntry, Order, RosterChange};
pub use crate::perspective::{Learned, Perspective, Phase};
pub use crate::players::PlayerSet;
pub use crate::simulation::{Frame, FrameData};
