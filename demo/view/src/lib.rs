//! What is seen and heard of *Powderkeg*, and the hands that play it.
//!
//! | module | what is in it |
//! |---|---|
//! | [`feed`] | what a view draws from: a match that is played, or one that was |
//! | `scene` | everything that one picture shows, and what the cues set off in it |
//! | [`window`], [`terminal`] | two ways to draw it |
//! | [`summary`] | what a match that was shown came to |
//! | [`rehearsal`] | a whole match in one process and virtual time |
//! | [`say`], [`stop`], [`time`] | what is printed; whether the process was asked to end; the time of day |
//!
//! # From a key to a step
//!
//! ```text
//!            window                                   terminal
//!   key ─▶ input::read, Board                key ─▶ terminal::Keys       what is held and was pressed
//!            │                                         │
//!          WindowStage                               TerminalView         one frame: hands, cues, picture
//!            │  Hands: whose pad is it?                │
//!            └───────────────┬─────────────────────────┘
//!                      Feed::advance(pads)                                the match as views see it
//!                            │
//!              ┌─────────────┴───────────────┐
//!        Client::advance            Rehearsal::advance                    who has clock and network: real, or neither
//!              └─────────────┬───────────────┘
//!                    Session::advance ─▶ Timeline ─▶ Stepper ─▶ Game::step
//! ```
//!
//! Orders (dash, light, ready) take the same way: [`Feed::order`](feed::Feed::order), then `Session::command`. The
//! window loop (`window::run`) owns window, clock and files around the first two; a script or a test calls
//! `WindowStage` without it.

pub mod feed;
pub mod rehearsal;
pub mod say;
mod scene;
pub mod stop;
pub mod summary;
pub mod terminal;
pub mod time;
pub mod window;
