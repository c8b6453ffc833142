//! [`Local`]: a match and its players in one process, on the caller's thread: to play alone, for tutorials and tests.
//!
//! ```text
//!   each frame:   time goes on by at most a tick ─▶ match ─packets─▶ sessions ─packets─▶ match      again, until now
//!                                                    │ asks  ▲
//!                                                    ▼       │ at once
//!                                                  resolver, jobs
//! ```
//!
//! Nothing is played differently: this is the match of the server and the session of the client, and what one says is
//! handed to the other. There is no socket, ticket, clock, runtime or second thread. A game draws from a [`Session`] as it
//! does online, and its resolver and referee are those of its server.
//!
//! Invariant: the time of the match moves by at most one tick at once, and never while the game is paused. So no input is
//! late, whatever frames the caller draws, and a step is one tick.
//!
//! A game that ships without a server process needs this crate and `twinstep-client` without its default features; neither
//! brings tokio or a physics engine.
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
//! A tick costs what it costs a server and each client together: three steps with one client, and the digests. A game
//! whose step is dear needs a machine that can do both. A quiet frame allocates nothing beyond what a session does.
//!
//! [`Session`]: twinstep_client::Session

use std::sync::Arc;

use twinstep_client::{SessionConfig, Show};
use twinstep_core::Simulation;
use twinstep_server::config::{MatchConfig, TurnLength};
use twinstep_server::hooks::{Referee, Resolver};
use twinstep_server::internal::Hooks;

mod clock;
mod errors;
mod game;

pub use clock::{TIME_SCALES, TimeScaleError};
pub use errors::{LocalEnded, LocalStartError};
pub use game::LocalGame;

/// A match of this process, not started yet; see the [module](self).
pub struct Local<S: Simulation> {
    config: MatchConfig,
    sim: S,
    rules: Arc<S::Rules>,
    hooks: Hooks<S>,
    seats: usize,
}

impl<S: Simulation> Local<S> {
    /// An action game that begins from `sim`: [`MatchConfig::action`] in turns of one tick, so that each tick is
    /// confirmed at once.
    pub fn action(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        let config = MatchConfig {
            turn: TurnLength::Fixed(1),
            ..MatchConfig::action()
        };
        Local::with(config, sim, rules)
    }

    /// A strategy game that begins from `sim`: [`MatchConfig::strategy`] in turns of one tick, so that an order runs two to
    /// three ticks (100 to 150 ms) after it was given.
    pub fn strategy(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        let config = MatchConfig {
            turn: TurnLength::Fixed(1),
            ..MatchConfig::strategy()
        };
        Local::with(config, sim, rules)
    }

    /// A match of any configuration that begins from `sim`: that of your server, for example, so that a tutorial feels
    /// as the game does online.
    pub fn with(config: MatchConfig, sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Local {
            config,
            sim,
            rules: rules.into(),
            hooks: Hooks::default(),
            seats: 1,
        }
    }

    /// Who answers the game's queries, as on the server; without one they stay unanswered. A job
    /// ([`Decision::Later`](twinstep_server::Decision::Later)) is done at once, on this thread.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.hooks.resolver(resolver);
        self
    }

    /// Who admits commands and claims, as on the server; without one all within the bounds are.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.hooks.referee(referee);
        self
    }

    /// How many players sit at the first client, 1..=4; 1 if nothing is said. More clients come by
    /// [`LocalGame::join`].
    #[must_use]
    pub fn seats(mut self, seats: usize) -> Self {
        self.seats = seats;
        self
    }

    /// Starts: the first client is in the match when this returns. A few ticks pass for that, while its player holds
    /// nothing. What `config` says is what it says for `Client::connect`; the state that the match begins with
    /// ([`start`](SessionConfig::start)) is known here, and may be left out.
    ///
    /// # Errors
    /// [`LocalStartError`]: a configuration or a number of seats out of range, a NaN in rules or state, rules that are
    /// not those of the match, a step that panics.
    pub fn play<V: Show<S>>(
        self,
        config: SessionConfig<S, V>,
    ) -> Result<LocalGame<S, V>, LocalStartError> {
        let config = match config.start {
            None => config.start(self.sim.clone()),
            Some(_) => config,
        };
        let server = self.hooks.make(self.config, self.sim, self.rules)?;
        let mut game = LocalGame::of(server);
        game.join(config, self.seats)?;
        Ok(game)
    }
}
