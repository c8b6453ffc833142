//! What a session is made of: the game's rules and hooks, and what the players here wish.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::Simulation;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_protocol::company::Name;

use crate::hooks::{Guess, LeaveToServer, OwnerResolver, Repeat, Speculate, Wait};
use crate::picture::{Hidden, Show, Smoothing};
use crate::timeline::Reconcile;

/// Sets up a session.
#[non_exhaustive]
pub struct SessionConfig<S: Simulation, V: Show<S> = Hidden> {
    /// The game's read-only content.
    pub rules: Arc<S::Rules>,
    /// What the author calls this build: sent to the server, not compared.
    pub build: String,
    /// Guesses what remote players hold.
    pub guess: Box<dyn Guess<S>>,
    /// Guesses outcomes.
    pub speculate: Box<dyn Speculate<S>>,
    /// Answers what own players ask, where owners do.
    pub resolve: Box<dyn OwnerResolver<S>>,
    /// What is drawn.
    pub show: V,
    /// How corrections are smoothed.
    pub smoothing: Smoothing,
    /// What the match begins with, if that is known here.
    pub start: Option<S>,
    /// Where predictions are rebuilt.
    pub reconcile: Reconcile,
    /// What the players here want to be called, by seat; who is missing, or empty, goes by its identity.
    pub names: ArrayVec<Name, SEATS_MAX>,
    /// Since when, in seconds since 1970, the match is recorded; `None`: it is not.
    pub recorded_since: Option<u64>,
    /// Whether each kept prediction is checked against the truth (costs a copy and two digests of the world per tick),
    /// and a wrong one panics with its fields: for debug builds and tests. Without it one tick of 64 (of a large world, of up to 1,024) is checked, by a
    /// copy and a second step, and told by [`Event::StepFault`](crate::Event::StepFault).
    pub verify: bool,
}

impl<S: Simulation> SessionConfig<S> {
    /// The defaults: repeat inputs, wait for outcomes, no picture, rebuild inline; verifying in debug builds.
    pub fn new(rules: Arc<S::Rules>) -> Self {
        SessionConfig {
            rules,
            build: String::new(),
            guess: Box::new(Repeat),
            speculate: Box::new(Wait),
            resolve: Box::new(LeaveToServer),
            show: Hidden,
            smoothing: Smoothing {
                teleport: f32::INFINITY,
                muzzle: Duration::from_millis(100),
            },
            start: None,
            reconcile: Reconcile::Inline,
            names: ArrayVec::new(),
            recorded_since: None,
            verify: cfg!(debug_assertions),
        }
    }
}

impl<S: Simulation, V: Show<S>> SessionConfig<S, V> {
    /// Guesses what remote players hold.
    #[must_use]
    pub fn guess(mut self, guess: impl Guess<S>) -> Self {
        self.guess = Box::new(guess);
        self
    }

    /// Guesses outcomes.
    #[must_use]
    pub fn speculate(mut self, speculate: impl Speculate<S>) -> Self {
        self.speculate = Box::new(speculate);
        self
    }

    /// Answers what own players ask, where owners do.
    #[must_use]
    pub fn resolve(mut self, resolve: impl OwnerResolver<S>) -> Self {
        self.resolve = Box::new(resolve);
        self
    }

    /// Where predictions are rebuilt after a wrong guess: what that costs is said at [`Reconcile`].
    #[must_use]
    pub fn reconcile(mut self, how: Reconcile) -> Self {
        self.reconcile = how;
        self
    }

    /// Whether each kept prediction is checked against the truth: see [`verify`](SessionConfig#structfield.verify).
    #[must_use]
    pub fn verify(mut self, verifies: bool) -> Self {
        self.verify = verifies;
        self
    }

    /// What the author calls this build: sent to the server, not compared.
    #[must_use]
    pub fn build(mut self, build: impl Into<String>) -> Self {
        self.build = build.into();
        self
    }

    /// What the players here want to be called, by seat: as much of it as can be a [`Name`].
    #[must_use]
    pub fn names<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.names = names.into_iter().take(SEATS_MAX).map(Name::new).collect();
        self
    }

    /// What the match begins with: the same state that its server was started with. While the frames since then are kept
    /// (20 s of them) and take fewer bytes than its world, this client joins by them alone: it waits for nobody else's
    /// download, and needs none. What happened before it came is replayed without cues. If it is not what that match
    /// began with, or too much has happened, the world is loaded as ever. Costs a digest of the state, and its memory
    /// until the client has joined.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use twinstep_client::SessionConfig;
    /// # use twinstep_core::testing::doc::Counter;
    /// let config = SessionConfig::new(Arc::new(())).start(Counter::default());
    /// ```
    #[must_use]
    pub fn start(mut self, sim: S) -> Self {
        self.start = Some(sim);
        self
    }

    /// Records what is confirmed, for [`Session::recording`](crate::Session::recording); it begins at `unix_s`, in seconds since 1970. Costs a
    /// digest each turn, and memory: at most twice [`REEL_BYTES_MAX`](super::REEL_BYTES_MAX), or 16 worlds where those
    /// are more.
    #[must_use]
    pub fn recorded(mut self, unix_s: u64) -> Self {
        self.recorded_since = Some(unix_s);
        self
    }

    /// What is drawn, and how its corrections are smoothed.
    #[must_use]
    pub fn show<W: Show<S>>(self, show: W, smoothing: Smoothing) -> SessionConfig<S, W> {
        let SessionConfig {
            rules,
            build,
            guess,
            speculate,
            resolve,
            start,
            reconcile,
            names,
            recorded_since,
            verify,
            ..
        } = self;
        SessionConfig {
            rules,
            build,
            guess,
            speculate,
            resolve,
            show,
            smoothing,
            start,
            reconcile,
            names,
            recorded_since,
            verify,
        }
    }
}
