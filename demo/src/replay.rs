//! A journal, shown as a match; or what is in it, and whether this program makes the same worlds of it again.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use twinstep_core::packet::hello::Hello;
use twinstep_core::replay::{Index, Replay, ReplayError, Survey, Verified};
use twinstep_core::{PlayerId, Tick};

use crate::cli::{Failure, ReplayArgs};
use crate::feed::{Clock, Feed, Playback};
use crate::game::Game;
use crate::view::{self, Shown, View};
use crate::wiring;

/// Shows a journal where there is something to show it on; else tells what is in it, or verifies it.
pub(crate) fn replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    // Who sends the output elsewhere wants words, also where there is a display.
    let is_piped = !std::io::stdout().is_terminal() && !args.view.asks_for_window();
    if args.verify || args.summary || is_piped {
        return examine(args);
    }
    match view::choose(&args.view) {
        View::Nowhere => examine(args),
        view => watch(args, view),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|source| Failure::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn watch(args: &ReplayArgs, view: View) -> Result<ExitCode, Failure> {
    let rules = wiring::rules(args.enemies);
    let playback = Playback::open(read(&args.file)?, &rules).map_err(|source| Failure::Replay {
        path: args.file.clone(),
        source,
        enemies: args.enemies,
    })?;
    match view::show(Feed::playback(playback, Clock::wall()), view, &args.view)? {
        Shown::Over(_) => Ok(ExitCode::SUCCESS),
        Shown::Nowhere(_) => examine(args),
    }
}

fn examine(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let file = read(path)?;
    let rules = wiring::rules(args.enemies);
    let failed = |source| Failure::Replay {
        path: path.clone(),
        source,
        enemies: args.enemies,
    };
    let hello = Hello::of::<Game>(&rules, wiring::BUILD).expect("rules without a NaN");
    let mut replay = Replay::<Game>::open(&file, &rules, &hello).map_err(failed)?;
    let survey = Survey::of::<Game>(&file, replay.index());
    print!("{}", summary(replay.index(), &survey));
    let fault = if args.verify {
        let (verified, took) = timed(|| replay.verify());
        print!("{}", verdict(&verified, &survey, took));
        verified.fault
    } else {
        survey.fault
    };
    if let Some(fault) = &fault {
        println!("{fault}");
        let build = &replay.index().about.build;
        if matches!(fault, ReplayError::Differs { .. }) && build != wiring::BUILD {
            println!(
                "It was begun by build {build:?}; this is {:?}.",
                wiring::BUILD
            );
        }
        if let Ok(tick) = reach(&mut replay) {
            println!("It plays up to {tick}.");
        }
    }
    Ok(ExitCode::from(u8::from(fault.is_some())))
}

/// How far a damaged journal plays.
fn reach(replay: &mut Replay<'_, Game>) -> Result<Tick, ReplayError> {
    let last = replay.index().worlds.last().map(|place| place.tick);
    replay.seek(last.unwrap_or_default())?;
    while let Ok(true) = replay.step() {}
    Ok(replay.world().tick())
}

/// Who played what, for how long, in how many bytes.
fn summary(index: &Index, survey: &Survey) -> String {
    let mut out = String::new();
    let about = &index.about;
    let hz = 1.0 / survey.tick.as_secs_f64();
    let end = match &index.ended {
        Some(reason) => format!("ended: {reason}"),
        None => "not ended".to_owned(),
    };
    let _ = writeln!(
        out,
        "{} version {}, begun by build {:?} at unix time {}\n{} from {}: {} ticks at {hz:.0} Hz in {} turns, taken \
         up again {} times; {end}",
        about.game,
        about.sim_version,
        about.build,
        about.started_unix_s,
        clock(survey.length),
        survey.first,
        survey.ticks,
        index.turns,
        index.resumes,
    );
    let _ = writeln!(
        out,
        "\n{:<8} {:>9} {:>9} {:>9} {:>9}  who",
        "player", "played", "filled", "commands", "claims"
    );
    for (n, player) in survey
        .players
        .iter()
        .enumerate()
        .filter(|(_, p)| p.ticks > 0)
    {
        let id = PlayerId(n as u8);
        let names: Vec<&str> = index
            .seats
            .iter()
            .filter(|(who, _)| *who == id)
            .map(|(_, name)| name.as_str())
            .collect();
        let _ = writeln!(
            out,
            "{:<8} {:>9} {:>9} {:>9} {:>9}  {}",
            id.to_string(),
            clock(survey.tick * player.ticks),
            player.filled,
            player.commands,
            player.claims,
            names.join(", ").escape_debug()
        );
    }
    let minutes = survey.player_ticks() as f64 * survey.tick.as_secs_f64() / 60.0;
    let per_minute = |bytes: u64| bytes as f64 / 1_000.0 / minutes.max(1e-9);
    let bytes = index.bytes;
    let _ = writeln!(
        out,
        "\n{} bytes: turns {}, idle turns {}, digests {}, worlds {}, other {}\n{:.1} KB per player and minute \
         (turns alone {:.1}; inputs and orders written out in full {:.1}); {} outcomes",
        bytes.total(),
        bytes.turns,
        bytes.idle,
        bytes.digests,
        bytes.worlds,
        bytes.other,
        per_minute(bytes.total()),
        per_minute(bytes.turns + bytes.idle),
        per_minute(survey.raw_bytes),
        survey.outcomes
    );
    out
}

/// What verifying found.
fn verdict(verified: &Verified, survey: &Survey, took: Duration) -> String {
    let mut out = String::new();
    let played = survey.tick * verified.ticks;
    let _ = writeln!(
        out,
        "{} ticks played again: {} digests and {} worlds agree; {:.2} s, {:.0} x real time",
        verified.ticks,
        verified.digests,
        verified.worlds,
        took.as_secs_f64(),
        played.as_secs_f64() / took.as_secs_f64().max(1e-9)
    );
    for field in &verified.fields {
        let _ = writeln!(out, "  {field}  (played again, recorded)");
    }
    out
}

fn clock(time: Duration) -> String {
    let s = time.as_secs();
    format!("{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
fn timed<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let began = Instant::now();
    let done = run();
    (done, began.elapsed())
}
