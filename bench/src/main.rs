//! Twinstep's benchmarks, beside a peer.
//!
//! ```text
//! cargo run --release -p twinstep-bench -- quick [--markdown] [--date 2026-11-20]
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | `simulation` | the game that both sides play |
//! | `ours`, `peer_ggrs` | four players each, in memory, packets 8 ticks one way |
//! | `subjects` | what is measured: those parties, and clones, digests, rebuilds alone |
//! | `measure`, `allocations` | subjects take turns; medians; exact counts |
//! | `quick`, `report` | the tables, what they do not cover, and how they are shown |
//!
//! Nothing is tuned to look good: where Twinstep is slower, the table says so. Tests hold what the benchmark
//! claims (that "a rebuild at every turn" is one, that "no rebuild" is none, on both sides).

mod allocations;
mod measure;
mod ours;
mod peer_ggrs;
mod quick;
mod report;
mod simulation;
mod subjects;

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
    /// Measures frames, rebuilds, match, packets and state beside ggrs, in under a minute.
    Quick {
        /// Writes markdown tables instead of plain text.
        #[arg(long)]
        markdown: bool,
        /// The day to put into the report.
        #[arg(long, value_name = "YYYY-MM-DD")]
        date: Option<String>,
    },
}

fn main() {
    let What::Quick { markdown, date } = Arguments::parse().what;
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its numbers say nothing; run it with --release");
    }
    let format = if markdown {
        Format::Markdown
    } else {
        Format::Text
    };
    let mut text = String::new();
    quick::run(format, date.as_deref(), &mut text).expect("a String takes everything");
    print!("{text}");
}
