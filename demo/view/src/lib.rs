//! The views of *Powderkeg*: pictures, sounds, and the input of players.
//!
//! | module | contents |
//! |---|---|
//! | [`feed`] | the source of a view's pictures: a live match or a replay |
//! | `scene` | everything that one picture shows, and the effects of cues |
//! | [`window`], [`terminal`] | two ways to draw it |
//! | [`summary`] | the result of a shown match |
//! | `tab`, `page` | the program in a browser; the functions that its page provides |
//! | [`rehearsal`] | a whole match in one process and virtual time |
//! | [`say`], [`stop`], [`time`] | printing; the request to end this process; the time of day |
//!
//! # From a key to a step
//!
//! ```text
//!            window                                   terminal
//!   key ─▶ input::read, Board                key ─▶ terminal::Keys       keys held and pressed
//!            │                                         │
//!          WindowStage                               TerminalView         one frame: hands, cues, picture
//!            │  Hands: whose pad is it?                │
//!            └───────────────┬─────────────────────────┘
//!                      Feed::advance(pads)                                the match as views see it
//!                            │
//!              ┌─────────────┴───────────────┐
//!        Client::advance            Rehearsal::advance                    real clock and network, or neither
//!              └─────────────┬───────────────┘
//!                    Session::advance ─▶ Timeline ─▶ Stepper ─▶ Game::step
//! ```
//!
//! Orders (dash, light, ready) take the same path: [`Feed::order`](feed::Feed::order), then `Session::command`. The
//! window loop (`window::run`) owns the window, the clock and the files, reads the input and calls `WindowStage`; a
//! script or a test calls `WindowStage` without it.

#![allow(missing_docs, reason = "no author of a game imports it")]

pub mod feed;
mod files;
#[cfg(target_arch = "wasm32")]
mod page;
pub mod rehearsal;
pub mod say;
mod scene;
pub mod stop;
pub mod summary;
#[cfg(target_arch = "wasm32")]
mod tab;
#[cfg(not(target_arch = "wasm32"))]
pub mod terminal;
pub mod time;
pub mod window;
