//! Chapter 5: commands, and strategy games in lockstep.
//!
//! # Orders instead of controls
//!
//! An input is a state that is repeated or guessed while it is missing; a *command* happens exactly once, in one tick, in the
//! order in which its player gave it, however often the line breaks. Doors, purchases, spells and troops are commands.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use twinstep_core::testing::Solo;
//! use twinstep_core::{Effects, Frame, Never, PlayerId, Simulation, Table};
//!
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Realm {
//!     towns: Table<u16, Town>,
//! }
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Town {
//!     owner: PlayerId,
//!     troops: u32,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
//! enum Order {
//!     Found { town: u16 },
//!     March { from: u16, to: u16, troops: u32 },
//! }
//!
//! impl Simulation for Realm {
//!     const NAME: &'static str = "realm";
//!     const VERSION: u32 = 1;
//!     type Rules = ();
//!     type Input = (); // no controls
//!     type Command = Order;
//!     type Query = Never;
//!     type Outcome = Never;
//!     type Cue = Never;
//!
//!     fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
//!         for (player, order) in frame.commands() {
//!             match *order {
//!                 Order::Found { town } => {
//!                     self.towns.get_or_insert_with(town, || Town { owner: player, troops: 10 });
//!                 }
//!                 Order::March { from, to, troops } => {
//!                     // It was possible when it was given; look again, for this is a round trip later.
//!                     let Some(town) = self.towns.get_mut(&from).filter(|t| t.owner == player) else {
//!                         continue;
//!                     };
//!                     let sent = troops.min(town.troops);
//!                     town.troops -= sent;
//!                     if let Some(town) = self.towns.get_mut(&to) {
//!                         town.troops += sent;
//!                     }
//!                 }
//!             }
//!         }
//!     }
//! }
//!
//! let anna = PlayerId(0);
//! let mut realm = Solo::new(Realm::default(), ());
//! realm.join(anna).step();
//! realm.command(anna, Order::Found { town: 1 }).command(anna, Order::Found { town: 2 }).step();
//! realm.command(anna, Order::March { from: 1, to: 2, troops: 4 }).step();
//! assert_eq!(realm.sim().towns.get(&2).unwrap().troops, 14);
//! ```
//!
//! Give one by [`client.session_mut().command(seat, order)`](twinstep_client::Session::command). At most 20 a second and 64 on their
//! way for each player, 128 bytes each; more is an error at once, and nothing is lost. The server's
//! [`Referee`](twinstep_server::Referee) may refuse one; whatever is admitted runs. Its player hears of a refusal by
//! `Event::CommandRefused`, with the number that [`Admission::Refused`](twinstep_server::Admission::Refused) gave: an index into reasons
//! that both sides of your game know.
//!
//! # Lockstep
//!
//! `Server::strategy(..)` instead of `Server::action(..)` is the whole change. Clients then show the authority alone: an order
//! given in turn n runs in turn n + 2 for everybody, some 300 ms later with turns of 150 ms. No guesses, no rebuilds, no
//! corrections, any cost of a step up to the tick, and a state of megabytes. The price is the delay, and a match that waits
//! for who is late: [`SealWhen::WaitForAll`](twinstep_server::config::SealWhen) removes a player after 20 s.
//!
//! | choose | if |
//! |---|---|
//! | prediction (`action`) | players steer something: an avatar, a car, a cursor that others see |
//! | lockstep (`strategy`) | players order things about: troops, factories, cards |
//! | prediction with commands | both: a hero is steered, its spells are commands |
//!
//! Answer a click at once all the same: a sound, a marker on the ground, drawn by the client itself until the order has run.
//! That hides 300 ms well.
//!
//! Next: [tests](super::testing).
