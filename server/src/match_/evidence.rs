//! Who is at fault when a client's world differs: the journal knows.
//!
//! ```text
//!  client: "I differ at t" ─▶ healed at once
//!                          └▶ Output::Evidence ─▶ the host folds the journal to t, on a thread
//!                                                    │ equal to what this match held: its world is the client's evidence
//!                                                    │ not equal: this server differs, and the report says so
//!                                                    ╰ another one each time: the step is not pure; nobody's fault
//! ```
//!
//! The journal reaches farther back than the worlds in memory, and was written before anybody saw a tick.

use std::sync::Arc;

use twinstep_core::{Simulation, Tick};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::{Index, ReplayError};

use super::Match;
use crate::fold::{Folded, Unfolded};
use crate::incident::{Incident, Trouble};
use crate::peer::Verdict;
use twinstep_protocol::identity::SessionId;

impl<S: Simulation> Match<S> {
    /// Where the last worlds of its journal stand: for [`Folded::of`].
    #[must_use]
    pub fn last_worlds(&self) -> Index {
        Index::of_worlds(&self.origin.hello, self.journal.last_worlds())
    }

    /// The rules, and the handshake that a journal of this match must fit.
    #[must_use]
    pub fn origin(&self) -> (Arc<S::Rules>, Hello) {
        (self.world.rules.clone(), self.origin.hello.clone())
    }

    /// What [`Output::Evidence`](crate::outbox::Output::Evidence) asked for.
    pub fn hand_evidence(&mut self, peer: SessionId, tick: Tick, folded: Result<Folded, Unfolded>) {
        let differs = match &folded {
            Ok(folded) => {
                let held = self.world.digest_at(tick);
                folded.tick == tick && held.is_some_and(|held| held != folded.digest)
            }
            // What this match wrote down is not what its frames lead to.
            Err(Unfolded::Journal(ReplayError::Differs { .. })) => true,
            Err(_) => false,
        };
        let impure = matches!(folded, Err(Unfolded::Impure { .. }));
        let message = match &folded {
            Ok(_) => format!("the world of {tick} that was held is not the one of the journal"),
            Err(error) => error.to_string(),
        };
        if differs {
            self.diagnostics.stats.server_faults += 1;
            self.diagnostics
                .note(Incident::new(tick, Trouble::ServerDiffers, &message));
        }
        if impure {
            self.diagnostics.stats.impure_steps += 1;
            self.diagnostics
                .note(Incident::new(tick, Trouble::Impure, &message));
        }
        let Some(peer) = self.people.peer_mut(peer) else {
            return;
        };
        peer.inquiry.judge(Verdict {
            server_at_fault: differs,
            step_impure: impure,
        });
        if let Ok(folded) = folded
            && folded.tick == tick
        {
            peer.inquiry.correct(tick, folded.world, differs);
        }
    }

    /// Changes the state behind the protocol's back: for tests that plant a fault in the server.
    pub fn corrupt(&mut self) -> &mut S {
        self.world.current.corrupt()
    }
}
