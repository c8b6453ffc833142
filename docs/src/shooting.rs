//! Chapter 2: moving and shooting, with prediction and a smooth picture.
//!
//! # What the prediction does for you
//!
//! A client has two copies of the state. The *authority* has what the server confirmed, a round trip ago. The *prediction*
//! is what you draw: it has run ahead with your own inputs, so your ship turns in the frame in which you press the key. What
//! other players hold is not known yet for these ticks; it is guessed, and the guess is that they go on. A wrong guess is
//! found when the truth comes, and the prediction is rebuilt in the same call: a copy of the authority, stepped to now.
//!
//! You write nothing for that. It costs you two things: a step that is cheap enough to run some 10 to 20 times in a frame
//! ([sizes and costs](super::costs)), and a picture that does not jump when a rebuild moves something.
//!
//! # The picture
//!
//! Draw from [`Session::shown`](twinstep_client::Session::shown), not from the state: it interpolates between ticks, so
//! that 144 frames a second look smooth over 60 ticks, and lets corrections fade. Tell it the pose of each entity, under a
//! name that the entity keeps for life:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use glam::{Vec2, vec2};
//! use serde::{Deserialize, Serialize};
//! use twinstep_client::{Smoothing, show_with};
//! use twinstep_client::{Poses, SessionConfig};
//! use twinstep_core::{Effects, Frame, Key, Never, PlayerId, Simulation, Table, Tick};
//!
//! const FIRE: u8 = 1 << 4;
//!
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Arena {
//!     ships: Table<PlayerId, Ship>,
//!     shots: Vec<Shot>,
//! }
//!
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Ship {
//!     at: Vec2,
//!     fired: u32,
//!     cooldown: u8,
//!     hits: u32,
//! }
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Shot {
//!     owner: PlayerId,
//!     n: u32, // the owner's how many-eth: with the owner, a name for life
//!     born: Tick,
//!     at: Vec2,
//! }
//!
//! impl Simulation for Arena {
//!     const NAME: &'static str = "arena";
//!     const VERSION: u32 = 1;
//!     type Rules = ();
//!     type Input = u8; // four directions and fire, as bits
//!     type Command = Never;
//!     type Query = Never;
//!     type Outcome = Never;
//!     type Cue = PlayerId; // hit
//!
//!     fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
//!         for (player, &held) in frame.inputs() {
//!             let ship = self.ships.get_or_insert_with(player, Ship::default);
//!             let bit = |n: u8| f32::from(held >> n & 1);
//!             ship.at += vec2(bit(0) - bit(1), bit(2) - bit(3)) * 0.2;
//!             ship.cooldown = ship.cooldown.saturating_sub(1);
//!             if held & FIRE != 0 && ship.cooldown == 0 {
//!                 ship.cooldown = 10;
//!                 ship.fired += 1;
//!                 self.shots.push(Shot { owner: player, n: ship.fired, born: frame.tick(), at: ship.at });
//!             }
//!         }
//!         let ships = &mut self.ships;
//!         self.shots.retain_mut(|shot| {
//!             shot.at.x += 0.5;
//!             let hit = ships
//!                 .iter()
//!                 .find(|(player, ship)| **player != shot.owner && ship.at.distance(shot.at) < 0.5)
//!                 .map(|(player, _)| *player);
//!             let Some(hit) = hit else {
//!                 return shot.at.x < 100.0;
//!             };
//!             if frame.is_ghost(shot.owner, shot.born) {
//!                 fx.withhold(); // this screen only guesses that it was fired: it does no harm yet
//!                 return true;
//!             }
//!             ships.get_mut(&hit).expect("it was found").hits += 1;
//!             fx.cue(Key::player(shot.owner, shot.n), hit);
//!             false
//!         });
//!     }
//! }
//!
//! #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
//! enum Name {
//!     Ship(PlayerId),
//!     Shot(PlayerId, u32),
//! }
//!
//! let show = show_with(|arena: &Arena, out: &mut Poses<Name, Vec2>| {
//!     for (player, ship) in &arena.ships {
//!         out.put_player(*player, Name::Ship(*player), ship.at); // the own one: from the newest tick
//!     }
//!     for shot in &arena.shots {
//!         let name = Name::Shot(shot.owner, shot.n);
//!         match arena.ships.get(&shot.owner) {
//!             // One's own flies at once.
//!             _ if out.is_local(shot.owner) => out.put_local(name, shot.at),
//!             // Another one's appears when it is known, at the muzzle that this screen shows, and glides onto its path.
//!             Some(ship) if out.known().covers(shot.owner, shot.born) => {
//!                 out.put_from(name, shot.at, Name::Ship(shot.owner), ship.at);
//!             }
//!             _ => {}
//!         }
//!     }
//! });
//! let smoothing = Smoothing::new(8.0, Duration::from_millis(100));
//! let config = SessionConfig::<Arena>::new(Arc::new(())).show(show, smoothing);
//!
//! # use twinstep_core::testing::Solo;
//! # let mut game = Solo::new(Arena::default(), ());
//! # game.join(PlayerId(0)).join(PlayerId(1)).hold(PlayerId(1), 1).run(20);
//! # game.hold(PlayerId(1), 0).hold(PlayerId(0), FIRE).run(30);
//! # assert!(game.sim().ships.get(&PlayerId(1)).unwrap().hits > 0);
//! # assert!(twinstep_client::Session::new(config).is_ok());
//! ```
//!
//! Then, in the frame: `for (name, at) in client.session().shown() { draw(name, at) }`. Colours, bars and numbers come from
//! the state, [`Session::prediction`](twinstep_client::Session::prediction). A pose is anything that implements
//! [`Pose`](twinstep_client::Pose): numbers, arrays of numbers (so any engine's
//! vectors), `Vec2`, [`Angle`](twinstep_client::Angle), pairs of a place and what goes with it, or a type of your own.
//!
//! | if this happens | then |
//! |---|---|
//! | something moves far in one tick by design | give it another name after the move (a life, a counter), or a smaller `teleport`: it is not smeared over the screen |
//! | a correction looks like rubber | look at [`SessionStats::pdiff_moved_p95`](twinstep_client::SessionStats): mostly others who turned. Let your ships accelerate: a guess is then wrong by less |
//! | a shot of another player hits, and then did not | it was a guess that hit: hold it back, see below |
//!
//! # Shots of other players
//!
//! A bullet that another player fires is known here some ticks after it was fired. Until then a prediction may have guessed
//! it, or not. [`Frame::is_ghost`](twinstep_core::Frame::is_ghost) says of a shot whether this screen only guesses it; a ghost
//! does no damage here. The step above holds the hit back and says so by
//! [`withhold`](twinstep_core::Effects::withhold). The rule: **whenever the *state* after the step would differ between the
//! prediction and the authority, call `withhold` in that tick.** The tick counts as guessed wrongly then, and is rebuilt when
//! the truth comes. Without it the two copies drift apart silently; a debug build panics with the field's name, and `check`
//! of the crate `twinstep-testing` finds it before.
//!
//! # Sounds and flashes
//!
//! [`Effects::cue`](twinstep_core::Effects::cue) takes a key, made from the cause. Whatever is rebuilt, a cue is started
//! once, then confirmed, or cancelled if it did not happen: a sound may play at once, a fanfare waits for `Confirmed`
//! ([`cue_when_confirmed`](twinstep_core::Effects::cue_when_confirmed)). The value counts as well as the key: a cue that comes with
//! another value after a rebuild is another cue, so the first one is cancelled. Put into it who and what, and take the place from
//! what is [shown](twinstep_client::Session::shown).
//!
//! Next: [what the simulation may not decide itself](super::asking).
