//! The game that both sides play: a blob of state, and a step that touches 64 bytes of it.
//!
//! Small on purpose: what is measured is the cost of the framework around the step. Twinstep and its peer
//! run [`Blob::play`], the very same function, on the same type, with the same inputs from [`Pads`], and
//! both guess that a remote player goes on holding what it held.

use serde::{Deserialize, Serialize};
use twinstep_core::{Controls, Effects, Frame, Never, Simulation, clone_fields};

/// Players of every measured match.
pub(crate) const PLAYERS: usize = 4;
/// How long a packet is on its way, in ticks.
pub(crate) const ONE_WAY_TICKS: u32 = 8;

/// Words of 8 bytes that a step touches.
const TOUCHED: usize = 8;

/// What a player's controls hold: 4 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pad(pub(crate) u32);

impl Controls for Pad {
    /// For ever, as the peer's `PredictRepeatLast` does.
    fn repeat(&self, _age_ticks: u32) -> Self {
        *self
    }
}

/// How players move their sticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sticks {
    /// Everybody holds one value: each guess is right.
    Still,
    /// Everybody holds another value at each tick: each guess is wrong.
    Moving,
}

/// One player's inputs, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Pads {
    sticks: Sticks,
    player: u32,
    given: u32,
}

impl Pads {
    pub(crate) fn new(sticks: Sticks, player: usize) -> Self {
        Pads {
            sticks,
            player: player as u32,
            given: 0,
        }
    }

    pub(crate) fn next(&mut self) -> Pad {
        self.given += match self.sticks {
            Sticks::Still => 0,
            Sticks::Moving => 1,
        };
        // Odd factors: no two neighbours are equal, and all four bytes change.
        let mixed = (self.given + 1).wrapping_mul(0x9e37_79b1);
        Pad(mixed ^ self.player.wrapping_mul(0x85eb_ca6b))
    }
}

/// The state.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Blob {
    at: u32,
    /// What the last step ended with: no step can begin before the one before it has ended.
    last: u64,
    words: Vec<u64>,
}

// What derived `Clone` lacks: the buffer is used again.
clone_fields!(Blob { at, last, words });

impl Blob {
    /// `bytes` bytes of state, a multiple of 64.
    pub(crate) fn new(bytes: usize) -> Self {
        assert!(
            bytes >= 64 && bytes.is_multiple_of(64),
            "a state is a multiple of 64 bytes, not {bytes}"
        );
        Blob {
            at: 0,
            last: 1,
            words: (0..bytes as u64 / 8)
                .map(|n| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect(),
        }
    }

    /// One tick: folds what everybody holds into the next 64 bytes.
    pub(crate) fn play(&mut self, held: impl Iterator<Item = Pad>) {
        let mut mixed = held.fold(self.last, |mixed, pad| {
            mixed.rotate_left(9) ^ u64::from(pad.0)
        });
        let start = self.at as usize * TOUCHED;
        for word in &mut self.words[start..start + TOUCHED] {
            mixed = (mixed ^ *word).wrapping_mul(0x2545_f491_4f6c_dd1d);
            *word = mixed;
        }
        self.last = mixed;
        self.at = (self.at + 1) % (self.words.len() / TOUCHED) as u32;
    }
}

impl Simulation for Blob {
    const NAME: &'static str = "blob";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = Pad;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
        self.play(frame.inputs().map(|(_, pad)| *pad));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_touches_64_bytes_and_depends_on_every_pad() {
        let before = Blob::new(4_096);
        let mut after = before.clone();
        after.play([Pad(1), Pad(2)].into_iter());
        let touched = before.words.iter().zip(&after.words);
        assert_eq!(touched.filter(|(a, b)| a != b).count() * 8, 64);
        let mut other = before.clone();
        other.play([Pad(1), Pad(3)].into_iter());
        assert_ne!(after, other);
    }

    #[test]
    fn still_pads_stay_and_moving_pads_change_at_every_tick() {
        let mut still = Pads::new(Sticks::Still, 1);
        assert_eq!(still.next(), still.next());
        let mut moving = Pads::new(Sticks::Moving, 1);
        let given: Vec<Pad> = (0..1_000).map(|_| moving.next()).collect();
        assert!(given.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
