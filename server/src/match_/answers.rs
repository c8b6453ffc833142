//! Queries and who answers them: the resolver, or the client of the player who asked.
//!
//! ```text
//!  asked ──▶ the server resolves ─────────────────────────────────────────▶ outcome in the next frame
//!    └─────▶ its owner's client answers ──▶ the referee admits? ── yes ──▶ ...
//!                │ silent for owner_ticks, gone      │ no
//!                └──────────────┬────────────────────┘
//!                               ▼ the server resolves
//! ```
//!
//! Law **One door**: whoever decides, the outcome enters as an action of a frame, once.

use twinstep_core::bounds::owner_ticks;
use twinstep_core::frame::Answer;
use twinstep_core::{Key, OpenQuery, PlayerId, Simulation, Tick};

use super::Match;
use crate::config::AnsweredBy;
use crate::outbox::JobId;
use crate::peer::{Peer, SessionStage};

impl<S: Simulation> Match<S> {
    /// What has been asked is answered: by the resolver, or left to its owner's client.
    pub(super) fn resolve(&mut self, asked: impl Fn(&OpenQuery<S::Query>) -> bool) {
        for at in 0..self.world.current.open_queries().len() {
            let open = &self.world.current.open_queries()[at];
            if !asked(open) {
                continue;
            }
            self.diagnostics.stats.queries += 1;
            let name = (open.asked, open.key);
            if self.config.answered_by == AnsweredBy::Owner && self.owner_plays(open.key) {
                self.asking.owed.push(name);
            } else {
                self.resolve_here(name);
            }
        }
    }

    /// What a job of the resolver returned; `None`: it failed. Late answers are ignored.
    pub fn complete(&mut self, job: JobId, outcome: Option<S::Outcome>) {
        if let Some((asked, key)) = self.asking.queries.retire(job) {
            self.asking
                .answer((asked, key), outcome, &mut self.diagnostics);
        }
    }

    fn owner_plays(&self, key: Key) -> bool {
        key.owner().is_some_and(|owner| {
            let plays = |p: &Peer| p.stage == SessionStage::Playing && p.players.contains(&owner);
            self.people.peers.iter().any(plays)
        })
    }

    /// The server's own resolver answers.
    fn resolve_here(&mut self, query: (Tick, Key)) {
        let context = self.world.context(&self.people.views);
        self.asking
            .resolve(query, &context, &mut self.diagnostics, &mut self.outbox);
    }

    /// What owners owe for too long, and what they can no longer give, is the server's to answer.
    pub(super) fn answer_instead(&mut self) {
        if self.asking.owed.is_empty() {
            return;
        }
        let next = self.world.current.tick();
        let patience = owner_ticks(self.world.current.turn().cadence.tick());
        for at in (0..self.asking.owed.len()).rev() {
            let (asked, key) = self.asking.owed[at];
            if next - asked >= patience || !self.owner_plays(key) {
                self.asking.owed.swap_remove(at);
                self.resolve_here((asked, key));
            }
        }
    }

    /// Looks at what a player's client answered. What is not owed is late, doubled, or somebody
    /// else's: nothing is said of it.
    pub(super) fn take_answers(&mut self, player: PlayerId) {
        while let Some(answer) = self.seats[player.index()].answers.pop() {
            let name = (answer.asked, answer.key);
            if !self.asking.take_owed(name) {
                continue;
            }
            // What cannot be sealed is no author's mistake here: its client said so.
            let outcome = answer.outcome.as_ref();
            let is_sealable =
                outcome.is_some_and(|outcome| self.asking.queries.is_sealable(outcome));
            if is_sealable && self.admits(player, &answer) {
                self.diagnostics.stats.owner_answers += 1;
                self.asking
                    .answer(name, answer.outcome, &mut self.diagnostics);
            } else {
                self.diagnostics.stats.forged_answers += 1;
                self.resolve_here(name);
            }
        }
    }

    fn admits(&mut self, by: PlayerId, answer: &Answer<S::Outcome>) -> bool {
        let context = self.world.context(&self.people.views);
        let panics = &mut self.diagnostics.panics;
        let admits = self.sealing.admits_answer(&context, by, answer, panics);
        self.diagnostics.note_panics();
        admits
    }
}
