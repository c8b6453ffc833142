//! *Powderkeg*: a top-down co-op shooter, and the example from which games on Twinstep can start.
//!
//! ```text
//!   powderkeg: command line, network ──▶ powderkeg_view: window, terminal ──▶ powderkeg_game: the rules
//!   demo/src                             demo/view                            demo/game
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], `args`, `policies`, [`failure`], `log` | the command line: tasks and flags, errors, the log |
//! | `play`, `host`, `serve`, `admin`, `replay`, `inspect`, `journal` | its commands |
//! | [`bots`], [`report`] | bots over real UDP, and a report of their run |
//! | [`wiring`] | how server and clients are put together |
//! | `view` | where a match is shown |
//! | `signals` | signals that ask the process to end |

#![allow(missing_docs, reason = "no author of a game imports it")]

mod admin;
mod args;
pub mod bots;
pub mod cli;
pub mod failure;
mod host;
mod inspect;
mod journal;
mod log;
mod play;
mod policies;
mod replay;
pub mod report;
mod serve;
mod signals;
mod view;
pub mod wiring;
