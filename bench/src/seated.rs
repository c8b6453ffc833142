//! [`Seated`]: a player on our host, behind its cipher and a socket of its own.
//!
//! The players of the first match are whole sessions, which see whether their world is the server's. All others are
//! [`BareSession`]s: who plays should cost less than who serves.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use twinstep_client::{Event, Session, SessionConfig};
use twinstep_core::Simulation;
use twinstep_core::packet::WIRE_VERSION;
use twinstep_udp::{
    ClientEndpoint, ClientEvent, DATAGRAM_MAX, SharedLink, Ticket, TicketKey, TicketSpec,
    TransportState,
};

use crate::bare_session::BareSession;
use crate::players::Player;
use crate::process::Failed;
use crate::seals::{STATE_BYTES, Seals, Watched};
use crate::simulation::{PLAYERS, Pads, Sticks};

/// What came is read at every so many frames: a turn may be there.
const READ_EVERY: u64 = 2;
/// At every so many frames it is read until nothing is left.
const EMPTY_EVERY: u64 = 16;

/// What a player says.
enum Says {
    Whole(Box<Session<Watched>>),
    Bare(Box<BareSession<Watched>>),
}

impl Says {
    /// What the nth player of matches of four says.
    fn of(n: usize) -> Result<Says, Failed> {
        let (rules, start) = (Seals::default(), Watched::new(STATE_BYTES));
        Ok(match n < PLAYERS {
            true => {
                let config = SessionConfig::new(Arc::new(rules)).start(start);
                Says::Whole(Box::new(Session::new(config)?))
            }
            false => Says::Bare(Box::new(BareSession::new(&rules, &start)?)),
        })
    }

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
            Says::Whole(session) => {
                session.advance(now, 0, |_| pads.next())?;
                while let Some(event) = session.poll_event() {
                    if let Event::Differs { at } = event {
                        return Err(format!("its world is not the server's at {at}").into());
                    }
                }
            }
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

    /// Says goodbye; what is to be transmitted then carries it.
    fn leave(&mut self) {
        match self {
            Says::Whole(session) => session.leave(),
            Says::Bare(session) => session.leave(),
        }
    }

    fn is_playing(&self) -> bool {
        match self {
            Says::Whole(session) => !session.seats().is_empty(),
            Says::Bare(session) => session.is_playing(),
        }
    }

    /// Whether it has come as far as the match.
    fn is_settled(&self) -> bool {
        match self {
            Says::Whole(session) => self.is_playing() && session.progress().is_none(),
            Says::Bare(session) => session.is_settled(),
        }
    }
}

/// How much of what came a player asks for. Whoever plays gets one datagram for each turn, and to hear each time that there is
/// no other costs as much as to read it.
struct Reading {
    frames: u64,
    /// The last time nothing was there: it came after that, and the next one may be there too.
    found_none: bool,
}

impl Reading {
    /// How many datagrams are read at most in a frame.
    fn at_most(&mut self, is_settled: bool) -> usize {
        self.frames += 1;
        if !self.frames.is_multiple_of(READ_EVERY) {
            return 0;
        }
        match is_settled && !self.frames.is_multiple_of(EMPTY_EVERY) {
            true => 1 + usize::from(self.found_none),
            false => usize::MAX,
        }
    }

    /// Of so many, so many were there.
    fn note(&mut self, at_most: usize, found: usize) {
        if at_most > 0 {
            self.found_none = found == 0;
        }
    }
}

/// One for all players: to make it anew for each frame costs as much as to write a packet.
type Buffer = Rc<RefCell<[u8; DATAGRAM_MAX + 1]>>;

/// See the [module](self).
struct Seated {
    says: Says,
    endpoint: ClientEndpoint,
    socket: UdpSocket,
    pads: Pads,
    reading: Reading,
    buffer: Buffer,
    now: Duration,
}

impl Seated {
    /// Takes what came.
    fn read(&mut self, now: Duration, buffer: &mut [u8]) {
        let at_most = self.reading.at_most(self.says.is_settled());
        let mut found = 0;
        while found < at_most
            && let Ok(len) = self.socket.recv(buffer)
        {
            found += 1;
            let from = self.endpoint.server();
            self.endpoint.handle(now, from, &buffer[..len]);
        }
        self.reading.note(at_most, found);
    }

    /// Says what is to be said.
    fn speak(&mut self, now: Duration, buffer: &mut [u8]) {
        if self.endpoint.state() == TransportState::Connected {
            while let Some(len) = self.says.poll_transmit(now, buffer) {
                let _ = self.endpoint.send(&buffer[..len]);
            }
        }
        self.send();
    }

    fn send(&mut self) {
        while let Some((_, datagram)) = self.endpoint.poll_transmit() {
            // What cannot be sent is lost, as on any line.
            let _ = self.socket.send(datagram);
        }
    }
}

impl Drop for Seated {
    /// Says goodbye: its seat is free at once for who plays next.
    fn drop(&mut self) {
        let buffer = self.buffer.clone();
        self.says.leave();
        self.speak(self.now, &mut *buffer.borrow_mut());
        self.endpoint.disconnect();
        self.send();
    }
}

impl Player for Seated {
    fn frame(&mut self, now: Duration) -> Result<(), Failed> {
        let buffer = self.buffer.clone();
        let buffer = &mut *buffer.borrow_mut();
        self.now = now;
        self.read(now, buffer);
        self.endpoint.advance(now);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ClientEvent::Packet(packet) => self.says.handle(now, packet)?,
                ClientEvent::Closed { reason } => return Err(reason.to_string().into()),
                ClientEvent::Connected => {}
            }
        }
        self.says.advance(now, &mut self.pads)?;
        self.speak(now, buffer);
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
                servers: &[self.server.into()],
                life: Duration::from_secs(3_600),
                timeout: Duration::from_secs(10),
                now_unix: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?,
            },
        )?;
        let socket = UdpSocket::bind(match self.server {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        });
        let socket = socket.map_err(|why| {
            format!("cannot open a UDP socket: {why}; each player needs one, see `ulimit -n`")
        })?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        Ok(Box::new(Seated {
            says: Says::of(n)?,
            endpoint: ClientEndpoint::new(&ticket, Duration::ZERO).sharing(&self.link),
            socket,
            pads: Pads::new(self.sticks, n),
            reading: Reading {
                frames: n as u64,
                found_none: false,
            },
            buffer: self.buffer.clone(),
            now: Duration::ZERO,
        }))
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::bounds::PACKET_BYTES_MAX;
    use twinstep_core::simnet::SimLink;
    use twinstep_core::{Key, Never, PlayerId};
    use twinstep_server::{Decision, Look, Match, MatchConfig, Output, PeerId};

    use super::*;
    use crate::players::FRAME;

    /// Until clocks have settled and lines have proven good; then for how long is looked.
    const SETTLED: u32 = 15 * 60;
    const FRAMES: u32 = 30 * 60;

    /// What was sent one way.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Sent {
        packets: u64,
        bytes: u64,
    }

    impl Sent {
        fn note(&mut self, packet: &[u8]) {
            self.packets += 1;
            self.bytes += packet.len() as u64;
        }
    }

    /// A match of four in virtual time.
    struct Table {
        game: Match<Watched>,
        players: Vec<(Says, Pads, SimLink, Reading)>,
        up: Sent,
        down: Sent,
        round: u32,
        /// Players read whatever came at each frame.
        reads_all: bool,
    }

    impl Table {
        /// With the players from the nth on, who have so much of it behind them.
        fn settled(first: usize, line: &str, reads_all: bool) -> Table {
            let nothing = |_: &Look<'_, Watched>, _: Key, never: &Never| -> Decision<Never> {
                match *never {}
            };
            let config = MatchConfig {
                players_max: PLAYERS,
                ..MatchConfig::action()
            };
            let (start, rules) = (Watched::new(STATE_BYTES), Arc::new(Seals::default()));
            let mut game = Match::new(config, start, rules, nothing).expect("sound");
            let players = (0..PLAYERS).map(|n| {
                let peer = PeerId(n as u64);
                game.connect(Duration::ZERO, peer, &format!("player {n}"), 1)
                    .expect("a free seat");
                let says = Says::of(first + n).expect("rules without a NaN");
                let line = SimLink::new(line.parse().expect("a line in words"), n as u64);
                let reading = Reading {
                    frames: n as u64,
                    found_none: false,
                };
                (says, Pads::new(Sticks::Moving, n), line, reading)
            });
            let mut table = Table {
                players: players.collect(),
                game,
                up: Sent::default(),
                down: Sent::default(),
                round: 0,
                reads_all,
            };
            table.play(SETTLED);
            (table.up, table.down) = (Sent::default(), Sent::default());
            table
        }

        fn play(&mut self, rounds: u32) {
            for _ in 0..rounds {
                self.round();
            }
        }

        fn round(&mut self) {
            let mut buffer = [0; PACKET_BYTES_MAX];
            for (n, (says, pads, line, reading)) in self.players.iter_mut().enumerate() {
                // Each at a moment of its own.
                let now = FRAME * self.round + FRAME * n as u32 / PLAYERS as u32;
                let (at_most, mut found) = match self.reads_all {
                    true => (usize::MAX, 0),
                    false => (reading.at_most(says.is_settled()), 0),
                };
                while found < at_most
                    && let Some(packet) = line.down.poll(now)
                {
                    found += 1;
                    says.handle(now, packet).expect("a packet of the match");
                }
                reading.note(at_most, found);
                says.advance(now, pads).expect("a session that plays");
                while let Some(len) = says.poll_transmit(now, &mut buffer) {
                    self.up.note(&buffer[..len]);
                    line.up.send(now, &buffer[..len]);
                }
            }
            self.round += 1;
            let now = FRAME * self.round;
            for (n, (_, _, line, _)) in self.players.iter_mut().enumerate() {
                while let Some(packet) = line.up.poll(now) {
                    self.game.handle(now, PeerId(n as u64), packet);
                }
            }
            self.game.advance(now);
            while let Some(output) = self.game.poll() {
                match output {
                    Output::Packet { peer, bytes } => {
                        self.down.note(bytes);
                        self.players[peer.0 as usize].2.down.send(now, bytes);
                    }
                    Output::Closed { peer, code } => panic!("{peer:?} was closed: {code}"),
                    _ => {}
                }
            }
        }

        fn fills(&self) -> u64 {
            let fills = (0..PLAYERS as u8).map(|n| self.game.seat_stats(PlayerId(n)).fills);
            fills.sum()
        }
    }

    #[test]
    fn a_server_sees_of_a_bare_session_what_it_sees_of_a_whole_one() {
        for line in ["rtt=0,jitter=0,loss=0", "rtt=20,jitter=2,loss=0"] {
            let [whole, bare] = [0, PLAYERS].map(|first| {
                let mut table = Table::settled(first, line, true);
                assert_eq!(matches!(table.players[0].0, Says::Whole(_)), first == 0);
                let fills = table.fills();
                table.play(FRAMES);
                (table.up, table.down, table.fills() - fills)
            });
            assert_eq!(whole, bare, "{line}");
            assert_eq!(whole.0.packets, u64::from(FRAMES) * PLAYERS as u64);
            assert_eq!(whole.1.packets, u64::from(FRAMES / 2) * PLAYERS as u64);
            assert_eq!(whole.2, 0, "{line}: missing inputs");
        }
    }

    #[test]
    fn over_a_bad_line_a_bare_session_loads_a_server_as_a_whole_one_does() {
        for line in ["rtt=60,jitter=10,loss=1", "rtt=150,jitter=30,loss=5"] {
            let [whole, bare] = [0, PLAYERS].map(|first| {
                let mut table = Table::settled(first, line, false);
                let fills = table.fills();
                table.play(FRAMES);
                (table.up, table.down, table.fills() - fills)
            });
            let alike = |one: u64, other: u64, percent: u64| {
                let differ = one.abs_diff(other) * 100;
                assert!(differ <= one * percent, "{line}: {whole:?}, {bare:?}");
            };
            alike(whole.0.packets, bare.0.packets, 1);
            alike(whole.0.bytes, bare.0.bytes, 3);
            alike(whole.1.packets, bare.1.packets, 1);
            alike(whole.1.bytes, bare.1.bytes, 2);
            let inputs = u64::from(FRAMES) * PLAYERS as u64;
            assert!(
                bare.2 <= whole.2 + inputs / 100,
                "{line}: {whole:?}, {bare:?}"
            );
        }
    }

    /// Who plays next in a load finds the seats of the one before.
    #[test]
    fn who_says_goodbye_leaves_its_seat() {
        for first in [0, PLAYERS] {
            let mut table = Table::settled(first, "rtt=20,jitter=2,loss=0", true);
            assert_eq!(table.game.free_seats(), 0);
            let (now, mut buffer) = (FRAME * table.round, [0; PACKET_BYTES_MAX]);
            let says = &mut table.players[1].0;
            says.leave();
            let mut said = 0;
            while let Some(len) = says.poll_transmit(now, &mut buffer) {
                table.game.handle(now, PeerId(1), &buffer[..len]);
                said += 1;
            }
            table.game.advance(now + FRAME);
            assert_eq!((said, table.game.free_seats()), (3, 1));
        }
    }
}
