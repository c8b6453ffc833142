//! Twinstep's benchmarks, beside a peer.
//!
//! ```text
//! cargo run --release -p twinstep-bench -- report [--short] [--out FOLDER] [--date 2026-11-20]
//! cargo run --release -p twinstep-bench -- quick [--markdown] [--date 2026-11-20]
//! cargo run --release -p twinstep-bench -- journal FOLDER
//! cargo run --release -p twinstep-bench -- crowd [--markdown] [--date 2026-11-20]
//! cargo run --release -p twinstep-bench -- kit
//! cargo run --release -p twinstep-bench -- host [--players 100] [--seconds 10]
//! cargo run --release -p twinstep-bench -- serve [--kind renet] --listen ADDR --matches 25 --key-file FILE
//! cargo run --release -p twinstep-bench -- load --server ADDR --players 100 --key-file FILE [--seconds 10]
//! cargo run --release -p twinstep-bench -- many [--matches 200] [--joins 1000] [--seconds 10]
//! cargo run --release -p twinstep-bench -- size [--markdown]
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | `simulation` | the game that both sides play |
//! | `ours`, `peer_ggrs` | four players each, in memory, packets 8 ticks one way |
//! | `subjects` | what is measured: those parties, and clones, digests, rebuilds alone |
//! | `measure`, `allocations` | subjects take turns; medians; exact counts |
//! | `frames` | how long a picture of the demo takes; skipped, with the reason, where there can be none |
//! | `journal` | what a journal costs that survives a crash, or a loss of power |
//! | `crowd` | what a frame costs the game's thread at a wrong guess a turn, rebuilt inline and in the background |
//! | `host`, `load` | what a server process costs per player, in CPU time and memory, over real UDP; players for one elsewhere |
//! | `many` | many matches in one process, made on demand: lateness, and what joins and leaves leave behind |
//! | `peer_renet`, `echo`, `socket` | the same work by renet, and by a socket alone |
//! | `served`, `serving`, `process`, `cores` | a server as a process of its own, on a core of its own, and what it has used up |
//! | `players`, `seated`, `bare_session`, `seals` | who plays on it, and what they say; how late its ticks are |
//! | `report`, `spread` | everything in one go, with targets and plots |
//! | `size` | what a large state costs that nobody touches |
//! | `kit` | how fast `twinstep-testing` checks a game |
//! | `quick`, `table` | the tables, what they do not cover, and how they are shown |
//!
//! Nothing is tuned to look good: where Twinstep is slower, the table says so. Tests hold what the benchmark
//! claims (that "a rebuild at every turn" is one, that "no rebuild" is none, on both sides).

mod allocations;
mod bare_session;
mod cores;
mod crowd;
mod echo;
mod frames;
mod host;
mod journal;
mod kit;
mod load;
mod many;
mod measure;
mod ours;
mod peer_ggrs;
mod peer_renet;
mod players;
mod process;
mod quick;
mod report;
mod seals;
mod seated;
mod served;
mod serving;
mod simulation;
mod size;
mod socket;
mod spread;
mod subjects;
mod table;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::process::Failed;
use crate::served::Kind;
use crate::table::Format;

/// Twinstep's benchmarks, beside a peer.
#[derive(Parser)]
#[command(name = "twinstep-bench", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measures frames, rebuilds, match, packets and state beside ggrs, in some two minutes; and pictures of the demo, if it is
    /// built.
    Quick {
        /// Writes markdown tables instead of plain text.
        #[arg(long)]
        markdown: bool,
        /// The day to put into the report.
        #[arg(long, value_name = "YYYY-MM-DD")]
        date: Option<String>,
    },
    /// Measures everything in one go, beside ggrs, renet and a plain UDP echo, in less than ten minutes; writes REPORT.md and
    /// its plots.
    Report {
        /// Sees in some seconds that it works; its numbers say nothing.
        #[arg(long)]
        short: bool,
        /// The folder of REPORT.md: `bench`, and `target/short-report` for a short one.
        #[arg(long)]
        out: Option<PathBuf>,
        /// The day to put into the report; today, if it is not given.
        #[arg(long, value_name = "YYYY-MM-DD")]
        date: Option<String>,
    },
    /// Measures what a client's frame costs the game's thread with 1,000 entities and a wrong guess at every turn, inline and
    /// in the background, in some six minutes of real time.
    Crowd {
        /// Writes markdown tables instead of plain text.
        #[arg(long)]
        markdown: bool,
        /// The day to put into the report.
        #[arg(long, value_name = "YYYY-MM-DD")]
        date: Option<String>,
    },
    /// Measures what a large state costs a match and a client though nobody touches it, in some seconds.
    Size {
        /// Writes a markdown table instead of plain text.
        #[arg(long)]
        markdown: bool,
    },
    /// Measures how fast the kit for authors checks the demo's largest wave; fails below 60 ticks a second.
    Kit,
    /// Measures what a server process costs per player over real UDP: CPU time, memory, sleeps. Linux tells these.
    Host {
        /// Players, in matches of four.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=2_000))]
        players: u16,
        /// For how long is measured, after 4 s of warming up.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
        seconds: u64,
    },
    /// Measures many matches of one server process that are made on demand: lateness of ticks, and memory, descriptors and
    /// threads while players come and go. Linux tells these.
    Many {
        /// Matches of four players at once.
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=240))]
        matches: u16,
        /// Joins and leaves, after all play.
        #[arg(long, default_value_t = 1_000)]
        joins: usize,
        /// For how long lateness is measured before.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
        seconds: u64,
    },
    /// The server of `many`, until its input ends.
    #[command(hide = true)]
    ManyServe {
        /// The folder of its key and its journals.
        #[arg(long)]
        folder: PathBuf,
        /// Matches at once.
        #[arg(long)]
        matches: usize,
    },
    /// Serves matches of four of the game that is measured, until its input ends; prints its address, then what it has used
    /// up for each line that it reads.
    Serve {
        /// What serves.
        #[arg(long, value_enum, default_value_t = Kind::Twinstep)]
        kind: Kind,
        /// Where it listens; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// The address by which players reach it, if that is another one than where it listens.
        #[arg(long, value_name = "ADDR", value_parser = address)]
        public: Option<SocketAddr>,
        /// Matches, with the ids from 0 on.
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=500))]
        matches: u16,
        /// The key of its tickets, made by `powderkeg key`.
        #[arg(long)]
        key_file: PathBuf,
    },
    /// Plays on such a server, four players in each match, from one thread, and costs less than what it loads. Fails if not all
    /// play to the end.
    Load {
        /// Where it listens, such as 127.0.0.1:7777; a name is looked up.
        #[arg(long, value_name = "ADDR", value_parser = address)]
        server: SocketAddr,
        /// Players: no more than four for each match of the server.
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=2_000))]
        players: u16,
        /// The key of its tickets.
        #[arg(long)]
        key_file: PathBuf,
        /// For how long, once all are in.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        seconds: u64,
    },
    /// Measures what a turn's journal costs on the disk of a folder, by what it is to survive.
    Journal {
        /// Where a file is made and removed again.
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let what = Arguments::parse().what;
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its numbers say nothing; run it with --release");
    }
    let mut text = String::new();
    let mut failed: Option<Failed> = None;
    match what {
        What::Quick { markdown, date } => {
            quick::run(format(markdown), date.as_deref(), &mut text)
                .expect("a String takes everything");
        }
        What::Report { short, out, date } => {
            let usual = if short {
                "target/short-report"
            } else {
                "bench"
            };
            let folder = out.unwrap_or_else(|| usual.into());
            failed = report::run(short, &folder, date.as_deref()).err();
        }
        What::Crowd { markdown, date } => {
            crowd::run(format(markdown), date.as_deref(), &mut text)
                .expect("a String takes everything");
        }
        What::Size { markdown } => {
            size::run(format(markdown), &mut text).expect("a String takes everything");
        }
        What::Kit => {
            let is_fast = kit::run(&mut text);
            print!("{text}");
            return match is_fast {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            };
        }
        What::Host { players, seconds } => {
            let time = Duration::from_secs(seconds);
            failed = host::run(players.into(), time, &mut text).err();
        }
        What::Many {
            matches,
            joins,
            seconds,
        } => {
            let time = Duration::from_secs(seconds);
            failed = many::run(matches.into(), joins, time, &mut text).err();
        }
        What::ManyServe { folder, matches } => failed = many::serve(&folder, matches).err(),
        What::Serve {
            kind,
            listen,
            public,
            matches,
            key_file,
        } => {
            failed = serving::serve(kind, (listen, public), matches.into(), &key_file).err();
        }
        What::Load {
            server,
            players,
            key_file,
            seconds,
        } => {
            let time = Duration::from_secs(seconds);
            failed = load::run(players.into(), server, &key_file, time).err();
        }
        What::Journal { folder } => {
            failed = journal::run(&folder, &mut text).err().map(Into::into);
        }
    }
    print!("{text}");
    match failed {
        None => ExitCode::SUCCESS,
        Some(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// An address and a port, or a name and a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map(|mut found| found.next());
    let found = found
        .map_err(|why| why.to_string())
        .and_then(|first| first.ok_or_else(|| "that name has no address".to_owned()));
    found.map_err(|why| format!("{why}; expected an address and a port, such as 127.0.0.1:7777"))
}

fn format(markdown: bool) -> Format {
    match markdown {
        true => Format::Markdown,
        false => Format::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_what_is_none_says_what_was_expected() {
        assert_eq!(
            address("192.0.2.1:7777"),
            Ok(([192, 0, 2, 1], 7_777).into())
        );
        assert!(address("[::1]:7").is_ok_and(|found| found.is_ipv6()));
        for wrong in [
            "nowhere",
            "192.0.2.1",
            "192.0.2.1:",
            ":7777:",
            "192.0.2.1:70000",
        ] {
            let why = address(wrong).expect_err(wrong);
            assert!(why.ends_with("such as 127.0.0.1:7777"), "{wrong}: {why}");
        }
    }
}
