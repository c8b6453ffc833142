//! The policies of a match, as settings of `serve` and flags of `bots`.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use twinstep_ops::operator::{Configured, Setting};
use twinstep_server::MatchConfig;
use twinstep_server::config::{
    Announce, AnsweredBy, Claims, Laggards, SealWhen, TickLength, TurnLength,
};

/// Under which flags stand in the help.
const HEADING: &str = "Policies of the match";

/// The policies as settings, of `serve` and of `bots`. The game is made for 60 ticks a second; whatever else is chosen, it
/// keeps them.
pub(crate) fn settings() -> Vec<Setting> {
    vec![
        Setting::text(
            "sealing",
            "HOW",
            |text| sealing(text).map(drop),
            "deadline (nobody waits), or wait-for-all[:SECONDS] (who is silent for so long is removed, after 20 if nothing is \
             said); waiting for all needs a command delay",
        )
        .or("deadline"),
        Setting::number(
            "command-delay",
            0..=4,
            "turns",
            "Turns between an order and its execution: lockstep without prediction. 0: clients predict",
        )
        .or("0"),
        Setting::text(
            "turn",
            "N|MIN..MAX",
            |text| turn(text).map(drop),
            "Ticks that are sent at once: N, or MIN..MAX to adapt",
        )
        .or("2"),
        Setting::number(
            "slowest-tick",
            17..=1_000,
            "milliseconds",
            "Lets ticks get longer for a slow machine, up to so many milliseconds",
        ),
        Setting::text(
            "laggards",
            "WHAT",
            |text| laggards(text).map(drop),
            "What becomes of clients that trail: ignore, hold (up to 250 ms at once and 2 s a minute), or kick[:SECONDS] (10 if \
             nothing is said)",
        )
        .or("ignore"),
        Setting::number(
            "input-delay",
            0..=32,
            "ticks",
            "Ticks between the sampling of controls and their use",
        )
        .or("0"),
        Setting::text(
            "answered-by",
            "WHO",
            |text| answered_by(text).map(drop),
            "Who decides blasts: server, or owner (the client of who lit the barrel, checked by the server)",
        )
        .or("server"),
        Setting::text(
            "claims",
            "WHO",
            |text| claims(text).map(drop),
            "Who decides a player's death: owner-only (its own screen), or owner-within:TICKS (its own screen, and so many \
             ticks later the server)",
        )
        .or("owner-within:40"),
        Setting::switch("no-announcements", "Does not tell players ahead what others hold"),
    ]
}

/// The configuration that settings say; whether it can be run is for the server to say.
pub(crate) fn config(chosen: &Configured) -> MatchConfig {
    let action = MatchConfig::action();
    let slowest = chosen.get("slowest-tick").map(Duration::from_millis);
    let command_delay = chosen.get("command-delay").unwrap_or(0);
    MatchConfig {
        sealing: chosen.get_by("sealing", sealing).unwrap_or(action.sealing),
        command_delay,
        turn: chosen.get_by("turn", turn).unwrap_or(action.turn),
        tick_length: slowest.map_or(TickLength::Fixed, |max| TickLength::Adaptive { max }),
        laggards: chosen
            .get_by("laggards", laggards)
            .unwrap_or(action.laggards),
        delay_ticks: chosen.get("input-delay").unwrap_or(0),
        answered_by: chosen
            .get_by("answered-by", answered_by)
            .unwrap_or(action.answered_by),
        claims: chosen.get_by("claims", claims).unwrap_or(action.claims),
        announce: if chosen.is_on("no-announcements") || command_delay > 0 {
            Announce::Never
        } else {
            Announce::Ahead
        },
        ..action
    }
}

/// The same as flags alone.
#[derive(Clone, Debug)]
pub(crate) struct PolicyArgs(Configured);

impl PolicyArgs {
    /// The configuration that the flags say.
    pub(crate) fn config(&self) -> MatchConfig {
        config(&self.0)
    }
}

impl FromArgMatches for PolicyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PolicyArgs, clap::Error> {
        let refused = |error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n"));
        let chosen = Configured::by_flags(settings(), matches);
        chosen.map(PolicyArgs).map_err(refused)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PolicyArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for PolicyArgs {
    fn augment_args(command: Command) -> Command {
        let flags = settings().into_iter().map(|setting| setting.flag());
        command.args(flags.map(|flag| flag.help_heading(HEADING)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        PolicyArgs::augment_args(command)
    }
}

/// A word, and what stands behind a colon.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        None => (text, None),
        Some((word, rest)) => (word, Some(rest)),
    }
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    let parsed = text.parse();
    parsed.map_err(|_| format!("expected a number of {what}, got {text:?}"))
}

/// For how long others bear with a player.
fn patience(text: &str) -> Result<Duration, String> {
    match number(text, "seconds")? {
        seconds @ 1..=300 => Ok(Duration::from_secs(seconds)),
        seconds => Err(format!("expected 1 to 300 seconds, got {seconds}")),
    }
}

fn sealing(text: &str) -> Result<SealWhen, String> {
    match split(text) {
        ("deadline", None) => Ok(SealWhen::Deadline),
        ("wait-for-all", seconds) => Ok(SealWhen::WaitForAll {
            kick_after: patience(seconds.unwrap_or("20"))?,
        }),
        _ => Err("expected deadline or wait-for-all[:SECONDS]".to_owned()),
    }
}

fn turn(text: &str) -> Result<TurnLength, String> {
    match text.split_once("..") {
        None => Ok(TurnLength::Fixed(number(text, "ticks")?)),
        Some((min, max)) => {
            let (min, max) = (number(min, "ticks")?, number(max, "ticks")?);
            match min <= max {
                true => Ok(TurnLength::Adaptive { min, max }),
                false => Err(format!(
                    "expected the shortest turn before the longest, got {min}..{max}"
                )),
            }
        }
    }
}

fn laggards(text: &str) -> Result<Laggards, String> {
    match split(text) {
        ("ignore", None) => Ok(Laggards::Ignore),
        ("hold", None) => Ok(Laggards::Hold {
            at_once: Duration::from_millis(250),
            per_minute: Duration::from_secs(2),
        }),
        ("kick", seconds) => Ok(Laggards::Kick {
            after: patience(seconds.unwrap_or("10"))?,
        }),
        _ => Err("expected ignore, hold or kick[:SECONDS]".to_owned()),
    }
}

fn answered_by(text: &str) -> Result<AnsweredBy, String> {
    match text {
        "server" => Ok(AnsweredBy::Server),
        "owner" => Ok(AnsweredBy::Owner),
        _ => Err("expected server or owner".to_owned()),
    }
}

fn claims(text: &str) -> Result<Claims, String> {
    match split(text) {
        ("owner-only", None) => Ok(Claims::OwnerOnly),
        ("owner-within", Some(ticks)) => match ticks.parse() {
            Ok(ticks @ 1..=60) => Ok(Claims::OwnerWithin(ticks)),
            _ => Err(format!("expected 1 to 60 ticks, got {ticks:?}")),
        },
        _ => Err("expected owner-only or owner-within:TICKS".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use powderkeg_game::terms;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        policies: PolicyArgs,
    }

    fn config_of(flags: &str) -> Result<MatchConfig, clap::Error> {
        let words = ["serve"].into_iter().chain(flags.split_whitespace());
        Ok(Flags::try_parse_from(words)?.policies.config())
    }

    #[test]
    fn without_flags_it_is_the_action_preset_in_which_nobody_is_immortal() {
        assert_eq!(config_of("").unwrap(), terms::policies());
    }

    #[test]
    fn every_policy_has_a_flag() {
        let all = config_of(
            "--sealing wait-for-all:5 --command-delay 2 --turn 2..9 --slowest-tick 40 --laggards hold \
             --answered-by owner --claims owner-within:9",
        )
        .unwrap();
        assert!(all.check().is_ok());
        assert_eq!(
            all.sealing,
            SealWhen::WaitForAll {
                kick_after: Duration::from_secs(5)
            }
        );
        assert_eq!((all.command_delay, all.answered_by), (2, AnsweredBy::Owner));
        assert_eq!(all.turn, TurnLength::Adaptive { min: 2, max: 9 });
        assert_eq!(all.claims, Claims::OwnerWithin(9));
        assert_eq!(config_of("--input-delay 4").unwrap().delay_ticks, 4);
        let quiet = config_of("--no-announcements").unwrap();
        assert_eq!(quiet.announce, Announce::Never);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for flags in [
            "--sealing sometimes",
            "--turn long",
            "--turn 2..",
            "--laggards beat",
            "--claims owner-within:0",
        ] {
            let error = config_of(flags).unwrap_err().to_string();
            assert!(error.contains("expected"), "{flags}: {error}");
        }
        // What only makes no sense together is the server's to refuse.
        let alone = config_of("--sealing wait-for-all").unwrap();
        assert!(
            alone
                .check()
                .unwrap_err()
                .to_string()
                .contains("command delay")
        );
    }
}
