//! [`Company`]: who else is there, as the server told last. It steers nothing, and is for people to look at.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::{PlayerId, PlayerSet};
use twinstep_protocol::company::LinkQuality;
use twinstep_protocol::packet::company::CompanyTold;
use twinstep_protocol::packet::hello::Names;

/// What the players of the match are called, who of them is connected, and how well.
///
/// Connections are told about once a second, names when they change. After the session lost its server it stays as it
/// was told last.
#[derive(Clone, Debug, Default)]
pub struct Company {
    names: Names,
    here: PlayerSet,
    links: [LinkQuality; PLAYERS_MAX],
}

impl Company {
    /// What a player wants to be called; `None`: nothing was told of it. Nobody has checked who it is. The server gives
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
    pub(crate) fn note(&mut self, told: &CompanyTold) {
        self.here = told.here;
        for player in told.here.iter() {
            self.links[player.index()] = told.links[player.index()];
        }
    }
}
