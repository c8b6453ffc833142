//! The head of every packet: a first byte with its kind and a bit for each part that follows, then the link header.
//!
//! ```text
//! first  bits 0..3: kind      bits 3..8: a bit for each part      one of the parts is a byte for the rarer ones
//! ```
//!
//! Some of the eight kinds in each direction are free, and the last one ([`KIND_FREE`]) is reserved: a ninth kind would
//! start with it and have its number in a second byte. The kinds `Hello` and `Closed` keep their numbers forever, so
//! that peers of different versions can still refuse each other with a reason.

use core::marker::PhantomData;
use core::time::Duration;

use super::{ByteCounts, OUTER_BYTES};
use crate::link::LinkState;
use crate::wire::{WireError, Writer};

pub(super) const KIND_BITS: u8 = 3;

/// The reserved kind. No packet has this kind yet.
pub const KIND_FREE: u8 = (1 << KIND_BITS) - 1;

/// An optional packet part, announced by one bit in a flags byte.
pub trait Part: Copy {
    /// The number of parts, at most 8.
    const COUNT: u8;
    fn index(self) -> u8;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<P> {
    bits: u8,
    of: PhantomData<P>,
}

impl<P> Default for Parts<P> {
    fn default() -> Self {
        Parts {
            bits: 0,
            of: PhantomData,
        }
    }
}

impl<P: Part> Parts<P> {
    pub fn read(bits: u8) -> Result<Parts<P>, WireError> {
        if u32::from(bits) >> P::COUNT != 0 {
            return Err(WireError::Malformed("an unknown part"));
        }
        Ok(Parts {
            bits,
            of: PhantomData,
        })
    }

    #[must_use]
    pub fn bits(self) -> u8 {
        self.bits
    }

    #[must_use]
    pub fn has(self, part: P) -> bool {
        self.bits >> part.index() & 1 != 0
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    pub fn add(&mut self, part: P) {
        self.bits |= 1 << part.index();
    }

    #[must_use]
    pub fn with(mut self, part: P) -> Self {
        self.add(part);
        self
    }
}

/// Declares an enum of parts, in the order of their bits.
macro_rules! parts {
    ($(#[$doc:meta])* $name:ident { $($(#[$part_doc:meta])* $part:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$part_doc])* $part),*
        }

        impl Part for $name {
            const COUNT: u8 = [$($name::$part),*].len() as u8;
            fn index(self) -> u8 {
                self as u8
            }
        }
    };
}

/// Declares an enum of kinds with their numbers, and the first bytes of packets of these kinds.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident of $parts:ident { $($(#[$kind_doc:meta])* $kind:ident = $number:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$kind_doc])* $kind = $number),*
        }

        impl $name {
            /// The first byte of this kind of packet, with these parts.
            #[must_use]
            pub fn head(self, parts: Parts<$parts>) -> u8 {
                self as u8 | parts.bits() << KIND_BITS
            }

            /// The first byte of this kind of packet, without parts.
            #[must_use]
            pub fn alone(self) -> u8 {
                self.head(Parts::default())
            }

            pub fn read(first: u8) -> Result<($name, Parts<$parts>), WireError> {
                let kind = match first & KIND_FREE {
                    $($number => $name::$kind,)*
                    _ => return Err(WireError::Malformed("an unknown kind")),
                };
                Ok((kind, Parts::read(first >> KIND_BITS)?))
            }
        }

        const _: () = {
            $(assert!($number < KIND_FREE);)*
            assert!(<$parts as Part>::COUNT <= 8 - KIND_BITS);
        };
    };
}

pub(super) use {kinds, parts};

/// A packet being written. It keeps the first byte up to date, and counts bytes by content.
pub struct PacketWriter<'w, 'b, P> {
    out: &'w mut Writer<'b>,
    first: u8,
    parts: Parts<P>,
    counts: ByteCounts,
    counted: usize,
}

impl<'w, 'b, P: Part> PacketWriter<'w, 'b, P> {
    /// Starts a packet whose first byte, without parts, is `first`.
    pub(super) fn begin(
        first: u8,
        now: Duration,
        link: &mut LinkState,
        out: &'w mut Writer<'b>,
    ) -> Result<Self, WireError> {
        assert!(out.is_empty(), "a packet must begin at byte 0");
        out.u8(first)?;
        link.write(now, out)?;
        let counts = ByteCounts {
            packets: 1,
            headers: OUTER_BYTES + out.len() as u64,
            ..ByteCounts::default()
        };
        Ok(PacketWriter {
            first,
            parts: Parts::default(),
            counts,
            counted: out.len(),
            out,
        })
    }

    pub(super) fn add(&mut self, part: P) {
        self.parts.add(part);
        self.out
            .patch(0, self.first | self.parts.bits() << KIND_BITS);
    }

    pub(super) fn count(&mut self, kind: fn(&mut ByteCounts) -> &mut u64) {
        *kind(&mut self.counts) += (self.out.len() - self.counted) as u64;
        self.counted = self.out.len();
    }

    pub(super) fn count_as(&mut self, counts: ByteCounts) {
        self.counts += counts;
        self.counted = self.out.len();
    }

    pub(super) fn out(&mut self) -> &mut Writer<'b> {
        self.out
    }

    #[must_use]
    pub fn end(self) -> ByteCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{DownKind, RareDown, RareUp, UpKind, UpPart};

    #[test]
    fn a_first_byte_survives_a_round_trip() {
        for first in 0..=u8::MAX {
            if let Ok((kind, parts)) = UpKind::read(first) {
                assert_eq!(kind.head(parts), first);
            }
            if let Ok((kind, parts)) = DownKind::read(first) {
                assert_eq!(kind.head(parts), first);
            }
        }
        let parts = Parts::default().with(UpPart::Inputs).with(UpPart::Rare);
        let (kind, read) = UpKind::read(UpKind::Play.head(parts)).unwrap();
        assert_eq!((kind, read), (UpKind::Play, parts));
        assert!(read.has(UpPart::Inputs) && !read.has(UpPart::Claims));
    }

    /// Finding A12: all four kinds were in use.
    #[test]
    fn there_is_space_for_more_kinds_each_way() {
        let up = (0..KIND_FREE).filter(|kind| UpKind::read(*kind).is_err());
        let down = (0..KIND_FREE).filter(|kind| DownKind::read(*kind).is_err());
        assert!(up.count() >= 3 && down.count() >= 4);
        assert!(UpKind::read(KIND_FREE).is_err() && DownKind::read(KIND_FREE).is_err());
    }

    #[test]
    fn unknown_parts_are_an_error() {
        assert!(Parts::<RareUp>::read(0b11_1111).is_ok());
        assert!(Parts::<RareUp>::read(0b100_0000).is_err());
        assert!(Parts::<RareDown>::read(0x80).is_err());
    }

    /// Peers of different versions refuse each other with a reason, so these two bytes never change.
    #[test]
    fn a_hello_and_a_refusal_are_known_to_every_version() {
        assert_eq!(UpKind::Hello.alone(), 0);
        assert_eq!(DownKind::Closed.alone(), 2);
    }
}
