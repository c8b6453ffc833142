//! [`Client`]: a session on a transport, with a clock; the type that most games use. In this crate, only this module
//! reads a clock or opens a socket.
//!
//! A client reconnects automatically if its server falls silent, restarts or moves: the server regularly sends it
//! tickets, with which the client opens other transports. While the server is lost, the game continues as far as the
//! prediction may lead, and [`Event`](crate::Event)s report progress.
//!
//! ```text
//!              silent            the old path responds: attempts are dropped, no data was lost
//!  transport ━━━━━━━━━━┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄━━━━━━━━━━━━━━━━▶
//!  attempts            └─ dial ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┘
//!                                  an attempt connects first: the session moves to it, the old path is closed
//! ```
//!
//! Invariant: make before break. The session sends over one transport, and leaves it only for another that is
//! connected, or when the server announces a restart or a move. Its hello is the first packet over the new transport,
//! and it never goes back; the server leaves the old one when that hello arrives. So both sides use the same transport.

use std::time::{Duration, Instant};

use twinstep_core::Simulation;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::digest::DigestError;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{
    CloseReason, ConnectError, ServerAddress, Ticket, TicketError, Transport, TransportState,
    UdpClient,
};

use crate::background::Background;
use crate::budget::{FRAME_TIME, StepBudget};
use crate::picture::{NoPicture, Show};
use crate::rejoin::{Advice, Rejoin, SILENCE, STALLED};
use crate::session::{Session, SessionConfig, SessionEnd};

/// The maximum time between two advances, because packets wait in the socket and dials must be repeated.
const LINE_EVERY: Duration = Duration::from_millis(20);
const LOAD_OVER: Duration = Duration::from_secs(2);

/// The reason why a client could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ClientStartError {
    #[error(transparent)]
    Ticket(#[from] TicketError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot compute the digest of the rules: {0}")]
    Nan(#[from] DigestError),
}

fn is_moved(ended: SessionEnd) -> bool {
    matches!(ended, SessionEnd::Server(CloseCode::Moved))
}

const SILENT: SessionEnd = SessionEnd::Transport(CloseReason::TimedOut);

type Dial<T> =
    Box<dyn FnMut(Option<&mut T>, &Ticket, Duration) -> Result<T, ConnectError> + Send + Sync>;

type Keep = Box<dyn FnMut(&Ticket) -> bool + Send + Sync>;
type TapeOut = Box<dyn FnMut(&[u8]) + Send + Sync>;

struct Attempt<T> {
    path: T,
    ticket: u64,
    server: Option<ServerAddress>,
    failed: bool,
}

impl<T: Transport> Attempt<T> {
    fn is_over(&self) -> bool {
        matches!(self.path.state(), TransportState::Closed(_))
    }
}

/// A client of a match: a [`Session`] on a transport.
///
/// A client is `Send + Sync`, so it can be an engine's resource. All work is done in [`advance`](Client::advance). With
/// [`Reconcile::Background`](crate::Reconcile), predictions are rebuilt in a thread that `advance` never waits for and
/// that ends with the client. By default, only rebuilds that exceed a frame's budget run there.
pub struct Client<S: Simulation, V: Show<S> = NoPicture, T: Transport = UdpClient> {
    session: Session<S, V>,
    transport: T,
    /// Other paths, dialled while the server is silent or lost.
    attempts: Vec<Attempt<T>>,
    dial: Option<Dial<T>>,
    rejoin: Rejoin,
    /// The reason why the server was lost, while the client dials it again.
    lost: Option<SessionEnd>,
    /// The server's last refusal of a dial. If the client cannot reconnect, this reason is reported instead of `lost`.
    refused: Option<SessionEnd>,
    came_by: Option<u64>,
    keep: Option<Keep>,
    tape: Option<TapeOut>,
    /// The time spent in the session since `busy_since`, by the stopwatch.
    busy: Duration,
    busy_since: Option<Duration>,
    /// The start of the client's own clock. `None` before the first `advance`, or if the caller passes the time.
    began: Option<Instant>,
    /// The caller's time at the origin of the client's clock. `None` until the first `advance_at` of a client that
    /// dialled its transport itself.
    origin: Option<Duration>,
    at: Duration,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    budget: StepBudget,
    background: Background<S>,
}

impl<S: Simulation, V: Show<S>> Client<S, V> {
    /// Joins the match of `ticket` over UDP.
    ///
    /// # Errors
    /// If the ticket is for another game or protocol version, no socket can be opened, or the rules or the start state
    /// hold a NaN. A later refusal by the server is returned by [`advance`](Client::advance).
    pub fn connect(ticket: &Ticket, config: SessionConfig<S, V>) -> Result<Self, ClientStartError> {
        Client::connect_through(ticket, config, |transport| transport)
    }

    /// Joins like [`connect`](Client::connect), and passes each new transport (the first, and those of later
    /// reconnects) through `through`, for example to simulate a bad network, or to [share one laminar
    /// instance](UdpClient::sharing) among the clients of a bot process.
    ///
    /// # Errors
    /// The errors of [`connect`](Client::connect).
    pub fn connect_through(
        ticket: &Ticket,
        config: SessionConfig<S, V>,
        mut through: impl FnMut(UdpClient) -> UdpClient + Send + Sync + 'static,
    ) -> Result<Self, ClientStartError> {
        ticket.check_program(S::NAME, u32::from(WIRE_VERSION))?;
        let transport = UdpClient::connect(ticket, Duration::ZERO)?;
        let mut client = Client::with_transport(through(transport), Session::new(config)?);
        client.origin = None;
        Ok(client.with_ticket(ticket).reconnecting(
            move |attempt: Option<&mut UdpClient>, ticket, now| match attempt {
                Some(attempt) => attempt.redial(ticket, now),
                None => UdpClient::connect(ticket, now).map(&mut through),
            },
        ))
    }
}

impl<S: Simulation, V: Show<S>, T: Transport> Client<S, V, T> {
    /// Creates a client from a session and any transport. With [`advance`](Client::advance), the client's clock starts
    /// at zero, and so must the transport's; with [`advance_at`](Client::advance_at), both use the caller's clock.
    pub fn with_transport(transport: T, session: Session<S, V>) -> Self {
        Client {
            session,
            transport,
            attempts: Vec::new(),
            dial: None,
            rejoin: Rejoin::default(),
            lost: None,
            refused: None,
            came_by: None,
            keep: None,
            tape: None,
            began: None,
            origin: Some(Duration::ZERO),
            at: Duration::ZERO,
            busy: Duration::ZERO,
            busy_since: None,
            buffer: Box::new([0; PACKET_BYTES_MAX]),
            budget: StepBudget::new(FRAME_TIME),
            background: Background::default(),
        }
    }

    /// Sets the ticket with which the transport was dialled. The client uses it until a newer one is stored, so it can
    /// [reconnect](Client::reconnecting) before it has received the world of its match.
    #[must_use]
    pub fn with_ticket(mut self, ticket: &Ticket) -> Self {
        self.rejoin.hold(ticket.clone());
        self.came_by = Some(ticket.id());
        self
    }

    /// Makes the client reconnect automatically when it loses its server. `dial` opens a transport with a ticket; the
    /// `Duration` is the time on the client's clock. If an earlier attempt with that ticket failed, its transport is
    /// passed to `dial`, which may reuse it. At most three attempts run at a time, each with a different ticket or to a
    /// different address.
    #[must_use]
    pub fn reconnecting(
        mut self,
        dial: impl FnMut(Option<&mut T>, &Ticket, Duration) -> Result<T, ConnectError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.dial = Some(Box::new(dial));
        self
    }

    /// Passes each newer reconnect ticket to `keep`, which may write it to a file. `keep` returns `true` if the ticket
    /// is stored where a new process will find it; the client then reports this to the server, which no longer accepts
    /// older tickets.
    ///
    /// Call this before the first [`advance`](Client::advance), so that no ticket is missed.
    #[must_use]
    pub fn keeping_tickets(
        mut self,
        keep: impl FnMut(&Ticket) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }

    /// After each [`advance`](Client::advance), passes the session's new tape bytes, if any, to `write`, to append to a
    /// file. The session must be configured with [`SessionConfig::record_tape`].
    #[must_use]
    pub fn tape_to(mut self, write: impl FnMut(&[u8]) + Send + Sync + 'static) -> Self {
        self.tape = Some(Box::new(write));
        self
    }

    /// Sets the time that an [`advance`](Client::advance) should take at most; 4 ms by default. The cost of a step is
    /// measured. Steps that do not fit are postponed: the prediction leads by fewer ticks or not at all, and the client
    /// catches up in bursts. Lockstep turns and input sampling are never postponed.
    #[must_use]
    pub fn frame_time(mut self, time: Duration) -> Self {
        self.budget = StepBudget::new(time);
        self
    }

    /// The time since the first [`advance`](Client::advance). With [`advance_at`](Client::advance_at), the time of the
    /// last call, by the client's clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.began.map_or(self.at, |began| began.elapsed())
    }

    /// The session, with its picture, cues, events and statistics.
    #[must_use]
    pub fn session(&self) -> &Session<S, V> {
        &self.session
    }

    /// The session, for polling its cues and events and for issuing commands.
    pub fn session_mut(&mut self) -> &mut Session<S, V> {
        &mut self.session
    }

    /// The transport that the session currently uses.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns the time at which [`advance`](Client::advance) next has work to do, by the clock of
    /// [`now`](Client::now), unless a packet arrives earlier. A program that does not draw may sleep until then, at
    /// most 20 ms, because the transport must be polled. A game calls `advance` for each drawn frame instead.
    #[must_use]
    pub fn next_due(&self) -> Duration {
        let line = self.at + LINE_EVERY;
        if !matches!(self.transport.state(), TransportState::Connected) {
            return line; // The session's packets wait for the transport.
        }
        self.session.next_due().map_or(line, |due| due.min(line))
    }

    /// Receives packets, advances the session (see [`Session::advance`]) and sends. Call it once per drawn frame, or
    /// when it is [due](Client::next_due).
    ///
    /// # Errors
    /// If the session is over; the error is the reason, and every later call returns it again.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    pub fn advance(&mut self, input: impl FnMut(usize) -> S::Input) -> Result<(), SessionEnd> {
        let began = *self.began.get_or_insert_with(Instant::now);
        self.advance_measured(began.elapsed(), || began.elapsed(), input)
    }

    /// Advances like [`advance`](Client::advance), with the caller's clock, for engines, browsers and tests. The client
    /// itself then reads no clock. Use one of the two methods, not both.
    ///
    /// `now` must never go back. For a client of [`connect`](Client::connect), the first call sets the origin of the
    /// client's clock; for one created [with a transport](Client::with_transport), `now` must be the transport's time.
    ///
    /// `stopwatch` measures the cost of steps and the load of this machine. It returns the time of a clock, with any
    /// origin, that advances while code runs; `now` usually stays the same during a whole frame. If it always returns
    /// the same time, no load is set and each call may take [`BUDGET_TICKS`](crate::BUDGET_TICKS) steps.
    ///
    /// ```no_run
    /// # use std::time::{Duration, Instant};
    /// # use twinstep_client::{Client, SessionEnd};
    /// # use twinstep_core::testing::doc::Counter;
    /// # struct Engine { frame_time: Duration, start: Instant }
    /// # fn frame(engine: &Engine, client: &mut Client<Counter>) -> Result<(), SessionEnd> {
    /// client.advance_at(engine.frame_time, || engine.start.elapsed(), |_seat| 1)
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`advance`](Client::advance).
    pub fn advance_at(
        &mut self,
        now: Duration,
        stopwatch: impl FnMut() -> Duration,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), SessionEnd> {
        let origin = *self.origin.get_or_insert(now);
        self.advance_measured(now.saturating_sub(origin), stopwatch, input)
    }

    fn advance_measured(
        &mut self,
        now: Duration,
        mut stopwatch: impl FnMut() -> Duration,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), SessionEnd> {
        let (began, steps) = (stopwatch(), self.session.steps());
        self.session
            .set_repeated_step_cost(self.budget.repeated_cost());
        let played = self.advance_within(now, self.budget.ticks(), input);
        if let Some(write) = &mut self.tape {
            let bytes = self.session.take_tape();
            if !bytes.is_empty() {
                write(&bytes);
            }
        }
        let ended = stopwatch();
        let took = ended.saturating_sub(began);
        let steps = self.session.steps() - steps;
        self.budget.record(steps, took);
        self.measure_load(ended, took);
        played
    }

    fn advance_within(
        &mut self,
        now: Duration,
        budget: u32,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), SessionEnd> {
        self.at = now;
        self.rejoin.pass_time(now);
        self.transport.advance(now);
        while let Some(len) = self.transport.poll(&mut self.buffer) {
            self.session.handle(now, &self.buffer[..len]);
        }
        for attempt in &mut self.attempts {
            attempt.path.advance(now);
        }
        if let Some(bytes) = self.session.poll_ticket()
            && let Ok(ticket) = Ticket::from_bytes(&bytes)
        {
            match self.keep.as_mut().map(|keep| keep(&ticket)) {
                Some(true) => {
                    self.session.stored(&ticket.stamp());
                    self.rejoin.hold(ticket);
                }
                // A new process would find an older ticket, so the client keeps dialling with that one first.
                Some(false) | None => self.rejoin.keep(ticket),
            }
        }
        let line = self.watch_line(now);
        if let Some(rebuild) = self.background.poll() {
            self.session.hand_back(rebuild);
        }
        let played = self.session.advance(now, budget, input);
        if let Some(rebuild) = self.session.poll_rebuild() {
            self.background.give(rebuild);
        }
        self.transmit(now);
        played?;
        line
    }

    fn measure_load(&mut self, ended: Duration, took: Duration) {
        self.busy += took;
        let since = *self.busy_since.get_or_insert(ended.saturating_sub(took));
        let measured = ended.saturating_sub(since);
        if measured >= LOAD_OVER {
            self.session
                .set_load(self.busy.as_secs_f32() / measured.as_secs_f32());
            (self.busy, self.busy_since) = (Duration::ZERO, Some(ended));
        }
    }

    /// Detects the loss and recovery of the connection, and reconnects if it is lost.
    fn watch_line(&mut self, now: Duration) -> Result<(), SessionEnd> {
        let lost = self.lost_line(now);
        match lost {
            None if !self.rejoin.is_down() => return Ok(()),
            None if self.session.last_received_at().is_some() => {
                self.drop_attempts();
                self.rejoin.find();
                self.session.recover(now);
                (self.lost, self.refused) = (None, None);
                return Ok(());
            }
            // The world download progresses. If the server is lost again, reconnecting starts over.
            None if self.session.is_progressing() => {
                self.rejoin.find();
                return Ok(());
            }
            // The server has responded to the dial, but its welcome has not arrived yet.
            None => return Ok(()),
            Some(lost) => {
                // Only the first transport can end like this, because the session moves only to connected attempts.
                let met_no_server = never_connected(self.transport.state());
                if self.dial.is_none()
                    || !self.rejoin.can_return()
                    || met_no_server
                    || (is_moved(lost) && !self.rejoin.leads_elsewhere())
                    || self.session.closed().is_some()
                {
                    return self.end_for(lost);
                }
                if self.lost.is_none() {
                    tracing::info!(reason = %lost, "connection lost; reconnecting");
                    self.rejoin.lose(now);
                    self.session.connection_lost(now);
                    self.apply_close_code(now, lost);
                    self.lost = Some(lost);
                }
            }
        }
        let connected = |attempt: &Attempt<T>| attempt.path.state() == TransportState::Connected;
        if let Some(at) = self.attempts.iter().position(connected) {
            self.move_to(now, at);
            return Ok(());
        }
        for attempt in &mut self.attempts {
            if attempt.is_over() && !attempt.failed {
                attempt.failed = true;
                if let TransportState::Closed(
                    reason @ (CloseReason::Expired | CloseReason::Superseded | CloseReason::Denied),
                ) = attempt.path.state()
                {
                    self.refused = Some(ended_for(reason));
                    if reason != CloseReason::Denied {
                        self.rejoin.forget(attempt.ticket);
                    }
                }
                self.rejoin.fail(now);
            }
        }
        let alive = self.attempts.iter().filter(|attempt| !attempt.is_over());
        match self.rejoin.advise(now, alive.count()) {
            Advice::Wait => Ok(()),
            Advice::Dial(ticket) => {
                self.dial(now, &ticket);
                Ok(())
            }
            Advice::GiveUp => {
                let ended = self.end_for(self.lost.unwrap_or(SILENT));
                if ended.is_err() {
                    // An attempt that still connects must not revive a client that has reported its end.
                    self.drop_attempts();
                }
                ended
            }
        }
    }

    fn apply_close_code(&mut self, now: Duration, lost: SessionEnd) {
        let SessionEnd::Server(code) = lost else {
            return;
        };
        match code {
            CloseCode::TooSlow => self.rejoin.wait(now),
            CloseCode::Moved | CloseCode::Restarting { .. } => {
                // A server shutting down waits for its sessions, so leaving now lets the next process start sooner.
                self.transport.disconnect();
                self.rejoin.expect();
            }
            CloseCode::Superseded => {
                if let Some(ticket) = self.came_by {
                    self.rejoin.forget(ticket);
                }
                self.rejoin.fail(now);
            }
            _ => {}
        }
    }

    /// Ends the session with the last refusal or `lost`, unless the server is only silent: it may still respond, and
    /// the transport decides how long to wait.
    fn end_for(&self, lost: SessionEnd) -> Result<(), SessionEnd> {
        match self.transport.state() {
            TransportState::Connected if lost == SILENT => Ok(()),
            _ => Err(self.refused.unwrap_or(lost)),
        }
    }

    fn dial(&mut self, now: Duration, ticket: &Ticket) {
        let Some(dial) = &mut self.dial else { return };
        let (id, server) = (ticket.id(), ticket.servers().next());
        let same = |a: &Attempt<T>| !a.is_over() && (a.ticket, a.server) == (id, server);
        if self.attempts.iter().any(same) {
            return;
        }
        let before = self
            .attempts
            .iter()
            .position(|a| a.is_over() && a.ticket == id);
        // A failed attempt with the same ticket is taken out, so that `dial` can reuse its socket.
        let mut before = before.map(|at| self.attempts.swap_remove(at));
        self.attempts.retain(|attempt| !attempt.is_over());
        match dial(before.as_mut().map(|b| &mut b.path), ticket, now) {
            Ok(path) => self.attempts.push(Attempt {
                path,
                ticket: id,
                server,
                failed: false,
            }),
            Err(_) => self.rejoin.fail(now),
        }
    }

    fn move_to(&mut self, now: Duration, at: usize) {
        let attempt = self.attempts.swap_remove(at);
        let mut before = std::mem::replace(&mut self.transport, attempt.path);
        self.came_by = Some(attempt.ticket);
        before.disconnect();
        self.drop_attempts();
        (self.lost, self.refused) = (None, None);
        self.session.reconnect(now);
    }

    fn drop_attempts(&mut self) {
        for mut attempt in self.attempts.drain(..) {
            attempt.path.disconnect();
        }
    }

    fn lost_line(&self, now: Duration) -> Option<SessionEnd> {
        if let Some(code) = self.session.close_code() {
            return Some(SessionEnd::Server(code));
        }
        match self.transport.state() {
            TransportState::Closed(reason) => Some(ended_for(reason)),
            TransportState::Connecting => None,
            TransportState::Connected => {
                let is_stalled =
                    self.session.is_held_up(now, STALLED) && self.session.is_returning();
                if is_stalled {
                    return Some(SessionEnd::NoWorld);
                }
                let heard = self.session.last_received_at()?;
                (now.saturating_sub(heard) >= SILENCE).then_some(SILENT)
            }
        }
    }

    fn transmit(&mut self, now: Duration) {
        if self.transport.state() != TransportState::Connected {
            return;
        }
        while let Some(len) = self.session.poll_transmit(now, &mut *self.buffer) {
            // A packet that cannot be sent counts as lost; the next one repeats its content.
            let _ = self.transport.send(&self.buffer[..len]);
        }
    }

    /// Leaves the match and closes the transport.
    pub fn leave(&mut self) {
        self.session.leave();
        self.transmit(self.at);
        self.transport.disconnect();
        self.drop_attempts();
    }
}

/// A superseded session ends in the same way whether the transport or the match reports it.
fn ended_for(reason: CloseReason) -> SessionEnd {
    match reason {
        CloseReason::Superseded => SessionEnd::Server(CloseCode::Superseded),
        reason => SessionEnd::Transport(reason),
    }
}

fn never_connected(state: TransportState) -> bool {
    use CloseReason::{Denied, Expired, NameUnknown, NoAnswer, Superseded};
    matches!(
        state,
        TransportState::Closed(NoAnswer | NameUnknown | Denied | Expired | Superseded)
    )
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Client<twinstep_core::testing::doc::Counter>>();
};

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use twinstep_core::testing::doc::Counter;
    use twinstep_udp::{PACKET_MAX, SendError};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct Clocked(Duration);

    impl Transport for Clocked {
        fn advance(&mut self, now: Duration) {
            self.0 = now;
        }
        fn poll(&mut self, _: &mut [u8; PACKET_MAX]) -> Option<usize> {
            None
        }
        fn send(&mut self, _: &[u8]) -> Result<(), SendError> {
            Ok(())
        }
        fn disconnect(&mut self) {}
        fn state(&self) -> TransportState {
            TransportState::Connected
        }
    }

    fn client() -> Client<Counter, NoPicture, Clocked> {
        let session = Session::new(SessionConfig::new(Arc::new(()))).expect("rules without a NaN");
        Client::with_transport(Clocked(Duration::ZERO), session)
    }

    #[test]
    fn the_first_call_sets_the_origin_of_the_callers_clock_only_if_the_client_dialled() {
        for (dialled, expected) in [(true, [0, 16]), (false, [90_000, 90_016])] {
            let mut client = client();
            if dialled {
                client.origin = None; // as `connect_through` does
            }
            for (now, expected) in [90_000, 90_016].into_iter().zip(expected) {
                let played = client.advance_at(now * MS, || Duration::ZERO, |_| 0);
                played.expect("it waits for an answer");
                assert_eq!(client.transport().0, expected * MS);
                assert_eq!(client.now(), expected * MS);
            }
            assert_eq!(client.began, None, "no clock is read");
        }
    }

    #[test]
    fn the_load_is_measured_by_the_given_stopwatch() {
        let mut client = client();
        let clock = Cell::new(Duration::from_secs(7));
        for frame in 0..130 {
            // An advance takes 4 ms of every 16 ms.
            let stopwatch = || clock.replace(clock.get() + 4 * MS);
            let played = client.advance_at(frame * 16 * MS, stopwatch, |_| 0);
            played.expect("it waits for an answer");
            clock.set(clock.get() + 8 * MS);
        }
        let load = client.session.load;
        assert!((0.24..=0.26).contains(&load), "{load}");
    }
}
