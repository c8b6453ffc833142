//! The server's side of every session, as a state machine without a socket.
//!
//! ```text
//! datagram ─▶ sane? ─▶ session? ─▶ cipher (one per key) ─▶ admitted? ─▶ rate ─▶ link ─▶ Packet event
//!               │          │          │                        │          │       │
//!               └──────────┴─── dropped: one counter for each reason ─────┴───────┘
//! ```
//!
//! The life of a session: an authentic ticket that the [ledger](TicketLedger) does not refuse, and a response that only
//! its holder can compute → [`Connected`](ServerEvent::Connected) → the host finds the match →
//! [`admit`](ServerEndpoint::admit) → packets → [`Disconnected`](ServerEvent::Disconnected).
//!
//! Slots: a session that is not [settled](ServerEndpoint::settle) in a match is a stranger, or reconnects to a seat.
//! Strangers and settled sessions share `sessions_max` slots. If these are taken, the stranger admitted first and not
//! settled for [`MUTE`] loses its slot. There are another `sessions_max` slots for reconnecting sessions only. So a
//! seat holder finds a slot, however many strangers have tickets.
//!
//! Invariants: each session has its own keys, even if a ticket is used several times, and bytes sealed for one session
//! cannot start another one. Until a session is admitted no packet passes in either direction. A stranger's datagram
//! costs a lookup, or one decryption if it has the shape of a dial, but never memory. Copies of a dial cost memory for
//! at most four addresses, and get at most a response that is shorter than the copy and useful only to the ticket's
//! holder. But each copy costs more time: the server derives the keys, seals netcode's token and opens it again, and
//! searches for it among all tokens that it keeps. Copies are not rate-limited, because their sender could then deprive
//! the real client of its response.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use twinstep_protocol::identity::{Role, SessionId};

use crate::address::ServerAddress;
use crate::admissions::Admissions;
use crate::claims::{Holder, TicketClaims};
use crate::dial::DIAL;
use crate::keys::TicketKey;
use crate::ledger::TicketLedger;
use crate::link::{LaminarLink, NotAPacket, Payload, path_unknown};
use crate::netcode::{CipherEvent, DATAGRAM_MAX, RETURNING, sane, sequence};
use crate::send_queue::{AddressPair, SendQueue};
use crate::transport::{LeaveReason, PACKET_MAX, SendError, TransportCounters};

mod handshake;
mod session;

use session::{ServerKey, ServerSession, TokenBucket};

pub use session::{DATAGRAMS_BURST, DATAGRAMS_PER_SECOND};

/// The maximum number of sessions per server.
pub const SESSIONS_MAX: usize = 1_024;
/// The maximum number of keys alive at the same time.
pub const KEYS_MAX: usize = 2;

/// The maximum number of outgoing datagrams waiting: 16 for each of 1,024 sessions.
const OUTBOX_MAX: usize = 16 * SESSIONS_MAX;
/// The maximum number of packets waiting to be taken as events.
const PACKETS_WAITING_MAX: usize = 16 * SESSIONS_MAX;
/// For this long after a session ended, datagrams from its address count as late, because they may belong to it.
const GONE_LIFE: Duration = Duration::from_secs(2);
/// The maximum number of keys that accept tickets, or are still used by sessions or connecting clients.
const KEYS_IN_USE_MAX: usize = 8;
/// A stranger admitted this long ago that no match has settled loses its slot if another session needs it. A client
/// sends its hello as soon as it knows that it is connected.
const MUTE: Duration = Duration::from_secs(1);
const GONE_MAX: usize = SESSIONS_MAX;

/// The configuration of a server endpoint.
#[derive(Clone, Debug)]
pub struct ServerConfig<'a> {
    /// One or two keys. Tickets issued with any of them are accepted.
    pub keys: &'a [TicketKey],
    /// The addresses in tickets: those that players dial, not the socket's local address.
    pub public_addresses: &'a [ServerAddress],
    /// The maximum number of sessions, 1..=[`SESSIONS_MAX`]. There are equally many additional slots for identities
    /// that reconnect to a seat. Memory: 3 KB for each session and key, and 1.7 MB for all sessions together.
    pub sessions_max: usize,
    /// The game's id.
    pub game: &'a str,
    /// The version of the wire format.
    pub wire_version: u32,
    /// The ledger of tickets and seats, which all transports of a server share.
    pub tickets: TicketLedger,
}

/// The reason why a server endpoint refuses a configuration or new keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ServerConfigError {
    #[error("expected 1 to {KEYS_MAX} keys, got {0}")]
    Keys(usize),
    #[error(
        "cannot change keys: connected players already use {0} different keys, the limit; try again when some have left"
    )]
    KeysInUse(usize),
    #[error("expected 1 to {SESSIONS_MAX} sessions, got {0}; run a second server for more")]
    Sessions(usize),
    #[error("expected at least one public address, which tickets contain and players dial")]
    NoAddress,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum ServerEvent {
    /// The client holds a ticket that the ledger does not refuse. [Admit](ServerEndpoint::admit) the session, or
    /// [disconnect](ServerEndpoint::disconnect) it.
    Connected {
        session: SessionId,
        ticket: TicketClaims,
    },
    /// A packet of an admitted session.
    Packet {
        session: SessionId,
        /// The packet, at most [`PACKET_MAX`] bytes, as the peer sent it: authentic, but not validated.
        bytes: Payload,
    },
    /// A session ended, but not by [`disconnect`](ServerEndpoint::disconnect).
    Disconnected {
        session: SessionId,
        reason: LeaveReason,
    },
}

/// The server's side of every session: datagrams and time in, datagrams and events out.
///
/// The life of a session: [`Connected`](ServerEvent::Connected) → the host finds the match → [`admit`](Self::admit) →
/// packets → [`Disconnected`](ServerEvent::Disconnected). No packet passes before the session is admitted.
pub struct ServerEndpoint {
    keys: Vec<ServerKey>,
    game: String,
    wire_version: u32,
    /// The server's addresses as hashes, like those in passes.
    public_addresses: Vec<u64>,
    sessions_max: usize,
    now: Duration,
    tickets: TicketLedger,
    sessions: BTreeMap<SessionId, ServerSession>,
    by_address: BTreeMap<SocketAddr, SessionId>,
    admissions: Admissions,
    /// The laminar instance of all sessions; it takes 1.7 MB. Whole unreliable packets do not leave state in
    /// it, so sessions cannot affect each other there. `None` until a session is admitted.
    link: Option<LaminarLink>,
    outbox: SendQueue,
    events: VecDeque<ServerEvent>,
    packets_waiting: usize,
    gone: BTreeMap<SocketAddr, Duration>,
    refuses_dials: bool,
    counters: TransportCounters,
    scratch: Box<[u8; DATAGRAM_MAX]>,
}

fn check_keys(keys: &[TicketKey]) -> Result<(), ServerConfigError> {
    match keys.len() {
        1..=KEYS_MAX => Ok(()),
        other => Err(ServerConfigError::Keys(other)),
    }
}

impl ServerEndpoint {
    /// Creates a server without sessions. `now` is the current session time.
    ///
    /// # Errors
    /// [`ServerConfigError`] if the configuration is out of its ranges.
    pub fn new(
        config: ServerConfig<'_>,
        now: Duration,
    ) -> Result<ServerEndpoint, ServerConfigError> {
        check_keys(config.keys)?;
        if !(1..=SESSIONS_MAX).contains(&config.sessions_max) {
            return Err(ServerConfigError::Sessions(config.sessions_max));
        }
        if config.public_addresses.is_empty() {
            return Err(ServerConfigError::NoAddress);
        }
        let server_key =
            |key| ServerKey::new(key, config.game, config.wire_version, config.sessions_max);
        Ok(ServerEndpoint {
            keys: config.keys.iter().map(server_key).collect(),
            game: config.game.to_owned(),
            wire_version: config.wire_version,
            public_addresses: config
                .public_addresses
                .iter()
                .map(ServerAddress::hash)
                .collect(),
            sessions_max: config.sessions_max,
            now,
            tickets: config.tickets,
            sessions: BTreeMap::new(),
            by_address: BTreeMap::new(),
            admissions: Admissions::default(),
            link: None,
            outbox: SendQueue::new(OUTBOX_MAX),
            events: VecDeque::new(),
            packets_waiting: 0,
            gone: BTreeMap::new(),
            refuses_dials: false,
            counters: TransportCounters::default(),
            scratch: Box::new([0; DATAGRAM_MAX]),
        })
    }

    /// Handles a datagram from the socket. Invalid datagrams are not errors; they are only counted.
    ///
    /// Replies are sent from the address at which the datagram arrived, if its [`AddressPair`] names one.
    pub fn handle(&mut self, now: Duration, path: impl Into<AddressPair>, datagram: &[u8]) {
        let path = path.into();
        let from = path.peer;
        self.outbox.leave_from(path.local);
        // After a pause of the process, old datagrams count as received now, so that the pause is not mistaken for
        // silence.
        self.pass_time(now);
        self.counters.datagrams += 1;
        if datagram.len() > DATAGRAM_MAX {
            self.counters.oversize += 1;
        } else if !sane(datagram) {
            self.counters.junk += 1;
        } else if datagram[0] == DIAL {
            if self.refuses_dials {
                self.counters.late += 1;
                return;
            }
            self.handle_dial(now, from, datagram);
        } else if let Some(&session) = self.by_address.get(&from) {
            let key = self.sessions[&session].key;
            self.handle_sealed(now, path, datagram, (key, session.0));
        } else if self.admissions.challenge(from).is_some() {
            self.handle_answer(now, path, datagram);
        } else if self.gone.contains_key(&from) {
            // A client says goodbye several times, since a datagram may be lost.
            self.counters.late += 1;
        } else {
            self.counters.junk += 1;
        }
    }

    /// From now on, ignores new dials, as if the process had already ended. A client that dials keeps its ticket, and
    /// dials again.
    pub fn refuse_dials(&mut self) {
        self.refuses_dials = true;
        self.admissions.clear_challenges();
    }

    /// Changes the keys. From now on, only tickets issued with these keys are accepted: a client that is still
    /// connecting with another key gets no session. Sessions that have already started continue.
    ///
    /// # Errors
    /// [`ServerConfigError::Keys`] if there is no key, or too many. [`ServerConfigError::KeysInUse`] if sessions or
    /// connecting clients still use too many earlier keys. In that case the keys stay as they were.
    pub fn set_keys(&mut self, keys: &[TicketKey]) -> Result<(), ServerConfigError> {
        check_keys(keys)?;
        let known = |server_keys: &[ServerKey], key: &TicketKey| {
            let id = key.protocol_id(&self.game, self.wire_version);
            let is_it = |one: &ServerKey| one.id == id && one.secret == *key.secret();
            server_keys.iter().position(is_it)
        };
        // Slots of keys with which no session plays and no client is connecting.
        let in_use = |at: usize| {
            self.sessions.values().any(|session| session.key == at) || self.admissions.knows_key(at)
        };
        let stays = |at: usize| keys.iter().any(|key| known(&self.keys, key) == Some(at));
        let free = |at: &usize| !stays(*at) && !in_use(*at);
        let mut places: Vec<usize> = (0..self.keys.len()).filter(free).collect();
        places.extend(self.keys.len()..KEYS_IN_USE_MAX);
        let fresh: Vec<&TicketKey> = keys
            .iter()
            .filter(|key| known(&self.keys, key).is_none())
            .collect();
        if fresh.len() > places.len() {
            return Err(ServerConfigError::KeysInUse(KEYS_IN_USE_MAX));
        }
        for at in 0..self.keys.len() {
            let is_open = keys.iter().any(|key| known(&self.keys, key) == Some(at));
            self.keys[at].is_open = is_open;
        }
        for (key, at) in fresh.into_iter().zip(places) {
            let server_key = ServerKey::new(key, &self.game, self.wire_version, self.sessions_max);
            match self.keys.get_mut(at) {
                Some(place) => *place = server_key,
                None => self.keys.push(server_key),
            }
        }
        Ok(())
    }

    /// Advances time: sends keep-alives, detects time-outs, drops old entries. Call this at least every 100 ms, after
    /// the socket's waiting datagrams were [handled](Self::handle). Costs a check of each session, and a microsecond
    /// for each silent one. `now_unix` is the wall-clock time, read for every call, since it may jump: tickets expire
    /// by it alone, and a jump forward takes effect after twenty minutes.
    pub fn advance(&mut self, now: Duration, now_unix: Duration) {
        self.pass_time(now);
        self.tickets.advance(self.now, now_unix);
        let mut silent = Vec::new();
        for (&id, session) in &mut self.sessions {
            if session.datagrams.is_due(self.now) {
                session.send_beside(self.now, id, &mut self.keys, &mut self.outbox);
            }
            if !session.needs_care(self.now) {
                continue;
            }
            session.tended = self.now;
            self.outbox.leave_from(session.path.local);
            let cipher = &mut self.keys[session.key].cipher;
            let pings = !session.is_confirmed || session.is_untold(self.now);
            if !cipher.tend(session.slot, id.0, pings, &mut self.outbox) {
                silent.push(id);
            }
        }
        for session in silent {
            self.end(session, LeaveReason::TimedOut);
        }

        let now = self.now;
        self.gone
            .retain(|_, since| now.saturating_sub(*since) < GONE_LIFE);
        self.admissions.forget(now);
    }

    /// Records that a match accepted a session after its hello. From now on its identity has a seat, unless it is a
    /// spectator: see [`TicketLedger::set_seat`]. Unknown sessions are ignored.
    pub fn settle(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.is_settled = true;
            session.returns = false;
            if session.of.identity.role == Role::Player {
                self.tickets.set_seat(session.of.clone(), true);
            }
        }
    }

    /// Lets a session send and receive. Unknown sessions are ignored.
    pub fn admit(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.admitted.get_or_insert(self.now);
            self.link.get_or_insert_with(LaminarLink::new);
        }
    }

    /// Queues a packet for an admitted session.
    ///
    /// A keep-alive shows a client that it is connected, and netcode sends none while packets flow. So packets are
    /// refused until a datagram arrives from the client: its first packet, or a keep-alive a quarter of a second after
    /// it connected.
    ///
    /// # Errors
    /// [`SendError`] if the packet is too large, the session is not admitted, or the queue is full. In the last two
    /// cases the packet counts as lost.
    pub fn send(&mut self, session: SessionId, packet: &[u8]) -> Result<(), SendError> {
        if packet.len() > PACKET_MAX {
            return Err(SendError::Oversize {
                bytes: packet.len(),
            });
        }
        let id = session.0;
        let session = self
            .sessions
            .get_mut(&session)
            .ok_or(SendError::NotConnected)?;
        let speaks = session.admitted.is_some() && session.is_confirmed;
        let link = self.link.as_mut().filter(|_| speaks);
        let link = link.ok_or(SendError::NotConnected)?;
        let wrapped = link.wrap(self.now, packet);
        self.outbox.leave_from(session.path.local);
        let (cipher, out) = (&mut self.keys[session.key].cipher, &mut self.outbox);
        let slot = session.slot;
        let seal = |datagram: &[u8]| cipher.seal(slot, id, datagram, out);
        if session.datagrams.cut(self.now, wrapped, seal) {
            session.sent = self.now;
            Ok(())
        } else {
            Err(SendError::QueueFull)
        }
    }

    /// Ends a session and notifies its client. No event follows; the session's waiting packets stay queued.
    pub fn disconnect(&mut self, session: SessionId) {
        if let Some(ended) = self.sessions.remove(&session) {
            self.forget(ended.path.peer);
            self.outbox.leave_from(ended.path.local);
            self.keys[ended.key]
                .cipher
                .disconnect(session.0, &mut self.outbox);
        }
    }

    /// The next datagram for the socket. Its bytes are readable until the next call.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, &[u8])> {
        let (path, datagram) = self.outbox.pop()?;
        Some((path.peer, datagram))
    }

    /// Groups the datagrams by source address, so that one system call can send many. Each peer's datagrams keep their
    /// order.
    pub fn group_outgoing(&mut self) {
        self.outbox.group();
    }

    /// All datagrams for the socket, with their source addresses. A host sends several together, and then
    /// [drops](Self::drop_outgoing) them.
    pub fn outgoing(&self) -> impl ExactSizeIterator<Item = (AddressPair, &[u8])> + Clone {
        self.outbox.iter()
    }

    /// Drops the oldest `count` datagrams for the socket, or all if there are fewer.
    pub fn drop_outgoing(&mut self, count: usize) {
        self.outbox.drop_front(count);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        let event = self.events.pop_front()?;
        if matches!(event, ServerEvent::Packet { .. }) {
            self.packets_waiting -= 1;
        }
        Some(event)
    }

    /// The ledger that decides which tickets open a session.
    #[must_use]
    pub fn tickets(&self) -> &TicketLedger {
        &self.tickets
    }

    /// The number of sessions, admitted or not.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The address of a session's client, or `None` if the session is unknown.
    #[must_use]
    pub fn address(&self, session: SessionId) -> Option<SocketAddr> {
        self.sessions.get(&session).map(|session| session.path.peer)
    }

    /// Returns `true` if this address has a session, or presented a valid ticket and was challenged.
    #[must_use]
    pub fn knows(&self, peer: SocketAddr) -> bool {
        self.by_address.contains_key(&peer) || self.admissions.challenge(peer).is_some()
    }

    /// Ends the session of an address whose connection was closed.
    pub fn lose(&mut self, peer: SocketAddr) {
        if let Some(&session) = self.by_address.get(&peer) {
            self.disconnect(session);
            let reason = LeaveReason::TimedOut;
            self.events
                .push_back(ServerEvent::Disconnected { session, reason });
        }
    }

    /// Counters of the datagrams and packets received, and of those dropped, by reason.
    #[must_use]
    pub fn counters(&self) -> TransportCounters {
        self.counters
    }

    #[cfg(test)]
    pub(crate) fn remembered_peers(&self) -> usize {
        self.by_address.len() + self.admissions.len()
    }

    /// Returns `true` if no datagram arrived from a session since it connected, or for [`MUTE`]. Its client may have
    /// ended, or may dial from this address without knowing the session.
    fn may_be_dead(&self, session: SessionId) -> bool {
        let is_dead = |one: &ServerSession| {
            !one.is_confirmed || self.now.saturating_sub(one.received_at) >= MUTE
        };
        self.sessions.get(&session).is_some_and(is_dead)
    }

    fn displace(&mut self, session: SessionId) {
        self.disconnect(session);
        let reason = LeaveReason::Displaced;
        self.events
            .push_back(ServerEvent::Disconnected { session, reason });
    }

    /// Returns `true` if there is a slot for a session of this holder now.
    fn has_place(&self, of: &Holder) -> bool {
        match self.tickets.has_seat(of) {
            true => self.sessions.len() < RETURNING * self.sessions_max,
            false => self.others() < self.sessions_max || self.mute().is_some(),
        }
    }

    /// The number of sessions that are not reconnecting: sessions in matches, and strangers.
    fn others(&self) -> usize {
        self.sessions.values().filter(|one| !one.returns).count()
    }

    /// The stranger that loses its slot if another session needs it: the first one admitted, if that was at least
    /// [`MUTE`] ago.
    fn mute(&self) -> Option<SessionId> {
        let since = |one: &ServerSession| one.admitted.filter(|_| !one.is_settled && !one.returns);
        let strangers = self.sessions.iter();
        let strangers = strangers.filter_map(|(id, one)| Some((since(one)?, *id)));
        let (since, first) = strangers.min()?;
        (self.now.saturating_sub(since) >= MUTE).then_some(first)
    }

    fn pass_time(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.now);
        if elapsed.is_zero() {
            return;
        }
        self.now += elapsed;
        for server_key in &mut self.keys {
            server_key.cipher.advance(elapsed);
        }
    }

    /// Handles a sealed datagram from an established or a starting session.
    fn handle_sealed(
        &mut self,
        now: Duration,
        path: AddressPair,
        datagram: &[u8],
        (key, session): (usize, u64),
    ) {
        let from = path.peer;
        let copy = &mut self.scratch[..datagram.len()];
        copy.copy_from_slice(datagram);
        let out = &mut self.outbox;
        let event = self.keys[key].cipher.handle(session, from, copy, out);
        match event {
            CipherEvent::Payload { id, bytes } => {
                let id = SessionId(id);
                let Some(session) = self.sessions.get_mut(&id) else {
                    return;
                };
                session.is_confirmed = true;
                session.received_at = now;
                session.newest = sequence(datagram).max(session.newest);
                let Some(link) = self.link.as_mut().filter(|_| session.admitted.is_some()) else {
                    self.counters.unadmitted += 1;
                    return;
                };
                if !session.bucket.take(now) {
                    self.counters.rate_limited += 1;
                    return;
                }
                if self.packets_waiting >= PACKETS_WAITING_MAX {
                    self.counters.queue_full += 1;
                    return;
                }
                let Some(bytes) = session.datagrams.join(bytes) else {
                    // A probe gets its reply immediately.
                    if session.datagrams.is_due(now) {
                        session.send_beside(now, id, &mut self.keys, &mut self.outbox);
                    }
                    return;
                };
                let (events, waiting) = (&mut self.events, &mut self.packets_waiting);
                let packets = &mut self.counters.packets;
                let unwrapped = link.unwrap(now, bytes, |packet| {
                    *waiting += 1;
                    *packets += 1;
                    events.push_back(ServerEvent::Packet {
                        session: id,
                        bytes: packet,
                    });
                });
                match unwrapped {
                    Ok(()) => {}
                    Err(NotAPacket::Fenced) => self.counters.fenced += 1,
                    Err(NotAPacket::Oversize) => self.counters.oversize += 1,
                }
            }
            CipherEvent::Connected { id, slot } => {
                let ticket = self.admissions.take_answered(now, from, id);
                self.connect(now, path, key, slot, id, ticket);
            }
            CipherEvent::Left { id } => self.end(SessionId(id), LeaveReason::Left),
            CipherEvent::Rejected => {
                let repeats = self
                    .by_address
                    .get(&from)
                    .and_then(|id| self.sessions.get(id))
                    .is_some_and(|session| sequence(datagram) <= session.newest);
                match repeats {
                    // Networks duplicate datagrams, and eavesdroppers repeat them.
                    true => self.counters.late += 1,
                    false => self.counters.rejected += 1,
                }
            }
            CipherEvent::Denied => self.counters.denied_full += 1,
            CipherEvent::KeptAlive => {
                if let Some(id) = self.by_address.get(&from)
                    && let Some(session) = self.sessions.get_mut(id)
                {
                    session.is_confirmed = true;
                    session.received_at = now;
                    session.newest = sequence(datagram).max(session.newest);
                }
            }
            CipherEvent::Nothing => {}
        }
    }

    fn connect(
        &mut self,
        now: Duration,
        path: AddressPair,
        key: usize,
        slot: usize,
        id: u64,
        ticket: Option<TicketClaims>,
    ) {
        let Some(ticket) = ticket else {
            self.counters.rejected += 1;
            self.keys[key].cipher.disconnect(id, &mut self.outbox);
            return;
        };
        let of = ticket.holder();
        let returns = self.tickets.has_seat(&of);
        if !returns
            && self.others() >= self.sessions_max
            && let Some(mute) = self.mute()
        {
            self.displace(mute);
        }
        let session = SessionId(id);
        self.by_address.insert(path.peer, session);
        self.sessions.insert(
            session,
            ServerSession {
                key,
                slot,
                path,
                bucket: TokenBucket::full(now),
                datagrams: path_unknown(),
                is_confirmed: false,
                admitted: None,
                of,
                is_settled: false,
                returns,
                newest: 0,
                received_at: now,
                sent: now,
                tended: now,
            },
        );
        self.events
            .push_back(ServerEvent::Connected { session, ticket });
    }

    /// Drops the address of an ended session. For [`GONE_LIFE`], datagrams from it count as late, not as junk.
    fn forget(&mut self, address: SocketAddr) {
        self.by_address.remove(&address);
        if self.gone.len() < GONE_MAX {
            self.gone.insert(address, self.now);
        }
    }

    fn end(&mut self, session: SessionId, reason: LeaveReason) {
        if let Some(ended) = self.sessions.remove(&session) {
            self.forget(ended.path.peer);
            self.events
                .push_back(ServerEvent::Disconnected { session, reason });
        }
    }
}
