//! [`Seats`]: players on our host, each with its own cipher and socket.
//!
//! The players of the first match run full sessions, which compare their world with the server's. All others are
//! [`BareSession`]s, because the load generator must cost less than the server.

use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use twinstep_client::{Session, SessionConfig};
use twinstep_core::Simulation;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_udp::{
    ClientEndpoint, ClientEvent, DATAGRAM_MAX, MatchId, SharedLink, Ticket, TicketKey, TicketSpec,
    TransportState,
};

use crate::bare_session::BareSession;
use crate::game::{Blob, PLAYERS, Pads, STATE_BYTES, Seals, Sticks};
use crate::process::Failed;
use crate::subject::{Player, Plays};

/// Sockets are read every second frame, because a turn has two ticks.
const READ_EVERY: u64 = 2;

/// One buffer for all players. A new one every frame would cost as much as writing a packet.
type Buffer = Rc<RefCell<[u8; DATAGRAM_MAX + 1]>>;

struct Seated {
    session: Box<dyn Plays>,
    endpoint: ClientEndpoint,
    socket: UdpSocket,
    pads: Pads,
    frames: u64,
    buffer: Buffer,
    now: Duration,
}

impl Seated {
    fn write(&mut self, now: Duration, buffer: &mut [u8]) {
        if self.endpoint.state() == TransportState::Connected {
            while let Some(len) = self.session.poll_transmit(now, buffer) {
                let _ = self.endpoint.send(&buffer[..len]);
            }
        }
        self.send();
    }

    fn send(&mut self) {
        while let Some((_, datagram)) = self.endpoint.poll_transmit() {
            // A failed send counts as packet loss.
            let _ = self.socket.send(datagram);
        }
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let buffer = self.buffer.clone();
        self.session.leave();
        self.write(self.now, &mut *buffer.borrow_mut());
        self.endpoint.disconnect();
        self.send();
    }
}

impl Player for Seated {
    fn frame(&mut self, now: Duration) -> Result<(), Failed> {
        let buffer = self.buffer.clone();
        let buffer = &mut *buffer.borrow_mut();
        self.now = now;
        self.frames += 1;
        while self.frames.is_multiple_of(READ_EVERY)
            && let Ok(len) = self.socket.recv(buffer)
        {
            let from = self.endpoint.server();
            self.endpoint.handle(now, from, &buffer[..len]);
        }
        self.endpoint.advance(now);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ClientEvent::Packet(packet) => self.session.handle(now, packet)?,
                ClientEvent::Closed { reason } => return Err(reason.to_string().into()),
                ClientEvent::Connected => {}
            }
        }
        self.session.advance(now, &mut self.pads)?;
        self.write(now, buffer);
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.session.is_playing()
    }
}

pub(crate) struct Seats<'k> {
    server: SocketAddr,
    key: &'k TicketKey,
    sticks: Sticks,
    link: SharedLink,
    buffer: Buffer,
}

impl<'k> Seats<'k> {
    pub(crate) fn new(server: SocketAddr, key: &'k TicketKey, sticks: Sticks) -> Seats<'k> {
        Seats {
            server,
            key,
            sticks,
            link: SharedLink::new(),
            buffer: Rc::new(RefCell::new([0; DATAGRAM_MAX + 1])),
        }
    }

    pub(crate) fn dial(&self, n: usize) -> Result<Box<dyn Player>, Failed> {
        let ticket = TicketSpec {
            game: Blob::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity: &format!("player-{n}"),
            match_id: MatchId((n / PLAYERS) as u64),
            seats: 1,
            servers: &[self.server.into()],
            life: Duration::from_secs(3_600),
            timeout: Duration::from_secs(10),
            now_unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?,
        };
        let ticket = Ticket::issue(self.key, &ticket)?;
        let socket = UdpSocket::bind(match self.server {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        });
        let socket = socket.map_err(|why| {
            format!("cannot open a UDP socket: {why}; each player needs one, see `ulimit -n`")
        })?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        let (rules, start) = (Seals::default(), Blob::new(STATE_BYTES));
        let session: Box<dyn Plays> = match n < PLAYERS {
            true => {
                let config = SessionConfig::new(Arc::new(rules)).start(start);
                Box::new(Session::new(config)?)
            }
            false => Box::new(BareSession::new(&rules, &start)?),
        };
        Ok(Box::new(Seated {
            session,
            endpoint: ClientEndpoint::new(&ticket, Duration::ZERO).sharing(&self.link),
            socket,
            pads: Pads::new(self.sticks, n),
            frames: n as u64,
            buffer: self.buffer.clone(),
            now: Duration::ZERO,
        }))
    }
}
