//! *Powderkeg*: a top-down co-op shooter, and the example that games built on Twinstep begin with.
//!
//! ```text
//!   powderkeg: command line, network ──▶ powderkeg_view: window, terminal ──▶ powderkeg_game: the rules
//!   demo/src                             demo/view                            demo/game
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`cli`], `args`, `policies`, [`failure`], `log` | the command line: what can be asked for, and why it cannot be done |
//! | `play`, `serve`, `host`, `replay`, `journal` | its commands |
//! | [`bots`], [`report`] | players made of numbers over real UDP, and what was measured |
//! | [`wiring`] | how server and clients are put together |
//! | `view` | where a match is shown |
//! | `signals` | what asks the process to end |

mod admin;
mod args;
pub mod bots;
pub mod cli;
pub mod failure;
mod host;
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
