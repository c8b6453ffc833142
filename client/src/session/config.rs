//! The settings of a session: the game's rules and hooks, and the preferences of the local players.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use serde::de::DeserializeOwned;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::{Simulation, codec};
use twinstep_protocol::names::Name;

use crate::hooks::{Guess, LeaveToServer, OwnerResolver, Repeat, Speculate, Wait};
use crate::picture::{NoPicture, Show, Smoothing};
use crate::timeline::Reconcile;

pub(crate) type ReadRules<S> = fn(&[u8]) -> Option<<S as Simulation>::Rules>;

/// The settings of a session.
#[non_exhaustive]
pub struct SessionConfig<S: Simulation, V: Show<S> = NoPicture> {
    /// The game's read-only content. `None` if the server sends it.
    pub rules: Option<Arc<S::Rules>>,
    // Decodes the server's rules, if the client takes them.
    pub(crate) read_rules: Option<ReadRules<S>>,
    /// The author's name for this build, which is sent to the server, but not compared.
    pub build: String,
    /// Guesses the inputs of remote players.
    pub guess: Box<dyn Guess<S>>,
    /// Guesses the outcomes of queries.
    pub speculate: Box<dyn Speculate<S>>,
    /// Answers the queries of this client's own players, in matches where owners answer.
    pub resolve: Box<dyn OwnerResolver<S>>,
    /// Extracts the entities to draw.
    pub show: V,
    /// The smoothing of the picture's corrections.
    pub smoothing: Smoothing,
    /// The state with which the match starts, if this client knows it.
    pub start: Option<S>,
    /// The thread that rebuilds predictions.
    pub reconcile: Reconcile,
    /// The names requested by the local players, indexed by seat. A missing or empty name is replaced by the identity.
    pub names: ArrayVec<Name, SEATS_MAX>,
    /// The start of the recording, in seconds since 1970. `None` if the match is not recorded.
    pub recorded_since: Option<u64>,
    /// Whether a tape is written for [`Session::take_tape`](crate::Session::take_tape).
    pub taped: bool,
    /// Whether each confirmed prediction is compared with the authority. A difference causes a panic that
    /// names the fields. This is for debug builds and tests: it costs a copy and two digests of the world per tick.
    ///
    /// Otherwise, except in lockstep, one tick in 64 (one in up to 1,024 for a large world) is checked, by a second
    /// step; a difference is reported as [`Event::StepFault`](crate::Event::StepFault).
    pub verify: bool,
}

impl<S: Simulation> SessionConfig<S> {
    /// Creates the default settings: repeat inputs, wait for outcomes, no picture, rebuild inline where it fits, and
    /// verify in debug builds.
    pub fn new(rules: Arc<S::Rules>) -> Self {
        SessionConfig::of(Some(rules), None)
    }

    fn of(rules: Option<Arc<S::Rules>>, read_rules: Option<ReadRules<S>>) -> Self {
        SessionConfig {
            rules,
            read_rules,
            build: String::new(),
            guess: Box::new(Repeat),
            speculate: Box::new(Wait),
            resolve: Box::new(LeaveToServer),
            show: NoPicture,
            smoothing: Smoothing {
                teleport: f32::INFINITY,
                muzzle: Duration::from_millis(100),
            },
            start: None,
            reconcile: Reconcile::Auto,
            names: ArrayVec::new(),
            recorded_since: None,
            taped: false,
            verify: cfg!(debug_assertions),
        }
    }
}

impl<S: Simulation> SessionConfig<S>
where
    S::Rules: DeserializeOwned,
{
    /// The defaults of a client without rules: the server sends the rules that its host has chosen, at most 1 MiB and
    /// compressed. [`Session::rules`](crate::Session::rules) returns them.
    #[must_use]
    pub fn without_rules() -> Self {
        SessionConfig::of(None, Some(|bytes| codec::decode_whole(bytes).ok()))
    }
}

impl<S: Simulation, V: Show<S>> SessionConfig<S, V> {
    /// Sets the function that guesses the inputs of remote players. The default repeats the last input ([`Repeat`]).
    #[must_use]
    pub fn guess(mut self, guess: impl Guess<S>) -> Self {
        self.guess = Box::new(guess);
        self
    }

    /// Sets the function that guesses the outcomes of queries.
    #[must_use]
    pub fn speculate(mut self, speculate: impl Speculate<S>) -> Self {
        self.speculate = Box::new(speculate);
        self
    }

    /// Sets the function that answers the queries of this client's own players, in matches where owners answer.
    #[must_use]
    pub fn resolve(mut self, resolve: impl OwnerResolver<S>) -> Self {
        self.resolve = Box::new(resolve);
        self
    }

    /// Sets where predictions are rebuilt after a wrong guess; [`Reconcile`] states the cost of each choice.
    #[must_use]
    pub fn reconcile(mut self, how: Reconcile) -> Self {
        self.reconcile = how;
        self
    }

    /// Sets whether each confirmed prediction is compared with the authority; see
    /// [`verify`](SessionConfig#structfield.verify).
    #[must_use]
    pub fn verify(mut self, verifies: bool) -> Self {
        self.verify = verifies;
        self
    }

    /// Sets the author's name for this build, which is sent to the server, but not compared.
    #[must_use]
    pub fn build(mut self, build: impl Into<String>) -> Self {
        self.build = build.into();
        self
    }

    /// Sets the names requested by the local players, indexed by seat. Each is cut to a valid [`Name`].
    #[must_use]
    pub fn names<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.names = names.into_iter().take(SEATS_MAX).map(Name::new).collect();
        self
    }

    /// Sets the state with which the match starts, which must equal the server's start state.
    ///
    /// The server keeps the frames of the last 30 s. While these reach back to the start and take fewer bytes than the
    /// world, the client joins from the frames alone: it needs no world download, and does not wait for other clients'
    /// downloads. The past is replayed without cues. If the match started with another state, or there are too many
    /// frames, the world is downloaded as usual. Costs a digest of the state, and memory for the state until the client
    /// has joined.
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

    /// Makes the client take the server's rules if they differ from its own; see
    /// [`without_rules`](SessionConfig::without_rules). A [`start`](SessionConfig::start) is then not used.
    #[must_use]
    pub fn takes_rules(mut self) -> Self
    where
        S::Rules: DeserializeOwned,
    {
        self.read_rules = Some(|bytes| codec::decode_whole(bytes).ok());
        self
    }

    /// Records the confirmed match for [`Session::recording`](crate::Session::recording), dated from `unix_s`, in
    /// seconds since 1970. Costs a digest per second, and memory: at most twice
    /// [`REEL_BYTES_MAX`](super::REEL_BYTES_MAX), or 16 worlds if these are larger, and two worlds.
    #[must_use]
    pub fn record_journal(mut self, unix_s: u64) -> Self {
        self.recorded_since = Some(unix_s);
        self
    }

    /// Records a tape: the ticks and the margin after each `advance`, wrong guesses and the fields that they changed,
    /// rebuilds with their causes, and events such as desyncs and heals. The program takes it with
    /// [`Session::take_tape`](crate::Session::take_tape). Costs two trees of the state (about 50 ns per number) per
    /// rebuild, and about 100 bytes of tape per tick.
    #[must_use]
    pub fn record_tape(mut self) -> Self {
        self.taped = true;
        self
    }

    /// Sets the entities to draw, and how their corrections are smoothed.
    #[must_use]
    pub fn show<W: Show<S>>(self, show: W, smoothing: Smoothing) -> SessionConfig<S, W> {
        let SessionConfig {
            rules,
            read_rules,
            build,
            guess,
            speculate,
            resolve,
            start,
            reconcile,
            names,
            recorded_since,
            taped,
            verify,
            ..
        } = self;
        SessionConfig {
            rules,
            read_rules,
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
            taped,
            verify,
        }
    }
}
