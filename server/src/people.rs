//! [`People`]: the identities and sessions of a match, current and former, and the owner of each seat.
//!
//! Invariant: after the lobby, an identity keeps its seat until it leaves or is removed, even if its sessions end.

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
use twinstep_protocol::identity::{Identity, SessionId};

pub(super) struct People {
    peers: Vec<Peer>,
    pub(super) takeovers: Vec<PendingTakeover>,
    /// The taken seats and the identities that have them, in the order in which they were taken.
    identities: Vec<(String, PlayerId)>,
    /// The last identity that played each player number, even if that identity has left.
    last_owners: [Option<String>; PLAYERS_MAX],
    /// The identities for which seats are reserved until they play or are removed.
    expected: [Option<String>; PLAYERS_MAX],
    // Whether an identity ever had a seat, even if it left before it played.
    pub(super) was_joined: bool,
    pub(super) away: AwayIdentities,
    pub(super) lineages: LineageTable<Identity>,
    pub(super) views: [Tick; PLAYERS_MAX],
}

/// A second connection of an identity that has a session.
pub(super) struct PendingTakeover {
    pub(super) id: SessionId,
    pub(super) identity: Identity,
    pub(super) seats: usize,
    /// The stamp of the ticket used for the connection, if any.
    pub(super) came_by: Option<Stamp>,
    pub(super) since: Duration,
}

/// The state of a player's or spectator's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The player or spectator has a session in the match.
    Playing,
    /// The player's or spectator's session is joining.
    Joining,
    /// The player has a seat but no session.
    Away,
}

/// One player or spectator, as an operator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    /// The player's seat. `None` for a spectator.
    pub seat: Option<PlayerId>,
    /// The identity in the player's ticket.
    pub identity: String,
    /// The name that other players see; empty before it is assigned, and for a spectator.
    pub name: String,
    /// The state of the player's session.
    pub connection: ConnectionState,
    /// The tick of the player's newest input minus the next tick to seal. `None` without one, and in lockstep, where
    /// ticks do not have their own deadlines.
    pub margin_ticks: Option<i64>,
    /// The round trip to the player's client, once it was measured.
    pub round_trip: Option<Duration>,
    /// The time since the player or spectator entered this state, or since an away player's last input.
    pub lasts: Duration,
}

impl Default for People {
    fn default() -> People {
        People {
            peers: Vec::new(),
            takeovers: Vec::new(),
            identities: Vec::new(),
            last_owners: Default::default(),
            expected: Default::default(),
            was_joined: false,
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
    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    pub(super) fn iter(&self) -> slice::Iter<'_, Peer> {
        self.peers.iter()
    }

    pub(super) fn iter_mut(&mut self) -> slice::IterMut<'_, Peer> {
        self.peers.iter_mut()
    }

    pub(super) fn find(&self, is: impl Fn(&Peer) -> bool) -> Option<usize> {
        self.peers.iter().position(is)
    }

    pub(super) fn playing(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.plays())
    }

    pub(super) fn add(&mut self, peer: Peer) {
        self.peers.push(peer);
    }

    pub(super) fn take(&mut self, at: usize) -> Peer {
        self.peers.remove(at)
    }

    pub(super) fn record_view(&mut self, at: usize) {
        let peer = &self.peers[at];
        for player in &peer.players {
            // A client that reconnects names the tick from which it continues, so its new view could be older.
            let view = &mut self.views[player.index()];
            *view = peer.acks.view().max(*view);
        }
    }

    pub(super) fn identities(&self) -> &[(String, PlayerId)] {
        &self.identities
    }

    pub(super) fn seats_of(&self, identity: &str) -> impl Iterator<Item = PlayerId> {
        let own = self
            .identities
            .iter()
            .filter(move |(name, _)| name == identity);
        own.map(|(_, player)| *player)
    }

    pub(super) fn seat(&mut self, player: PlayerId, identity: &str) {
        self.identities.push((identity.to_owned(), player));
    }

    pub(super) fn record_owner(&mut self, player: PlayerId, identity: &str) {
        self.last_owners[player.index()] = Some(identity.to_owned());
        self.was_joined = true;
    }

    pub(super) fn last_owner(&self, player: PlayerId) -> Option<&str> {
        self.last_owners[player.index()].as_deref()
    }

    pub(super) fn expect(&mut self, player: PlayerId, identity: Option<&str>) {
        self.expected[player.index()] = identity.map(str::to_owned);
    }

    pub(super) fn expected(&self, player: PlayerId) -> Option<&str> {
        self.expected[player.index()].as_deref()
    }

    pub(super) fn all_expected(&self) -> impl Iterator<Item = (PlayerId, &str)> {
        let expected = self.expected.iter().enumerate();
        expected.filter_map(|(n, identity)| Some((PlayerId(n as u8), identity.as_deref()?)))
    }

    pub(super) fn unseat(&mut self, player: PlayerId) -> Option<String> {
        let at = self.identities.iter().position(|(_, p)| *p == player)?;
        Some(self.identities.remove(at).0)
    }

    pub(super) fn position(&self, peer: SessionId) -> Option<usize> {
        self.peers.iter().position(|p| p.id == peer)
    }

    pub(super) fn peer(&self, peer: SessionId) -> Option<&Peer> {
        self.peers.iter().find(|p| p.id == peer)
    }

    pub(super) fn peer_mut(&mut self, peer: SessionId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|p| p.id == peer)
    }

    pub(super) fn identity_of(&self, player: PlayerId) -> Option<&str> {
        let known = self.identities.iter().find(|(_, p)| *p == player);
        known.map(|(identity, _)| &**identity)
    }

    /// The session of an identity in its role: a player may also watch, through a second session.
    pub(super) fn session_of(&self, identity: &Identity) -> Option<usize> {
        self.peers.iter().position(|p| p.identity == *identity)
    }

    pub(super) fn find_takeover(&self, is: impl Fn(&PendingTakeover) -> bool) -> Option<usize> {
        self.takeovers.iter().position(is)
    }

    pub(super) fn is_takeover(&self, peer: SessionId) -> bool {
        self.takeovers.iter().any(|takeover| takeover.id == peer)
    }

    /// The session that is responsible for a player: the player's own session, or another session of its identity,
    /// which may have reconnected with fewer seats.
    pub(super) fn session_behind(&self, player: PlayerId) -> Option<usize> {
        let own = |p: &Peer| p.players.contains(&player);
        self.peers.iter().position(own).or_else(|| {
            let identity = self.identity_of(player)?;
            self.peers.iter().position(|p| p.plays_as(identity))
        })
    }

    pub(super) fn owner_plays(&self, key: Key) -> bool {
        key.owner().is_some_and(|owner| {
            let plays = |p: &Peer| p.plays() && p.players.contains(&owner);
            self.peers.iter().any(plays)
        })
    }

    pub(super) fn owner(&self, player: PlayerId) -> PlayerId {
        let Some(identity) = self.identity_of(player) else {
            return player;
        };
        let own = self.identities.iter().filter(|(name, _)| name == identity);
        own.map(|(_, player)| *player).min().unwrap_or(player)
    }

    /// Charges the identities of `players` with equal shares of `waited`: the time, ending now, that the `present`
    /// players waited for them. If no other identity could have continued in that time, no identity is charged.
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
        // Players of a missing identity are not "others": an identity cannot owe time to itself.
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

    /// Reports a refused order to its owner, now or when the owner returns.
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

    // Also of a player without a session.
    pub(super) fn is_silent(&self, player: PlayerId, since: Duration) -> bool {
        let own = self.peers.iter().find(|p| p.players.contains(&player));
        let received_at = own.map(|peer| peer.link.last_received_at().unwrap_or(peer.since));
        received_at.is_none_or(|at| at <= since)
    }

    /// Adds a strike for an order or an input of a player. Returns the session to close if the limit is exceeded.
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

    /// The players whose identity recently broke the protocol, or gave an order or input that made the step fail.
    pub(super) fn struck(&self, now: Duration) -> PlayerSet {
        let is_struck = |identity: &str| match self.peers.iter().find(|p| p.plays_as(identity)) {
            Some(peer) => peer.limits.is_struck(now),
            None => self.away.is_struck(now, identity),
        };
        let struck = self.identities.iter().filter(|(id, _)| is_struck(id));
        struck.map(|(_, player)| *player).collect()
    }

    pub(super) fn is_superseded(&self, identity: &Identity, stamp: &Stamp) -> bool {
        self.lineages.refuses(identity, stamp)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use twinstep_core::{PlayerId, Tick};
    use twinstep_protocol::identity::{Identity, Role};

    use super::{Peer, People, SessionId};

    // Finding R1.
    #[test]
    fn a_players_view_does_not_go_back_when_its_client_reconnects_from_an_older_tick() {
        let mut people = People::default();
        for (id, from, view) in [(1, 100, 100), (2, 60, 100), (3, 130, 130)] {
            let own = [PlayerId(4)].into_iter().collect();
            let whose = (Identity::new("anna", Role::Player), None);
            let mut peer = Peer::new(
                SessionId(id),
                whose,
                own,
                Default::default(),
                Duration::ZERO,
            );
            peer.acks.begin(Tick(from));
            people.add(peer);
            people.record_view(people.len() - 1);
            assert_eq!(people.views[4], Tick(view), "session {id}");
        }
    }
}
