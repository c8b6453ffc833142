//! [`Setting`]: one thing that an operator can choose. From it come a flag, a variable of the environment, a key of the
//! file, a line of `--help` and a row of the guide's table.
//!
//! ```text
//!  Setting::number("max-players", 1..=8, "players", "How many may play").or("8")
//!    --max-players 8   TWINSTEP_MAX_PLAYERS=8   max-players = 8
//! ```

use std::ops::RangeInclusive;

use clap::{Arg, ArgAction};

use super::addresses::listened;

/// How variables of the environment begin that are settings.
pub const ENVIRONMENT_PREFIX: &str = "TWINSTEP_";

/// Says what is wrong with a text, as "expected ...".
pub type SettingCheck = fn(&str) -> Result<(), String>;

/// One thing that an operator can choose.
#[derive(Clone, Debug)]
pub struct Setting {
    name: &'static str,
    takes: Takes,
    default: Option<String>,
    /// What stands there if nothing is chosen and no default can be given as a text.
    otherwise: Option<&'static str>,
    about: String,
    /// Its flag is another command's, which passes it on.
    is_inherited: bool,
    needs: &'static [&'static str],
    excludes: &'static [&'static str],
}

/// What a setting may be.
#[derive(Clone, Debug)]
enum Takes {
    /// On or off.
    Switch,
    Number {
        range: RangeInclusive<u64>,
        unit: &'static str,
    },
    OneOf(&'static [(&'static str, &'static str)]),
    /// A file or folder.
    Path(&'static str),
    /// A file that only its owner may read; its text is told nowhere.
    Secret,
    Text {
        form: &'static str,
        check: SettingCheck,
    },
}

impl Setting {
    fn new(name: &'static str, takes: Takes, about: &str) -> Setting {
        Setting {
            name,
            takes,
            default: None,
            otherwise: None,
            is_inherited: false,
            about: about.to_owned(),
            needs: &[],
            excludes: &[],
        }
    }

    /// Something that is on or off. Off if nothing is said.
    #[must_use]
    pub fn switch(name: &'static str, about: &str) -> Setting {
        Setting::new(name, Takes::Switch, about)
    }

    /// A whole number of these units, such as `"players"`, within a range.
    #[must_use]
    pub fn number(
        name: &'static str,
        range: RangeInclusive<u64>,
        unit: &'static str,
        about: &str,
    ) -> Setting {
        Setting::new(name, Takes::Number { range, unit }, about)
    }

    /// One of these words; beside each, what it means.
    #[must_use]
    pub fn one_of(
        name: &'static str,
        words: &'static [(&'static str, &'static str)],
        about: &str,
    ) -> Setting {
        Setting::new(name, Takes::OneOf(words), about)
    }

    /// A file.
    #[must_use]
    pub fn file(name: &'static str, about: &str) -> Setting {
        Setting::new(name, Takes::Path("FILE"), about)
    }

    /// A folder.
    #[must_use]
    pub fn folder(name: &'static str, about: &str) -> Setting {
        Setting::new(name, Takes::Path("DIR"), about)
    }

    /// A file with a secret in it: only its owner may read it. If nothing is said, a credential of this name is taken, if
    /// there is one: see the chapter on configuration (`twinstep_guide::configuring`).
    #[must_use]
    pub fn secret(name: &'static str, about: &str) -> Setting {
        Setting::new(name, Takes::Secret, about)
    }

    /// Where a socket listens, in numbers.
    #[must_use]
    pub fn address(name: &'static str, about: &str) -> Setting {
        Setting::text(name, "ADDR", |text| listened(text).map(drop), about)
    }

    /// Any text of a form, such as `"MIN..MAX"`, that the check likes.
    #[must_use]
    pub fn text(
        name: &'static str,
        form: &'static str,
        check: SettingCheck,
        about: &str,
    ) -> Setting {
        Setting::new(name, Takes::Text { form, check }, about)
    }

    /// What it is if nothing is said.
    ///
    /// # Panics
    /// If that is out of the setting's own range.
    #[must_use]
    pub fn or(mut self, default: &str) -> Setting {
        if let Err(why) = self.check(default) {
            panic!("the default of {}: {why}", self.name);
        }
        self.default = Some(default.to_owned());
        self
    }

    /// In words, what happens if nothing is said.
    #[must_use]
    pub fn or_else(mut self, otherwise: &'static str) -> Setting {
        self.otherwise = Some(otherwise);
        self
    }

    /// It means something only if one of these is chosen too.
    #[must_use]
    pub fn needs(mut self, others: &'static [&'static str]) -> Setting {
        self.needs = others;
        self
    }

    /// It contradicts these.
    #[must_use]
    pub fn excludes(mut self, others: &'static [&'static str]) -> Setting {
        self.excludes = others;
        self
    }

    /// Its flag, of the same name, is one of the program's own that holds for all its tasks: a `global` one of clap, with an id
    /// of that name and the type `String`.
    #[must_use]
    pub fn inherited(mut self) -> Setting {
        self.is_inherited = true;
        self
    }

    /// Its name: the flag's behind `--`, and the key in the file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its variable in the environment.
    #[must_use]
    pub fn variable(&self) -> String {
        let name = self.name.replace('-', "_").to_ascii_uppercase();
        format!("{ENVIRONMENT_PREFIX}{name}")
    }

    /// What it means.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// What it may be, with its unit.
    #[must_use]
    pub fn range(&self) -> String {
        match &self.takes {
            Takes::Switch => "true or false".to_owned(),
            Takes::Number { range, unit } if *range.end() == u64::MAX => {
                format!("{} or more {unit}", range.start())
            }
            Takes::Number { range, unit } => format!("{} to {} {unit}", range.start(), range.end()),
            Takes::OneOf(words) => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                words.join(", ")
            }
            Takes::Path("DIR") => "a folder".to_owned(),
            Takes::Path(_) => "a file".to_owned(),
            Takes::Secret => "a file of mode 0600".to_owned(),
            Takes::Text { form, .. } => (*form).to_owned(),
        }
    }

    /// What it is if nothing is said, in words if it cannot be said as a text.
    #[must_use]
    pub fn otherwise(&self) -> Option<&str> {
        self.default.as_deref().or(self.otherwise)
    }

    pub(super) fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    pub(super) fn needed(&self) -> &'static [&'static str] {
        self.needs
    }

    pub(super) fn excluded(&self) -> &'static [&'static str] {
        self.excludes
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    pub(super) fn is_switch(&self) -> bool {
        matches!(self.takes, Takes::Switch)
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self.takes, Takes::Secret)
    }

    /// Whether the file may say it as a number or a truth value, without quotes.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self.takes, Takes::Switch | Takes::Number { .. })
    }

    /// Whether this text will do.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        match &self.takes {
            Takes::Switch if ["true", "false"].contains(&text) => Ok(()),
            Takes::Number { range, .. }
                if text.parse().is_ok_and(|number| range.contains(&number)) =>
            {
                Ok(())
            }
            Takes::OneOf(words) if words.iter().any(|(word, _)| *word == text) => Ok(()),
            Takes::Path(_) | Takes::Secret if !text.is_empty() => Ok(()),
            Takes::Text { check, .. } => check(text),
            _ => Err(format!("expected {}", self.range())),
        }
    }

    /// The flag; its value is looked at later, with those from elsewhere.
    #[must_use]
    pub fn flag(&self) -> Arg {
        let mut help = self.about.clone();
        if let Takes::OneOf(words) = &self.takes {
            let list: Vec<String> = words
                .iter()
                .map(|(word, means)| format!("{word}: {means}"))
                .collect();
            help = format!("{help} ({})", list.join("; "));
        }
        if let Takes::Number { range, .. } = &self.takes
            && *range.end() < u64::from(u32::MAX)
        {
            help = format!("{help}, {} to {}", range.start(), range.end());
        }
        if let Some(otherwise) = self.otherwise() {
            help = format!("{help} [default: {otherwise}]");
        }
        let arg = Arg::new(self.name).long(self.name).help(help);
        let form = match &self.takes {
            Takes::Switch => return arg.action(ArgAction::SetTrue),
            Takes::Number { .. } => "N",
            Takes::OneOf(_) => "WORD",
            Takes::Path(form) | Takes::Text { form, .. } => form,
            Takes::Secret => "FILE",
        };
        // A value may begin with a sign: its check says better what is wrong with it.
        arg.action(ArgAction::Set)
            .value_name(form)
            .allow_hyphen_values(true)
    }
}
