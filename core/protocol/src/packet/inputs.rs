//! A client's own inputs, up: a run of ticks for all seats, encoded with a change mask.
//!
//! ```text
//! [first tick − wanted: 8][ticks: 8][change bits: ticks × seats, packed][changed values in that order]
//! ```
//!
//! The first tick's inputs are encoded against neutral inputs, the others against their predecessor.

use crate::wire::{Reader, WireError, Writer};
use twinstep_core::bounds::{INPUT_BYTES_MAX, INPUT_WINDOW, SEATS_MAX};
use twinstep_core::{Controls, Tick};

const MASK_BYTES: usize = (INPUT_WINDOW as usize * SEATS_MAX).div_ceil(8);

/// Writes the inputs of `ticks` ticks starting at `first`. All of them must lie within `INPUT_WINDOW` of `wanted`.
///
/// # Errors
/// [`WireError::Full`] if the packet is full. In that case it is left unchanged.
///
/// # Panics
/// If a tick lies outside that window.
pub fn write<'i, I: Controls>(
    out: &mut Writer<'_>,
    wanted: Tick,
    first: Tick,
    ticks: u32,
    seats: usize,
    input: impl Fn(usize, Tick) -> &'i I,
) -> Result<(), WireError> {
    assert!(first >= wanted && first - wanted + ticks <= INPUT_WINDOW);
    let start = out.len();
    let written = write_run(out, wanted, first, ticks, seats, &input);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_run<'i, I: Controls>(
    out: &mut Writer<'_>,
    wanted: Tick,
    first: Tick,
    ticks: u32,
    seats: usize,
    input: &impl Fn(usize, Tick) -> &'i I,
) -> Result<(), WireError> {
    let mut mask = [0u8; MASK_BYTES];
    let neutral = I::default();
    let changed = |tick: Tick, seat: usize| {
        let before = if tick == first {
            &neutral
        } else {
            input(seat, tick.back(1))
        };
        input(seat, tick) != before
    };
    let cells = || (0..ticks).flat_map(|i| (0..seats).map(move |seat| (first + i, seat)));
    for (bit, (tick, seat)) in cells().enumerate() {
        if changed(tick, seat) {
            mask[bit / 8] |= 1 << (bit % 8);
        }
    }
    out.u8((first - wanted) as u8)?;
    out.u8(ticks as u8)?;
    out.bytes(&mask[..(ticks as usize * seats).div_ceil(8)])?;
    for (bit, (tick, seat)) in cells().enumerate() {
        if mask[bit / 8] & 1 << (bit % 8) != 0 {
            out.value(input(seat, tick))?;
        }
    }
    Ok(())
}

/// Writes the newest inputs of ticks `first..end`, as many as fit while `room` bytes stay free. Returns the first tick
/// written, or `end` if none fits.
pub(super) fn write_newest<'i, I: Controls>(
    out: &mut Writer<'_>,
    wanted: Tick,
    (first, end): (Tick, Tick),
    seats: usize,
    input: impl Fn(usize, Tick) -> &'i I,
    room: usize,
) -> Tick {
    let start = out.len();
    let fits = |from: Tick, out: &mut Writer<'_>| {
        let written = write(out, wanted, from, end - from, seats, &input);
        let fits = written.is_ok() && out.room() >= room;
        if !fits {
            out.truncate(start);
        }
        fits
    };
    if first >= end || fits(first, out) {
        return first.min(end);
    }
    // A shorter run never takes more bytes, so binary search finds the longest run that fits.
    let (mut too_long, mut from) = (first, end);
    while from - too_long > 1 {
        let middle = too_long + (from - too_long) / 2;
        if fits(middle, out) {
            out.truncate(start);
            from = middle;
        } else {
            too_long = middle;
        }
    }
    if from < end && !fits(from, out) {
        return end;
    }
    from
}

/// Reads a run and passes each (seat, tick, input) to `each`.
///
/// # Errors
/// If the run is longer than the window, or a value is not an input. Inputs already passed on are not withdrawn.
pub fn read<I: Controls>(
    packet: &mut Reader<'_>,
    wanted: Tick,
    seats: usize,
    mut each: impl FnMut(usize, Tick, &I),
) -> Result<(), WireError> {
    let first = wanted + u32::from(packet.u8()?);
    let ticks = u32::from(packet.u8()?);
    if ticks > INPUT_WINDOW || seats > SEATS_MAX {
        return Err(WireError::Malformed(
            "a run of inputs longer than the window",
        ));
    }
    let mask = packet.bytes((ticks as usize * seats).div_ceil(8))?;
    // The run starts from neutral inputs.
    let mut last: [I; SEATS_MAX] = Default::default();
    for i in 0..ticks {
        for (seat, held) in last.iter_mut().enumerate().take(seats) {
            let bit = i as usize * seats + seat;
            if mask[bit / 8] & 1 << (bit % 8) != 0 {
                let before = packet.rest().len();
                *held = packet.input()?;
                if before - packet.rest().len() > INPUT_BYTES_MAX {
                    return Err(WireError::Malformed("an input over its bound"));
                }
            }
            each(seat, first + i, held);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_run_of_inputs_survives_a_round_trip(
            held in proptest::collection::vec(0u8..4, 1..=INPUT_WINDOW as usize * 2),
            seats in 1usize..=2, gap in 0u32..=INPUT_WINDOW,
        ) {
            let ticks = (held.len() / seats) as u32;
            let (wanted, first) = (Tick(1_000), Tick(1_000 + gap));
            let at = |seat: usize, tick: Tick| &held[(tick - first) as usize * seats + seat];
            let mut bytes = [0; 1_100];
            let mut out = Writer::new(&mut bytes);
            if gap + ticks > INPUT_WINDOW { return Ok(()); }
            write(&mut out, wanted, first, ticks, seats, at).unwrap();
            let len = out.len();
            let mut packet = Reader::new(&bytes[..len]);
            let mut got = Vec::new();
            read(&mut packet, wanted, seats, |seat, tick, input: &u8| got.push((seat, tick, *input))).unwrap();
            packet.end().unwrap();
            prop_assert_eq!(got.len(), ticks as usize * seats);
            for (seat, tick, input) in got {
                prop_assert_eq!(input, *at(seat, tick));
            }
        }

        #[test]
        fn garbage_is_an_error_or_a_bounded_run(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut count = 0;
            let _ = read(&mut Reader::new(&bytes), Tick(5), 4, |_, _, _: &u8| count += 1);
            prop_assert!(count <= INPUT_WINDOW as usize * SEATS_MAX);
        }
    }

    #[test]
    fn a_held_input_costs_its_value_once() {
        let mut bytes = [0; 64];
        let mut out = Writer::new(&mut bytes);
        write(&mut out, Tick(10), Tick(12), 8, 1, |_, _| &7u8).unwrap();
        assert_eq!(out.len(), 2 + 1 + 1);
    }
}
