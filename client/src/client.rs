//! A session on a transport, with a clock: what a game holds. The edge of this crate.
//!
//! A client whose server falls silent, restarts or moves returns by itself: the server hands down a ticket now and
//! then, and the newest of them opens a new transport under the same session. Meanwhile the game goes on as far as the
//! prediction may lead, and [`Event`](crate::Event)s tell what happens.

use std::time::{Duration, Instant};

use twinstep_core::Simulation;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::digest::NanError;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_udp::{
    CloseReason, ConnectError, Ticket, TicketError, Transport, TransportState, UdpClient,
};

use crate::picture::{Hidden, Show};
use crate::rejoin::{Advice, Rejoin, SILENCE};
use crate::session::{BUDGET_TICKS, Closed, Session, SessionConfig};

/// The load of this machine is measured over this time.
const LOAD_OVER: Duration = Duration::from_secs(2);

/// A client that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
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

/// Why playing is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// The session says so.
    #[error(transparent)]
    Session(#[from] Closed),
    /// The transport says so.
    #[error("{0}")]
    Transport(CloseReason),
}

/// Opens a transport with a ticket, at a time of the client's clock and one since the unix epoch. What is left of the
/// attempt before comes along, since its socket may serve again.
type Dial<T> = Box<
    dyn FnMut(Option<&mut T>, &Ticket, Duration, Duration) -> Result<T, ConnectError> + Send + Sync,
>;

/// Takes a newer ticket.
type Keep = Box<dyn FnMut(&Ticket) + Send + Sync>;

/// One client of a match: a [`Session`] on a transport.
///
/// `Send + Sync`, so it can be an engine's resource. It owns no thread: everything happens in
/// [`advance`](Client::advance).
pub struct Client<S: Simulation, V: Show<S> = Hidden, T: Transport = UdpClient> {
    /// The session: its pictures, cues, events, statistics.
    pub session: Session<S, V>,
    transport: T,
    /// Whether `transport` is an attempt to return.
    dialled: bool,
    dial: Option<Dial<T>>,
    rejoin: Rejoin,
    /// How the server was lost that is dialled again.
    lost: Option<Ended>,
    keep: Option<Keep>,
    /// Time spent in the session, since when.
    busy: Duration,
    busy_since: Duration,
    began: Instant,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
}

impl<S: Simulation, V: Show<S>> Client<S, V> {
    /// Joins the match that `ticket` is for, over UDP.
    ///
    /// # Errors
    /// A ticket for something else or out of date, or a socket that cannot be opened. What the server says
    /// comes later, by [`advance`](Client::advance).
    pub fn connect(ticket: &Ticket, config: SessionConfig<S, V>) -> Result<Self, StartError> {
        Client::connect_through(ticket, config, |transport| transport)
    }

    /// As [`connect`](Client::connect); each transport, also those to return with, passes `through`: a simulated bad
    /// network, for example.
    ///
    /// # Errors
    /// As [`connect`](Client::connect).
    pub fn connect_through(
        ticket: &Ticket,
        config: SessionConfig<S, V>,
        mut through: impl FnMut(UdpClient) -> UdpClient + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        ticket.check_program(S::NAME, u32::from(WIRE_VERSION))?;
        let transport = UdpClient::connect(ticket, Duration::ZERO, unix_now())?;
        let client = Client::over(through(transport), Session::new(config)?);
        Ok(client.returning(
            move |attempt: Option<&mut UdpClient>, ticket, now, unix| match attempt {
                Some(attempt) => attempt.redial(ticket, now, unix),
                None => UdpClient::connect(ticket, now, unix).map(&mut through),
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
            dialled: false,
            dial: None,
            rejoin: Rejoin::default(),
            lost: None,
            keep: None,
            began: Instant::now(),
            busy: Duration::ZERO,
            busy_since: Duration::ZERO,
            buffer: Box::new([0; PACKET_BYTES_MAX]),
        }
    }

    /// Lets the client return by itself when its server is lost. `dial` opens a transport with a ticket, at a time of
    /// the client's clock and one since the unix epoch; it is given what is left of the attempt before, if that came
    /// to nothing.
    #[must_use]
    pub fn returning(
        mut self,
        dial: impl FnMut(Option<&mut T>, &Ticket, Duration, Duration) -> Result<T, ConnectError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.dial = Some(Box::new(dial));
        self
    }

    /// Gives each newer ticket to return with to `keep`: for a file that outlives this process.
    #[must_use]
    pub fn keeping(mut self, keep: impl FnMut(&Ticket) + Send + Sync + 'static) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }

    /// Time since the client was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// The transport.
    pub fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Receives, advances the session (see [`Session::advance`]) and sends. Call it once per drawn frame.
    ///
    /// # Errors
    /// Playing is over; it says so from then on.
    pub fn advance(&mut self, input: impl FnMut(usize) -> S::Input) -> Result<(), Ended> {
        let now = self.now();
        self.transport.advance(now);
        while let Some(len) = self.transport.poll(&mut self.buffer) {
            self.session.handle(now, &self.buffer[..len]);
        }
        if let Some(bytes) = self.session.poll_ticket()
            && let Ok(ticket) = Ticket::from_bytes(&bytes)
        {
            if let Some(keep) = &mut self.keep {
                keep(&ticket);
            }
            self.rejoin.keep(ticket);
        }
        let line = self.watch_line(now);
        let played = self.session.advance(now, BUDGET_TICKS, input);
        self.measure_load(now);
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
                .note_load(self.busy.as_secs_f32() / measured.as_secs_f32());
            (self.busy, self.busy_since) = (Duration::ZERO, now);
        }
    }

    /// Sees whether the server is lost, and returns to it.
    fn watch_line(&mut self, now: Duration) -> Result<(), Ended> {
        let state = self.transport.state();
        if self.rejoin.is_down() {
            match state {
                _ if !self.dialled => {}
                TransportState::Connecting => {}
                TransportState::Connected => {
                    self.rejoin.succeed();
                    return Ok(());
                }
                TransportState::Closed(reason) => {
                    let denied = matches!(reason, CloseReason::Denied | CloseReason::Expired);
                    self.rejoin.fail(now, denied);
                }
            }
        } else {
            let Some(lost) = self.lost_line(now, state) else {
                return Ok(());
            };
            if self.dial.is_none() || !self.rejoin.can_return() || self.session.closed().is_some() {
                // Mere silence may end yet; the transport knows how long to wait.
                return match (lost, state) {
                    (Ended::Transport(_), TransportState::Connected) => Ok(()),
                    _ => Err(lost),
                };
            }
            tracing::info!(%lost, "the server is lost: dialling again");
            self.rejoin.lose(now);
            if lost == Ended::Session(Closed::Server(CloseCode::TooSlow)) {
                self.rejoin.wait(now);
            }
            self.lost = Some(lost);
            self.dialled = false;
        }
        match (self.rejoin.advise(now), &mut self.dial) {
            (Advice::Dial(ticket), Some(dial)) => {
                let attempt = self.dialled.then_some(&mut self.transport);
                match dial(attempt, &ticket, now, unix_now()) {
                    Ok(transport) => {
                        self.transport = transport;
                        self.dialled = true;
                        self.session.reconnect(now);
                    }
                    Err(error) => {
                        let expired = matches!(error, ConnectError::Ticket(_));
                        self.rejoin.fail(now, expired);
                    }
                }
                Ok(())
            }
            (Advice::Wait, _) => Ok(()),
            (Advice::Dial(_) | Advice::GiveUp, _) => {
                Err(self.lost.unwrap_or(Ended::Transport(CloseReason::TimedOut)))
            }
        }
    }

    /// How the server was lost, if it was.
    fn lost_line(&self, now: Duration, state: TransportState) -> Option<Ended> {
        if let Some(code) = self.session.cut() {
            return Some(Ended::Session(Closed::Server(code)));
        }
        match state {
            TransportState::Closed(reason) => Some(Ended::Transport(reason)),
            TransportState::Connecting => None,
            TransportState::Connected => {
                let heard = self.session.heard_at()?;
                (now.saturating_sub(heard) >= SILENCE)
                    .then_some(Ended::Transport(CloseReason::TimedOut))
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
        let now = self.now();
        self.session.leave();
        self.transmit(now);
        self.transport.disconnect();
    }
}

/// The wall clock, for tickets only.
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
fn unix_now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Client<twinstep_core::testing::doc::Counter>>();
};
