//! [`People`]: who is here, who was, and which seat is whose.
//!
//! Invariant: an identity has its seat until it leaves or is removed, whatever becomes of its sessions.

use std::time::Duration;

use twinstep_core::bounds::{MATCH_LINEAGES_MAX, PLAYERS_MAX};
use twinstep_core::{PlayerId, PlayerSet, Tick};
use twinstep_protocol::lineage::{LineageTable, Stamp};

use crate::identity_limits::{AwayIdentities, IdentityLimits};
use crate::peer::Peer;
use crate::seat::NotAdmitted;
use crate::takeover::PendingTakeover;
use twinstep_protocol::identity::SessionId;

/// See the [module](self).
pub(super) struct People {
    /// The sessions.
    pub(super) peers: Vec<Peer>,
    pub(super) takeovers: Vec<PendingTakeover>,
    /// Whose the seats are that are taken.
    pub(super) identities: Vec<(String, PlayerId)>,
    /// Who had each number last, also when it has left.
    pub(super) lately: [Option<String>; PLAYERS_MAX],
    /// What those have used up of their bounds who are away.
    pub(super) away: AwayIdentities,
    /// Which tickets are out of date, by identity and whether it is a spectator.
    pub(super) lineages: LineageTable<(String, bool)>,
    /// The newest tick that each player's screen was built on.
    pub(super) views: [Tick; PLAYERS_MAX],
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

impl People {
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

    /// The first of all players of this one's identity, who stands for it.
    pub(super) fn owner(&self, player: PlayerId) -> PlayerId {
        let Some(identity) = self.identity_of(player) else {
            return player;
        };
        let own = self.identities.iter().filter(|(name, _)| name == identity);
        own.map(|(_, player)| *player).min().unwrap_or(player)
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
