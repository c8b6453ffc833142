//! Twinstep's benchmarks, beside a peer.
//!
//! ```text
//! cargo run --release -p twinstep-bench -- quick [--markdown] [--date 2026-11-20]
//! cargo run --release -p twinstep-bench -- journal FOLDER
//! cargo run --release -p twinstep-bench -- crowd [--markdown] [--date 2026-11-20]
//! cargo run --release -p twinstep-bench -- kit
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
//! | `size` | what a large state costs that nobody touches |
//! | `kit` | how fast `twinstep-testing` checks a game |
//! | `quick`, `report` | the tables, what they do not cover, and how they are shown |
//!
//! Nothing is tuned to look good: where Twinstep is slower, the table says so. Tests hold what the benchmark
//! claims (that "a rebuild at every turn" is one, that "no rebuild" is none, on both sides).

mod allocations;
mod crowd;
mod frames;
mod journal;
mod kit;
mod measure;
mod ours;
mod peer_ggrs;
mod quick;
mod report;
mod simulation;
mod size;
mod subjects;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::report::Format;

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
    match what {
        What::Quick { markdown, date } => {
            quick::run(format(markdown), date.as_deref(), &mut text)
                .expect("a String takes everything");
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
        What::Journal { folder } => {
            if let Err(error) = journal::run(&folder, &mut text) {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        }
    }
    print!("{text}");
    ExitCode::SUCCESS
}

fn format(markdown: bool) -> Format {
    match markdown {
        true => Format::Markdown,
        false => Format::Text,
    }
}
