//! The guide for authors: from a step to a match that runs. Each chapter is short and links to the details.
//!
//! | chapter | what it answers |
//! |---|---|
//! | [The five types](#the-five-types) | what goes into a step, and what comes out |
//! | [A deterministic step](#a-deterministic-step) | what a step may not do, and what to use instead |
//! | [Action or strategy](#action-or-strategy) | whether clients predict |
//! | [Policies](#policies) | what can be chosen for each match |
//! | [One bad link](#one-bad-link) | what a policy does to the player on that link, and to the others |
//! | [The server](#the-server) | who answers queries, who admits orders, what is kept |
//! | [The client](#the-client) | the loop, guesses, pictures, sounds, reconnects |
//! | [Play alone: no server process](#play-alone-no-server-process) | single-player and tutorials, with pause and slow motion |
//! | [Tests](#tests) | how to test a game: by hand, for what would desync it, over a bad network |
//!
//! Each crate has a prelude: [`twinstep_core::prelude`] for the rules of a game, `twinstep_client::prelude` and
//! [`twinstep_server::prelude`](crate::prelude) for what is around them.
//!
//! The shortest whole game is `demo/examples/tiny.rs`; the README shows it. Powderkeg (`demo/game/src`) is an action game
//! with prediction. Skirmish (`demo/game/src/skirmish`) is a strategy game in lockstep, small enough to copy.
//!
//! # The five types
//!
//! A game is a [`Simulation`]: a state with one method, [`step`](twinstep_core::Simulation::step). The associated types
//! say what goes in and what comes out:
//!
//! | type | what it is | when it counts |
//! |---|---|---|
//! | [`Input`](twinstep_core::Simulation::Input) | what a player holds, at most 16 bytes | every tick; it is repeated or guessed while it is missing |
//! | [`Command`](twinstep_core::Simulation::Command) | an order, at most 128 bytes | exactly once, in one tick; its owner hears if it is refused |
//! | [`Query`](twinstep_core::Simulation::Query) | a question that two machines could answer differently | the step asks it with [`ask`](twinstep_core::Effects::ask) |
//! | [`Outcome`](twinstep_core::Simulation::Outcome) | the server's answer, at most 256 bytes | once, in a later frame; `None` if no answer came in time |
//! | [`Cue`](twinstep_core::Simulation::Cue) | a sound or a flash | it starts once and is then confirmed or cancelled |
//!
//! [`Rules`](twinstep_core::Simulation::Rules) is the read-only content: levels and tuning. It is never sent; the
//! handshake compares its digest. A game that does not need one of the types writes [`Never`](twinstep_core::Never) in
//! its place. A game without controls writes `()` as its input.
//!
//! An input is state, not transition: "fire is down", not "fire was pressed". So the step finds the press itself, by
//! comparing with the input that it kept.
//!
//! A *claim* is a command that the simulation gives for a local player, in that player's own prediction ("I died"): see
//! [`Effects::claim`]. What a player sees on its own screen then decides, within what the server's referee admits.
//!
//! # A deterministic step
//!
//! [`step`](twinstep_core::Simulation::step) is a function of the state, the rules and the frame. It reads no clock, no
//! file, no random generator of the system and no map in hash order.
//!
//! | instead of | use |
//! |---|---|
//! | a system generator | [`Mwc`](twinstep_core::Mwc), as a part of the state, forked by [`Key`](twinstep_core::Key) |
//! | real chance, a physics engine, a database | a query: the server answers it |
//! | `HashMap`, `HashSet` | [`Table`](twinstep_core::Table), `BTreeMap`, or a `Vec` by index |
//! | `f32::sin` and its kin | the crate `libm`: the same bits on every machine |
//! | a countdown in each entity | [`Schedule`](twinstep_core::Schedule): entities that sleep cost nothing |
//! | a shared counter for ids | [`Key`](twinstep_core::Key), derived from the cause |
//!
//! A file of lints for clippy bans the usual suspects, and says what to use instead: copy
//! `tests/testing/lints/clippy.toml` beside your game. Raise [`VERSION`](twinstep_core::Simulation::VERSION)
//! whenever `step` changes its results.
//!
//! How long a tick takes is no input of a step: a match may slow its ticks, and is replayed at any speed. Count in ticks; what
//! depends on seconds takes the tick's length from the rules.
//!
//! After a wrong guess a client clones its authority into the prediction. A derived `Clone` allocates all lists anew then;
//! [`clone_fields!`](twinstep_core::clone_fields) writes one that keeps their buffers.
//!
//! A prediction may hold an effect back while its cause is not confirmed: a bullet of another player that is only guessed
//! should not kill ([`Frame::is_ghost`]). A step that does so must call [`Effects::withhold`], so that the tick is rebuilt
//! when it is confirmed.
//!
//! # Action or strategy
//!
//! The command delay is the one choice that shapes a game. It is fixed for the match.
//!
//! | | [`MatchConfig::action`] | [`MatchConfig::strategy`] |
//! |---|---|---|
//! | what a client shows | its prediction: own input at once | the authority alone |
//! | tick, turn | 1/60 s, 2 ticks | 50 ms, 3 ticks |
//! | command delay | 0 | 2 turns |
//! | if an input is late | the server fills it at the deadline | all wait; the player is removed after 20 s |
//! | inputs of others, told ahead | yes | no |
//!
//! Both play the same simulation, on the same server. The clients of an action game learn the truth a round trip later, and
//! rebuild where they guessed wrong. A lockstep game never guesses; it pays with the delay, and with pauses when a link is
//! worse than the delay covers.
//!
//! # Policies
//!
//! [`MatchConfig`] holds one enum or number for each policy. Begin with a preset and change what your game needs:
//!
//! ```
//! use twinstep_server::prelude::*;
//!
//! let policies = MatchConfig {
//!     turn: TurnLength::Adaptive { min: 1, max: 6 },
//!     claims: Claims::OwnerWithin(40),
//!     ..MatchConfig::action()
//! };
//! assert!(policies.check().is_ok());
//! ```
//!
//! | policy | choices | what it means |
//! |---|---|---|
//! | [`SealWhen`] | `Deadline` | a tick is sealed at its deadline, and the server fills missing inputs; nobody waits |
//! | | `WaitForAll` | a turn is sealed when everybody's commands are there; a player who is silent for too long is removed; needs a command delay |
//! | [`command_delay`] | 0 | clients predict |
//! | | 1 to 4 turns | lockstep: what is ordered in turn n runs in turn n + m |
//! | [`TurnLength`] | `Fixed`, 1 to 20 ticks | the server sends so many ticks at once |
//! | | `Adaptive` | it follows the round trip: longer after pauses, shorter after quiet |
//! | [`TickLength`] | `Fixed` | every tick takes as long, 1 ms to 1 s |
//! | | `Adaptive` | ticks get longer for all while one machine cannot keep up |
//! | [`Laggards`] | `Ignore` | a client that trails the match trails |
//! | | `Hold` | the match waits for it; bearable is at most 250 ms at once and 2 s a minute |
//! | | `Kick` | it is removed when it has trailed for too long |
//! | [`delay_ticks`] | 0 to 32 ticks | the input delay: more delay, fewer wrong guesses; not with a command delay |
//! | [`AnsweredBy`] | `Server` | the server answers every query |
//! | | `Owner` | the client of the player who caused the query answers it, and the server checks the answer |
//! | [`Claims`] | `OwnerOnly` | the player's own screen decides what the player claims, such as its death |
//! | | `OwnerWithin` | the same; if no claim comes, the server decides so many ticks later |
//! | [`Announce`] | `Ahead` | the server passes inputs on before their tick: fewer wrong guesses; for co-op games only |
//! | | `Never` | inputs are told with their frame only |
//! | [`Spectators`] | live, up to 16 | they watch the match as it is played |
//! | | 3 to 15 s behind, up to 512 | at 60 Hz; the delay is given in ticks, 180 to 900 |
//!
//! [`MatchConfig::check`] says which value is out of range. [`Match::reconfigure`](crate::Match::reconfigure) changes a
//! running match: lengths and delays from the next turn on, all else at once. Fixed for the match are the command delay,
//! the first tick, the number of seats, who answers queries, and the spectators.
//!
//! Waiting is bounded, however it is chosen: a player who made the others wait for 20 s within a minute is removed, and
//! returning does not reset that. `powderkeg serve` has a flag for each policy, and `powderkeg bots`
//! for all but the spectators: so you can feel or measure a policy before you choose it.
//!
//! # One bad link
//!
//! What does one bad link do to its player, and to the others? Four clients play on a LAN. For 20 s one of them gets 200 ms
//! of round trip, 50 ms of jitter and 5 % of loss. These are the numbers of those 20 s:
//!
//! | | late turns | picture stood still | own input confirmed after | a player on the LAN |
//! |---|--:|--:|--:|---|
//! | action preset: prediction, deadlines | 3 | 0 ms | 321 ms | 0 late, 0 ms, 67 ms |
//! | strategy preset: waiting for all, m = 2, turns of 150 ms | 7 | 165 ms | 303 ms | 0 late, 0 ms, 301 ms |
//!
//! With prediction the own input is in the picture at once, long before it is confirmed. The table for every policy is
//! `tests/golden/policies.txt`; a test makes it in virtual time.
//!
//! # The server
//!
//! [`host::Server`](crate::host::Server) runs one match on threads of its own; [`host::Host`](crate::host::Host) runs
//! many on one socket, within a tokio runtime. [`Match`](crate::Match) alone is the state machine, without clock or
//! socket.
//!
//! | you give | what it decides |
//! |---|---|
//! | a [`Resolver`](crate::Resolver) | the outcome of a query: now, by a job on another thread, or not at all |
//! | a [`Referee`](crate::Referee) | whether a command, a claim or a client's answer is admitted |
//! | a journal file | the match is written turn by turn; after a crash it can be [resumed](crate::host::Server::resume) |
//! | an admin port | operators see the matches, and hand a running match over to another process |
//!
//! A query without an answer gets `None` after 2 s or 120 ticks, whichever is longer. A resolver that must look at
//! positions can ask [`physics`](crate::physics): areas, rays and casts over positions that the simulation owns.
//!
//! The journal is the replay: [`twinstep_core::replay`] plays it from any tick on and compares every digest. By default
//! it survives the end of the process, however that ends; [`Durability::Power`](crate::host::Durability::Power) makes it
//! survive a loss of power, and costs a wait for the disk in every turn.
//!
//! If a step panics or brings a NaN about, the server seals the tick again without the order, outcome or input that caused
//! it. The match plays on, and an [`Incident`](crate::Incident) says what happened.
//!
//! # The client
//!
//! `twinstep_client::Client` is a session on a transport, with a clock. Call `advance` once per drawn frame; it receives,
//! steps and sends. A game on an engine of its own clock calls `advance_at`. All that a client can be told stands in
//! `twinstep_client::SessionConfig`:
//!
//! | call | what it does |
//! |---|---|
//! | `start` | says what the match began with; see below |
//! | `guess` | guesses what other players hold while nothing is known; without it, their last input is repeated |
//! | `speculate` | guesses outcomes, so that a likely answer is shown at once |
//! | `resolve` | answers queries of own players, where [`AnsweredBy::Owner`] is chosen |
//! | `show` | says which poses to draw; the client interpolates them and lets corrections fade |
//! | `reconcile` | rebuilds predictions in the game's thread, or in the background |
//! | `names` | what the players at this screen want to be called |
//! | `recorded` | keeps what was confirmed, to be saved as a replay |
//!
//! `start` may be left out. A client that knows the first state of a match joins a young match by its frames alone: it
//! loads no world, as long as these frames are kept and are fewer bytes than the world. Any other client loads the world.
//!
//! Poll two queues after each `advance`. `poll_cue` gives sounds and flashes: started, then confirmed or cancelled.
//! `poll_event` gives news of the session: joined, a refused command, reconnecting, a desync with its fields.
//!
//! A client that loses its server reconnects by itself. `Client::keeping` gives you each newer ticket, so that a new
//! process can return to the same seat.
//!
//! A desync is healed in place: the client asks the server for its world. The report names each field that differs, with
//! both values.
//!
//! # Play alone: no server process
//!
//! Single-player, a tutorial and an author's test need no server process, no ticket and no network. [`Local`] plays the
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
//! let die = |_: &Look<'_, Race>, _: Key, _: &PlayerId| {
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
//! /// The same for `client.session` of a networked client.
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
//! | [`seats`](crate::local::Local::seats) | so many players at one screen |
//! | [`join`](crate::LocalGame::join) | one more client in this process |
//! | [`pause`](crate::LocalGame::pause), [`resume`](crate::LocalGame::resume) | nothing happens meanwhile, to the tick |
//! | [`step`](crate::LocalGame::step) | exactly one tick of a paused game |
//! | [`set_time_scale`](crate::LocalGame::set_time_scale) | slow motion and fast forward, 0.25 to 4 |
//! | [`server`](crate::LocalGame::server) | the match: its world, digest and counters |
//!
//! A panic of your step is an error of [`advance_at`](crate::LocalGame::advance_at), with its words. A job of the resolver
//! is done at once. A game that is only played alone takes this crate with the feature `local` alone: no tokio and no
//! physics engine come with it.
//!
//! # Tests
//!
//! [`Solo`](twinstep_core::testing::Solo) steps a state by hand, with no network in sight:
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
//! The crate `twinstep-testing` does the rest; add it to your `[dev-dependencies]`. Its page has the whole chapter, with a
//! table of 32 planted bugs and the words in which each is found.
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
//! Whoever wants more than an arena offers builds a world by hand: [`Match`](crate::Match) and `twinstep_client::Session`
//! take `now` as an argument, and [`twinstep_core::simnet`] is a bad network from a seed, so one seed is one run.
//!
//! A client also checks your step. With `SessionConfig::verify`, the default of debug builds, it
//! compares each prediction that was kept with the truth, and panics with the fields that differ. Without it, it steps
//! one confirmed tick of 64 twice, and `Event::StepFault` reports a step with two results for one frame.
//!
//! Look at rebuilds, not only at equality: a bad guess heals itself and shows in no comparison. On a perfect link there
//! should be none.
//!
//! [`Local`]: crate::local::Local
//! [`Simulation`]: twinstep_core::Simulation
//! [`Effects::claim`]: twinstep_core::Effects::claim
//! [`Effects::withhold`]: twinstep_core::Effects::withhold
//! [`Frame::is_ghost`]: twinstep_core::Frame::is_ghost
//! [`MatchConfig`]: crate::config::MatchConfig
//! [`MatchConfig::action`]: crate::config::MatchConfig::action
//! [`MatchConfig::strategy`]: crate::config::MatchConfig::strategy
//! [`MatchConfig::check`]: crate::config::MatchConfig::check
//! [`SealWhen`]: crate::config::SealWhen
//! [`TurnLength`]: crate::config::TurnLength
//! [`TickLength`]: crate::config::TickLength
//! [`Laggards`]: crate::config::Laggards
//! [`AnsweredBy`]: crate::config::AnsweredBy
//! [`AnsweredBy::Owner`]: crate::config::AnsweredBy::Owner
//! [`Claims`]: crate::config::Claims
//! [`Announce`]: crate::config::Announce
//! [`Spectators`]: crate::config::Spectators
//! [`command_delay`]: crate::config::MatchConfig::command_delay
//! [`delay_ticks`]: crate::config::MatchConfig::delay_ticks
