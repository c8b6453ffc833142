//! Clients whose world is not the match's get another one.
//!
//! Healing goes first, with the current world, so that the player plays on; what the client needs to say where it
//! differed follows when it asks. Invariant: a client's word that it differs is trusted for nothing but this, and within
//! the bounds of its limits.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::{Simulation, Tick, codec};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::message;

use super::Match;
use crate::outbox::Output;

impl<S: Simulation> Match<S> {
    /// A client says that it differs at `tick`: its digest is trusted for nothing but this.
    pub(super) fn heal(&mut self, now: Duration, at: usize, tick: Tick) {
        if self.is_delayed(at) {
            // The current world is not for its eyes; it may join again.
            return self.close_peer(at, CloseCode::Desync);
        }
        if !self.send_world(now, at) {
            return;
        }
        let counts = self.people.peers[at].limits.note_desync(now);
        self.diagnostics.stats.desyncs += u64::from(counts);
        if self.journal.is_kept() {
            let peer = self.people.peers[at].id;
            self.outbox.push(Output::Evidence { peer, tick });
        }
        // Law Journal first: nobody has seen more than whole turns, so who differs later than these does not play fair.
        let began = self.world.current.turn().began;
        let shown = (tick <= began).then(|| self.world.world_at(tick)).flatten();
        let evidence = shown.and_then(|world| {
            let mut bytes = Vec::new();
            codec::append(world, &mut bytes).ok()?;
            Some((tick, Arc::from(bytes)))
        });
        self.people.peers[at].inquiry.begin(evidence);
    }

    /// Sends the current world to a client that cannot go on from frames, if it may have one now.
    pub(super) fn send_world(&mut self, now: Duration, at: usize) -> bool {
        if !self.people.peers[at].lane_out.is_idle() {
            return false; // On its way.
        }
        match self.people.peers[at].limits.may_heal(now) {
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
        self.people.peers[at]
            .lane_out
            .push(message::HEAL, world.bytes)
            .is_ok()
    }

    pub(super) fn show_evidence(&mut self, at: usize, tick: Tick) {
        let peer = &mut self.people.peers[at];
        if let Some(world) = peer.inquiry.take_evidence(tick)
            && peer.lane_out.push(message::EVIDENCE, world).is_ok()
        {
            peer.inquiry.expect_report();
        }
    }
}
