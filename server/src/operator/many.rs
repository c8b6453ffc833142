//! A server of many matches, as an operator chose it: [`Configured::listen_many`], [`OperatedMany`].

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_udp::SESSIONS_MAX;

use super::configured::Configured;
use super::error::SettingError;
use super::files::Files;
use super::reload::Rereading;
use super::setting::Setting;
use super::standard::{self, Public};
use crate::host::{HostConfig, KeepJournals, OnDemand, RunningMany, Stopped, Template};

/// Matches of a process at most: a session is one of at most [`SESSIONS_MAX`].
const MATCHES_MAX: u64 = 1_000;

/// What an operator chooses of many matches, beside the rest.
pub(super) fn settings() -> [Setting; 5] {
    [
        Setting::number(
            "matches",
            1..=MATCHES_MAX,
            "matches",
            "Make matches when somebody with a ticket comes for them, up to so many at once, instead of one match",
        )
        .excludes(&["take-over", "new-match"]),
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
        Setting::number(
            "keep-days",
            0..=36_500,
            "days",
            "For how long the journal of a match that is over is kept",
        )
        .or_else("for ever")
        .needs(&["matches"]),
        Setting::number(
            "keep-megabytes",
            0..=1_000_000_000,
            "MB",
            "How much the journals of matches that are over may take; the oldest go first",
        )
        .or_else("all that there is")
        .needs(&["matches"]),
    ]
}

fn days(days: u32) -> Duration {
    Duration::from_secs(86_400) * days
}

impl Configured {
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
        let listen = self.expect("listen", |all| all.address("listen"))?;
        self.check_spectators()?;
        let files = Files::of(&self)?;
        let at_once = self.get("matches").unwrap_or(64);
        let players: usize = self.get("max-players").unwrap_or(1);
        let (watchers, delay_s) = (
            self.get("spectators").unwrap_or_default(),
            f64::from(self.delay_s()),
        );
        let of_each = move |id| {
            let blueprint = template.blueprint(id)?.players(players);
            let delay_ticks = (delay_s / blueprint.tick().as_secs_f64()).round() as u32;
            Some(blueprint.spectators(watchers, delay_ticks))
        };
        let mut matches = OnDemand::new(of_each)
            .at_once(at_once)
            .deserted_after(Duration::from_secs(
                self.get("deserted-after").unwrap_or(60),
            ))
            .per_second(self.get("matches-per-second").unwrap_or(20))
            .keep(KeepJournals {
                for_at_most: self.get("keep-days").map(days),
                bytes_max: self.get("keep-megabytes").map(|mega: u64| mega * 1_000_000),
                ..KeepJournals::default()
            })
            .durability(self.durability())
            .on_journal_failure(self.on_journal_failure());
        if let Some(folder) = self.path("journal") {
            self.make_folder("journal", &folder)?;
            matches = matches.journals(folder);
        }
        let keys = files.keys()?;
        let newest = keys.first().expect("there is a key, or an error");
        let mut config = HostConfig::new(S::NAME, listen, newest.clone());
        config.keys.clone_from(&keys);
        config.serials_file = Some(files.serials.clone());
        config.bans_file = Some(files.bans.clone());
        config.admin_token = Some(files.token.clone());
        config.incidents = self.path("incidents").or(self.path("journal"));
        config.drain_within = self.drain_within();
        config.limits = self.limits();
        // Twice as many as there may be people, so that who returns need not wait for its old session to time out.
        config.sessions_max = (2 * at_once * (players + watchers)).min(SESSIONS_MAX);
        config.fleet = self.sidecar()?;
        config.public = match self.get_by("public", standard::public) {
            None => Vec::new(),
            Some(Public::At(addresses)) => addresses,
            Some(Public::Auto) => vec![self.ask_fleet(config.fleet)?],
        };
        (config.admin, config.admin_socket) =
            self.get_by("admin", standard::admin).unwrap_or_default();
        let running = RunningMany::start(matches, config)?;
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
