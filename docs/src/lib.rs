//! The guide for authors: from a step to a match that runs. Read the chapters in their order, or come back to one.
//!
//! | chapter | what it answers |
//! |---|---|
//! | [1. Your first game](first_game) | a step, a server and a client; then two machines: keys, tickets, addresses, logs |
//! | [2. Moving and shooting](shooting) | what the prediction does, a smooth picture, shots of others, sounds |
//! | [3. Asking the server](asking) | chance, physics, look-ups; claims; holding back |
//! | [4. A deterministic step](determinism) | what a step may not do, and what to use instead |
//! | [5. Commands and lockstep](strategy) | orders that happen once; strategy games |
//! | [6. Tests](testing) | by hand, for what would desync it, over a bad network |
//! | [7. Reading a desync report](desync) | whose fault it is, and from the fields to the cause |
//! | [8. Sizes and costs](costs) | what fits, what it takes, what to measure |
//! | [9. Other genres and engines](choices) | what a fighting game or a Bevy game would choose |
//! | [10. Playing alone](alone) | no server process: single-player and tutorials, with pause and slow motion |
//! | [11. Operating a server](operating) | what it tells, what each alert means, what an operator can do |
//! | [12. Setting a server up](configuring) | flags, environment, a file; secrets, and how keys are changed |
//! | [13. From one machine to a fleet](fleet) | systemd, containers, Agones; another build; copies |
//!
//! | to look up | |
//! |---|---|
//! | [The five types](#the-five-types) | what goes into a step, and what comes out |
//! | [Action or strategy](#action-or-strategy) | whether clients predict |
//! | [Policies](#policies) | what can be chosen for each match |
//! | [One bad link](#one-bad-link) | what a policy does to the player on that link, and to the others |
//! | [The server](#the-server) | who answers queries, who admits orders, what is kept |
//! | [The client](#the-client) | the loop, guesses, pictures, sounds, reconnects |
//!
//! The shortest whole game is `demo/examples/tiny.rs`; the README shows it. Powderkeg (`demo/game`) is an action game
//! with prediction. `demo/examples/skirmish.rs` is a strategy game in lockstep, small enough to copy.
//!
//! Three crates have preludes: [`twinstep_core::prelude`] for the rules of a game, [`twinstep_client::prelude`] and
//! [`twinstep_host::prelude`] for the code around them.
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
//! use twinstep_host::prelude::*;
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
//! [`MatchConfig::check`] says which value is out of range. [`Match::reconfigure`](twinstep_server::Match::reconfigure) changes a
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
//! [`Server`](twinstep_host::Server) runs one match on threads of its own; [`Host`](twinstep_host::Host) runs
//! many on one socket, within a tokio runtime. [`Match`](twinstep_server::Match) alone is the state machine, without clock or
//! socket.
//!
//! | you give | what it decides |
//! |---|---|
//! | a [`Resolver`](twinstep_server::Resolver) | the outcome of a query: now, by a job on another thread, or not at all |
//! | a [`Referee`](twinstep_server::Referee) | whether a command, a claim or a client's answer is admitted |
//! | a journal file | the match is written turn by turn; after a crash it can be [resumed](twinstep_host::Server::resume) |
//! | an admin port | operators see the matches, kick and ban, and hand a running match over to another process: see [the chapter](operating) |
//!
//! A query without an answer gets `None` after 2 s or 120 ticks, whichever is longer. A resolver that must look at
//! positions can ask [`physics`](twinstep_rapier2d): areas, rays and casts over positions that the simulation owns.
//!
//! The journal is the replay: [`twinstep_server::replay`] plays it from any tick on and compares every digest. By default
//! it survives the end of the process, however that ends; [`Durability::Power`](twinstep_host::Durability::Power) makes it
//! survive a loss of power, and costs a wait for the disk in every turn.
//!
//! If a step panics or brings a NaN about, the server seals the tick again without the order, outcome or input that caused
//! it. The match plays on, and an [`Incident`](twinstep_server::Incident) says what happened.
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
//! [`Simulation`]: twinstep_core::Simulation
//! [`Effects::claim`]: twinstep_core::Effects::claim
//! [`MatchConfig`]: twinstep_server::config::MatchConfig
//! [`MatchConfig::action`]: twinstep_server::config::MatchConfig::action
//! [`MatchConfig::strategy`]: twinstep_server::config::MatchConfig::strategy
//! [`MatchConfig::check`]: twinstep_server::config::MatchConfig::check
//! [`SealWhen`]: twinstep_server::config::SealWhen
//! [`TurnLength`]: twinstep_server::config::TurnLength
//! [`TickLength`]: twinstep_server::config::TickLength
//! [`Laggards`]: twinstep_server::config::Laggards
//! [`AnsweredBy`]: twinstep_server::config::AnsweredBy
//! [`AnsweredBy::Owner`]: twinstep_server::config::AnsweredBy::Owner
//! [`Claims`]: twinstep_server::config::Claims
//! [`Announce`]: twinstep_server::config::Announce
//! [`Spectators`]: twinstep_server::config::Spectators
//! [`command_delay`]: twinstep_server::config::MatchConfig::command_delay
//! [`delay_ticks`]: twinstep_server::config::MatchConfig::delay_ticks

pub mod alone;
pub mod asking;
pub mod choices;
pub mod configuring;
pub mod costs;
pub mod desync;
pub mod determinism;
pub mod first_game;
pub mod fleet;
pub mod operating;
pub mod shooting;
pub mod strategy;
pub mod testing;
