//! [`arena`]: a server, its clients and a bad network in virtual time, for any game.
//!
//! ```text
//! script ─▶ session ◀─▶ simulated link ◀─▶ match ◀─ resolver, referee
//!
//! joins … the late half … links go down, clients freeze … │ the network heals │ no more commands
//! ─────────── safety is checked at every drawn frame ─────┼─ liveness is checked at the end
//! ```
//!
//! Invariant: one seed always gives the same run, bit for bit; no clock is read.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{Session, SessionConfig, SessionStats};
use twinstep_core::{Key, Mwc, Simulation};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::{Decision, HookContext, Match, MatchConfig, MatchStats, Referee, Resolver};

use crate::again;
use crate::failure::{Failure, FailureKind, Wrong};
use crate::script::{Asked, Judge, Resolving, Script, Seen, from_env};
use crate::steps::panic_message;
use crate::table::Table;
use crate::variants::Missing;
use crate::verdicts::{Causes, CueCounts, CueLines, Growth};

/// Sets up an arena; [`run`](Arena::run) runs it. The script supplies the players' actions and, unless a
/// [`resolver`](Arena::resolver) is set, the server's answers.
///
/// ```
/// use twinstep_core::testing::doc::Counter; // your simulation
/// use twinstep_testing::{Script, arena};
///
/// let played = arena(Counter::default(), (), Script::inputs([0, 1, 2]))
///     .players(3)
///     .link("bad")
///     .seed(7)
///     .seconds(10)
///     .run()
///     .unwrap();
/// println!("{played}");
/// ```
pub fn arena<S: Simulation>(start: S, rules: S::Rules, script: Script<S>) -> Arena<S> {
    Arena {
        policies: MatchConfig::action(),
        link: LinkProfile::BAD,
        seconds: 30,
        resolver: None,
        referee: None,
        configure: Box::new(|config| config),
        start,
        rules: Arc::new(rules),
        script,
    }
}

type MakeMatch<S> = dyn FnOnce(
    MatchConfig,
    S,
    Arc<<S as Simulation>::Rules>,
) -> Result<Match<S>, twinstep_server::MatchStartError>;

type SetReferee<S> = dyn FnOnce(&mut Match<S>);

/// A match over a bad network in virtual time, set up by [`arena`].
pub struct Arena<S: Simulation> {
    start: S,
    rules: Arc<S::Rules>,
    script: Script<S>,
    policies: MatchConfig,
    link: LinkProfile,
    seconds: u32,
    resolver: Option<Box<MakeMatch<S>>>,
    referee: Option<Box<SetReferee<S>>>,
    configure: Box<dyn Fn(SessionConfig<S>) -> SessionConfig<S>>,
}

impl<S: Simulation> Arena<S> {
    /// Sets the number of clients, with one player each. The default is the script's, which is 4.
    ///
    /// # Panics
    /// Like [`Script::players`].
    #[must_use]
    pub fn players(mut self, players: usize) -> Self {
        self.script = self.script.players(players);
        self
    }

    /// Sets the link of all clients: `perfect`, `lan`, `wan`, `bad`, `awful`, or settings such as
    /// `rtt=120,jitter=20,loss=5` (see [`LinkProfile`]); `bad` by default.
    ///
    /// # Panics
    /// If `link` is none of these.
    #[must_use]
    pub fn link(mut self, link: &str) -> Self {
        self.link = link.parse().unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Sets the seed for all randomness. The environment variable `TWINSTEP_SEED` overrides it.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.script = self.script.seed(seed);
        self
    }

    /// Sets how long the network is bad, in virtual seconds; 30 by default. Then it is good for another 12 seconds, so
    /// that the match can recover. The environment variable `TWINSTEP_SECONDS` overrides it.
    #[must_use]
    pub fn seconds(mut self, seconds: u32) -> Self {
        self.seconds = seconds;
        self
    }

    /// Sets the match's configuration; [`MatchConfig::action`] by default.
    #[must_use]
    pub fn policies(mut self, policies: MatchConfig) -> Self {
        self.policies = policies;
        self
    }

    /// Sets the resolver that answers queries, instead of the script.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.resolver = Some(Box::new(move |policies, start, rules| {
            Match::new(policies, start, rules, resolver)
        }));
        self
    }

    /// Sets the referee that admits commands and claims, instead of the script.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.referee = Some(Box::new(move |match_| match_.set_referee(referee)));
        self
    }

    /// Changes the configuration of each session: guesses, speculation, owners' answers.
    #[must_use]
    pub fn session(
        mut self,
        configure: impl Fn(SessionConfig<S>) -> SessionConfig<S> + 'static,
    ) -> Self {
        self.configure = Box::new(configure);
        self
    }

    /// Runs the arena. A minute of a small game with four players takes about 1 s with some optimisation
    /// (`[profile.dev] opt-level = 1` in your `Cargo.toml`), and 5 s without.
    ///
    /// # Errors
    /// If a check fails. Returns the first [`Failure`].
    ///
    /// # Panics
    /// If the match cannot be started because the configuration is out of range, or the rules or the state hold a NaN.
    pub fn run(mut self) -> Result<ArenaReport, Failure> {
        self.script.begin();
        let seconds = from_env("TWINSTEP_SECONDS").and_then(|seconds| u32::try_from(seconds).ok());
        let seconds = seconds.unwrap_or(self.seconds);
        let (seed, players) = (self.script.seed, self.script.players);
        self.policies.players_max = self.policies.players_max.max(players);
        let lockstep = self.policies.command_delay > 0;
        let mut table = self.table();
        // A panic ends the run, so its incomplete state is not used.
        let played = catch_unwind(AssertUnwindSafe(|| {
            table.play(Duration::from_secs(seconds.into()))?;
            table.verdicts.replay(&table.match_)
        }));
        let wrong = match played {
            Ok(Ok((unused_variants, grows))) => {
                return Ok(ArenaReport {
                    game: S::NAME,
                    seed,
                    seconds,
                    lockstep,
                    server: table.match_.stats(),
                    clients: table.stats(),
                    cues: table.verdicts.cues(),
                    unused_variants,
                    grows,
                });
            }
            Ok(Err(wrong)) => wrong,
            Err(panic) => Wrong::new(FailureKind::Fault, panic_message(&*panic)),
        };
        Err(Failure {
            kind: wrong.kind,
            at: table.now,
            what: wrong.what,
            again: again::command(&[
                ("TWINSTEP_SEED", seed),
                ("TWINSTEP_SECONDS", seconds.into()),
            ]),
        })
    }

    fn table(self) -> Table<S> {
        let mut script = self.script;
        let (resolve, judge) = (script.take_resolve(), script.take_judge());
        let luck = Mwc::seed(script.seed).fork(Key::new(4, 0));
        let make = self.resolver.unwrap_or_else(|| {
            let resolver = Answers { resolve, luck };
            Box::new(move |policies, start, rules| Match::new(policies, start, rules, resolver))
        });
        let made = make(self.policies, self.start.clone(), self.rules.clone());
        let mut match_ =
            made.unwrap_or_else(|error| panic!("the match cannot be started: {error}"));
        let kept = match_.keep_journal();
        kept.unwrap_or_else(|error| panic!("the match cannot be started: {error}"));
        match self.referee {
            Some(set) => set(&mut match_),
            None => match_.set_referee(judge_of::<S>(judge)),
        }
        let (rules, start, configure) = (self.rules.clone(), self.start, self.configure);
        // Even-numbered clients join from the start state, the others download a world.
        let session = move |n: usize| {
            let mut config = configure(SessionConfig::new(rules.clone()));
            config.verify = true;
            if n.is_multiple_of(2) {
                config = config.start(start.clone());
            }
            Session::new(config).unwrap_or_else(|error| panic!("{error}"))
        };
        Table::new(match_, script, self.rules, self.link, session)
    }
}

fn judge_of<S: Simulation>(judge: Judge<S>) -> impl Referee<S> {
    move |look: &HookContext<'_, S>, by, command: &S::Command, _claimed: bool| {
        let seen = Seen {
            sim: look.sim(),
            rules: look.rules(),
            player: by,
            tick: look.tick(),
        };
        judge.as_ref().is_none_or(|judge| judge(&seen, command))
    }
}

struct Answers<S: Simulation> {
    resolve: Resolving<S>,
    luck: Mwc,
}

impl<S: Simulation> Resolver<S> for Answers<S> {
    fn resolve(
        &mut self,
        look: &HookContext<'_, S>,
        key: Key,
        query: &S::Query,
    ) -> Decision<S::Outcome> {
        let asked = Asked {
            sim: look.sim(),
            rules: look.rules(),
            key,
            query,
            tick: look.tick(),
        };
        let resolve = self.resolve.as_mut();
        match resolve.and_then(|resolve| resolve(&asked, &mut self.luck)) {
            None => Decision::Unanswered,
            Some(outcome) if self.luck.below(2) == 0 => Decision::Now(outcome),
            Some(outcome) => Decision::Later(Box::new(move || outcome)),
        }
    }
}

/// The statistics of a run. Print them, and check the rebuilds: a bad guess is corrected, so it shows only in the
/// number of rebuilds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArenaReport {
    /// The game's name.
    pub game: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// The time for which the network was bad, in virtual seconds.
    pub seconds: u32,
    /// Whether the match was in lockstep.
    pub lockstep: bool,
    /// The statistics of the match.
    pub server: MatchStats,
    /// The statistics of each client, keyed by name.
    pub clients: BTreeMap<String, SessionStats>,
    /// The cues that the clients started, per variant of [`Cue`](Simulation::Cue), or under `all` if it is not an enum.
    pub cues: BTreeMap<&'static str, CueCounts>,
    /// The variants of commands, queries, outcomes and cues that never occurred, such as "command Vote".
    pub unused_variants: Vec<String>,
    /// The world's growth in the second half of the run, if it grew.
    pub grows: Option<Growth>,
}

impl fmt::Display for ArenaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArenaReport {
            game,
            seed,
            seconds,
            lockstep,
            server,
            clients,
            cues,
            unused_variants,
            grows,
        } = self;
        writeln!(
            f,
            "{game}: {seconds} s on a bad network from seed {seed}, then on a good one; {} queries, {} of them unanswered",
            server.queries, server.unanswered
        )?;
        for (name, stats) in clients {
            write!(f, "  {name}: confirmed up to t{}", stats.authority_tick)?;
            match lockstep {
                true => write!(
                    f,
                    ", {} late turns, {:.0} ms paused",
                    stats.late_turns, stats.paused_ms
                )?,
                false => write!(
                    f,
                    ", lead {:.1}; {} rebuilds of {} ticks",
                    stats.lead_ticks_mean, stats.timeline.rebuilds, stats.timeline.resim_ticks
                )?,
            }
            let (sent, refused) = (stats.commands_sent, stats.commands_refused);
            write!(
                f,
                "; {sent} commands, {refused} refused; {} cues",
                stats.cues_started
            )?;
            match lockstep {
                true => writeln!(f)?,
                false => writeln!(f, ", {} cancelled", stats.cues_cancelled)?,
            }
        }
        if !lockstep {
            let timelines = clients.values().map(|stats| &stats.timeline);
            write!(f, "{}{}", Causes::of(timelines), CueLines(cues))?;
        }
        write!(f, "{}", Missing(unused_variants))?;
        if let Some(growth) = grows {
            writeln!(f, "  {growth}")?;
        }
        write!(f, "  all agreed at every frame")
    }
}
