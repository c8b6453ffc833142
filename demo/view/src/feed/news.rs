//! A feed's output for its view, live or replayed: [`News`], which is kept until the view takes it, and [`Companion`],
//! a player of the match.

use std::collections::VecDeque;

use powderkeg_game::{Cue, Game, GameShow, ShowKey};
use twinstep_client::{CueEvent, Placed, Session};
use twinstep_core::PlayerId;
use twinstep_protocol::packet::presence::LinkQuality;

use super::notice::Note;

/// A player, as the lobby and the lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Companion {
    pub id: PlayerId,
    /// The chosen name (unverified), or the player's number.
    pub name: String,
    pub is_local: bool,
    /// Whether the player's inputs arrive; `false` after a long silence.
    pub is_here: bool,
    pub is_late: bool,
    /// The link as measured by the server. `None` if the player is not connected, or no measurement has arrived yet.
    pub link: Option<LinkQuality>,
}

impl Companion {
    /// The players of a session's match, in number order; empty until its world has arrived.
    pub(super) fn all_of(session: &Session<Game, GameShow>) -> Vec<Companion> {
        let Some(world) = session.authority() else {
            return Vec::new();
        };
        let (seats, presence) = (session.seats(), session.presence());
        let companion = |id: PlayerId| Companion {
            id,
            name: presence
                .name(id)
                .map_or_else(|| id.to_string(), str::to_owned),
            is_local: seats.contains(&id),
            is_here: world.present().contains(id),
            is_late: session.waiting().contains(id),
            link: presence.link(id),
        };
        world.seated().iter().map(companion).collect()
    }
}

const WAITING_MAX: usize = 4_096;

/// The output of a feed, until the view takes it. Bounded: cues and notes that are not taken are dropped, oldest first.
#[derive(Default)]
pub(super) struct News {
    pub(super) shown: Vec<(ShowKey, Placed)>,
    pub(super) fading: Vec<(ShowKey, Placed, f32)>,
    pub(super) cues: VecDeque<CueEvent<Cue>>,
    pub(super) notes: VecDeque<Note>,
}

impl News {
    pub(super) fn cue(&mut self, event: CueEvent<Cue>) {
        push_bounded(&mut self.cues, event);
    }

    pub(super) fn note(&mut self, note: Note) {
        push_bounded(&mut self.notes, note);
    }
}

fn push_bounded<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == WAITING_MAX {
        list.pop_front();
    }
    list.push_back(item);
}
