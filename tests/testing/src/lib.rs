//! Tests for the author of any game on Twinstep: [`check`] finds causes of desyncs before players meet them, and
//! [`arena`] plays the game over a bad network in virtual time. Add the crate to your `[dev-dependencies]`; it does not
//! pull in a window, physics, sockets or an async runtime.
//!
//! # One line: is my step sound?
//!
//! Give the start state, the rules, and a [`Script`] with the players' inputs. A game with only buttons does not need
//! more:
//!
//! ```
//! use twinstep_core::testing::doc::Counter; // your simulation
//! use twinstep_testing::{Script, check};
//!
//! # fn my_game_is_sound() { // in a `#[test]`
//! check(Counter::default(), (), Script::inputs([0, 1, 2])).unwrap();
//! # }
//! # my_game_is_sound();
//! ```
//!
//! A fault is reported with its tick, its fields, advice, and a command that reproduces it:
//!
//! ```text
//! tick 11: a field of the state is lost by serde
//!   seen: a step != the same step of the state after a round trip through serde
//!   sim.shots: 1 != 2
//!   advice: remove `#[serde(skip)]`: a client that joins late, returns or is healed gets the state through serde; ...
//!   again: TWINSTEP_SEED=1 TWINSTEP_TICKS=600 cargo test -p race my_game_is_sound -- --exact
//! ```
//!
//! Without a fault `check` returns a [`Report`]. It vouches only for the states that your script reached in 600 ticks
//! (ten seconds, unless you set another number). So print the report once and read it: it names the features of your
//! game that the script never used, and a test can require that there are none:
//! `assert!(report.untried.is_empty(), "{report}")`. In a game that rarely asks queries, let the script sometimes
//! answer `None`. The report knows types and variants, not situations: write a second, nasty script in which twelve
//! players drive into one corner, because some bugs need three things at once. If an event happens once a minute, use
//! `.ticks(6_000)` or start from a state close to it. A game at a rate other than 60 Hz sets `.tick_length(..)`. The
//! report also gives the size of each type against its limit, and the cost of a step, a copy and a digest. To count
//! allocations, install [`Counting`].
//!
//! # A script for a larger game
//!
//! Every closure draws from the generator that it gets as an argument, so one seed always gives one run. It may read
//! the state:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use twinstep_core::{Effects, Frame, Key, Never, PlayerId, Simulation, Table};
//! use twinstep_testing::{Script, check};
//!
//! /// Press the button, and the server throws a die for you; a command takes a step back.
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Race {
//!     pawns: Table<PlayerId, (u32, u32)>,
//! }
//!
//! impl Simulation for Race {
//!     const NAME: &'static str = "race";
//!     const VERSION: u32 = 1;
//!     type Rules = ();
//!     type Input = u8;
//!     type Command = ();
//!     type Query = PlayerId;
//!     type Outcome = u32;
//!     type Cue = Never;
//!
//!     fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
//!         for (_, player, face) in frame.outcomes() {
//!             self.pawns.get_or_insert_with(*player, Default::default).0 += face.unwrap_or(&0);
//!         }
//!         for (player, _) in frame.commands() {
//!             let pawn = self.pawns.get_or_insert_with(player, Default::default);
//!             pawn.0 = pawn.0.saturating_sub(1);
//!         }
//!         for (player, button) in frame.inputs() {
//!             let pawn = self.pawns.get_or_insert_with(player, Default::default);
//!             if *button == 1 {
//!                 fx.ask(Key::player(player, pawn.1), player);
//!                 pawn.1 += 1;
//!             }
//!         }
//!     }
//! }
//!
//! fn script() -> Script<Race> {
//!     Script::<Race>::new(|seen, luck| u8::from(seen.tick.0 % 4 == 0 && luck.below(3) == 0))
//!         .commands(|seen, luck| (luck.below(60) == 0 && !seen.sim.pawns.is_empty()).then_some(()))
//!         .outcomes(|_, luck| Some(1 + luck.below(6)))
//! }
//! let report = check(Race::default(), (), script().players(3).ticks(300)).unwrap();
//! assert!(report.tried.asked > 0 && report.tried.commands > 0);
//! # let played = twinstep_testing::arena(Race::default(), (), script()).seconds(4).run().unwrap();
//! # println!("{report}\n{played}");
//! ```
//!
//! A game with bots can use them directly: [`Script::driven`] returns input and command together.
//!
//! # Ten lines: does it hold over a bad network?
//!
//! The same script plays real sessions against a real match. Time is virtual, so the speed of your machine does not
//! matter. Links go down, processes freeze, half of the players join late; then the network heals.
//!
//! ```
//! # use twinstep_core::testing::doc::Counter as Race;
//! use twinstep_testing::{Script, arena};
//!
//! let script = Script::inputs([0, 1]);
//! let played = arena(Race::default(), (), script)
//!     .players(4)
//!     .link("bad") // or `awful`, or `rtt=120,jitter=20,loss=5`
//!     .seed(7)
//!     .seconds(10)
//!     .run()
//!     .unwrap();
//! println!("{played}");
//! ```
//!
//! In every frame, each client's confirmed state must equal the server's, each cue must be started and settled once,
//! and no client may be disconnected. After the network has healed, all clients must be up to date, and each command
//! must have run once or been refused. A [`Failure`] names the client, the error, and a command that reproduces it.
//! Also check [`ArenaReport`]: it shows faults that do not fail a run, because they correct themselves. It lists rebuilds by
//! cause; cues by kind, with a line for each kind that was mostly guessed wrong; variants of commands, queries,
//! outcomes and cues that never occurred; and, if the world grows, the list that grows most.
//!
//! For failures that the arena does not simulate, build your own test on [`scene`]: it advances time, carries packets
//! and runs jobs, and leaves the rest to you. Twinstep's own test rig is built on it.
//!
//! # What `check` does
//!
//! | each tick is run | finds |
//! |---|---|
//! | again from a copy | statics, chance, clocks, addresses; an incomplete `clone` |
//! | from a copy that went through serde | skipped or rounded fields, once a later tick depends on them: the report names the fields that came out differently (a skipped `cooldown` shows as `shots`); `HashMap`s in the state |
//! | from a diverged prediction that `clone_from` has overwritten | fields that `clone_from` omits |
//! | as a prediction, on screens with all players, one and none | state, cues and queries that depend on the phase or the screen without [`withhold`] |
//! | as a rebuild after a wrong guess | loops of [`each`](twinstep_core::Effects::each) that look at more than their reads |
//! | on another thread | thread-locals |
//! | with other inputs of one or all other players | panics in a wrong guess; keys from shared counters |
//!
//! | the whole run is repeated | finds |
//! |---|---|
//! | immediately | statics that distinguish the first match of a process from the next |
//! | 1.1 s later | clocks with a resolution of a second |
//! | from seven serialised worlds of the run, each on a new thread | thread-locals that a late joiner fills differently (caches) |
//! | in a second process | hash orders, addresses, values drawn once per process |
//! | in a second process with other variables and another working folder: `HOME`, `USER`, `RUST_LOG`, locale and time zone differ; most others are not set; common switches that are not set here (`CI`, `DEBUG`, `SEED`, `VERBOSE` and so on) are `1`, and so is each variable that a source file of your workspace names in quotes | steps that read the environment |
//! | in a second process on one core (Linux) | steps that divide work by the number of cores |
//! | there without the earlier checks of the test, and after the matches of [`Script::also_on`] | statics that keep something of an earlier match, such as its map |
//! | there from the middle, the latest world first | statics and cells in the rules that a late joiner fills differently (caches) |
//! | in a second process with a clock a year ahead, which moves by a day, an hour, a minute and a second at each reading, if libfaketime is installed (Debian: `apt-get install libfaketime`) | dates: year, month, day, weekday; and clocks of minutes and hours |
//!
//! Players join, drop, reconnect and leave; inputs, answers and claims are late or refused; each input, command and
//! outcome is measured, written, read back, and compared with the others. The second process runs the same test alone,
//! so it needs the test harness; the report states if no second process ran.
//!
//! # What it finds, by name
//!
//! Each row is a bug planted in `tests/testing/tests/`, with the verdict of `check`.
//!
//! | planted | found by | verdict |
//! |---|---|---|
//! | `#[serde(skip)]` on a cooldown | serde | a field of the state is lost by serde |
//! | a float serialised with less precision | serde | a field of the state loses precision in serde |
//! | an untagged enum in the state | serde | the state cannot be read back from its bytes |
//! | a `HashMap` in the state | serde | the state depends on hash order: a HashMap or HashSet |
//! | a list made from a `HashMap` within the step | repetition | the state depends on hash order: a HashMap or HashSet |
//! | the first of equal values in a `HashMap` | repetition | the step depends on chance: a HashMap or HashSet, or a random generator |
//! | pushes in the order of a `HashMap` | repetition | the step depends on chance: a HashMap or HashSet, or a random generator |
//! | a static counter | repetition | the step keeps a value outside the state: a static, an atomic, or a cell in the rules |
//! | an atomic in the rules, hidden from serde | repetition | the step keeps a value outside the state: a static, an atomic, or a cell in the rules |
//! | a static set by the first match | a second match | the step keeps a value outside the state: a static, an atomic, or a cell in the rules |
//! | `Instant` | repetition | the step reads a clock |
//! | `SystemTime` in seconds | 1.1 s later | the step reads a clock |
//! | the day of the week, a month | a second process, with another clock | the step reads a clock |
//! | the system's random generator | repetition | the step depends on chance: a HashMap or HashSet, or a random generator |
//! | a thread-local counter | repetition, on new threads | the step depends on its thread: a thread-local, or the thread's id |
//! | the thread's name | another thread | the step depends on its thread: a thread-local, or the thread's id |
//! | the address of a list | repetition | the step uses a memory address: as a value, as an order, or in a hash |
//! | the address of a static | a second process | the step uses a memory address: as a value, as an order, or in a hash |
//! | sorting by addresses, digits of an address | repetition, with its memory elsewhere | the step uses a memory address: as a value, as an order, or in a hash |
//! | results in the order in which threads finish, a sum of floats over threads | repetition | the step depends on the order in which its threads run |
//! | nanoseconds of a clock, a clock as a float | repetition, and a process with a frozen clock | the step reads a clock |
//! | a generator in a static | repetition, in two processes that start alike | the step keeps a value outside the state: a static, an atomic, or a cell in the rules |
//! | the system's random generator without a hasher | repetition, in two processes | the step depends on chance: a random generator, or the last digits of a clock |
//! | a salt drawn once per process | a second process | the step gives a different result in another process |
//! | a cache in a thread-local | from the middle, on a new thread | the step depends on when a value was first asked for: a cache outside the state |
//! | a cache in a static | a second process, from the middle | the step depends on when a value was first asked for: a cache outside the state |
//! | a cache in the rules, hidden from serde | a second process, from the middle | the step depends on when a value was first asked for: a cache outside the state |
//! | `HOME`, `USER`, `TZ`, any other variable | a second process, without it | the step reads the environment: a variable, the working folder, the locale or the time zone |
//! | the working folder | a second process, in another one | the step reads the environment: a variable, the working folder, the locale or the time zone |
//! | a variable that is not set here | a second process, with it | the step reads the environment: a variable, the working folder, the locale or the time zone |
//! | the number of cores | a second process, on one core | the step depends on the number of cores |
//! | a static filled by another map, or by an earlier match | a second process, with or without that match | the step depends on the matches played before in its process: a static |
//! | `Vec::capacity` | a copy of the state | the step depends on what a copy of the state lacks: a capacity, or a hidden field |
//! | a skipped float that is computed again | serde | a field of the state is lost by serde |
//! | an order of addresses in a large `Table` | repetition, with heaps without holes | the step uses a memory address: as a value, as an order, or in a hash |
//! | a `HashMap` in the rules | a second process | the rules have a different digest in another process |
//! | an atomic in the rules | after each step | the rules change during the game |
//! | a ghost's hit without `withhold` | as a prediction | the state depends on the phase without `withhold` |
//! | counting the local players | as a prediction | the state depends on the phase without `withhold` |
//! | a cue only on the player's own screen, a cue value that depends on the screen | as a prediction | a cue or a query depends on the phase or the screen without `withhold` |
//! | a query asked only in predictions | as a prediction | a cue or a query depends on the phase or the screen without `withhold` |
//! | a static that a loop reads | as a rebuild | a loop of `Effects::each` reads more than its item, its reads and the rules |
//! | cues named by a shared counter | other inputs of others | keys come from a counter shared by all players |
//! | queries named by a shared counter | other inputs of others | keys come from a counter shared by all players |
//! | two queries under one key | after each step | one step asks two queries under the same key |
//! | 0/0 | after each step | a float in the state is NaN |
//! | a `clone_from` that omits a field | `clone_from` | `clone_from` leaves a field unchanged |
//! | a `clone` that omits a field | a copy | `clone` returns a different state |
//! | `expect` on an outcome | an unanswered query | the step panics if a query gets no answer |
//! | `expect` on a reconnecting player | drops and reconnects | the step panics |
//! | an outcome or a command of 4,097 bytes | each value | a value exceeds its size limit |
//! | a `PartialEq` that ignores a field | each value | `==` is true for two values with different bytes |
//! | a command with a skipped field | each value | a value changes when it is written and read back |
//! | a script with its own randomness | a second process | the script gives different inputs in another process |
//!
//! # What no run on one machine can find
//!
//! Floats that another platform computes differently: `sin`, `exp`, `powi` and similar functions, of `f32` and of
//! `f64`; and what another version of Rust does differently: the order of equal elements after `sort_unstable_by_key`.
//! The file `lints/clippy.toml` of this crate forbids them and names replacements; it also forbids clocks, statics,
//! atomics, hash orders, capacities, variables and files. Copy it into the folder of the crate that holds your
//! simulation, and run `cargo clippy`.
//!
//! [`withhold`]: twinstep_core::Effects::withhold

mod again;
mod arena;
mod blame;
mod cause;
mod check;
mod counting;
mod failure;
mod fault;
mod keys;
mod line;
mod measure;
mod moments;
mod process;
mod report;
pub mod scene;
mod script;
mod seal;
mod sent;
mod sources;
mod steps;
mod table;
mod traces;
mod values;
mod variants;
mod verdicts;

pub use arena::{Arena, ArenaReport, arena};
pub use check::check;
pub use counting::Counting;
pub use failure::{Failure, FailureKind};
pub use fault::{Fault, Kind};
pub use measure::{Cost, Costs};
pub use report::{Report, Size, Tried};
pub use script::{Asked, Script, Seen};
pub use twinstep_core::Mwc;
pub use twinstep_protocol::simnet::{self, LinkProfile};
pub use verdicts::{CueCounts, Growth};
