//! Twinstep matches in a Bevy app.
//!
//! ```text
//!  each frame:  PreUpdate ─▶ ReadInputs ─▶ AdvanceMatch ─────────────────────────────────▶ Update
//!                            your systems   the match, by Bevy's real time                 your systems
//!                            fill Pads      ├─ cues, events, its end ─▶ messages           dress, hear, end
//!                                           └─ the picture ─▶ entities with Drawn
//! ```
//!
//! Invariant: the ECS holds no part of the match's state. The simulation is a plain type in the [`Play`] resource, and
//! entities only represent its picture. So entities are never rolled back, saved or compared, and a system that changes
//! an entity does not change the match. Bevy's `Time<Virtual>` may be paused; the match uses `Time<Real>`.
//!
//! | to | use |
//! |---|---|
//! | set up | [`TwinstepPlugin`] |
//! | join, play alone, leave, issue commands | [`Play`]; its [`PlayState`] and [`PlayOver`] |
//! | read keys and pads | [`ReadInputs`], [`Pads`] |
//! | draw | [`Drawn`], [`DrawnEntities`], [`TransformPose`] |
//! | play sounds, show events and the connection | [`CueMessage`], [`SessionMessage`], [`NetGraph`] |
//!
//! For Bevy 0.19. With 1,000 moving entities, a frame costs 14 µs more than the match (measured on an AMD EPYC, in
//! release), and a quiet frame does not allocate.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use bevy_app::prelude::*;
//! use bevy_ecs::prelude::*;
//! use bevy_time::TimePlugin; // a part of `DefaultPlugins`
//! use twinstep_bevy::prelude::*;
//! use twinstep_core::testing::doc::Counter; // your simulation
//!
//! fn play(mut commands: Commands) -> Result {
//!     let config = SessionConfig::new(Arc::new(())).start(Counter::default());
//!     let alone = LocalMatch::action(Counter::default(), ());
//!     commands.insert_resource(Play::alone(alone, config)?); // or: Play::join(&Ticket::load(path)?, config)?
//!     Ok(())
//! }
//!
//! fn hold(mut pads: ResMut<Pads<Counter>>) {
//!     *pads.seat(0) = 1;
//! }
//!
//! let mut app = App::new();
//! app.add_plugins((TimePlugin, TwinstepPlugin::<Counter>::default()))
//!     .add_systems(Startup, play)
//!     .add_systems(ReadInputs, hold);
//! app.update();
//! assert_eq!(*app.world().resource::<PlayState>(), PlayState::Playing);
//! ```

mod drawn;
mod messages;
mod netgraph;
mod pads;
#[cfg(feature = "transform")]
mod places;
mod play;
mod plugin;

pub use drawn::{Drawn, DrawnEntities};
pub use messages::{CueMessage, PlayOver, SessionMessage};
pub use netgraph::{NetGraph, NetSample};
pub use pads::{Pads, ReadInputs};
#[cfg(feature = "transform")]
pub use places::TransformPose;
pub use play::{Play, PlayEnd, PlayState};
pub use plugin::{AdvanceMatch, TwinstepPlugin};

/// The imports of a game, for use beside Bevy's prelude. No name is in both.
///
/// Bevy has its own `Event` and `Local`, so here they are named `SessionEvent` and `LocalMatch`.
pub mod prelude {
    #[cfg(feature = "transform")]
    pub use crate::TransformPose;
    pub use crate::{
        AdvanceMatch, CueMessage, Drawn, DrawnEntities, NetGraph, NetSample, Pads, Play, PlayEnd,
        PlayOver, PlayState, ReadInputs, SessionMessage, TwinstepPlugin,
    };
    pub use twinstep_client::{
        Angle, ClientStartError, CommandError, Event as SessionEvent, Placed, Pose, Poses, Scene,
        SessionConfig, SessionEnd, Show, Smoothing, Ticket, TicketError, show_with,
    };
    pub use twinstep_local::{Local as LocalMatch, LocalGameEnd, LocalStartError};
}
