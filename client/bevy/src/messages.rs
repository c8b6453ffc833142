//! The events of a match, as Bevy's messages.

use bevy_ecs::prelude::*;
use twinstep_client::{CueEvent, CueId, CueKind, Event};
use twinstep_core::Simulation;

use crate::play::PlayEnd;

/// A sound or flash to play once, or to stop. Each cue is started once, and then confirmed or cancelled once.
#[derive(Message, Clone, Debug)]
pub struct CueMessage<S: Simulation>(pub CueEvent<S::Cue>);

impl<S: Simulation> CueMessage<S> {
    /// The cue to play now. Returns `None` if the message confirms or cancels an earlier cue.
    #[must_use]
    pub fn started(&self) -> Option<&S::Cue> {
        match &self.0.kind {
            CueKind::Started { cue, .. } => Some(cue),
            _ => None,
        }
    }

    /// The cue that did not happen: stop it, or fade it out. Returns `None` for other messages.
    #[must_use]
    pub fn cancelled(&self) -> Option<CueId> {
        matches!(self.0.kind, CueKind::Cancelled).then_some(self.0.id)
    }
}

/// A session event, such as a refused command, a reconnect, or a desync with its fields.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SessionMessage(pub Event);

/// The match is over. `to_string` on the reason gives a sentence for the player.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PlayOver(pub PlayEnd);
