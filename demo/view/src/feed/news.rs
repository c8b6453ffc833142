//! What a feed hands to a view, be it played or replayed: [`News`] until the view takes it, and [`Companion`], who plays along.

use std::collections::VecDeque;

use powderkeg_game::{Cue, Game, GameShow, ShowKey};
use twinstep_client::{CueEvent, Placed, Session};
use twinstep_core::PlayerId;
use twinstep_protocol::company::LinkQuality;

use super::notice::Note;

/// A player, as the lobby and the lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Companion {
    /// Who.
    pub id: PlayerId,
    /// What it wants to be called (which proves nothing), or its number.
    pub name: String,
    /// Whether it sits at this screen.
    pub is_local: bool,
    /// Whether it has its hands on its controls, else it was silent for long.
    pub is_here: bool,
    /// Whether the match waits for it.
    pub is_late: bool,
    /// Its link, as the server measures it; none: it is not connected, or nothing was told yet.
    pub link: Option<LinkQuality>,
}

impl Companion {
    /// All who play in a session's match, in the order of their numbers; nobody before its world is here.
    pub(super) fn all_of(session: &Session<Game, GameShow>) -> Vec<Companion> {
        let Some(world) = session.authority() else {
            return Vec::new();
        };
        let (seats, company) = (session.seats(), session.presence());
        let companion = |id: PlayerId| Companion {
            id,
            name: company
                .name(id)
                .map_or_else(|| id.to_string(), str::to_owned),
            is_local: seats.contains(&id),
            is_here: world.present().contains(id),
            is_late: session.waiting().contains(id),
            link: company.link(id),
        };
        world.seated().iter().map(companion).collect()
    }
}

/// Cues and notes that wait for the view (law *Bounded*).
const WAITING_MAX: usize = 4_096;

/// What one advance brings, until the view takes it. Bounded: a view that takes none loses the oldest.
#[derive(Default)]
pub(super) struct News {
    pub(super) shown: Vec<(ShowKey, Placed)>,
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
