//! Encodes values to bytes and decodes them: the only module that names bincode.
//!
//! Integers have a variable length, little-endian. Law **Hostile wire** adds two rules to the format: the cost of
//! decoding is bounded by the bytes present, not by the lengths they claim; and a value on its own must consume the
//! whole input.
//!
//! Invariant: every encoded value can be decoded. Both sides count only bytes: a value that was within its limit when
//! it was written can also be read. (Exceptions are types that serde cannot read from these bytes, for example untagged
//! enums, and recursive types and long lists of zero-sized elements, which [`Wire`](crate::Wire) excludes. [`sealable`]
//! checks a value.)

use alloc::vec::Vec;

use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounds::WORLD_BYTES_MAX;

mod decode;

use decode::Decoding;

const FORMAT: bincode::config::Configuration = bincode::config::standard();

/// The reason why bytes are not the expected value, or why a value cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum CodecError {
    #[error("the value does not fit into {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the value cannot be encoded")]
    Unencodable,
    #[error("the bytes end before the value does")]
    Truncated,
    #[error("the bytes are not a value of the expected type")]
    Malformed,
    #[error("{left} bytes are left over after the value")]
    Trailing { left: usize },
    #[error("the value decodes to a different value: serde may skip a field")]
    Altered,
}

/// Encodes into a slice. Returns the number of bytes written. Does not allocate.
///
/// # Errors
/// [`CodecError::TooLarge`] if the value does not fit, [`CodecError::Unencodable`] if it cannot be encoded.
pub fn encode<T: Serialize>(value: &T, out: &mut [u8]) -> Result<usize, CodecError> {
    let limit = out.len();
    bincode::serde::encode_into_slice(value, out, FORMAT).map_err(|e| encode_error(&e, limit))
}

/// Appends a value of at most [`WORLD_BYTES_MAX`] bytes, such as a world, to `out`. Allocates only to grow `out`.
///
/// # Errors
/// If the value exceeds the limit or cannot be encoded. In that case `out` is left unchanged.
pub fn append<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    struct Tail<'a> {
        out: &'a mut Vec<u8>,
        end: usize,
    }
    impl Writer for Tail<'_> {
        // Without inlining, each number costs a call and a returned `Result`: four to eight times as much.
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
        // Removes a partly written value.
        out.truncate(start);
        encode_error(&e, WORLD_BYTES_MAX)
    })
}

/// The encoded size of a value, in bytes.
///
/// # Errors
/// [`CodecError::Unencodable`] if the value cannot be encoded.
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

/// Checks that a value decodes to an equal value on the other side, so that it can be sealed into a frame, and returns
/// its encoded size. `buffer` is scratch memory. A value of more than `limit` bytes is not decoded.
///
/// # Errors
/// [`CodecError::TooLarge`] if the value exceeds `limit`; the codec's error if it cannot be encoded or decoded;
/// [`CodecError::Altered`] if it decodes to a different value.
pub fn sealable<T: Serialize + DeserializeOwned + PartialEq>(
    value: &T,
    limit: usize,
    buffer: &mut Vec<u8>,
) -> Result<usize, CodecError> {
    // The length of the buffer is the limit.
    buffer.resize(limit, 0);
    let used = encode(value, buffer)?;
    let (read, taken) = decode_prefix::<T>(&buffer[..used])?;
    if taken == used && read == *value {
        Ok(used)
    } else {
        Err(CodecError::Altered)
    }
}

/// Decodes a value at the start of `bytes`. Returns the value and the number of bytes read. Never panics. Memory for
/// elements is reserved only for bytes that are present, so it is bounded by the length of `bytes` times the size of
/// the largest type within.
///
/// # Errors
/// If the bytes are not a value of this type.
pub fn decode_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), CodecError> {
    let mut decoding = Decoding::new(bytes);
    let value = T::deserialize(&mut decoding).map_err(|e| decode_error(&e))?;
    Ok((value, bytes.len() - decoding.left()))
}

/// Decodes a value that fills `bytes` (a world, a message).
///
/// # Errors
/// The errors of [`decode_prefix`], and [`CodecError::Trailing`] if bytes are left over.
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
