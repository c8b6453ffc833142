//! Chapter 9: what a fighting game, a racing game or a Bevy game would choose.
//!
//! # By genre
//!
//! | game | preset | then |
//! |---|---|---|
//! | co-op shooter, twin-stick, platformer | [`action`](twinstep_server::MatchConfig::action) | announcements ahead (the default), claims for deaths |
//! | fighting game, 2 players | `action` | an input delay of 2 or 3 ticks: most ticks are then known when they are played, and guesses are rare; turns of 1 tick; [`Announce::Ahead`](twinstep_server::config::Announce) only among friends |
//! | racing | `action` | steering in few steps: a guess counts only if it is the very value. What is held is guessed to be held on; cars accelerate slowly, so a wrong guess moves them little. A [guess](twinstep_client::SessionConfig::guess) of your own (`session(..).guess(..)` in an arena) may cost more rebuilds than it saves: look at `by_input` |
//! | party game, many at one screen | `action` | tickets with up to 4 seats |
//! | real-time strategy, automation | [`strategy`](twinstep_server::MatchConfig::strategy) | longer turns on bad lines: [`TurnLength::Adaptive`](twinstep_server::config::TurnLength) |
//! | turn-based, card game | `strategy` | ticks of 100 ms to 1 s; nearly nothing is sent while nobody moves |
//! | competitive, secrets matter | none | each client has the whole state; choose a server that sends views |
//!
//! ```
//! use twinstep_server::MatchConfig;
//! use twinstep_server::config::TurnLength;
//!
//! // Two fighters: three ticks of delay, as arcade boards have them, and the shortest turns.
//! let duel = MatchConfig {
//!     players_max: 2,
//!     delay_ticks: 3,
//!     turn: TurnLength::Fixed(1),
//!     ..MatchConfig::action()
//! };
//! assert!(duel.check().is_ok());
//! ```
//!
//! # By engine
//!
//! The simulation is a plain Rust type; the engine draws it. In every engine the frame has the same four lines: `advance` with
//! the inputs, cues to sounds, events to messages, [`shown`](twinstep_client::Session::shown) to sprites.
//!
//! | engine | where |
//! |---|---|
//! | Bevy | `twinstep_client::Client` is `Send + Sync`: a resource. Call `advance` in one system in `Update`, not in `FixedUpdate`: it has its own ticks. Spawn, move and despawn sprites by an `EntityMap` (below) whose spawner holds `Commands`. Do not put the simulation into ECS components: its order of iteration is not part of the state |
//! | macroquad, miniquad, winit loops | call it in the loop; `powderkeg-view` is an example |
//! | Godot, Unreal, Unity by FFI | wrap `Client` behind six C functions; its `advance_at` takes the engine's own clock |
//! | no engine, a terminal | `demo/view/src/terminal` |
//!
//! [`EntityMap`](twinstep_client::EntityMap) tells your engine what appears, moves and vanishes, also where a rebuild
//! takes back what was predicted:
//!
//! ```
//! use twinstep_client::prelude::*;
//! # #[derive(Clone, Copy, PartialEq, Debug)]
//! # struct Entity(usize);
//! # #[derive(Default)]
//! # struct Commands(Vec<Option<[f32; 2]>>);
//! # impl Commands {
//! #     fn spawn(&mut self, at: [f32; 2]) -> Entity { self.0.push(Some(at)); Entity(self.0.len() - 1) }
//! #     fn set(&mut self, entity: Entity, at: [f32; 2]) { self.0[entity.0] = Some(at) }
//! #     fn despawn(&mut self, entity: Entity) { self.0[entity.0] = None }
//! # }
//!
//! struct Sprites<'a>(&'a mut Commands);
//!
//! impl Spawner<u8, [f32; 2]> for Sprites<'_> {
//!     type Entity = Entity;
//!     fn spawn(&mut self, _: u8, at: [f32; 2]) -> Entity { self.0.spawn(at) }
//!     fn place(&mut self, _: u8, entity: &mut Entity, at: [f32; 2]) { self.0.set(*entity, at) }
//!     fn despawn(&mut self, _: u8, entity: Entity) { self.0.despawn(entity) }
//! }
//!
//! # let mut commands = Commands::default();
//! # let (mut map, shown) = (EntityMap::default(), [(1, [0.0, 0.0])]);
//! // In each frame, with `client.session().shown()`:
//! map.show(shown, &mut Sprites(&mut commands));
//! # assert_eq!(map.get(1), Some(&Entity(0)));
//! # map.show([], &mut Sprites(&mut commands));
//! # assert_eq!(commands.0, [None]);
//! ```
//!
//! Next: [playing alone](super::alone).
