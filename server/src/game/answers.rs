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

use super::*;
use crate::config::Resolves;

impl<S: Simulation> Match<S> {
    /// What has been asked is answered: by the resolver, or left to its owner's client.
    pub(super) fn resolve(&mut self, asked: impl Fn(&OpenQuery<S::Query>) -> bool) {
        for at in 0..self.world.open_queries().len() {
            let open = &self.world.open_queries()[at];
            if !asked(open) {
                continue;
            }
            self.stats.queries += 1;
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
        self.queries.complete(job, outcome);
    }

    fn owner_plays(&self, key: Key) -> bool {
        key.owner().is_some_and(|owner| {
            let plays = |p: &Peer| p.stage == Stage::Playing && p.players.contains(&owner);
            self.peers.iter().any(plays)
        })
    }

    /// The server's own resolver answers. If it panics, nobody does.
    fn resolve_here(&mut self, (asked, key): (Tick, Key)) {
        let look = Look {
            world: &self.world,
            rules: &self.rules,
            history: &self.history,
            views: &self.views,
        };
        let open = self.world.open_queries();
        let Some(open) = open.iter().find(|o| (o.asked, o.key) == (asked, key)) else {
            return;
        };
        let resolver = &mut self.resolver;
        let resolved = catch_unwind(AssertUnwindSafe(|| {
            resolver.resolve(&look, key, &open.query)
        }));
        match resolved {
            Ok(Resolution::Now(outcome)) => self.queries.answer(asked, key, Some(outcome)),
            Ok(Resolution::Later(work)) => {
                let id = self.queries.defer(asked, key);
                self.outbox.push(Item::Job(id, work));
            }
            Ok(Resolution::Unanswered) => self.queries.answer(asked, key, None),
            Err(panic) => {
                self.stats.panics += 1;
                if self.incidents.len() < INCIDENTS_MAX {
                    let message = panic_message(&*panic);
                    self.incidents
                        .push(Incident::new(asked, Trouble::Resolver, message));
                }
                self.queries.answer(asked, key, None);
            }
        }
    }

    /// What owners owe for too long, and what they can no longer give, is the server's to answer.
    pub(super) fn answer_instead(&mut self) {
        if self.owed.is_empty() {
            return;
        }
        let next = self.world.tick();
        let patience = owner_ticks(self.world.turn().cadence.tick());
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
            if self.admits(player, &answer) {
                self.stats.owner_answers += 1;
                self.queries
                    .answer(answer.asked, answer.key, answer.outcome);
            } else {
                self.stats.forged_answers += 1;
                self.resolve_here(name);
            }
        }
    }

    fn admits(&mut self, by: PlayerId, answer: &Answer<S::Outcome>) -> bool {
        let open = self.world.open_queries();
        let query = open
            .iter()
            .find(|o| (o.asked, o.key) == (answer.asked, answer.key));
        let (Some(open), Some(outcome)) = (query, &answer.outcome) else {
            return false;
        };
        let look = Look {
            world: &self.world,
            rules: &self.rules,
            history: &self.history,
            views: &self.views,
        };
        let referee = &mut self.referee;
        catch_unwind(AssertUnwindSafe(|| {
            referee.admit_answer(&look, by, answer.key, &open.query, outcome)
        }))
        .unwrap_or(false)
    }
}
