//! Chapter 6: tests. By hand, for what would desync, over a bad network.
//!
//! | what | how | costs |
//! |---|---|---|
//! | does my step do what I mean? | [`Solo`](twinstep_core::testing::Solo): join, hold, step, look | microseconds |
//! | is my step sound? | `check(start, rules, script)` of the crate `twinstep-testing` | seconds |
//! | does it hold over a bad network? | `arena(start, rules, script)` of the same crate | a second for a minute of play, if dependencies are optimised |
//! | my own world | [`Match`](twinstep_server::Match), [`Session`](twinstep_client::Session) and [`simnet`](twinstep_client::simnet) by hand: all take `now` as an argument | yours |
//!
//! ```
//! use twinstep_core::PlayerId;
//! use twinstep_core::testing::Solo;
//! use twinstep_core::testing::doc::Counter; // your simulation
//!
//! let mut game = Solo::new(Counter::default(), ());
//! game.join(PlayerId(0)).hold(PlayerId(0), 3).step();
//! assert_eq!(game.sim().total, 3);
//! ```
//!
//! The page of `twinstep-testing` is the chapter on the other two: scripts, what each run finds, a table of 34 planted bugs
//! and the words in which each is found.
//!
//! ```text
//! // Runs the step in a dozen ways that must agree, and names the first fault: tick, fields, kind, advice.
//! check(Race::default(), (), Script::inputs([0, 1])).unwrap();
//! // Four real sessions, a real match and a bad network, in virtual time: does everybody agree, is nothing lost?
//! arena(Race::default(), (), Script::inputs([0, 1])).players(4).link("bad").seed(7).seconds(60).run().unwrap();
//! ```
//!
//! A fault reads like this:
//!
//! ```text
//! t11: a field of the state is lost by serde
//!   seen: a step != the step of the same state as it came back from its bytes
//!   sim.shots: 1 != 2
//!   advice: remove `#[serde(skip)]`: who joins late, returns or is healed gets the state by serde; ...
//!   again: TWINSTEP_SEED=1 TWINSTEP_TICKS=600 cargo test -p race my_game_is_sound -- --exact
//! ```
//!
//! A client checks your step in play too. With `SessionConfig::verify`, the default of debug builds, it compares each
//! prediction that was kept with the truth, and panics with the fields that differ. Without it, it steps one confirmed tick of
//! 64 twice (of a large world, of up to 1,024), and `Event::StepFault` reports a step with two results for one frame.
//!
//! Look at rebuilds, not only at equality: a bad guess heals itself and shows in no comparison. On a perfect link each
//! has a cause that you can name: another player's input changed, an answer or a command came, somebody joined.
//! `Played.clients[..].timeline` counts them by cause (`by_input`, `by_outcome` and so on). Four players who turn often cost eight
//! to ten a second there; players who hold still cost none.
//!
//! A match that went wrong in play is a test as well: its journal is the replay. [`twinstep_server::replay`] plays it from any
//! tick on and compares every digest.
//!
//! Next: [reading a desync report](super::desync).
