//! The imports of a game's rules: `use twinstep_core::prelude::*;`
//!
//! Server and client have their own preludes, for the code around the rules.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use twinstep_core::prelude::*;
//!
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Race {
//!     squares: Table<PlayerId, u32>,
//! }
//!
//! impl Simulation for Race {
//!     const NAME: &'static str = "race";
//!     const VERSION: u32 = 1;
//!     type Rules = ();
//!     type Input = bool;
//!     type Command = Never;
//!     type Query = Never;
//!     type Outcome = Never;
//!     type Cue = Never;
//!
//!     fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
//!         for (player, runs) in frame.inputs() {
//!             *self.squares.get_or_insert_with(player, u32::default) += u32::from(*runs);
//!         }
//!     }
//! }
//! ```

pub use crate::chunked::Chunked;
pub use crate::clone_fields;
pub use crate::effects::Effects;
pub use crate::frame::{Frame, Phase, PlayerSet, RosterChange};
pub use crate::ids::{Key, PlayerId, Tick};
pub use crate::rng::Mwc;
pub use crate::schedule::Schedule;
pub use crate::simulation::{BotMove, Controls, Never, Simulation, Wire};
pub use crate::table::Table;
pub use crate::world::World;
