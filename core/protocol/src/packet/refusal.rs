//! [`CommandRefusal`]: the reason why an order was not executed, as reported to its player.
//!
//! ```text
//!  one byte: kind × 16 + seat × 2 + claim │ varint: sequence │ only for a referee's own reason, varint: its number
//! ```

use serde::{Deserialize, Serialize};

use crate::wire::{Reader, WireError, Writer};
use twinstep_core::bounds::SEATS_MAX;

/// The reason why a command or claim was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CommandRefusal {
    /// The game's referee refused the order. The number is the game's own; 0 if the referee gave none.
    Referee(u16),
    /// The order was too large or too frequent, or too many bytes of orders were waiting for space in a frame.
    Bounds,
    /// The order's player had already left, or its tick was too far in the past.
    TooLate,
    /// A step with the order panicked or produced a NaN; the step without the order did not.
    Fault,
    /// The server did not report a reason: a later order ran, or the session continued under another number.
    Unreported,
    /// Only for requests that the match cannot execute now: it has no folder for saved games, could not write the save,
    /// has already started, or has not started yet.
    Unavailable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRefusal {
    pub seat: usize,
    /// Whether the order was a claim; otherwise it was a command.
    pub claim: bool,
    /// The sequence number of a command, or the tick of a claim.
    pub seq: u32,
    pub why: CommandRefusal,
}

impl OrderRefusal {
    pub fn write(&self, out: &mut Writer<'_>) -> Result<(), WireError> {
        assert!(self.seat < SEATS_MAX, "seat {}", self.seat);
        let (kind, number) = match self.why {
            CommandRefusal::Referee(0) => (0, None),
            CommandRefusal::Referee(number) => (1, Some(number)),
            CommandRefusal::Bounds => (2, None),
            CommandRefusal::TooLate => (3, None),
            CommandRefusal::Fault => (4, None),
            CommandRefusal::Unreported => (5, None),
            CommandRefusal::Unavailable => (6, None),
        };
        out.u8(kind << 4 | (self.seat as u8) << 1 | u8::from(self.claim))?;
        out.varint(self.seq)?;
        match number {
            Some(number) => out.varint(number.into()),
            None => Ok(()),
        }
    }

    pub fn read(packet: &mut Reader<'_>) -> Result<OrderRefusal, WireError> {
        let (head, seq) = (packet.u8()?, packet.varint()?);
        let why = match head >> 4 {
            0 => CommandRefusal::Referee(0),
            1 => match u16::try_from(packet.varint()?) {
                Ok(number) if number > 0 => CommandRefusal::Referee(number),
                _ => return Err(WireError::Malformed("a referee's reason from 1 to 65535")),
            },
            2 => CommandRefusal::Bounds,
            3 => CommandRefusal::TooLate,
            4 => CommandRefusal::Fault,
            5 => CommandRefusal::Unreported,
            6 => CommandRefusal::Unavailable,
            _ => return Err(WireError::Malformed("a reason of a refusal, 0 to 6")),
        };
        Ok(OrderRefusal {
            seat: usize::from(head >> 1 & 7),
            claim: head & 1 != 0,
            seq,
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_survive_a_round_trip() {
        let reasons = [
            CommandRefusal::Referee(0),
            CommandRefusal::Referee(1),
            CommandRefusal::Referee(u16::MAX),
            CommandRefusal::Bounds,
            CommandRefusal::TooLate,
            CommandRefusal::Fault,
            CommandRefusal::Unreported,
            CommandRefusal::Unavailable,
        ];
        for why in reasons {
            for seat in 0..SEATS_MAX {
                for (claim, seq) in [(false, 0), (true, u32::MAX)] {
                    let refusal = OrderRefusal {
                        seat,
                        claim,
                        seq,
                        why,
                    };
                    let mut buffer = [0; 16];
                    let mut out = Writer::new(&mut buffer);
                    refusal.write(&mut out).unwrap();
                    let len = out.len();
                    let mut packet = Reader::new(&buffer[..len]);
                    assert_eq!(OrderRefusal::read(&mut packet), Ok(refusal));
                    assert_eq!(packet.end(), Ok(()));
                    for short in 0..len {
                        assert!(OrderRefusal::read(&mut Reader::new(&buffer[..short])).is_err());
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_reasons_and_numbers_beyond_their_range_are_errors() {
        for bytes in [
            &[7 << 4, 0][..],
            &[15 << 4, 0],
            &[1 << 4, 0, 0],
            &[1 << 4, 0, 0x84, 0x80, 0x00],
        ] {
            assert!(
                OrderRefusal::read(&mut Reader::new(bytes)).is_err(),
                "{bytes:?}"
            );
        }
    }
}
