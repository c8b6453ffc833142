//! A server of many matches, as an operator chose it: [`Configured::listen_many`], [`OperatedMany`].

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_host::{Blueprint, HostConfig, HostError, OnDemand, RunningMany, Template};
use twinstep_udp::SESSIONS_MAX;

use super::choices::{Choices, Preparing};
use super::configured::Configured;
use super::error::SettingError;
use super::operated::{OperatedMany, Operating};
use super::setting::Setting;
use crate::Ops;

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
        let (players, spectators) = (choices.players, choices.spectators);
        let delay_s = choices.delay_s;
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
            .durability(choices.durability)
            .on_journal_failure(choices.on_journal_failure);
        if let Some(folder) = &choices.journals {
            matches = matches.journals(folder);
        }
        let ops = Ops::open(choices.ops())?;
        let mut config = HostConfig::new(S::NAME, choices.listen, choices.keys[0].clone());
        choices.give(&mut config);
        ops.attach(&mut config);
        config.incidents = config.incidents.or(choices.journals);
        // Twice as many as there may be people, so that who returns need not wait for its old session to time out.
        let sessions = 2 * at_once * (players + spectators);
        config.sessions_max = Some(sessions.min(SESSIONS_MAX));
        let running = RunningMany::start(matches, config)?;
        let control = running.host().control();
        let operating = Operating::start(ops, control, self, choices.files, &choices.keys)?;
        Ok(OperatedMany { running, operating })
    }
}
