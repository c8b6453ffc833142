//! [`Blueprint`]: what a match is made of, before it is one.

use std::sync::Arc;

use twinstep_core::Simulation;

use super::clock::unix_now;
use super::journal_file::{Journal, JournalFileError};
use twinstep_server::config::{MatchConfig, Spectators};
use twinstep_server::hooks::{Referee, Resolver};
use twinstep_server::internal::Hooks;
use twinstep_server::{Match, MatchStartError};

/// What a match is made of: its start, its rules, its hooks and how it is run. Nothing is computed before it is made.
///
/// ```
/// use twinstep_core::testing::doc::Counter;
/// use twinstep_host::Blueprint;
///
/// let four = Blueprint::action(Counter::default(), ()).players(4);
/// ```
pub struct Blueprint<S: Simulation> {
    pub(super) config: MatchConfig,
    sim: S,
    pub(super) rules: Arc<S::Rules>,
    hooks: Hooks<S>,
}

impl<S: Simulation> Blueprint<S> {
    /// An action game that begins from `sim`: see [`MatchConfig::action`].
    pub fn action(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Blueprint::with(MatchConfig::action(), sim, rules)
    }

    /// A strategy game that begins from `sim`: see [`MatchConfig::strategy`].
    pub fn strategy(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Blueprint::with(MatchConfig::strategy(), sim, rules)
    }

    /// A match of any configuration that begins from `sim`.
    pub fn with(config: MatchConfig, sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Blueprint {
            config,
            sim,
            rules: rules.into(),
            hooks: Hooks::default(),
        }
    }

    /// Who answers the game's queries; without one they stay unanswered.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.hooks.resolver(resolver);
        self
    }

    /// Who admits commands and claims; without one all within the bounds are.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.hooks.referee(referee);
        self
    }

    /// How the match is run; what was said of its seats and its build stays.
    #[must_use]
    pub fn policies(mut self, policies: MatchConfig) -> Self {
        self.config = MatchConfig {
            players_max: self.config.players_max,
            build: self.config.build,
            ..policies
        };
        self
    }

    /// Seats, 1..=16; 8 if nothing is said.
    #[must_use]
    pub fn players(mut self, seats: usize) -> Self {
        self.config.players_max = seats;
        self
    }

    /// What this build calls itself: told in the journal and the handshake, never compared.
    #[must_use]
    pub fn build(mut self, name: &str) -> Self {
        self.config.build = name.to_owned();
        self
    }

    /// How many may watch, and how many ticks behind: up to 16 at once (0 ticks), or 512 who are 180 to 900 ticks
    /// behind. Nobody, if nothing is said.
    #[must_use]
    pub fn spectators(mut self, max: usize, delay_ticks: u32) -> Self {
        self.config.spectators = Spectators { max, delay_ticks };
        self
    }

    /// How long its ticks are.
    #[must_use]
    pub fn tick(&self) -> std::time::Duration {
        self.config.tick
    }

    /// Makes a match, and nothing of it: whether it could be.
    pub fn rehearse(self) -> Result<(), MatchStartError> {
        self.config.check()?;
        self.make().map(drop)
    }

    /// It begins now.
    pub(super) fn dated(mut self) -> Self {
        self.config.unix_time = unix_now().as_secs();
        self
    }

    /// A new match.
    pub(super) fn make(self) -> Result<Match<S>, MatchStartError> {
        self.hooks.make(self.config, self.sim, self.rules)
    }

    /// The match of a journal, which goes on.
    pub(super) fn resume(
        self,
        path: impl Into<std::path::PathBuf>,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let (config, rules) = (self.config, self.rules);
        let go_on = |resolver| Journal::resume(path, config, rules, resolver);
        self.hooks.give(go_on)
    }

    /// As [`resume`](Self::resume), of a file that is this process's alone.
    pub(super) fn take_up(
        self,
        path: std::path::PathBuf,
        file: std::fs::File,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let (config, rules) = (self.config, self.rules);
        let go_on = |resolver| Journal::take_up(path, file, config, rules, resolver);
        self.hooks.give(go_on)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use twinstep_core::testing::doc::Counter;

    use super::*;
    use twinstep_server::Output;

    fn blueprint() -> Blueprint<Counter> {
        Blueprint::action(Counter::default(), ())
    }

    #[test]
    fn policies_leave_what_was_said_of_seats_and_build() {
        let policies = MatchConfig {
            players_max: 2,
            build: "another".to_owned(),
            ..MatchConfig::strategy()
        };
        let made = blueprint().players(5).build("ours").policies(policies);
        assert_eq!((made.config.players_max, &*made.config.build), (5, "ours"));
        assert_eq!(made.config.tick, MatchConfig::strategy().tick);
        let before = unix_now().as_secs();
        assert!(made.dated().config.unix_time >= before);
    }

    /// A match that was taken up again was judged by nobody.
    #[test]
    fn a_match_has_its_referee_whether_it_is_new_or_goes_on() {
        let set = Arc::<AtomicU32>::default();
        let with_referee = || {
            let sets = set.clone();
            let mut blueprint = blueprint();
            blueprint.hooks.set_up(move |_| {
                sets.fetch_add(1, Ordering::Relaxed);
            });
            blueprint
        };
        let name = format!("twinstep-blueprint-{}.journal", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let mut match_ = with_referee().make().unwrap();
        assert_eq!(set.load(Ordering::Relaxed), 1);
        match_.keep_journal().unwrap();
        let mut journal = Journal::create(&path).unwrap();
        while let Some(output) = match_.poll() {
            if let Output::Journal(bytes) = output {
                journal.append(bytes).unwrap();
            }
        }
        drop(journal);
        with_referee().resume(&path).unwrap();
        assert_eq!(set.load(Ordering::Relaxed), 2);
        std::fs::remove_file(&path).unwrap();
    }
}
