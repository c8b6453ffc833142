//! The command line: what can be asked for, and what is said when it cannot be done.
//!
//! Exit codes: 0 all went well; 1 it ran, and something was not as it must be; 2 it was asked for in a way that
//! cannot work, and nothing ran.

mod args;
mod failure;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use twinstep_core::simnet::LinkProfile;
use twinstep_udp::{CIPHER_LOG_TARGET, LINK_LOG_TARGET};

pub(crate) use args::{
    BotsArgs, DurabilityArg, FailureArg, Format, FramesArgs, HostArgs, JoinArgs, NameArgs,
    PlayArgs, ReplayArgs, ServeArgs, ShotsArgs, SticksArg, TicketArgs, ViewArgs,
};
pub use failure::Failure;

use crate::bots::{self, BotsOptions};
use crate::game::Sticks;
use crate::view::{self, View};
use crate::{host, play, replay, serve, window, wiring};

/// Powderkeg: a co-op shooter that shows Twinstep at work.
#[derive(Debug, Parser)]
#[command(name = "powderkeg", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    play: PlayArgs,
    /// What is logged to standard error, such as `info` or `twinstep_server=debug` [default: the environment's
    /// RUST_LOG, else `info` for serve and `warn` for all else]
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Play here with three bots, over a simulated bad network (this is the default)
    Play(PlayArgs),
    /// Run a match for friends: a server, and a file with an invite for each of them
    Host(HostArgs),
    /// Run a server
    Serve(ServeArgs),
    /// Make a key file, which a server and its tickets need
    Key {
        /// The new file
        file: PathBuf,
    },
    /// Make a ticket: it lets one player in, once
    Ticket(TicketArgs),
    /// Join the match that an invite or a ticket is for
    Join(JoinArgs),
    /// Watch a match from its journal, with pause, speed and seek; or tell what is in it, or verify it
    Replay(ReplayArgs),
    /// Play a match by a script, and write its moments as pictures
    Shots(ShotsArgs),
    /// Measure how long a picture of a crowded match takes here
    Frames(FramesArgs),
    /// Measure a server and bots over real UDP on this machine
    Bots(BotsArgs),
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
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
        eprintln!("error: {failure}");
        ExitCode::from(failure.exit_code())
    })
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.task.unwrap_or(Task::Play(cli.play)) {
        Task::Play(args) => play::play(&args),
        Task::Host(args) => host::host(&args),
        Task::Serve(args) => serve::serve(&args),
        Task::Key { file } => serve::key(&file),
        Task::Ticket(args) => serve::ticket(&args),
        Task::Join(args) => play::join(&args),
        Task::Replay(args) => replay::replay(&args),
        Task::Shots(args) => shots(&args),
        Task::Frames(args) => frames(&args),
        Task::Bots(args) => measure(&args),
    }
}

/// Where there is no display, one is made in memory.
fn shots(args: &ShotsArgs) -> Result<ExitCode, Failure> {
    match window::shots(&args.out, args.seed)? {
        Some(paths) => paths.iter().for_each(|path| println!("{}", path.display())),
        None => return Ok(window::run_again(window::SHOT_SIZE).map_err(window::ShotsError::from)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn frames(args: &FramesArgs) -> Result<ExitCode, Failure> {
    let Some(pace) = window::measure(args.frames, args.with_server)? else {
        return Ok(window::run_again(window::SHOT_SIZE).map_err(window::ShotsError::from)?);
    };
    match args.report {
        Format::Text => println!("{pace}"),
        Format::Json => {
            println!(
                "{}",
                serde_json::to_string_pretty(&pace).expect("numbers and names")
            );
        }
    }
    let shortfall = pace.shortfall();
    if let Some(why) = &shortfall {
        eprintln!("error: {why}");
    }
    Ok(ExitCode::from(u8::from(shortfall.is_some())))
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
    let report = bots::run(&options, &wiring::rules(args.enemies))?;
    match args.report {
        Format::Json => println!("{}", report.to_json()),
        Format::Text => println!("{report}"),
    }
    let faults = report.faults();
    if args.report == Format::Json {
        for fault in &faults {
            eprintln!("fault: {fault}");
        }
    }
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
}

/// Reads a link; its own words say what is wrong with it.
pub(crate) fn link(text: &str) -> Result<LinkProfile, Failure> {
    text.parse().map_err(|error| Failure::Flag {
        flag: "link",
        reason: format!("{error}"),
    })
}

/// Sends the log to standard error, and none at all into a view on the terminal.
fn log(cli: &Cli) -> Result<(), Failure> {
    let draws = match &cli.task {
        None => draws(&cli.play.view),
        Some(Task::Play(args)) => draws(&args.view),
        Some(Task::Join(args)) => !args.bot && draws(&args.view),
        Some(Task::Replay(args)) => !args.verify && !args.summary && draws(&args.view),
        Some(_) => false,
    };
    let default = match &cli.task {
        // Unless it goes to a file, it would go over the picture.
        _ if draws && std::io::stderr().is_terminal() => "off",
        Some(Task::Serve(_)) => "info",
        _ => "warn",
    };
    let environment = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let wished = cli.log.as_deref().or(environment.as_deref());
    let filter = wished.filter(|_| default != "off").unwrap_or(default);
    // Both write a line for each bad datagram that a stranger sends.
    let quiet = format!("{filter},{LINK_LOG_TARGET}=off,{CIPHER_LOG_TARGET}=off");
    let filter = EnvFilter::try_new(quiet).map_err(|error| Failure::Flag {
        flag: "log",
        reason: format!("expected a filter such as `info` or `twinstep_server=debug`: {error}"),
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

fn draws(view: &ViewArgs) -> bool {
    view::choose(view) == View::Terminal
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_task_is_play_with_its_flags() {
        let cli = Cli::try_parse_from(["powderkeg", "--link", "bad"]).unwrap();
        assert!(cli.task.is_none() && cli.play.link == "bad" && cli.play.seconds == 20);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for args in [
            ["bots", "--players", "0"],
            ["bots", "--players", "9"],
            ["bots", "--seconds", "0"],
            ["bots", "--sticks", "wild"],
            ["bots", "--wings", "2"],
            ["serve", "--listen", "here"],
            ["play", "--windowed", "1280"],
            ["play", "--windowed", "639x360"],
            ["play", "--windowed", "640x359"],
            ["join", "--windowed", "99999x720"],
        ] {
            let error = Cli::try_parse_from(["powderkeg"].into_iter().chain(args)).unwrap_err();
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
