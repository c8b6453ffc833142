//! The lane's format, shared by both halves: the size of a chunk, the window, the ack, and protocol errors.

use arrayvec::ArrayVec;

use crate::varint::{self, VarintError};
use crate::wire::{Reader, WireError, Writer};

/// The largest body of a chunk, in bytes.
pub const CHUNK_BYTES_MAX: usize = 1_000;
/// The largest chunk frame, in bytes: a buffer for [`LaneSender::poll`](super::LaneSender::poll) must hold it.
pub const FRAME_BYTES_MAX: usize = 5 + CHUNK_BYTES_MAX;
/// The maximum number of chunks in flight. At 512 KiB/s this is one second, enough for a round trip and for resending a
/// chunk twice, so that at 300 ms, a loss of 10 % costs less than half of the rate.
pub const WINDOW_CHUNKS: u32 = 512;

pub(super) const MASK_BYTES: usize = WINDOW_CHUNKS as usize / 8;

/// A protocol violation by the peer. Its session must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaneError {
    #[error("lane: {0}")]
    Varint(#[from] VarintError),
    #[error("lane: expected a chunk of 1 to {CHUNK_BYTES_MAX} bytes, got {bytes}")]
    ChunkSize { bytes: usize },
    #[error("lane: expected a chunk below {end}, got {seq}")]
    BeyondWindow { seq: u32, end: u32 },
    #[error("lane: expected a message of at most {max} bytes, got the start of one of {bytes}")]
    MessageTooLarge { bytes: u64, max: usize },
    #[error("lane: expected {expected} more bytes of a message, got {got}")]
    MessageOverrun { expected: usize, got: usize },
    #[error("lane: expected an ack of chunks below {end}, got one of {seq}")]
    AckOfUnsent { seq: u64, end: u32 },
    #[error("lane: expected a mask of at most {MASK_BYTES} bytes whose last byte is not zero")]
    AckMask,
}

/// The chunks that a receiver has: all before `next`, and some after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAck {
    pub(super) next: u32,
    pub(super) mask: [u8; MASK_BYTES],
}

impl LaneAck {
    /// The largest encoded size, in bytes; without gaps it is 2 to 6.
    pub const BYTES_MAX: usize = 5 + 1 + MASK_BYTES;

    /// The ack of all chunks before `next`, and of no later ones.
    #[must_use]
    pub fn all_before(next: u32) -> LaneAck {
        LaneAck {
            next,
            mask: [0; MASK_BYTES],
        }
    }

    #[must_use]
    pub fn encode(&self) -> ArrayVec<u8, { LaneAck::BYTES_MAX }> {
        let mask_bytes = self
            .mask
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        let mut bytes = ArrayVec::new();
        bytes.extend(varint::encode(u64::from(self.next)));
        bytes.push(mask_bytes as u8);
        bytes.extend(self.mask[..mask_bytes].iter().copied());
        bytes
    }

    /// Takes an ack from the front of `rest` and moves `rest` past it.
    ///
    /// # Errors
    /// [`LaneError::Varint`] or [`LaneError::AckMask`] if the bytes are not an ack.
    pub fn decode(rest: &mut &[u8]) -> Result<LaneAck, LaneError> {
        let mut ahead = *rest;
        let next = varint::take_u32(&mut ahead)?;
        let (&mask_bytes, ahead) = ahead.split_first().ok_or(LaneError::AckMask)?;
        let (bits, ahead) = ahead
            .split_at_checked(usize::from(mask_bytes))
            .ok_or(LaneError::AckMask)?;
        let mut mask = [0; MASK_BYTES];
        if bits.len() > MASK_BYTES || bits.last() == Some(&0) {
            return Err(LaneError::AckMask);
        }
        mask[..bits.len()].copy_from_slice(bits);
        *rest = ahead;
        Ok(LaneAck { next, mask })
    }

    pub fn write(&self, out: &mut Writer<'_>) -> Result<(), WireError> {
        out.bytes(&self.encode())
    }

    pub fn read(packet: &mut Reader<'_>) -> Result<LaneAck, WireError> {
        LaneAck::decode(packet.rest_mut()).map_err(|_| WireError::Malformed("an ack of the lane"))
    }

    /// The first chunk that has not been received in order.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// The distances from `next` of the chunks that arrived out of order, ascending.
    pub(super) fn beyond(&self) -> impl Iterator<Item = u32> {
        let bits = (0..WINDOW_CHUNKS).filter(|&i| self.mask[i as usize / 8] & (1 << (i % 8)) != 0);
        bits.map(|bit| bit + 1)
    }

    pub(super) fn set(&mut self, distance: u32) {
        let bit = distance - 1;
        self.mask[bit as usize / 8] |= 1 << (bit % 8);
    }
}
