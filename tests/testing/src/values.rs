//! [`Values`]: checks each input, command and outcome: its size, whether it survives serde, and whether `==` is
//! consistent with its bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use twinstep_core::bounds::{COMMAND_BYTES_MAX, INPUT_BYTES_MAX, OUTCOME_BYTES_MAX};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::diff::diff;
use twinstep_core::{Simulation, Tick};

use crate::fault::{FIELDS_MAX, Found, Kind};

/// For each type, this many different values are kept and compared with each new one.
const REMEMBERED_MAX: usize = 48;

struct OfType<T> {
    what: &'static str,
    bound: usize,
    largest: usize,
    seen: Vec<(T, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> OfType<T> {
    fn new(what: &'static str, bound: usize) -> Self {
        OfType {
            what,
            bound,
            largest: 0,
            seen: Vec::new(),
            buffer: Vec::new(),
        }
    }

    fn look(&mut self, tick: Tick, value: &T) -> Result<(), Found> {
        let OfType { what, bound, .. } = *self;
        let found = |kind, text: String| Err(Found::new(kind, tick, text));
        let bytes = match codec::sealable(value, bound, &mut self.buffer) {
            Ok(bytes) => bytes,
            Err(CodecError::TooLarge { .. }) => {
                let bytes = codec::size(value).unwrap_or(usize::MAX);
                return found(
                    Kind::TooLarge,
                    format!("{what} of {bytes} bytes; the limit is {bound}"),
                );
            }
            Err(error) => return self.altered(tick, value, error),
        };
        self.largest = self.largest.max(bytes);
        let bytes = &self.buffer[..bytes];
        let mut is_known = false;
        for (other, theirs) in &self.seen {
            is_known |= theirs == bytes;
            if value == other && theirs != bytes {
                let text = format!(
                    "{what} equals another by `==`, but not in its bytes: the other != this one"
                );
                return Err(
                    Found::new(Kind::Equality, tick, text).at(diff(other, value, FIELDS_MAX))
                );
            }
        }
        if !is_known && self.seen.len() < REMEMBERED_MAX {
            self.seen.push((value.clone(), bytes.to_vec()));
        }
        Ok(())
    }

    /// Describes how a value changes when it is written and read back, or that it cannot be read.
    fn altered(&self, tick: Tick, value: &T, error: CodecError) -> Result<(), Found> {
        let what = self.what;
        let mut bytes = Vec::new();
        let back = codec::append(value, &mut bytes).and_then(|()| codec::decode_whole::<T>(&bytes));
        Err(match back {
            Err(_) => Found::new(Kind::Unreadable, tick, format!("{what}: {error}")),
            Ok(back) => {
                let text = format!("{what} != the same value written and read back");
                Found::new(Kind::Altered, tick, text).at(diff(value, &back, FIELDS_MAX))
            }
        })
    }
}

pub(crate) struct Values<S: Simulation> {
    inputs: OfType<S::Input>,
    commands: OfType<S::Command>,
    outcomes: OfType<S::Outcome>,
}

impl<S: Simulation> Values<S> {
    pub(crate) fn new() -> Self {
        Values {
            inputs: OfType::new("an input", INPUT_BYTES_MAX),
            commands: OfType::new("a command", COMMAND_BYTES_MAX),
            outcomes: OfType::new("an outcome", OUTCOME_BYTES_MAX),
        }
    }

    pub(crate) fn input(&mut self, tick: Tick, input: &S::Input) -> Result<(), Found> {
        self.inputs.look(tick, input)
    }

    pub(crate) fn command(&mut self, tick: Tick, command: &S::Command) -> Result<(), Found> {
        self.commands.look(tick, command)
    }

    pub(crate) fn outcome(&mut self, tick: Tick, outcome: &S::Outcome) -> Result<(), Found> {
        self.outcomes.look(tick, outcome)
    }

    pub(crate) fn largest(&self) -> [(&'static str, usize, usize); 3] {
        let of = |what, largest, bound| (what, largest, bound);
        [
            of("input", self.inputs.largest, self.inputs.bound),
            of("command", self.commands.largest, self.commands.bound),
            of("outcome", self.outcomes.largest, self.outcomes.bound),
        ]
    }

    /// Returns an input seen before that differs from `than`: a plausible wrong guess.
    pub(crate) fn other_input(&self, than: &S::Input, turn: usize) -> Option<S::Input> {
        let seen = &self.inputs.seen;
        let (before, from) = seen.split_at(turn % seen.len().max(1));
        let mut others = from.iter().chain(before).map(|(value, _)| value);
        others.find(|other| *other != than).cloned()
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::testing::doc::Counter;

    use super::*;

    /// A 4,800-tick check took twenty times as long as a 600-tick one, because it counted through all turns.
    #[test]
    fn other_inputs_take_turns_at_a_constant_cost() {
        let mut values = Values::<Counter>::new();
        assert_eq!(values.other_input(&7, 3), None);
        for input in [7, 8, 9] {
            assert!(values.input(Tick(0), &input).is_ok());
        }
        let others = (0..6).map(|turn| values.other_input(&7, turn).unwrap());
        assert_eq!(others.collect::<Vec<_>>(), [8, 8, 9, 8, 8, 9]);
        for turn in usize::MAX - 2_000..usize::MAX {
            assert!(values.other_input(&8, turn).is_some());
        }
    }
}
