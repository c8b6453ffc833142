//! [`Blueprint`]: how a match is created.

use std::sync::Arc;

use twinstep_core::{PlayerId, Simulation};

use super::clock::unix_now;
use super::journal_file::{Journal, JournalFileError};
use twinstep_server::config::{MatchConfig, Spectators};
use twinstep_server::hooks::{Referee, Resolver};
use twinstep_server::internal::Hooks;
use twinstep_server::{LoadError, Match, MatchStartError, Upgrade};

/// The initial world, rules, hooks and configuration of a match. Nothing is computed before the match is created.
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
    /// An action game that starts from `sim`: see [`MatchConfig::action`].
    pub fn action(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Blueprint::with(MatchConfig::action(), sim, rules)
    }

    /// A strategy game that starts from `sim`: see [`MatchConfig::strategy`].
    pub fn strategy(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Blueprint::with(MatchConfig::strategy(), sim, rules)
    }

    /// A match of any configuration that starts from `sim`.
    pub fn with(config: MatchConfig, sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Blueprint {
            config,
            sim,
            rules: rules.into(),
            hooks: Hooks::default(),
        }
    }

    /// Sets the resolver, which answers the game's queries. Without one, queries stay unanswered.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.hooks.resolver(resolver);
        self
    }

    /// Sets the referee, which admits commands and claims. Without one, all within the bounds are admitted.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.hooks.referee(referee);
        self
    }

    /// Sets all policies of the match, except the number of seats, the reserved seats and the build name.
    #[must_use]
    pub fn policies(mut self, policies: MatchConfig) -> Self {
        self.config = MatchConfig {
            players_max: self.config.players_max,
            reserved: self.config.reserved,
            build: self.config.build,
            ..policies
        };
        self
    }

    /// Sets the number of seats, 1..=16. Default: 8.
    #[must_use]
    pub fn players(mut self, seats: usize) -> Self {
        self.config.players_max = seats;
        self
    }

    /// Reserves a seat for an identity: see [`MatchConfig::reserve`].
    #[must_use]
    pub fn seat(mut self, identity: &str, player: PlayerId) -> Self {
        self.config = self.config.reserve(identity, player);
        self
    }

    /// Sets the name of this build: shown in the journal and the handshake, never compared.
    #[must_use]
    pub fn build_name(mut self, name: &str) -> Self {
        self.config.build = name.to_owned();
        self
    }

    /// Sets the number of spectators and their delay: up to 16 with 0 ticks, or up to 512 with 180 to 900 ticks.
    /// Default: none.
    #[must_use]
    pub fn spectators(mut self, max: usize, delay_ticks: u32) -> Self {
        self.config.spectators = Spectators { max, delay_ticks };
        self
    }

    /// The configured length of the match's ticks.
    #[must_use]
    pub fn tick_length(&self) -> std::time::Duration {
        self.config.tick
    }

    /// Creates the match and drops it, to check that it can be created.
    pub fn rehearse(self) -> Result<(), MatchStartError> {
        self.config.check()?;
        self.make().map(drop)
    }

    pub(super) fn dated(mut self) -> Self {
        self.config.unix_time = unix_now().as_secs();
        self
    }

    pub(super) fn make(self) -> Result<Match<S>, MatchStartError> {
        self.hooks.make(self.config, self.sim, self.rules)
    }

    /// Creates a match that starts from a save instead of this blueprint's initial world.
    ///
    /// # Errors
    /// The errors of [`Match::load`].
    pub fn load(self, save: &[u8], upgrade: Option<Upgrade<S>>) -> Result<Match<S>, LoadError> {
        let (config, rules) = (self.config, self.rules);
        let load = |resolver| Ok((Match::load(config, save, rules, resolver, upgrade)?, ()));
        self.hooks.give(load).map(|(match_, ())| match_)
    }

    pub(super) fn resume(
        self,
        path: impl Into<std::path::PathBuf>,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let (config, rules) = (self.config, self.rules);
        let go_on = |resolver| Journal::resume(path, config, rules, resolver);
        self.hooks.give(go_on)
    }

    pub(super) fn rehearse_resume(self, path: &std::path::Path) -> Result<(), JournalFileError> {
        let (config, rules) = (self.config, self.rules);
        let rehearse = |resolver| {
            let resumed = Journal::rehearse(path, config, rules, resolver)?;
            Ok::<_, JournalFileError>((resumed, ()))
        };
        self.hooks.give(rehearse).map(drop)
    }

    pub(super) fn resume_locked(
        self,
        path: std::path::PathBuf,
        file: std::fs::File,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let (config, rules) = (self.config, self.rules);
        let go_on = |resolver| Journal::resume_locked(path, file, config, rules, resolver);
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
    fn policies_keep_seats_and_build_name() {
        let policies = MatchConfig {
            players_max: 2,
            build: "another".to_owned(),
            ..MatchConfig::strategy()
        };
        let made = blueprint().players(5).build_name("ours").policies(policies);
        assert_eq!((made.config.players_max, &*made.config.build), (5, "ours"));
        assert_eq!(made.config.tick, MatchConfig::strategy().tick);
        let before = unix_now().as_secs();
        assert!(made.dated().config.unix_time >= before);
    }

    #[test]
    fn new_and_resumed_matches_have_their_referee() {
        let set = Arc::<AtomicU32>::default();
        let with_referee = || {
            let sets = set.clone();
            let mut blueprint = blueprint();
            blueprint.hooks.set_up(move |_| {
                sets.fetch_add(1, Ordering::Relaxed);
            });
            // Another hook does not replace it.
            blueprint.hooks.set_up(|_| {});
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
