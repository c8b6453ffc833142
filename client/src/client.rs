//! A session on a transport, with a clock: what a game holds. The edge of this crate.
//!
//! A client whose server falls silent, restarts or moves returns by itself: the server hands down a ticket now and
//! then, and with these other transports are dialled. Meanwhile the game goes on as far as the prediction may lead, and
//! [`Event`](crate::Event)s tell what happens.
//!
//! ```text
//!              silent            the old path speaks: attempts are dropped, nothing was lost
//!  transport ━━━━━━━━━━┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄━━━━━━━━━━━━━━━━▶
//!  attempts            └─ dial ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┘
//!                                  an attempt connects first: the session goes on over it, the old path is closed
//! ```
//!
//! Invariant: make before break. The session has one transport that it speaks over, and leaves it only for one that is
//! connected. It says hello there at once and never goes back, and the server leaves the old one at that hello: so both
//! ends agree.

use std::time::{Duration, Instant};

use twinstep_core::Simulation;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::digest::NanError;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{
    CloseReason, ConnectError, ServerAddress, Ticket, TicketError, Transport, TransportState,
    UdpClient,
};

use crate::background::Background;
use crate::budget::{FRAME_TIME, StepBudget};
use crate::picture::{Hidden, Show};
use crate::rejoin::{Advice, DEAF, Rejoin, SILENCE};
use crate::session::{BUDGET_TICKS, Session, SessionConfig, SessionEnd};

/// The transport is looked at this often: packets wait in its socket, and dials are repeated.
const LINE_EVERY: Duration = Duration::from_millis(20);
/// The load of this machine is measured over this time.
const LOAD_OVER: Duration = Duration::from_secs(2);

/// A client that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientStartError {
    /// The ticket is for another game or version, or out of date.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The socket cannot be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The rules hold a NaN.
    #[error("the rules cannot be digested: {0}")]
    Nan(#[from] NanError),
}

/// Whether the match goes on, and never again where this client was.
fn is_moved(ended: SessionEnd) -> bool {
    matches!(ended, SessionEnd::Server(CloseCode::Moved))
}

/// The server says nothing.
const SILENT: SessionEnd = SessionEnd::Transport(CloseReason::TimedOut);

/// Opens a transport with a ticket, at a time of the client's clock. What is left of an attempt with that ticket that
/// came to nothing comes along, since its socket may serve again.
type Dial<T> =
    Box<dyn FnMut(Option<&mut T>, &Ticket, Duration) -> Result<T, ConnectError> + Send + Sync>;

/// Takes a newer ticket; whether it is stored.
type Keep = Box<dyn FnMut(&Ticket) -> bool + Send + Sync>;

/// A transport that is to become the session's.
struct Attempt<T> {
    path: T,
    ticket: u64,
    server: Option<ServerAddress>,
    /// It came to nothing, which was noted.
    failed: bool,
}

impl<T: Transport> Attempt<T> {
    fn is_over(&self) -> bool {
        matches!(self.path.state(), TransportState::Closed(_))
    }
}

/// One client of a match: a [`Session`] on a transport.
///
/// `Send + Sync`, so it can be an engine's resource. Everything happens in [`advance`](Client::advance); with
/// [`Reconcile::Background`](crate::Reconcile) predictions are rebuilt in a thread of its own, which `advance` never waits
/// for and which ends with the client.
pub struct Client<S: Simulation, V: Show<S> = Hidden, T: Transport = UdpClient> {
    session: Session<S, V>,
    transport: T,
    /// Other paths that are dialled while the server is silent or lost.
    attempts: Vec<Attempt<T>>,
    dial: Option<Dial<T>>,
    rejoin: Rejoin,
    /// How the server was lost that is dialled again.
    lost: Option<SessionEnd>,
    /// The server's last refusal of a dial. If the client cannot return, this is its reason, not the silence before.
    refused: Option<SessionEnd>,
    /// The ticket that the transport was dialled with.
    came_by: Option<u64>,
    keep: Option<Keep>,
    /// Time spent in the session, since when.
    busy: Duration,
    busy_since: Duration,
    began: Instant,
    /// When it was advanced last.
    at: Duration,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    budget: StepBudget,
    background: Background<S>,
}

impl<S: Simulation, V: Show<S>> Client<S, V> {
    /// Joins the match that `ticket` is for, over UDP.
    ///
    /// # Errors
    /// A ticket for something else or out of date, or a socket that cannot be opened. What the server says
    /// comes later, by [`advance`](Client::advance).
    pub fn connect(ticket: &Ticket, config: SessionConfig<S, V>) -> Result<Self, ClientStartError> {
        Client::connect_through(ticket, config, |transport| transport)
    }

    /// As [`connect`](Client::connect); each transport, also those to return with, passes `through`: a simulated bad
    /// network, for example, or a [laminar that it shares](UdpClient::sharing) with the other clients of a process of bots.
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub fn connect_through(
        ticket: &Ticket,
        config: SessionConfig<S, V>,
        mut through: impl FnMut(UdpClient) -> UdpClient + Send + Sync + 'static,
    ) -> Result<Self, ClientStartError> {
        ticket.check_program(S::NAME, u32::from(WIRE_VERSION))?;
        let transport = UdpClient::connect(ticket, Duration::ZERO)?;
        let client = Client::over(through(transport), Session::new(config)?);
        Ok(client.by_ticket(ticket).returning(
            move |attempt: Option<&mut UdpClient>, ticket, now| match attempt {
                Some(attempt) => attempt.redial(ticket, now),
                None => UdpClient::connect(ticket, now).map(&mut through),
            },
        ))
    }
}

impl<S: Simulation, V: Show<S>, T: Transport> Client<S, V, T> {
    /// A session over any transport; its clock begins now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    pub fn over(transport: T, session: Session<S, V>) -> Self {
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
            began: Instant::now(),
            at: Duration::ZERO,
            busy: Duration::ZERO,
            busy_since: Duration::ZERO,
            buffer: Box::new([0; PACKET_BYTES_MAX]),
            budget: StepBudget::new(FRAME_TIME),
            background: Background::default(),
        }
    }

    /// Tells with which ticket the transport was dialled. It lets this player in until a newer one is safe: so a client can
    /// [return](Client::returning) before it has its match's world.
    #[must_use]
    pub fn by_ticket(mut self, ticket: &Ticket) -> Self {
        self.rejoin.hold(ticket.clone());
        self.came_by = Some(ticket.id());
        self
    }

    /// Lets the client return by itself when its server is lost. `dial` opens a transport with a ticket, at a time of
    /// the client's clock; it is given what is left of an attempt with that ticket, if one came to nothing. Up to three
    /// attempts are on their way at once, each with another ticket or to another address.
    #[must_use]
    pub fn returning(
        mut self,
        dial: impl FnMut(Option<&mut T>, &Ticket, Duration) -> Result<T, ConnectError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.dial = Some(Box::new(dial));
        self
    }

    /// Gives each newer ticket to return with to `keep`: for a file that outlives this process. It says whether the
    /// ticket is stored where a new process finds it: then the server is told, and older ones are worth nothing.
    ///
    /// Say so before the first [`advance`](Client::advance), lest one come before.
    #[must_use]
    pub fn keeping(mut self, keep: impl FnMut(&Ticket) -> bool + Send + Sync + 'static) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }

    /// How much of a frame's time [`advance`](Client::advance) may take for steps, 4 ms unless said otherwise. What a
    /// step costs is measured. What does not fit waits: the prediction leads by less, down to showing the authority, and
    /// catching up goes in bursts. Steps in lockstep and sampled inputs never wait.
    #[must_use]
    pub fn frame_time(mut self, time: Duration) -> Self {
        self.budget = StepBudget::new(time);
        self
    }

    /// Time since the client was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// The session: what it shows, its cues, events and statistics.
    #[must_use]
    pub fn session(&self) -> &Session<S, V> {
        &self.session
    }

    /// The session, to take its cues and events, or to give commands.
    pub fn session_mut(&mut self) -> &mut Session<S, V> {
        &mut self.session
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// When [`advance`](Client::advance) has something to do, by the clock of [`now`](Client::now), unless a packet comes before.
    /// A game calls `advance` for each frame that it draws; a program that draws nothing may sleep until then, which is
    /// 20 ms at most, since the transport is not asked.
    #[must_use]
    pub fn next_due(&self) -> Duration {
        let line = self.at + LINE_EVERY;
        if !matches!(self.transport.state(), TransportState::Connected) {
            return line; // What the session has to send waits for the transport.
        }
        self.session.next_due().map_or(line, |due| due.min(line))
    }

    /// Receives, advances the session (see [`Session::advance`]) and sends. Call it once per drawn frame, or when it is
    /// [due](Client::next_due).
    ///
    /// # Errors
    /// Playing is over; it says so from then on.
    pub fn advance(&mut self, input: impl FnMut(usize) -> S::Input) -> Result<(), SessionEnd> {
        let (now, steps) = (self.now(), self.session.steps());
        let played = self.advance_within(now, self.budget.ticks(), input);
        let steps = self.session.steps().saturating_sub(steps);
        self.budget.record(steps, self.now() - now);
        self.measure_load(now);
        played
    }

    /// As [`advance`](Client::advance), by the caller's clocks: `now` is any time that only grows, from the same start
    /// as the time that the transport was made at. Neither the load of this machine nor what its steps cost is measured then: tell the load by
    /// [`Session::set_load`], if it matters; each call may take [`BUDGET_TICKS`] steps.
    ///
    /// # Errors
    /// As [`advance`](Client::advance).
    pub fn advance_at(
        &mut self,
        now: Duration,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), SessionEnd> {
        self.advance_within(now, BUDGET_TICKS, input)
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
                // A new process would find an older one: that is dialled with first.
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

    /// How busy this machine is with the game, told every two seconds.
    fn measure_load(&mut self, began: Duration) {
        let now = self.now();
        self.busy += now - began;
        let measured = now - self.busy_since;
        if measured >= LOAD_OVER {
            self.session
                .set_load(self.busy.as_secs_f32() / measured.as_secs_f32());
            (self.busy, self.busy_since) = (Duration::ZERO, now);
        }
    }

    /// Sees whether the server is lost or found again, and returns to it.
    fn watch_line(&mut self, now: Duration) -> Result<(), SessionEnd> {
        let lost = self.lost_line(now);
        match lost {
            None if !self.rejoin.is_down() => return Ok(()),
            None if self.session.heard_at().is_some() => {
                self.drop_attempts();
                self.rejoin.find();
                self.session.recover(now);
                (self.lost, self.refused) = (None, None);
                return Ok(());
            }
            // Its world comes on: when it is lost next, returning to it begins anew.
            None if self.session.comes_on() => {
                self.rejoin.find();
                return Ok(());
            }
            // It has answered the dial, and its welcome is on its way.
            None => return Ok(()),
            Some(lost) => {
                // Only the first transport can end so: attempts become the session's when they are connected.
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
                    tracing::info!(%lost, "the server is lost: dialling again");
                    self.rejoin.lose(now);
                    self.session.lose(now);
                    self.apply_close_code(now, lost);
                    self.lost = Some(lost);
                }
            }
        }
        let connected = |attempt: &Attempt<T>| attempt.path.state() == TransportState::Connected;
        if let Some(at) = self.attempts.iter().position(connected) {
            self.go_on_over(now, at);
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
            Advice::GiveUp => self.end_for(self.lost.unwrap_or(SILENT)),
        }
    }

    /// What the server said when it ended the session.
    fn apply_close_code(&mut self, now: Duration, lost: SessionEnd) {
        let SessionEnd::Server(code) = lost else {
            return;
        };
        match code {
            CloseCode::TooSlow => self.rejoin.wait(now),
            CloseCode::Moved | CloseCode::Restarting { .. } => {
                // A server that ends waits for its sessions: without this one, the next process starts sooner.
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

    /// The server is lost for good, unless it is only silent: that may end yet, and the transport knows how long to wait.
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

    /// The session goes on over an attempt that connected; the path before is closed.
    fn go_on_over(&mut self, now: Duration, at: usize) {
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

    /// How the server was lost, if it was.
    fn lost_line(&self, now: Duration) -> Option<SessionEnd> {
        if let Some(code) = self.session.cut() {
            return Some(SessionEnd::Server(code));
        }
        match self.transport.state() {
            TransportState::Closed(reason) => Some(ended_for(reason)),
            TransportState::Connecting => None,
            TransportState::Connected => {
                let is_deaf = self.session.is_held_up(now, DEAF) && self.session.is_returning();
                if is_deaf {
                    return Some(SessionEnd::NoWorld);
                }
                let heard = self.session.heard_at()?;
                (now.saturating_sub(heard) >= SILENCE).then_some(SILENT)
            }
        }
    }

    fn transmit(&mut self, now: Duration) {
        if self.transport.state() != TransportState::Connected {
            return;
        }
        while let Some(len) = self.session.poll_transmit(now, &mut *self.buffer) {
            // A packet that cannot be sent is a packet lost: the next one says it again.
            let _ = self.transport.send(&self.buffer[..len]);
        }
    }

    /// Says goodbye and closes the transport.
    pub fn leave(&mut self) {
        self.session.leave();
        self.transmit(self.at);
        self.transport.disconnect();
        self.drop_attempts();
    }
}

/// The same whether the door knew it or the match.
fn ended_for(reason: CloseReason) -> SessionEnd {
    match reason {
        CloseReason::Superseded => SessionEnd::Server(CloseCode::Superseded),
        reason => SessionEnd::Transport(reason),
    }
}

/// Whether a transport ended before it was connected.
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
