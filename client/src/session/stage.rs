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

use std::sync::Arc;

use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::lobby::{Lobby, LobbyMessage};
use twinstep_protocol::packet::hello::{Holds, Waiting, Welcome};

use super::config::ReadRules;
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
    // `None` until the server has sent them.
    pub(crate) rules: Option<Arc<S::Rules>>,
    pub(crate) lobby: Antechamber<S>,
    pub(crate) hooks: Hooks<S, V>,
    /// The server's welcome; the world that it names is being downloaded.
    pub(crate) welcome: Option<Welcome>,
    pub(crate) start: Option<S>,
    pub(crate) tape: Option<Tape<S>>,
}

/// A session in its match that waits for the server to welcome it back.
pub(crate) struct Returning<S: Simulation, V: Show<S>> {
    pub(crate) playing: Box<Playing<S, V>>,
    pub(crate) welcome: Option<Welcome>,
    // The lobby of a match that was loaded during the absence and waits for its players.
    pub(crate) lobby: Antechamber<S>,
}

pub(crate) struct Over<S: Simulation> {
    pub(crate) why: SessionEnd,
    pub(crate) stats: SessionStats,
    pub(crate) tape: Option<Tape<S>>,
}

/// A session's state in a lobby.
pub(crate) struct Antechamber<S: Simulation> {
    pub(super) read_rules: Option<ReadRules<S>>,
    pub(super) shown: Option<Box<LobbyMessage>>,
    // Whether the lobby was received over the current path, which shows that the server knows the hello.
    pub(super) is_known: bool,
    pub(super) is_ready: bool,
    // The number of start requests over the current path.
    pub(super) starts: u32,
}

impl<S: Simulation> Antechamber<S> {
    pub(crate) fn new(read_rules: Option<ReadRules<S>>) -> Self {
        Antechamber {
            read_rules,
            shown: None,
            is_known: false,
            is_ready: false,
            starts: 0,
        }
    }

    pub(crate) fn view(&self) -> Option<&Lobby> {
        self.shown.as_ref().map(|shown| &shown.lobby)
    }

    pub(crate) fn seats(&self) -> &[PlayerId] {
        self.shown.as_ref().map_or(&[], |shown| &shown.seats)
    }

    // The [`Holds`] of a client that has no world.
    pub(crate) fn holds(&self) -> Holds {
        match self.read_rules {
            Some(_) => Holds::AnyRules,
            None => Holds::Nothing,
        }
    }

    pub(crate) fn leave(&mut self) {
        (self.shown, self.is_known) = (None, false);
    }

    // The server of another path does not know the hello, and an old request must not start the match later.
    pub(crate) fn greet_again(&mut self) {
        (self.is_known, self.starts) = (false, 0);
    }

    pub(crate) fn ask_start(&mut self) {
        self.starts = self.starts.saturating_add(1);
    }

    // `None` if the server still needs the hello. `rules` is the digest of the client's rules.
    pub(crate) fn waiting(&self, rules: u64) -> Option<Waiting> {
        let lobby = self.view().filter(|_| self.is_known)?;
        let has_rules = lobby.rules == rules;
        Some(Waiting {
            choice: if has_rules { lobby.choice } else { 0 },
            ready: has_rules && self.is_ready,
            starts: self.starts,
        })
    }
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

    pub(crate) fn antechamber(&self) -> Option<&Antechamber<S>> {
        match self {
            Stage::Joining(joining) => Some(&joining.lobby),
            Stage::Returning(returning) => Some(&returning.lobby),
            Stage::Playing(_) | Stage::Closed(_) => None,
        }
    }

    pub(crate) fn antechamber_mut(&mut self) -> Option<&mut Antechamber<S>> {
        match self {
            Stage::Joining(joining) => Some(&mut joining.lobby),
            Stage::Returning(returning) => Some(&mut returning.lobby),
            Stage::Playing(_) | Stage::Closed(_) => None,
        }
    }

    // The welcome of a session whose world is being downloaded.
    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        match self {
            Stage::Joining(joining) => joining.welcome.as_ref(),
            Stage::Returning(returning) => returning.welcome.as_ref(),
            Stage::Playing(_) | Stage::Closed(_) => None,
        }
    }

    /// Starts playing and recording from `world`. Has no effect unless the session is joining.
    pub(crate) fn begin(&mut self, welcome: Welcome, world: World<S>, rules: Arc<S::Rules>) {
        self.change(|stage| match stage {
            Stage::Joining(joining) => {
                let mut playing = Box::new(Playing::new(welcome, world, rules, joining.hooks));
                playing.replica.tape = joining.tape;
                playing.restart_tape();
                Stage::Playing(playing)
            }
            stage => stage,
        });
    }

    /// Starts to reconnect over another path. Has no effect unless the session is in its match.
    pub(crate) fn go_back(&mut self) {
        self.change(|stage| match stage {
            Stage::Playing(playing) => Stage::Returning(Returning {
                playing,
                welcome: None,
                // The session keeps the rules with which it has played.
                lobby: Antechamber::new(None),
            }),
            Stage::Returning(mut returning) => {
                returning.welcome = None;
                returning.lobby.greet_again();
                Stage::Returning(returning)
            }
            stage => stage,
        });
    }

    /// Puts a reconnecting session back into its match. Has no effect in other stages.
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
