//! The session's cipher: handshake, encryption and the replay window. This is the only module that uses renetcode2.
//!
//! ```text
//! client                              server (one per key)
//!   │── dial (the ticket) ──────────────▶│  the server checks: key, game, expiry, address
//!   │◀──────────────── challenge ────────│
//!   │── response ───────────────────────▶│  a session starts
//!   │◀─────────────── keep-alive ────────│
//!   │◀═══════ payloads, sealed ═════════▶│
//! ```
//!
//! netcode's own connect token admits one session, once, from one address; a ticket admits its holder repeatedly. So
//! the server creates the token itself, from the [keys](crate::dial::SessionKeys) of each dial: the token is valid for
//! seconds and is never sent.
//!
//! Invariants: no datagram reaches renetcode2 before [`sane`] has accepted it. (1.0.0 panics in release builds on a
//! sequence longer than 8 bytes and on a datagram shorter than its tag, even from an address that merely *looks* like a
//! connected client's.) The response to a challenge must come within seconds, from the address to which the challenge
//! was sent: a delayed response does not start a session.

use std::net::SocketAddr;

use crate::aead::{NONCE_BYTES, TAG_BYTES};
use crate::dial::{DIAL, DIAL_BYTES, REFUSAL, REFUSAL_BYTES};
use crate::send_queue::SendQueue;

mod cipher_client;
mod cipher_server;

pub(crate) use cipher_client::{CipherClient, CipherState};
pub(crate) use cipher_server::{CipherEvent, CipherServer, HANDSHAKE_LIFE, RETURNING};

/// The `log` target of netcode. It writes one error line for each bad datagram: if a bridge from `log` is installed,
/// turn this target off. Without a `log` logger no line is written.
pub const CIPHER_LOG_TARGET: &str = "renetcode2";

/// The largest datagram, in bytes. A socket's buffer needs one byte more to detect a larger one.
pub const DATAGRAM_MAX: usize = renetcode2::NETCODE_MAX_PACKET_BYTES;

/// The maximum number of bytes that netcode adds to a payload: a kind, a sequence, a tag.
pub(crate) const AROUND_BYTES: usize = 1 + 8 + TAG_BYTES;

/// A connect token's private data, without its tag.
const PRIVATE_BYTES: usize = 1024 - TAG_BYTES;
const REQUEST_BYTES: usize = 1 + 13 + 8 + 8 + NONCE_BYTES + PRIVATE_BYTES + TAG_BYTES;
/// The first bytes of a netcode request. With others, the handshake fails.
const VERSION_INFO: [u8; 13] = *b"NETCODE 1.a2\0";

/// Kinds of datagrams: the low half of the first byte.
const REQUEST: u8 = 0;
const ANSWER: u8 = 3;
const KEEP_ALIVE: u8 = 4;
const DISCONNECT: u8 = 6;
/// A goodbye is never acknowledged, so it is sent this many times.
const GOODBYES: usize = 3;

/// Returns `true` if a datagram has a valid shape. netcode's own requests do not: only the cipher server creates them.
pub(crate) fn sane(datagram: &[u8]) -> bool {
    let Some(&prefix) = datagram.first() else {
        return false;
    };
    let (kind, sequence_bytes) = (prefix & 15, usize::from(prefix >> 4));
    match kind {
        DIAL => prefix == DIAL && datagram.len() == DIAL_BYTES,
        REFUSAL => prefix == REFUSAL && datagram.len() == REFUSAL_BYTES,
        1..=DISCONNECT => {
            sequence_bytes <= 8
                && datagram.len() >= (1 + sequence_bytes + TAG_BYTES).max(2 + TAG_BYTES)
                && datagram.len() <= DATAGRAM_MAX
                // netcode's replay window adds 256 to the sequence without an overflow check.
                && !(sequence_bytes == 8 && datagram[8] == 0xff)
        }
        _ => false,
    }
}

/// The sequence number of a sane netcode datagram. It is not authentic until the datagram is decrypted.
pub(crate) fn sequence(sane: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = usize::from(sane[0] >> 4).min(8);
    bytes[..count].copy_from_slice(&sane[1..=count]);
    u64::from_le_bytes(bytes)
}

fn is_netcodes(sane: &[u8]) -> bool {
    (1..=DISCONNECT).contains(&(sane[0] & 15))
}

pub(crate) fn is_answer(sane: &[u8]) -> bool {
    sane[0] & 15 == ANSWER
}

fn send_goodbyes(to: SocketAddr, goodbye: Option<&[u8]>, out: &mut SendQueue) {
    for _ in 0..GOODBYES {
        if let Some(bytes) = goodbye {
            let _ = out.push(to, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_make_renetcode2_panic_are_not_sane() {
        assert!(!sane(&[]));
        assert!(!sane(&[0x05]), "shorter than a tag");
        assert!(!sane(&[0x95; 64]), "a sequence of 9 bytes");
        assert!(!sane(&[0x85; 20]), "sequence and tag do not fit");
        assert!(!sane(&[0x09; 64]), "no such kind");
        assert!(!sane(&[DIAL; 64]), "a dial of another size");
        assert!(!sane(&[0x00; REQUEST_BYTES]), "netcode's own request");
        assert!(!sane(&[0x15; DATAGRAM_MAX + 1]), "too large");
        let mut near_the_end = [0x00; 64];
        near_the_end[0] = 0x85;
        near_the_end[8] = 0xff;
        assert!(!sane(&near_the_end), "the window would overflow");
        near_the_end[8] = 0xfe;
        assert!(sane(&near_the_end));
        assert!(sane(&[0x15; 18]));
        assert!(!sane(&[0x27; DIAL_BYTES]), "a dial with a sequence");
        assert!(sane(&[DIAL; DIAL_BYTES]) && sane(&[REFUSAL; REFUSAL_BYTES]));
        assert!(!is_netcodes(&[DIAL; DIAL_BYTES]));
    }
}
