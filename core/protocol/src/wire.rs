//! Reading and writing packets, byte by byte, little-endian. Numbers are truncated only here.
//!
//! In memory, ticks and packet sequences are `u32` and never wrap. On the wire they are their low 16 bits; the reader
//! restores the high bits from a number known to be near ([`near16`]).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::varint;
use twinstep_core::codec::{self, CodecError};
use twinstep_core::{Controls, Tick};

/// The reason why a packet cannot be read or written. A peer's bad packet only increments a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    #[error("the packet is full")]
    Full,
    #[error("the packet ends too early")]
    Truncated,
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    #[error("invalid value in the packet: {0}")]
    Value(#[from] CodecError),
}

/// The number near `near` whose low 16 bits are `low`.
///
/// Correct as long as the two are less than 32,768 apart, which the caller's window guarantees.
#[must_use]
pub fn near16(low: u16, near: u32) -> u32 {
    // The signed difference modulo 2¹⁶ is the distance from `near`.
    let step = low.wrapping_sub(near as u16) as i16;
    near.saturating_add_signed(i32::from(step))
}

pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    #[inline]
    pub fn new(out: &'a mut [u8]) -> Self {
        Writer { out, at: 0 }
    }

    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.at
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at == 0
    }

    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        self.out.len() - self.at
    }

    /// The bytes written, starting at `at`.
    #[must_use]
    pub fn since(&self, at: usize) -> &[u8] {
        self.out.get(at..self.at).unwrap_or_default()
    }

    /// Drops all but the first `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.at = self.at.min(len);
    }

    /// Overwrites a byte written earlier.
    #[inline]
    pub fn patch(&mut self, at: usize, byte: u8) {
        assert!(at < self.at, "patching a byte that was not written");
        self.out[at] = byte;
    }

    /// The remaining space, for callers that fill it themselves and then call [`advance`](Writer::advance).
    pub fn tail(&mut self) -> &mut [u8] {
        &mut self.out[self.at..]
    }

    /// Marks `used` bytes of [`tail`](Writer::tail) as written.
    pub fn advance(&mut self, used: usize) {
        assert!(
            used <= self.room(),
            "more bytes used than there was room for"
        );
        self.at += used;
    }

    /// Writes raw bytes.
    ///
    /// # Errors
    /// [`WireError::Full`] if the bytes do not fit. The same holds for the other write methods.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let room = self
            .out
            .get_mut(self.at..self.at + bytes.len())
            .ok_or(WireError::Full)?;
        room.copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), WireError> {
        self.bytes(&[value])
    }

    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), WireError> {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), WireError> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes a number in as few bytes as it needs, 7 bits in each.
    #[inline]
    pub fn varint(&mut self, value: u32) -> Result<(), WireError> {
        // Most numbers fit into one byte.
        match u8::try_from(value) {
            Ok(byte @ ..0x80) => self.u8(byte),
            _ => self.bytes(&varint::encode(u64::from(value))),
        }
    }

    #[inline]
    pub fn tick16(&mut self, tick: Tick) -> Result<(), WireError> {
        self.u16(tick.0 as u16)
    }

    pub fn value<T: Serialize>(&mut self, value: &T) -> Result<(), WireError> {
        let used = codec::encode(value, &mut self.out[self.at..]).map_err(|e| match e {
            CodecError::TooLarge { .. } => WireError::Full,
            e => WireError::Value(e),
        })?;
        self.at += used;
        Ok(())
    }
}

#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The unread bytes, for a part whose own reader advances their start.
    pub fn rest_mut(&mut self) -> &mut &'a [u8] {
        &mut self.rest
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if too few bytes are left. The same holds for the other read methods.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|b| b[0])
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of at most 32 bits in its shortest form.
    #[inline]
    pub fn varint(&mut self) -> Result<u32, WireError> {
        if let Some((&byte @ ..0x80, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(u32::from(byte));
        }
        varint::take_u32(&mut self.rest).map_err(|_| WireError::Malformed("a number"))
    }

    /// Restores a tick near `near` from its low 16 bits.
    #[inline]
    pub fn tick16(&mut self, near: Tick) -> Result<Tick, WireError> {
        self.u16().map(|low| Tick(near16(low, near.0)))
    }

    pub fn value<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        let (value, used) = codec::decode_prefix(self.rest)?;
        self.rest = &self.rest[used..];
        Ok(value)
    }

    /// Reads a player's input. Fails if the game rejects it as [invalid](Controls::is_valid).
    pub fn input<I: Controls>(&mut self) -> Result<I, WireError> {
        let input: I = self.value()?;
        match input.is_valid() {
            true => Ok(input),
            false => Err(WireError::Malformed("an invalid input")),
        }
    }

    /// Checks that no bytes are left.
    #[inline]
    pub fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError::Malformed("bytes after the end"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_number_is_restored_from_a_near_one() {
        for near in [0u32, 5, 65_535, 65_536, 70_000, 1 << 20] {
            for away in -3_000i32..3_000 {
                let Some(value) = near.checked_add_signed(away) else {
                    continue;
                };
                assert_eq!(near16(value as u16, near), value);
            }
        }
    }

    #[test]
    fn a_full_packet_is_an_error_and_keeps_its_bytes() {
        let mut buffer = [0; 3];
        let mut out = Writer::new(&mut buffer);
        out.u16(7).unwrap();
        assert_eq!(out.u16(8), Err(WireError::Full));
        assert_eq!(out.value(&300u32), Err(WireError::Full));
        out.u8(9).unwrap();
        assert_eq!(buffer, [7, 0, 9]);
    }

    #[test]
    fn reading_past_the_end_is_an_error() {
        let mut packet = Reader::new(&[1, 2]);
        assert_eq!(packet.u32(), Err(WireError::Truncated));
        assert_eq!(packet.u16(), Ok(513));
        assert_eq!(
            packet.value::<u8>(),
            Err(WireError::Value(CodecError::Truncated))
        );
    }
}
