//! [`CipherServer`]: the server's half of netcode, for one key.
//!
//! ```text
//!  dial ─▶ a token, issued to the server itself ─▶ shard, by the session's number ─▶ challenge
//!  response, payload ─▶ the same shard ─▶ a session starts, bytes
//! ```
//!
//! For each datagram, netcode searches for the address linearly among all its clients, and their data is scattered in
//! memory. So a server has one netcode for about 64 sessions. Invariant: a session's shard is computed from the
//! session's number, so that no table of shards is needed, and a repeated dial reaches the same shard.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use renetcode2::{
    NetcodeServer, ServerAuthentication, ServerConfig, ServerResult, ServerSocketConfig,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    KEEP_ALIVE, PRIVATE_BYTES, REQUEST, REQUEST_BYTES, VERSION_INFO, is_netcodes, send_goodbyes,
};
use crate::aead::{self, KEY_BYTES};
use crate::dial::SessionKeys;
use crate::secrets::random;
use crate::send_queue::SendQueue;

/// The size of an encoded address: its family (4 or 6), 16 bytes, its port.
const ADDRESS_BYTES: usize = 19;
/// The number of user-data bytes that netcode carries in a token.
const USER_BYTES: usize = renetcode2::NETCODE_USER_DATA_BYTES;
/// The address in the server's tokens, which are checked only against it.
const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
/// The time for which a server's tokens stay the same. They expire after at most twice this time. netcode remembers
/// 2,048 of them.
const WINDOW: Duration = Duration::from_secs(4);
/// The response to a challenge must arrive at most this many windows after the challenge's window.
const CHALLENGE_WINDOWS: u64 = 2;
/// The time after which no datagram of a session's handshake can still be used. It is longer than a challenge's
/// lifetime.
pub(crate) const HANDSHAKE_LIFE: Duration = Duration::from_secs(20);
const _: () = assert!(HANDSHAKE_LIFE.as_secs() > (CHALLENGE_WINDOWS + 1) * WINDOW.as_secs());

/// The mean number of sessions in a [`Shard`] of a full server.
const SHARD_SESSIONS: usize = 64;
/// The number of slots in a shard. About one in 10¹⁵ shards of a full server is full.
const SHARD_PLACES: usize = 144;
/// Slots per allowed session: a reconnecting session may hold one while its old session still has one. With several
/// shards, [`SHARD_PLACES`] assumes that at most half of the sessions reconnect together.
pub(crate) const RETURNING: usize = 2;

pub(crate) struct CipherServer {
    /// The shards. Each is created for its first session, because it takes half a megabyte.
    shards: Vec<Option<Shard>>,
    places: usize,
    /// The seed with which session numbers are mixed; random, like the secret.
    mixed_with: u64,
    protocol_id: u64,
    /// The secret that seals the tokens that the server issues to itself.
    secret: [u8; KEY_BYTES],
    now: Duration,
}

/// A netcode instance for some of the sessions.
struct Shard {
    netcode: NetcodeServer,
    now: Duration,
}

impl Shard {
    fn new(protocol_id: u64, secret: [u8; KEY_BYTES], places: usize) -> Shard {
        let netcode = NetcodeServer::new(ServerConfig {
            current_time: Duration::ZERO,
            // Tokens of an earlier process were issued with another secret.
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

pub(crate) enum CipherEvent<'a> {
    Nothing,
    KeptAlive,
    /// The datagram is not sealed with the right key, was received before, or is a late response.
    Rejected,
    /// The client responded to the challenge, but no slot is left.
    Denied,
    Connected {
        id: u64,
        slot: usize,
    },
    Payload {
        id: u64,
        bytes: &'a [u8],
    },
    Left {
        id: u64,
    },
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

    /// The shard of a session. Clients choose the numbers of their sessions, but do not know the seed with which they
    /// are mixed, so no client can fill a chosen shard.
    fn shard(&mut self, session: u64) -> &mut Shard {
        let at = self.shard_index(session);
        let shard = self.shards[at]
            .get_or_insert_with(|| Shard::new(self.protocol_id, self.secret, self.places));
        shard.reach(self.now);
        shard
    }

    fn shard_index(&self, session: u64) -> usize {
        let mixed = xxh3_64_with_seed(&session.to_le_bytes(), self.mixed_with) >> 32;
        // Below the number of shards, because `mixed` has only 32 bits.
        ((mixed * self.shards.len() as u64) >> 32) as usize
    }

    /// Challenges the client that dials from an address. Returns `false` if that is impossible now. A dial repeated
    /// within a [`WINDOW`] gets the same challenge; a dial from another address gets a new one, which takes another
    /// slot among netcode's tokens.
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

    /// Drops an unanswered challenge to an address. Otherwise netcode would use its keys for the next client that dials
    /// from that address.
    pub(crate) fn forget(&mut self, from: SocketAddr, keys: &SessionKeys) {
        let mut request = self.request(from, keys, 1, 1);
        let places = self.places;
        let netcode = &mut self.shard(keys.session).netcode;
        // Without slots, netcode drops its pending clients. Its response is discarded.
        netcode.set_max_clients(0);
        let _ = netcode.process_packet(0, from, &mut request);
        netcode.set_max_clients(places);
    }

    /// The connection request that netcode would get from a client with a token for this dial. Each `salt` yields
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
        // The socket, the number of addresses, and the version of the address: IPv4.
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

    /// Returns `true` if a challenge with this user data was recently sent to `from`.
    fn is_timely(&self, from: SocketAddr, found: &[u8; USER_BYTES]) -> bool {
        let newest = self.window();
        let oldest = newest.saturating_sub(CHALLENGE_WINDOWS);
        (oldest..=newest).any(|window| *found == user_data(window, from))
    }

    /// Handles a sane datagram for netcode, of a session or of a handshake.
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
                // A delayed response, or one from another address, starts no session.
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

    pub(crate) fn advance(&mut self, elapsed: Duration) {
        self.now += elapsed;
    }

    /// Updates a session, and sends it a keep-alive if `pings`. Returns `false` if the session timed out and was
    /// removed.
    #[must_use]
    pub(crate) fn tend(&mut self, slot: usize, id: u64, pings: bool, out: &mut SendQueue) -> bool {
        let netcode = &mut self.shard(id).netcode;
        if let ServerResult::ClientDisconnected { addr, payload, .. } =
            netcode.update_client(slot, id)
        {
            send_goodbyes(addr, payload.as_deref(), out);
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

    pub(crate) fn disconnect(&mut self, id: u64, out: &mut SendQueue) {
        let ended = self.shard(id).netcode.disconnect(id);
        if let ServerResult::ClientDisconnected { addr, payload, .. } = ended {
            send_goodbyes(addr, payload.as_deref(), out);
        }
    }
}

/// The user data that a challenge carries, sealed, and that its response returns.
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

    /// Tests random and consecutive numbers, because clients may choose any.
    #[test]
    fn all_sessions_of_a_full_server_find_slots_in_their_shards() {
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
    fn time_passes_in_a_shard_without_datagrams() {
        let mut server = CipherServer::new(1, 1_024);
        for second in 1..=10 {
            server.advance(Duration::from_secs(1));
            let at = Duration::from_secs(second);
            // Each session's shard has the server's time, even if other shards were used before.
            let shard = server.shard(second);
            assert_eq!((shard.now, shard.netcode.current_time()), (at, at));
        }
    }
}
