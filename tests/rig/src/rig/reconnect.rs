//! Clients that lose their server and come back, as a host would let them.

use twinstep_client::Event;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{LegProfile, LinkProfile, SimLink};
use twinstep_server::{Match, MatchConfig, Resolver, SessionId};

use super::Rig;
use super::hooks::{Judge, watched};
use super::play::Play;

impl<S: Play> Rig<S> {
    /// A client's transport dies: nothing of it arrives any more at either end, and nobody is told.
    pub fn cut(&mut self, client: usize) {
        let dead = LinkProfile::both(LegProfile::BLACKOUT);
        self.clients[client].place.line = SimLink::new(dead, 1);
        let now = self.now;
        if self.clients[client].awaited.out_since.is_none() {
            self.clients[client].cut_at.get_or_insert(now);
        }
        self.disturb(client, self.now);
    }

    /// The server's host finds out that a client's transport is dead.
    pub fn hang_up(&mut self, client: usize) {
        let peer = self.clients[client].peer();
        self.game.disconnect(peer);
    }

    /// A client's session goes on over a new transport, from a new address, with a ticket to return with.
    ///
    /// # Panics
    /// If the match refuses it.
    pub fn redial(&mut self, which: usize) {
        if self.clients[which].session.closed().is_some() {
            // A session that is over stays over; one that was cut off before it was put out does not know of that.
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

    /// A client's process ends without a word, and another one begins with a ticket to return with.
    ///
    /// # Panics
    /// If the match refuses it.
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

    /// The server loses its power, and with it all of the journal but the first `kept` bytes: clients may have seen
    /// what did not happen. Every transport is dead; another server takes the match up at once.
    ///
    /// # Panics
    /// If that part of a journal cannot be taken up.
    pub fn lose_power(&mut self, kept: usize) {
        let policies = self.config.policies.clone();
        let journal = &self.journal[..kept];
        let resumed = Match::resume(policies, journal, self.rules.clone(), self.new_resolver())
            .expect("a journal that was cut off can be taken up");
        self.journal.truncate(resumed.keep_bytes as usize);
        self.go_on_with(resumed.match_);
    }

    /// The server is started anew without its journal, and runs another match under the same tickets. Every transport
    /// is dead.
    ///
    /// # Panics
    /// If the game cannot be started.
    pub fn start_over(&mut self, policies: MatchConfig) {
        let sim = S::start(&self.rules, self.config.seed);
        let resolver = self.new_resolver();
        let game = Match::new(policies, sim, self.rules.clone(), resolver).expect("it starts");
        self.go_on_with(game);
    }

    fn new_resolver(&self) -> impl Resolver<S> {
        let (count, asked) = (&self.resolver_count, &self.asked);
        watched::<S>(&self.rules, self.config.seed, count, asked)
    }

    fn go_on_with(&mut self, game: Match<S>) {
        self.game = game;
        self.game.set_referee(Judge);
        self.elsewhere.serve(&mut self.scene.game);
        let next = self.game.world().tick();
        self.digests.truncate(next.0 as usize);
        self.digests.push(self.game.digest());
        self.jobs.forget();
        self.disturb_all(self.now);
        for client in 0..self.clients.len() {
            self.cut(client);
        }
    }

    /// Over a new transport, with a ticket to return with. Who keeps the rules is let in; others may be barred.
    fn dial_again(&mut self, client: usize) -> Option<SessionId> {
        let (identity, seats) = self.ticket_of(client);
        let mut dialled = self.dial(&identity, seats);
        if dialled == Err(CloseCode::Full) {
            self.leave_again();
            dialled = self.dial(&identity, seats);
        }
        let now = self.now;
        let theirs = &mut self.clients[client];
        theirs.arrived_at = now;
        theirs.said = 0;
        theirs.note_alive(now);
        if dialled == Err(CloseCode::TooSlow) && theirs.awaited.out_since.is_none() {
            self.note_put_out(client);
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

    /// Those who have left do so once more: what was not in the journal yet when the server was killed did not happen, so
    /// a seat may be kept for somebody who will not come back.
    fn leave_again(&mut self) {
        for (identity, seats) in self.left.clone() {
            if let Ok(peer) = self.dial(&identity, seats) {
                self.game.kick(peer, CloseCode::Left);
            }
        }
        self.drain();
    }

    /// What the ticket of a client says: its identity, and how many seats it has.
    fn ticket_of(&self, client: usize) -> (String, usize) {
        let client = &self.clients[client];
        (client.identity.clone(), client.seats)
    }

    /// How often a client came back: by frames, and by a world.
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
