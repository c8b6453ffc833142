//! How turns are clocked: as the one asks for it whose machine or line needs the most, within what each may cost.
//!
//! ```text
//!  load, pauses, round trip ─▶ each session's tempo ─▶ asks for ticks, turns ─┬▶ the longest of each ─▶ cadence
//!  (heeded where it is late)         ▲                                        └▶ its own budget pays for what it asks
//!                                    ╰──── spent: asks for what its round trip needs alone
//! ```
//!
//! Invariant: what an identity pays does not depend on the others, and neither does what it may ask for. So however many
//! ask, each makes ticks longer for at most as long as its own budget lasts, and nobody is refused because of another one.

use twinstep_core::frame::PlayerSet;
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation};

use super::Match;
use crate::clock::WaitReason;
use crate::peer::{Peer, SessionStage};

impl<S: Simulation> Match<S> {
    /// The players whose machines or lines ask for longer ticks or turns than the others need: while there are any, the
    /// match is slower, or answers later, for their sake. With them goes what it cost.
    #[must_use]
    pub fn slowing(&self) -> PlayerSet {
        let asking = self
            .people
            .peers
            .iter()
            .filter(|peer| self.asks_for_more(peer));
        asking
            .flat_map(|peer| peer.players.iter().copied())
            .collect()
    }

    fn asks_for_more(&self, peer: &Peer) -> bool {
        peer.stage == SessionStage::Playing && !peer.rhythm.excess(&self.config).is_zero()
    }

    /// How the turn that begins now is clocked.
    pub(super) fn next_cadence(&mut self) -> Cadence {
        let (now, next) = (self.clock.now, self.world.current.tick());
        let last = self.world.current.turn().cadence;
        let budget = self.patience();
        let mut cadence = self.config.cadence();
        for peer in &mut self.people.peers {
            if peer.stage != SessionStage::Playing || peer.is_spectator() {
                peer.rhythm.forget_pauses();
                continue;
            }
            let fills = |player: &PlayerId| self.seats[player.index()].newest_by(now) < Some(next);
            if self.config.command_delay == 0 && peer.players.iter().any(fills) {
                peer.note_late(now);
            }
            let excess = peer.rhythm.excess(&self.config);
            peer.limits.slowed.add(now, excess, budget.window);
            let is_spent = peer.limits.slowed.spent(now, budget.window) >= budget.spent_max;
            let rtt = peer.link.rtt().unwrap_or_default();
            let asked = peer.rhythm.ask(now, &self.config, last, rtt, is_spent);
            cadence.turn_ticks = cadence.turn_ticks.max(asked.turn_ticks);
            cadence.tick_ns = cadence.tick_ns.max(asked.tick_ns);
        }
        cadence.turn_ticks = self.degradation.turn_ticks(cadence.turn_ticks);
        cadence
    }

    /// The match has waited, and does not any more: that was a pause for the sessions that were missing.
    pub(super) fn note_paused(&mut self, wait: WaitReason) {
        let players = match wait {
            WaitReason::Batches(players) | WaitReason::Laggards(players) => players,
            // Nobody is to blame for the server's own restart.
            WaitReason::Return(_) => return,
        };
        let is_missing = |peer: &&mut Peer| peer.players.iter().any(|p| players.contains(*p));
        for peer in self.people.peers.iter_mut().filter(is_missing) {
            peer.rhythm.note_waited_for();
        }
    }
}
