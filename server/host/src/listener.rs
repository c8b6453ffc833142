//! [`Listener`]: the boundary between the host and one kind of transport. The I/O task (`io.rs`) uses a transport only
//! through this trait.
//!
//! ```text
//!  UDP, browsers ─ DatagramListener ──┐                  Connected, Packet, Disconnected
//!                                     ├─ Listeners ──────────────────────────────────────▶ io ──▶ matches
//!  another ─────── … ─────────────────┘  know the listener of each session
//! ```
//!
//! A transport that carries the datagrams of UDP unchanged needs no listener: it gives each peer an address in the
//! discard-only prefix, as `web.rs` does. To add a transport that opens tickets itself:
//!
//! 1. Implement [`Listener`] in a file next to `datagram_listener.rs`, and give it to [`Listeners`] in `matches.rs`.
//! 2. Open the ticket that a client shows, and check that the client holds its secret. A transport with its own
//!    encryption needs only the claims: `Pass::open` in `core/udp/src/claims.rs`, which is not public yet.
//! 3. Ask [`TicketLedger::refusal`](twinstep_udp::TicketLedger::refusal) when a client shows a ticket, and again when
//!    its session starts. Ask [`has_seat`](twinstep_udp::TicketLedger::has_seat) when slots run out. All transports
//!    share the ledger, which alone decides: a listener has no state of other tickets or seats.
//! 4. On the client, implement [`Transport`](twinstep_udp::Transport).
//!
//! Bans, draining, the route to a match and matches on demand are handled by the I/O task; a listener never sees them.

use std::collections::BTreeMap;
use std::task::{Context, Poll};
use std::time::Duration;

use twinstep_udp::{ServerConfigError, ServerEvent, SessionId, TicketKey, TransportCounters};

use super::observer::Traffic;
use super::web::WebTraffic;

/// One transport of the host. No method waits. If there is no space for a packet, it is lost, as on any network.
pub(super) trait Listener: Send {
    /// Returns `Ready` if datagrams may have arrived. Otherwise registers the task, which is woken when a datagram
    /// arrives.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Sets whether an arriving datagram wakes the task, which is the default. Under load the I/O task polls anyway, so
    /// waking it for each datagram would only cost time.
    fn rouse(&mut self, rouses: bool);

    fn receive(&mut self, now: Duration, at_most: usize, traffic: &mut Traffic) -> usize;

    /// The next event. The first one of a session is `Connected`, with the claims of a ticket that the ledger did not
    /// refuse. Session ids are 64 random bits, so no two listeners use the same one.
    fn event(&mut self) -> Option<ServerEvent>;

    fn admit(&mut self, session: SessionId);

    /// Queues a packet for the next [`transmit`](Listener::transmit). Returns `false` if there is no space or no such
    /// session.
    fn send(&mut self, session: SessionId, packet: &[u8]) -> bool;

    /// Ends a session. No event follows.
    fn disconnect(&mut self, session: SessionId);

    fn transmit(&mut self, traffic: &mut Traffic);

    fn advance(&mut self, now: Duration, now_unix: Duration);

    /// Marks a session as accepted by its match. It no longer counts as a stranger when slots run out.
    fn settle(&mut self, session: SessionId);

    /// From now on, accepts only tickets sealed with these keys.
    fn set_keys(&mut self, keys: &[TicketKey]) -> Result<(), ServerConfigError>;

    /// Refuses new sessions, and does not respond to dials.
    fn refuse_dials(&mut self);

    fn sessions(&self) -> usize;

    fn web(&self) -> WebTraffic {
        WebTraffic::default()
    }

    fn counters(&self) -> TransportCounters;
}

pub(super) struct Listeners {
    listeners: Vec<Box<dyn Listener>>,
    behind: BTreeMap<SessionId, usize>,
}

impl Listeners {
    pub(super) fn new(listeners: Vec<Box<dyn Listener>>) -> Listeners {
        Listeners {
            listeners,
            behind: BTreeMap::new(),
        }
    }

    fn of(&mut self, session: SessionId) -> Option<&mut dyn Listener> {
        let at = match self.listeners.len() {
            1 => 0,
            _ => *self.behind.get(&session)?,
        };
        match self.listeners.get_mut(at) {
            Some(listener) => Some(&mut **listener),
            None => None,
        }
    }

    fn next_event(&mut self) -> Option<(usize, ServerEvent)> {
        let mut listeners = self.listeners.iter_mut().enumerate();
        listeners.find_map(|(at, listener)| listener.event().map(|event| (at, event)))
    }
}

impl Listener for Listeners {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut ready = Poll::Pending;
        // Polls all of them, so that each registers the waker.
        for listener in &mut self.listeners {
            if listener.poll_ready(context).is_ready() {
                ready = Poll::Ready(());
            }
        }
        ready
    }

    fn rouse(&mut self, rouses: bool) {
        self.listeners
            .iter_mut()
            .for_each(|listener| listener.rouse(rouses));
    }

    fn receive(&mut self, now: Duration, at_most: usize, traffic: &mut Traffic) -> usize {
        let took = self.listeners.iter_mut();
        took.map(|listener| listener.receive(now, at_most, traffic))
            .sum()
    }

    fn event(&mut self) -> Option<ServerEvent> {
        loop {
            let (at, event) = self.next_event()?;
            if self.listeners.len() == 1 {
                return Some(event);
            }
            let (ServerEvent::Connected { session, .. }
            | ServerEvent::Packet { session, .. }
            | ServerEvent::Disconnected { session, .. }) = &event;
            let session = *session;
            match (&event, self.behind.get(&session)) {
                (ServerEvent::Connected { .. }, None) => {
                    self.behind.insert(session, at);
                }
                (ServerEvent::Connected { .. }, Some(_)) => {
                    self.listeners[at].disconnect(session);
                    continue;
                }
                // A listener cannot affect the sessions of another listener.
                (_, behind) if behind != Some(&at) => continue,
                (ServerEvent::Disconnected { .. }, _) => {
                    self.behind.remove(&session);
                }
                (ServerEvent::Packet { .. }, _) => {}
            }
            return Some(event);
        }
    }

    fn admit(&mut self, session: SessionId) {
        if let Some(listener) = self.of(session) {
            listener.admit(session);
        }
    }

    fn send(&mut self, session: SessionId, packet: &[u8]) -> bool {
        self.of(session)
            .is_some_and(|listener| listener.send(session, packet))
    }

    fn disconnect(&mut self, session: SessionId) {
        if let Some(listener) = self.of(session) {
            listener.disconnect(session);
        }
        self.behind.remove(&session);
    }

    fn transmit(&mut self, traffic: &mut Traffic) {
        self.listeners
            .iter_mut()
            .for_each(|listener| listener.transmit(traffic));
    }

    fn advance(&mut self, now: Duration, now_unix: Duration) {
        self.listeners
            .iter_mut()
            .for_each(|listener| listener.advance(now, now_unix));
    }

    fn settle(&mut self, session: SessionId) {
        if let Some(listener) = self.of(session) {
            listener.settle(session);
        }
    }

    fn set_keys(&mut self, keys: &[TicketKey]) -> Result<(), ServerConfigError> {
        self.listeners
            .iter_mut()
            .try_for_each(|listener| listener.set_keys(keys))
    }

    fn refuse_dials(&mut self) {
        self.listeners
            .iter_mut()
            .for_each(|listener| listener.refuse_dials());
    }

    fn sessions(&self) -> usize {
        self.listeners
            .iter()
            .map(|listener| listener.sessions())
            .sum()
    }

    fn web(&self) -> WebTraffic {
        let of_each = self.listeners.iter().map(|listener| listener.web());
        of_each.max_by_key(|web| web.lines).unwrap_or_default()
    }

    fn counters(&self) -> TransportCounters {
        let mut sum = TransportCounters::default();
        for listener in &self.listeners {
            sum += listener.counters();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};
    use std::task::Waker;

    use twinstep_udp::{Identity, MatchId, Role, TicketClaims};

    use super::*;

    #[derive(Default)]
    struct Calls {
        sent: Vec<(u64, Vec<u8>)>,
        admitted: Vec<u64>,
        ended: Vec<u64>,
        rouses: Option<bool>,
        polled: u32,
        moved_on: u32,
        keys: usize,
        refuses_dials: bool,
    }

    struct Memory {
        comes: VecDeque<ServerEvent>,
        calls: Arc<Mutex<Calls>>,
    }

    impl Listener for Memory {
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<()> {
            self.calls.lock().unwrap().polled += 1;
            match self.comes.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        }

        fn rouse(&mut self, rouses: bool) {
            self.calls.lock().unwrap().rouses = Some(rouses);
        }

        fn receive(&mut self, _: Duration, at_most: usize, traffic: &mut Traffic) -> usize {
            let count = self.comes.len().min(at_most);
            traffic.datagrams_in += count as u64;
            count
        }

        fn event(&mut self) -> Option<ServerEvent> {
            self.comes.pop_front()
        }

        fn admit(&mut self, session: SessionId) {
            self.calls.lock().unwrap().admitted.push(session.0);
        }

        fn send(&mut self, session: SessionId, packet: &[u8]) -> bool {
            let mut calls = self.calls.lock().unwrap();
            calls.sent.push((session.0, packet.to_vec()));
            true
        }

        fn disconnect(&mut self, session: SessionId) {
            self.calls.lock().unwrap().ended.push(session.0);
        }

        fn transmit(&mut self, traffic: &mut Traffic) {
            traffic.datagrams_out += 1;
        }

        fn advance(&mut self, _: Duration, _: Duration) {
            self.calls.lock().unwrap().moved_on += 1;
        }

        fn settle(&mut self, _: SessionId) {}

        fn set_keys(&mut self, keys: &[TicketKey]) -> Result<(), ServerConfigError> {
            self.calls.lock().unwrap().keys = keys.len();
            Ok(())
        }

        fn refuse_dials(&mut self) {
            self.calls.lock().unwrap().refuses_dials = true;
        }

        fn sessions(&self) -> usize {
            3
        }

        fn counters(&self) -> TransportCounters {
            TransportCounters {
                junk: 2,
                ..TransportCounters::default()
            }
        }
    }

    fn claims(identity: &str) -> TicketClaims {
        TicketClaims {
            ticket_id: 1,
            identity: Identity::new(identity, Role::Player),
            match_id: MatchId(7),
            seats: 1,
            stamp: twinstep_udp::Stamp::default(),
        }
    }

    fn events(session: SessionId, identity: &str) -> VecDeque<ServerEvent> {
        VecDeque::from([
            ServerEvent::Connected {
                session,
                ticket: claims(identity),
            },
            ServerEvent::Packet {
                session,
                bytes: identity.as_bytes().to_vec().into(),
            },
        ])
    }

    fn listener(sessions: &[(u64, &str)]) -> (Box<dyn Listener>, Arc<Mutex<Calls>>) {
        let calls = Arc::<Mutex<Calls>>::default();
        let comes = sessions
            .iter()
            .flat_map(|(id, identity)| events(SessionId(*id), identity));
        let memory = Memory {
            comes: comes.collect(),
            calls: calls.clone(),
        };
        (Box::new(memory), calls)
    }

    #[test]
    fn each_session_is_reached_through_its_own_listener() {
        let (anna, bert) = (SessionId(5), SessionId(u64::MAX));
        let (first, calls) = listener(&[(anna.0, "anna")]);
        let (second, second_calls) = listener(&[(bert.0, "bert")]);
        let mut listeners = Listeners::new(vec![first, second]);
        let mut context = Context::from_waker(Waker::noop());
        assert!(listeners.poll_ready(&mut context).is_ready());
        let mut traffic = Traffic::default();
        assert_eq!(listeners.receive(Duration::ZERO, 99, &mut traffic), 4);
        let events: Vec<_> = std::iter::from_fn(|| listeners.event()).collect();
        let expected: Vec<_> = events_of([(anna, "anna"), (bert, "bert")]);
        assert_eq!(events, expected);
        assert!(listeners.poll_ready(&mut context).is_pending());

        listeners.admit(bert);
        assert!(listeners.send(anna, b"to anna") && listeners.send(bert, b"to bert"));
        listeners.disconnect(anna);
        assert!(!listeners.send(anna, b"a lost packet"));
        assert!(!listeners.send(SessionId(6), b"no session"));
        listeners.rouse(false);
        listeners.transmit(&mut traffic);
        listeners.refuse_dials();
        assert_eq!((traffic.datagrams_in, traffic.datagrams_out), (4, 2));
        assert_eq!((listeners.sessions(), listeners.counters().junk), (6, 4));
        let (first, second) = (calls.lock().unwrap(), second_calls.lock().unwrap());
        assert_eq!(first.sent, [(anna.0, b"to anna".to_vec())]);
        assert_eq!(second.sent, [(bert.0, b"to bert".to_vec())]);
        assert_eq!(
            (&first.admitted[..], &first.ended[..]),
            (&[][..], &[anna.0][..])
        );
        assert_eq!(
            (&second.admitted[..], &second.ended[..]),
            (&[bert.0][..], &[][..])
        );
        for calls in [first, second] {
            assert!(calls.refuses_dials);
            assert_eq!(calls.rouses, Some(false));
        }
    }

    /// A listener that had been left out still accepted dropped keys, and did not wake the task.
    #[test]
    fn calls_for_all_listeners_reach_every_listener() {
        let (first, calls) = listener(&[(5, "anna")]);
        let (second, second_calls) = listener(&[(6, "bert")]);
        let mut listeners = Listeners::new(vec![first, second]);
        let mut context = Context::from_waker(Waker::noop());
        assert!(listeners.poll_ready(&mut context).is_ready());
        listeners.advance(Duration::ZERO, Duration::ZERO);
        let keys = [TicketKey::generate(), TicketKey::generate()];
        listeners.set_keys(&keys).unwrap();
        for calls in [calls, second_calls] {
            let calls = calls.lock().unwrap();
            let counts = (calls.polled, calls.moved_on, calls.keys);
            assert_eq!(counts, (1, 1, 2));
        }
    }

    #[test]
    fn a_departed_session_is_removed() {
        let gone = ServerEvent::Disconnected {
            session: SessionId(5),
            reason: twinstep_udp::LeaveReason::Left,
        };
        let calls = Arc::<Mutex<Calls>>::default();
        let mut comes = events(SessionId(5), "anna");
        comes.push_back(gone.clone());
        let first = Memory {
            comes,
            calls: calls.clone(),
        };
        let (second, _) = listener(&[]);
        let mut listeners = Listeners::new(vec![Box::new(first), second]);
        assert_eq!(std::iter::from_fn(|| listeners.event()).last(), Some(gone));
        assert!(!listeners.send(SessionId(5), b"a lost packet"));
        assert!(calls.lock().unwrap().sent.is_empty() && listeners.behind.is_empty());
    }

    #[test]
    fn a_duplicate_session_id_is_refused() {
        let (first, _) = listener(&[(5, "anna")]);
        let (second, calls) = listener(&[(5, "mallory")]);
        let mut listeners = Listeners::new(vec![first, second]);
        let came = std::iter::from_fn(|| listeners.event());
        assert!(came.eq(events_of([(SessionId(5), "anna")])));
        assert_eq!(calls.lock().unwrap().ended, [5]);
        assert!(listeners.send(SessionId(5), b"to anna"));
        assert_eq!(calls.lock().unwrap().sent, []);
    }

    fn events_of<const N: usize>(sessions: [(SessionId, &str); N]) -> Vec<ServerEvent> {
        let events = sessions
            .into_iter()
            .flat_map(|(session, identity)| events(session, identity));
        events.collect()
    }
}
