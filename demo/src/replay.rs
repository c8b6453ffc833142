//! `powderkeg replay`: shows a journal as a match, or verifies that this program computes the same worlds from it.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use powderkeg_game::{Game, terms};
use powderkeg_view::feed::{Feed, Playback, ReplayClock};
use powderkeg_view::say;
use powderkeg_view::time::now;
use twinstep_core::{PlayerId, Tick};
use twinstep_host::StoredJournal;
use twinstep_host::internal::utc;
use twinstep_protocol::replay::{Index, Replay, ReplayError, Survey, Verified};
use twinstep_protocol::text::line;
use twinstep_server::{KEPT, MOVED};

use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::view::{self, Shown, ViewChoice};

pub(crate) fn replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    // Redirected output must be text, even if there is a display.
    let is_piped = !std::io::stdout().is_terminal() && !args.view.asks_for_window();
    if args.verify || args.summary || is_piped {
        return examine(args);
    }
    match view::choose(&args.view) {
        ViewChoice::Nowhere => examine(args),
        view => watch(args, view),
    }
}

pub(crate) fn open(path: &Path) -> Result<StoredJournal, Failure> {
    StoredJournal::open(path).map_err(|source| Failure::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn watch(args: &ReplayArgs, view: ViewChoice) -> Result<ExitCode, Failure> {
    let rules = terms::rules(args.enemies);
    let playback = Playback::open(open(&args.file)?, &rules).map_err(|source| Failure::Replay {
        path: args.file.clone(),
        source,
        enemies: args.enemies,
    })?;
    let name = args.file.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    match view::show(
        Feed::playback(playback, ReplayClock::wall()).titled(&name),
        view,
        &args.view,
    )? {
        Shown::Over(..) => Ok(ExitCode::SUCCESS),
        Shown::Nowhere(_) => examine(args),
    }
}

fn examine(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let mut file = open(path)?;
    let rules = terms::rules(args.enemies);
    let failed = |source| Failure::Replay {
        path: path.clone(),
        source,
        enemies: args.enemies,
    };
    let mut replay = Replay::<Game>::open(&mut file, &rules).map_err(failed)?;
    let survey = replay.survey();
    say::out(summary(replay.index(), &survey))?;
    let fault = if args.verify {
        let began = now();
        let verified = replay.verify();
        say::out(verdict(&verified, &survey, began.elapsed()))?;
        verified.fault
    } else {
        survey.fault
    };
    if let Some(fault) = &fault {
        say::out(fault)?;
        let build = &replay.index().about.build;
        if matches!(fault, ReplayError::Differs { .. }) && build != terms::BUILD {
            say::out(format_args!(
                "The journal was recorded by build {:?}; this program is build {:?}.",
                line(build),
                terms::BUILD
            ))?;
        }
        if let Ok(tick) = reach(&mut replay) {
            say::out(format_args!("It plays up to {tick}."))?;
        }
    }
    Ok(ExitCode::from(u8::from(fault.is_some())))
}

/// Returns the tick up to which a damaged journal plays.
fn reach(replay: &mut Replay<'_, Game>) -> Result<Tick, ReplayError> {
    let last = replay.index().worlds.last().map(|place| place.tick);
    // Starts at the last world, so that only the end is stepped.
    replay.seek(last.unwrap_or_default())?;
    while let Ok(true) = replay.step() {}
    Ok(replay.world().tick())
}

/// Formats the players of a match, their playing times, and the size of the journal.
fn summary(index: &Index, survey: &Survey) -> String {
    let mut out = String::new();
    let about = &index.about;
    let hz = 1.0 / survey.tick.as_secs_f64();
    let resumed = match index.resumes {
        0 => "not resumed".to_owned(),
        1 => "resumed once".to_owned(),
        times => format!("resumed {times} times"),
    };
    let end = end(index.ended.as_deref());
    let _ = writeln!(
        out,
        "{} version {}, recorded {} by build {:?}\n{} from {}: {} ticks in {} turns, the last at {hz:.0} Hz; {resumed}; \
         {end}",
        line(&about.game),
        about.sim_version,
        utc(about.started_unix_s),
        line(&about.build),
        clock(survey.length),
        survey.first,
        survey.ticks,
        index.turns,
    );
    let _ = writeln!(
        out,
        "\nfilled: ticks whose input was missing when due, and was filled in by the server\n{:<8} {:>9} {:>9} {:>9} {:>9}  identity",
        "player", "played", "filled", "commands", "claims"
    );
    for (n, player) in survey
        .players
        .iter()
        .enumerate()
        .filter(|(_, p)| p.ticks > 0)
    {
        let id = PlayerId(n as u8);
        let names: Vec<String> = index
            .seats
            .iter()
            .filter(|(who, _)| *who == id)
            .map(|(_, name)| line(name).to_string())
            .collect();
        let _ = writeln!(
            out,
            "{:<8} {:>9} {:>9} {:>9} {:>9}  {}",
            n,
            clock(player.played),
            player.filled,
            player.commands,
            player.claims,
            names.join(", ")
        );
    }
    let minutes = survey.played().as_secs_f64() / 60.0;
    let per_minute = |bytes: u64| bytes as f64 / 1_000.0 / minutes;
    let bytes = index.bytes;
    let _ = writeln!(
        out,
        "\n{} bytes: turns {}, idle turns {}, digests {}, worlds {}, other {}",
        bytes.total(),
        bytes.turns,
        bytes.idle,
        bytes.digests,
        bytes.worlds,
        bytes.other,
    );
    let _ = match survey.played() {
        Duration::ZERO => writeln!(out, "no players; {} outcomes", survey.outcomes),
        _ => writeln!(
            out,
            "{:.1} KB per player and minute ({:.1} without digests and worlds; {:.1} if inputs and commands were stored unpacked); {} outcomes",
            per_minute(bytes.total()),
            per_minute(bytes.turns + bytes.idle),
            per_minute(survey.raw_bytes),
            survey.outcomes
        ),
    };
    out
}

fn end(reason: Option<&str>) -> String {
    match reason {
        Some(reason @ (KEPT | MOVED)) => format!("can be resumed ({reason})"),
        Some(reason) => format!("over: {}", line(reason)),
        None => "not over".to_owned(),
    }
}

fn verdict(verified: &Verified, survey: &Survey, took: Duration) -> String {
    let mut out = String::new();
    let played = survey.tick * verified.ticks;
    let _ = writeln!(
        out,
        "{} ticks replayed; equal digests: {}, equal worlds: {}; {:.2} s, {:.0} x real time",
        verified.ticks,
        verified.digests,
        verified.worlds,
        took.as_secs_f64(),
        played.as_secs_f64() / took.as_secs_f64().max(1e-9)
    );
    for field in &verified.fields {
        let _ = writeln!(out, "  {field}  (recomputed, recorded)");
    }
    out
}

fn clock(time: Duration) -> String {
    let s = time.as_secs();
    format!("{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use twinstep_protocol::packet::hello::Hello;

    use powderkeg_game::Rules;
    use twinstep_core::frame::{FrameData, Perspective, PlayerSet, RosterChange};
    use twinstep_core::world::Stepper;
    use twinstep_core::{PlayerId, World};
    use twinstep_protocol::journal::WrittenBy;
    use twinstep_protocol::replay::Recorder;
    use twinstep_protocol::text::plain;

    use super::*;

    /// Text that would set the terminal's title, clear the screen, reorder the row, hide letters and pile up marks.
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\r\n\u{202e}\u{2066}\u{200b}\u{3164}z\u{301}\u{302}\u{303}\u{e000}";

    /// The journal of a match of two ticks, with `player` or without players.
    fn journal(rules: &Rules, build: &str, player: Option<&str>) -> Vec<u8> {
        let hello = Hello::of::<Game>(rules, build).unwrap();
        let mut world = World::new(Game::new(rules, 1), Tick(0));
        let mut journal = Vec::new();
        let mut recorder =
            Recorder::start(WrittenBy::Server, &hello, 0, 0, &world, &mut journal).unwrap();
        let mut stepper = Stepper::default();
        for tick in [Tick(0), Tick(1)] {
            let mut frame = FrameData::preallocated(tick);
            if let Some(name) = player {
                if tick == Tick(0) {
                    recorder.seat(PlayerId(0), name, &mut journal).unwrap();
                    frame.roster.push((PlayerId(0), RosterChange::Joined));
                }
                frame.inputs.set(PlayerId(0), Some(Default::default()));
            }
            stepper
                .step(
                    &mut world,
                    &frame,
                    rules,
                    Perspective::authority(tick),
                    PlayerSet::default(),
                )
                .unwrap();
            recorder.frame(&frame);
        }
        recorder
            .turn(&world, world.digest().unwrap(), &mut journal)
            .unwrap();
        recorder.end(EVIL, &mut journal).unwrap();
        journal
    }

    fn told(file: &[u8], rules: &Rules) -> String {
        let replay = Replay::<Game>::open(file, rules).unwrap();
        let survey = Survey::of::<Game>(file, replay.index());
        assert_eq!(survey.fault, None);
        summary(replay.index(), &survey)
    }

    fn steers_nothing(told: &str) {
        assert_eq!(plain(told).to_string(), told);
        assert!(
            !told.contains('\r') && told.contains("\\u{1b}]0;owned"),
            "{told}"
        );
    }

    #[test]
    fn only_a_match_that_was_not_kept_or_moved_is_over() {
        let reasons = [Some(KEPT), Some(MOVED), Some("ended by an operator"), None];
        let texts = [
            "can be resumed (kept)",
            "can be resumed (moved)",
            "over: ended by an operator",
            "not over",
        ];
        assert_eq!(reasons.map(end), texts);
    }

    /// Finding C6: text from files was printed raw, with escape sequences.
    #[test]
    fn a_hostile_journal_cannot_control_the_terminal() {
        let rules = Rules::arena(0);
        let told = told(&journal(&rules, EVIL, Some(EVIL)), &rules);
        steers_nothing(&told);
        assert_eq!(
            told.matches("owned").count(),
            3,
            "build, reason, name: {told}"
        );
        assert_eq!(told.lines().count(), 9, "{told}");
    }

    /// Finding C6: the same for errors in playing, resuming and drawing a journal.
    #[test]
    fn errors_about_a_hostile_journal_cannot_control_the_terminal() {
        let (rules, other) = (Rules::arena(0), Rules::arena(1));
        let file = journal(&rules, EVIL, Some(EVIL));
        let source = Replay::<Game>::open(&file, &other).err().unwrap();
        let refused = Failure::Replay {
            path: PathBuf::from("a.journal"),
            source,
            enemies: None,
        };
        steers_nothing(&refused.to_string());

        let rules = std::sync::Arc::new(rules);
        let config = terms::policies();
        let unasked =
            |_: &twinstep_server::HookContext<'_, Game>, _, _: &_| unreachable!("it is over");
        let over = twinstep_server::Match::resume(config, &file, rules.clone(), unasked);
        steers_nothing(&over.err().unwrap().to_string());

        let playback = Playback::open(file, &rules).unwrap();
        let mut feed = Feed::playback(playback, ReplayClock::wall());
        feed.advance(&[]).unwrap();
        let companions = feed.companions();
        for companion in &companions {
            assert!(
                twinstep_protocol::text::is_plain(&companion.name),
                "{companion:?}"
            );
        }
    }

    /// Finding O12.
    #[test]
    fn a_match_without_players_has_no_share_per_player() {
        let rules = Rules::arena(0);
        let told = told(&journal(&rules, "powderkeg", None), &rules);
        assert!(
            told.contains("no players") && !told.contains("KB per player"),
            "{told}"
        );
    }

    #[test]
    fn unix_times_are_formatted_as_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(utc(1_795_717_145), "2026-11-26T18:19:05Z");
        // A hostile journal may contain any time.
        assert!(utc(u64::MAX).ends_with('Z'));
    }
}
