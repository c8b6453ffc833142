//! Real sockets on loopback. Time is counted in steps, so a slow machine only takes longer.

use std::net::UdpSocket;
use std::time::Duration;

use twinstep_udp::{
    CloseReason, MatchId, PACKET_MAX, ServerConfig, ServerEndpoint, ServerEvent, SessionId, Ticket,
    TicketKey, TicketLedger, TicketSpec, Transport, TransportState, UdpClient,
};

const NOW_UNIX: Duration = Duration::from_secs(1_700_000_000);
const STEP: Duration = Duration::from_millis(10);

struct EchoServer {
    key: TicketKey,
    socket: UdpSocket,
    endpoint: ServerEndpoint,
    session: Option<SessionId>,
}

impl EchoServer {
    fn start() -> EchoServer {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("a non-blocking socket");
        let key = TicketKey::generate();
        let config = ServerConfig {
            keys: std::slice::from_ref(&key),
            public_addresses: &[socket.local_addr().expect("an address").into()],
            sessions_max: 4,
            game: "echo",
            wire_version: 1,
            tickets: TicketLedger::new(Duration::ZERO, NOW_UNIX),
        };
        EchoServer {
            endpoint: ServerEndpoint::new(config, Duration::ZERO).expect("a valid configuration"),
            key,
            socket,
            session: None,
        }
    }

    fn ticket(&self) -> Ticket {
        let spec = TicketSpec {
            game: "echo",
            wire_version: 1,
            identity: "anna",
            match_id: MatchId(1),
            seats: 1,
            servers: &[self.socket.local_addr().expect("an address").into()],
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: NOW_UNIX,
        };
        Ticket::issue(&self.key, &spec).expect("a valid spec")
    }

    fn step(&mut self, now: Duration) {
        let mut buffer = [0; 2_048];
        while let Ok((bytes, from)) = self.socket.recv_from(&mut buffer) {
            self.endpoint.handle(now, from, &buffer[..bytes]);
        }
        self.endpoint.advance(now, NOW_UNIX + now);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ServerEvent::Connected { session, .. } => {
                    self.endpoint.admit(session);
                    self.session = Some(session);
                }
                ServerEvent::Packet { session, bytes } => {
                    self.endpoint.send(session, &bytes).expect("an echo");
                }
                ServerEvent::Disconnected { .. } => self.session = None,
            }
        }
        while let Some((to, bytes)) = self.endpoint.poll_transmit() {
            let _ = self.socket.send_to(bytes, to);
        }
    }
}

/// Steps both sides until the client's state or packets satisfy `done`, at most 10 s of counted time.
fn run(
    server: &mut EchoServer,
    client: &mut UdpClient,
    now: &mut Duration,
    mut done: impl FnMut(&mut UdpClient) -> bool,
) {
    for _ in 0..1_000 {
        *now += STEP;
        client.advance(*now);
        server.step(*now);
        if done(client) {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    panic!("nothing came of it in 10 s: {:?}", client.state());
}

fn is_connected(client: &mut UdpClient) -> bool {
    client.state() == TransportState::Connected
}

fn echo(server: &mut EchoServer, client: &mut UdpClient, now: &mut Duration, wanted: usize) {
    let mut next = 0_u32;
    let mut echoed = std::collections::BTreeSet::new();
    run(server, client, now, |client| {
        client.send(&next.to_le_bytes()).expect("a connection");
        next += 1;
        let mut packet = [0; PACKET_MAX];
        while let Some(bytes) = client.poll(&mut packet) {
            assert_eq!(bytes, 4);
            assert!(u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]) < next);
            echoed.insert(packet[..4].to_vec());
        }
        echoed.len() >= wanted
    });
}

#[test]
fn a_client_connects_over_a_real_socket_and_reports_the_servers_close() {
    let mut server = EchoServer::start();
    let mut now = Duration::ZERO;
    let mut client = UdpClient::connect(&server.ticket(), now).unwrap();
    run(&mut server, &mut client, &mut now, is_connected);
    echo(&mut server, &mut client, &mut now, 100);

    server.endpoint.disconnect(server.session.unwrap());
    run(&mut server, &mut client, &mut now, |client| {
        client.state() == TransportState::Closed(CloseReason::ByServer)
    });
}

#[test]
fn the_largest_packet_crosses_a_real_socket_intact() {
    let mut server = EchoServer::start();
    let mut now = Duration::ZERO;
    let mut client = UdpClient::connect(&server.ticket(), now).unwrap();
    run(&mut server, &mut client, &mut now, is_connected);
    let sent: [u8; PACKET_MAX] = std::array::from_fn(|i| i as u8);
    client.send(&sent).unwrap();
    let mut packet = [0; PACKET_MAX];
    run(&mut server, &mut client, &mut now, |client| {
        client.poll(&mut packet) == Some(PACKET_MAX)
    });
    assert_eq!(packet, sent);
}

#[test]
fn a_session_survives_a_bad_network_simulated_in_the_client() {
    let mut server = EchoServer::start();
    let mut now = Duration::ZERO;
    let profile = "rtt=100,jitter=20,loss=10".parse().unwrap();
    let client = UdpClient::connect(&server.ticket(), now).unwrap();
    let mut client = client.with_conditioner(profile, 3);
    run(&mut server, &mut client, &mut now, is_connected);
    assert!(
        now >= Duration::from_millis(200),
        "two round trips, in {now:?}"
    );
    let begun = now;
    echo(&mut server, &mut client, &mut now, 200);
    let packets_sent = (now - begun).as_millis() / STEP.as_millis();
    assert!(packets_sent >= 220, "no loss in {packets_sent} packets");
}

#[test]
fn a_session_survives_a_closed_port_that_opens_again() {
    let mut server = EchoServer::start();
    let mut now = Duration::ZERO;
    let mut client = UdpClient::connect(&server.ticket(), now).unwrap();
    run(&mut server, &mut client, &mut now, is_connected);

    let address = server.socket.local_addr().unwrap();
    server.socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        now += STEP;
        let _ = client.send(b"into the void");
        client.advance(now);
    }
    assert_eq!(client.state(), TransportState::Connected);
    server.socket = UdpSocket::bind(address).unwrap();
    server.socket.set_nonblocking(true).unwrap();
    echo(&mut server, &mut client, &mut now, 10);
}
