//! What an operator does about one identity: out, and pardoned.
//!
//! Invariant: whoever is removed keeps nothing here: no session, no pending takeover, no seat.

use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;

impl<S: Simulation> Match<S> {
    /// Removes an identity: its sessions are told why, whoever of it dials is sent away, and its seats are free. For
    /// [`CloseCode::Kicked`] it stays out of this match until it is [pardoned](Self::pardon) or the match ends. Whether it
    /// was here.
    pub fn remove_identity(&mut self, identity: &str, code: CloseCode) -> bool {
        let mut was_here = false;
        while let Some(at) = self
            .people
            .peers
            .iter()
            .position(|p| p.identity == identity)
        {
            was_here = true;
            self.leave(at, code);
        }
        self.dismiss_takeovers_of(identity, code);
        while let Some((_, player)) = self
            .people
            .identities
            .iter()
            .find(|(name, _)| name == identity)
        {
            let player = *player;
            if !was_here {
                self.diagnostics.tally.removal(code);
            }
            was_here = true;
            self.free(player);
        }
        if was_here {
            let now = self.clock.now;
            self.people.away.bar(now, identity, code);
        }
        was_here
    }

    /// Lets an identity back in that was kicked from this match. Whether it was.
    pub fn pardon(&mut self, identity: &str) -> bool {
        self.people.away.pardon(identity)
    }
}
