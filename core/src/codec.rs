//! Values to bytes and back: the only module that names bincode.
//!
//! Variable-length integers, little-endian, and rules that the format itself does not give (law **Hostile wire**):
//! reading costs no more than the bytes that are there, whatever they claim; the whole input must be consumed where a
//! value stands alone.
//!
//! Invariant: what is written is read. Both ends count bytes, and only bytes: a value that fits where it is written has
//! no other bound when it is read. (Not of types that serde itself cannot read from such bytes, as untagged enums; nor
//! of recursive ones and long lists of nothing, which [`Wire`](crate::Wire) bars. [`sealable`] tells.)

use alloc::vec::Vec;

use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounds::WORLD_BYTES_MAX;

mod decode;

use decode::Decoding;

const FORMAT: bincode::config::Configuration = bincode::config::standard();

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
    /// The value comes back as another one (a field that is not serialised).
    #[error("the value comes back as another one: is a field of it skipped?")]
    Altered,
}

/// Encodes into a slice; how many bytes it took. No allocation.
///
/// # Errors
/// [`CodecError::TooLarge`] if it does not fit.
pub fn encode<T: Serialize>(value: &T, out: &mut [u8]) -> Result<usize, CodecError> {
    let limit = out.len();
    bincode::serde::encode_into_slice(value, out, FORMAT).map_err(|e| encode_error(&e, limit))
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
        // Not inlined, a number costs a call and an error's way back: four to eight times as much.
        #[inline]
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
    bincode::serde::encode_into_writer(value, Tail { out, end }, FORMAT).map_err(|e| {
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
        #[inline]
        fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
            self.0 += bytes.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    bincode::serde::encode_into_writer(value, &mut count, FORMAT)
        .map_err(|e| encode_error(&e, WORLD_BYTES_MAX))?;
    Ok(count.0)
}

/// The encoded size of a value that another end can read as the very same value: what may be sealed into a frame.
/// `buffer` is used again and again; a value above `limit` bytes is not read back.
///
/// # Errors
/// [`CodecError::TooLarge`] above `limit`; what the encoder or the decoder says of a value that does not come back;
/// [`CodecError::Altered`] if it comes back as another one.
pub fn sealable<T: Serialize + DeserializeOwned + PartialEq>(
    value: &T,
    limit: usize,
    buffer: &mut Vec<u8>,
) -> Result<usize, CodecError> {
    buffer.resize(limit, 0);
    let used = encode(value, buffer)?;
    let (read, taken) = decode_prefix::<T>(&buffer[..used])?;
    if taken == used && read == *value {
        Ok(used)
    } else {
        Err(CodecError::Altered)
    }
}

/// Decodes a value that stands at the beginning of `bytes`; also how many bytes it took.
///
/// # Errors
/// Bytes that are not such a value; never a panic. Elements are made room for as far as there are bytes for them, so
/// that memory is bounded by the length of `bytes` times the size of the largest type within.
pub fn decode_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), CodecError> {
    let mut decoding = Decoding::new(bytes);
    let value = T::deserialize(&mut decoding).map_err(|e| decode_error(&e))?;
    Ok((value, bytes.len() - decoding.left()))
}

/// Decodes a value that fills `bytes` (a world, a message).
///
/// # Errors
/// As [`decode_prefix`], and [`CodecError::Trailing`] if something is left over.
pub fn decode_whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (value, used) = decode_prefix(bytes)?;
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
mod tests;
