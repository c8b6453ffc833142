//! Unsigned numbers in as few bytes as they need (LEB128), shared by packets, lane and journal.
//!
//! Invariant: a number has exactly one encoding. Each byte has seven bits, lowest first; its top bit is set if more
//! bytes follow. A last byte of zero after another byte would be a second encoding and is an error.
//!
//! ```text
//! 300 = 0b10_0101100   ->   1|0101100  0|0000010
//! ```

use arrayvec::ArrayVec;

/// The encoded size of the largest number, `u64::MAX`, in bytes.
pub const BYTES_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VarintError {
    #[error("a number is truncated")]
    Truncated,
    #[error("a number is not in its shortest form")]
    Overlong,
    #[error("expected a number of at most {max}, got a larger one")]
    TooLarge { max: u64 },
}

/// Encodes `value` in at most [`BYTES_MAX`] bytes, without heap memory.
///
/// ```
/// use twinstep_protocol::varint;
/// assert_eq!(varint::encode(300).as_slice(), [0xac, 0x02]);
/// ```
#[must_use]
pub fn encode(mut value: u64) -> ArrayVec<u8, BYTES_MAX> {
    let mut bytes = ArrayVec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Takes a number from the front of `rest` and moves `rest` past it. On an error `rest` is unchanged.
///
/// # Errors
/// [`VarintError`] if `rest` does not start with a number in its shortest form.
pub fn take(rest: &mut &[u8]) -> Result<u64, VarintError> {
    let mut value = 0u64;
    for (i, &byte) in rest.iter().enumerate().take(BYTES_MAX) {
        // The tenth byte only has space for the last of the 64 bits.
        if i == BYTES_MAX - 1 && byte > 1 {
            return Err(VarintError::TooLarge { max: u64::MAX });
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            // A second encoding of the same number.
            if byte == 0 && i > 0 {
                return Err(VarintError::Overlong);
            }
            *rest = &rest[i + 1..];
            return Ok(value);
        }
    }
    Err(VarintError::Truncated)
}

/// Takes a number of at most 32 bits, otherwise like [`take`].
///
/// # Errors
/// [`VarintError`] if `rest` does not start with a number in its shortest form, or the number is larger than
/// `u32::MAX`.
pub fn take_u32(rest: &mut &[u8]) -> Result<u32, VarintError> {
    let mut ahead = *rest;
    let value = take(&mut ahead)?;
    let value = u32::try_from(value).map_err(|_| VarintError::TooLarge {
        max: u64::from(u32::MAX),
    })?;
    *rest = ahead;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<u64, VarintError>) {
        let mut rest = bytes;
        assert_eq!(take(&mut rest), expected, "{bytes:x?}");
        if expected.is_err() {
            assert_eq!(rest, bytes, "an error must consume nothing");
        }
    }

    #[test]
    fn a_number_has_one_encoding() {
        check(&[0x00], Ok(0));
        check(&[0x7f], Ok(127));
        check(&[0x80, 0x01], Ok(128));
        check(&[0x80, 0x00], Err(VarintError::Overlong));
        check(&[0xff, 0x80, 0x00], Err(VarintError::Overlong));
    }

    #[test]
    fn a_cut_number_is_truncated_and_a_65th_bit_is_too_large() {
        check(&[], Err(VarintError::Truncated));
        check(&[0x80], Err(VarintError::Truncated));
        check(&[0xff; 9], Err(VarintError::Truncated));
        check(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            Ok(u64::MAX),
        );
        let too_large = Err(VarintError::TooLarge { max: u64::MAX });
        check(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            too_large,
        );
        check(&[0xff; 12], too_large);
    }

    #[test]
    fn a_number_beyond_32_bits_is_refused_by_take_u32() {
        let bytes = encode(1 << 32);
        let mut rest = bytes.as_slice();
        assert_eq!(
            take_u32(&mut rest),
            Err(VarintError::TooLarge {
                max: u64::from(u32::MAX)
            })
        );
        assert_eq!(rest, bytes.as_slice());
    }

    proptest! {
        #[test]
        fn every_number_survives_a_round_trip(value: u64, bits in 0u32..64, tail: [u8; 2]) {
            let value = value >> bits;
            let mut bytes = encode(value).to_vec();
            bytes.extend(tail);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(take(&mut rest), Ok(value));
            prop_assert_eq!(rest, &tail);
        }

        #[test]
        fn every_decoded_number_encodes_to_the_same_bytes(bytes: [u8; 12]) {
            let mut rest = &bytes[..];
            if let Ok(value) = take(&mut rest) {
                let written = encode(value);
                prop_assert_eq!(written.as_slice(), &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
