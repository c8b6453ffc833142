//! [`Seated`]: a player on our host, behind its cipher and a socket of its own.
//!
//! The players of the first match are whole sessions, which see whether their world is the server's. All others are
//! [`BareSession`]s: who plays should cost less than who serves.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use twinstep_client::{Session, SessionConfig};
use twinstep_core::Simulation;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_udp::{
    ClientEndpoint, ClientEvent, DATAGRAM_MAX, SharedLink, Ticket, TicketKey, TicketSpec,
    TransportState,
};

use crate::bare_session::BareSession;
use crate::host::STATE_BYTES;
use crate::players::Player;
use crate::process::Failed;
use crate::seals::{Seals, Watched};
use crate::simulation::{PLAYERS, Pads, Sticks};

/// What came is read at every so many frames: a turn may be there.
const READ_EVERY: u64 = 2;
/// Whoever plays gets one datagram for each turn, and asks for no more. At every so many frames it asks until there is none.
const EMPTY_EVERY: u64 = 16;

/// What a player says.
enum Says {
    Whole(Box<Session<Watched>>),
    Bare(BareSession<Watched>),
}

impl Says {
    fn handle(&mut self, now: Duration, packet: &[u8]) -> Result<(), Failed> {
        match self {
            Says::Whole(session) => session.handle(now, packet),
            Says::Bare(session) => session.handle(now, packet)?,
        }
        Ok(())
    }

    fn advance(&mut self, now: Duration, pads: &mut Pads) -> Result<(), Failed> {
        match self {
            // No step for a prediction that nobody looks at.
            Says::Whole(session) => session.advance(now, 0, |_| pads.next())?,
            Says::Bare(session) => session.advance(now, || pads.next()),
        }
        Ok(())
    }

    fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        match self {
            Says::Whole(session) => session.poll_transmit(now, out),
            Says::Bare(session) => session.poll_transmit(now, out),
        }
    }

    fn is_playing(&self) -> bool {
        match self {
            Says::Whole(session) => !session.seats().is_empty(),
            Says::Bare(session) => session.is_playing(),
        }
    }
}

/// See the [module](self).
struct Seated {
    says: Says,
    endpoint: ClientEndpoint,
    socket: UdpSocket,
    pads: Pads,
    frames: u64,
}

impl Seated {
    /// Takes what came; `all`: until nothing is left.
    fn read(&mut self, now: Duration, all: bool, buffer: &mut [u8]) {
        while let Ok(len) = self.socket.recv(buffer) {
            let from = self.endpoint.server();
            self.endpoint.handle(now, from, &buffer[..len]);
            if !all {
                return;
            }
        }
    }
}

impl Player for Seated {
    fn frame(&mut self, now: Duration) -> Result<(), Failed> {
        let mut buffer = [0; DATAGRAM_MAX + 1];
        self.frames += 1;
        if self.frames.is_multiple_of(READ_EVERY) {
            let all = self.frames.is_multiple_of(EMPTY_EVERY) || !self.is_in();
            self.read(now, all, &mut buffer);
        }
        self.endpoint.advance(now);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ClientEvent::Packet(packet) => self.says.handle(now, packet)?,
                ClientEvent::Closed { reason } => return Err(reason.to_string().into()),
                ClientEvent::Connected => {}
            }
        }
        self.says.advance(now, &mut self.pads)?;
        if self.endpoint.state() == TransportState::Connected {
            while let Some(len) = self.says.poll_transmit(now, &mut buffer) {
                // What cannot be sent is lost, as on any line.
                let _ = self.endpoint.send(&buffer[..len]);
            }
        }
        while let Some((_, datagram)) = self.endpoint.poll_transmit() {
            let _ = self.socket.send(datagram);
        }
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.says.is_playing()
    }
}

/// Who plays on a server of ours.
pub(crate) struct Seats<'k> {
    server: SocketAddr,
    key: &'k TicketKey,
    sticks: Sticks,
    /// One laminar for all.
    link: SharedLink,
}

impl<'k> Seats<'k> {
    pub(crate) fn new(server: SocketAddr, key: &'k TicketKey, sticks: Sticks) -> Seats<'k> {
        Seats {
            server,
            key,
            sticks,
            link: SharedLink::new(),
        }
    }

    /// The nth player of matches of four.
    pub(crate) fn dial(&self, n: usize) -> Result<Box<dyn Player>, Failed> {
        let ticket = Ticket::issue(
            self.key,
            &TicketSpec {
                game: Watched::NAME,
                wire_version: u32::from(WIRE_VERSION),
                identity: &format!("player-{n}"),
                match_id: (n / PLAYERS) as u64,
                seats: 1,
                servers: &[self.server],
                life: Duration::from_secs(3_600),
                timeout: Duration::from_secs(10),
                now_unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?,
            },
        )?;
        let (rules, start) = (Seals::default(), Watched::new(STATE_BYTES));
        let says = match n < PLAYERS {
            true => {
                let config = SessionConfig::new(Arc::new(rules)).start(start);
                Says::Whole(Box::new(Session::new(config)?))
            }
            false => Says::Bare(BareSession::new(&rules, &start)?),
        };
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        Ok(Box::new(Seated {
            says,
            endpoint: ClientEndpoint::new(&ticket, Duration::ZERO).sharing(&self.link),
            socket,
            pads: Pads::new(self.sticks, n),
            frames: n as u64,
        }))
    }
}
