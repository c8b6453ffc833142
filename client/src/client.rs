//! A session on a transport, with a clock: what a game holds. The edge of this crate.

use std::time::{Duration, Instant};

use twinstep_core::Simulation;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::digest::NanError;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_udp::{
    CloseReason, ConnectError, Ticket, TicketError, Transport, TransportState, UdpClient,
};

use crate::picture::{Hidden, Show};
use crate::session::{BUDGET_TICKS, Closed, Session, SessionConfig};

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

/// One client of a match: a [`Session`] on a transport.
///
/// `Send + Sync`, so it can be an engine's resource. It owns no thread: everything happens in
/// [`advance`](Client::advance).
pub struct Client<S: Simulation, V: Show<S> = Hidden, T: Transport = UdpClient> {
    /// The session: its pictures, cues, events, statistics.
    pub session: Session<S, V>,
    transport: T,
    began: Instant,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
}

impl<S: Simulation, V: Show<S>> Client<S, V> {
    /// Joins the match that `ticket` is for, over UDP.
    ///
    /// # Errors
    /// A ticket for something else or out of date, or a socket that cannot be opened. What the server says
    /// comes later, by [`advance`](Client::advance).
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    pub fn connect(ticket: &Ticket, config: SessionConfig<S, V>) -> Result<Self, StartError> {
        ticket.check_program(S::NAME, u32::from(WIRE_VERSION))?;
        let unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        ticket.check_alive(unix)?;
        let transport = UdpClient::connect(ticket, Duration::ZERO, unix)?;
        Ok(Client::over(transport, Session::new(config)?))
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
            began: Instant::now(),
            buffer: Box::new([0; PACKET_BYTES_MAX]),
        }
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
        let played = self.session.advance(now, BUDGET_TICKS, input);
        self.transmit(now);
        played?;
        match self.transport.state() {
            TransportState::Closed(reason) => Err(Ended::Transport(reason)),
            _ => Ok(()),
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

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Client<twinstep_core::testing::doc::Counter>>();
};
