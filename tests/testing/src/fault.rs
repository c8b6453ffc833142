//! The kinds of faults, with the texts for the author.
//!
//! Invariant: a specific [`Kind`] is reported only if the disagreeing runs leave no other explanation; otherwise it is
//! [`Kind::Impure`].

use std::fmt;

use twinstep_core::Tick;
use twinstep_core::diff::Difference;

pub(crate) const FIELDS_MAX: usize = 8;

/// The kinds of faults that `check` distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "`name` explains the variants")]
pub enum Kind {
    Clock,
    /// The step depends on chance: on the order of a `HashMap` or `HashSet` (other than through a list made from it),
    /// or on a generator built from a hasher. Runs cannot distinguish the two, because both vary in each run.
    Chance,
    /// The step depends on chance, but not through a hasher: it draws from a generator outside the state. Without
    /// libfaketime, it may also read the last digits of a clock.
    Random,
    ThreadOrder,
    /// The step keeps a value in a static, an atomic, or a cell in the rules, such as a count or a generator.
    Static,
    Thread,
    Address,
    /// The state depends on hash order: it holds a `HashMap` or `HashSet`, or a list made from one.
    HashOrder,
    /// The step gives different results in another process: it uses a value drawn once per process.
    Process,
    Environment,
    /// The step depends on the number of the machine's cores.
    Cores,
    /// The step depends on the matches that were played before in its process: a static keeps something of them.
    Earlier,
    /// The step depends on what a copy of the state does not have: a capacity, or a field that neither serde nor
    /// `clone` copies.
    Hidden,
    /// The step depends on when a value was first asked for: it keeps a cache outside the state.
    Cache,
    /// The step has two results, and no other kind explains it.
    Impure,
    LostField,
    Lossy,
    Unreadable,
    Clone,
    CloneFrom,
    /// The state differs between authority and prediction, although the step does not call [`withhold`].
    ///
    /// [`withhold`]: twinstep_core::Effects::withhold
    Phase,
    /// A prediction emits a cue or a query that the confirmed step does not, although it does not call [`withhold`].
    ///
    /// [`withhold`]: twinstep_core::Effects::withhold
    Effects,
    /// The function of an [`each`](twinstep_core::Effects::each) loop uses something other than its item, the value of
    /// `reads` and the rules.
    Reads,
    SharedKeys,
    AskedTwice,
    Nan,
    Panic,
    PanicUnanswered,
    /// An input, a command, an outcome or the world exceeds its size limit.
    TooLarge,
    Equality,
    Altered,
    RulesChanged,
    RulesDiffer,
    Script,
}

impl Kind {
    /// The fault in one line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Clock => "the step reads a clock",
            Kind::Chance => {
                "the step depends on chance: a HashMap or HashSet, or a random generator"
            }
            Kind::Random => {
                "the step depends on chance: a random generator, or the last digits of a clock"
            }
            Kind::ThreadOrder => "the step depends on the order in which its threads run",
            Kind::Static => {
                "the step keeps a value outside the state: a static, an atomic, or a cell in the rules"
            }
            Kind::Thread => "the step depends on its thread: a thread-local, or the thread's id",
            Kind::Address => {
                "the step uses a memory address: as a value, as an order, or in a hash"
            }
            Kind::HashOrder => "the state depends on hash order: a HashMap or HashSet",
            Kind::Process => "the step gives a different result in another process",
            Kind::Environment => {
                "the step reads the environment: a variable, the working folder, the locale or the time zone"
            }
            Kind::Cores => "the step depends on the number of cores",
            Kind::Earlier => {
                "the step depends on the matches played before in its process: a static"
            }
            Kind::Hidden => {
                "the step depends on what a copy of the state lacks: a capacity, or a hidden field"
            }
            Kind::Cache => {
                "the step depends on when a value was first asked for: a cache outside the state"
            }
            Kind::Impure => "the step has two results for one state and one frame",
            Kind::LostField => "a field of the state is lost by serde",
            Kind::Lossy => "a field of the state loses precision in serde",
            Kind::Unreadable => "the state cannot be read back from its bytes",
            Kind::Clone => "`clone` returns a different state",
            Kind::CloneFrom => "`clone_from` leaves a field unchanged",
            Kind::Phase => "the state depends on the phase without `withhold`",
            Kind::Effects => {
                "a cue or a query depends on the phase or the screen without `withhold`"
            }
            Kind::Reads => {
                "a loop of `Effects::each` reads more than its item, its reads and the rules"
            }
            Kind::SharedKeys => "keys come from a counter shared by all players",
            Kind::AskedTwice => "one step asks two queries under the same key",
            Kind::Nan => "a float in the state is NaN",
            Kind::Panic => "the step panics",
            Kind::PanicUnanswered => "the step panics if a query gets no answer",
            Kind::TooLarge => "a value exceeds its size limit",
            Kind::Equality => "`==` is true for two values with different bytes",
            Kind::Altered => "a value changes when it is written and read back",
            Kind::RulesChanged => "the rules change during the game",
            Kind::RulesDiffer => "the rules have a different digest in another process",
            Kind::Script => "the script gives different inputs in another process",
        }
    }

    /// The advice to the author.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Kind::Clock => "count ticks: `frame.tick()` is the only time that all machines share",
            Kind::Chance => {
                "first look for a `HashMap` or `HashSet` (the lints name the line) whose first element is taken or whose \
                 elements are all visited: use `Table` or `BTreeMap`; then look for a generator outside the state: keep \
                 one in the state (`Mwc`, forked by `Key`), or ask the server (`fx.ask`)"
            }
            Kind::Random => {
                "keep a generator in the state (`Mwc`, forked by `Key`), or ask the server (`fx.ask`); if the step draws \
                 nothing, look for a clock whose last digits it uses"
            }
            Kind::ThreadOrder => {
                "join the threads, and put their results together in a fixed order; sums of floats depend on the order too"
            }
            Kind::Static => {
                "move the counter, or the generator, into the state; the rules are read-only"
            }
            Kind::Thread => {
                "move the thread-local's value into the state or the rules; never use a thread's id"
            }
            Kind::Address => {
                "name, sort and hash things by `Key` or by index, never by their address"
            }
            Kind::HashOrder => "use `Table`, `BTreeMap`, or a `Vec` that is sorted or indexed",
            Kind::Process => {
                "look for addresses (`as *const _`), hashers with a random seed, process ids, and statics that are filled \
                 from these"
            }
            Kind::Environment => {
                "read it once, before the match, into the rules: all machines compare their digest; a step reads state, \
                 rules and frame only"
            }
            Kind::Cores => {
                "split work into a constant number of parts: machines have different numbers of cores, and a sum of floats \
                 depends on its parts"
            }
            Kind::Earlier => {
                "a process plays many matches: keep what belongs to one match in its rules or its state, never in a static"
            }
            Kind::Hidden => {
                "a copy has the same elements and another capacity: use `len`, never `capacity`; let `clone` and serde copy \
                 every field"
            }
            Kind::Cache => {
                "a late joiner asks for the value at another tick: outside the state, cache only what depends on its key alone, \
                 or move the cache into the state"
            }
            Kind::Impure => {
                "look for data from outside state, rules and frame: a generator, a clock, an address, threads, statics, files"
            }
            Kind::LostField => {
                "remove `#[serde(skip)]`: a client that joins late, returns or is healed gets the state through serde; \
                 put derived values into the rules, or derive them in each step"
            }
            Kind::Lossy => {
                "serialise the field exactly, or round it in the step itself, so that all copies hold the rounded value"
            }
            Kind::Unreadable => {
                "the bytes are not self-describing: use no `untagged`, `flatten` or `skip_serializing_if`; a hand-written \
                 `Deserialize` must read exactly what its `Serialize` wrote"
            }
            Kind::Clone => "derive `Clone`, or copy every field",
            Kind::CloneFrom => {
                "copy every field: `twinstep_core::clone_fields!` does, and a new field that it lacks is a compile error"
            }
            Kind::Phase => {
                "call `fx.withhold()` in the prediction whenever its state will differ from the authority's, or do not \
                 read the phase"
            }
            Kind::Effects => {
                "such a cue starts and is always cancelled: emit it on every screen, and let the client decide what to play; \
                 or call `fx.withhold()` in a prediction whose effects differ from the authority's"
            }
            Kind::Reads => {
                "return everything that the loop's function needs from `reads`; the function must not use a static"
            }
            Kind::SharedKeys => {
                "make a key from a cause and that cause's own counter, never from a counter that several causes share: \
                 `Key::player(player, n)` for a player, `Key::new(BALL_BOUNCE, n)` for one kind of event of a thing that \
                 all players move, `key.child(n)` for a thing with a key"
            }
            Kind::AskedTwice => {
                "the second query is dropped: give each query its own key, made from its cause and that cause's own counter"
            }
            Kind::Nan => "look for 0/0, inf - inf, and the square root of a negative number",
            Kind::Panic => {
                "a step must accept every frame: players come and go, and orders may name entities that are gone"
            }
            Kind::PanicUnanswered => {
                "`None` is an outcome, after two seconds or if too many queries are open: continue without an answer"
            }
            Kind::TooLarge => "make it smaller: send ids instead of content, and split long values",
            Kind::Equality => {
                "derive `PartialEq`: a prediction keeps a guess that is `==` to the confirmed value"
            }
            Kind::Altered => "derive both `Serialize` and `Deserialize`, and skip no field",
            Kind::RulesChanged => {
                "rules are shared and read-only: move the values that change into the state"
            }
            Kind::RulesDiffer => {
                "no client could join: keep hash-ordered maps, addresses and the time of loading out of the rules"
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

/// The first fault: its kind, its tick, and the fields in which two runs differ.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The kind of fault.
    pub kind: Kind,
    /// The tick whose step shows the fault.
    pub tick: Tick,
    /// The two compared runs, as "one != the other"; or the event, such as a panic.
    pub what: String,
    /// The first fields that differ, each with both values in the order of `what`. Empty if no states were compared.
    pub fields: Vec<Difference>,
    /// A command that reproduces the fault.
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

/// Like `Display`, so that `unwrap` in a test prints a readable text.
impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Fault {}

/// A fault without the command that reproduces it.
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) tick: Tick,
    pub(crate) what: String,
    pub(crate) fields: Vec<Difference>,
    /// The step with two results, as the bytes of its world and frame, if this process cannot find the cause.
    pub(crate) step: Option<(Vec<u8>, Vec<u8>)>,
}

impl Found {
    pub(crate) fn new(kind: Kind, tick: Tick, what: impl Into<String>) -> Found {
        Found {
            kind,
            tick,
            what: what.into(),
            fields: Vec::new(),
            step: None,
        }
    }

    pub(crate) fn at(mut self, fields: Vec<Difference>) -> Found {
        self.fields = fields;
        self
    }
}
