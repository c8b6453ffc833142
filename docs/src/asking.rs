//! Chapter 3: asking the server. Chance, physics, look-ups, claims.
//!
//! # Queries and outcomes
//!
//! A step is a pure function. What it cannot know (a real die, a physics engine's opinion, a row of a database) it *asks*,
//! and the answer comes as an entry of a later frame, on every machine the same:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use twinstep_core::testing::Solo;
//! use twinstep_core::{Effects, Frame, Key, Never, PlayerId, Simulation, Table};
//! use twinstep_server::{Decision, HookContext};
//!
//! /// Each player has one chest; opening it takes until the server says what is in it.
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Chests {
//!     chests: Table<PlayerId, Chest>,
//! }
//!
//! #[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
//! enum Chest {
//!     #[default]
//!     Closed,
//!     Opening,
//!     Open { gold: u16 },
//! }
//!
//! impl Simulation for Chests {
//!     const NAME: &'static str = "chests";
//!     const VERSION: u32 = 1;
//!     type Rules = ();
//!     type Input = u8;
//!     type Command = Never;
//!     type Query = PlayerId; // whose chest?
//!     type Outcome = u16; // so much gold
//!     type Cue = Never;
//!
//!     fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
//!         // Answers first: each question gets exactly one, `None` if nobody answered in time.
//!         for (_, owner, gold) in frame.outcomes() {
//!             if let Some(chest) = self.chests.get_mut(owner) {
//!                 *chest = gold.map_or(Chest::Closed, |gold| Chest::Open { gold: *gold });
//!             }
//!         }
//!         for (player, &held) in frame.inputs() {
//!             let chest = self.chests.get_or_insert_with(player, Chest::default);
//!             if held == 1 && *chest == Chest::Closed {
//!                 *chest = Chest::Opening;
//!                 fx.ask(Key::player(player, frame.tick().0), player);
//!             }
//!         }
//!     }
//! }
//!
//! // The server's side: called once a question, between two ticks; it may look at whatever it likes.
//! let _treasury = |look: &HookContext<'_, Chests>, _key: Key, _owner: &PlayerId| {
//!     let richest = 100 / look.sim().chests.len().max(1) as u16;
//!     Decision::Now(std::process::id() as u16 % richest)
//! };
//!
//! // In a test, you are the server.
//! let anna = PlayerId(0);
//! let mut game = Solo::new(Chests::default(), ());
//! game.join(anna).hold(anna, 1).step();
//! let key = game.effects().asks()[0].0;
//! game.run(5); // the answer is on its way
//! assert_eq!(game.sim().chests.get(&anna), Some(&Chest::Opening));
//! game.answer(key, 40).step();
//! assert_eq!(game.sim().chests.get(&anna), Some(&Chest::Open { gold: 40 }));
//! ```
//!
//! The *key* names the cause: the same cause, asked again by a rebuild or after a crash, has the same key, and is the same
//! question. So make it from what caused it, never from a counter that players share: in a wrong guess the counter has
//! another value, and the answer meets the wrong question. A thing that everybody moves, such as a ball, keeps a count for
//! each kind of its events and is a cause itself: `Key::new(GOAL, goals)`; a hit is named by who hit,
//! `Key::player(player, hits)`. Several kinds of events of one player are children: `Key::player(player, throws).child(THROW)`. Who
//! gets the number of a player who left may begin to count anew: a key must be unlike only those of the last seconds. An answer may come late: match it against what the query says.
//!
//! | the resolver returns | when |
//! |---|---|
//! | [`Decision::Now`](twinstep_server::Decision::Now) | it knows at once; it rides with the next tick. Take well under a millisecond |
//! | [`Decision::Later`](twinstep_server::Decision::Later) | a job for another thread: a database, a large search |
//! | [`Decision::Unanswered`](twinstep_server::Decision::Unanswered) | never: the step gets `None` at its deadline |
//!
//! A prediction does not know the answer until it comes: a round trip. [`speculate`](twinstep_client::SessionConfig::speculate)
//! guesses one for the prediction; a right guess costs nothing, a wrong one is rebuilt. Guess where the answer is nearly sure
//! (what the blast of a barrel hits), and show "opening ..." where it is not.
//!
//! Positions for area queries, rays and casts: [`physics`](twinstep_rapier2d) mirrors what your simulation owns into rapier2d
//! on the server alone, so that an engine whose results differ between machines may decide all the same.
//!
//! # Claims: what a player saw, counts
//!
//! In a co-op game it is unfair to die by what one's own screen did not show. A *claim* is a command that the simulation
//! gives for a local player in that player's own prediction: [`fx.claim(player, Command::IDied)`](twinstep_core::Effects::claim).
//! It changes nothing in its own tick; it comes back like any command, when the server's [`Referee`](twinstep_server::Referee) has
//! admitted it. So each player's death is decided on that player's screen, and the others see it a little later. With
//! [`Claims::OwnerWithin`](twinstep_server::config::Claims::OwnerWithin) the server decides for those who "forget" to die.
//!
//! # Holding back
//!
//! Where a prediction knows less than the truth, its step may do less: a guessed bullet does no harm. The state then differs
//! by phase, so the step must say [`withhold`](twinstep_core::Effects::withhold); [shooting](super::shooting) has the example.
//!
//! Next: [what a step may not do](super::determinism).
