//! [`Stage`]: the stages of a session. Each stage holds only its own state.
//!
//! ```text
//!                begin                       go_back
//!  Joining ───────────────▶ Playing ───────────────────────▶ Returning ──┐ go_back: over yet another path
//!     │                        │ ▲                             │  ▲ └────┘
//!     │ refused, too slow      │ └────────── found ────────────┤
//!     │                        │ left, kicked, desync          │ refused
//!     └────────── close ───────┴─────────▶ Closed ◀────────────┘
//! ```
//!
//! Invariant: a stage changes only in this file; a closed session stays closed.

use twinstep_core::Simulation;
use twinstep_core::world::World;
use twinstep_protocol::packet::hello::Welcome;

use super::events::SessionEnd;
use super::playing::{Hooks, Playing};
use crate::picture::Show;
use crate::stats::SessionStats;
use crate::tape::Tape;

pub(crate) enum Stage<S: Simulation, V: Show<S>> {
    Joining(Box<Joining<S, V>>),
    Playing(Box<Playing<S, V>>),
    Returning(Returning<S, V>),
    Closed(Box<Over<S>>),
}

pub(crate) struct Joining<S: Simulation, V: Show<S>> {
    pub(crate) hooks: Hooks<S, V>,
    /// The server's welcome; the world that it names is being downloaded.
    pub(crate) welcome: Option<Welcome>,
    pub(crate) start: Option<S>,
    pub(crate) tape: Option<Tape<S>>,
}

/// A session that continues its prediction until the server welcomes it back.
pub(crate) struct Returning<S: Simulation, V: Show<S>> {
    pub(crate) playing: Box<Playing<S, V>>,
    pub(crate) welcome: Option<Welcome>,
}

pub(crate) struct Over<S: Simulation> {
    pub(crate) why: SessionEnd,
    pub(crate) stats: SessionStats,
    pub(crate) tape: Option<Tape<S>>,
}

impl<S: Simulation, V: Show<S>> Stage<S, V> {
    pub(crate) fn playing(&self) -> Option<&Playing<S, V>> {
        match self {
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => Some(playing),
            Stage::Joining(_) | Stage::Closed(_) => None,
        }
    }

    pub(crate) fn playing_mut(&mut self) -> Option<&mut Playing<S, V>> {
        match self {
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => Some(playing),
            Stage::Joining(_) | Stage::Closed(_) => None,
        }
    }

    /// Begins to play, and to record, from `world`. Has no effect unless the session is joining.
    pub(crate) fn begin(&mut self, welcome: Welcome, world: World<S>) {
        self.change(|stage| match stage {
            Stage::Joining(joining) => {
                let mut playing = Box::new(Playing::new(welcome, world, joining.hooks));
                playing.replica.tape = joining.tape;
                playing.restart_tape();
                Stage::Playing(playing)
            }
            stage => stage,
        });
    }

    /// Begins to return over another path. Has no effect unless the session is in its match.
    pub(crate) fn go_back(&mut self) {
        self.change(|stage| match stage {
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                let welcome = None;
                Stage::Returning(Returning { playing, welcome })
            }
            stage => stage,
        });
    }

    /// Puts a returning session back into its match. Has no effect in other stages.
    pub(crate) fn found(&mut self) {
        self.change(|stage| match stage {
            Stage::Returning(Returning { playing, .. }) => Stage::Playing(playing),
            stage => stage,
        });
    }

    pub(crate) fn close(&mut self, why: SessionEnd, stats: SessionStats) {
        let over = |tape| Stage::Closed(Box::new(Over { why, stats, tape }));
        self.change(|stage| match stage {
            Stage::Joining(joining) => over(joining.tape),
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                over(playing.replica.tape)
            }
            Stage::Closed(over) => Stage::Closed(over),
        });
    }

    fn change(&mut self, next: impl FnOnce(Self) -> Self) {
        // A placeholder: `next` consumes the stage, and its result replaces this at once.
        let meanwhile = Stage::Closed(Box::new(Over {
            why: SessionEnd::NoWorld,
            stats: SessionStats::default(),
            tape: None,
        }));
        *self = next(std::mem::replace(self, meanwhile));
    }
}
