//! What can be wrong with a game, in words for its author.
//!
//! Invariant: a [`Kind`] is said only where the ways of running that disagree leave no other; what they leave open is
//! [`Kind::Impure`].

use std::fmt;

use twinstep_core::Tick;
use twinstep_core::diff::Difference;

/// Fields that a fault names at most.
pub(crate) const FIELDS_MAX: usize = 8;

/// The kinds of faults that can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The step reads a clock.
    Clock,
    /// The step is left to chance: it goes by the order of a `HashMap` or `HashSet`, in another way than by making a list of it, or
    /// draws from a generator that is no part of the state. No run tells the two apart: both are drawn anew each time.
    Chance,
    /// The step counts in a static, an atomic, or a cell in the rules.
    Static,
    /// The step reads a thread-local, or asks which thread it is in.
    Thread,
    /// The state holds a memory address, or something made of one.
    Address,
    /// Something is in the order of a hash: a list that was made of a `HashMap` or `HashSet`.
    HashOrder,
    /// The step gives other results in another process: an address, a hash, a variable of the environment.
    Process,
    /// The step has two results, and none of the above explains it.
    Impure,
    /// A field of the state is not serialised.
    LostField,
    /// A field of the state is serialised with less than it holds.
    Lossy,
    /// The state cannot be read back from its own bytes.
    Unreadable,
    /// `clone` gives another state.
    Clone,
    /// `clone_from` leaves a field as it was.
    CloneFrom,
    /// The state differs between authority and prediction, and the step does not say [`withhold`].
    ///
    /// [`withhold`]: twinstep_core::Effects::withhold
    Phase,
    /// Keys of cues or queries come from a counter that everybody shares.
    SharedKeys,
    /// One step asks twice under one key.
    AskedTwice,
    /// A float in the state is NaN.
    Nan,
    /// The step panics.
    Panic,
    /// The step panics if a query stays without an answer.
    PanicUnanswered,
    /// An input, a command, an outcome or the world takes more bytes than it may.
    TooLarge,
    /// `==` says that two values are equal which have different bytes.
    Equality,
    /// A value that travels comes back from its bytes as another one.
    Altered,
    /// The rules change while the game is played.
    RulesChanged,
    /// The rules have another digest in another process.
    RulesDiffer,
    /// The script gives other inputs in another process.
    Script,
}

impl Kind {
    /// The fault in one line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Clock => "the step reads a clock",
            Kind::Chance => {
                "the step is left to chance: a HashMap or HashSet, or a random generator"
            }
            Kind::Static => {
                "the step counts outside the state: a static, an atomic, or a cell in the rules"
            }
            Kind::Thread => "the step depends on its thread: a thread-local, or the thread's id",
            Kind::Address => "the state holds a memory address",
            Kind::HashOrder => "something is in the order of a hash: a HashMap or HashSet",
            Kind::Process => "the step gives another result in another process",
            Kind::Impure => "the step has two results for one state and one frame",
            Kind::LostField => "a field of the state is lost by serde",
            Kind::Lossy => "a field of the state is serialised with less than it holds",
            Kind::Unreadable => "the state cannot be read back from its bytes",
            Kind::Clone => "`clone` gives another state",
            Kind::CloneFrom => "`clone_from` leaves a field as it was",
            Kind::Phase => "the state differs by phase without `withhold`",
            Kind::SharedKeys => "keys come from a counter that everybody shares",
            Kind::AskedTwice => "one step asks twice under one key",
            Kind::Nan => "a float in the state is NaN",
            Kind::Panic => "the step panics",
            Kind::PanicUnanswered => "the step panics where a query stays without an answer",
            Kind::TooLarge => "a value takes more bytes than it may",
            Kind::Equality => "`==` calls two values equal that have different bytes",
            Kind::Altered => "a value comes back from its bytes as another one",
            Kind::RulesChanged => "the rules change while the game is played",
            Kind::RulesDiffer => "the rules have another digest in another process",
            Kind::Script => "the script gives other inputs in another process",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Kind::Clock => "count ticks: `frame.tick()` is the only time that all machines share",
            Kind::Chance => {
                "look for `HashMap` and `HashSet` first (the lints name the line), where the first one wins or all are gone through: \
                 use `Table` or `BTreeMap`; then for a generator outside the state: keep one in it (`Mwc`, forked by `Key`), or \
                 ask the server: `fx.ask`"
            }
            Kind::Static => "move the counter into the state; the rules are read-only",
            Kind::Thread => {
                "move what the thread-local holds into the state or the rules; never use a thread's id"
            }
            Kind::Address => "name things by `Key` or by index, never by where they lie in memory",
            Kind::HashOrder => {
                "use `Table`, `BTreeMap`, or a `Vec` that is sorted or goes by index"
            }
            Kind::Process => {
                "look for addresses (`as *const _`), hashers with a random seed, `env`, locale, time zone, and statics \
                 that are filled from them"
            }
            Kind::Impure => {
                "look for whatever is neither state, rules nor frame: statics, files, the environment"
            }
            Kind::LostField => {
                "remove `#[serde(skip)]`: who joins late, returns or is healed gets the state by serde; what can be \
                 derived belongs into the rules, or is derived in each step"
            }
            Kind::Lossy => {
                "serialise the field as it is; or round it in the step itself, so that all copies hold the rounded value"
            }
            Kind::Unreadable => {
                "the bytes are not self-describing: no `untagged`, `flatten` or `skip_serializing_if`; a hand-written \
                 `Deserialize` reads what its `Serialize` wrote"
            }
            Kind::Clone => "derive `Clone`, or copy every field",
            Kind::CloneFrom => {
                "copy every field: `twinstep_core::clone_fields!` does, and the compiler asks it for new ones"
            }
            Kind::Phase => {
                "call `fx.withhold()` in the prediction whenever its state will differ from the authority's, or do not \
                 look at the phase"
            }
            Kind::SharedKeys => {
                "derive keys from the cause: `Key::player(player, its own count)`, or `key.child(n)`; then one wrong \
                 guess does not rename everything after it"
            }
            Kind::AskedTwice => {
                "the second question is dropped: give each its own key, or ask once"
            }
            Kind::Nan => "look for 0/0, inf - inf, and the square root of a negative",
            Kind::Panic => {
                "a step must take every frame: players come and go, orders may name what is gone"
            }
            Kind::PanicUnanswered => {
                "`None` is an answer: it comes after two seconds, or when too much was asked; go on without"
            }
            Kind::TooLarge => {
                "make it smaller: send ids instead of content, and split what is long"
            }
            Kind::Equality => {
                "derive `PartialEq`: a guess that is equal to the truth is kept, although it was another value"
            }
            Kind::Altered => "derive both `Serialize` and `Deserialize`, and skip no field",
            Kind::RulesChanged => {
                "rules are shared and read-only: move what changes into the state"
            }
            Kind::RulesDiffer => {
                "no peer could join: keep hash-ordered maps, addresses and the time of loading out of the rules"
            }
            Kind::Script => {
                "draw only from the generator that the script is given: no clock, no hash order, no other randomness"
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first fault that was found: its kind, the tick, and where two ways of running disagree.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What it is.
    pub kind: Kind,
    /// The tick whose step shows it.
    pub tick: Tick,
    /// Which two ways were compared, as "one != the other"; or what happened.
    pub what: String,
    /// The first fields that differ, each with both values in the order of `what`. Empty where no states were compared.
    pub fields: Vec<Difference>,
    /// One command that finds it again.
    pub again: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.tick, self.kind)?;
        writeln!(f, "  seen: {}", self.what)?;
        for field in &self.fields {
            writeln!(f, "  {field}")?;
        }
        writeln!(f, "  advice: {}", self.kind.advice())?;
        write!(f, "  again: {}", self.again)
    }
}

/// As `Display`, so that `unwrap` in a test prints words.
impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Fault {}

/// A fault of which it is not said yet how to find it again.
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) tick: Tick,
    pub(crate) what: String,
    pub(crate) fields: Vec<Difference>,
}

impl Found {
    pub(crate) fn new(kind: Kind, tick: Tick, what: impl Into<String>) -> Found {
        Found {
            kind,
            tick,
            what: what.into(),
            fields: Vec::new(),
        }
    }

    pub(crate) fn at(mut self, fields: Vec<Difference>) -> Found {
        self.fields = fields;
        self
    }
}
