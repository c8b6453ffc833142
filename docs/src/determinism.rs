//! Chapter 4: keeping a step deterministic. Floats, maps, NaN, features of packages.
//!
//! Every machine runs the same step on the same frames and must come to the same bytes. The rules are few:
//!
//! | trap | why | instead |
//! |---|---|---|
//! | `HashMap`, `HashSet` | their order is drawn anew in each process | [`Table`](twinstep_core::Table), `BTreeMap`, a `Vec` by index |
//! | `f32::sin`, `powi`, `exp`, `ln` and their kin, of `f64` too | each platform's library rounds differently | the crate `libm`; `glam` with its features `libm` and `scalar-math` |
//! | `a.mul_add(b, c)` | one rounding, slow where the processor lacks the instruction; the operator of a shader or of C may do either | `a * b + c` |
//! | `+ - * /`, `sqrt`, comparisons, `floor`, casts | | nothing: the same bits everywhere |
//! | `sum()` of floats in parallel | addition is not associative | a loop in a fixed order |
//! | NaN | its bits differ between machines; it equals nothing | avoid 0/0, `inf - inf`, `sqrt` below 0; the server refuses a tick that ends with one and names the field. `if x.is_nan() { f32::NAN }` gives no certain bits: the compiler may leave it out |
//! | `0.0` and `-0.0` | equal, but other bytes: their digests differ | arithmetic makes the same zero everywhere; only do not make one from `#[serde]` tricks |
//! | `min`, `max` of floats where `0.0` meets `-0.0` | x86_64 takes another zero than ARM | `if x > 0.0 { x } else { 0.0 }`; `clamp` and the vectors of `glam` compare |
//! | `usize` | 4 bytes in a browser or on a small board, so it overflows elsewhere | `u32` or `u64` in the state and in arithmetic that may overflow |
//! | `sort_unstable` with keys that tie | the order of equals may change with the compiler's version | `sort`, or a key that never ties |
//! | clocks, threads, files, the environment, addresses | not part of the state | `frame.tick()`; ask the server for the rest |
//! | chance of the system | | [`Mwc`](twinstep_core::Mwc) in the state, forked by [`Key`](twinstep_core::Key); or a query where it must not be foreseen |
//! | statics, atomics, cells in the rules | a rebuild steps the same tick twice | fields of the state |
//! | `#[serde(skip)]` on a field of the state | who joins late gets the state without it | let it travel; or compute it anew in each step |
//! | keys and ids from a shared counter | a wrong guess of one player shifts everybody's | [`Key::player`](twinstep_core::Key::player) and other keys made from causes |
//!
//! How long a tick takes is no input of a step: a match may slow its ticks, and is replayed at any speed. What a step stands for
//! is: [`Frame::tick_length`](twinstep_core::Frame::tick_length) is the configured tick, the same at each step of a match, so that one
//! simulation serves matches of 30 and of 60 Hz. A game of one rate only may as well count in ticks. A countdown in each entity costs a write in every tick; a
//! [`Schedule`](twinstep_core::Schedule) wakes who is due, and entities that sleep cost nothing.
//!
//! ```
//! // The same direction on every machine: controls travel as whole numbers, `libm` turns them into a vector.
//! fn direction(heading: u8) -> [f32; 2] {
//!     let angle = f32::from(heading) * core::f32::consts::TAU / 256.0;
//!     [libm::cosf(angle), libm::sinf(angle)]
//! }
//! assert_eq!(direction(0), [1.0, 0.0]);
//! ```
//!
//! # A step takes whatever decodes
//!
//! A changed client sends any command and any input that your types can hold: tile 1,000 of 64. The server asks the
//! [`Referee`](twinstep_server::Referee) before a command enters a frame, and announces to other clients only what the referee would
//! admit; an input that [`Controls::is_valid`](twinstep_core::Controls::is_valid) rejects is malformed and never arrives. But
//! a prediction steps commands in worlds that no referee has seen, and that may never be: a player is gone there, a list is
//! shorter. So index with `get`, divide by what is not 0, and leave out what makes no sense, in the step itself.
//!
//! | what panics | then |
//! |---|---|
//! | the server's step, at a command, an input or an outcome | the server leaves it out, and its player has a strike; after 8 in 10 s it is out |
//! | a client's predicted step, or its hooks | the prediction begins again without it: the player sees a correction; `Event::StepFault` reports it |
//! | a client's step at a confirmed frame | it asks for a heal; if it panics again within a minute, the session ends with `SessionEnd::StepPanicked` |
//!
//! None of these ends a process, unless panics abort: a build for wasm, or with `panic = "abort"`, ends at the first one.
//!
//! # Features of packages
//!
//! Cargo unifies features: if any package in *your* build asks `glam` for `fast-math`, or leaves `libm` out elsewhere, your
//! simulation is compiled so too, and two builds of "the same" version differ. Keep the simulation in a package of its own
//! with few dependencies, pin their exact versions in `Cargo.lock`, and ship server and clients from one lock file. `cargo tree
//! -e features -p glam` shows who asks for what. Flags such as `-C target-cpu=native` are safe: Rust never fuses `a * b + c`
//! by itself.
//!
//! # On which machines this was seen
//!
//! `ci/machines.sh` in Twinstep's repository builds one program for each kind of machine and compares what it prints: the
//! digests of 10,000 ticks of the shooter and of the strategy game, each played again from its journal, and of 55
//! operations on floats over 10,000 inputs, subnormal and infinite ones among them.
//!
//! | machine | how it ran | result |
//! |---|---|---|
//! | x86_64 Linux | debug, release, `-C target-cpu=native` | equal |
//! | aarch64 Linux | qemu 7.2 | equal; two bots of it played with two of x86_64 on an x86_64 server: no desync |
//! | wasm32 | Node 20 | equal; there is no transport for it |
//! | x86_64 Windows (`gnu`) | Wine 8 | equal; two bots of it played with two of Linux on a Linux server: no desync |
//! | aarch64 macOS | not at all | the libraries are type-checked |
//!
//! Of functions that a step must not use, the same program shows how they differ, all with Rust 1.96: from x86_64 Linux to
//! aarch64 Linux `tan`, `asin`, `acos`, `atan`, `atan2`, `sinh`, `tanh`, `min` and `max` of two zeros, and the bits of a NaN; to
//! wasm32 also `sin`, `cos`, `cosh`, `exp`, `ln`, `powf` and `hypot`; to Windows also `cbrt` and `mul_add`. That two machines
//! agree on a function proves nothing: both Linuxes had one version of one C library.
//!
//! To hold your own game to this: keep the digests of a scripted match in a file, as `tests/tests/floats.rs` does, and run that
//! test on every system that you ship for.
//!
//! # How mistakes are found
//!
//! | when | what |
//! |---|---|
//! | while writing | the lints of `twinstep-testing` (`lints/clippy.toml`) |
//! | in a test | [`check`](super::testing): runs the step in a dozen ways that must agree, and names the fault |
//! | while you play a debug build | a prediction that was kept is compared with the truth at every tick |
//! | in play | digests: see [reading a desync report](super::desync) |
//!
//! Raise [`VERSION`](twinstep_core::Simulation::VERSION) whenever the results of `step` change: builds that differ refuse each
//! other in the handshake then, and do not find out by a desync.
//!
//! Next: [commands and lockstep](super::strategy).
