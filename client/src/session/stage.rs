//! [`Stage`]: a session's life, each stage with what it needs and no other.
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
//! Invariant: a stage changes in here and nowhere else; a closed session stays closed.

use twinstep_core::Simulation;
use twinstep_core::world::World;
use twinstep_protocol::packet::hello::Welcome;

use super::events::SessionEnd;
use super::playing::{Hooks, Playing};
use crate::picture::Show;
use crate::stats::SessionStats;
use crate::tape::Tape;

/// See the [module](self).
pub(crate) enum Stage<S: Simulation, V: Show<S>> {
    /// Nothing agreed, or a world on its way.
    Joining(Box<Joining<S, V>>),
    /// In its match.
    Playing(Box<Playing<S, V>>),
    /// On its way back into its match, over another path.
    Returning(Returning<S, V>),
    /// Over.
    Closed(Box<Over<S>>),
}

/// A session without a match.
pub(crate) struct Joining<S: Simulation, V: Show<S>> {
    pub(crate) hooks: Hooks<S, V>,
    /// The server's welcome; the world that it names is on its way.
    pub(crate) welcome: Option<Welcome>,
    /// What the match may have begun with.
    pub(crate) start: Option<S>,
    /// The record of the match that is to come.
    pub(crate) tape: Option<Tape<S>>,
}

/// A session that plays on by itself until its server knows it again.
pub(crate) struct Returning<S: Simulation, V: Show<S>> {
    pub(crate) playing: Box<Playing<S, V>>,
    /// The server's welcome, if a world follows.
    pub(crate) welcome: Option<Welcome>,
}

/// What is left of a session.
pub(crate) struct Over<S: Simulation> {
    pub(crate) why: SessionEnd,
    /// What was measured until then.
    pub(crate) stats: SessionStats,
    pub(crate) tape: Option<Tape<S>>,
}

impl<S: Simulation, V: Show<S>> Stage<S, V> {
    /// The match that it plays, also while it is on its way back.
    pub(crate) fn playing(&self) -> Option<&Playing<S, V>> {
        match self {
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => Some(playing),
            Stage::Joining(_) | Stage::Closed(_) => None,
        }
    }

    /// The match that it plays, also while it is on its way back.
    pub(crate) fn playing_mut(&mut self) -> Option<&mut Playing<S, V>> {
        match self {
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => Some(playing),
            Stage::Joining(_) | Stage::Closed(_) => None,
        }
    }

    /// A session that joins plays from `world` on. Its record begins there. Another session stays as it is.
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

    /// A session in its match greets the server anew, over another path. Another session stays as it is.
    pub(crate) fn go_back(&mut self) {
        self.change(|stage| match stage {
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                let welcome = None;
                Stage::Returning(Returning { playing, welcome })
            }
            stage => stage,
        });
    }

    /// The server knows a session that was on its way back. Another session stays as it is.
    pub(crate) fn found(&mut self) {
        self.change(|stage| match stage {
            Stage::Returning(Returning { playing, .. }) => Stage::Playing(playing),
            stage => stage,
        });
    }

    /// The session is over; what it measured and recorded stays.
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
        // What stands here meanwhile is seen by nobody.
        let meanwhile = Stage::Closed(Box::new(Over {
            why: SessionEnd::NoWorld,
            stats: SessionStats::default(),
            tape: None,
        }));
        *self = next(std::mem::replace(self, meanwhile));
    }
}
