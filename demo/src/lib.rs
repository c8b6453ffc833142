//! *Powderkeg*: a top-down co-op shooter, and the example that games built on Twinstep begin with.
//!
//! [`game`] is the whole game as a state and a step, without network, clock or screen.

pub mod game;
pub mod game_show;
pub mod terminal;
