//! A server that an operator sets up: by flags, by the environment, by a file.
//!
//! One table of [settings](Setting) says what can be chosen: name, meaning, unit, range, default. From it come the flags
//! (`--max-players 4`), the variables (`TWINSTEP_MAX_PLAYERS=4`), the keys of a TOML file (`max-players = 4`), `--help`, and
//! the table in the guide (`twinstep_guide::configuring`). Every server has the settings of [`Operator::new`]; a game adds its
//! own.
//!
//! ```no_run
//! use twinstep_core::testing::doc::Counter;
//! use twinstep_host::Server;
//! use twinstep_ops::operator::{Operator, Setting};
//!
//! fn main() -> std::process::ExitCode {
//!     Operator::new("counter")
//!         .players(1..=4, 4)
//!         .setting(Setting::number("seed", 0..=u64::MAX, "(any number)", "The seed of the match").or("1"))
//!         .main(|chosen| {
//!             let seed: u64 = chosen.get("seed").unwrap_or_default();
//!             println!("a match of seed {seed}");
//!             Ok(Server::action(Counter::default(), ()))
//!         })
//! }
//! ```
//!
//! ```text
//!  flags > environment > file > credentials, defaults ──▶ each value checked ──▶ all together ──▶ Configured ──▶ Server
//!  SIGHUP ──▶ keys, bans and the token are read again
//! ```
//!
//! Invariant: a value that will not do, or a name that is not known, is an error that says where it stands; no secret is
//! ever a value, only the name of its file.

use std::ffi::OsString;
use std::io::Write;
use std::ops::RangeInclusive;
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use twinstep_core::Simulation;
use twinstep_host::{Server, Stopped};
use twinstep_protocol::packet::closed::CloseCode;

mod addresses;
mod choices;
mod configured;
mod error;
mod files;
mod many;
mod operated;
mod origin;
mod reload;
mod serving;
mod setting;
mod source;
mod standard;

pub use addresses::{dialled, listened};
pub use configured::Configured;
pub use error::SettingError;
pub use operated::{Operated, OperatedMany};
pub use origin::SettingSource;
pub use setting::{ENVIRONMENT_PREFIX, Setting, SettingCheck};
pub use source::GivenFlags;

/// A server's settings, and how it is started by them.
#[derive(Clone, Debug)]
pub struct Operator {
    name: &'static str,
    settings: Vec<Setting>,
}

/// What an operator asked for.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// A server, set up so.
    Server(Box<Configured>),
    /// Only whether such a server would start: see [`Configured::check`] and [`Configured::check_many`].
    Check(Box<Configured>),
    /// Only this text, on standard output.
    Words(String),
}

impl Operator {
    /// The settings that every server has; `name` is the program's.
    #[must_use]
    pub fn new(name: &'static str) -> Operator {
        let settings = standard::settings();
        Operator { name, settings }
    }

    /// How many may play in the game, and how many if nothing is said.
    ///
    /// # Panics
    /// If the default is out of the range.
    #[must_use]
    pub fn players(self, range: RangeInclusive<u64>, default: u64) -> Operator {
        let about = "How many may play";
        let players = Setting::number("max-players", range, "players", about);
        self.setting(players.or(&default.to_string()))
    }

    /// The server may have many matches, made on demand: see [`Configured::listen_many`].
    #[must_use]
    pub fn many(self) -> Operator {
        many::settings().into_iter().fold(self, Operator::setting)
    }

    /// A setting of the game's own; one of the same name is replaced by it.
    ///
    /// # Panics
    /// If the name is not one of lower-case letters, digits and `-`.
    #[must_use]
    pub fn setting(mut self, setting: Setting) -> Operator {
        let name = setting.name();
        let is_sound =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(
            !name.is_empty() && name.bytes().all(is_sound),
            "a setting's name is lower-case letters, digits and -, such as max-players; got {name:?}"
        );
        match self.settings.iter_mut().find(|known| known.name() == name) {
            Some(known) => *known = setting,
            None => self.settings.push(setting),
        }
        self
    }

    /// All settings, in the order of `--help`.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The settings as a table in Markdown, for documents.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::from(
            "| setting | what it means | range | if nothing is said |\n|---|---|---|---|\n",
        );
        for setting in &self.settings {
            let range = setting.range().replace('|', "\\|").replace('[', "\\[");
            let otherwise = setting.otherwise().unwrap_or("-");
            let (name, about) = (setting.name(), setting.about());
            out.push_str(&format!("| `{name}` | {about} | {range} | {otherwise} |\n"));
        }
        out
    }

    /// Adds a flag for each setting to a command of the author's own.
    #[must_use]
    pub fn flags(&self, command: Command) -> Command {
        let own = self.settings.iter().filter(|one| !one.is_inherited());
        command.args(own.map(Setting::flag))
    }

    /// What the flags of such a command said.
    #[must_use]
    pub fn given(&self, matches: &ArgMatches) -> GivenFlags {
        GivenFlags::of(&self.settings, matches)
    }

    /// Puts flags, an environment and the file together, and checks each value, and all of them together.
    ///
    /// # Errors
    /// [`SettingError`]: where it stands, what was expected, what came.
    pub fn read(
        &self,
        flags: &GivenFlags,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Wanted, SettingError> {
        let environment = environment.into_iter().collect();
        let configured = Configured::read(self.settings.clone(), flags.clone(), environment)?;
        if configured.is_on("print-config") {
            return Ok(Wanted::Words(configured.print()));
        }
        let checks = configured.is_on("check");
        let configured = Box::new(configured);
        Ok(match checks {
            true => Wanted::Check(configured),
            false => Wanted::Server(configured),
        })
    }

    /// A whole program: reads what the operator chose, starts the server that the author makes of that, and runs it until
    /// it is asked to end. Exits with 0 if all went well, with 1 if the match ended by a fault, with 2 if something
    /// that was chosen will not do, with 130 if it was asked a second time and so ended without waiting. What went wrong
    /// stands on standard error. Logs go where the author sends them.
    pub fn main<S: Simulation>(
        self,
        make: impl FnOnce(&Configured) -> Result<Server<S>, SettingError>,
    ) -> ExitCode {
        let matches = self.flags(Command::new(self.name)).get_matches();
        let wanted = self.read(&self.given(&matches), std::env::vars_os());
        let started = wanted.and_then(|wanted| match wanted {
            Wanted::Words(words) => Ok(Err(words)),
            Wanted::Check(configured) => {
                let server = make(&configured)?;
                configured.check(server).map(Err)
            }
            Wanted::Server(configured) => {
                let server = make(&configured)?;
                configured.listen(server).map(Ok)
            }
        });
        let complain = |what: &dyn std::fmt::Display| {
            let _ = writeln!(std::io::stderr(), "error: {what}");
        };
        match started {
            Ok(Ok(server)) => match server.run_until_stopped() {
                Ok(Stopped::Over(CloseCode::Fault)) => {
                    complain(&"the match ended by a fault, of which its incident file tells");
                    ExitCode::FAILURE
                }
                Ok(Stopped::InOrder | Stopped::Over(_)) => ExitCode::SUCCESS,
                // As a program that a signal ends.
                Ok(Stopped::AtOnce) => ExitCode::from(130),
                Err(error) => {
                    complain(&format_args!(
                        "this process cannot be asked to end: {error}"
                    ));
                    ExitCode::FAILURE
                }
            },
            // Who does not read it any more has read enough.
            Ok(Err(words)) => {
                let _ = std::io::stdout().write_all(words.as_bytes());
                ExitCode::SUCCESS
            }
            Err(error) => {
                complain(&error);
                ExitCode::from(2)
            }
        }
    }
}
