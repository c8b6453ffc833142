//! A frame: all that the simulation is told for one tick, and what it is made of.
//!
//! [`FrameData`] and [`Frame`] stand beside the trait that they are part of, in [`simulation`](crate::simulation).

pub use crate::entries::{Answer, Inputs, Order, RosterChange};
pub use crate::perspective::{Learned, Perspective, Phase};
pub use crate::players::PlayerSet;
pub use crate::simulation::{Frame, FrameData};
