//! Closed batches, up: the inputs of a session's players for whole turns, with a command delay.
//!
//! ```text
//! [first turn: 16][count: 8] batch…        batch: [a change bit per seat: 8][changed inputs]
//! ```
//!
//! A batch in a packet is closed: all commands of its turn are in the same packet, or in an earlier, acknowledged one.
//! An idle player still sends one batch for every turn, of one byte.

use arrayvec::ArrayVec;
use serde::Serialize;

use crate::wire::{Reader, WireError, Writer};
use twinstep_core::bounds::{COMMAND_DELAY_MAX, INPUT_BYTES_MAX, SEATS_MAX};
use twinstep_core::{Controls, Tick};

/// The maximum number of batches in one packet: four times the longest command delay.
pub const BATCHES_MAX: usize = 4 * COMMAND_DELAY_MAX as usize;

/// Writes the batches of turns `first..first + count`. `input(seat, turn)` is a seat's input during a turn.
///
/// # Panics
/// If there are more than [`BATCHES_MAX`] batches or [`SEATS_MAX`] seats.
pub fn write<'i, I: Serialize + Default + PartialEq + 'i>(
    out: &mut Writer<'_>,
    first: u32,
    count: usize,
    seats: usize,
    input: impl Fn(usize, u32) -> &'i I,
) -> Result<(), WireError> {
    assert!(count <= BATCHES_MAX && seats <= SEATS_MAX);
    out.tick16(Tick(first))?;
    out.u8(count as u8)?;
    let neutral = I::default();
    for turn in first..first + count as u32 {
        let changed = |seat: usize| {
            let before = if turn == first {
                &neutral
            } else {
                input(seat, turn - 1)
            };
            before != input(seat, turn)
        };
        out.u8((0..seats).map(|seat| u8::from(changed(seat)) << seat).sum())?;
        for seat in (0..seats).filter(|seat| changed(*seat)) {
            out.value(input(seat, turn))?;
        }
    }
    Ok(())
}

/// Reads batches whose turns are near `near`, and passes each seat's input for each turn to `each`, in order.
///
/// # Errors
/// If the bytes are not batches, or if `each` fails. Inputs already passed to `each` are not withdrawn.
pub fn read<I: Controls>(
    packet: &mut Reader<'_>,
    near: u32,
    seats: usize,
    mut each: impl FnMut(usize, u32, &I) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let first = packet.tick16(Tick(near))?.0;
    let count = packet.u8()?;
    if usize::from(count) > BATCHES_MAX {
        return Err(WireError::Malformed("more batches than can be open"));
    }
    // The run starts from neutral inputs.
    let mut held: ArrayVec<I, SEATS_MAX> = (0..seats).map(|_| I::default()).collect();
    for turn in (0..u32::from(count)).map(|i| first.saturating_add(i)) {
        let changes = packet.u8()?;
        for (seat, held) in held.iter_mut().enumerate() {
            if changes >> seat & 1 != 0 {
                let before = packet.rest().len();
                *held = packet.input()?;
                if before - packet.rest().len() > INPUT_BYTES_MAX {
                    return Err(WireError::Malformed("an input over its bound"));
                }
            }
            each(seat, turn, held)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_survive_a_round_trip() {
        let held = [[7u16, 7, 8], [0, 0, 9]];
        let mut bytes = [0; 64];
        let mut out = Writer::new(&mut bytes);
        write(&mut out, 70_000, 3, 2, |seat, turn| {
            &held[seat][(turn - 70_000) as usize]
        })
        .unwrap();
        let len = out.len();
        let mut got = Vec::new();
        let mut packet = Reader::new(&bytes[..len]);
        read::<u16>(&mut packet, 70_002, 2, |seat, turn, input| {
            got.push((seat, turn, *input));
            Ok(())
        })
        .unwrap();
        assert!(packet.end().is_ok());
        let expected: Vec<_> = (0..3u32)
            .flat_map(|i| (0..2).map(move |s| (s, 70_000 + i, held[s][i as usize])))
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn an_idle_player_costs_a_byte_a_turn() {
        let mut bytes = [0; 64];
        let mut out = Writer::new(&mut bytes);
        write(&mut out, 5, 4, 1, |_, _| &0u8).unwrap();
        assert_eq!(out.len(), 2 + 1 + 4);
    }

    /// Invalid if it starts with 255.
    #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct Long(Vec<u8>);

    impl Controls for Long {
        fn is_valid(&self) -> bool {
            self.0.first() != Some(&255)
        }
    }

    #[test]
    fn an_input_that_the_game_rejects_is_malformed() {
        for (first, fits) in [(254, true), (255, false)] {
            let mut bytes = [0; 8];
            let mut out = Writer::new(&mut bytes);
            let held = Long(Vec::from([first]));
            write(&mut out, 5, 1, 1, |_, _| &held).unwrap();
            let len = out.len();
            let read = read::<Long>(&mut Reader::new(&bytes[..len]), 5, 1, |_, _, _| Ok(()));
            assert_eq!(read.is_ok(), fits, "{first}: {read:?}");
        }
    }

    #[test]
    fn an_input_over_its_bound_is_refused() {
        let read_one = |len: usize| {
            let held: Vec<u8> = (0..len as u8).collect();
            let mut bytes = [0; 64];
            let mut out = Writer::new(&mut bytes);
            write(&mut out, 5, 1, 1, |_, _| &held).unwrap();
            let len = out.len();
            read::<Long>(&mut Reader::new(&bytes[..len]), 5, 1, |_, _, _| Ok(()))
        };
        // One of the bytes is the length.
        assert!(read_one(INPUT_BYTES_MAX - 1).is_ok());
        assert!(read_one(INPUT_BYTES_MAX).is_err());
    }

    #[test]
    fn too_many_batches_are_refused() {
        let bytes = [0, 0, BATCHES_MAX as u8 + 1, 0, 0];
        let read = read::<u8>(&mut Reader::new(&bytes), 0, 1, |_, _, _| Ok(()));
        assert!(read.is_err());
    }

    use alloc::vec::Vec;
}
