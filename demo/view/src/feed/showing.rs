//! [`Showing`]: which of a session's two worlds is shown, the prediction or the authority, and whether smoothed.
//!
//! Invariant: it only looks. Switching changes nothing of the match or of what is sent.

use std::time::Duration;

use powderkeg_game::{Game, GameShow};
use twinstep_client::Session;
use twinstep_core::world::World;

use super::lagged::Lagged;
use super::news::News;

/// See the [module](self).
pub(super) struct Showing {
    lagged: Lagged,
    predicts: bool,
    smooths: bool,
}

impl Showing {
    /// The prediction, smoothed.
    pub(super) fn new() -> Showing {
        Showing {
            lagged: Lagged::new(GameShow),
            predicts: true,
            smooths: true,
        }
    }

    /// The world that is shown.
    pub(super) fn world<'s>(
        &self,
        session: &'s Session<Game, GameShow>,
    ) -> Option<&'s World<Game>> {
        if self.predicts {
            session.prediction()
        } else {
            session.authority()
        }
    }

    /// Takes cues and picture from a session that has just been advanced.
    pub(super) fn take(
        &mut self,
        now: Duration,
        session: &mut Session<Game, GameShow>,
        news: &mut News,
    ) {
        // Said each time: the session has no picture before it plays.
        session.set_smooths(self.smooths);
        while let Some(event) = session.poll_cue() {
            if self.predicts {
                news.cue(event);
            } else {
                self.lagged.hear(event, |event| news.cue(event));
            }
        }
        if let Some(authority) = session.authority() {
            self.lagged.advance(now, authority);
        }
        news.shown.clear();
        if self.predicts {
            news.shown.extend(session.shown());
        } else {
            news.shown.extend(self.lagged.shown(now));
        }
    }

    pub(super) fn predicts(&self) -> bool {
        self.predicts
    }

    pub(super) fn set_predicts(&mut self, predicts: bool, news: &mut News) {
        self.predicts = predicts;
        if predicts {
            self.lagged.release(|event| news.cue(event));
        }
    }

    pub(super) fn smooths(&self) -> bool {
        self.smooths
    }

    pub(super) fn set_smooths(&mut self, smooths: bool) {
        self.smooths = smooths;
    }
}
