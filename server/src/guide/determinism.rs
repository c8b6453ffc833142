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
//! | NaN | its bits differ between machines; it equals nothing | avoid 0/0, `inf - inf`, `sqrt` below 0; the server refuses a tick that ends with one and names the field |
//! | `0.0` and `-0.0` | equal, but other bytes: their digests differ | they come from the same operations, so they are the same everywhere; only do not make one from `#[serde]` tricks |
//! | `usize` | 4 bytes in a browser or on a small board, so it overflows elsewhere | `u32` or `u64` in the state and in arithmetic that may overflow |
//! | `sort_unstable` with keys that tie | the order of equals may change with the compiler's version | `sort`, or a key that never ties |
//! | clocks, threads, files, the environment, addresses | not part of the state | `frame.tick()`; ask the server for the rest |
//! | chance of the system | | [`Mwc`](twinstep_core::Mwc) in the state, forked by [`Key`](twinstep_core::Key); or a query where it must not be foreseen |
//! | statics, atomics, cells in the rules | a rebuild steps the same tick twice | fields of the state |
//! | `#[serde(skip)]` on a field of the state | who joins late gets the state without it | let it travel; or compute it anew in each step |
//! | keys and ids from a shared counter | a wrong guess of one player shifts everybody's | [`Key::player`](twinstep_core::Key::player) and other keys made from causes |
//!
//! How long a tick takes is no input of a step: a match may slow its ticks, and is replayed at any speed. Count in ticks;
//! what depends on seconds takes the tick's length from the rules. A countdown in each entity costs a write in every tick; a
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
//! # Features of packages
//!
//! Cargo unifies features: if any package in *your* build asks `glam` for `fast-math`, or leaves `libm` out elsewhere, your
//! simulation is compiled so too, and two builds of "the same" version differ. Keep the simulation in a package of its own
//! with few dependencies, pin their exact versions in `Cargo.lock`, and ship server and clients from one lock file. `cargo tree
//! -e features -p glam` shows who asks for what. Flags such as `-C target-cpu=native` are safe: Rust never fuses `a * b + c`
//! by itself.
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
