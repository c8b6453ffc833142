//! Authenticated encryption with a 32-byte key: XChaCha20-Poly1305. The only module that names chacha20poly1305.
//!
//! Invariant: a nonce is 24 random bytes from one side's operating system, or such bytes with one of them changed.

use chacha20poly1305::{AeadInPlace, Key, KeyInit, Tag, XChaCha20Poly1305, XNonce};

pub(crate) const KEY_BYTES: usize = 32;
pub(crate) const NONCE_BYTES: usize = 24;
pub(crate) const TAG_BYTES: usize = 16;

/// Encrypts `bytes` in place. The returned tag authenticates them and `about`, which is not encrypted.
pub(crate) fn seal(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    about: &[u8],
    bytes: &mut [u8],
) -> [u8; TAG_BYTES] {
    let cipher = XChaCha20Poly1305::new(Key::from_slice(key));
    let tag = cipher.encrypt_in_place_detached(XNonce::from_slice(nonce), about, bytes);
    tag.expect("less than 256 GiB").into()
}

/// Decrypts `bytes` that [`seal`] encrypted. Returns `false` if anything was changed, in which case `bytes` holds
/// garbage.
#[must_use]
pub(crate) fn open(
    key: &[u8; KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    about: &[u8],
    bytes: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> bool {
    let cipher = XChaCha20Poly1305::new(Key::from_slice(key));
    let (nonce, tag) = (XNonce::from_slice(nonce), Tag::from_slice(tag));
    cipher
        .decrypt_in_place_detached(nonce, about, bytes, tag)
        .is_ok()
}

#[must_use]
pub(crate) fn same(one: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_are_opened_unchanged_and_every_change_is_detected() {
        let (key, nonce, about) = ([3; KEY_BYTES], [7; NONCE_BYTES], b"about");
        let mut bytes = *b"a secret";
        let tag = seal(&key, &nonce, about, &mut bytes);
        assert_ne!(&bytes, b"a secret");
        let sealed = bytes;
        assert!(open(&key, &nonce, about, &mut bytes, &tag));
        assert_eq!(&bytes, b"a secret");

        for (key, nonce, about) in [
            ([4; KEY_BYTES], nonce, &about[..]),
            (key, [8; NONCE_BYTES], &about[..]),
            (key, nonce, b"abouT"),
        ] {
            assert!(!open(&key, &nonce, about, &mut sealed.clone(), &tag));
        }
        let mut changed = sealed;
        changed[0] ^= 1;
        assert!(!open(&key, &nonce, about, &mut changed, &tag));
        let mut forged = tag;
        forged[15] ^= 1;
        assert!(!open(&key, &nonce, about, &mut sealed.clone(), &forged));
        assert!(same(&tag, &tag.clone()) && !same(&tag, &forged));
    }
}
