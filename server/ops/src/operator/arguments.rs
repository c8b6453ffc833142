//! [`Arguments`]: the arguments of a command line, completed by the environment and by a settings file.
//!
//! ```text
//!  --max-players 4 ─────────────────────▶ unchanged
//!  TWINSTEP_MAX_PLAYERS=4 ─▶ --max-players=4   unless a flag sets it        one command line ─▶ clap
//!  max-players = 4 (TOML) ─▶ --max-players=4   unless one of these sets it
//! ```
//!
//! Invariant: clap alone checks names and values. So every origin has the same rules, and an error names the place of
//! the value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};
use toml::{Table, Value};
use twinstep_udp::open_regular;

const PREFIX: &str = "TWINSTEP_";
const CONFIG: &str = "config";
const LOOKS: [&str; 4] = ["check", "print-config", "help", "version"];
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The arguments of a command line, with those added from the environment and the file.
#[derive(Clone, Debug)]
pub struct Arguments {
    args: Vec<OsString>,
    /// The origin of each added value, keyed by flag name.
    from: BTreeMap<String, String>,
    unknown: Vec<String>,
}

impl Arguments {
    /// Completes a command line whose last command has these flags.
    ///
    /// # Errors
    /// If the settings file cannot be read, or a value in it or in the environment has the wrong form.
    pub fn read(
        command: &Command,
        args: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Arguments, Error> {
        let mut arguments = Arguments {
            args: args.into_iter().collect(),
            from: BTreeMap::new(),
            unknown: Vec::new(),
        };
        let mut config = arguments.flag(CONFIG).map(PathBuf::from);
        for (variable, value) in environment {
            let variable = variable.to_string_lossy().into_owned();
            let Some(name) = variable.strip_prefix(PREFIX) else {
                continue;
            };
            let name = name.replace('_', "-").to_ascii_lowercase();
            let Some(arg) = command.get_arguments().find(|arg| is_called(arg, &name)) else {
                arguments.unknown.push(variable);
                continue;
            };
            let value = value.to_string_lossy().into_owned();
            // A flag overrides the environment.
            if name == CONFIG && config.is_none() {
                config = Some(PathBuf::from(&value));
            }
            let from = format!("environment variable {variable}");
            arguments.add(Some(arg), &name, &value, from)?;
        }
        if let Some(path) = config.filter(|path| !path.as_os_str().is_empty()) {
            for (name, value) in file(&path)? {
                let from = format!("{}, {name}", path.display());
                let refused =
                    |why: &str| Error::raw(ErrorKind::ValueValidation, format!("{from}: {why}\n"));
                let text = text_of(&value).ok_or_else(|| {
                    refused(&format!(
                        "expected a string, a whole number, true or false, or a list of strings, got {}",
                        match value {
                            Value::Float(_) => "a number with a fraction",
                            Value::Datetime(_) => "a date",
                            Value::Table(_) => "a table",
                            _ => "a list with other values",
                        }
                    ))
                })?;
                if name == CONFIG {
                    return Err(refused(
                        "a settings file cannot name another settings file; remove this key",
                    ));
                }
                let arg = command.get_arguments().find(|arg| is_called(arg, &name));
                arguments.add(arg, &name, &text, from)?;
            }
        }
        Ok(arguments)
    }

    /// The whole command line, for clap.
    #[must_use]
    pub fn args(&self) -> &[OsString] {
        &self.args
    }

    /// Environment variables that have the settings' prefix but are not settings.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    pub(super) fn places(&self) -> &BTreeMap<String, String> {
        &self.from
    }

    fn flag(&self, name: &str) -> Option<OsString> {
        let flag = format!("--{name}");
        let at = self.args.iter().position(|word| {
            let word = word.to_string_lossy();
            let rest = word.strip_prefix(&flag);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })?;
        match self.args[at].to_string_lossy().split_once('=') {
            Some((_, value)) => Some(value.into()),
            None => Some(self.args.get(at + 1).cloned().unwrap_or_default()),
        }
    }

    fn add(
        &mut self,
        arg: Option<&Arg>,
        name: &str,
        value: &str,
        from: String,
    ) -> Result<(), Error> {
        if self.flag(name).is_some() || self.from.contains_key(name) {
            return Ok(());
        }
        let is_switch = arg.is_some_and(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
        match (is_switch, value) {
            (true, "true") => self.args.push(format!("--{name}").into()),
            (true, "false") => {} // There is no flag for this, but it overrides the file.
            (true, _) => {
                let message = format!("{from}: expected true or false, got {value:?}\n");
                return Err(Error::raw(ErrorKind::InvalidValue, message));
            }
            (false, _) => self.args.push(format!("--{name}={value}").into()),
        }
        self.from.insert(name.to_owned(), from);
        Ok(())
    }

    /// Adds to a clap error the place of the value, unless it comes from a flag, and the numbers that are expected.
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
            return error;
        };
        let name = flag.trim_start_matches('-').split([' ', '=']).next();
        let Some(from) = name.and_then(|name| self.from.get(name)) else {
            return plain_number(error);
        };
        if error.kind() == ErrorKind::UnknownArgument {
            let meant = match error.get(ContextKind::SuggestedArg) {
                Some(ContextValue::String(flag)) => {
                    format!("; did you mean {}?", flag.trim_start_matches('-'))
                }
                _ => String::new(),
            };
            return Error::raw(error.kind(), format!("{from}: not a setting{meant}\n"));
        }
        let message = error.to_string();
        let message = number_expected(message.trim_start_matches("error: "));
        let ends =
            ["\n\nUsage", "\n\nFor more"].map(|end| message.find(end).unwrap_or(message.len()));
        let message = &message[..ends[0].min(ends[1])];
        // Control characters could steer a terminal.
        let message = message.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}");
        Error::raw(error.kind(), format!("{from}: {message}\n"))
    }

    /// All settings in the form of a settings file, with the origin of each.
    #[must_use]
    pub fn print(&self, command: &Command, matches: &ArgMatches) -> String {
        let mut out = String::new();
        for arg in command.get_arguments() {
            let (Some(name), id) = (arg.get_long(), arg.get_id().as_str()) else {
                continue;
            };
            if LOOKS.contains(&name) {
                continue;
            }
            let values = matches.get_raw(id).into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            let value = match (arg.get_action(), values.is_empty()) {
                (ArgAction::SetTrue, _) => Some(matches.get_flag(id).to_string()),
                (_, true) => None,
                _ => Some(values.join(",")),
            };
            let is_bare = |value: &str| value.parse::<u64>().is_ok() || is_truth(value);
            let line = match value {
                None => {
                    let unset = match default_in(arg) {
                        Some(default) => format!("# {name}: not set (default: {default})\n"),
                        None => format!("# {name}: not set\n"),
                    };
                    out.push_str(&unset);
                    continue;
                }
                // A settings file cannot name a settings file.
                Some(value) if name == CONFIG => format!("# config: {value}"),
                Some(value) if is_bare(&value) => format!("{name} = {value}"),
                Some(value) => format!("{name} = {}", serde_json::Value::from(value)),
            };
            let from = match (self.from.get(name), matches.value_source(id)) {
                (Some(from), _) => from.clone(),
                (None, Some(ValueSource::CommandLine)) => format!("--{name}"),
                (None, _) => "default".to_owned(),
            };
            out.push_str(&format!("{line:<40}  # {from}\n"));
        }
        out
    }
}

/// Reports a wrong number in a flag like one in a settings file.
#[must_use]
pub fn plain_number(error: Error) -> Error {
    let message = error.to_string();
    let plain = number_expected(&message);
    match plain == message {
        true => error,
        // `Error::raw` adds this prefix itself.
        false => Error::raw(error.kind(), plain.trim_start_matches("error: ")),
    }
}

fn number_expected(message: &str) -> String {
    let message = message.replace("invalid digit found in string", "expected a whole number");
    in_range(&message).unwrap_or(message)
}

// Rewrites the end of a clap message such as `99 is not in 1..=8`.
fn in_range(message: &str) -> Option<String> {
    let (start, range) = message.split_once(" is not in ")?;
    let (before, got) = start.rsplit_once(": ")?;
    let (ends, rest) = range.split_once('\n').unwrap_or((range, ""));
    let (least, most) = ends.split_once("..=")?;
    Some(format!(
        "{before}: expected {least} to {most}, got {got}{}{rest}",
        if rest.is_empty() { "" } else { "\n" }
    ))
}

/// The flags of a command as a Markdown table, for documents.
#[must_use]
pub fn table(command: &Command) -> String {
    let mut out = String::from("| setting | what it means | default |\n|---|---|---|\n");
    for arg in command.get_arguments() {
        let Some(name) = arg
            .get_long()
            .filter(|name| !["help", "version"].contains(name))
        else {
            continue;
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace('|', "\\|").replace('[', "\\[");
        let values: Vec<_> = arg
            .get_default_values()
            .iter()
            .map(|one| one.to_string_lossy())
            .collect();
        let default = match arg.get_action() {
            ArgAction::SetTrue => "false".to_owned(),
            _ if values.is_empty() => "-".to_owned(),
            _ => values.join(","),
        };
        out.push_str(&format!("| `{name}` | {help} | {default} |\n"));
    }
    out
}

// The default that a help text has in brackets.
fn default_in(arg: &Arg) -> Option<String> {
    let help = arg.get_help()?.to_string();
    let (_, rest) = help.split_once("[default: ")?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn is_called(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name)
}

fn is_truth(value: &str) -> bool {
    ["true", "false"].contains(&value)
}

fn file(path: &Path) -> Result<Table, Error> {
    let failed = |source: std::io::Error| {
        let path = path.display();
        let message = format!("cannot read the settings file {path}: {source}\n");
        Error::raw(ErrorKind::Io, message)
    };
    let file = open_regular(path).map_err(failed)?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
    }
    text.parse::<Table>().map_err(|error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..before]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let (path, what) = (path.display(), error.message());
        let message =
            format!("{path}, line {line}: expected TOML, such as max-players = 8: {what}\n");
        Error::raw(ErrorKind::ValueValidation, message)
    })
}

/// A TOML value as the text of a flag; lists are joined with commas.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is) => Some(is.to_string()),
        Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Some(texts?.join(","))
        }
        _ => None,
    }
}
