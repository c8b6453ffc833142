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
use crate::config::Resolves;
use crate::hooks::Resolution;
use crate::incident::{Incident, Trouble};
use crate::outbox::{Item, JobId};
use crate::peer::{Peer, Stage};

impl<S: Simulation> Match<S> {
    /// What has been asked is answered: by the resolver, or left to its owner's client.
    pub(super) fn resolve(&mut self, asked: impl Fn(&OpenQuery<S::Query>) -> bool) {
        for at in 0..self.truth.world.open_queries().len() {
            let open = &self.truth.world.open_queries()[at];
            if !asked(open) {
                continue;
            }
            self.noted.stats.queries += 1;
            let name = (open.asked, open.key);
            if self.config.resolves == Resolves::Owner && self.owner_plays(open.key) {
                self.owed.push(name);
            } else {
                self.resolve_here(name);
            }
        }
    }

    /// What a job of the resolver returned; `None`: it failed. Late answers are ignored.
    pub fn complete(&mut self, job: JobId, outcome: Option<S::Outcome>) {
        if let Some((asked, key)) = self.queries.retire(job) {
            self.answer(asked, key, outcome);
        }
    }

    /// Notes an answer. That it cannot be sent is an author's mistake, and is told as one.
    ///
    /// # Panics
    /// In a debug build, if the outcome is over its bound or does not come back from its bytes: an author is to hear of
    /// it before players do.
    fn answer(&mut self, asked: Tick, key: Key, outcome: Option<S::Outcome>) {
        if let Err(error) = self.queries.answer(asked, key, outcome) {
            self.noted.stats.outcomes_unsent += 1;
            let message = format!("the outcome of the query {key} of {asked}: {error}");
            self.noted
                .note(Incident::new(asked, Trouble::Outcome, &message));
            debug_assert!(false, "{message}");
        }
    }

    fn owner_plays(&self, key: Key) -> bool {
        key.owner().is_some_and(|owner| {
            let plays = |p: &Peer| p.stage == Stage::Playing && p.players.contains(&owner);
            self.people.peers.iter().any(plays)
        })
    }

    /// The server's own resolver answers. If it panics, nobody does.
    fn resolve_here(&mut self, (asked, key): (Tick, Key)) {
        let look = self.truth.look(&self.people.views);
        let open = self.truth.world.open_queries();
        let Some(open) = open.iter().find(|o| (o.asked, o.key) == (asked, key)) else {
            return;
        };
        let (resolver, panics) = (&mut self.resolver, &mut self.noted.panics);
        let resolved = panics.catch(asked, Trouble::Resolver, || {
            resolver.resolve(&look, key, &open.query)
        });
        match resolved {
            Some(Resolution::Now(outcome)) => self.answer(asked, key, Some(outcome)),
            Some(Resolution::Later(work)) => {
                let id = self.queries.defer(asked, key);
                self.outbox.push(Item::Job(id, work));
            }
            Some(Resolution::Unanswered) | None => self.answer(asked, key, None),
        }
        self.noted.note_panics();
    }

    /// What owners owe for too long, and what they can no longer give, is the server's to answer.
    pub(super) fn answer_instead(&mut self) {
        if self.owed.is_empty() {
            return;
        }
        let next = self.truth.world.tick();
        let patience = owner_ticks(self.truth.world.turn().cadence.tick());
        for at in (0..self.owed.len()).rev() {
            let (asked, key) = self.owed[at];
            if next - asked >= patience || !self.owner_plays(key) {
                self.owed.swap_remove(at);
                self.resolve_here((asked, key));
            }
        }
    }

    /// Looks at what a player's client answered (seed row 51). What is not owed is late, doubled, or somebody
    /// else's: nothing is said of it.
    pub(super) fn take_answers(&mut self, player: PlayerId) {
        while let Some(answer) = self.seats[player.index()].answers.pop() {
            let name = (answer.asked, answer.key);
            let Some(at) = self.owed.iter().position(|owed| *owed == name) else {
                continue;
            };
            self.owed.swap_remove(at);
            // What cannot be sealed is no author's mistake here: its client said so.
            let outcome = answer.outcome.as_ref();
            let is_sealable = outcome.is_some_and(|outcome| self.queries.is_sealable(outcome));
            if is_sealable && self.admits(player, &answer) {
                self.noted.stats.owner_answers += 1;
                self.answer(answer.asked, answer.key, answer.outcome);
            } else {
                self.noted.stats.forged_answers += 1;
                self.resolve_here(name);
            }
        }
    }

    fn admits(&mut self, by: PlayerId, answer: &Answer<S::Outcome>) -> bool {
        let look = self.truth.look(&self.people.views);
        let panics = &mut self.noted.panics;
        let admits = self.sealing.admits_answer(&look, by, answer, panics);
        self.noted.note_panics();
        admits
    }
}
