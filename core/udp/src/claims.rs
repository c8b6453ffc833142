//! What a ticket says to the server, under the server's seal.
//!
//! The bytes are fixed, because tickets outlive the program that made them; numbers are little-endian:
//!
//! ```text
//! 0        1      2                3..35     35..43  43..51     51..59   59..256
//! version  seats  identity length  identity  match   ticket id  expiry   zero
//! ```
//!
//! Invariant: claims that were read are within their ranges.

use twinstep_core::text;

use crate::netcode::PRIVATE_BYTES;

/// The longest identity, in bytes of UTF-8.
pub const IDENTITY_MAX_BYTES: usize = 32;
/// The most seats of a session.
pub const SEATS_MAX: u8 = 4;

const CLAIMS_VERSION: u8 = 1;

/// What a ticket says to the server, under the server's own seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketClaims {
    /// The ticket's id: random, used once.
    pub ticket_id: u64,
    /// Who the player is.
    pub identity: String,
    /// Which match the ticket is for.
    pub match_id: u64,
    /// Local players of the session, 0..=[`SEATS_MAX`]; 0: a spectator.
    pub seats: u8,
    /// From when on the ticket is worthless, in seconds since the unix epoch.
    pub expires_unix_s: u64,
}

impl TicketClaims {
    pub(crate) fn to_bytes(&self) -> [u8; PRIVATE_BYTES] {
        let mut bytes = [0; PRIVATE_BYTES];
        let identity = self.identity.as_bytes();
        bytes[..3].copy_from_slice(&[CLAIMS_VERSION, self.seats, identity.len() as u8]);
        bytes[3..3 + identity.len()].copy_from_slice(identity);
        bytes[35..43].copy_from_slice(&self.match_id.to_le_bytes());
        bytes[43..51].copy_from_slice(&self.ticket_id.to_le_bytes());
        bytes[51..59].copy_from_slice(&self.expires_unix_s.to_le_bytes());
        bytes
    }

    /// `None` for claims of another version, or out of their ranges.
    pub(crate) fn from_bytes(bytes: &[u8; PRIVATE_BYTES]) -> Option<TicketClaims> {
        let [version, seats, identity_bytes, ..] = *bytes;
        let identity = bytes[3..35].get(..usize::from(identity_bytes))?;
        let identity = std::str::from_utf8(identity).ok()?;
        let number =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let valid = version == CLAIMS_VERSION && seats <= SEATS_MAX && is_identity(identity);
        valid.then(|| TicketClaims {
            ticket_id: number(43),
            identity: identity.to_string(),
            match_id: number(35),
            seats,
            expires_unix_s: number(51),
        })
    }
}

/// Whether a text can be a player's name: something, short, in one line, and nothing in it that cannot be seen.
pub(crate) fn is_identity(text: &str) -> bool {
    (1..=IDENTITY_MAX_BYTES).contains(&text.len()) && text::is_plain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_come_back_and_others_are_none() {
        let claims = TicketClaims {
            ticket_id: 0x0102_0304_0506_0708,
            identity: "x".repeat(IDENTITY_MAX_BYTES),
            match_id: u64::MAX,
            seats: 4,
            expires_unix_s: 77,
        };
        let bytes = claims.to_bytes();
        assert_eq!(TicketClaims::from_bytes(&bytes), Some(claims.clone()));
        let spectator = TicketClaims { seats: 0, ..claims };
        assert_eq!(
            TicketClaims::from_bytes(&spectator.to_bytes()),
            Some(spectator)
        );
        for (at, value) in [
            (0, 2),
            (1, 5),
            (2, 0),
            (2, 33),
            (2, 255),
            (3, 0xff),
            (3, b'\n'),
        ] {
            let mut changed = bytes;
            changed[at] = value;
            assert_eq!(
                TicketClaims::from_bytes(&changed),
                None,
                "byte {at} = {value}"
            );
        }
    }
}
