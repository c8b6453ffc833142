//! The first datagram of a session: the client presents its ticket, and draws the keys of this session.
//!
//! ```text
//! 0     1..9         9..226              226..250  250..266                         266..400
//! kind  protocol id  the sealed ticket   drawn     proof: a tag under the secret    zero
//! ```
//!
//! The keys are derived from the ticket's secret and the drawn bytes, so that both sides have them and an eavesdropper
//! does not. Each use of a ticket, by any client from any address, thus starts a session with different keys: bytes
//! sealed in one session are useless in another.
//!
//! Invariant: an accepted dial came from a holder of the ticket. It may be a copy, which is useless to a client that
//! cannot respond to the challenge. A dial is longer than the server's response.

use crate::aead::{self, KEY_BYTES, NONCE_BYTES, TAG_BYTES};
use crate::claims::SEALED_BYTES;
use crate::secrets::random;
use crate::tickets::Ticket;

/// The first byte of a dial. netcode uses neither this kind nor `REFUSAL`.
pub(crate) const DIAL: u8 = 7;
pub(crate) const REFUSAL: u8 = 8;
/// The size of a dial in bytes: larger than a challenge.
pub(crate) const DIAL_BYTES: usize = 400;
pub(crate) const REFUSAL_BYTES: usize = 2 + TAG_BYTES;

const SEALED_AT: usize = 9;
const DRAWN_AT: usize = SEALED_AT + SEALED_BYTES;
const PROOF_AT: usize = DRAWN_AT + NONCE_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    Full,
    Expired,
    Superseded,
}

impl RefusalReason {
    const ALL: [RefusalReason; 3] = [
        RefusalReason::Full,
        RefusalReason::Expired,
        RefusalReason::Superseded,
    ];
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SessionKeys {
    pub(crate) session: u64,
    pub(crate) up_key: [u8; KEY_BYTES],
    pub(crate) down_key: [u8; KEY_BYTES],
    drawn: [u8; NONCE_BYTES],
    secret: [u8; KEY_BYTES],
}

impl SessionKeys {
    /// Draws the keys of a new session, and creates the datagram that requests it.
    pub(crate) fn draw(ticket: &Ticket) -> (SessionKeys, [u8; DIAL_BYTES]) {
        let drawn = random();
        let mut packet = [0; DIAL_BYTES];
        packet[0] = DIAL;
        packet[1..SEALED_AT].copy_from_slice(&ticket.protocol_id().to_le_bytes());
        packet[SEALED_AT..DRAWN_AT].copy_from_slice(ticket.sealed());
        packet[DRAWN_AT..PROOF_AT].copy_from_slice(&drawn);
        let (keys, proof) = SessionKeys::derive(*ticket.secret(), drawn, &packet[..DRAWN_AT]);
        packet[PROOF_AT..PROOF_AT + TAG_BYTES].copy_from_slice(&proof);
        (keys, packet)
    }

    fn derive(
        secret: [u8; KEY_BYTES],
        drawn: [u8; NONCE_BYTES],
        about: &[u8],
    ) -> (SessionKeys, [u8; TAG_BYTES]) {
        // Sealing zeros yields the cipher's key stream, which differs for every drawn nonce.
        let mut stream = [0; 8 + 2 * KEY_BYTES];
        let proof = aead::seal(&secret, &drawn, about, &mut stream);
        let (session, keys) = stream.split_first_chunk::<8>().expect("72 bytes");
        let (up_key, down_key) = keys.split_first_chunk::<KEY_BYTES>().expect("64 bytes");
        let keys = SessionKeys {
            session: u64::from_le_bytes(*session),
            up_key: *up_key,
            down_key: down_key.try_into().expect("32 bytes"),
            drawn,
            secret,
        };
        (keys, proof)
    }

    pub(crate) fn drawn(&self) -> &[u8; NONCE_BYTES] {
        &self.drawn
    }

    /// The datagram that refuses this session. Only the holder of the ticket accepts it.
    pub(crate) fn refusal(&self, reason: RefusalReason) -> [u8; REFUSAL_BYTES] {
        let mut refusal = [0; REFUSAL_BYTES];
        refusal[..2].copy_from_slice(&[REFUSAL, reason as u8]);
        let nonce = self.refusal_nonce(reason);
        let tag = aead::seal(&self.secret, &nonce, &refusal[..2], &mut []);
        refusal[2..].copy_from_slice(&tag);
        refusal
    }

    /// The reason for a refusal, if the datagram is the server's refusal of this session.
    pub(crate) fn read_refusal(&self, datagram: &[u8]) -> Option<RefusalReason> {
        let (about, tag) = datagram.split_last_chunk::<TAG_BYTES>()?;
        let &[REFUSAL, number] = about else {
            return None;
        };
        let mut reasons = RefusalReason::ALL.into_iter();
        let reason = reasons.find(|reason| *reason as u8 == number)?;
        let nonce = self.refusal_nonce(reason);
        aead::open(&self.secret, &nonce, about, &mut [], tag).then_some(reason)
    }

    /// The drawn bytes with one of them changed, because the dial's proof has used them as its nonce. Each reason has its own:
    /// a session can be refused for several, and two tags under one nonce would let an eavesdropper forge a third.
    fn refusal_nonce(&self, reason: RefusalReason) -> [u8; NONCE_BYTES] {
        let mut nonce = self.drawn;
        nonce[NONCE_BYTES - 1] ^= 0xff - reason as u8;
        nonce
    }
}

#[derive(Clone, Copy)]
pub(crate) struct DialPacket<'a>(&'a [u8; DIAL_BYTES]);

impl<'a> DialPacket<'a> {
    pub(crate) fn read(datagram: &'a [u8]) -> Option<DialPacket<'a>> {
        let packet: &[u8; DIAL_BYTES] = datagram.try_into().ok()?;
        (packet[0] == DIAL).then_some(DialPacket(packet))
    }

    pub(crate) fn protocol_id(self) -> u64 {
        u64::from_le_bytes(self.0[1..SEALED_AT].try_into().expect("eight bytes"))
    }

    pub(crate) fn sealed(self) -> &'a [u8; SEALED_BYTES] {
        self.0[SEALED_AT..DRAWN_AT]
            .try_into()
            .expect("a sealed pass")
    }

    /// The keys of the requested session. Returns `None` if the sender does not have the ticket's secret.
    pub(crate) fn keys(self, secret: &[u8; KEY_BYTES]) -> Option<SessionKeys> {
        let drawn = self.0[DRAWN_AT..PROOF_AT].try_into().expect("24 bytes");
        let (keys, proof) = SessionKeys::derive(*secret, drawn, &self.0[..DRAWN_AT]);
        let theirs = self.0[PROOF_AT..PROOF_AT + TAG_BYTES]
            .try_into()
            .expect("16 bytes");
        aead::same(&proof, &theirs).then_some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tickets::tests::ticket;

    #[test]
    fn both_sides_derive_the_same_keys_and_each_dial_has_its_own() {
        let ticket = ticket();
        let (ours, bytes) = SessionKeys::draw(&ticket);
        let packet = DialPacket::read(&bytes).unwrap();
        assert_eq!(packet.protocol_id(), ticket.protocol_id());
        assert_eq!(packet.sealed(), ticket.sealed());
        let theirs = packet.keys(ticket.secret()).unwrap();
        assert!(theirs == ours);
        assert_ne!(ours.up_key, ours.down_key);

        let (again, _) = SessionKeys::draw(&ticket);
        assert!(again.session != ours.session && again.up_key != ours.up_key);
        assert!(again.down_key != ours.down_key);
    }

    #[test]
    fn a_changed_dial_or_one_without_the_secret_is_rejected() {
        let ticket = ticket();
        let (_, bytes) = SessionKeys::draw(&ticket);
        for at in 1..PROOF_AT + TAG_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            let packet = DialPacket::read(&changed).unwrap();
            assert!(packet.keys(ticket.secret()).is_none(), "byte {at}");
        }
        let packet = DialPacket::read(&bytes).unwrap();
        assert!(packet.keys(&[0; KEY_BYTES]).is_none());
        assert!(DialPacket::read(&bytes[1..]).is_none());
    }

    // Finding R6.
    #[test]
    fn a_refusal_is_accepted_only_by_its_own_dial() {
        let ticket = ticket();
        let (keys, _) = SessionKeys::draw(&ticket);
        let (other, _) = SessionKeys::draw(&ticket);
        let mut nonces = std::collections::BTreeSet::from([keys.drawn]);
        for reason in RefusalReason::ALL {
            assert!(nonces.insert(keys.refusal_nonce(reason)), "used twice");
            let refusal = keys.refusal(reason);
            assert_eq!(keys.read_refusal(&refusal), Some(reason));
            assert_eq!(other.read_refusal(&refusal), None);
            for at in 0..REFUSAL_BYTES {
                let mut changed = refusal;
                changed[at] ^= 1;
                assert_eq!(keys.read_refusal(&changed), None, "byte {at}");
            }
        }
    }
}
