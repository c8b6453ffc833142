//! [`Routes`]: the state of each session in the I/O task: routed to its match, waiting for its match, or being closed.
//!
//! Invariant: for each match, an identity has at most [`IDLE_MAX`] sessions that do not play, however often it dials.
//! So a ticket for a match that does not run takes no slots from other identities.

use std::collections::BTreeMap;
use std::time::Duration;

use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{SessionId, TicketClaims};

/// The maximum number of sessions of one identity that wait for a match, have not sent their hello there, or are being
/// closed: one on the client's new path, one on the path that it has given up.
pub(super) const IDLE_MAX: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Waits until this time for a match that does not run yet or has a full inbox.
    Waiting(Duration),
    Playing,
    /// The session is closed with this code. Until this time, its packets are answered with the code.
    Leaving(CloseCode, Duration),
}

pub(super) struct RoutedSession {
    pub(super) ticket: TicketClaims,
    pub(super) route: Route,
    number: u64,
    is_settled: bool,
}

impl RoutedSession {
    pub(super) fn waits_for(&self, match_id: MatchId) -> bool {
        matches!(self.route, Route::Waiting(_)) && self.ticket.match_id == match_id
    }

    fn is_of(&self, ticket: &TicketClaims) -> bool {
        let ours = &self.ticket;
        (ours.match_id, &ours.identity) == (ticket.match_id, &ticket.identity)
    }
}

#[derive(Default)]
pub(super) struct Routes {
    sessions: BTreeMap<SessionId, RoutedSession>,
    came: u64,
    playing: usize,
}

impl Routes {
    /// Adds a session, which waits for its match until this time.
    pub(super) fn come(&mut self, session: SessionId, ticket: TicketClaims, until: Duration) {
        self.came += 1;
        let routed = RoutedSession {
            ticket,
            route: Route::Waiting(until),
            number: self.came,
            is_settled: false,
        };
        self.remove(session);
        self.sessions.insert(session, routed);
    }

    /// The session that must give up its slot if this session's identity has too many: a closing one, else one with an
    /// outdated ticket, else the oldest.
    pub(super) fn one_too_many(&self, newest: SessionId) -> Option<SessionId> {
        let newest = self.sessions.get(&newest)?;
        let plays = |routed: &RoutedSession| routed.route == Route::Playing && routed.is_settled;
        let idle = |routed: &RoutedSession| !plays(routed) && routed.is_of(&newest.ticket);
        let idle = || self.sessions.iter().filter(|(_, routed)| idle(routed));
        let rank = |routed: &RoutedSession| {
            let hopes = !matches!(routed.route, Route::Leaving(..));
            let ours = routed.ticket.stamp;
            let newer = |other: &RoutedSession| {
                let theirs = other.ticket.stamp;
                theirs.lineage == ours.lineage && theirs.generation > ours.generation
            };
            let is_newest = !idle().any(|(_, other)| newer(other));
            // `false` sorts first: closing sessions, then outdated tickets, then the oldest.
            (hopes, is_newest, routed.number)
        };
        let first = idle().min_by_key(|(_, routed)| rank(routed));
        first
            .filter(|_| idle().count() > IDLE_MAX)
            .map(|(session, _)| *session)
    }

    pub(super) fn settle(&mut self, session: SessionId) {
        if let Some(routed) = self.sessions.get_mut(&session) {
            routed.is_settled = true;
        }
    }

    pub(super) fn get(&self, session: SessionId) -> Option<&RoutedSession> {
        self.sessions.get(&session)
    }

    pub(super) fn turn(&mut self, session: SessionId, route: Route) {
        if let Some(routed) = self.sessions.get_mut(&session) {
            self.playing += usize::from(route == Route::Playing);
            self.playing -= usize::from(routed.route == Route::Playing);
            routed.route = route;
        }
    }

    pub(super) fn remove(&mut self, session: SessionId) -> Option<RoutedSession> {
        let routed = self.sessions.remove(&session)?;
        self.playing -= usize::from(routed.route == Route::Playing);
        Some(routed)
    }

    pub(super) fn all_play(&self) -> bool {
        self.playing == self.sessions.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    pub(super) fn those(&self, is: impl Fn(&RoutedSession) -> bool) -> Vec<SessionId> {
        let those = self.sessions.iter().filter(|(_, routed)| is(routed));
        those.map(|(session, _)| *session).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use twinstep_udp::{Identity, Role, Stamp};

    use super::*;

    const UNTIL: Duration = Duration::from_secs(10);

    pub(crate) fn ticket(identity: &str, generation: u32) -> TicketClaims {
        TicketClaims {
            ticket_id: 7,
            stamp: Stamp {
                generation,
                ..Stamp::default()
            },
            identity: Identity::new(identity, Role::Player),
            match_id: MatchId(1),
            seats: 1,
        }
    }

    /// Finding O3-1: a routed session that did not send its hello was not counted.
    #[test]
    fn an_identity_with_too_many_waiting_sessions_loses_its_oldest() {
        let mut routes = Routes::default();
        for n in 0..IDLE_MAX as u64 {
            routes.come(SessionId(n), ticket("anna", 5), UNTIL);
            routes.come(SessionId(100 + n), ticket("bob", 5), UNTIL);
            assert_eq!(routes.one_too_many(SessionId(n)), None);
        }
        routes.come(SessionId(50), ticket("anna", 5), UNTIL);
        assert_eq!(routes.one_too_many(SessionId(50)), Some(SessionId(0)));
        // A routed session counts until its match admits it; a closing session is removed first.
        routes.turn(SessionId(1), Route::Playing);
        assert_eq!(routes.one_too_many(SessionId(50)), Some(SessionId(0)));
        routes.settle(SessionId(1));
        assert_eq!(routes.one_too_many(SessionId(50)), None);
        routes.come(SessionId(51), ticket("anna", 5), UNTIL);
        routes.turn(SessionId(50), Route::Leaving(CloseCode::NoMatch, UNTIL));
        assert_eq!(routes.one_too_many(SessionId(51)), Some(SessionId(50)));
        routes.remove(SessionId(50));
        // A copy of an older ticket does not displace a session with a newer one.
        routes.come(SessionId(52), ticket("anna", 4), UNTIL);
        assert_eq!(routes.one_too_many(SessionId(52)), Some(SessionId(52)));
    }

    #[test]
    fn all_sessions_play_if_none_waits_or_is_being_closed() {
        let mut routes = Routes::default();
        assert!(routes.all_play());
        for n in 0..3 {
            routes.come(SessionId(n), ticket("anna", 5), UNTIL);
            assert!(!routes.all_play());
        }
        for n in 0..3 {
            routes.turn(SessionId(n), Route::Playing);
            routes.turn(SessionId(n), Route::Playing);
        }
        assert!(routes.all_play());
        routes.turn(SessionId(1), Route::Leaving(CloseCode::NoMatch, UNTIL));
        assert!(!routes.all_play());
        routes.remove(SessionId(0));
        routes.remove(SessionId(1));
        assert!(routes.all_play());
        // A session with a known id starts to wait again.
        routes.come(SessionId(2), ticket("anna", 6), UNTIL);
        assert!(!routes.all_play());
        routes.remove(SessionId(2));
        assert!(routes.all_play() && routes.is_empty());
    }
}
