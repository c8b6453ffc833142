//! Who says hello gets a world, or goes on from the one that it has; who has caught up is let in.
//!
//! ```text
//!  hello ─▶ fits? ─▶ its own world is known here? ── yes ─▶ welcome: frames from there
//!             │                  │ no
//!             ▼ refused          └▶ a place free? ─▶ welcome, and the world ─▶ caught up ─▶ Joined
//! ```
//!
//! Two have a place at once (of those who watch, eight): worlds are large. A world that gets on more slowly than
//! 16 KiB/s loses its place as soon as somebody waits for one, and its client stays out for 30 s.
//!
//! Invariant: a joiner costs the others nothing: its player joins only when its authority has caught up.

use super::spectators::VIEWS_AT_ONCE;
use super::*;
use crate::config::Resolves;

/// A client that waits for a place says hello again within this time, or somebody else may have it.
const ASKS_AGAIN: Duration = Duration::from_millis(500);

impl<S: Simulation> Match<S> {
    pub(super) fn join(&mut self, now: Duration, mut at: usize, hello: &Hello) {
        if let Some(code) = self.hello.refusal(hello) {
            return self.leave_unseated(at, code);
        }
        let resumed = hello
            .resume
            .is_some_and(|(tick, digest)| self.can_resume(at, tick, digest));
        let world = if resumed {
            None
        } else {
            let Some(place) = self.take_place(now, at) else {
                return; // The client repeats its hello.
            };
            at = place;
            match self.world_for(at) {
                Ok(Some(world)) => Some(world),
                Ok(None) => return, // Nothing old enough yet to show.
                Err(code) => return self.leave_unseated(at, code),
            }
        };
        let peer = &mut self.peers[at];
        let welcome = Welcome {
            seats: peer.players.clone(),
            next_seq: peer
                .players
                .iter()
                .map(|p| self.seats[p.index()].next_seq)
                .collect(),
            command_delay: self.config.command_delay,
            owners_answer: self.config.resolves == Resolves::Owner,
            resumed,
        };
        let had = hello.resume.map(|(tick, _)| tick);
        let Some(from) = world.as_ref().map(|(tick, _)| *tick).or(had) else {
            return;
        };
        let mut bytes = Vec::new();
        let told = codec::append(&welcome, &mut bytes).is_ok()
            && peer.lane_out.push(message::WELCOME, bytes.into()).is_ok()
            && world.is_none_or(|(_, world)| peer.lane_out.push(message::WORLD, world).is_ok());
        if told {
            for (n, player) in peer.players.iter().enumerate() {
                let name = hello.names.get(n).copied().unwrap_or_default();
                self.company.wish(*player, name);
            }
            peer.resumed = resumed;
            if resumed && peer.standing.may_be_excused(now) {
                // It is back before it was dropped, and its first input is on its way: nobody needs to hear of it.
                for player in &peer.players {
                    if self.world.presence(*player) == Presence::Present {
                        let seat = &mut self.seats[player.index()];
                        seat.given = seat.given.max(self.world.tick());
                    }
                }
            }
            // The first turn that it runs is this one; its batch is for m turns later. Who resumes has the
            // batches before that too.
            let m = if resumed {
                0
            } else {
                self.config.command_delay
            };
            let number = self.world.turn().number + u32::from(m);
            for player in &peer.players {
                self.seats[player.index()].awaited_from = number;
            }
            peer.enter(Stage::Loading, now);
            peer.wanted = from;
            peer.view = from;
        }
    }

    /// A place among those whose worlds are on their way, for a session that asks for one: where it stands then.
    /// `None`: it must ask again. Who asked first is served first, and who has a place and makes no use of it loses it
    /// to who waits.
    fn take_place(&mut self, now: Duration, at: usize) -> Option<usize> {
        let peer = &mut self.peers[at];
        peer.asked_since.get_or_insert(now);
        peer.asked_at = now;
        // Nobody who comes to play waits for those who come to watch.
        let (id, watches) = (peer.id, peer.is_spectator());
        let places = if watches {
            VIEWS_AT_ONCE
        } else {
            JOINS_AT_ONCE
        };
        let alike = |p: &&Peer| p.is_spectator() == watches;
        if !self.peers[at].standing.could_join(now) {
            return None;
        }
        let asks = |p: &Peer| {
            p.stage == Stage::Greeting
                && now.saturating_sub(p.asked_at) < ASKS_AGAIN
                && p.standing.could_join(now)
        };
        let (mine, peers) = (self.peers[at].asked_since, self.peers.iter().filter(alike));
        let before = peers
            .filter(|p| asks(p) && p.asked_since.is_some_and(|since| Some(since) < mine))
            .count();
        let loads = |game: &Self| {
            let peers = game.peers.iter().filter(alike);
            peers.filter(|p| p.is_loading()).count()
        };
        while loads(self) + before >= places {
            let stalled = |p: &Peer| alike(&p) && p.is_loading() && p.is_stalled(now);
            let stalled = self.peers.iter().position(stalled)?;
            self.peers[stalled]
                .standing
                .bar(now, CloseCode::JoinTooSlow);
            self.leave_unseated(stalled, CloseCode::JoinTooSlow);
        }
        let at = self.peers.iter().position(|p| p.id == id)?;
        self.peers[at].standing.may_join(now).then_some(at)
    }

    /// Whether a client can go on by frames from the world that it has. Who is to join needs a world: those are
    /// handed out slowly, so that nobody comes and goes as fast as its line.
    fn can_resume(&self, at: usize, tick: Tick, digest: u32) -> bool {
        let is_in = |player: &PlayerId| {
            self.world.presence(*player) != Presence::Absent && !self.sealer.leaves(*player)
        };
        self.peers[at].players.iter().all(is_in)
            && tick >= self.history.first()
            && tick <= self.shown_to(at)
            && self.digest_at(tick).map(|ours| ours as u32) == Some(digest)
    }

    /// The world that a session joins with, and its tick; `None`: there is none yet.
    fn world_for(&mut self, at: usize) -> Result<Option<Snapshot>, CloseCode> {
        if self.is_delayed(at) {
            return Ok(self.watched.world(self.shown_to(at)));
        }
        match self.snapshot() {
            Some(world) => Ok(Some(world)),
            None => Err(CloseCode::WorldTooLarge),
        }
    }

    /// Closes a session that never came so far as to have players.
    pub(super) fn leave_unseated(&mut self, at: usize, code: CloseCode) {
        for player in self.peers[at].players.clone() {
            if self.world.presence(player) == Presence::Absent {
                self.identities.retain(|(_, p)| *p != player);
            }
        }
        self.close_peer(at, code);
    }

    /// Lets the players of a session in that are not in the match. Who got the number of a player that is about to
    /// leave is let in when that one has left.
    pub(super) fn let_in(&mut self, at: usize) {
        let players = self.peers[at].players.clone();
        if players.iter().any(|p| self.sealer.changes(*p)) {
            return;
        }
        let next = self.world.tick();
        let turn = self.world.turn().number;
        for player in players {
            if self.world.presence(player) != Presence::Absent {
                continue;
            }
            let identity = self.peers[at].identity.clone();
            // Not sooner: after a crash, who is said to have a number has its character too.
            self.journal(|recorder, out| recorder.seat(player, &identity, out));
            self.sealer.change(player, RosterChange::Joined);
            let seat = &mut self.seats[player.index()];
            seat.given = seat.given.max(next);
            // Seed row 21: the turns until then are sealed without it.
            seat.awaited_from = turn + u32::from(self.config.command_delay);
            self.joined = true;
        }
    }
}
