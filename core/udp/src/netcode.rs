//! The cipher: tickets' tokens, encryption and the replay window. The only module that names renetcode2.
//!
//! ```text
//! guest                               gate (one per key)
//!   │── request (the token) ────────────▶│  checks key, game, expiry, address, first use
//!   │◀──────────────── challenge ────────│
//!   │── response ───────────────────────▶│  a session begins
//!   │◀─────────────── keep-alive ────────│
//!   │◀═══════ payloads, sealed ═════════▶│
//! ```
//!
//! Invariant: no datagram reaches renetcode2 before [`sane`] passed it. (1.0.0 panics in release builds on a
//! sequence longer than 8 bytes and on what is shorter than its tag, also from an address that merely
//! *looks* like a connected client's.)

use std::net::SocketAddr;
use std::time::Duration;

use renetcode2::{
    ClientAuthentication, ConnectToken, DisconnectReason, NetcodeClient, NetcodeServer,
    ServerAuthentication, ServerConfig, ServerResult, ServerSocketConfig,
};

use crate::ring::Ring;
use crate::words::CloseReason;

/// What netcode logs under. It writes one error line for each bad datagram: if a bridge from `log` is
/// installed, turn this target off. Without a `log` logger nothing is written.
pub const CIPHER_LOG_TARGET: &str = "renetcode2";

/// The largest datagram there is, in bytes. A socket's buffer needs one more to see that one is too large.
pub const DATAGRAM_MAX: usize = renetcode2::NETCODE_MAX_PACKET_BYTES;
/// Bytes of a ticket's private data.
pub(crate) const PRIVATE_BYTES: usize = renetcode2::NETCODE_USER_DATA_BYTES;

const REQUEST_BYTES: usize = 1 + 13 + 8 + 8 + 24 + 1024;
const TAG_BYTES: usize = 16;
/// Kinds of datagrams: the low half of the first byte.
const REQUEST: u8 = 0;
const KEEP_ALIVE: u8 = 4;
const DISCONNECT: u8 = 6;
/// A goodbye is sent this often, for it is never acknowledged.
const GOODBYES: usize = 3;

/// Datagrams on their way out.
pub(crate) type Outbox = Ring<SocketAddr>;

/// Whether renetcode2 can be shown this datagram.
pub(crate) fn sane(datagram: &[u8]) -> bool {
    let Some(&prefix) = datagram.first() else {
        return false;
    };
    let (kind, sequence_bytes) = (prefix & 15, usize::from(prefix >> 4));
    match kind {
        REQUEST => prefix == REQUEST && datagram.len() == REQUEST_BYTES,
        1..=DISCONNECT => {
            sequence_bytes <= 8
                && datagram.len() >= (1 + sequence_bytes + TAG_BYTES).max(2 + TAG_BYTES)
                && datagram.len() <= DATAGRAM_MAX
                // Its replay window adds 256 to the sequence unchecked.
                && !(sequence_bytes == 8 && datagram[8] == 0xff)
        }
        _ => false,
    }
}

/// The protocol id that a connection request names; `None` for every other datagram.
pub(crate) fn requested_protocol(sane: &[u8]) -> Option<u64> {
    (sane[0] == REQUEST).then(|| u64::from_le_bytes(sane[14..22].try_into().expect("eight bytes")))
}

/// What a ticket proves to the server and what its holder needs to speak with it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(ConnectToken);

/// What a token is made from.
pub(crate) struct TokenSpec<'a> {
    pub(crate) secret: &'a [u8; 32],
    pub(crate) protocol_id: u64,
    pub(crate) id: u64,
    pub(crate) now_unix: Duration,
    pub(crate) life_s: u64,
    pub(crate) timeout_s: u8,
    pub(crate) servers: &'a [SocketAddr],
    pub(crate) private: &'a [u8; PRIVATE_BYTES],
}

impl Token {
    /// # Panics
    /// Without an address, or with more than 32: the caller checks.
    pub(crate) fn mint(spec: &TokenSpec<'_>) -> Token {
        let token = ConnectToken::generate(
            spec.now_unix,
            spec.protocol_id,
            spec.life_s,
            spec.id,
            i32::from(spec.timeout_s),
            0,
            spec.servers.to_vec(),
            Some(spec.private),
            spec.secret,
        );
        Token(token.expect("1 to 32 addresses fit a token"))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.write(&mut bytes).expect("writing to a Vec");
        bytes
    }

    /// `None` for what is no token, also for one that renetcode2 would read and then stumble over.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Token> {
        let token = ConnectToken::read(&mut bytes).ok()?;
        let usable = bytes.is_empty()
            && token.server_addresses[0].is_some()
            && token.expire_timestamp >= token.create_timestamp
            && (1..=i32::from(u8::MAX)).contains(&token.timeout_seconds);
        usable.then_some(Token(token))
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.client_id
    }

    pub(crate) fn expires_unix_s(&self) -> u64 {
        self.0.expire_timestamp
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.server_addresses.iter().flatten().copied()
    }

    /// The same token, to be dialled at this address alone. What the server checks is inside the seal, and stays.
    pub(crate) fn led_to(&self, server: SocketAddr) -> Token {
        let mut token = self.0.clone();
        token.server_addresses = [None; 32];
        token.server_addresses[0] = Some(server);
        Token(token)
    }
}

/// The server's half, for one key.
pub(crate) struct Gate {
    netcode: NetcodeServer,
    sessions_max: usize,
}

/// What a datagram turned out to be.
pub(crate) enum Arrival<'a> {
    /// The protocol's own business.
    Nothing,
    /// A keep-alive of a connected client.
    KeptAlive,
    /// Not sealed with the right key, expired, for another server, or seen before.
    Rejected,
    /// A request that passed; its challenge is on the way.
    Challenged,
    /// A true ticket that is not let in: the server is full, or the ticket was used.
    Denied,
    /// A session begins.
    Connected {
        id: u64,
        slot: usize,
        private: Box<[u8; PRIVATE_BYTES]>,
    },
    /// A payload of session `id`.
    Payload { id: u64, bytes: &'a [u8] },
    /// The peer said goodbye.
    Left { id: u64 },
}

impl Gate {
    pub(crate) fn new(
        secret: [u8; 32],
        protocol_id: u64,
        public_addresses: Vec<SocketAddr>,
        sessions_max: usize,
        now_unix: Duration,
    ) -> Gate {
        let netcode = NetcodeServer::new(ServerConfig {
            current_time: now_unix,
            // Tickets from before a restart are good: single use is kept by the consumed ids.
            max_token_lifetime: 0,
            max_clients: sessions_max,
            protocol_id,
            sockets: vec![ServerSocketConfig::new(public_addresses)],
            authentication: ServerAuthentication::Secure {
                private_key: secret,
            },
        });
        Gate {
            netcode,
            sessions_max,
        }
    }

    /// Takes a sane datagram. `open` says whether there is room for another session, `used` whether a
    /// ticket id was used before.
    pub(crate) fn handle<'a>(
        &mut self,
        from: SocketAddr,
        datagram: &'a mut [u8],
        open: bool,
        used: impl Fn(u64) -> bool,
        out: &mut Outbox,
    ) -> Arrival<'a> {
        let kind = datagram[0] & 15;
        if kind == REQUEST {
            // With room for nobody, netcode answers a true request with a sealed "denied".
            self.netcode
                .set_max_clients(if open { self.sessions_max } else { 0 });
            let challenge = match self.netcode.process_packet(0, from, datagram) {
                ServerResult::ConnectionAccepted {
                    client_id, payload, ..
                } if !used(client_id) => Some(out.push(from, payload)),
                ServerResult::ConnectionAccepted { .. } => None,
                ServerResult::ConnectionDenied {
                    payload: Some(denied),
                    ..
                } => {
                    let _ = out.push(from, denied);
                    return Arrival::Denied;
                }
                ServerResult::ConnectionDenied { payload: None, .. } => None,
                ServerResult::Error { .. } => return Arrival::Rejected,
                _ => return Arrival::Nothing,
            };
            if challenge.is_some() {
                return Arrival::Challenged;
            }
            // A true ticket, used before: tell its holder, by the same answer.
            self.netcode.set_max_clients(0);
            if let ServerResult::ConnectionDenied {
                payload: Some(denied),
                ..
            } = self.netcode.process_packet(0, from, datagram)
            {
                let _ = out.push(from, denied);
            }
            return Arrival::Denied;
        }

        match self.netcode.process_packet(0, from, datagram) {
            ServerResult::Payload { client_id, payload } => Arrival::Payload {
                id: client_id,
                bytes: payload,
            },
            ServerResult::ClientConnected {
                client_id,
                user_data,
                payload,
                ..
            } => {
                let _ = out.push(from, payload);
                let slot = self
                    .netcode
                    .clients_id_iter_with_slots()
                    .find_map(|(slot, id)| (id == client_id).then_some(slot));
                Arrival::Connected {
                    id: client_id,
                    slot: slot.expect("a client that just connected has a slot"),
                    private: user_data,
                }
            }
            ServerResult::ClientDisconnected { client_id, .. } => Arrival::Left { id: client_id },
            ServerResult::ConnectionDenied { payload, .. } => {
                if let Some(denied) = payload {
                    let _ = out.push(from, denied);
                }
                Arrival::Denied
            }
            ServerResult::Error { .. } => Arrival::Rejected,
            _ if kind == KEEP_ALIVE => Arrival::KeptAlive,
            _ => Arrival::Nothing,
        }
    }

    /// Moves time on.
    pub(crate) fn advance(&mut self, elapsed: Duration) {
        self.netcode.update(elapsed);
    }

    /// Keeps a session alive; `false` when it timed out and is gone.
    #[must_use]
    pub(crate) fn tend(&mut self, slot: usize, id: u64, out: &mut Outbox) -> bool {
        if let ServerResult::ClientDisconnected { addr, payload, .. } =
            self.netcode.update_client(slot, id)
        {
            say_goodbye(addr, payload.as_deref(), out);
            return false;
        }
        if let ServerResult::PacketToSend { addr, payload, .. } =
            self.netcode.generate_client_ping(slot, id)
        {
            let _ = out.push(addr, payload);
        }
        true
    }

    /// Seals a payload and queues it; `false` when the queue is full.
    #[must_use]
    pub(crate) fn seal(&mut self, slot: usize, id: u64, payload: &[u8], out: &mut Outbox) -> bool {
        self.netcode
            .generate_payload_packet(slot, id, payload)
            .is_ok_and(|(_, addr, sealed)| out.push(addr, sealed))
    }

    /// Ends a session and tells the peer.
    pub(crate) fn disconnect(&mut self, id: u64, out: &mut Outbox) {
        if let ServerResult::ClientDisconnected { addr, payload, .. } = self.netcode.disconnect(id)
        {
            say_goodbye(addr, payload.as_deref(), out);
        }
    }
}

fn say_goodbye(to: SocketAddr, goodbye: Option<&[u8]>, out: &mut Outbox) {
    for _ in 0..GOODBYES {
        if let Some(bytes) = goodbye {
            let _ = out.push(to, bytes);
        }
    }
}

/// The client's half.
pub(crate) struct Guest {
    netcode: NetcodeClient,
}

/// How far a guest has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestState {
    Connecting,
    Connected,
    Closed(CloseReason),
}

impl Guest {
    pub(crate) fn new(token: &Token, now_unix: Duration) -> Guest {
        let authentication = ClientAuthentication::Secure {
            connect_token: token.0.clone(),
        };
        let netcode = NetcodeClient::new(now_unix, authentication);
        Guest {
            netcode: netcode.expect("only tokens made on the spot can fail"),
        }
    }

    /// The address that is tried now, or that answered.
    pub(crate) fn server(&self) -> SocketAddr {
        self.netcode.server_addr()
    }

    /// Takes a sane datagram that came from [`server`](Guest::server); answers a payload, if it is one.
    pub(crate) fn handle<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        self.netcode.process_packet(datagram)
    }

    /// Moves time on and queues what is due: requests, responses, keep-alives.
    pub(crate) fn advance(&mut self, elapsed: Duration, out: &mut Outbox) {
        if self.netcode.is_disconnected() {
            return;
        }
        self.netcode.update(elapsed);
        if let Some((bytes, to)) = self.netcode.generate_ping() {
            let _ = out.push(to, bytes);
        }
    }

    /// Seals a payload and queues it; `false` when not connected or the queue is full.
    #[must_use]
    pub(crate) fn seal(&mut self, payload: &[u8], out: &mut Outbox) -> bool {
        self.netcode
            .generate_payload_packet(payload)
            .is_ok_and(|(to, sealed)| out.push(to, sealed))
    }

    /// Ends the session and tells the server.
    pub(crate) fn disconnect(&mut self, out: &mut Outbox) {
        if self.netcode.is_disconnected() {
            return;
        }
        let established = self.netcode.is_connected();
        if let Ok((to, goodbye)) = self.netcode.disconnect()
            && established
        {
            say_goodbye(to, Some(goodbye), out);
        }
    }

    pub(crate) fn state(&self) -> GuestState {
        match self.netcode.disconnect_reason() {
            None if self.netcode.is_connected() => GuestState::Connected,
            None => GuestState::Connecting,
            Some(reason) => GuestState::Closed(match reason {
                DisconnectReason::ConnectTokenExpired => CloseReason::Expired,
                DisconnectReason::ConnectionTimedOut => CloseReason::TimedOut,
                DisconnectReason::ConnectionResponseTimedOut
                | DisconnectReason::ConnectionRequestTimedOut => CloseReason::NoAnswer,
                DisconnectReason::ConnectionDenied => CloseReason::Denied,
                DisconnectReason::DisconnectedByClient => CloseReason::ByClient,
                DisconnectReason::DisconnectedByServer => CloseReason::ByServer,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_renetcode2_panics_on_is_not_sane() {
        assert!(!sane(&[]));
        assert!(!sane(&[0x05]), "shorter than a tag");
        assert!(!sane(&[0x95; 64]), "a sequence of 9 bytes");
        assert!(!sane(&[0x85; 20]), "sequence and tag do not fit");
        assert!(!sane(&[0x07; 64]), "no such kind");
        assert!(!sane(&[0x00; 64]), "a request of another size");
        assert!(!sane(&[0x15; DATAGRAM_MAX + 1]), "too large");
        let mut near_the_end = [0x00; 64];
        near_the_end[0] = 0x85;
        near_the_end[8] = 0xff;
        assert!(!sane(&near_the_end), "the window would overflow");
        near_the_end[8] = 0xfe;
        assert!(sane(&near_the_end));
        assert!(sane(&[0x15; 18]));
        assert!(sane(&[0x00; REQUEST_BYTES]));
    }

    #[test]
    fn a_token_that_would_make_a_client_stumble_is_none() {
        let token = Token::mint(&TokenSpec {
            secret: &[7; 32],
            protocol_id: 1,
            id: 2,
            now_unix: Duration::from_secs(1_000),
            life_s: 60,
            timeout_s: 5,
            servers: &["127.0.0.1:5000".parse().unwrap()],
            private: &[0; PRIVATE_BYTES],
        });
        assert!(Token::from_bytes(&token.to_bytes()) == Some(token.clone()));

        let stumbles: [fn(&mut ConnectToken); 4] = [
            |t| t.server_addresses = [None; 32],
            |t| t.expire_timestamp = t.create_timestamp - 1,
            |t| t.timeout_seconds = 0,
            |t| t.timeout_seconds = -1,
        ];
        for break_it in stumbles {
            let mut broken = token.clone();
            break_it(&mut broken.0);
            assert!(Token::from_bytes(&broken.to_bytes()).is_none());
        }
        let mut long = token.to_bytes();
        long.push(0);
        assert!(Token::from_bytes(&long).is_none());
    }
}
