//! [`CipherServer`]: the server's half of netcode, for one key.
//!
//! ```text
//! dial ─▶ a token, made here and for itself ─▶ shard, by the session's number ─▶ challenge
//! answer, payload ─▶ the same shard ─▶ a session begins, bytes
//! ```
//!
//! For each datagram netcode looks for its address among all clients that it has, one after the other, and each lies in
//! memory of its own. So a server has a netcode for some 64 sessions each. Invariant: which one knows a session follows from
//! the session's number, so that nothing is kept of it, and the same dial meets the same one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use renetcode2::{
    NetcodeServer, ServerAuthentication, ServerConfig, ServerResult, ServerSocketConfig,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    KEEP_ALIVE, PRIVATE_BYTES, REQUEST, REQUEST_BYTES, VERSION_INFO, is_netcodes, say_goodbye,
};
use crate::aead::{self, KEY_BYTES};
use crate::dial::SessionKeys;
use crate::secrets::random;
use crate::send_queue::SendQueue;

/// An address, in bytes: its family (4 or 6), 16 bytes, its port.
const ADDRESS_BYTES: usize = 19;
/// What netcode carries in a token for us.
const USER_BYTES: usize = renetcode2::NETCODE_USER_DATA_BYTES;
/// The server's tokens name this address, and no other one is asked for.
const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
/// A server's tokens are the same for so long, and live on for as long. netcode remembers 2,048 of them.
const WINDOW: Duration = Duration::from_secs(4);
/// A challenge is answered within so many windows.
const CHALLENGE_WINDOWS: u64 = 2;
/// For longer than that: after it nothing of a session's handshake is of use any more.
pub(crate) const HANDSHAKE_LIFE: Duration = Duration::from_secs(20);
const _: () = assert!(HANDSHAKE_LIFE.as_secs() > (CHALLENGE_WINDOWS + 1) * WINDOW.as_secs());

/// Sessions that share a [`Shard`], in the mean; and its places. Of a full server's shards one in 10¹⁵ or so is full.
const SHARD_SESSIONS: usize = 64;
const SHARD_PLACES: usize = 144;
/// Sessions that return have as many places again. More than half of them do not at once, in a process of several shards.
pub(crate) const RETURNING: usize = 2;

/// See the [module](self).
pub(crate) struct CipherServer {
    /// Each from its first session on: one takes half a megabyte.
    shards: Vec<Option<Shard>>,
    /// Of each shard.
    places: usize,
    /// Drawn as the secret is.
    mixed_with: u64,
    protocol_id: u64,
    /// Seals the tokens that the server makes for itself.
    secret: [u8; KEY_BYTES],
    /// Since the server was made.
    now: Duration,
}

/// A netcode of its own, for some of the sessions.
struct Shard {
    netcode: NetcodeServer,
    /// Up to when time has passed in it.
    now: Duration,
}

impl Shard {
    fn new(protocol_id: u64, secret: [u8; KEY_BYTES], places: usize) -> Shard {
        let netcode = NetcodeServer::new(ServerConfig {
            current_time: Duration::ZERO,
            // What was made before this process was made with another secret.
            max_token_lifetime: 0,
            max_clients: places,
            protocol_id,
            sockets: vec![ServerSocketConfig::new(vec![HERE])],
            authentication: ServerAuthentication::Secure {
                private_key: secret,
            },
        });
        Shard {
            netcode,
            now: Duration::ZERO,
        }
    }

    fn reach(&mut self, now: Duration) {
        if now > self.now {
            self.netcode.update(now - self.now);
            self.now = now;
        }
    }
}

/// What a datagram turned out to be.
pub(crate) enum CipherEvent<'a> {
    /// The protocol's own business.
    Nothing,
    /// A keep-alive of a connected client.
    KeptAlive,
    /// Not sealed with the right key, or seen before.
    Rejected,
    /// The challenge was answered, but no place is left.
    Denied,
    /// A session begins.
    Connected { id: u64, slot: usize },
    /// A payload of session `id`.
    Payload { id: u64, bytes: &'a [u8] },
    /// The peer said goodbye.
    Left { id: u64 },
}

impl CipherServer {
    pub(crate) fn new(protocol_id: u64, sessions_max: usize) -> CipherServer {
        let secret = random();
        let shards = sessions_max.div_ceil(SHARD_SESSIONS);
        CipherServer {
            shards: (0..shards).map(|_| None).collect(),
            places: match shards {
                1 => RETURNING * sessions_max,
                _ => SHARD_PLACES,
            },
            mixed_with: u64::from_le_bytes(random()),
            protocol_id,
            secret,
            now: Duration::ZERO,
        }
    }

    /// The shard of a session. Clients draw the numbers of their sessions, but do not know what they are mixed with: nobody
    /// can choose a shard, and fill it.
    fn shard(&mut self, session: u64) -> &mut Shard {
        let at = self.shard_index(session);
        let shard = self.shards[at]
            .get_or_insert_with(|| Shard::new(self.protocol_id, self.secret, self.places));
        shard.reach(self.now);
        shard
    }

    fn shard_index(&self, session: u64) -> usize {
        let mixed = xxh3_64_with_seed(&session.to_le_bytes(), self.mixed_with) >> 32;
        // Below the number of shards: both factors' product has 32 bits more than it.
        ((mixed * self.shards.len() as u64) >> 32) as usize
    }

    /// Challenges whoever dials from an address; `false`: it cannot be done now. The same dial again is the same
    /// challenge; from another address it is another one, and takes a place of its own among netcode's tokens.
    #[must_use]
    pub(crate) fn challenge(
        &mut self,
        from: SocketAddr,
        keys: &SessionKeys,
        timeout_s: u8,
        out: &mut SendQueue,
    ) -> bool {
        let mut request = self.request(from, keys, timeout_s, 0);
        let netcode = &mut self.shard(keys.session).netcode;
        match netcode.process_packet(0, from, &mut request) {
            ServerResult::ConnectionAccepted { payload, .. } => out.push(from, payload),
            _ => false,
        }
    }

    /// Forgets an unanswered challenge to an address: netcode would go on with its keys, whoever dials from there next.
    pub(crate) fn forget(&mut self, from: SocketAddr, keys: &SessionKeys) {
        let mut request = self.request(from, keys, 1, 1);
        let places = self.places;
        let netcode = &mut self.shard(keys.session).netcode;
        // With room for nobody it drops whom it waits for. Its answer goes nowhere.
        netcode.set_max_clients(0);
        let _ = netcode.process_packet(0, from, &mut request);
        netcode.set_max_clients(places);
    }

    /// The connection request that netcode would get from a client which has a token for this dial. Each `salt` makes
    /// another token.
    fn request(
        &self,
        from: SocketAddr,
        keys: &SessionKeys,
        timeout_s: u8,
        salt: u8,
    ) -> [u8; REQUEST_BYTES] {
        let window = self.window();
        let expires_s = (window + 2) * WINDOW.as_secs();
        let mut private = [0; PRIVATE_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            private[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&keys.session.to_le_bytes());
        put(&i32::from(timeout_s).to_le_bytes());
        // The socket, then one address, of version 4.
        put(&[0, 1, 0, 0, 0, 1]);
        put(&Ipv4Addr::LOCALHOST.octets());
        put(&HERE.port().to_le_bytes());
        put(&keys.up_key);
        put(&keys.down_key);
        put(&user_data(window, from));

        let mut nonce = *keys.drawn();
        nonce[0] ^= salt;
        let mut about = [0; 13 + 8 + 8];
        about[..13].copy_from_slice(&VERSION_INFO);
        about[13..21].copy_from_slice(&self.protocol_id.to_le_bytes());
        about[21..].copy_from_slice(&expires_s.to_le_bytes());
        let tag = aead::seal(&self.secret, &nonce, &about, &mut private);

        let mut request = [0; REQUEST_BYTES];
        request[0] = REQUEST;
        let mut at = 1;
        for part in [&about[..], &nonce, &private, &tag] {
            request[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        request
    }

    fn window(&self) -> u64 {
        self.now.as_secs() / WINDOW.as_secs()
    }

    /// Whether a challenge with this in it was sent to `from`, lately.
    fn is_timely(&self, from: SocketAddr, told: &[u8; USER_BYTES]) -> bool {
        let newest = self.window();
        let oldest = newest.saturating_sub(CHALLENGE_WINDOWS);
        (oldest..=newest).any(|window| *told == user_data(window, from))
    }

    /// Takes a sane datagram of netcode's, of a session or of whoever is to begin it.
    pub(crate) fn handle<'a>(
        &mut self,
        session: u64,
        from: SocketAddr,
        datagram: &'a mut [u8],
        out: &mut SendQueue,
    ) -> CipherEvent<'a> {
        if !is_netcodes(datagram) {
            return CipherEvent::Rejected;
        }
        let kind = datagram[0] & 15;
        match self
            .shard(session)
            .netcode
            .process_packet(0, from, datagram)
        {
            ServerResult::Payload { client_id, payload } => CipherEvent::Payload {
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
                if !self.is_timely(from, &user_data) {
                    let _ = self.shard(session).netcode.disconnect(client_id);
                    return CipherEvent::Rejected;
                }
                let slot = self
                    .shard(session)
                    .netcode
                    .clients_id_iter_with_slots()
                    .find_map(|(slot, id)| (id == client_id).then_some(slot));
                CipherEvent::Connected {
                    id: client_id,
                    slot: slot.expect("a client that just connected has a slot"),
                }
            }
            ServerResult::ClientDisconnected { client_id, .. } => {
                CipherEvent::Left { id: client_id }
            }
            ServerResult::ConnectionDenied { payload, .. } => {
                if let Some(denied) = payload {
                    let _ = out.push(from, denied);
                }
                CipherEvent::Denied
            }
            ServerResult::Error { .. } => CipherEvent::Rejected,
            _ if kind == KEEP_ALIVE => CipherEvent::KeptAlive,
            _ => CipherEvent::Nothing,
        }
    }

    /// Moves time on.
    pub(crate) fn advance(&mut self, elapsed: Duration) {
        self.now += elapsed;
    }

    /// Looks after a session, and has it hear something if it `pings`; `false` when it timed out and is gone.
    #[must_use]
    pub(crate) fn tend(&mut self, slot: usize, id: u64, pings: bool, out: &mut SendQueue) -> bool {
        let netcode = &mut self.shard(id).netcode;
        if let ServerResult::ClientDisconnected { addr, payload, .. } =
            netcode.update_client(slot, id)
        {
            say_goodbye(addr, payload.as_deref(), out);
            return false;
        }
        if pings
            && let ServerResult::PacketToSend { addr, payload, .. } =
                netcode.generate_client_ping(slot, id)
        {
            let _ = out.push(addr, payload);
        }
        true
    }

    /// Seals a payload and queues it; `false` when the queue is full.
    #[must_use]
    pub(crate) fn seal(
        &mut self,
        slot: usize,
        id: u64,
        payload: &[u8],
        out: &mut SendQueue,
    ) -> bool {
        self.shard(id)
            .netcode
            .generate_payload_packet(slot, id, payload)
            .is_ok_and(|(_, addr, sealed)| out.push(addr, sealed))
    }

    /// Ends a session and tells the peer.
    pub(crate) fn disconnect(&mut self, id: u64, out: &mut SendQueue) {
        let ended = self.shard(id).netcode.disconnect(id);
        if let ServerResult::ClientDisconnected { addr, payload, .. } = ended {
            say_goodbye(addr, payload.as_deref(), out);
        }
    }
}

/// What the server gives to whoever it challenges, sealed, and gets back with the response.
fn user_data(window: u64, from: SocketAddr) -> [u8; USER_BYTES] {
    let mut bytes = [0; USER_BYTES];
    bytes[..8].copy_from_slice(&window.to_le_bytes());
    bytes[8..8 + ADDRESS_BYTES].copy_from_slice(&address_to_bytes(from));
    bytes
}

fn address_to_bytes(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes[0] = 4;
            bytes[1..5].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
        }
    }
    bytes[17..].copy_from_slice(&address.port().to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of any numbers that clients may draw: random ones, and such as follow each other.
    #[test]
    fn a_full_servers_sessions_find_a_place_in_their_rooms() {
        const SESSIONS: usize = 1_024;
        let mut server = CipherServer::new(1, SESSIONS);
        assert_eq!(server.shards.len(), 16);
        let mut most = 0;
        for round in 0..200 {
            let mut taken = vec![0; server.shards.len()];
            server.mixed_with = u64::from_le_bytes(random());
            for n in 0..SESSIONS as u64 {
                let session = match round % 2 {
                    0 => u64::from_le_bytes(random()),
                    _ => n << (round % 48),
                };
                let place = server.shard_index(session);
                assert_eq!(server.shard_index(session), place);
                taken[place] += 1;
            }
            most = most.max(*taken.iter().max().expect("shards"));
        }
        assert!(
            most < SHARD_PLACES * 3 / 4,
            "{most} of {SHARD_PLACES} places"
        );
        assert_eq!(
            CipherServer::new(1, 40).shards.len(),
            1,
            "a small server needs no more"
        );
    }

    #[test]
    fn time_passes_in_a_room_that_nobody_looked_at() {
        let mut server = CipherServer::new(1, 1_024);
        for second in 1..=10 {
            server.advance(Duration::from_secs(1));
            let at = Duration::from_secs(second);
            // Each session's shard is where the server is, whichever was asked for before.
            let shard = server.shard(second);
            assert_eq!((shard.now, shard.netcode.current_time()), (at, at));
        }
    }
}
