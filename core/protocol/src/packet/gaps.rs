//! The missing frames between the frames that a client has received.
//!
//! ```text
//! [count: 8] gap…        gap: [first tick: 16][the tick after its last: 16]
//! ```
//!
//! The server repeats these frames when it has sent more frames than one send can repeat. The list has the oldest gaps
//! first. It does not cover frames after its last gap: these may still be in flight or, if the list is full, lost.

use arrayvec::ArrayVec;

use crate::wire::{Reader, WireError, Writer};
use twinstep_core::Tick;

pub const GAPS_MAX: usize = 8;
pub const BYTES_MAX: usize = 1 + 4 * GAPS_MAX;

/// The first tick of each gap, and the tick after its last one.
pub type Gaps = ArrayVec<(Tick, Tick), GAPS_MAX>;

pub fn write(out: &mut Writer<'_>, gaps: &Gaps) -> Result<(), WireError> {
    out.u8(gaps.len() as u8)?;
    for (first, end) in gaps {
        out.tick16(*first)?;
        out.tick16(*end)?;
    }
    Ok(())
}

/// Reads the gaps of a client whose next frame is `wanted`.
///
/// # Errors
/// If the bytes are not gaps, or if a gap is empty, before `wanted` or out of order.
pub fn read(packet: &mut Reader<'_>, wanted: Tick) -> Result<Gaps, WireError> {
    let count = packet.u8()?;
    if usize::from(count) > GAPS_MAX {
        return Err(WireError::Malformed("more gaps than a packet holds"));
    }
    let mut gaps = Gaps::new();
    let mut last = wanted;
    for _ in 0..count {
        let (first, end) = (packet.tick16(last)?, packet.tick16(last)?);
        if first < last || end <= first {
            return Err(WireError::Malformed("a gap out of order"));
        }
        gaps.push((first, end));
        last = end;
    }
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_survive_a_round_trip_and_nonsense_is_an_error() {
        let wanted = Tick(70_000);
        let gaps: Gaps = (0..GAPS_MAX as u32)
            .map(|at| (wanted + at * 100, wanted + at * 100 + 1 + at))
            .collect();
        let mut bytes = [0; BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        write(&mut out, &gaps).unwrap();
        assert_eq!(out.len(), BYTES_MAX);
        assert_eq!(read(&mut Reader::new(&bytes), wanted).unwrap(), gaps);
        for cut in 0..BYTES_MAX {
            assert!(read(&mut Reader::new(&bytes[..cut]), wanted).is_err());
        }
        let nonsense: [&[(u32, u32)]; 4] = [
            &[(wanted.0 - 1, wanted.0 + 2)],
            &[(wanted.0, wanted.0)],
            &[(wanted.0 + 4, wanted.0 + 3)],
            &[(wanted.0 + 4, wanted.0 + 6), (wanted.0 + 5, wanted.0 + 7)],
        ];
        for gaps in nonsense {
            let gaps = gaps.iter().map(|(first, end)| (Tick(*first), Tick(*end)));
            let mut out = Writer::new(&mut bytes);
            write(&mut out, &gaps.collect()).unwrap();
            assert!(read(&mut Reader::new(&bytes), wanted).is_err());
        }
        bytes[0] = GAPS_MAX as u8 + 1;
        assert!(read(&mut Reader::new(&bytes), wanted).is_err());
    }
}
