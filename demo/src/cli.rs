//! The command line: what can be asked for, and what is said when it cannot be done.
//!
//! Exit codes: 0 all went well; 1 it ran, and something was not as it must be; 2 it was asked for in a way that
//! cannot work, and nothing ran.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;
use twinstep_client::client::{Ended, StartError};
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::ReplayError;
use twinstep_core::simnet::LinkProfile;
use twinstep_server::host::{HostError, JournalFileError, MatchEnded};
use twinstep_udp::{CIPHER_LOG_TARGET, KeyError, LINK_LOG_TARGET, TicketError};

use crate::bots::{self, BotsOptions};
use crate::game::Sticks;
use crate::policies::PolicyArgs;
use crate::terminal::TerminalError;
use crate::{play, replay, serve, wiring};

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
    /// Run a server
    Serve(ServeArgs),
    /// Make a key file, which a server and its tickets need
    Key {
        /// The new file
        file: PathBuf,
    },
    /// Make a ticket: it lets one player in, once
    Ticket(TicketArgs),
    /// Join the server that a ticket is for
    Join(JoinArgs),
    /// Tell what is in a match's journal, or play it again and compare
    Replay(ReplayArgs),
    /// Measure a server and bots over real UDP on this machine
    Bots(BotsArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PlayArgs {
    /// perfect, lan, wan, bad, awful, or settings such as rtt=120,jitter=20,loss=5
    #[arg(long, default_value = "wan")]
    pub(crate) link: String,
    /// How long to play when the output is no terminal
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// The seed of the match, the bots and the network
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many enemies [default: 24]
    #[arg(long)]
    pub(crate) enemies: Option<u16>,
    /// How many bots play along, 0 to 7
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) bots: u8,
    /// Let others join the match of this process: where to listen, such as 0.0.0.0:7777
    #[arg(long, value_name = "ADDR", requires = "key_file")]
    pub(crate) listen: Option<SocketAddr>,
    /// What the others dial, if it is another address than that of --listen
    #[arg(long, value_name = "ADDR", requires = "listen")]
    pub(crate) public: Option<SocketAddr>,
    /// The key whose tickets let others in: see `powderkeg key` and `powderkeg ticket`
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) key_file: Option<PathBuf>,
    /// Serve on when the game here has ended, until everybody has left
    #[arg(long, requires = "listen")]
    pub(crate) stay: bool,
}

#[derive(Clone, Debug, Args)]
// Either keeps a journal.
#[command(group = ArgGroup::new("kept").args(["journal", "take_over"]).multiple(true))]
pub(crate) struct ServeArgs {
    /// Where to listen, such as 0.0.0.0:7777
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// What players dial, if it is another address
    #[arg(long, value_name = "ADDR")]
    pub(crate) public: Option<SocketAddr>,
    /// How many may play, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) max_players: u8,
    /// The key whose tickets are good: see `powderkeg key`
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// Where to keep the match's journal; the newest match there that was cut off goes on
    #[arg(long, value_name = "DIR")]
    pub(crate) journal: Option<PathBuf>,
    /// Begin a new match, even if one was cut off
    #[arg(long)]
    pub(crate) new_match: bool,
    /// What the journal is to survive
    #[arg(long, value_enum, default_value = "process", requires = "kept")]
    pub(crate) durability: DurabilityArg,
    /// What becomes of the match when the journal cannot be written
    #[arg(long, value_enum, default_value = "end", requires = "kept")]
    pub(crate) on_journal_failure: FailureArg,
    /// How many enemies; players must join with the same number [default: 24]
    #[arg(long)]
    pub(crate) enemies: Option<u16>,
    /// The seed of the match [default: the clock]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How many may watch: up to 16, or 512 with a delay
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) spectators: u16,
    /// How many seconds behind the match they are: 0, or 3 to 15
    #[arg(long, value_name = "S", default_value_t = 0, requires = "spectators")]
    pub(crate) spectator_delay: u32,
    /// Where this machine's operators may ask, such as 127.0.0.1:7700: GET /livez, GET /matches, POST /drain?to=ADDR
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// Take over the match of the server on this machine whose --admin address this is; its players follow
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["journal", "new_match"])]
    pub(crate) take_over: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TicketArgs {
    /// The server's key
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// What the player dials: the server's --public address, or else its --listen address
    #[arg(long, value_name = "ADDR")]
    pub(crate) server: SocketAddr,
    /// Who the player is; the same name gets the same seat again
    #[arg(long, value_name = "NAME")]
    pub(crate) player: String,
    /// For someone who only watches
    #[arg(long)]
    pub(crate) spectate: bool,
    /// Write it to this file, which only its owner may read, instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct JoinArgs {
    /// A file with the ticket's line in it. The newest ticket to return with is kept beside it, as
    /// TICKETFILE.rejoin, and used first
    #[arg(value_name = "TICKETFILE")]
    pub(crate) ticket: PathBuf,
    /// Let a bot play
    #[arg(long)]
    pub(crate) bot: bool,
    /// How many enemies the server has [default: 24]
    #[arg(long)]
    pub(crate) enemies: Option<u16>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// Play it to its end and compare every digest and every world with what was played; exits with 1 if one
    /// differs or the file is damaged
    #[arg(long)]
    pub(crate) verify: bool,
    /// How many enemies the match had [default: 24]
    #[arg(long, value_name = "N")]
    pub(crate) enemies: Option<u16>,
}

#[derive(Clone, Debug, Args)]
struct BotsArgs {
    /// How many bots, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    players: u8,
    /// How long they play
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// perfect, lan, wan, bad, awful, or settings such as rtt=120,jitter=20,loss=5
    #[arg(long, value_name = "PRESET", default_value = "wan")]
    link: String,
    /// The seed of the match, the bots and the network
    #[arg(long, value_name = "K", default_value_t = 1)]
    seed: u64,
    /// How many enemies [default: 24]
    #[arg(long, value_name = "N")]
    enemies: Option<u16>,
    /// How the bots move their sticks
    #[arg(long, value_enum, default_value = "analog")]
    sticks: SticksArg,
    /// Where to keep the match's journal
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    policies: PolicyArgs,
    /// How to print what was measured
    #[arg(long, value_enum, default_value = "text")]
    report: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// The end of the process, however it ends
    Process,
    /// A loss of power too: the server waits for the disk in every turn
    Power,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FailureArg {
    /// It ends; what was written can be taken up again
    End,
    /// It goes on without one, and the log says so again and again
    GoOn,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SticksArg {
    /// Both change at every tick
    Analog,
    /// Both change at every tenth tick
    Sticky,
    /// Neutral, no fire, no orders
    Still,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One object on standard output
    Json,
    /// A table
    Text,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A flag's value.
    #[error("--{flag}: {reason}")]
    Flag {
        /// Which flag.
        flag: &'static str,
        /// What was expected.
        reason: String,
    },
    /// A key file.
    #[error("{0}\n(`powderkeg key FILE` makes one)")]
    Key(#[from] KeyError),
    /// A ticket.
    #[error("{0}")]
    Ticket(#[from] TicketError),
    /// A server that cannot start.
    #[error("{0}")]
    Host(#[from] HostError),
    /// A journal.
    #[error("{0}")]
    Journal(#[from] JournalFileError),
    /// A folder for journals.
    #[error(
        "cannot use {path} as a folder for journals: {source}; choose one that can be read and written"
    )]
    JournalFolder {
        /// Which folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A journal that cannot be played here.
    #[error("{path}: {source}{}", enemies_hint(source, *enemies))]
    Replay {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ReplayError,
        /// With how many enemies it was tried.
        enemies: u16,
    },
    /// A client that cannot start.
    #[error("{0}")]
    Client(#[from] StartError),
    /// The terminal.
    #[error("{0}")]
    Terminal(#[from] TerminalError),
    /// Playing ended otherwise than by the player.
    #[error("{0}")]
    Ended(#[from] Ended),
    /// The server plays by other rules.
    #[error("{0}\n(this client has {1} enemies: give the server's number with --enemies)")]
    Rules(Ended, u16),
    /// The server's match ended while it was measured.
    #[error("the match broke off: {0}; see the log on standard error")]
    Match(#[from] MatchEnded),
    /// The operating system.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

/// Other rules are most often another number of enemies.
fn enemies_hint(error: &ReplayError, enemies: u16) -> String {
    match error {
        ReplayError::Mismatch {
            code: CloseCode::WrongRules,
            ..
        } => format!(
            "\n(this program plays with {enemies} enemies: give the match's number with --enemies)"
        ),
        _ => String::new(),
    }
}

impl Failure {
    /// 2 for what the caller can put right before anything runs, else 1.
    fn exit_code(&self) -> u8 {
        match self {
            Failure::Ended(_)
            | Failure::Rules(..)
            | Failure::Match(_)
            | Failure::Terminal(TerminalError::Io(_))
            | Failure::System { .. } => 1,
            _ => 2,
        }
    }
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
        Task::Serve(args) => serve::serve(&args),
        Task::Key { file } => serve::key(&file),
        Task::Ticket(args) => serve::ticket(&args),
        Task::Join(args) => play::join(&args),
        Task::Replay(args) => replay::replay(&args),
        Task::Bots(args) => measure(&args),
    }
}

fn measure(args: &BotsArgs) -> Result<ExitCode, Failure> {
    let options = BotsOptions {
        players: args.players.into(),
        seconds: args.seconds,
        link: link(&args.link)?,
        seed: args.seed,
        policies: args.policies.config(),
        sticks: match args.sticks {
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
        None | Some(Task::Play(_)) => play::has_terminal(),
        Some(Task::Join(args)) => !args.bot && play::has_terminal(),
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
