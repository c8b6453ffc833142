//! The peer of the host: renet 2.0 with renet_netcode as published, its own tokens and encryption.
//!
//! Server and players do what its examples do: update, receive, send, once a tick of 60 Hz. Each player says 24 bytes at each
//! tick and is told 60 bytes at every second one, over its unreliable channel, which is what our packets are on a short
//! line. renet knows no game: what a match costs is in our numbers alone.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; the server that is measured has a thread of its own"
)]

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

use crate::players::{FRAME, Player};
use crate::process::Failed;
use crate::served::{Done, Server};
use crate::simulation::PLAYERS;
use crate::socket::bind;

/// What a player says at each tick.
pub(crate) const UP_BYTES: usize = 24;
/// What a player is told at every second tick.
pub(crate) const DOWN_BYTES: usize = 60;

const PROTOCOL: u64 = 0x7415;
/// Server and players are started by one program: what protects the key of a real server is not measured.
const KEY: [u8; 32] = [7; 32];
/// renet_netcode's own bound.
pub(crate) const PLAYERS_MAX: usize = 1_024;

fn unix_now() -> Result<Duration, Failed> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?)
}

/// The server.
pub(crate) struct Serving {
    address: SocketAddr,
    heard: Arc<AtomicU64>,
}

impl Serving {
    pub(crate) fn start(listen: SocketAddr, matches: usize) -> Result<Serving, Failed> {
        let socket = bind(listen)?;
        let address = socket.local_addr()?;
        let config = ServerConfig {
            current_time: unix_now()?,
            max_clients: (matches * PLAYERS).min(PLAYERS_MAX),
            protocol_id: PROTOCOL,
            public_addresses: vec![address],
            authentication: ServerAuthentication::Secure { private_key: KEY },
        };
        let mut transport = NetcodeServerTransport::new(config, socket)?;
        let mut server = RenetServer::new(ConnectionConfig::default());
        let heard = Arc::new(AtomicU64::new(0));
        let counted = heard.clone();
        thread::spawn(move || {
            let told = Bytes::from_static(&[0x5a; DOWN_BYTES]);
            let (mut due, mut tick) = (Instant::now(), 0_u64);
            loop {
                // Who was late does not hurry after.
                due = (due + FRAME).max(Instant::now());
                thread::sleep(due.saturating_duration_since(Instant::now()));
                server.update(FRAME);
                if transport.update(FRAME, &mut server).is_err() {
                    continue;
                }
                tick += 1;
                let mut heard = 0;
                for client in server.clients_id() {
                    while server
                        .receive_message(client, DefaultChannel::Unreliable)
                        .is_some()
                    {
                        heard += 1;
                    }
                    if tick.is_multiple_of(2) {
                        server.send_message(client, DefaultChannel::Unreliable, told.clone());
                    }
                }
                counted.fetch_add(heard, Ordering::Relaxed);
                transport.send_packets(&mut server);
                while server.get_event().is_some() {}
            }
        });
        Ok(Serving { address, heard })
    }
}

impl Server for Serving {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn done(&mut self) -> Result<Done, Failed> {
        Ok(Done {
            player_ticks: self.heard.load(Ordering::Relaxed),
            ..Done::default()
        })
    }
}

/// A player.
pub(crate) struct Played {
    client: RenetClient,
    transport: NetcodeClientTransport,
    at: Duration,
}

impl Played {
    pub(crate) fn dial(server: SocketAddr, n: usize) -> Result<Played, Failed> {
        let now = unix_now()?;
        let token =
            ConnectToken::generate(now, PROTOCOL, 3_600, n as u64, 10, vec![server], None, &KEY)?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let authentication = ClientAuthentication::Secure {
            connect_token: token,
        };
        Ok(Played {
            client: RenetClient::new(ConnectionConfig::default()),
            transport: NetcodeClientTransport::new(now, authentication, socket)?,
            at: Duration::ZERO,
        })
    }
}

impl Player for Played {
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
            let said = Bytes::from_static(&[0xa5; UP_BYTES]);
            self.client.send_message(DefaultChannel::Unreliable, said);
        }
        self.transport.send_packets(&mut self.client)?;
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.client.is_connected()
    }
}
