//! [`VariantTally`]: counts the variants of a game's commands, queries, outcomes and cues, to find unused ones.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Deserializer, Visitor, value::Error};
use serde::forward_to_deserialize_any;
use twinstep_core::frame::FrameData;
use twinstep_core::{Key, Simulation, Wire, codec};

pub(crate) struct VariantTally<S: Simulation> {
    commands: Variants<S::Command>,
    queries: Variants<S::Query>,
    outcomes: Variants<S::Outcome>,
    cues: Variants<S::Cue>,
}

impl<S: Simulation> Default for VariantTally<S> {
    fn default() -> Self {
        VariantTally {
            commands: Variants::default(),
            queries: Variants::default(),
            outcomes: Variants::default(),
            cues: Variants::default(),
        }
    }
}

impl<S: Simulation> VariantTally<S> {
    /// Records a frame, and the queries and cues of its step.
    pub(crate) fn record(
        &mut self,
        frame: &FrameData<S>,
        asks: &[(Key, S::Query)],
        cues: &[(Key, S::Cue)],
    ) {
        let orders = frame.claims.iter().chain(&frame.commands);
        orders.for_each(|order| self.commands.record(&order.command));
        let answers = frame.outcomes.iter().filter_map(|a| a.outcome.as_ref());
        answers.for_each(|outcome| self.outcomes.record(outcome));
        asks.iter().for_each(|(_, ask)| self.queries.record(ask));
        cues.iter().for_each(|(_, cue)| self.cues.record(cue));
    }

    /// The variants that never occurred, such as "command Vote".
    pub(crate) fn unused(&self) -> Vec<String> {
        let all: [(&str, &[&str], &[u64]); 4] = [
            ("command", self.commands.names, &self.commands.counts),
            ("query", self.queries.names, &self.queries.counts),
            ("outcome", self.outcomes.names, &self.outcomes.counts),
            ("cue", self.cues.names, &self.cues.counts),
        ];
        let mut never = Vec::new();
        for (what, names, counts) in all {
            let missing = names.iter().zip(counts).filter(|(_, count)| **count == 0);
            never.extend(missing.map(|(name, _)| format!("{what} {name}")));
        }
        never
    }
}

/// The number of values of each variant so far.
#[derive(Clone, Debug)]
pub(crate) struct Variants<T> {
    names: &'static [&'static str],
    counts: Vec<u64>,
    of: PhantomData<fn(T)>,
}

impl<T: Wire> Default for Variants<T> {
    fn default() -> Self {
        let names = names::<T>();
        Variants {
            names,
            counts: vec![0; names.len()],
            of: PhantomData,
        }
    }
}

impl<T: Wire> Variants<T> {
    /// The index of a value's variant; 0 for a type that is not an enum.
    pub(crate) fn place(&self, value: &T) -> usize {
        // The codec starts an enum with its variant number, in one byte for all small numbers.
        let mut bytes = Vec::new();
        let is_encoded = !self.names.is_empty() && codec::append(value, &mut bytes).is_ok();
        let first = bytes.first().filter(|_| is_encoded);
        first.map_or(0, |number| usize::from(*number))
    }

    pub(crate) fn record(&mut self, value: &T) {
        let place = self.place(value);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
    }

    pub(crate) fn name(&self, place: usize) -> Option<&'static str> {
        self.names.get(place).copied()
    }
}

/// The names of an enum's variants, as its `Deserialize` names them. Empty for any other type.
fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Always an error, because there is no value.
    let _ = T::deserialize(VariantProbe(&mut names));
    names
}

/// A deserializer without a value, which records the names of the requested variants.
struct VariantProbe<'a>(&'a mut &'static [&'static str]);

fn no_value() -> Error {
    serde::de::Error::custom("no value")
}

impl<'de> Deserializer<'de> for VariantProbe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(no_value())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = variants;
        Err(no_value())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// The line about the variants that never occurred, such as "command Vote".
pub(crate) struct Missing<'a>(pub(crate) &'a [String]);

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            all => writeln!(f, "  NEVER OCCURRED, so unchecked: {}", all.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use twinstep_core::Never;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    enum Order {
        Wait,
        #[serde(rename = "go")]
        Go(u8),
        Build {
            at: u8,
        },
    }

    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Wrapped(Order);

    fn missing<T: Wire>(seen: &Variants<T>) -> Vec<&'static str> {
        let counted = seen.names.iter().zip(&seen.counts);
        counted
            .filter(|(_, count)| **count == 0)
            .map(|(name, _)| *name)
            .collect()
    }

    #[test]
    fn variants_are_counted_under_their_serde_names() {
        let mut seen = Variants::<Order>::default();
        assert_eq!(missing(&seen), ["Wait", "go", "Build"]);
        seen.record(&Order::Go(7));
        assert_eq!(missing(&seen), ["Wait", "Build"]);
        let mut seen = Variants::<Wrapped>::default();
        seen.record(&Wrapped(Order::Build { at: 1 }));
        assert_eq!(seen.name(2), Some("Build"));
        assert_eq!(missing(&seen), ["Wait", "go"]);
        assert!(missing(&Variants::<u8>::default()).is_empty());
        assert!(missing(&Variants::<Never>::default()).is_empty());
        assert!(missing(&Variants::<Option<Order>>::default()).is_empty());
    }
}
