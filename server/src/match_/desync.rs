//! Healing of clients whose world differs from the match's, and the search in the journal for the side at fault.
//!
//! ```text
//!  client: "I differ at t" ─▶ healed at once
//!                           └▶ Output::Evidence ─▶ the host folds the journal to t, on a thread
//!                                                     │ equal to this match's world of t: that is the client's evidence
//!                                                     │ not equal: this server differs, and the report says so
//!                                                     ╰ a different world on each replay: the step is not pure; no side is at fault
//! ```
//!
//! A journal covers more of the past than the worlds in memory, and each tick is written to it before any client sees
//! the tick.
//!
//! The client is healed first, with the current world, so that its player can continue. The evidence that the client
//! needs to find the difference follows on request. Invariant: a client's report of a desync has no other effect, and
//! counts against the limits of its identity.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::{Simulation, Tick, codec};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::packet::message;
use twinstep_protocol::replay::{Index, ReplayError};

use super::Match;
use crate::fold::{FoldError, Folded};
use crate::incident::{Incident, Trouble};
use crate::outbox::Output;
use crate::peer::Verdict;
use twinstep_protocol::identity::SessionId;

impl<S: Simulation> Match<S> {
    /// Heals a client that reports that its world differs at `tick`, and keeps the evidence for its report.
    pub(super) fn heal(&mut self, now: Duration, at: usize, tick: Tick) {
        if self.is_delayed(at) {
            // The current world must not be shown to a delayed spectator; it may join again.
            return self.close_peer(at, CloseCode::Desync);
        }
        if !self.send_world(now, at) {
            return;
        }
        let counts = self.people[at].limits.record_desync(now);
        self.diagnostics.stats.desyncs += u64::from(counts);
        if self.journal.is_kept() {
            let peer = self.people[at].id;
            self.outbox.push(Output::Evidence { peer, tick });
        }
        // Law Journal first: clients have seen whole turns only, so a report of a difference after them is fabricated.
        let began = self.world.current.turn().began;
        let shown = (tick <= began).then(|| self.world.world_at(tick)).flatten();
        let evidence = shown.and_then(|world| {
            let mut bytes = Vec::new();
            codec::append(world, &mut bytes).ok()?;
            Some((tick, Arc::from(bytes)))
        });
        self.people[at].inquiry.begin(evidence);
    }

    /// Sends the current world to a client that cannot continue from frames. Returns `true` if it was sent.
    pub(super) fn send_world(&mut self, now: Duration, at: usize) -> bool {
        if !self.people[at].lane_out.is_idle() {
            return false; // A world is already on its way.
        }
        match self.people[at].limits.may_heal(now) {
            Some(true) => {}
            Some(false) => return false,
            None => {
                self.leave(at, CloseCode::Desync);
                return false;
            }
        }
        let Some(world) = self.snapshots.take(now, &self.world, &mut self.diagnostics) else {
            self.leave(at, CloseCode::WorldTooLarge);
            return false;
        };
        self.diagnostics.stats.heals += 1;
        self.world.digests.want();
        self.people[at]
            .lane_out
            .push(message::HEAL, world.bytes)
            .is_ok()
    }

    pub(super) fn show_evidence(&mut self, at: usize, tick: Tick) {
        let peer = &mut self.people[at];
        if let Some(world) = peer.inquiry.take_evidence(tick)
            && peer.lane_out.push(message::EVIDENCE, world).is_ok()
        {
            peer.inquiry.expect_report();
        }
    }

    /// An index of the last worlds in the match's journal, for [`Folded::compute`].
    #[must_use]
    pub fn last_worlds(&self) -> Index {
        Index::of_worlds(&self.origin.hello, self.journal.last_worlds())
    }

    /// The rules, and the handshake that a journal of this match must fit.
    #[must_use]
    pub fn origin(&self) -> (Arc<S::Rules>, Hello) {
        (self.world.rules.clone(), self.origin.hello.clone())
    }

    /// Takes the result of an [`Output::Evidence`](crate::outbox::Output::Evidence).
    pub fn hand_evidence(
        &mut self,
        peer: SessionId,
        tick: Tick,
        folded: Result<Folded, FoldError>,
    ) {
        let differs = match &folded {
            Ok(folded) => {
                let held = self.world.digest_at(tick);
                folded.tick == tick && held.is_some_and(|held| held != folded.digest)
            }
            // The journal's own digests differ from the worlds that result from its frames.
            Err(FoldError::Journal(ReplayError::Differs { .. })) => true,
            Err(_) => false,
        };
        let impure = matches!(folded, Err(FoldError::Impure { .. }));
        let message = match &folded {
            Ok(_) => format!("the server's world of {tick} differs from the journal's"),
            Err(error) => error.to_string(),
        };
        if differs {
            self.diagnostics.stats.server_faults += 1;
            self.diagnostics
                .report(Incident::new(tick, Trouble::ServerDiffers, &message));
        }
        if impure {
            self.diagnostics.stats.impure_steps += 1;
            self.diagnostics
                .report(Incident::new(tick, Trouble::Impure, &message));
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

    /// The state, for tests that plant a fault in the server by changing it outside the protocol.
    pub fn corrupt(&mut self) -> &mut S {
        self.world.current.corrupt()
    }
}
