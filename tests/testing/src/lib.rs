//! Tests for the author of any game on Twinstep: [`check`] finds what would desync it before anybody plays it, and
//! [`arena`] plays it over a bad network in virtual time. Add it to your `[dev-dependencies]`; it brings no window, no
//! physics, no socket and no async runtime.
//!
//! # One line: is my step sound?
//!
//! Give the first state, the rules, and a [`Script`]: what players hold. That is all that a game of buttons needs:
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
//! A fault is told with its tick, its fields, what to do, and a command that finds it again:
//!
//! ```text
//! t11: a field of the state is lost by serde
//!   seen: a step != the step of the same state as it came back from its bytes
//!   sim.shots: 1 != 2
//!   advice: remove `#[serde(skip)]`: who joins late, returns or is healed gets the state by serde; ...
//!   again: TWINSTEP_SEED=1 TWINSTEP_TICKS=600 cargo test -p race my_game_is_sound -- --exact
//! ```
//!
//! Without a fault `check` returns a [`Report`]. "Nothing found" says only what so many ticks (600, ten seconds, unless you
//! say otherwise) of your script reached. So print it once and read it: it names what your game has and the script never
//! did, and you can hold it to that, `assert!(report.untried.is_empty(), "{report}")`. A game that asks seldom lets the script answer
//! `None` now and then. It names types and not situations: write a second script that is nasty, where twelve players drive into
//! one corner, since some bugs show only where three things meet. If something happens once a minute,
//! take `.ticks(6_000)` or start from a state close to it. A game at another rate than 60 Hz says `.tick_length(..)`. The report also says how many bytes each type takes of its bound,
//! and what a step, a copy and a digest cost.
//! For allocations, install [`Counting`].
//!
//! # A script for a larger game
//!
//! Every closure draws from the generator that it is given, so one seed is one run. It may look at the state:
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
//! Games with bots hand them over whole: [`Script::driven`] returns input and command together.
//!
//! # Ten lines: does it hold over a bad network?
//!
//! The same script plays real sessions against a real match. Nothing is faster or slower than your machine: time is
//! virtual. Lines go down, processes stand still, one half of the players comes late; then the network heals.
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
//! At every frame each client's confirmed state must be the server's, each cue must be started and settled once, and
//! nobody may fall out. After the network has healed, everybody must be up to date, and each command must have run once or
//! have been refused. A [`Failure`] says who and what, and how to play it again. Look at the rebuilds in [`Played`] too:
//! a bad guess heals itself and shows nowhere else.
//!
//! For misfortunes that are not in there, build an arena of your own on [`scene`]: it lets time pass, carries packets and
//! jobs, and leaves all else to you. The rig that Twinstep is tested with is built on it.
//!
//! # What `check` does
//!
//! | each tick is run | finds |
//! |---|---|
//! | once more from a copy | statics, chance, clocks, addresses; a `clone` that forgets |
//! | from a copy that went through serde | fields that are skipped or rounded, once a later tick depends on them: named are those that came out differently (a skipped `cooldown` shows as `shots`); `HashMap`s in the state |
//! | over a stray prediction, by `clone_from` | fields that `clone_from` leaves behind |
//! | as a prediction, on the screens of all, one and nobody | state that differs by phase without [`withhold`] |
//! | on another thread | thread-locals |
//! | where all or one of the others did something else | panics in a wrong guess; keys from shared counters |
//!
//! | the whole run is repeated | finds |
//! |---|---|
//! | at once | statics that tell the first match of a process from the next |
//! | 1.1 s later | clocks of whole seconds |
//! | in a second process, in another time zone and language | hash orders, addresses, local time, whatever is drawn once for each process |
//! | there with a clock that is a year ahead, where libfaketime is installed (Debian: `apt-get install libfaketime`) | dates, and clocks of minutes and hours |
//!
//! Players come, drop, return and leave; inputs, answers and claims are late or refused; each input, command and outcome is
//! measured, written and read back, and compared with others. The second process is this very test, run alone, so
//! it needs the test harness; the report says if there was none.
//!
//! # What it finds, by name
//!
//! Each row is a planted bug in `tests/testing/tests/`, and the words are what `check` says of it.
//!
//! | planted | found by | its words |
//! |---|---|---|
//! | `#[serde(skip)]` on a cooldown | serde | a field of the state is lost by serde |
//! | a float serialised as a shorter one | serde | a field of the state is serialised with less than it holds |
//! | an untagged enum in the state | serde | the state cannot be read back from its bytes |
//! | a `HashMap` in the state | serde | something is in the order of a hash: a HashMap or HashSet |
//! | a list made of a `HashMap` within the step | once more | something is in the order of a hash: a HashMap or HashSet |
//! | the first of equals in a `HashMap` | once more | the step is left to chance: a HashMap or HashSet, or a random generator |
//! | pushes in the order of a `HashMap` | once more | the step is left to chance: a HashMap or HashSet, or a random generator |
//! | a static counter | once more | the step counts outside the state: a static, an atomic, or a cell in the rules |
//! | an atomic in the rules, hidden from serde | once more | the step counts outside the state: a static, an atomic, or a cell in the rules |
//! | a static that is set by the first match | at once again | the step counts outside the state: a static, an atomic, or a cell in the rules |
//! | `Instant` | once more | the step reads a clock |
//! | `SystemTime` in seconds | 1.1 s later | the step reads a clock |
//! | the day of the week | a second process, with another clock | the step reads a clock |
//! | a random generator of the system | once more | the step is left to chance: a HashMap or HashSet, or a random generator |
//! | a thread-local counter | once more, on fresh threads | the step depends on its thread: a thread-local, or the thread's id |
//! | the thread's name | another thread | the step depends on its thread: a thread-local, or the thread's id |
//! | where a list lies in memory | once more | the state holds a memory address |
//! | where a static lies in memory | a second process | the state holds a memory address |
//! | a salt that is drawn once | a second process | the step gives another result in another process |
//! | a `HashMap` in the rules | a second process | the rules have another digest in another process |
//! | an atomic in the rules | after each step | the rules change while the game is played |
//! | a ghost's hit without `withhold` | as a prediction | the state differs by phase without `withhold` |
//! | counting who is local | as a prediction | the state differs by phase without `withhold` |
//! | cues named by a shared counter | others do something else | keys come from a counter that everybody shares |
//! | queries named by a shared counter | others do something else | keys come from a counter that everybody shares |
//! | two questions under one key | after each step | one step asks twice under one key |
//! | 0/0 | after each step | a float in the state is NaN |
//! | a `clone_from` that forgets a field | `clone_from` | `clone_from` leaves a field as it was |
//! | a `clone` that forgets a field | a copy | `clone` gives another state |
//! | `expect` on an outcome | an unanswered query | the step panics where a query stays without an answer |
//! | `expect` on a player who returns | drops and returns | the step panics |
//! | an outcome of 257 bytes, a command of 129 | each value | a value takes more bytes than it may |
//! | a `PartialEq` that ignores a field | each value | `==` calls two values equal that have different bytes |
//! | a command with a skipped field | each value | a value comes back from its bytes as another one |
//! | a script with other randomness | a second process | the script gives other inputs in another process |
//!
//! # What no run on one machine can find
//!
//! Floats that another platform computes differently: `sin`, `exp`, `powi` and their kin, of `f32` and of `f64`. The file
//! `lints/clippy.toml` of this crate forbids them, says what to use instead, and forbids clocks, statics, atomics and hash
//! orders as well. Copy it into the folder of the crate that holds your simulation, and run `cargo clippy`.
//!
//! [`withhold`]: twinstep_core::Effects::withhold

mod again;
mod arena;
mod cause;
mod check;
mod counting;
mod failure;
mod fault;
mod keys;
mod line;
mod measure;
mod process;
mod report;
pub mod scene;
mod script;
mod seal;
mod steps;
mod table;
mod values;

pub use arena::{Arena, Played, arena};
pub use check::check;
pub use counting::Counting;
pub use failure::{Failure, FailureKind};
pub use fault::{Fault, Kind};
pub use measure::{Cost, Costs};
pub use report::{Report, Size, Tried};
pub use script::{Asked, Script, Seen};
pub use twinstep_core::Mwc;
pub use twinstep_protocol::simnet::{self, LinkProfile};
