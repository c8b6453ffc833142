//! Who dials while another session of the same identity lives: nothing changes hands before it speaks.
//!
//! ```text
//!  connect ─▶ the identity has a session? ── no ──▶ Greeting, as ever
//!                       │ yes
//!                       ▼
//!                    a caller ── hello that fits ──▶ takes over: the old session is closed, this one greets
//!                       └─ nothing for 5 s, too many callers, the transport gone ──▶ forgotten
//! ```
//!
//! A client whose server was silent dials by another path and goes on hearing the old one. Whichever answers first wins,
//! and the client says which by greeting, or not. Invariant: so both ends agree on one session, and an attempt that its
//! client gave up costs the session that it has nothing.

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::bounds::HELLO_WITHIN;
use twinstep_protocol::lineage::Stamp;
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;
use crate::takeover::PendingTakeover;
use crate::tally::JoinResult;
use crate::up;
use twinstep_protocol::identity::SessionId;

/// Callers of one identity: a client dials by at most so many paths at once. One more replaces the oldest.
const CALLERS_MAX: usize = 3;

impl<S: Simulation> Match<S> {
    /// A session of `seats` local players begins. The same identity gets the same players as before. If it has a session
    /// already, that one goes on until this one says hello, and is taken over then. Who was removed stays out for a
    /// while: 30 s for being too slow, in play or with a world that did not come on while others wanted its seats, 60 s for
    /// strikes, and for the match if it was kicked.
    ///
    /// # Errors
    /// Why not. Whoever is in the match, or on its way into it, is as before.
    pub fn connect(
        &mut self,
        now: Duration,
        peer: SessionId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        self.call(now, peer, (identity, None), seats)
    }

    /// As [`connect`](Match::connect): who it is, and the stamp of the ticket that says so, if one does.
    pub(super) fn call(
        &mut self,
        now: Duration,
        peer: SessionId,
        (identity, came_by): (&str, Option<Stamp>),
        seats: usize,
    ) -> Result<(), CloseCode> {
        let now = self.clock.reach(now);
        if let Some(code) = self.closed {
            return Err(code);
        }
        if self.people.session_of(identity, seats == 0).is_none() {
            let entered = self.enter(now, peer, (identity, came_by), seats);
            if let Err(code) = entered {
                self.diagnostics.tally.join(JoinResult::of(code));
            }
            return entered;
        }
        let own = |takeover: &PendingTakeover| takeover.identity == identity;
        if self
            .people
            .takeovers
            .iter()
            .filter(|takeover| own(takeover))
            .count()
            == CALLERS_MAX
            && let Some(oldest) = self.people.takeovers.iter().position(own)
        {
            self.dismiss(oldest, CloseCode::TakenOver);
        }
        self.people.takeovers.push(PendingTakeover {
            id: peer,
            identity: identity.to_owned(),
            seats,
            came_by,
            since: now,
        });
        Ok(())
    }

    /// Hears a caller; its place among the sessions, if it has taken its seats over.
    pub(super) fn handle_takeover(
        &mut self,
        now: Duration,
        peer: SessionId,
        bytes: &[u8],
    ) -> Option<usize> {
        let at = self
            .people
            .takeovers
            .iter()
            .position(|takeover| takeover.id == peer)?;
        let heard = match up::greeting(bytes) {
            Ok(heard) => heard,
            Err(_) => {
                self.diagnostics.stats.malformed += 1;
                self.strike_takeover(now, at);
                return None;
            }
        };
        match heard {
            up::Greeting::Hello(hello) => {
                if let Some(code) = self.origin.hello.refusal(&hello) {
                    self.dismiss(at, code);
                    return None;
                }
            }
            // Its greeting was lost: whoever was on the way back leaves.
            up::Greeting::Leave => {
                let takeover = &self.people.takeovers[at];
                match self
                    .people
                    .session_of(&takeover.identity, takeover.seats == 0)
                {
                    Some(session) => self.leave(session, CloseCode::Left),
                    None => self.dismiss(at, CloseCode::Left),
                }
                return None;
            }
            up::Greeting::Other => return None,
        }
        let PendingTakeover {
            identity,
            seats,
            came_by,
            ..
        } = self.people.takeovers.remove(at);
        if let Err(code) = self.enter(now, peer, (&identity, came_by), seats) {
            self.diagnostics.tally.join(JoinResult::of(code));
            self.say_closed(peer, code);
            return None;
        }
        self.people.position(peer)
    }

    /// A caller broke the protocol: the bound is the identity's.
    fn strike_takeover(&mut self, now: Duration, at: usize) {
        let takeover = &self.people.takeovers[at];
        let session = self
            .people
            .session_of(&takeover.identity, takeover.seats == 0);
        match session {
            None => self.dismiss(at, CloseCode::Strikes),
            Some(session) if self.people.peers[session].limits.strike(now) => {
                self.leave(session, CloseCode::Strikes);
            }
            Some(_) => {}
        }
    }

    /// Forgets a caller whose transport is gone.
    pub(super) fn forget_takeover(&mut self, peer: SessionId) {
        if let Some(at) = self.people.takeovers.iter().position(|c| c.id == peer) {
            self.people.takeovers.remove(at);
            self.diagnostics.tally.join(JoinResult::Gone);
        }
    }

    /// Closes all callers of an identity, which is removed.
    pub(super) fn dismiss_takeovers_of(&mut self, identity: &str, code: CloseCode) {
        while let Some(at) = self
            .people
            .takeovers
            .iter()
            .position(|c| c.identity == identity)
        {
            self.dismiss(at, code);
        }
    }

    /// Closes the callers that came by a ticket which has become out of date: they speak for nobody any more.
    pub(super) fn dismiss_outdated(&mut self, identity: &str, watches: bool) {
        let is_outdated = |this: &Self, takeover: &PendingTakeover| {
            takeover.identity == identity
                && (takeover.seats == 0) == watches
                && takeover
                    .came_by
                    .is_some_and(|stamp| this.people.is_superseded(identity, watches, &stamp))
        };
        while let Some(at) = self
            .people
            .takeovers
            .iter()
            .position(|c| is_outdated(self, c))
        {
            self.dismiss(at, CloseCode::Superseded);
        }
    }

    /// Closes the callers that say nothing.
    pub(super) fn end_silent_takeovers(&mut self, now: Duration) {
        let waits = |takeover: &PendingTakeover| now.saturating_sub(takeover.since) > HELLO_WITHIN;
        while let Some(at) = self.people.takeovers.iter().position(waits) {
            self.dismiss(at, CloseCode::JoinTooSlow);
        }
    }

    pub(super) fn dismiss(&mut self, at: usize, code: CloseCode) {
        let takeover = self.people.takeovers.remove(at);
        self.diagnostics.tally.join(JoinResult::of(code));
        self.say_closed(takeover.id, code);
    }
}
