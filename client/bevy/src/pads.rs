//! [`Pads`]: the inputs of the local players, collected from frame to frame until a tick takes them.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleLabel;
use twinstep_core::Simulation;
use twinstep_core::bounds::SEATS_MAX;

/// Runs every frame before the match advances, after `PreUpdate`, so that Bevy's own inputs are up to date. Its systems
/// write into [`Pads`].
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadInputs;

/// The inputs of the local players, indexed by seat. They are reset to neutral after a tick has taken them.
///
/// Frames and ticks do not coincide: a frame may contain no tick, or several. Systems of [`ReadInputs`] add the buttons
/// that are down (`*pads.seat(0) |= FIRE`), and set sticks. So a button pressed and released between two ticks is down
/// for one tick.
#[derive(Resource)]
pub struct Pads<S: Simulation>([S::Input; SEATS_MAX]);

impl<S: Simulation> Default for Pads<S> {
    fn default() -> Self {
        Pads(Default::default())
    }
}

impl<S: Simulation> Pads<S> {
    /// The input of a seat, 0..=3. A seat that the match does not have is ignored.
    ///
    /// # Panics
    /// If `seat` is above 3.
    pub fn seat(&mut self, seat: usize) -> &mut S::Input {
        &mut self.0[seat]
    }

    /// Clears all inputs if `advance` sampled any seat.
    pub(crate) fn sampled<R>(
        &mut self,
        advance: impl FnOnce(&mut dyn FnMut(usize) -> S::Input) -> R,
    ) -> R {
        let mut is_sampled = false;
        let advanced = advance(&mut |seat| {
            is_sampled = true;
            self.0[seat].clone()
        });
        if is_sampled {
            *self = Pads::default();
        }
        advanced
    }
}
