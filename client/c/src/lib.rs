//! Twinstep games for engines that speak C: Unity, Unreal, Godot, or your own engine.
//!
//! ```text
//!  the game's crate                 libpucks.so, pucks.dll, libpucks.a        the engine
//!  rules, picture, CGame ──build──▶ pucks_join, pucks_advance, ...    ◀─────── #include "pucks.h"
//!                        ──header()──────────────────────────────────────────▶ or DllImport, ffi, ctypes
//! ```
//!
//! One library is one game: its rules and types are compiled in. A game adds an implementation of [`CGame`] and one
//! line, [`library!`]; the header is generated from the same declarations. The header documents everything that a C
//! programmer needs: units, memory, threads, errors.
//!
//! Invariant: every pointer of a C program is read or written in one file. Matches are identified by numbers, no panic
//! leaves a function, and only types whose every bit pattern is valid are read from a caller's memory.
//!
//! # Example
//!
//! `examples/pucks` is a complete example, with a program in C and one in C#. `Cargo.toml` has
//! `crate-type = ["cdylib"]`, and:
//!
//! ```
//! # use std::sync::Arc;
//! # use twinstep_client::{NoPicture, Session, SessionConfig};
//! # use twinstep_core::testing::doc::Counter;
//! # use twinstep_local::Local;
//! use twinstep_c::{CGame, Unused};
//!
//! twinstep_c::c_struct! {
//!     pub struct Pad {
//!         /// The steps to count in a tick, 0 to 9.
//!         pub steps: u8,
//!     }
//!
//!     pub struct Total {
//!         /// Of all players.
//!         pub steps: u64,
//!     }
//! }
//!
//! pub struct Count;
//!
//! impl CGame for Count {
//!     type Sim = Counter; // your simulation
//!     type Show = NoPicture; // your picture
//!     type Pad = Pad;
//!     type Command = Unused;
//!     type Pose = Unused;
//!     type Cue = Unused;
//!     type Hud = Total;
//!
//!     fn config() -> SessionConfig<Counter> {
//!         SessionConfig::new(Arc::new(()))
//!     }
//!
//!     fn alone() -> Option<Local<Counter>> {
//!         Some(Local::action(Counter::default(), ()))
//!     }
//!
//!     fn input(pad: &Pad) -> Result<u8, String> {
//!         match pad.steps {
//!             0..=9 => Ok(pad.steps),
//!             steps => Err(format!("steps is {steps}, but at most 9")),
//!         }
//!     }
//!
//!     fn command(_: &Unused) -> Result<twinstep_core::Never, String> {
//!         Err("this game has no commands".to_owned())
//!     }
//!
//!     fn key(key: u8) -> u64 {
//!         key.into()
//!     }
//!
//!     fn pose(_: f32) -> Unused {
//!         Unused::default()
//!     }
//!
//!     fn cue(_: &twinstep_core::Never) -> Unused {
//!         Unused::default()
//!     }
//!
//!     fn hud(session: &Session<Counter>) -> Option<Total> {
//!         let steps = session.prediction()?.sim().total;
//!         Some(Total { steps })
//!     }
//! }
//!
//! twinstep_c::library!(Count, "count");
//!
//! assert!(header().contains("count_match count_join(uint32_t abi, const char *ticket);"));
//! ```
//!
//! A test of the game renews the header, and fails once when it has changed:
//!
//! ```no_run
//! # fn header() -> String { String::new() }
//! let before = std::fs::read_to_string("pucks.h").unwrap_or_default();
//! std::fs::write("pucks.h", header()).expect("a file");
//! assert_eq!(before, header(), "pucks.h was out of date, and is renewed");
//! ```

mod boundary;
mod game;
mod header;
mod library;
mod matches;
mod played;
mod structs;

pub use game::CGame;
pub use header::header;
pub use structs::{CField, CStruct, Unused};

// Used by the macros alone.
#[doc(hidden)]
pub use matches::CMatches;
#[doc(hidden)]
pub use played::{CCue, CEntity, CEvent};
#[doc(hidden)]
pub use structs::CDeclaration;
