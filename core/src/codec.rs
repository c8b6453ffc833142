//! Values to bytes and back: the only module that names bincode.
//!
//! Variable-length integers, little-endian, and three rules that the format itself does not give (law
//! **Hostile wire**): a limit on what a decode may claim, the whole input must be consumed where a value
//! stands alone, and no zero-sized elements (the types' authors see to that; see [`Wire`](crate::Wire)).

use alloc::vec::Vec;

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounds::{PACKET_BYTES_MAX, WORLD_BYTES_MAX};

const WIRE: Configuration<LittleEndian, Varint, Limit<PACKET_BYTES_MAX>> =
    bincode::config::standard().with_limit::<PACKET_BYTES_MAX>();
const BULK: Configuration<LittleEndian, Varint, Limit<WORLD_BYTES_MAX>> =
    bincode::config::standard().with_limit::<WORLD_BYTES_MAX>();

/// Why bytes are not the value that was expected, or a value does not become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The buffer or the limit is too small for the value.
    #[error("the value does not fit into {limit} bytes")]
    TooLarge {
        /// What there was room for.
        limit: usize,
    },
    /// The value cannot be encoded (a map without a known length, an author's error).
    #[error("the value cannot be encoded")]
    Unencodable,
    /// The bytes end before the value does.
    #[error("the bytes end before the value does")]
    Truncated,
    /// The bytes are not such a value.
    #[error("the bytes are not a value of the expected type")]
    Malformed,
    /// Bytes are left over after the value.
    #[error("{left} bytes are left over after the value")]
    Trailing {
        /// How many.
        left: usize,
    },
}

/// Encodes into a slice; how many bytes it took. No allocation.
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit.
pub fn encode<T: Serialize>(value: &T, out: &mut [u8]) -> Result<usize, CodecError> {
    let limit = out.len();
    bincode::serde::encode_into_slice(value, out, WIRE).map_err(|e| encode_error(&e, limit))
}

/// Appends a value of any size up to [`WORLD_BYTES_MAX`] (a world) to `out`; allocates only to grow it.
///
/// # Errors
/// [`CodecError::TooLarge`] above the limit; `out` is then as before.
pub fn append<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    struct Tail<'a> {
        out: &'a mut Vec<u8>,
        end: usize,
    }
    impl Writer for Tail<'_> {
        fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
            if self.out.len() + bytes.len() > self.end {
                return Err(EncodeError::UnexpectedEnd);
            }
            self.out.extend_from_slice(bytes);
            Ok(())
        }
    }
    let start = out.len();
    let end = start + WORLD_BYTES_MAX;
    bincode::serde::encode_into_writer(value, Tail { out, end }, BULK).map_err(|e| {
        out.truncate(start);
        encode_error(&e, WORLD_BYTES_MAX)
    })
}

/// The encoded size of a value, in bytes.
///
/// # Errors
/// [`CodecError::Unencodable`].
pub fn size<T: Serialize>(value: &T) -> Result<usize, CodecError> {
    struct Count(usize);
    impl Writer for &mut Count {
        fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
            self.0 += bytes.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    bincode::serde::encode_into_writer(value, &mut count, BULK)
        .map_err(|e| encode_error(&e, WORLD_BYTES_MAX))?;
    Ok(count.0)
}

/// Decodes a value that stands at the beginning of `bytes`; also how many bytes it took.
///
/// # Errors
/// Bytes that are not such a value; never a panic, never an allocation beyond the bytes' own length.
pub fn decode_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), CodecError> {
    bincode::serde::decode_from_slice(bytes, WIRE).map_err(|e| decode_error(&e))
}

/// Decodes a value that fills `bytes` (a world, a message).
///
/// # Errors
/// As [`decode_prefix`], and [`CodecError::Trailing`] if something is left over.
pub fn decode_whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (value, used) =
        bincode::serde::decode_from_slice(bytes, BULK).map_err(|e| decode_error(&e))?;
    match bytes.len() - used {
        0 => Ok(value),
        left => Err(CodecError::Trailing { left }),
    }
}

fn encode_error(error: &EncodeError, limit: usize) -> CodecError {
    match error {
        EncodeError::UnexpectedEnd => CodecError::TooLarge { limit },
        _ => CodecError::Unencodable,
    }
}

fn decode_error(error: &DecodeError) -> CodecError {
    match error {
        DecodeError::UnexpectedEnd { .. } => CodecError::Truncated,
        _ => CodecError::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn a_value_comes_back_and_says_its_length() {
        let mut buffer = [0; 32];
        let value = (7u32, -3i16, Some(300u16));
        let used = encode(&value, &mut buffer).unwrap();
        assert_eq!(used, size(&value).unwrap());
        assert_eq!(
            decode_prefix::<(u32, i16, Option<u16>)>(&buffer).unwrap(),
            (value, used)
        );
        let mut bytes = alloc::vec![9];
        append(&value, &mut bytes).unwrap();
        assert_eq!(&bytes[1..], &buffer[..used]);
    }

    #[test]
    fn left_over_bytes_are_an_error_where_a_value_stands_alone() {
        assert_eq!(
            decode_whole::<u8>(&[1, 2]),
            Err(CodecError::Trailing { left: 1 })
        );
        assert_eq!(decode_whole::<u8>(&[]), Err(CodecError::Truncated));
    }

    #[test]
    fn a_length_bomb_is_an_error_and_not_an_allocation() {
        // A list that claims 2^40 elements.
        let bomb = [253, 0, 0, 0, 0, 0, 1, 0, 0];
        assert!(decode_whole::<Vec<u8>>(&bomb).is_err());
        assert!(decode_prefix::<String>(&bomb).is_err());
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert_eq!(
            encode(&[1u8; 8], &mut [0; 4]),
            Err(CodecError::TooLarge { limit: 4 })
        );
    }
}
