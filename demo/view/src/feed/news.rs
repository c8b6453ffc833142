//! [`News`]: what one advance of a feed brings, until the view takes it. Both sources write into it: a session that
//! plays, and a replay.
//!
//! Invariant: cues and notes are bounded.

use std::collections::VecDeque;

use powderkeg_game::{Cue, ShowKey};
use twinstep_client::cues::CueEvent;
use twinstep_client::smooth::Placed;

use super::notice::Note;

/// Cues and notes that wait for the view; a view that takes none loses the oldest (law *Bounded*).
const WAITING_MAX: usize = 4_096;

/// See the [module](self).
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
