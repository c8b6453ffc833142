//! The policies of a match, as settings of `serve` and flags of `bots`.

use std::time::Duration;

use clap::{Args, value_parser};
use twinstep_server::MatchConfig;
use twinstep_server::config::{
    Announce, AnsweredBy, Claims, Laggards, SealWhen, TickLength, TurnLength,
};

const HEADING: &str = "Policies of the match";

/// The policies, for `serve` and for `bots`. The game is designed for 60 ticks a second; these flags do not change
/// that.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArgs {
    /// When the server seals a tick (its inputs are final). deadline: when it is due; missing inputs are filled in.
    /// wait-for-all[:SECONDS]: when all inputs have arrived; a player silent for SECONDS (default 20) is removed. wait-for-all needs --command-delay
    #[arg(long, value_name = "HOW", help_heading = HEADING, default_value = "deadline", value_parser = sealing)]
    sealing: SealWhen,
    /// Turns between a command and its execution. 0: clients predict. 1 to 4: lockstep, without prediction
    #[arg(long, value_name = "N", help_heading = HEADING, default_value_t = 0, value_parser = value_parser!(u8).range(..=4))]
    command_delay: u8,
    /// Ticks sent together as one turn, 1 to 20: N, or MIN..MAX to adapt to the network
    #[arg(long, value_name = "N|MIN..MAX", help_heading = HEADING, default_value = "2", value_parser = turn)]
    turn: TurnLength,
    /// Slow the match down for all while a client cannot keep up, to ticks of at most this many ms [default: off]
    #[arg(long, value_name = "MS", help_heading = HEADING, value_parser = value_parser!(u64).range(17..=1_000))]
    slowest_tick: Option<u64>,
    /// Clients that fall behind. ignore: no effect on others. hold[:MS]: pause the match for a client that is MS behind
    /// (default one turn), for at most 250 ms at once and 2 s a minute. kick[:SECONDS]: remove it after SECONDS
    /// (default 10)
    #[arg(long, value_name = "WHAT", help_heading = HEADING, default_value = "ignore", value_parser = laggards)]
    laggards: Laggards,
    /// Ticks between sampling an input and applying it
    #[arg(long, value_name = "N", help_heading = HEADING, default_value_t = 0, value_parser = value_parser!(u8).range(..=32))]
    input_delay: u8,
    /// Where blasts are computed. server: the server. owner: the client of the player that lit the barrel, checked by
    /// the server
    #[arg(long, value_name = "WHO", help_heading = HEADING, default_value = "server", value_parser = answered_by)]
    answered_by: AnsweredBy,
    /// Where a player's death is decided. owner-only: by its own client. owner-within:TICKS: by its own client, or else
    /// by the server after TICKS
    #[arg(long, value_name = "WHO", help_heading = HEADING, default_value = "owner-within:40", value_parser = claims)]
    claims: Claims,
    /// Do not forward inputs to other players early: less traffic, worse prediction
    #[arg(long, help_heading = HEADING)]
    no_announcements: bool,
}

impl PolicyArgs {
    pub(crate) fn config(&self) -> MatchConfig {
        let slowest = self.slowest_tick.map(Duration::from_millis);
        MatchConfig {
            sealing: self.sealing,
            command_delay: self.command_delay,
            turn: self.turn,
            tick_length: slowest.map_or(TickLength::Fixed, |max| TickLength::Adaptive { max }),
            laggards: self.laggards,
            delay_ticks: self.input_delay,
            answered_by: self.answered_by,
            claims: self.claims,
            // Announcements serve the prediction, and lockstep has none.
            announce: match self.no_announcements || self.command_delay > 0 {
                true => Announce::Never,
                false => Announce::Ahead,
            },
            ..MatchConfig::action()
        }
    }
}

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
                true => Ok(TurnLength::adaptive(min, max)),
                false => Err(format!(
                    "expected MIN..MAX with MIN of at most MAX, got {min}..{max}"
                )),
            }
        }
    }
}

fn laggards(text: &str) -> Result<Laggards, String> {
    match split(text) {
        ("ignore", None) => Ok(Laggards::Ignore),
        ("hold", None) => Ok(Laggards::hold()),
        ("hold", Some(from)) => {
            let Laggards::Hold {
                at_once,
                per_minute,
                ..
            } = Laggards::hold()
            else {
                unreachable!("it is a hold")
            };
            let from = Duration::from_millis(number(from, "milliseconds")?);
            Ok(Laggards::Hold {
                from,
                at_once,
                per_minute,
            })
        }
        ("kick", seconds) => Ok(Laggards::Kick {
            after: patience(seconds.unwrap_or("10"))?,
        }),
        _ => Err("expected ignore, hold[:MILLISECONDS] or kick[:SECONDS]".to_owned()),
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
            _ => Err(format!(
                "expected 1 to 60 ticks after owner-within:, got {ticks}"
            )),
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
    fn the_default_policies_are_the_action_preset_with_claimed_deaths() {
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
        assert_eq!(all.turn, TurnLength::adaptive(2, 9));
        assert_eq!(all.claims, Claims::OwnerWithin(9));
        assert_eq!(config_of("--input-delay 4").unwrap().delay_ticks, 4);
        let quiet = config_of("--no-announcements").unwrap();
        assert_eq!(quiet.announce, Announce::Never);
    }

    #[test]
    fn invalid_policies_are_refused_with_a_message() {
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
        // Invalid combinations are refused by the server.
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
