//! [`People`]: who is here, who was, and which seat is whose.
//!
//! Invariant: an identity has its seat until it leaves or is removed, whatever becomes of its sessions.

use std::ops::{Index, IndexMut};
use std::slice;
use std::time::Duration;

use twinstep_core::bounds::{MATCH_LINEAGES_MAX, PLAYERS_MAX};
use twinstep_core::{Key, PlayerId, PlayerSet, Tick};
use twinstep_protocol::lineage::{LineageTable, Stamp};

use crate::cost::Budget;
use crate::identity_limits::{AwayIdentities, IdentityLimits};
use crate::peer::Peer;
use crate::seat::NotAdmitted;
use twinstep_protocol::identity::SessionId;

/// See the [module](self).
pub(super) struct People {
    /// The sessions.
    peers: Vec<Peer>,
    pub(super) takeovers: Vec<PendingTakeover>,
    /// Whose the seats are that are taken.
    identities: Vec<(String, PlayerId)>,
    /// Who had each number last, also when it has left.
    lately: [Option<String>; PLAYERS_MAX],
    /// What those have used up of their bounds who are away.
    pub(super) away: AwayIdentities,
    /// Which tickets are out of date, by identity and whether it is a spectator.
    pub(super) lineages: LineageTable<(String, bool)>,
    /// The newest tick that each player's screen was built on.
    pub(super) views: [Tick; PLAYERS_MAX],
}

/// A second connection of an identity that has a session.
pub(super) struct PendingTakeover {
    pub(super) id: SessionId,
    pub(super) identity: String,
    pub(super) seats: usize,
    /// The stamp of the ticket that it came by, if it came by one.
    pub(super) came_by: Option<Stamp>,
    pub(super) since: Duration,
}

/// How far somebody has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Its session is in the match.
    Playing,
    /// Its session is on the way in.
    Joining,
    /// It has a seat, and no session.
    Away,
}

/// One player or spectator, as an operator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    /// Its seat; none: it watches.
    pub seat: Option<PlayerId>,
    /// The identity of its ticket.
    pub identity: String,
    /// What others see it as; empty until it is told to them.
    pub name: String,
    /// The state of its session.
    pub whereabouts: Whereabouts,
    /// How early its inputs come, in ticks, where each tick has a deadline of its own.
    pub margin_ticks: Option<i64>,
    /// The round trip to its client, once it was measured.
    pub round_trip: Option<Duration>,
    /// For how long it has been as it is.
    pub lasts: Duration,
}

impl Default for People {
    fn default() -> People {
        People {
            peers: Vec::new(),
            takeovers: Vec::new(),
            identities: Vec::new(),
            lately: Default::default(),
            away: AwayIdentities::default(),
            lineages: LineageTable::new(MATCH_LINEAGES_MAX),
            views: Default::default(),
        }
    }
}

impl Index<usize> for People {
    type Output = Peer;

    fn index(&self, at: usize) -> &Peer {
        &self.peers[at]
    }
}

impl IndexMut<usize> for People {
    fn index_mut(&mut self, at: usize) -> &mut Peer {
        &mut self.peers[at]
    }
}

impl People {
    /// How many sessions there are.
    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    /// The sessions.
    pub(super) fn iter(&self) -> slice::Iter<'_, Peer> {
        self.peers.iter()
    }

    /// The sessions, to be changed.
    pub(super) fn iter_mut(&mut self) -> slice::IterMut<'_, Peer> {
        self.peers.iter_mut()
    }

    /// Where the first such session stands.
    pub(super) fn find(&self, is: impl Fn(&Peer) -> bool) -> Option<usize> {
        self.peers.iter().position(is)
    }

    /// The sessions that are in the match.
    pub(super) fn playing(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.plays())
    }

    /// A session begins.
    pub(super) fn add(&mut self, peer: Peer) {
        self.peers.push(peer);
    }

    /// A session is over.
    pub(super) fn take(&mut self, at: usize) -> Peer {
        self.peers.remove(at)
    }

    /// A session's client may have come on: what its players see is as new as that.
    pub(super) fn note_view(&mut self, at: usize) {
        let peer = &self.peers[at];
        for player in &peer.players {
            self.views[player.index()] = peer.acks.view();
        }
    }

    /// Whose the seats are that are taken, in the order in which they were.
    pub(super) fn identities(&self) -> &[(String, PlayerId)] {
        &self.identities
    }

    /// The seats of an identity.
    pub(super) fn seats_of(&self, identity: &str) -> impl Iterator<Item = PlayerId> {
        let own = self
            .identities
            .iter()
            .filter(move |(name, _)| name == identity);
        own.map(|(_, player)| *player)
    }

    /// Gives a seat that is free to an identity.
    pub(super) fn seat(&mut self, player: PlayerId, identity: &str) {
        self.identities.push((identity.to_owned(), player));
        self.note_had(player, identity);
    }

    /// A player of this identity had this number last.
    pub(super) fn note_had(&mut self, player: PlayerId, identity: &str) {
        self.lately[player.index()] = Some(identity.to_owned());
    }

    /// Who had this number last.
    pub(super) fn had(&self, player: PlayerId) -> Option<&str> {
        self.lately[player.index()].as_deref()
    }

    /// Whether anybody ever had a seat.
    pub(super) fn was_joined(&self) -> bool {
        self.lately.iter().any(Option::is_some)
    }

    /// Frees a seat. Returns whose it was.
    pub(super) fn unseat(&mut self, player: PlayerId) -> Option<String> {
        let at = self.identities.iter().position(|(_, p)| *p == player)?;
        Some(self.identities.remove(at).0)
    }

    /// Where a session stands among the others.
    pub(super) fn position(&self, peer: SessionId) -> Option<usize> {
        self.peers.iter().position(|p| p.id == peer)
    }

    /// A session.
    pub(super) fn peer(&self, peer: SessionId) -> Option<&Peer> {
        self.peers.iter().find(|p| p.id == peer)
    }

    /// A session, to be changed.
    pub(super) fn peer_mut(&mut self, peer: SessionId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|p| p.id == peer)
    }

    /// Whose the seat of a player is.
    pub(super) fn identity_of(&self, player: PlayerId) -> Option<&str> {
        let known = self.identities.iter().find(|(_, p)| *p == player);
        known.map(|(identity, _)| &**identity)
    }

    /// The session of an identity: who plays may watch too, and each is one of these.
    pub(super) fn session_of(&self, identity: &str, watches: bool) -> Option<usize> {
        let is = |p: &Peer| p.identity == identity && p.is_spectator() == watches;
        self.peers.iter().position(is)
    }

    /// Where the first such takeover stands.
    pub(super) fn find_takeover(&self, is: impl Fn(&PendingTakeover) -> bool) -> Option<usize> {
        self.takeovers.iter().position(is)
    }

    pub(super) fn is_takeover(&self, peer: SessionId) -> bool {
        self.takeovers.iter().any(|takeover| takeover.id == peer)
    }

    /// The session that answers for a player: its own, or that of its identity, which may have come back with fewer
    /// seats than it has.
    pub(super) fn session_behind(&self, player: PlayerId) -> Option<usize> {
        let own = |p: &Peer| p.players.contains(&player);
        self.peers.iter().position(own).or_else(|| {
            let identity = self.identity_of(player)?;
            self.peers.iter().position(|p| p.plays_as(identity))
        })
    }

    /// Whether the player that a query names plays by a session of its own.
    pub(super) fn owner_plays(&self, key: Key) -> bool {
        key.owner().is_some_and(|owner| {
            let plays = |p: &Peer| p.plays() && p.players.contains(&owner);
            self.peers.iter().any(plays)
        })
    }

    /// The first of all players of this one's identity, who stands for it.
    pub(super) fn owner(&self, player: PlayerId) -> PlayerId {
        let Some(identity) = self.identity_of(player) else {
            return player;
        };
        let own = self.identities.iter().filter(|(name, _)| name == identity);
        own.map(|(_, player)| *player).min().unwrap_or(player)
    }

    /// The others, `present`, waited for these players for so long, up to now: each of their identities pays its share. Time in
    /// which nobody else could have gone on is nobody's debt.
    pub(super) fn charge(
        &mut self,
        now: Duration,
        players: PlayerSet,
        present: PlayerSet,
        waited: Duration,
        budget: Budget,
    ) {
        let owners: PlayerSet = players.iter().map(|player| self.owner(player)).collect();
        let others = present.iter();
        let someone_waited = others
            .filter(|player| !players.contains(*player))
            .any(|player| !owners.contains(self.owner(player)));
        if !someone_waited {
            return;
        }
        let share = waited / owners.len().max(1) as u32;
        for owner in owners.iter() {
            if let Some(limits) = self.limits_of(now, owner) {
                limits.cost.add(now, share, budget.window);
            }
        }
    }

    /// Those of these players whose identities have cost the others too much.
    pub(super) fn overdrawn(
        &mut self,
        now: Duration,
        players: PlayerSet,
        budget: Budget,
    ) -> PlayerSet {
        let mut overdrawn = PlayerSet::default();
        for player in players.iter() {
            let owner = self.owner(player);
            let is_overdrawn = self
                .limits_of(now, owner)
                .is_some_and(|limits| limits.cost.spent(now, budget.window) >= budget.spent_max);
            overdrawn.set(player, is_overdrawn);
        }
        overdrawn
    }

    /// The limits of a player's identity, with or without a session.
    pub(super) fn limits_of(
        &mut self,
        now: Duration,
        player: PlayerId,
    ) -> Option<&mut IdentityLimits> {
        if let Some(at) = self.session_behind(player) {
            return Some(&mut self.peers[at].limits);
        }
        let (identity, _) = self.identities.iter().find(|(_, p)| *p == player)?;
        Some(self.away.limits_of(now, identity))
    }

    /// An order of a player will not run: its owner hears of it, now or when it is back.
    pub(super) fn refuse(&mut self, now: Duration, refused: NotAdmitted) {
        let player = refused.player;
        let owner = self.peers.iter_mut().find(|p| p.players.contains(&player));
        if let Some(peer) = owner {
            peer.refuse(refused);
        } else if let Some((identity, _)) = self.identities.iter().find(|(_, p)| *p == player)
            && !self.peers.iter().any(|p| p.plays_as(identity))
        {
            self.away.refuse(now, identity, refused);
        }
    }

    /// A player is struck for an order or an input; the session that is to end, if that was one too many.
    pub(super) fn strike(&mut self, now: Duration, player: PlayerId) -> Option<SessionId> {
        if let Some(at) = self.session_behind(player) {
            let peer = &mut self.peers[at];
            return peer.limits.strike(now).then_some(peer.id);
        }
        if let Some((identity, _)) = self.identities.iter().find(|(_, p)| *p == player) {
            self.away.strike(now, identity);
        }
        None
    }

    /// The players whose identity broke the protocol lately, or gave what the step failed at.
    pub(super) fn struck(&self, now: Duration) -> PlayerSet {
        let is_struck = |identity: &str| match self.peers.iter().find(|p| p.plays_as(identity)) {
            Some(peer) => peer.limits.is_struck(now),
            None => self.away.is_struck(now, identity),
        };
        let struck = self.identities.iter().filter(|(id, _)| is_struck(id));
        struck.map(|(_, player)| *player).collect()
    }

    /// Whether a ticket of this identity is out of date.
    pub(super) fn is_superseded(&self, identity: &str, watches: bool, stamp: &Stamp) -> bool {
        let holder = (identity.to_owned(), watches);
        self.lineages.refuses(&holder, stamp)
    }
}
