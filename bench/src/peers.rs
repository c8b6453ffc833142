//! The peers of our host: renet, and a UDP socket that echoes.
//!
//! renet 2.0 and renet_netcode run as published, with their tokens and encryption. Server and players follow the
//! examples of renet: update, receive, send, once a tick at 60 Hz. Each player sends 24 bytes every tick and receives
//! 60 bytes every second tick, as large as our packets on a short link, over the unreliable channel. renet does not
//! know the game, so only our numbers include the cost of a match.
//!
//! The echo is the floor: plain datagrams of the same sizes and rates. No stack can cost less, unless it hands several
//! datagrams to the kernel in one call.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use renet::{Bytes, ConnectionConfig, DefaultChannel, RenetClient, RenetServer};
use renet_netcode::{
    ClientAuthentication, ConnectToken, NetcodeClientTransport, NetcodeServerTransport,
    ServerAuthentication, ServerConfig,
};

use crate::process::Failed;
use crate::subject::{Done, FRAME, Player, Server};

const UP_BYTES: usize = 24;
const DOWN_BYTES: usize = 60;
const SEAL_BYTES: usize = 28;

const PROTOCOL: u64 = 0x7415;
/// One program starts server and players, so the key does not need protection.
const KEY: [u8; 32] = [7; 32];
/// renet_netcode's own limit.
const PLAYERS_MAX: usize = 1_024;
/// The size of the socket's buffers, equal to our host's: enough for about 40 ms of 2,000 players' datagrams. With the
/// system's default, a server that reads once a tick loses datagrams with about 250 players.
const SOCKET_BYTES: usize = 4 << 20;

fn bind(listen: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(listen)?;
    let room = socket2::SockRef::from(&socket);
    room.set_recv_buffer_size(SOCKET_BYTES)?;
    room.set_send_buffer_size(SOCKET_BYTES)?;
    Ok(socket)
}

fn unix_now() -> Result<Duration, Failed> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?)
}

pub(crate) struct PeerServer {
    address: SocketAddr,
    received: Arc<AtomicU64>,
    /// Datagrams both ways; stays 0 for renet, which does not count them.
    datagrams: Arc<AtomicU64>,
}

impl PeerServer {
    pub(crate) fn renet(listen: SocketAddr, players: usize) -> Result<PeerServer, Failed> {
        let socket = bind(listen)?;
        let address = socket.local_addr()?;
        let config = ServerConfig {
            current_time: unix_now()?,
            max_clients: players.min(PLAYERS_MAX),
            protocol_id: PROTOCOL,
            public_addresses: vec![address],
            authentication: ServerAuthentication::Secure { private_key: KEY },
        };
        let mut transport = NetcodeServerTransport::new(config, socket)?;
        let mut server = RenetServer::new(ConnectionConfig::default());
        let serving = PeerServer {
            address,
            received: Arc::default(),
            datagrams: Arc::default(),
        };
        let counted = serving.received.clone();
        thread::spawn(move || {
            let packet = Bytes::from_static(&[0x5a; DOWN_BYTES]);
            let (mut due, mut tick) = (Instant::now(), 0_u64);
            loop {
                // Lost time is not made up.
                due = (due + FRAME).max(Instant::now());
                thread::sleep(due.saturating_duration_since(Instant::now()));
                server.update(FRAME);
                if transport.update(FRAME, &mut server).is_err() {
                    continue;
                }
                tick += 1;
                let mut received = 0;
                for client in server.clients_id() {
                    while server
                        .receive_message(client, DefaultChannel::Unreliable)
                        .is_some()
                    {
                        received += 1;
                    }
                    if tick.is_multiple_of(2) {
                        server.send_message(client, DefaultChannel::Unreliable, packet.clone());
                    }
                }
                counted.fetch_add(received, Ordering::Relaxed);
                transport.send_packets(&mut server);
                while server.get_event().is_some() {}
            }
        });
        Ok(serving)
    }

    pub(crate) fn echo(listen: SocketAddr) -> Result<PeerServer, Failed> {
        let socket = bind(listen)?;
        let serving = PeerServer {
            address: socket.local_addr()?,
            received: Arc::default(),
            datagrams: Arc::default(),
        };
        let counted = (serving.received.clone(), serving.datagrams.clone());
        thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                // Players number their datagrams. Every second one gets a reply, as with two-tick turns.
                let answers = len > 0 && buffer[0] % 2 == 0;
                if answers {
                    let _ = socket.send_to(&buffer[..DOWN_BYTES + SEAL_BYTES], from);
                }
                counted.0.fetch_add(1, Ordering::Relaxed);
                counted
                    .1
                    .fetch_add(1 + u64::from(answers), Ordering::Relaxed);
            }
        });
        Ok(serving)
    }
}

impl Server for PeerServer {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn done(&mut self) -> Result<Done, Failed> {
        Ok(Done {
            player_ticks: self.received.load(Ordering::Relaxed),
            datagrams: self.datagrams.load(Ordering::Relaxed),
            ..Done::default()
        })
    }
}

pub(crate) struct RenetPlayer {
    client: RenetClient,
    transport: NetcodeClientTransport,
    at: Duration,
}

impl RenetPlayer {
    pub(crate) fn dial(server: SocketAddr, n: usize) -> Result<RenetPlayer, Failed> {
        let now = unix_now()?;
        let token =
            ConnectToken::generate(now, PROTOCOL, 3_600, n as u64, 10, vec![server], None, &KEY)?;
        let authentication = ClientAuthentication::Secure {
            connect_token: token,
        };
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        Ok(RenetPlayer {
            client: RenetClient::new(ConnectionConfig::default()),
            transport: NetcodeClientTransport::new(now, authentication, socket)?,
            at: Duration::ZERO,
        })
    }
}

impl Player for RenetPlayer {
    fn frame(&mut self, now: Duration) -> Result<(), Failed> {
        let passed = now.saturating_sub(self.at);
        self.at = now;
        self.client.update(passed);
        self.transport.update(passed, &mut self.client)?;
        while self
            .client
            .receive_message(DefaultChannel::Unreliable)
            .is_some()
        {}
        if self.client.is_connected() {
            let packet = Bytes::from_static(&[0xa5; UP_BYTES]);
            self.client.send_message(DefaultChannel::Unreliable, packet);
        }
        self.transport.send_packets(&mut self.client)?;
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.client.is_connected()
    }
}

pub(crate) struct EchoPlayer {
    socket: UdpSocket,
    sent: u8,
    is_answered: bool,
}

impl EchoPlayer {
    pub(crate) fn dial(server: SocketAddr) -> Result<EchoPlayer, Failed> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(EchoPlayer {
            socket,
            sent: 0,
            is_answered: false,
        })
    }
}

impl Player for EchoPlayer {
    fn frame(&mut self, _: Duration) -> Result<(), Failed> {
        let mut buffer = [0; 2_048];
        while self.socket.recv(&mut buffer).is_ok() {
            self.is_answered = true;
        }
        self.sent = self.sent.wrapping_add(1);
        // A full buffer counts as packet loss.
        let _ = self.socket.send(&[self.sent; UP_BYTES + SEAL_BYTES]);
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.is_answered
    }
}
