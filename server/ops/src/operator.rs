//! A server configured by an operator, through flags, the environment and a file.
//!
//! A game's program flattens [`Settings`] into its own [clap](https://docs.rs/clap) command, next to its own flags.
//! Each flag (`--max-players 4`), including the game's own, is also a variable of the environment
//! (`TWINSTEP_MAX_PLAYERS=4`) and a key of a TOML file (`max-players = 4`).
//!
//! ```no_run
//! use clap::Parser;
//! use twinstep_core::testing::doc::Counter;
//! use twinstep_host::Server;
//! use twinstep_ops::operator::{Settings, operate};
//!
//! #[derive(Parser)]
//! struct Flags {
//!     #[command(flatten)]
//!     settings: Settings,
//!     /// The seed of the match
//!     #[arg(long, default_value_t = 1)]
//!     seed: u64,
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     operate(
//!         |flags: &Flags| &flags.settings,
//!         |flags| {
//!             println!("a match of seed {}", flags.seed);
//!             Ok(Server::action(Counter::default(), ()))
//!         },
//!     )
//! }
//! ```
//!
//! ```text
//!  flags > environment > file > credentials, defaults ─▶ clap: each value ─▶ Settings: all together ─▶ Server
//!  SIGHUP ─▶ keys, bans and the token are reloaded
//! ```
//!
//! Invariant: an unusable value, or an unknown flag or key, is an error with its place. A secret is never a value: the
//! value is the name of its file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use twinstep_core::Simulation;
use twinstep_host::internal::logged;
use twinstep_host::{Server, Stopped};
use twinstep_protocol::packet::closed::CloseCode;

mod addresses;
mod arguments;
mod error;
mod files;
mod operated;
mod reload;
mod serving;
mod settings;

pub use addresses::{dialled, listened};
pub use arguments::{Arguments, plain_number, table};
pub use error::SettingError;
pub use operated::{Operated, OperatedMatches};
pub use settings::{DurabilityWord, FleetWord, JournalFailureWord, ManySettings, Public, Settings};

/// Reads the flags of a program together with an environment and the settings file that they name.
///
/// # Errors
/// If the settings file cannot be read, or a value is refused. The error gives the place of the value.
pub fn read<A: CommandFactory + FromArgMatches>(
    words: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(A, ReadSettings), clap::Error> {
    let mut command = A::command();
    command.build();
    let arguments = Arguments::read(&command, words, environment)?;
    let read = command.try_get_matches_from_mut(arguments.args());
    let read = read.and_then(|matches| Ok((A::from_arg_matches(&matches)?, matches)));
    let (flags, matches) = read.map_err(|error| arguments.explain(error))?;
    Ok((flags, ReadSettings::of(&arguments, &command, &matches)))
}

/// The result of reading settings.
#[derive(Clone, Debug, Default)]
pub struct ReadSettings {
    unknown: Vec<String>,
    places: BTreeMap<String, String>,
    /// All settings in the form of a settings file, with the origin of each.
    pub printed: String,
}

impl ReadSettings {
    /// Collects the unknown environment variables and prints all settings that `command` parsed.
    #[must_use]
    pub fn of(arguments: &Arguments, command: &Command, matches: &ArgMatches) -> ReadSettings {
        ReadSettings {
            unknown: arguments.unknown().to_vec(),
            places: arguments.places().clone(),
            printed: arguments.print(command, matches),
        }
    }

    /// Replaces the flag named in an error with the place of the value, if the value comes from elsewhere.
    #[must_use]
    pub fn place(&self, error: SettingError) -> SettingError {
        error.placed(&self.places)
    }

    /// Logs environment variables that have the settings' prefix but are not settings.
    pub fn warn_of_unknown_variables(&self) {
        if !self.unknown.is_empty() {
            logged::warn!(
                variables = self.unknown.join(","),
                "TWINSTEP_ variables that are not settings are ignored"
            );
        }
    }

    /// The report of a successful check.
    #[must_use]
    pub const fn check_report() -> &'static str {
        "settings and files are valid (not checked: whether the --listen, --admin and --web addresses are free, the fleet's sidecar, and with --matches the journals)\n"
    }
}

/// Runs a whole program: reads the operator's settings; prints or checks them if asked to; otherwise starts the server
/// that `make` returns, and runs it until it is asked to end. Exits with 0 on success, with 1 if the match ended by a
/// fault or signals cannot be handled, with 2 for an unusable setting, with 130 after a second stop signal, which ends
/// it without waiting. Errors go to standard error, logs where the author sends them.
pub fn operate<A: CommandFactory + FromArgMatches, S: Simulation>(
    settings: impl FnOnce(&A) -> &Settings,
    make: impl FnOnce(&A) -> Result<Server<S>, SettingError>,
) -> ExitCode {
    let (flags, reading) = match read::<A>(std::env::args_os(), std::env::vars_os()) {
        Ok(read) => read,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    reading.warn_of_unknown_variables();
    let settings = settings(&flags);
    let say = |words: &str| {
        // A closed pipe is fine, because the reader has read enough.
        let _ = std::io::stdout().write_all(words.as_bytes());
        ExitCode::SUCCESS
    };
    let complain = |what: &dyn std::fmt::Display, code: u8| {
        let _ = writeln!(std::io::stderr(), "error: {what}");
        ExitCode::from(code)
    };
    if settings.print_config {
        return say(&reading.printed);
    }
    let started = make(&flags).and_then(|server| match settings.check {
        true => settings.check_one(server).map(|()| None),
        false => settings.clone().listen(server).map(Some),
    });
    match started.map(|server| server.map(Operated::run_until_stopped)) {
        Ok(None) => say(ReadSettings::check_report()),
        Ok(Some(Ok(Stopped::Over(CloseCode::Fault)))) => complain(
            &"a fault ended the match: see \"incident ended the match\" in the log, and the incident file, if one was written",
            1,
        ),
        Ok(Some(Ok(Stopped::InOrder | Stopped::Over(_)))) => ExitCode::SUCCESS,
        // The exit code of a program that was ended by a signal.
        Ok(Some(Ok(Stopped::AtOnce))) => ExitCode::from(130),
        Ok(Some(Err(error))) => {
            let message =
                format_args!("cannot install the handler for stop signals: {error}").to_string();
            complain(&message, 1)
        }
        Err(error) => complain(&reading.place(error), 2),
    }
}

#[cfg(test)]
mod tests;
