//! [`MatchStatus`]: what the server tells of the match beside its frames: how far it is, whom it waits for, who is there.
//!
//! Invariant: only the newest packet is heeded, so nothing here goes back by a packet that was overtaken.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::{PlayerId, PlayerSet, Tick};
use twinstep_protocol::company::LinkQuality;
use twinstep_protocol::packet::company::CompanyTold;
use twinstep_protocol::packet::hello::Names;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct MatchStatus {
    /// The server's next tick to seal.
    next_seal: Tick,
    /// The players that the match waits for.
    waiting: PlayerSet,
    presence: PresenceView,
    /// The tick of the first world.
    began_at: Tick,
}

impl MatchStatus {
    /// The session begins to play, from the world of this tick.
    pub(crate) fn begin(&mut self, at: Tick) {
        (self.next_seal, self.began_at) = (at, at);
    }

    /// It goes on from another world, or over another path: what the server seals next is told anew.
    pub(crate) fn go_on_from(&mut self, at: Tick) {
        self.next_seal = at;
    }

    /// The newest packet tells this.
    pub(crate) fn update(
        &mut self,
        next_seal: Tick,
        waiting: PlayerSet,
        company: Option<&CompanyTold>,
    ) {
        (self.next_seal, self.waiting) = (next_seal, waiting);
        if let Some(company) = company {
            self.presence.update(company);
        }
    }

    /// Players are called so; all names that are known.
    pub(crate) fn rename(&mut self, names: Names) -> &Names {
        self.presence.rename(names);
        self.presence.names()
    }

    /// The server's next tick to seal, as last told.
    pub(crate) fn next_seal(&self) -> Tick {
        self.next_seal
    }

    /// The players that the match waits for.
    pub(crate) fn waiting(&self) -> PlayerSet {
        self.waiting
    }

    /// The players of the match: names and connections.
    pub(crate) fn presence(&self) -> &PresenceView {
        &self.presence
    }

    /// Ticks that a session has stepped whose authority is at `tick`, and all that it steps until it is in the match.
    pub(crate) fn caught_up(&self, tick: Tick) -> (u32, u32) {
        (
            tick - self.began_at,
            tick.max(self.next_seal) - self.began_at,
        )
    }
}

/// The players of the match: their names, whether each one is connected, and how good its connection is.
///
/// Connections are told about once a second, names when they change. After the session lost its server it stays as it
/// was told last.
#[derive(Clone, Debug, Default)]
pub struct PresenceView {
    names: Names,
    here: PlayerSet,
    links: [LinkQuality; PLAYERS_MAX],
}

impl PresenceView {
    /// The name that a player chose; `None`: no name was received. The name proves no identity. The server gives
    /// no two players names that look alike, as far as it is to be trusted.
    #[must_use]
    pub fn name(&self, player: PlayerId) -> Option<&str> {
        let told = self.names.iter().find(|(who, _)| *who == player);
        told.map(|(_, name)| name.as_str())
    }

    /// The players that the server is connected with, of all that have a seat.
    #[must_use]
    pub fn here(&self) -> PlayerSet {
        self.here
    }

    /// A player's link; `None`: it is not connected, or nothing was told yet.
    #[must_use]
    pub fn link(&self, player: PlayerId) -> Option<LinkQuality> {
        self.here
            .contains(player)
            .then(|| self.links[player.index()])
    }

    /// All who have a name, by number.
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
    }

    /// Notes what the newest packet tells. Who is not connected keeps what was told of it last.
    pub(crate) fn update(&mut self, told: &CompanyTold) {
        self.here = told.here;
        for player in told.here.iter() {
            self.links[player.index()] = told.links[player.index()];
        }
    }
}
