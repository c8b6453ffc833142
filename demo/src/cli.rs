//! The command line: subcommands, parsing, and errors.
//!
//! Exit codes: 0 for success; 1 if the subcommand ran and something was wrong; 2 if the command line is not valid and
//! no subcommand ran.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use powderkeg_game::{Sticks, terms};
use powderkeg_view::window::{TourError, WindowOptions};
use powderkeg_view::{say, window};
use tracing_subscriber::EnvFilter;
use twinstep_ops::operator::{Arguments, ReadSettings, plain_number};
use twinstep_udp::{CIPHER_LOG_TARGET, LINK_LOG_TARGET};

use crate::admin::AdminArgs;
use crate::args::{
    BotsArgs, Format, HostArgs, InspectArgs, JoinArgs, PlayArgs, ReplayArgs, ShotsArgs, SticksArg,
    TicketArgs, TourArgs, ViewArgs, link,
};
use crate::bots::{self, BotsOptions};
use crate::failure::Failure;
use crate::serve::ServeArgs;
use crate::view::{self, ViewChoice};
use crate::{admin, host, inspect, journal, log, play, replay, serve, signals};

/// Powderkeg: a co-op shooter that shows Twinstep at work.
#[derive(Debug, Parser)]
#[command(name = "powderkeg", version)]
struct Cli {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    play: PlayArgs,
    /// Log filter, such as `info` or `twinstep_host=debug` [default: $RUST_LOG, or else `info` for serve and `warn` for
    /// other commands]. A terminal that shows a match gets no log lines: redirect standard error to a file
    #[arg(long, global = true, value_name = "FILTER", value_parser = filter)]
    log: Option<String>,
    /// Format of log lines: text, or json (one object a line) [default: text]
    #[arg(id = "log-format", long, global = true, value_parser = ["text", "json"], value_name = "FORMAT")]
    log_format: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Play here with three bots, over a simulated network (the default command)
    Play(PlayArgs),
    /// Host a match for friends: start a server, and write a file with an invite for each of them
    Host(HostArgs),
    /// Run a dedicated server for one match, or (with --matches) for many on demand
    Serve(Box<ServeArgs>),
    /// Inspect or control a server on this machine: who plays, kick, ban
    Admin(AdminArgs),
    /// Create a key file, shared by the server and `powderkeg ticket`
    Key {
        /// The new file
        file: PathBuf,
    },
    /// Create a ticket for one player, valid for 24 h or until that player uses a newer one
    Ticket(Box<TicketArgs>),
    /// Join the match of an invite or a ticket
    Join(JoinArgs),
    /// Watch a match from its journal, with pause, speed and seek; or print a summary, or verify it
    Replay(ReplayArgs),
    /// Write a journal as an HTML page, to inspect the match tick by tick in a browser
    Inspect(InspectArgs),
    /// Check, repair or export a journal
    #[command(subcommand)]
    Journal(JournalTask),
    /// Show a 90-second tour: one match, drawn in four ways at once, from a good network to a server crash
    Tour(TourArgs),
    /// Write screenshots of matches played in virtual time; needs no display
    Shots(ShotsArgs),
    /// Run a server and bots over UDP on this machine, and print a report
    Bots(BotsArgs),
}

#[derive(Debug, Subcommand)]
enum JournalTask {
    /// Check a journal, and print what is intact and what is lost
    Check {
        /// The journal
        file: PathBuf,
    },
    /// Cut off a damaged journal after its last good record; the original is kept as a copy
    Repair {
        /// The journal
        file: PathBuf,
    },
    /// Export the recorded ticks (inputs, commands, joins) as JSON, one object a line, for other programs
    Export {
        /// The journal
        file: PathBuf,
        /// A new file to write to, instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[must_use]
pub fn main() -> ExitCode {
    let cli = match parse(std::env::args_os(), std::env::vars_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            };
        }
    };
    let done = log(&cli).and_then(|()| run(cli));
    done.unwrap_or_else(|failure| {
        say::err(format_args!("error: {failure}"));
        ExitCode::from(failure.exit_code())
    })
}

fn filter(text: &str) -> Result<String, String> {
    let read = EnvFilter::try_new(text);
    read.map(|_| text.to_owned())
        .map_err(|error| format!("expected a filter such as info or twinstep_host=debug: {error}"))
}

fn task_of(args: &[OsString]) -> Option<&str> {
    let mut words = args.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word {
            "--log" | "--log-format" => drop(words.next()),
            flag if flag.starts_with('-') => {}
            task => return Some(task),
        }
    }
    None
}

/// Parses the command line. `play` flags may be given without a subcommand; before any other subcommand, only logging
/// flags are allowed. For `serve`, the environment and a settings file are also read.
fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = args.into_iter().collect();
    if task_of(&args) == Some("serve") {
        let mut root = Cli::command();
        root.build();
        let command = root.find_subcommand("serve").expect("a task").clone();
        let arguments = Arguments::read(&command, args, environment)?;
        let mut cli =
            parse_all(arguments.args().to_vec()).map_err(|error| arguments.explain(error))?;
        let matches = root.try_get_matches_from_mut(arguments.args())?;
        if let (Some(Task::Serve(args)), Some((_, matches))) = (&mut cli.task, matches.subcommand())
        {
            args.reading = ReadSettings::of(&arguments, &command, matches);
        }
        return Ok(cli);
    }
    parse_all(args).map_err(plain_number)
}

fn parse_all(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(args)?;
    if let Some((task, _)) = matches.subcommand() {
        // Flags given before or after a nested subcommand are also among the matches, but are not the root's.
        let flags: Vec<_> = command
            .get_arguments()
            .map(|flag| flag.get_id().clone())
            .collect();
        let is_given = |id: &&clap::Id| {
            flags.contains(id)
                && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
                && !["log", "log-format"].contains(&id.as_str())
        };
        if let Some(id) = matches.ids().find(is_given) {
            let flag = {
                let mut flags = command.get_arguments();
                let flag = flags.find(|flag| flag.get_id() == id);
                flag.and_then(Arg::get_long)
                    .unwrap_or(id.as_str())
                    .to_owned()
            };
            let sub = command.find_subcommand(task);
            let has = sub.is_some_and(|sub| {
                let mut flags = sub.get_arguments();
                flags.any(|arg| arg.get_long() == Some(flag.as_str()))
            });
            let words = match has {
                true => {
                    format!("--{flag} must come after the command: `powderkeg {task} --{flag} ...`")
                }
                false => format!(
                    "`{task}` has no flag --{flag}; `play` has it: `powderkeg play --{flag} ...`"
                ),
            };
            return Err(command.error(ErrorKind::ArgumentConflict, words));
        }
    }
    Cli::from_arg_matches(&matches)
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.task.unwrap_or(Task::Play(cli.play)) {
        Task::Play(args) => play::play(&args),
        Task::Host(args) => host::host(&args),
        Task::Serve(args) => serve::serve(&args),
        Task::Admin(args) => admin::admin(&args),
        Task::Key { file } => serve::key(&file),
        Task::Ticket(args) => serve::ticket(&args),
        Task::Join(args) => play::join(&args),
        Task::Replay(args) => replay::replay(&args),
        Task::Inspect(args) => inspect::inspect(&args),
        Task::Journal(JournalTask::Check { file }) => journal::check(&file),
        Task::Journal(JournalTask::Repair { file }) => journal::repair(&file),
        Task::Journal(JournalTask::Export { file, out }) => journal::export(&file, out.as_deref()),
        Task::Tour(args) => tour(&args),
        Task::Shots(args) => shots(&args),
        Task::Bots(args) => measure(&args),
    }
}

fn shots(args: &ShotsArgs) -> Result<ExitCode, Failure> {
    let paths = window::shots(&args.out, args.seed)?;
    paths.iter().try_for_each(|path| say::out(path.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn tour(args: &TourArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.out {
        let frames = window::tour_picture(path, args.seed)?;
        say::out(format_args!(
            "{}: {frames} frames of seed {}",
            path.display(),
            args.seed
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    signals::listen()?;
    let backend = window::display().map_err(TourError::Window)?;
    window::tour(
        args.seed,
        WindowOptions {
            backend,
            size: (1_280, 960),
            fullscreen: args.fullscreen,
            mute: true,
            vsync: true,
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &BotsArgs) -> Result<ExitCode, Failure> {
    let options = BotsOptions {
        players: args.players.into(),
        seconds: args.seconds,
        link: link(&args.link)?,
        seed: args.seed,
        policies: args.policies.config(),
        sticks: match args.sticks {
            SticksArg::Keys => Sticks::Keys,
            SticksArg::Analog => Sticks::Analog,
            SticksArg::Sticky => Sticks::Sticky,
            SticksArg::Still => Sticks::Still,
        },
        journal: match &args.journal {
            None => None,
            Some(folder) => Some(serve::new_journal(folder)?),
        },
    };
    let report = bots::run(&options, &terms::rules(args.enemies))?;
    match args.report {
        Format::Json => say::out(report.to_json())?,
        Format::Text => say::out(&report)?,
    }
    let faults = report.faults();
    if args.report == Format::Json {
        for fault in &faults {
            say::err(format_args!("fault: {fault}"));
        }
    }
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
}

/// Sends the log to standard error, unless a view draws on the same terminal.
fn log(cli: &Cli) -> Result<(), Failure> {
    let draws = match &cli.task {
        None => draws(&cli.play.view),
        Some(Task::Play(args)) => draws(&args.view),
        Some(Task::Join(args)) => !args.bot && draws(&args.view),
        Some(Task::Replay(args)) => !args.verify && !args.summary && draws(&args.view),
        Some(_) => false,
    };
    let default = match &cli.task {
        // The log would draw over the picture, unless it goes to a file.
        _ if draws && std::io::stderr().is_terminal() => "off",
        Some(Task::Serve(_)) => "info",
        _ => "warn",
    };
    let environment = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let wished = cli.log.as_deref().or(environment.as_deref());
    let filter = wished.filter(|_| default != "off").unwrap_or(default);
    // Both targets log a line for each bad datagram, which anyone can send.
    let quiet = format!("{filter},{LINK_LOG_TARGET}=off,{CIPHER_LOG_TARGET}=off");
    let filter = EnvFilter::try_new(quiet).map_err(|error| {
        let reason = format!("expected a filter such as `info` or `twinstep_host=debug`: {error}");
        Failure::Environment {
            name: EnvFilter::DEFAULT_ENV,
            reason,
        }
    })?;
    // Cannot fail, because no other subscriber is set.
    let _ = match cli.log_format.as_deref() {
        Some("json") => {
            tracing::subscriber::set_global_default(log::objects(filter, std::io::stderr))
        }
        _ => {
            let is_colored = std::io::stderr().is_terminal();
            let log = log::plain_rows(filter, std::io::stderr, is_colored);
            tracing::subscriber::set_global_default(log)
        }
    };
    Ok(())
}

fn draws(view: &ViewArgs) -> bool {
    view::choose(view) == ViewChoice::Terminal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        let words = ["powderkeg"]
            .into_iter()
            .chain(line.split_whitespace())
            .map(OsString::from);
        parse(words, [])
    }

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_terminal_may_be_muted_and_a_tour_is_shown_or_written() {
        assert!(parsed("play --terminal --mute").is_ok());
        assert!(parsed("tour").is_ok() && parsed("tour --out tour.png --seed 2").is_ok());
        assert!(parsed("tour --out tour.png --fullscreen").is_err());
    }

    #[test]
    fn flags_without_a_subcommand_belong_to_play() {
        let cli = parsed("--link bad").unwrap();
        assert!(cli.task.is_none() && cli.play.link == "bad" && cli.play.seconds == 20);
    }

    /// Finding O12: meaningless flags were accepted silently, or refused with an unclear text.
    #[test]
    fn only_log_flags_may_come_before_a_subcommand() {
        for line in [
            "--log info key new",
            "key new --log info",
            "key --log info new",
        ] {
            let cli = parsed(line).unwrap();
            assert_eq!(cli.log.as_deref(), Some("info"), "{line}");
            assert!(matches!(cli.task, Some(Task::Key { .. })), "{line}");
        }
        for (line, advice) in [
            ("--bots 2 key new", "`key` has no flag --bots"),
            ("--name A join file", "--name must come after"),
            ("--terminal replay file", "--terminal must come after"),
            (
                "--key-file k --listen 127.0.0.1:1 host",
                "must come after the command: `powderkeg host",
            ),
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let said = error.to_string();
            assert!(said.contains(advice), "{said}");
        }
    }

    #[test]
    fn a_flag_that_the_task_does_not_have_is_named_as_one_of_play() {
        for (line, advice) in [
            ("--bots 3 serve", "`serve` has no flag --bots"),
            ("--name A join file", "`powderkeg join --name ...`"),
        ] {
            let said = parsed(line).unwrap_err().to_string();
            assert!(said.contains(advice), "{said}");
            assert!(!said.contains("powderkeg serve --bots"), "{said}");
        }
    }

    /// An operator who adds `--json` to the last command writes it at its end.
    #[test]
    fn admin_flags_may_come_before_or_after_the_admin_subcommand() {
        for line in [
            "admin --to 127.0.0.1:1 --json matches",
            "admin --to 127.0.0.1:1 matches --json",
            "admin matches --json --to 127.0.0.1:1",
        ] {
            assert!(parsed(line).is_ok(), "{line}");
        }
        let Ok(cli) = parsed("admin matches --json") else {
            panic!("the address is checked later");
        };
        let said = run(cli).unwrap_err();
        assert!(said.to_string().contains("--to: expected"), "{said}");
        assert_eq!(said.exit_code(), 2);
    }

    /// Finding O12: an obviously wrong value is refused before anything runs, with a message.
    #[test]
    fn impossible_values_are_refused() {
        for (line, words) in [
            (
                "serve --key-file k --listen 127.0.0.1:1 --public 0.0.0.0:7777",
                "cannot be dialled",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --public 1.2.3.4:0",
                "port 0",
            ),
            ("host --public [::]:7777", "cannot be dialled"),
            (
                "--listen 127.0.0.1:1 --key-file k --public 224.0.0.1:7",
                "one machine",
            ),
            (
                "ticket --key-file k --player a --server :0",
                "expected ADDRESS:PORT or NAME:PORT",
            ),
            (
                "ticket --key-file k --player a --server 0.0.0.0:7777",
                "cannot be dialled",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --new-match",
                "--journal",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --laggards kick:0",
                "1 to 300 seconds",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --laggards kick:301",
                "1 to 300 seconds",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --sealing wait-for-all:0",
                "1 to 300 seconds",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --slowest-tick 0",
                "--slowest-tick",
            ),
            (
                "serve --key-file k --listen 127.0.0.1:1 --turn 9..2",
                "MIN of at most MAX",
            ),
            ("join --bot --terminal file", "--bot"),
            ("replay --verify --windowed 1280x720 file", "--verify"),
            ("replay --summary --terminal file", "--summary"),
            ("--name aaaaaaaaaaaaaaaaa", "at most 16"),
            ("--name a\u{200b}b", "visible"),
            ("--name \u{3164}", "visible"),
        ] {
            let (code, said) = match parsed(line) {
                Err(error) => (error.exit_code(), error.to_string()),
                Ok(_) => panic!("{line} was accepted"),
            };
            assert_eq!(code, 2, "{line}");
            assert!(said.contains(words), "{line} should say {words:?}: {said}");
        }
        assert!(parsed("host --public 203.0.113.7:7777 --listen 0.0.0.0:0").is_ok());
        assert!(parsed("--name sixteen_letters!").is_ok());
    }

    #[test]
    fn out_of_range_values_are_refused() {
        for args in [
            ["bots", "--players", "0"],
            ["bots", "--players", "9"],
            ["bots", "--seconds", "0"],
            ["bots", "--sticks", "wild"],
            ["bots", "--wings", "2"],
            ["play", "--windowed", "1280"],
            ["play", "--windowed", "639x360"],
            ["play", "--windowed", "640x359"],
            ["join", "--windowed", "99999x720"],
        ] {
            let error = parsed(&args.join(" ")).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{args:?}");
        }
        assert!(
            link("moon")
                .unwrap_err()
                .to_string()
                .contains("perfect, lan, wan")
        );
    }
}
