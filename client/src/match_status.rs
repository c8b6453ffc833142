//! [`MatchStatus`]: the state of the match that the server reports in addition to frames: its progress, the players it
//! waits for, and the players present.
//!
//! Invariant: only the newest packet is applied, so an older packet that arrives late has no effect.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::{PlayerId, PlayerSet, Tick};
use twinstep_protocol::lobby::Lobby;
use twinstep_protocol::names::Name;
use twinstep_protocol::packet::hello::Names;
use twinstep_protocol::packet::presence::LinkQuality;
use twinstep_protocol::packet::presence::PresenceUpdate;

#[derive(Default)]
pub(crate) struct MatchStatus {
    next_seal: Tick,
    waiting: PlayerSet,
    presence: PresenceView,
    began_at: Tick,
}

impl MatchStatus {
    pub(crate) fn begin(&mut self, at: Tick) {
        (self.next_seal, self.began_at) = (at, at);
    }

    /// Resets the next tick to seal to `at`, after a change of world or path, until the server reports it again.
    pub(crate) fn continue_from(&mut self, at: Tick) {
        self.next_seal = at;
    }

    pub(crate) fn update(
        &mut self,
        next_seal: Tick,
        waiting: PlayerSet,
        presence: Option<&PresenceUpdate>,
    ) {
        (self.next_seal, self.waiting) = (next_seal, waiting);
        if let Some(presence) = presence {
            self.presence.update(presence);
        }
    }

    pub(crate) fn rename(&mut self, names: Names) -> &Names {
        self.presence.rename(names);
        self.presence.names()
    }

    // Applies the report of a lobby, which has no link qualities.
    pub(crate) fn gather(&mut self, lobby: &Lobby) {
        let named = lobby.players.iter().map(|one| (one.player, one.name));
        self.presence.rename(named.collect());
        self.presence.here = lobby.players.iter().map(|one| one.player).collect();
    }

    pub(crate) fn next_seal(&self) -> Tick {
        self.next_seal
    }

    pub(crate) fn waiting(&self) -> PlayerSet {
        self.waiting
    }

    pub(crate) fn presence(&self) -> &PresenceView {
        &self.presence
    }

    /// The number of ticks stepped by an authority at `tick`, and the number it must step in total to catch up.
    pub(crate) fn caught_up(&self, tick: Tick) -> (u32, u32) {
        (
            tick - self.began_at,
            tick.max(self.next_seal) - self.began_at,
        )
    }
}

/// The players of the lobby or match: their names, whether they are connected, and the quality of their links.
///
/// Connections are reported about once a second, names when they change. The last report is kept while the connection
/// is lost.
#[derive(Clone, Debug, Default)]
pub struct PresenceView {
    names: Names,
    // The last name of each player; empty if none was received.
    known: [Name; PLAYERS_MAX],
    here: PlayerSet,
    links: [Option<LinkQuality>; PLAYERS_MAX],
}

impl PresenceView {
    /// The name that a player chose, in the lobby and in the match. A player that has left keeps its name until another
    /// player has its number. Returns `None` if none was received. A name does not prove an identity. A trusted server
    /// never gives two present players names that look alike.
    #[must_use]
    pub fn name(&self, player: PlayerId) -> Option<&str> {
        let name = self.known.get(player.index())?;
        (!name.is_empty()).then_some(name.as_str())
    }

    /// The seated players connected to the server.
    #[must_use]
    pub fn here(&self) -> PlayerSet {
        self.here
    }

    /// The quality of a player's link. Returns `None` if the player is not connected, or its link was not reported yet.
    #[must_use]
    pub fn link(&self, player: PlayerId) -> Option<LinkQuality> {
        let is_here = self.here.contains(player);
        let link = self.links.get(player.index())?;
        link.filter(|_| is_here)
    }

    /// The players named in the newest report, in order of their numbers.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> + '_ {
        self.names.iter().map(|(player, _)| *player)
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    pub(crate) fn rename(&mut self, names: Names) {
        self.names = names;
        self.names
            .retain(|(player, _)| player.index() < PLAYERS_MAX);
        for (player, name) in &self.names {
            self.known[player.index()] = *name;
        }
    }

    /// Applies the newest packet's report. A disconnected player keeps its last link quality.
    pub(crate) fn update(&mut self, report: &PresenceUpdate) {
        self.here = report.here;
        for player in report.here.iter() {
            self.links[player.index()] = Some(report.links[player.index()]);
        }
    }
}
