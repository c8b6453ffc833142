//! Twinstep's benchmarks, beside its peers: one harness for all subjects and loads.
//!
//! ```text
//!  main ─▶ report ─┬▶ client, state   parties in turns, in memory (ours, peer_ggrs)
//!                  ├▶ server          a server in a process of its own (host, peers), players in this one (seated, peers)
//!                  └▶ world, thread, horde   whole games
//!                        each returns a Section of Rows: a table, JSON, targets
//! ```
//!
//! A ratio to a peer in the same run is worth more than an absolute number, because machines and days differ. Counts of
//! allocations, bytes and system calls are exact. `NOTES.md` records what was tried.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and starts threads; nothing that it measures does"
)]

mod bare_session;
mod client;
mod effort;
mod game;
mod horde;
mod host;
mod load;
mod ours;
mod peer_ggrs;
mod peers;
mod players;
mod process;
mod report;
mod rows;
mod seated;
mod served;
mod server;
mod state;
mod subject;
mod targets;
mod thread;
mod turns;
mod world;

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::effort::Effort;
use crate::process::Failed;
use crate::report::Subject;
use crate::rows::{Format, Section, compare};
use crate::served::Kind;

/// Twinstep's benchmarks, next to its peers.
#[derive(Parser)]
#[command(name = "twinstep-bench", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures in a minute how a change affects the costs. Run it before the change with --save and after it with
    /// --against.
    Quick(Quick),
    /// Measures everything in five minutes and writes REPORT.md, with targets, and its rows as REPORT.json.
    Report(Report),
    /// Plays on a server started by `serve`, four players in each match, from one thread. Fails if not all play to the
    /// end.
    Load(Load),
    /// Serves four-player matches of the measured game until standard input ends. Prints the listen address, then the
    /// resource use for each line of input, as JSON.
    Serve(Serve),
    /// Measures the cost of writing a turn's journal to a directory's disk, for each durability.
    Journal {
        /// The directory for a temporary file.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Args)]
struct Quick {
    /// The sections to measure.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "client,state,server"
    )]
    only: Vec<Subject>,
    /// Players on the server, in matches of four.
    #[arg(long, value_delimiter = ',', default_value = "100",
        value_parser = clap::value_parser!(u16).range(1..=2_000))]
    players: Vec<u16>,
    /// The time for which a server is measured, in seconds, after a second of warming up.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Writes the rows as JSON.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compares with the rows of an earlier run.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

#[derive(Args)]
struct Report {
    /// Runs for about a minute, only to check that everything works. The numbers have no meaning.
    #[arg(long)]
    short: bool,
    /// The directory for REPORT.md [default: bench, or target/short-report with --short].
    #[arg(long)]
    out: Option<PathBuf>,
    /// The date in the report [default: today].
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

#[derive(Args)]
struct Load {
    /// Address of the server, such as 127.0.0.1:7777, or a name and a port.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    server: SocketAddr,
    /// The number of players, at most four for each match of the server.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=2_000))]
    players: u16,
    /// The file with the key of the server's tickets.
    #[arg(long)]
    key_file: PathBuf,
    /// Seconds of play, once all players have joined.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

#[derive(Args)]
struct Serve {
    /// The server to measure.
    #[arg(long, value_enum, default_value_t = Kind::Twinstep)]
    kind: Kind,
    /// Listen address; port 0 picks a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address that players dial, if different from --listen.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    public: Option<SocketAddr>,
    /// Number of matches; their ids start with 0.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=500))]
    matches: u16,
    /// The file with the key of the server's tickets, created by `powderkeg key`.
    #[arg(long)]
    key_file: PathBuf,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its numbers have no meaning; run it with --release");
    }
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<(), Failed> {
    match command {
        Command::Quick(quick) => run_quick(&quick),
        Command::Report(Report { short, out, date }) => {
            let (effort, usual) = match short {
                true => (Effort::short(), "target/short-report"),
                false => (Effort::full(), "bench"),
            };
            let folder = out.unwrap_or_else(|| usual.into());
            report::write(&effort, &folder, date.as_deref())
        }
        Command::Load(load) => {
            let time = Duration::from_secs(load.seconds);
            load::run(load.players.into(), load.server, &load.key_file, time)
        }
        Command::Serve(serve) => {
            let addresses = (serve.listen, serve.public);
            served::serve(serve.kind, addresses, serve.matches.into(), &serve.key_file)
        }
        Command::Journal { folder } => {
            let mut text = String::new();
            world::journal(&folder)?.write(Format::Text, &mut text)?;
            print!("{text}");
            Ok(())
        }
    }
}

fn run_quick(quick: &Quick) -> Result<(), Failed> {
    let effort = Effort {
        players: quick.players.iter().copied().map(usize::from).collect(),
        time: Duration::from_secs(quick.seconds),
        ..Effort::quick()
    };
    // Read first, so that a wrong file fails before a minute is spent.
    let before: Vec<Section> = match &quick.against {
        Some(file) => fs::read(file)
            .map_err(Failed::from)
            .and_then(|text| Ok(serde_json::from_slice(&text)?))
            .map_err(|why| format!("{}: expected rows of --save: {why}", file.display()))?,
        None => Vec::new(),
    };
    let mut text = format!("{}\n\n", report::machine());
    let sections = report::measure(&quick.only, &effort)?;
    for section in &sections {
        section.write(Format::Text, &mut text)?;
    }
    if quick.against.is_some() {
        compare(&before, &sections, &mut text)?;
    }
    print!("{text}");
    if let Some(file) = &quick.save {
        fs::write(file, serde_json::to_string_pretty(&sections)?)?;
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map(|mut found| found.next());
    let found = found
        .map_err(|why| why.to_string())
        .and_then(|first| first.ok_or_else(|| "that name has no address".to_owned()));
    found.map_err(|why| format!("{why}; expected an address and a port, such as 127.0.0.1:7777"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_parsed_and_an_invalid_one_explains_what_was_expected() {
        let expected = SocketAddr::from(([192, 0, 2, 1], 7_777));
        assert_eq!(address("192.0.2.1:7777"), Ok(expected));
        assert!(address("[::1]:7").is_ok_and(|found| found.is_ipv6()));
        for wrong in ["nowhere", "192.0.2.1", ":7777:", "192.0.2.1:70000"] {
            let why = address(wrong).expect_err(wrong);
            assert!(why.ends_with("such as 127.0.0.1:7777"), "{wrong}: {why}");
        }
    }
}
