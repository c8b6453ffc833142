//! Chapter 10: playing alone. No server process, no ticket, no network.
//!
//! Single-player, a tutorial and an author's test need no server process, no ticket and no network. [`Local`](twinstep_local::Local) plays the
//! match and its players on the caller's thread. The state, the rules, the resolver and the referee are those of your
//! server, and the session is that of your client: so the code that draws does not know the difference. This is the
//! README's game, alone (its rules are not repeated here):
//!
//! ```
//! # use std::hash::{BuildHasher, RandomState};
//! # use std::{sync::Arc, time::Duration};
//! # use serde::{Deserialize, Serialize};
//! use twinstep_client::prelude::*;
//! use twinstep_core::prelude::*;
//! use twinstep_local::Local;
//! use twinstep_server::prelude::*;
//! #
//! # #[derive(Clone, Default, Serialize, Deserialize)]
//! # struct Race {
//! #     pawns: Table<PlayerId, Pawn>,
//! # }
//! #
//! # #[derive(Clone, Default, Serialize, Deserialize)]
//! # struct Pawn {
//! #     square: u32,
//! #     throws: u32,
//! #     pressed: bool,
//! # }
//! #
//! # #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
//! # struct Moved {
//! #     player: PlayerId,
//! #     square: u32,
//! # }
//! #
//! # impl Simulation for Race {
//! #     const NAME: &'static str = "race";
//! #     const VERSION: u32 = 1;
//! #     type Rules = ();
//! #     type Input = u8; // 1 while the button is down
//! #     type Command = Never;
//! #     type Query = PlayerId; // whose die?
//! #     type Outcome = u32; // what it shows
//! #     type Cue = Moved;
//! #
//! #     fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
//! #         for (player, _) in frame.roster() {
//! #             self.pawns.get_or_insert_with(player, Pawn::default);
//! #         }
//! #         for (key, &player, face) in frame.outcomes() {
//! #             let pawn = self.pawns.get_mut(&player).expect("its player joined");
//! #             pawn.square += face.unwrap_or(&0);
//! #             let square = pawn.square;
//! #             fx.cue(key, Moved { player, square });
//! #         }
//! #         for (player, &button) in frame.inputs() {
//! #             let pawn = self.pawns.get_mut(&player).expect("its player joined");
//! #             if button == 1 && !pawn.pressed {
//! #                 fx.ask(Key::player(player, pawn.throws), player);
//! #                 pawn.throws += 1;
//! #             }
//! #             pawn.pressed = button == 1;
//! #         }
//! #     }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let die = |_: &HookContext<'_, Race>, _: Key, _: &PlayerId| {
//!     Decision::Now(RandomState::new().hash_one("die") as u32 % 6 + 1)
//! };
//! let config = SessionConfig::new(Arc::new(())).start(Race::default());
//! let mut game = Local::action(Race::default(), ()).resolver(die).play(config)?;
//! for frame in 0..300 {
//!     let now = Duration::from_millis(16) * frame; // of your engine's clock
//!     let button = u8::from(now.subsec_millis() < 500);
//!     game.advance_at(now, |_client, _seat| button)?;
//!     draw(game.session_mut(0));
//! }
//!
//! /// The same for `client.session_mut()` of a networked client.
//! fn draw(session: &mut Session<Race>) {
//!     while let Some(event) = session.poll_cue() {
//!         println!("{:?}", event.kind);
//!     }
//! }
//! # let pawns = &game.server().world().sim().pawns;
//! # assert!(pawns.iter().all(|(_, pawn)| pawn.throws == 5 && pawn.square >= 5));
//! # Ok(())
//! # }
//! ```
//!
//! | call | what it does |
//! |---|---|
//! | [`seats`](twinstep_local::Local::seats) | so many players at one screen |
//! | [`join`](twinstep_local::LocalGame::join) | one more client in this process |
//! | [`pause`](twinstep_local::LocalGame::pause), [`resume`](twinstep_local::LocalGame::resume) | nothing happens meanwhile, to the tick |
//! | [`step`](twinstep_local::LocalGame::step) | exactly one tick of a paused game |
//! | [`set_time_scale`](twinstep_local::LocalGame::set_time_scale) | slow motion and fast forward, 0.25 to 4 |
//! | [`server`](twinstep_local::LocalGame::server) | the match: its world, digest and counters |
//!
//! `input` cannot look at the game, which is borrowed. What depends on the state (a bot, a mouse that aims) looks first:
//!
//! ```text
//! let seen = game.session(0).prediction().expect("it plays");
//! let held = aim(seen.sim(), game.session(0).seats()[0], mouse);
//! game.advance_at(now, |_client, _seat| held)?;
//! ```
//!
//! A panic of your step is an error of [`advance_at`](twinstep_local::LocalGame::advance_at), with its words. A job of the resolver
//! is done at once. A game that is only played alone needs `twinstep-core`, `twinstep-client` with `default-features = false`
//! (its default brings UDP and encryption), and `twinstep-local`: no tokio, no
//! physics engine and no socket come with them.
//!
//! Back to [the overview](super).
