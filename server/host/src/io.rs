//! The I/O task: owns the listeners (`host/listener.rs`) and routes packets between sessions and matches.
//!
//! ```text
//!  Connected ─▶ match known? ──▶ Playing ──Close──▶ Leaving ──1 s──▶ disconnected
//!      │ banned     └ not yet ─▶ Waiting ──10 s──────▲
//!      └──────────────────────────────────────────────┘
//! ```
//!
//! A closing session answers each late packet with its close code again: the first copy may be lost. An identity with
//! too many waiting or closing sessions loses one of them (`host/routes.rs`).
//!
//! The task wakes when a datagram arrives, after matches were run, and at each beat. Under load, a datagram does not
//! wake it (`host/load.rs`).
//!
//! Invariant: it awaits only the next event. A full channel or socket drops the packet.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::oneshot;
use tracing::field::debug;
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;
use twinstep_protocol::wire::Writer;
use twinstep_udp::{
    Holder, LeaveReason, Payload, ServerConfigError, ServerEvent, SessionId, TicketClaims,
    TicketKey, TicketLedger, TransportCounters,
};

use super::clock::{HostClock, unix_now};
use super::demand::Demand;
use super::listener::{Listener, Listeners};
use super::load::{Load, MOMENT};
use super::logged;
use super::match_inbox::{FromIo, InboxSender};
use super::observer::{AdmissionPolicy, Observer, Traffic};
use super::packets::Packets;
use super::pulse::Beat;
use super::routes::{IDLE_MAX, Route, RoutedSession, Routes};
use super::workers::Workers;

#[cfg(test)]
mod tests;

/// The part of this task's channel that packets cannot use. It is reserved for orders that must not be lost.
pub(super) const RESERVED: usize = 2_048;
const GOODBYE: Duration = Duration::from_secs(1);
/// A released match is not resumed here for this long. Meanwhile, its players reach the next server listed in their
/// tickets. The time is short, because that server may also release the match.
const MOVED_FOR: Duration = Duration::from_secs(5);
/// The maximum number of datagrams, or of orders, handled before the other kind gets its turn.
const BATCH: usize = 256;
/// The longest time that a session waits for its match. It is this long because a restarted host resumes its matches
/// one after the other.
const MATCH_PATIENCE: Duration = Duration::from_secs(10);

/// The longest pause between two log lines about dropped datagrams. The first pause is a second.
const LOSSES_PAUSE_MAX: Duration = Duration::from_secs(600);

/// The schedule of log lines about dropped datagrams. The pause doubles while datagrams are dropped.
struct LossLines {
    due: Duration,
    pause: Duration,
}

impl LossLines {
    fn new() -> LossLines {
        LossLines {
            due: Duration::ZERO,
            pause: Duration::from_secs(1),
        }
    }

    /// Returns `true` if a line is due. `is_any`: datagrams were dropped since the last line.
    fn is_due(&mut self, now: Duration, is_any: bool) -> bool {
        if now < self.due {
            return false;
        }
        if !is_any {
            *self = LossLines {
                due: now,
                ..LossLines::new()
            };
            return false;
        }
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(LOSSES_PAUSE_MAX);
        true
    }
}

pub(super) enum ToIo {
    /// Route sessions to this match. The holders have seats in it.
    Open(MatchId, InboxSender, Vec<Holder>),
    Settled(SessionId),
    Unseated(Holder),
    Over(MatchId, CloseCode),
    /// A match continues without its journal, so it is not kept.
    Unkept(MatchId),
    Packets(Packets),
    /// All packets of the turn sealed at this time precede this order.
    Sealed(Duration),
    Close(SessionId, CloseCode),
    /// Close this waiting session, because its match is not created. `RefuseAll` closes all sessions that wait for a
    /// match.
    Refuse(SessionId, CloseCode),
    RefuseAll(MatchId, CloseCode),
    /// Asks whether a match has no playing sessions. If so, new sessions wait instead of being routed there.
    Rest(MatchId, oneshot::Sender<bool>),
    Wake(MatchId),
    /// A match has released everything, so the host may create it again for waiting sessions.
    Free(MatchId),
    /// Remove this identity from all matches, and close its waiting sessions, with this code. Matches that had it
    /// report their ids.
    PutOut(String, CloseCode, Sender<MatchId>),
    Keys(
        Vec<TicketKey>,
        oneshot::Sender<Result<(), ServerConfigError>>,
    ),
    /// Refuse new sessions, and stop answering discovery probes.
    Shut,
    /// Close all sessions with this code, refuse new ones, and end when the last one is gone.
    Drain(CloseCode),
}

pub(super) struct Around {
    pub(super) beat: Arc<Beat>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) admissions: Arc<dyn AdmissionPolicy>,
    pub(super) workers: Workers,
    pub(super) demand: Demand,
    /// The seats of all matches, for the slots that listeners reserve.
    pub(super) ledger: TicketLedger,
}

struct Io {
    listeners: Listeners,
    clock: HostClock,
    matches: BTreeMap<MatchId, InboxSender>,
    routes: Routes,
    /// Deserted matches that were asked to end. Sessions for them wait.
    resting: BTreeSet<MatchId>,
    /// Matches released to another process, and the times until which they are not resumed here.
    moved: BTreeMap<MatchId, Duration>,
    around: Around,
    load: Load,
    draining: Option<CloseCode>,
    traffic: Traffic,
    /// The seal times of turns whose packets are sent with the next transmission.
    sealed: ArrayVec<Duration, BATCH>,
    lost_before: (Traffic, TransportCounters),
    losses_logged: Duration,
    loss_lines: LossLines,
}

/// Starts the task. It runs until all senders of orders are gone, or a drain has begun and the last session has ended.
pub(super) fn start(
    listeners: Listeners,
    clock: HostClock,
    orders: Receiver<ToIo>,
    around: Around,
) -> impl Future<Output = ()> {
    Io::new(listeners, clock, around).run(orders)
}

impl Io {
    fn new(listeners: Listeners, clock: HostClock, around: Around) -> Io {
        let counters = listeners.counters();
        Io {
            listeners,
            clock,
            matches: BTreeMap::new(),
            routes: Routes::default(),
            resting: BTreeSet::new(),
            moved: BTreeMap::new(),
            around,
            load: Load::default(),
            draining: None,
            traffic: Traffic::default(),
            sealed: ArrayVec::new(),
            lost_before: (Traffic::default(), counters),
            losses_logged: Duration::ZERO,
            loss_lines: LossLines::new(),
        }
    }

    async fn run(mut self, mut orders: Receiver<ToIo>) {
        let mut has_more = false;
        loop {
            if !has_more {
                self.wait().await;
            }
            // A ruling may arrive after a dial with the ticket that it invalidates. Such a session is refused when it
            // connects, or by its match.
            let Some(more) = self.apply_orders(&mut orders) else {
                return;
            };
            has_more = more;
            // Receives before time passes: otherwise a paused process would mistake its own silence for its clients'.
            let came = self
                .listeners
                .receive(self.clock.now(), BATCH, &mut self.traffic);
            let now = self.clock.now();
            let was_high = self.load.is_high();
            if self.load.record(now, came) {
                self.pass_time(now);
            }
            if self.load.is_high() != was_high {
                self.listeners.rouse(was_high);
            }
            self.handle_events();
            self.transmit();
            if self.draining.is_some() && self.routes.is_empty() {
                return;
            }
        }
    }

    /// Waits until there may be something to do. Orders do not wake the task, because a wake-up costs more than an
    /// order. Matches wake it after they were run; orders from all other senders wait for the beat.
    async fn wait(&mut self) {
        let rested = self.around.workers.rested();
        if self.load.is_high() {
            let _ = tokio::time::timeout(MOMENT, rested).await;
            return;
        }
        let due = || self.around.workers.next_due();
        let beat = self.load.until_beat(self.clock.now(), due);
        tokio::select! {
            () = poll_fn(|context| self.listeners.poll_ready(context)) => {}
            () = rested => {}
            () = tokio::time::sleep(beat) => {}
        }
    }

    /// Applies waiting orders. Returns `true` if there may be more, and `None` if all senders are gone.
    fn apply_orders(&mut self, orders: &mut Receiver<ToIo>) -> Option<bool> {
        for _ in 0..BATCH {
            match orders.try_recv() {
                Ok(order) => self.apply(order),
                Err(TryRecvError::Empty) => return Some(false),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        Some(true)
    }

    fn transmit(&mut self) {
        self.listeners.transmit(&mut self.traffic);
        if !self.sealed.is_empty() {
            let now = self.clock.now();
            for sealed in self.sealed.drain(..) {
                let took = now.saturating_sub(sealed);
                self.around.observer.sent(took);
            }
        }
    }

    fn pass_time(&mut self, now: Duration) {
        // A process whose matches are not run is as dead as one whose socket is not read.
        if self.around.workers.check() {
            self.around.beat.beat(now);
        }
        if !self.load.tends(now) {
            return;
        }
        self.listeners.advance(now, unix_now());
        let counters = self.listeners.counters();
        self.traffic.web = self.listeners.web();
        self.around.beat.show_sessions(self.listeners.sessions());
        self.around.observer.traffic(&self.traffic, &counters);
        // Skips the pass over all sessions in the usual case that all of them play.
        if !self.routes.all_play() {
            self.route_waiting();
            let is_over = |routed: &RoutedSession| matches!(routed.route, Route::Leaving(_, until) if now >= until);
            for session in self.routes.those(is_over) {
                self.end(session);
            }
        }
        if now.saturating_sub(self.losses_logged) >= Duration::from_secs(1) {
            self.losses_logged = now;
            logged::sum_up();
            self.log_losses();
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.listeners.event() {
            match event {
                ServerEvent::Connected { session, ticket } => {
                    self.handle_connected(session, ticket)
                }
                ServerEvent::Packet { session, bytes } => self.handle_packet(session, bytes),
                ServerEvent::Disconnected { session, reason } => {
                    let code = match reason {
                        LeaveReason::TimedOut => "timed_out",
                        LeaveReason::Left => "left",
                        LeaveReason::Displaced => "displaced",
                        _ => "other",
                    };
                    logged::debug!(session = session.0, code, "transport ended");
                    self.forget(session);
                }
            }
        }
    }

    fn handle_connected(&mut self, session: SessionId, ticket: TicketClaims) {
        let until = self.clock.now() + MATCH_PATIENCE;
        self.routes.come(session, ticket, until);
        self.route(session);
        // Each dial takes one of the session slots that all identities share, even if its match never starts.
        while let Some(one) = self.routes.one_too_many(session) {
            let ticket = self.routes.get(one).map(|routed| &routed.ticket);
            let identity = ticket.map(|ticket| debug(line(&ticket.identity.name)));
            logged::info!(
                session = one.0,
                "match" = ticket.map(|ticket| ticket.match_id.0),
                identity,
                limit = IDLE_MAX,
                "too many waiting sessions of one identity: closed one with an older ticket, or else the oldest"
            );
            self.end(one);
        }
    }

    /// Routes a waiting session to its match, or requests the match if it does not run here. Closes the session if it
    /// is banned, the host drains, or the match has moved.
    fn route(&mut self, session: SessionId) {
        let Some(routed) = self.routes.get(session) else {
            return;
        };
        let ticket = routed.ticket.clone();
        let admissions = &self.around.admissions;
        if let Some(code) = admissions.refusal(&ticket.identity.name, unix_now()) {
            self.traffic.banned += 1;
            return self.close_session(session, code);
        }
        if let Some(code) = self.draining {
            return self.close_session(session, code);
        }
        let id = ticket.match_id;
        let Some(inbox) = self.open_inbox(id) else {
            let now = self.clock.now();
            if self.moved.get(&id).is_some_and(|until| now < *until) {
                self.close_session(session, CloseCode::Moved);
            } else {
                self.around.demand.ask(session, &ticket);
            }
            return;
        };
        // The session's packets follow this event, so the match knows the session when they arrive.
        let event = FromIo::Connected(session, ticket);
        if inbox.send(event) {
            self.listeners.admit(session);
            self.routes.turn(session, Route::Playing);
        }
    }

    fn open_inbox(&self, id: MatchId) -> Option<&InboxSender> {
        let is_open = !self.resting.contains(&id);
        self.matches.get(&id).filter(|_| is_open)
    }

    /// Tries again to route waiting sessions, and closes those that have waited for too long.
    fn route_waiting(&mut self) {
        let now = self.clock.now();
        let is_due =
            |routed: &RoutedSession| matches!(routed.route, Route::Waiting(until) if now >= until);
        for session in self.routes.those(is_due) {
            self.close_session(session, CloseCode::NoMatch);
        }
        let can_be_led = |routed: &RoutedSession| {
            matches!(routed.route, Route::Waiting(_))
                && self.open_inbox(routed.ticket.match_id).is_some()
        };
        for session in self.routes.those(can_be_led) {
            self.route(session);
        }
    }

    fn handle_packet(&mut self, session: SessionId, bytes: Payload) {
        let Some(routed) = self.routes.get(session) else {
            return;
        };
        match routed.route {
            Route::Playing => {
                let Some(inbox) = self.matches.get(&routed.ticket.match_id) else {
                    return;
                };
                let came = self.clock.now();
                let sent = inbox.send_packet(FromIo::Packet(came, session, bytes));
                self.traffic.match_full += u64::from(!sent);
            }
            Route::Leaving(code, _) => self.send_close_code(session, code),
            Route::Waiting(_) => {}
        }
    }

    fn apply(&mut self, order: ToIo) {
        match order {
            ToIo::Open(id, inbox, seated) => {
                for of in seated {
                    self.around.ledger.set_seat(of, true);
                }
                self.matches.insert(id, inbox);
                self.resting.remove(&id);
                self.route_waiting();
            }
            ToIo::Refuse(session, code) => {
                // The session may have been routed or closed since the maker's check.
                let waits = |routed: &RoutedSession| matches!(routed.route, Route::Waiting(_));
                if self.routes.get(session).is_some_and(waits) {
                    self.close_session(session, code);
                }
            }
            ToIo::RefuseAll(id, code) => {
                for session in self.routes.those(|routed| routed.waits_for(id)) {
                    self.close_session(session, code);
                }
            }
            ToIo::Rest(id, answer) => {
                let plays = |routed: &RoutedSession| {
                    routed.route == Route::Playing && routed.ticket.match_id == id
                };
                let rests = self.routes.those(plays).is_empty();
                if rests && self.matches.contains_key(&id) {
                    self.resting.insert(id);
                }
                let _ = answer.send(rests);
            }
            ToIo::Wake(id) => {
                self.resting.remove(&id);
                self.route_waiting();
            }
            ToIo::Free(id) => {
                for session in self.routes.those(|routed| routed.waits_for(id)) {
                    self.route(session);
                }
            }
            ToIo::Settled(session) => {
                self.routes.settle(session);
                self.listeners.settle(session);
            }
            ToIo::Unseated(of) => self.around.ledger.set_seat(of, false),
            ToIo::Over(id, code) => {
                self.matches.remove(&id);
                self.resting.remove(&id);
                self.around.ledger.forget_seats(id);
                if code == CloseCode::Moved {
                    let now = self.clock.now();
                    self.moved.retain(|_, until| now < *until);
                    self.moved.insert(id, now + MOVED_FOR);
                }
                let is_left = |routed: &RoutedSession| {
                    let goes = match routed.route {
                        Route::Playing => true,
                        // A waiting session would wait for a match that now runs elsewhere.
                        Route::Waiting(_) => code == CloseCode::Moved,
                        Route::Leaving(..) => false,
                    };
                    goes && routed.ticket.match_id == id
                };
                for session in self.routes.those(is_left) {
                    self.close_session(session, code);
                }
            }
            ToIo::Unkept(id) => {
                if let Some(inbox) = self.matches.get_mut(&id) {
                    inbox.if_kept = None;
                }
            }
            ToIo::Packets(packets) => {
                for (peer, bytes) in packets.iter() {
                    // An unsent packet counts as lost, so the match repeats its content.
                    let sent = self.listeners.send(peer, bytes);
                    self.traffic.packets_out += u64::from(sent);
                }
            }
            ToIo::Sealed(at) => {
                // The order fits, because at most `BATCH` orders are applied between two transmissions.
                let _ = self.sealed.try_push(at);
            }
            ToIo::Close(session, code) => {
                let routed = self.routes.get(session);
                if routed.is_some_and(|routed| routed.route == Route::Playing) {
                    self.close_session(session, code);
                }
            }
            ToIo::PutOut(identity, code, done) => {
                for inbox in self.matches.values() {
                    // This follows all sessions routed there before the ban. The inbox has space reserved for it.
                    let put_out = FromIo::PutOut(identity.clone(), code, done.clone());
                    inbox.send(put_out);
                }
                let waits = |routed: &RoutedSession| {
                    matches!(routed.route, Route::Waiting(_))
                        && routed.ticket.identity.name == identity
                };
                for session in self.routes.those(waits) {
                    self.close_session(session, code);
                }
            }
            ToIo::Keys(keys, done) => {
                // The keys are in force even if the caller no longer waits for the response.
                let _ = done.send(self.listeners.set_keys(&keys));
            }
            ToIo::Shut => {
                self.listeners.refuse_dials();
            }
            ToIo::Drain(code) => {
                self.draining = Some(code);
                let matches = std::mem::take(&mut self.matches);
                let is_here = |routed: &RoutedSession| !matches!(routed.route, Route::Leaving(..));
                for session in self.routes.those(is_here) {
                    // A match that did not end in time continues from its journal, as after a crash, so its players may
                    // reconnect.
                    let of = self
                        .routes
                        .get(session)
                        .map(|routed| routed.ticket.match_id);
                    let inbox = of.and_then(|id| matches.get(&id));
                    let kept = inbox.and_then(|inbox| inbox.if_kept);
                    let kept = kept.filter(|_| code == CloseCode::Draining);
                    self.close_session(session, kept.unwrap_or(code));
                }
            }
        }
    }

    fn close_session(&mut self, session: SessionId, code: CloseCode) {
        let ticket = self.routes.get(session).map(|routed| &routed.ticket);
        let identity = ticket.map(|ticket| debug(line(&ticket.identity.name)));
        logged::info!(
            session = session.0,
            "match" = ticket.map(|ticket| ticket.match_id.0),
            identity,
            code = code.name(),
            "session closed"
        );
        // Only an admitted session can be sent a packet.
        self.listeners.admit(session);
        self.send_close_code(session, code);
        let until = self.clock.now() + GOODBYE;
        self.routes.turn(session, Route::Leaving(code, until));
    }

    fn end(&mut self, session: SessionId) {
        self.listeners.disconnect(session);
        self.forget(session);
    }

    /// Removes a session. Its match gets [`FromIo::Gone`] if the session was routed there.
    fn forget(&mut self, session: SessionId) {
        if let Some(routed) = self.routes.remove(session)
            && routed.route == Route::Playing
            && let Some(inbox) = self.matches.get(&routed.ticket.match_id)
        {
            // If the inbox is full, the match detects the silence anyway.
            inbox.send(FromIo::Gone(session));
        }
    }

    fn send_close_code(&mut self, session: SessionId, code: CloseCode) {
        let mut buffer = [0; closed::BYTES_MAX];
        let mut packet = Writer::new(&mut buffer);
        closed::write(code, &mut packet).expect("a code of a few bytes");
        let len = packet.len();
        // The close packet may be lost; each later packet from the session is answered with another copy.
        self.listeners.send(session, &buffer[..len]);
    }

    /// Logs dropped datagrams: at first at most one line a second, and ever fewer while the losses continue, down to
    /// one in ten minutes.
    fn log_losses(&mut self) {
        let now = (self.traffic, self.listeners.counters());
        let (before, counters) = self.lost_before;
        let own = |it: &Traffic| [it.match_full, it.unsent, it.errors];
        let sum = |c: &TransportCounters| {
            [
                c.junk,
                c.oversize,
                c.unknown_key,
                c.rejected,
                c.denied_full,
                c.denied_expired,
                c.denied_superseded,
                c.bad_claims,
                c.rate_limited,
                c.fenced,
                c.queue_full,
            ]
        };
        let is_any = own(&now.0) != own(&before) || sum(&now.1) != sum(&counters);
        if self.loss_lines.is_due(self.losses_logged, is_any) {
            // A counter without losses has no field.
            let new = |now: u64, before: u64| (now > before).then(|| now - before);
            logged::warn!(
                junk = new(now.1.junk, counters.junk),
                oversize = new(now.1.oversize, counters.oversize),
                unknown_key = new(now.1.unknown_key, counters.unknown_key),
                rejected = new(now.1.rejected, counters.rejected),
                denied_full = new(now.1.denied_full, counters.denied_full),
                denied_expired = new(now.1.denied_expired, counters.denied_expired),
                denied_superseded = new(now.1.denied_superseded, counters.denied_superseded),
                bad_claims = new(now.1.bad_claims, counters.bad_claims),
                rate_limited = new(now.1.rate_limited, counters.rate_limited),
                not_a_packet = new(now.1.fenced, counters.fenced),
                queue_full = new(now.1.queue_full, counters.queue_full),
                match_full = new(now.0.match_full, before.match_full),
                unsent = new(now.0.unsent, before.unsent),
                socket_error = new(now.0.errors, before.errors),
                "datagrams dropped since the last report (reasons as in twinstep_datagrams_dropped_total)"
            );
            self.lost_before = now;
        }
    }
}
