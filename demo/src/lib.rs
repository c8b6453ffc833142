//! *Powderkeg*: a top-down co-op shooter, and the example that games built on Twinstep begin with.
//!
//! | module | what is in it |
//! |---|---|
//! | [`game`] | the whole game as a state and a step, without network, clock or screen |
//! | [`game_show`] | its poses, as the client's picture wants them |
//! | [`feed`] | what a view draws from: a match that is played, or one that was |
//! | [`rehearsal`] | a whole match in one process and virtual time |
//! | [`wiring`] | how server and clients are put together from it |
//! | [`view`], [`terminal`], [`window`] | where a match is shown; the views on a terminal and in a window |
//! | [`bots`], [`report`] | players made of numbers over real UDP, and what was measured |
//! | [`cli`], [`play`], [`serve`], `host`, `replay`, `say`, `stop` | the command line |
//! | [`skirmish`] | a second, tiny game: strategy in lockstep, played by `examples/skirmish.rs` |

mod args;
pub mod bots;
pub mod cli;
pub mod failure;
pub mod feed;
pub mod game;
pub mod game_show;
mod host;
mod journal;
mod log;
pub mod play;
mod policies;
pub mod rehearsal;
mod replay;
pub mod report;
pub mod say;
pub mod serve;
mod signals;
pub mod skirmish;
mod stop;
pub mod summary;
pub mod terminal;
pub mod view;
pub mod window;
pub mod wiring;
