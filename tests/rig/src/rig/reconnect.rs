//! Clients that lose their server and reconnect, with the tickets that a host would issue.

use twinstep_client::Event;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{LegProfile, LinkProfile, SimLink};
use twinstep_server::{Match, MatchConfig, Resolver, SessionId};

use super::Rig;
use super::hooks::{Judge, watched};
use super::play::Play;

impl<S: Play> Rig<S> {
    pub fn cut(&mut self, client: usize) {
        let dead = LinkProfile::both(LegProfile::BLACKOUT);
        self.clients[client].place.line = SimLink::new(dead, 1);
        let now = self.now;
        if self.clients[client].awaited.out_since.is_none() {
            self.clients[client].cut_at.get_or_insert(now);
        }
        self.disturb(client, self.now);
    }

    pub fn hang_up(&mut self, client: usize) {
        let peer = self.clients[client].peer();
        self.match_.disconnect(peer);
    }

    /// Continues a client's session over a new transport, with a reconnect ticket. A closed session is restarted.
    ///
    /// # Panics
    /// If the match refuses an honest client that is not barred as too slow.
    pub fn redial(&mut self, which: usize) {
        if self.clients[which].session.closed().is_some() {
            // A closed session cannot be reused. A client that was removed after its link broke does not know that yet.
            return self.restart(which);
        }
        let Some(peer) = self.dial_again(which) else {
            return;
        };
        let line = self.new_line(peer);
        let passes = self.config.passes;
        let (now, client) = (self.now, &mut self.clients[which]);
        client.place.peer = peer;
        client.place.relink(line, passes);
        client.session.reconnect(client.time(now));
        self.disturb(which, now);
    }

    /// Ends a client's process without a goodbye, and starts a new process with a reconnect ticket.
    ///
    /// # Panics
    /// If the match refuses an honest client that is not barred as too slow.
    pub fn restart(&mut self, which: usize) {
        let Some(peer) = self.dial_again(which) else {
            return;
        };
        let (line, session) = (self.new_line(peer), self.new_session(peer));
        let passes = self.config.passes;
        let client = &mut self.clients[which];
        client.place.peer = peer;
        client.place.relink(line, passes);
        client.session = session;
        client.sent.clear();
        client.given_at.clear();
        client.settled = 0;
        client.place.forget_cues();
        client.compared = None;
        client.gone_to = (0, 0);
        client.decided = None;
        client.flipped = false;
        client.restarted = true;
        self.disturb(which, self.now);
    }

    /// Cuts the server's power. Only the first `kept` bytes of the journal survive, so clients may have seen ticks that
    /// no longer exist. Every transport is dead. Another server resumes the match at once.
    pub fn lose_power(&mut self, kept: usize) {
        let policies = self.config.policies.clone();
        let journal = &self.journal[..kept];
        let resumed = Match::resume(policies, journal, self.rules.clone(), self.new_resolver())
            .expect("a truncated journal can be resumed");
        self.journal.truncate(resumed.keep_bytes as usize);
        self.continue_with(resumed.match_);
    }

    /// Restarts the server without its journal, with a new match under the same tickets. Every transport is dead.
    pub fn start_over(&mut self, policies: MatchConfig) {
        let sim = S::start(&self.rules, self.config.seed);
        let resolver = self.new_resolver();
        let match_ = Match::new(policies, sim, self.rules.clone(), resolver).expect("it starts");
        self.continue_with(match_);
    }

    fn new_resolver(&self) -> impl Resolver<S> {
        let (count, asked) = (&self.resolver_count, &self.asked);
        watched::<S>(&self.rules, self.config.seed, count, asked)
    }

    fn continue_with(&mut self, match_: Match<S>) {
        self.match_ = match_;
        self.match_.set_referee(Judge);
        self.elsewhere.serve(&mut self.scene.match_);
        let next = self.match_.world().tick();
        self.digests.truncate(next.0 as usize);
        self.digests.push(self.match_.digest());
        self.jobs.forget();
        self.disturb_all(self.now);
        for client in 0..self.clients.len() {
            self.cut(client);
        }
    }

    /// Dials over a new transport with a reconnect ticket. An honest client must be admitted; other clients may be
    /// barred.
    fn dial_again(&mut self, client: usize) -> Option<SessionId> {
        let (identity, seats) = self.ticket_of(client);
        let mut dialled = self.dial(&identity, seats);
        if dialled == Err(CloseCode::Full) {
            self.repeat_departures();
            dialled = self.dial(&identity, seats);
        }
        let now = self.now;
        let theirs = &mut self.clients[client];
        theirs.arrived_at = now;
        theirs.packets_sent = 0;
        theirs.mark_alive(now);
        if dialled == Err(CloseCode::TooSlow) && theirs.awaited.out_since.is_none() {
            self.record_removal(client);
        }
        if dialled == Err(CloseCode::TooSlow) && self.clients[client].awaited.out_since.is_some() {
            return None;
        }
        if self.clients[client].role.is_honest() {
            let incidents = self.incidents.join("\n");
            Some(dialled.unwrap_or_else(|code| {
                panic!("lockout: {identity} has a valid ticket, but {code:?}; {incidents}")
            }))
        } else {
            dialled.ok()
        }
    }

    /// Repeats the goodbyes of clients that left. A goodbye that was not in the journal when the server was killed is
    /// undone, so the match may keep a seat for a client that will not reconnect.
    fn repeat_departures(&mut self) {
        for (identity, seats) in self.left.clone() {
            if let Ok(peer) = self.dial(&identity, seats) {
                self.match_.kick(peer, CloseCode::Left);
            }
        }
        self.drain();
    }

    fn ticket_of(&self, client: usize) -> (String, usize) {
        let client = &self.clients[client];
        (client.identity.clone(), client.seats)
    }

    #[must_use]
    pub fn returns(&self, client: usize) -> (usize, usize) {
        let events = &self.clients[client].events;
        let count = |wanted: bool| {
            let is = |event: &&Event| matches!(event, Event::Reconnected { resumed, .. } if *resumed == wanted);
            events.iter().filter(is).count()
        };
        (count(true), count(false))
    }
}
