//! `report`: everything that is measured for users in one go, beside ggrs, renet and a plain UDP echo, as a page with plots.
//!
//! ```text
//!  in memory      ours, ggrs, ours, ggrs …            ─┐
//!  over sockets   host, renet, echo, host, renet …     ├─▶ REPORT.md, report/*.svg
//!  in real time   a game's thread; more and more players ─┘
//! ```
//!
//! Whoever is compared takes turns, so that a ratio is of the same minutes. A part that does not come off is told as such;
//! the others still count.

mod date;
mod effort;
mod goals;
mod memory;
mod page;
mod plot;
mod sleeper;
mod sockets;

use std::path::Path;

use crate::host::KeyFolder;
use crate::process::Failed;
use crate::size;
use effort::Effort;
use page::Page;

/// Measures everything and writes the page and its plots into a folder.
pub(crate) fn run(is_short: bool, folder: &Path, date: Option<&str>) -> Result<(), Failed> {
    let effort = match is_short {
        true => Effort::SHORT,
        false => Effort::FULL,
    };
    let date = match date {
        Some(date) => date.to_owned(),
        None => date::today()?,
    };
    let keys = KeyFolder::new()?;
    let mut page = Page::new(&effort, date);
    let say = |what: &str| eprintln!("measuring: {what}");
    say("frames and rebuilds beside ggrs");
    page.beside_ggrs(&memory::beside_ggrs(&effort));
    say("a large state that nobody touches");
    page.large_state(&size::untouched(effort.large));
    for players in effort.together {
        say(&format!("{players} players beside renet and a UDP echo"));
        page.beside_renet(&sockets::beside_renet(&effort, *players, &keys));
    }
    say("more and more players on one core");
    let steps = sockets::capacity(&effort, &keys);
    say("how late a thread is that only sleeps");
    page.capacity(&steps, sleeper::lateness(effort.sleep));
    say("matches in which nobody speaks");
    page.idle(sockets::idle(&effort, &keys));
    say("calls of the kernel");
    page.syscalls(sockets::syscalls(&effort, &keys));
    say("a Powderkeg world");
    page.worlds(&memory::worlds(&effort)?);
    say("a game's thread");
    page.game_thread(&memory::game_thread(&effort));
    page.write(folder)
}

#[cfg(test)]
mod tests;
