//! Chapter 1: your first game, from a step to two processes on two machines.
//!
//! # The packages
//!
//! ```toml
//! [dependencies]
//! twinstep-core = "0.1"   # the words of a step
//! twinstep-client = "0.1" # default-features = false: the session alone, no socket and no encryption
//! twinstep-host = "0.1" # without sockets: twinstep-local plays alone; physics: twinstep-rapier2d
//! serde = { version = "1", features = ["derive"] }
//! # Vectors, if you like: the same bits everywhere.
//! glam = { version = "0.33", default-features = false, features = ["libm", "scalar-math", "serde"] }
//!
//! [dev-dependencies]
//! twinstep-testing = "0.1"
//!
//! [profile.dev.package."*"]
//! opt-level = 3 # a debug build of your game, with a fast serde: tests over a bad network take a fifth of the time
//! ```
//!
//! # The step
//!
//! A game is one type with one method. Here everybody runs to the right while a button is held; who is first at 100 wins.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use twinstep_core::prelude::*;
//!
//! #[derive(Clone, Default, Serialize, Deserialize)]
//! struct Dash {
//!     runners: Table<PlayerId, u32>,
//!     winner: Option<PlayerId>,
//! }
//!
//! impl Simulation for Dash {
//!     const NAME: &'static str = "dash";
//!     const VERSION: u32 = 1;
//!     type Rules = ();
//!     type Input = u8; // 1 while the button is down
//!     type Command = Never;
//!     type Query = Never;
//!     type Outcome = Never;
//!     type Cue = PlayerId; // "this one has won"
//!
//!     fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
//!         for (player, &button) in frame.inputs() {
//!             let runner = self.runners.get_or_insert_with(player, u32::default);
//!             *runner += u32::from(button == 1);
//!             if *runner == 100 && self.winner.is_none() {
//!                 self.winner = Some(player);
//!                 fx.cue(Key::player(player, 0), player);
//!             }
//!         }
//!     }
//! }
//!
//! // Without any network: a hundred ticks with the button held.
//! use twinstep_core::testing::Solo;
//! let mut game = Solo::new(Dash::default(), ());
//! game.join(PlayerId(0)).hold(PlayerId(0), 1).run(100);
//! assert_eq!(game.sim().winner, Some(PlayerId(0)));
//! ```
//!
//! A player appears in [`inputs`](twinstep_core::Frame::inputs) from the tick of its joining on, and is gone from it while it
//! is cut off. [`roster`](twinstep_core::Frame::roster) says who comes and goes, for games that must know the moment: `Joined`;
//! `Dropped` (its line is dead, or its client waits for a heal in lockstep: keep its things) and `Returned`; `Left` (clear up). A command of a player who has just left
//! is not run; one of a player who is cut off may still be on its way, and runs.
//!
//! # One process
//!
//! `demo/examples/tiny.rs`, which the README shows, has a server and a client in one `main`. The server makes its own key,
//! so its tickets come from [`Running::ticket`](twinstep_host::Running::ticket) and end with it. That is enough while you
//! write the game.
//!
//! # Two processes on two machines
//!
//! A client needs one thing: a *ticket*. It names the player, the match and the server's addresses, and holds the secrets
//! with which this session is encrypted. So hand it over by a safe way: your lobby over HTTPS, or a file among friends.
//! Tickets are sealed with the server's *key*, a file that only the server (and your lobby) can read.
//!
//! The server's program:
//!
//! ```no_run
//! # use twinstep_core::testing::doc::Counter as Dash;
//! use twinstep_host::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Made once, read by nobody else (mode 0600), kept over restarts: what it sealed stays good.
//! if !std::path::Path::new("dash.key").exists() {
//!     TicketKey::generate().save("dash.key")?;
//! }
//! let server = Server::action(Dash::default(), ())
//!     .players(4)
//!     .keys(TicketKey::load("dash.key")?, None)
//!     // Which tickets are out of date, over restarts.
//!     .host(|host| host.lineages_file = Some("dash.lineages".into()))
//!     .public("203.0.113.7:7777".parse()?) // what players dial: the router's address, say
//!     .listen("0.0.0.0:7777")?; // what this machine listens on
//! for player in ["anna", "ben"] {
//!     server.ticket(player)?.save(format!("{player}.ticket"))?;
//! }
//! server.run_until_stopped()?; // until SIGTERM or Ctrl-C; players are told
//! # Ok(()) }
//! ```
//!
//! The client's:
//!
//! ```no_run
//! # use twinstep_core::testing::doc::Counter as Dash;
//! use std::sync::Arc;
//! use twinstep_client::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ticket = Ticket::load("anna.ticket")?;
//! let config = SessionConfig::new(Arc::new(())).start(Dash::default());
//! let mut client = Client::connect(&ticket, config)?
//!     .keeping(|newer| newer.save("anna.ticket").is_ok()); // to return with after a crash
//! loop {
//!     client.advance(|_seat| 1)?; // once a drawn frame; an error says why playing is over
//!     while let Some(event) = client.session_mut().poll_event() {
//!         println!("{event:?}");
//!     }
//!     if let Some(world) = client.session().prediction() {
//!         println!("{}", world.sim().total); // draw it
//!     }
//!     std::thread::sleep(std::time::Duration::from_millis(8));
//! }
//! # }
//! ```
//!
//! The closure cannot look at the client, which is borrowed. What depends on the state (a bot, a mouse that aims) looks first, and
//! orders are given beside it:
//!
//! ```text
//! let pad = client.session().prediction().map_or(0, |world| aim(world.sim(), client.session().seats()[0], mouse));
//! client.session_mut().command(0, Throw { at })?;
//! client.advance(|_seat| pad)?;
//! ```
//!
//! | question | answer |
//! |---|---|
//! | which port? | one UDP port for all matches and players; open it in the firewall, and forward it in a home router |
//! | which addresses go into a ticket? | those of [`public`](twinstep_host::Server::public), up to 4, tried in order; without it the one that is listened on, which must then be a real one and not `0.0.0.0` |
//! | how long is a ticket good? | an hour to begin with it ([`TicketIssuer::issue`](twinstep_host::TicketIssuer::issue) takes a life); the server hands newer ones down in play, which `keeping` stores |
//! | may two play with one ticket? | no: the one who comes later takes the seat over |
//! | two players at one screen? | [`ticket_for(name, 2)`](twinstep_host::Running::ticket_for): up to 4 seats; `advance` asks for the input of each |
//! | which match is a ticket for? | a [`Server`](twinstep_host::Server) has one match, number 1. A [`Host`](twinstep_host::Host) has many, and whoever makes tickets numbers them in [`TicketSpec::match_id`](twinstep_udp::TicketSpec) |
//! | where are the logs? | server and client speak through `tracing`: install any subscriber, `tracing_subscriber::fmt::init()` for one; without one nothing is printed |
//! | why does nobody get in? | the client's error says what came (another version, another game, other rules, a full match, an old ticket); if it says that nothing came, the port or the address is wrong. Print it by `{error}`: a `main` that returns it shows its name alone |
//!
//! Next: [what is drawn, and how shots are](super::shooting).
