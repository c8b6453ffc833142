//! The claims of a ticket, under the server's seal.
//!
//! The byte format is fixed, because a ticket may be older than the program that reads it. Numbers are little-endian:
//!
//! ```text
//! 0..24  24                                                                                              201..217
//! nonce  sealed:                                                                                          tag
//!        0        1      2                3..35     35..43  43..51     51..79  79       80       81..113    113..145  145..177
//!        version  seats  identity length  identity  match   ticket id  stamp   timeout  servers  addresses  secret    later
//!
//! stamp  0..8     8..12       12..20  20..28
//!        lineage  generation  made    expires
//! ```
//!
//! An address is stored as an 8-byte hash, which the server compares with the hashes of its own addresses and names.
//! The secret is also in the holder's ticket: a dialling client proves that it has the secret. The last bytes are zero
//! and are ignored: a later version may use them.
//!
//! Invariant: claims that were read are within their ranges.

use std::fmt;

use arrayvec::ArrayVec;
use twinstep_protocol::identity::{Identity, MatchId, Role};
use twinstep_protocol::lineage::Stamp;
use twinstep_protocol::text;

use crate::aead::{self, KEY_BYTES, NONCE_BYTES, TAG_BYTES};
use crate::secrets::random;

/// The longest identity, in bytes of UTF-8.
pub const IDENTITY_MAX_BYTES: usize = 32;
/// The maximum number of seats per session.
pub const SEATS_MAX: u8 = 4;
/// The maximum number of server addresses in a ticket.
pub const SERVERS_MAX: usize = 4;

const CLAIMS_VERSION: u8 = 3;
const CLAIMS_BYTES: usize = 177;
/// The size of a sealed pass in bytes.
pub(crate) const SEALED_BYTES: usize = NONCE_BYTES + CLAIMS_BYTES + TAG_BYTES;
/// The purpose of the seal: data sealed for another purpose does not open.
const ABOUT: &[u8] = b"twinstep ticket";

/// The claims of a ticket, under the server's own seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketClaims {
    /// A random number. It distinguishes tickets and grants no access.
    pub ticket_id: u64,
    /// The ticket's position in the order of its holder's tickets, and its expiry.
    pub stamp: Stamp,
    /// The identity of the holder. Its role is spectator if the ticket has no seats.
    pub identity: Identity,
    /// The match for which the ticket is valid.
    pub match_id: MatchId,
    /// The number of local players, 0..=[`SEATS_MAX`]. 0 for a spectator.
    pub seats: u8,
}

impl TicketClaims {
    /// The holder of the ticket.
    #[must_use]
    pub fn holder(&self) -> Holder {
        Holder {
            match_id: self.match_id,
            identity: self.identity.clone(),
        }
    }
}

/// An identity in a match, as a player or as a spectator: its tickets supersede one another. In the order of holders,
/// all holders of one match are adjacent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The match for which the tickets are valid.
    pub match_id: MatchId,
    /// The identity.
    pub identity: Identity,
}

impl Holder {
    /// Returns a value that sorts before all holders of a match.
    #[must_use]
    pub fn first_of(match_id: MatchId) -> Holder {
        Holder {
            match_id,
            identity: Identity::new("", Role::Player),
        }
    }
}

/// All content under the seal.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) claims: TicketClaims,
    /// A session ends after this many seconds of silence.
    pub(crate) timeout_s: u8,
    /// The servers for which the ticket is valid, as [hashes](crate::ServerAddress).
    pub(crate) servers: ArrayVec<u64, SERVERS_MAX>,
    /// The secret, which the ticket's holder also has.
    pub(crate) secret: [u8; KEY_BYTES],
}

/// Prints the claims, never the secret.
impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pass").field(&self.claims).finish()
    }
}

impl Pass {
    pub(crate) fn seal(&self, key: &[u8; KEY_BYTES]) -> [u8; SEALED_BYTES] {
        let mut sealed = [0; SEALED_BYTES];
        let nonce = random();
        sealed[..NONCE_BYTES].copy_from_slice(&nonce);
        let bytes = &mut sealed[NONCE_BYTES..][..CLAIMS_BYTES];
        bytes.copy_from_slice(&self.to_bytes());
        let tag = aead::seal(key, &nonce, ABOUT, bytes);
        sealed[NONCE_BYTES + CLAIMS_BYTES..].copy_from_slice(&tag);
        sealed
    }

    /// Returns `Err` if the bytes were not sealed with this key, and `Ok(None)` if they have another version or values
    /// out of range.
    pub(crate) fn open(
        sealed: &[u8; SEALED_BYTES],
        key: &[u8; KEY_BYTES],
    ) -> Result<Option<Pass>, ()> {
        let (nonce, rest) = sealed.split_first_chunk().expect("longer than its nonce");
        let (bytes, tag) = rest.split_last_chunk().expect("longer than its tag");
        let mut bytes: [u8; CLAIMS_BYTES] = bytes.try_into().expect("what is between them");
        match aead::open(key, nonce, ABOUT, &mut bytes, tag) {
            true => Ok(Pass::from_bytes(&bytes)),
            false => Err(()),
        }
    }

    fn to_bytes(&self) -> [u8; CLAIMS_BYTES] {
        let mut bytes = [0; CLAIMS_BYTES];
        let claims = &self.claims;
        let identity = claims.identity.name.as_bytes();
        bytes[..3].copy_from_slice(&[CLAIMS_VERSION, claims.seats, identity.len() as u8]);
        bytes[3..3 + identity.len()].copy_from_slice(identity);
        let stamp = &claims.stamp;
        bytes[59..63].copy_from_slice(&stamp.generation.to_le_bytes());
        for (at, number) in [
            (35, claims.match_id.0),
            (43, claims.ticket_id),
            (51, stamp.lineage),
            (63, stamp.issued_unix_ms),
            (71, stamp.expires_unix_s),
        ] {
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[79] = self.timeout_s;
        bytes[80] = self.servers.len() as u8;
        for (n, server) in self.servers.iter().enumerate() {
            bytes[81 + 8 * n..][..8].copy_from_slice(&server.to_le_bytes());
        }
        bytes[113..145].copy_from_slice(&self.secret);
        bytes
    }

    fn from_bytes(bytes: &[u8; CLAIMS_BYTES]) -> Option<Pass> {
        let [version, seats, identity_bytes, ..] = *bytes;
        let identity = bytes[3..35].get(..usize::from(identity_bytes))?;
        let identity = std::str::from_utf8(identity).ok()?;
        let number =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let valid = version == CLAIMS_VERSION
            && seats <= SEATS_MAX
            && is_identity(identity)
            && (1..=60).contains(&bytes[79])
            && (1..=SERVERS_MAX).contains(&usize::from(bytes[80]));
        if !valid {
            return None;
        }
        Some(Pass {
            claims: TicketClaims {
                ticket_id: number(43),
                stamp: Stamp {
                    lineage: number(51),
                    generation: u32::from_le_bytes(bytes[59..63].try_into().expect("four bytes")),
                    issued_unix_ms: number(63),
                    expires_unix_s: number(71),
                },
                identity: Identity::new(identity, Role::of_seats(seats.into())),
                match_id: MatchId(number(35)),
                seats,
            },
            timeout_s: bytes[79],
            servers: (0..usize::from(bytes[80]))
                .map(|n| number(81 + 8 * n))
                .collect(),
            secret: bytes[113..145].try_into().expect("32 bytes"),
        })
    }
}

const _: () = assert!(81 + 8 * SERVERS_MAX == 113);

/// Returns `true` if a text can be an identity: not empty, short, one line, and without invisible characters.
#[must_use]
pub fn is_identity(text: &str) -> bool {
    (1..=IDENTITY_MAX_BYTES).contains(&text.len()) && text::is_plain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass() -> Pass {
        Pass {
            claims: TicketClaims {
                ticket_id: 0x0102_0304_0506_0708,
                stamp: Stamp {
                    lineage: 99,
                    generation: 3,
                    issued_unix_ms: 98,
                    expires_unix_s: 77,
                },
                identity: Identity::new("x".repeat(IDENTITY_MAX_BYTES), Role::Player),
                match_id: MatchId(u64::MAX),
                seats: 4,
            },
            timeout_s: 5,
            servers: [1, u64::MAX].into_iter().collect(),
            secret: [9; KEY_BYTES],
        }
    }

    #[test]
    fn a_pass_survives_a_round_trip_and_invalid_passes_are_rejected() {
        let pass = pass();
        let bytes = pass.to_bytes();
        assert_eq!(Pass::from_bytes(&bytes), Some(pass.clone()));
        let mut later = bytes;
        later[145..].fill(9);
        assert_eq!(Pass::from_bytes(&later), Some(pass.clone()));
        let mut spectator = pass;
        spectator.claims.seats = 0;
        spectator.claims.identity.role = Role::Spectator;
        assert_eq!(Pass::from_bytes(&spectator.to_bytes()), Some(spectator));
        for (at, value) in [
            (0, 2),
            (0, 4),
            (1, 5),
            (2, 0),
            (2, 33),
            (2, 255),
            (3, 0xff),
            (3, b'\n'),
            (79, 0),
            (79, 61),
            (80, 0),
            (80, 5),
        ] {
            let mut changed = bytes;
            changed[at] = value;
            assert_eq!(Pass::from_bytes(&changed), None, "byte {at} = {value}");
        }
    }

    #[test]
    fn only_its_own_key_opens_a_pass_and_every_changed_byte_is_detected() {
        let key = [1; KEY_BYTES];
        let sealed = pass().seal(&key);
        assert_eq!(Pass::open(&sealed, &key), Ok(Some(pass())));
        assert_eq!(Pass::open(&sealed, &[2; KEY_BYTES]), Err(()));
        for at in 0..SEALED_BYTES {
            let mut changed = sealed;
            changed[at] ^= 1;
            assert_eq!(Pass::open(&changed, &key), Err(()), "byte {at}");
        }
        assert_ne!(sealed, pass().seal(&key), "a nonce is used once");
    }

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        assert!(!format!("{:?}", pass()).contains("9, 9"));
    }
}
