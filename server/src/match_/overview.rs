//! Who is here, as an operator sees it: by name, how well connected, and since when.

use std::time::Duration;

use twinstep_core::{PlayerId, Simulation};

use super::Match;
use crate::peer::{Peer, SessionStage};

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

impl<S: Simulation> Match<S> {
    /// Everybody who has a seat, by seat, then who watches.
    pub fn everybody(&self) -> Vec<Present> {
        let mut seated: Vec<Present> = self
            .people
            .identities
            .iter()
            .map(|(identity, player)| self.seated(identity, *player))
            .collect();
        seated.sort_by_key(|present| present.seat);
        let watching = self.people.peers.iter().filter(|p| p.is_spectator());
        let watching = watching.map(|peer| self.with_session(peer, None));
        seated.into_iter().chain(watching).collect()
    }

    fn seated(&self, identity: &str, player: PlayerId) -> Present {
        let own = |p: &&Peer| p.players.contains(&player);
        if let Some(peer) = self.people.peers.iter().find(own) {
            return self.with_session(peer, Some(player));
        }
        let world = &self.world.current;
        let silent_ticks = world.tick() - self.seats[player.index()].heard();
        Present {
            seat: Some(player),
            identity: identity.to_owned(),
            name: self.player_list.name_of(player),
            whereabouts: Whereabouts::Away,
            margin_ticks: None,
            round_trip: None,
            lasts: world.turn().cadence.tick() * silent_ticks,
        }
    }

    fn with_session(&self, peer: &Peer, seat: Option<PlayerId>) -> Present {
        let next = self.world.current.tick();
        let has_deadlines = self.config.command_delay == 0;
        let newest = seat
            .filter(|_| has_deadlines && peer.stage == SessionStage::Playing)
            .and_then(|player| self.seats[player.index()].newest());
        Present {
            seat,
            identity: peer.identity.clone(),
            name: seat
                .map(|player| self.player_list.name_of(player))
                .unwrap_or_default(),
            whereabouts: match peer.stage {
                SessionStage::Playing => Whereabouts::Playing,
                _ => Whereabouts::Joining,
            },
            margin_ticks: newest.map(|newest| i64::from(newest.0) - i64::from(next.0)),
            round_trip: peer.link.rtt(),
            lasts: self.clock.now.saturating_sub(peer.since),
        }
    }
}
