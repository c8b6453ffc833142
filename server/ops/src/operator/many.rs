//! A server of many matches, as an operator chose it: [`Configured::listen_many`], [`OperatedMany`].

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_udp::SESSIONS_MAX;

use super::choices::{Choices, Preparing};
use super::configured::Configured;
use super::error::SettingError;
use super::reload::Rereading;
use super::setting::Setting;
use crate::{
    BACK_AFTER, Blueprint, HostConfig, HostError, OnDemand, RunningMany, Stopped, Template,
};

/// Matches of a process at most: a session is one of at most [`SESSIONS_MAX`].
const MATCHES_MAX: u64 = 1_000;

/// What an operator chooses of many matches, beside the rest.
pub(super) fn settings() -> [Setting; 3] {
    [
        Setting::number(
            "matches",
            1..=MATCHES_MAX,
            "matches",
            "Make matches when somebody with a ticket comes for them, up to so many at once, instead of one match",
        )
        .excludes(&["new-match"]),
        Setting::number(
            "deserted-after",
            1..=86_400,
            "seconds",
            "When a match is over that nobody is in",
        )
        .or("60")
        .needs(&["matches"]),
        Setting::number(
            "matches-per-second",
            1..=MATCHES_MAX,
            "matches a second",
            "How many matches are made in a second; who comes too early is told to come back in a moment",
        )
        .or("20")
        .needs(&["matches"]),
    ]
}

/// The blueprint of a match, with the chosen numbers of players and spectators.
fn of_people<S: Simulation>(
    blueprint: Blueprint<S>,
    players: usize,
    spectators: usize,
    delay_s: u32,
) -> Blueprint<S> {
    let blueprint = blueprint.players(players);
    let delay_ticks = (f64::from(delay_s) / blueprint.tick().as_secs_f64()).round() as u32;
    blueprint.spectators(spectators, delay_ticks)
}

/// One match stands for all: a policy that will not do is refused before anybody comes.
fn rehearse<S: Simulation>(
    template: &impl Template<S>,
    choices: &Choices,
) -> Result<(), SettingError> {
    let Choices {
        players,
        spectators,
        delay_s,
        ..
    } = *choices;
    // A template that makes no such match says nothing of others.
    let Some(one) = template.blueprint(1) else {
        return Ok(());
    };
    let one = of_people(one, players, spectators, delay_s);
    Ok(one.rehearse().map_err(HostError::from)?)
}

impl Configured {
    /// Checks whether this server of many matches would start: see [`check`](Self::check).
    ///
    /// # Errors
    /// [`SettingError`]: what the start would say.
    pub fn check_many<S: Simulation>(
        &self,
        template: impl Template<S>,
    ) -> Result<String, SettingError> {
        rehearse(&template, &self.choices(Preparing::Check)?)?;
        Ok(self.will_do())
    }

    /// Starts a server whose matches are made on demand, as it was chosen: `template` says what each is made of. Seats,
    /// spectators, journals, keys and addresses are those of the settings.
    ///
    /// # Errors
    /// [`SettingError`]: a file or address that will not do.
    ///
    /// # Panics
    /// Within a tokio runtime. If the operator's settings are not those of [`many`](super::Operator::many) matches.
    pub fn listen_many<S: Simulation>(
        self,
        template: impl Template<S>,
    ) -> Result<OperatedMany, SettingError> {
        let choices = self.choices(Preparing::Start)?;
        rehearse(&template, &choices)?;
        // Each choice by name: one that is forgotten here is an error.
        let Choices {
            listen,
            public,
            players,
            spectators,
            delay_s,
            files,
            keys,
            journals,
            new_match: _,
            durability,
            on_journal_failure,
            keep,
            incidents,
            drain_within,
            limits,
            admin,
            admin_socket,
            fleet,
        } = choices;
        let at_once = self.get("matches").unwrap_or(64);
        let deserted_after = self.get("deserted-after").unwrap_or(60);
        let of_each = move |id| {
            let blueprint = template.blueprint(id)?;
            Some(of_people(blueprint, players, spectators, delay_s))
        };
        let mut matches = OnDemand::new(of_each)
            .at_once(at_once)
            .deserted_after(Duration::from_secs(deserted_after))
            .per_second(self.get("matches-per-second").unwrap_or(20))
            .keep(keep)
            .durability(durability)
            .on_journal_failure(on_journal_failure);
        if let Some(folder) = &journals {
            matches = matches.journals(folder);
        }
        let config = HostConfig {
            game: S::NAME.to_owned(),
            listen,
            public,
            keys: keys.clone(),
            lineages_file: Some(files.lineages.clone()),
            bans_file: Some(files.bans.clone()),
            incidents: incidents.or(journals),
            back_after: BACK_AFTER,
            drain_within,
            // Twice as many as there may be people, so that who returns need not wait for its old session to time out.
            sessions_max: (2 * at_once * (players + spectators)).min(SESSIONS_MAX),
            admin,
            admin_socket,
            fleet,
            admin_token: Some(files.token.clone()),
            limits,
        };
        let running = RunningMany::begin(matches, config, true)?;
        let (reloader, runtime) = (running.host().reloader(), running.runtime().handle());
        let rereading = Rereading::start(self, files, &keys, reloader, runtime);
        Ok(OperatedMany {
            running,
            _rereading: rereading,
        })
    }
}

/// A server of many matches that runs as its operator chose, and looks at its keys and bans again when it is told to
/// (SIGHUP).
pub struct OperatedMany {
    running: RunningMany,
    _rereading: Rereading,
}

impl OperatedMany {
    /// The server.
    #[must_use]
    pub fn running(&self) -> &RunningMany {
        &self.running
    }

    /// Runs until the process is asked to end: see [`RunningMany::run_until_stopped`].
    ///
    /// # Errors
    /// The operating system does not let the process listen for signals.
    pub fn run_until_stopped(self) -> std::io::Result<Stopped> {
        self.running.run_until_stopped()
    }
}
