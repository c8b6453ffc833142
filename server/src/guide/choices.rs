//! Chapter 9: what a fighting game, a racing game or a Bevy game would choose.
//!
//! # By genre
//!
//! | game | preset | then |
//! |---|---|---|
//! | co-op shooter, twin-stick, platformer | [`action`](crate::MatchConfig::action) | announcements ahead (the default), claims for deaths |
//! | fighting game, 2 players | `action` | an input delay of 2 or 3 ticks: most ticks are then known when they are played, and guesses are rare; turns of 1 tick; [`Announce::Ahead`](crate::config::Announce) only among friends |
//! | racing | `action` | a guess that steers on: cars accelerate slowly, so a wrong guess moves them little |
//! | party game, many at one screen | `action` | tickets with up to 4 seats |
//! | real-time strategy, automation | [`strategy`](crate::MatchConfig::strategy) | longer turns on bad lines: [`TurnLength::Adaptive`](crate::config::TurnLength) |
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
//! | Bevy | `twinstep_client::Client` is `Send + Sync`: a resource. Call `advance` in one system in `Update`, not in `FixedUpdate`: it has its own ticks. Spawn, move and despawn sprites by the names that `shown` gives, with a map from name to `Entity`. Do not put the simulation into ECS components: its order of iteration is not part of the state |
//! | macroquad, miniquad, winit loops | call it in the loop; `powderkeg-view` is an example |
//! | Godot, Unreal, Unity by FFI | wrap `Client` behind six C functions; its `advance_at` takes the engine's own clock |
//! | no engine, a terminal | `demo/examples/skirmish` |
//!
//! ```
//! # use std::collections::BTreeMap;
//! # type Entity = u32;
//! # fn spawn(_: [f32; 2]) -> Entity { 0 }
//! # fn place(_: Entity, _: [f32; 2]) {}
//! # fn despawn(_: Entity) {}
//! /// What an engine does in each frame with the names and poses of `shown`: appear, move, vanish.
//! fn sync<K: Ord + Copy>(sprites: &mut BTreeMap<K, Entity>, shown: impl Iterator<Item = (K, [f32; 2])>) {
//!     let mut now = BTreeMap::new();
//!     for (name, at) in shown {
//!         let entity = sprites.remove(&name).unwrap_or_else(|| spawn(at));
//!         place(entity, at);
//!         now.insert(name, entity);
//!     }
//!     std::mem::replace(sprites, now).into_values().for_each(despawn);
//! }
//! # let mut sprites = BTreeMap::new();
//! # sync(&mut sprites, [(1_u8, [0.0, 0.0])].into_iter());
//! # assert_eq!(sprites.len(), 1);
//! ```
//!
//! Next: [playing alone](super::alone).
