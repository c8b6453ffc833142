//! [`Script`]: the behaviour of the players in a check, drawn from one seed.
//!
//! ```text
//!   seed ─▶ luck of each player ─▶ input and command of each tick ─┐
//!        ─▶ luck of the match ───▶ joins, drops, returns ──────────┼─▶ frames
//!        ─▶ luck of the server ──▶ outcomes, late or never ────────┘
//! ```
//!
//! Invariant: everything follows from the seed and the author's closures. A closure that draws from another source is
//! detected ([`Kind::Script`](crate::Kind)).

use core::time::Duration;

use twinstep_core::bounds::{PLAYERS_MAX, nanos};
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, PlayerId, Simulation, Tick};

/// The data that a script sees when it decides for one player.
#[non_exhaustive]
pub struct Seen<'a, S: Simulation> {
    /// The state before the tick.
    pub sim: &'a S,
    /// The game's read-only content.
    pub rules: &'a S::Rules,
    /// The player to decide for.
    pub player: PlayerId,
    /// The tick to decide for.
    pub tick: Tick,
}

/// A query that a script answers.
#[non_exhaustive]
pub struct Asked<'a, S: Simulation> {
    /// The state after the tick that asked.
    pub sim: &'a S,
    /// The game's read-only content.
    pub rules: &'a S::Rules,
    /// The key of the query.
    pub key: Key,
    /// The query.
    pub query: &'a S::Query,
    /// The next tick to be stepped.
    pub tick: Tick,
}

type Drive<S> = dyn FnMut(&Seen<'_, S>, &mut Mwc) -> (<S as Simulation>::Input, Option<<S as Simulation>::Command>)
    + Send;
type Give<S> = dyn FnMut(&Seen<'_, S>, &mut Mwc) -> Option<<S as Simulation>::Command> + Send;
pub(crate) type Resolving<S> =
    Option<Box<dyn FnMut(&Asked<'_, S>, &mut Mwc) -> Option<<S as Simulation>::Outcome> + Send>>;
/// The script's referee; `None` admits everything.
pub(crate) type Judge<S> =
    Option<Box<dyn Fn(&Seen<'_, S>, &<S as Simulation>::Command) -> bool + Send>>;

/// The players' inputs and commands, and the server's answers. Start with [`inputs`](Script::inputs),
/// [`new`](Script::new) or [`driven`](Script::driven); the rest has defaults.
///
/// ```
/// # use twinstep_core::testing::doc::Counter;
/// use twinstep_testing::Script;
/// let script = Script::<Counter>::inputs([0, 1, 2]).players(3).ticks(300).seed(17);
/// # let _ = script;
/// ```
pub struct Script<S: Simulation> {
    pub(crate) players: usize,
    pub(crate) ticks: u32,
    cadence: Cadence,
    pub(crate) seed: u64,
    pub(crate) steady: bool,
    pub(crate) second_process: bool,
    pub(crate) lockstep: bool,
    /// Other matches that the second process plays first.
    pub(crate) others: Vec<(S, S::Rules)>,
    drive: Box<Drive<S>>,
    give: Option<Box<Give<S>>>,
    resolve: Resolving<S>,
    admit: Judge<S>,
    luck: Vec<Mwc>,
}

impl<S: Simulation> Script<S> {
    /// Lets every player hold one of these values for 1 to 12 ticks, then another.
    ///
    /// # Panics
    /// If `values` is empty.
    #[must_use]
    pub fn inputs(values: impl IntoIterator<Item = S::Input>) -> Script<S> {
        let values: Vec<S::Input> = values.into_iter().collect();
        assert!(!values.is_empty(), "expected values to hold, got none");
        let mut held: Vec<(S::Input, u32)> = vec![(S::Input::default(), 0); PLAYERS_MAX];
        Script::new(move |seen: &Seen<'_, S>, luck: &mut Mwc| {
            let (value, left) = &mut held[seen.player.index()];
            if *left == 0 {
                *value = values[luck.below(values.len() as u32) as usize].clone();
                *left = 1 + luck.below(12);
            }
            *left -= 1;
            value.clone()
        })
    }

    /// Draws the input of each player every tick. The closure may keep state between calls.
    #[must_use]
    pub fn new(
        mut input: impl FnMut(&Seen<'_, S>, &mut Mwc) -> S::Input + Send + 'static,
    ) -> Script<S> {
        Script::driven(move |seen, luck| (input(seen, luck), None))
    }

    /// Draws the input and the command of each player every tick, for games that have bots.
    #[must_use]
    pub fn driven(
        drive: impl FnMut(&Seen<'_, S>, &mut Mwc) -> (S::Input, Option<S::Command>) + Send + 'static,
    ) -> Script<S> {
        Script {
            players: 4,
            ticks: 600,
            cadence: Cadence::DEFAULT,
            seed: 1,
            steady: false,
            second_process: true,
            lockstep: false,
            others: Vec::new(),
            drive: Box::new(drive),
            give: None,
            resolve: None,
            admit: None,
            luck: Vec::new(),
        }
    }

    /// Draws each player's command, if any, every tick.
    #[must_use]
    pub fn commands(
        mut self,
        give: impl FnMut(&Seen<'_, S>, &mut Mwc) -> Option<S::Command> + Send + 'static,
    ) -> Script<S> {
        self.give = Some(Box::new(give));
        self
    }

    /// Answers queries like a server, each query once. Without this closure, or if it returns `None`, a query is not
    /// answered. A check leaves one query in eight unanswered, and answers the others after 1 to 30 ticks.
    #[must_use]
    pub fn outcomes(
        mut self,
        resolve: impl FnMut(&Asked<'_, S>, &mut Mwc) -> Option<S::Outcome> + Send + 'static,
    ) -> Script<S> {
        self.resolve = Some(Box::new(resolve));
        self
    }

    /// Admits commands and claims like the server's referee. Without this closure, all are admitted. A check refuses
    /// one claim in eight in any case.
    #[must_use]
    pub fn admits(
        mut self,
        admit: impl Fn(&Seen<'_, S>, &S::Command) -> bool + Send + 'static,
    ) -> Script<S> {
        self.admit = Some(Box::new(admit));
        self
    }

    /// Sets the number of players; 4 by default.
    ///
    /// # Panics
    /// If `players` is 0 or more than [`PLAYERS_MAX`].
    #[must_use]
    pub fn players(mut self, players: usize) -> Script<S> {
        assert!(
            (1..=PLAYERS_MAX).contains(&players),
            "expected 1 to {PLAYERS_MAX} players, got {players}"
        );
        self.players = players;
        self
    }

    /// Sets the number of ticks of a check; 600 by default. The environment variable `TWINSTEP_TICKS` overrides it.
    #[must_use]
    pub fn ticks(mut self, ticks: u32) -> Script<S> {
        self.ticks = ticks;
        self
    }

    /// Sets the duration that a step simulates ([`Frame::tick_length`](twinstep_core::Frame::tick_length)); 1/60 s by
    /// default. It does not change the duration of a check.
    ///
    /// # Panics
    /// If `length` is less than a millisecond or more than a second.
    #[must_use]
    pub fn tick_length(mut self, length: Duration) -> Script<S> {
        self.cadence.tick_ns = u32::try_from(nanos(length)).unwrap_or(u32::MAX);
        assert!(
            self.cadence.is_sound(),
            "expected a tick of 1 ms to 1 s, got {length:?}"
        );
        self
    }

    /// Sets the seed for all randomness; 1 by default. The environment variable `TWINSTEP_SEED` overrides it.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Script<S> {
        self.seed = seed;
        self
    }

    /// Keeps all players present from the first tick to the last: players do not leave, drop or reconnect, and inputs
    /// are not late.
    #[must_use]
    pub fn steady(mut self) -> Script<S> {
        self.steady = true;
        self
    }

    /// Runs the check without a second process; the report then states this.
    #[must_use]
    pub fn in_one_process(mut self) -> Script<S> {
        self.second_process = false;
        self
    }

    /// Adds a match of another map, or with other rules: the second process plays it before the one that it compares.
    /// Finds statics that the first match of a process fills and the next one reads.
    #[must_use]
    pub fn also_on(mut self, start: S, rules: S::Rules) -> Script<S> {
        self.others.push((start, rules));
        self
    }

    /// Leaves out comparisons with predictions, for a game played only in lockstep. An [`arena`](crate::arena())
    /// follows its policies instead.
    #[must_use]
    pub fn lockstep(mut self) -> Script<S> {
        self.lockstep = true;
        self
    }

    pub(crate) fn tick_length_set(&self) -> Duration {
        Duration::from_nanos(self.cadence.tick_ns.into())
    }

    pub(crate) fn begin(&mut self) {
        self.seed = from_env("TWINSTEP_SEED").unwrap_or(self.seed);
        let ticks = from_env("TWINSTEP_TICKS").and_then(|ticks| u32::try_from(ticks).ok());
        self.ticks = ticks.unwrap_or(self.ticks);
        let root = Mwc::seed(self.seed);
        self.luck = (0..PLAYERS_MAX as u32)
            .map(|player| root.fork(Key::new(1, player)))
            .collect();
    }

    pub(crate) fn world(&self, start: S) -> World<S> {
        World::new(start, Tick(0)).clocked(self.cadence)
    }

    pub(crate) fn drive(&mut self, seen: &Seen<'_, S>) -> (S::Input, Option<S::Command>) {
        let luck = &mut self.luck[seen.player.index()];
        let (input, order) = (self.drive)(seen, luck);
        let given = match (&mut self.give, order) {
            (_, Some(order)) => Some(order),
            (Some(give), None) => give(seen, luck),
            (None, None) => None,
        };
        (input, given)
    }

    pub(crate) fn resolve(&mut self, asked: &Asked<'_, S>, luck: &mut Mwc) -> Option<S::Outcome> {
        self.resolve.as_mut()?(asked, luck)
    }

    pub(crate) fn take_resolve(&mut self) -> Resolving<S> {
        self.resolve.take()
    }

    pub(crate) fn take_judge(&mut self) -> Judge<S> {
        self.admit.take()
    }

    pub(crate) fn answers(&self) -> bool {
        self.resolve.is_some()
    }

    pub(crate) fn lets_in(&self, seen: &Seen<'_, S>, command: &S::Command) -> bool {
        self.admit.as_ref().is_none_or(|admit| admit(seen, command))
    }
}

/// Reads a number from an environment variable, if it is set.
///
/// # Panics
/// If the variable is set, but not to a number.
pub(crate) fn from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("expected a number in {name}, got `{text}`")))
}
