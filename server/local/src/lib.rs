//! [`Local`]: a match and its players in one process, on the caller's thread, for single player, tutorials and tests.
//!
//! ```text
//!   each frame:   time advances by at most a tick ─▶ match ─packets─▶ sessions ─packets─▶ match      repeated until `now`
//!                                                    │ queries  ▲
//!                                                    ▼          │ at once
//!                                                   resolver, jobs
//! ```
//!
//! The game is the same as online: the server's match and the client's session exchange packets directly. There is no
//! socket, ticket, clock, runtime or second thread. A game draws from a [`Session`] as it does online, and uses the
//! same resolver and referee as its server.
//!
//! Invariant: match time advances by at most one tick at a time, and not while the game is paused, except for a join or
//! a step. So no input is late, at any frame rate of the caller, and a step is one tick.
//!
//! A game that ships without a server process needs this crate, and `twinstep-client` without its default features.
//! Neither depends on tokio or a physics engine.
//!
//! # Example
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use twinstep_client::SessionConfig;
//! use twinstep_core::testing::doc::Counter; // your simulation
//! use twinstep_local::Local;
//!
//! let config = SessionConfig::new(Arc::new(())).start(Counter::default()); // as for Client::connect
//! let mut game = Local::action(Counter::default(), ()).play(config)?;
//! for frame in 0..60 {
//!     let now = Duration::from_millis(16) * frame; // of any clock
//!     game.advance_at(now, |_client, _seat| 1)?;
//!     let world = game.session(0).prediction().expect("it plays"); // draw this
//! }
//! assert!(game.session(0).prediction().unwrap().sim().total > 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! A tick costs as much as on the server and on all clients together: with one client, three steps and the digests. A
//! game with an expensive step needs a machine that can run both sides. A quiet frame allocates only as much as a
//! session does.
//!
//! [`Session`]: twinstep_client::Session

use std::sync::Arc;

use twinstep_client::{SessionConfig, Show};
use twinstep_core::Simulation;
use twinstep_server::config::{MatchConfig, StartWhen, TurnLength};
use twinstep_server::hooks::{Referee, Resolver};
use twinstep_server::internal::Hooks;
use twinstep_server::{LoadError, Match, Upgrade};

mod clock;
mod errors;
mod game;

pub use clock::{TIME_SCALES, TimeScaleError};
pub use errors::{LocalGameEnd, LocalStartError};
pub use game::LocalGame;

/// A match in this process that has not started; see the [module](self).
pub struct Local<S: Simulation> {
    config: MatchConfig,
    sim: S,
    rules: Arc<S::Rules>,
    hooks: Hooks<S>,
    seats: usize,
    load: Option<(Vec<u8>, Option<Upgrade<S>>)>,
}

impl<S: Simulation> Local<S> {
    /// Creates an action game that starts with `sim`: [`MatchConfig::action`] with one-tick turns, so that each tick is
    /// confirmed immediately.
    pub fn action(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        let config = MatchConfig {
            turn: TurnLength::Fixed(1),
            ..MatchConfig::action()
        };
        Local::with(config, sim, rules)
    }

    /// Creates a strategy game that starts with `sim`: [`MatchConfig::strategy`] with one-tick turns, so that an order
    /// runs two to three ticks (100 to 150 ms) after it was given.
    pub fn strategy(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        let config = MatchConfig {
            turn: TurnLength::Fixed(1),
            ..MatchConfig::strategy()
        };
        Local::with(config, sim, rules)
    }

    /// Creates a match that starts with `sim`, with any configuration, for example your server's, so that a tutorial
    /// feels like the online game. It [starts](MatchConfig::start_when) immediately.
    pub fn with(config: MatchConfig, sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Local {
            config,
            sim,
            rules: rules.into(),
            hooks: Hooks::default(),
            seats: 1,
            load: None,
        }
    }

    /// Sets the resolver for the game's queries, as on the server. Without a resolver, queries stay unanswered. A job
    /// ([`Decision::Later`](twinstep_server::Decision::Later)) runs immediately, on this thread.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.hooks.resolver(resolver);
        self
    }

    /// Sets the referee that admits commands and claims, as on the server. The default admits all within the limits.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.hooks.referee(referee);
        self
    }

    /// Starts the match from a save by [`LocalGame::save`] instead of from `sim`. `upgrade` adapts a save with an older
    /// version or different rules; without it, such a save is refused. Each client gets back the players of the former
    /// client with the same number.
    #[must_use]
    pub fn load(mut self, save: Vec<u8>, upgrade: Option<Upgrade<S>>) -> Self {
        self.load = Some((save, upgrade));
        self
    }

    /// Sets the number of players of the first client, 1..=4; 1 by default. [`LocalGame::join`] adds more clients.
    #[must_use]
    pub fn seats(mut self, seats: usize) -> Self {
        self.seats = seats;
        self
    }

    /// Starts the match. When this returns, the first client is in the match, after a few ticks with neutral input.
    /// `config` is the one for `Client::connect`; its [`start`](SessionConfig::start) may be left out, because the
    /// start state is known here.
    ///
    /// # Errors
    /// [`LocalStartError`] if the configuration or the number of seats is out of range, rules or state contain a NaN,
    /// the rules differ from the match's, a step panics, or the save cannot be loaded.
    pub fn play<V: Show<S>>(
        self,
        config: SessionConfig<S, V>,
    ) -> Result<LocalGame<S, V>, LocalStartError> {
        let config = match config.start {
            None => config.start(self.sim.clone()),
            Some(_) => config,
        };
        // A local game starts immediately.
        let config_now = MatchConfig {
            start_when: StartWhen::Immediately,
            ..self.config
        };
        let server = match self.load {
            None => self.hooks.make(config_now, self.sim, self.rules)?,
            Some((save, upgrade)) => {
                let rules = self.rules;
                let load = |resolver| {
                    Ok::<_, LoadError>((
                        Match::load(config_now, &save, rules, resolver, upgrade)?,
                        (),
                    ))
                };
                self.hooks.give(load)?.0
            }
        };
        let mut game = LocalGame::of(server);
        game.join(config, self.seats)?;
        Ok(game)
    }
}
