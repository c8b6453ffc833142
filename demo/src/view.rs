//! The choice of a view: a window, the terminal, or none.
//!
//! ```text
//!   a display, and no --terminal ──▶ window       a terminal ──▶ terminal view       otherwise ──▶ no view
//! ```

use std::io::IsTerminal;
use std::sync::Once;

use powderkeg_view::feed::Feed;
use powderkeg_view::say;
use powderkeg_view::terminal;
use powderkeg_view::window::{self, Backend, NoWindow};
use twinstep_client::{SessionEnd, SessionStats};

use crate::args::ViewArgs;
use crate::failure::Failure;
use crate::report::line_of;
use crate::signals;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewChoice {
    Window(Backend),
    Terminal,
    Nowhere,
}

const SIZE: (u16, u16) = (1_280, 720);

/// Returns where a match is shown, given this machine and the flags. If there is a display but no window, the reason
/// is printed once.
pub(crate) fn choose(args: &ViewArgs) -> ViewChoice {
    if args.terminal {
        return without_window();
    }
    match window::display() {
        Ok(backend) => ViewChoice::Window(backend),
        Err(NoWindow::NoDisplay) => without_window(),
        Err(why) => {
            static SAID: Once = Once::new();
            SAID.call_once(|| say::err(format_args!("no window: {why}")));
            without_window()
        }
    }
}

fn without_window() -> ViewChoice {
    if std::io::stdout().is_terminal() && has_keyboard() {
        ViewChoice::Terminal
    } else {
        ViewChoice::Nowhere
    }
}

fn has_keyboard() -> bool {
    std::io::stdin().is_terminal() || cfg!(unix) && std::fs::File::open("/dev/tty").is_ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HasPlayed(pub(crate) bool);

impl HasPlayed {
    pub(crate) fn of(stats: Option<&SessionStats>) -> HasPlayed {
        HasPlayed(stats.is_some_and(|stats| stats.authority_tick > 0))
    }
}

pub(crate) enum Shown {
    /// The view has closed, with the session's end (`None` if the player quit), and whether a client had joined.
    Over(Option<SessionEnd>, HasPlayed),
    Nowhere(Box<Feed>),
}

/// Shows `feed` until the player quits or the match is over, and prints a summary of a played match. Takes over the
/// calling thread, which must be the process's main thread.
pub(crate) fn show(feed: Feed, view: ViewChoice, args: &ViewArgs) -> Result<Shown, Failure> {
    if view != ViewChoice::Nowhere {
        signals::listen()?;
    }
    let summary = match view {
        ViewChoice::Window(backend) => match window::run(feed, options(backend, args)) {
            Ok(summary) => summary,
            Err(refused) => {
                say::err(&refused.why);
                let Some(feed) = refused.feed else {
                    // The window was open, and was closed from outside.
                    return Ok(Shown::Over(None, HasPlayed(true)));
                };
                return show(*feed, without_window(), args);
            }
        },
        ViewChoice::Terminal => terminal::run(feed)?,
        ViewChoice::Nowhere => return Ok(Shown::Nowhere(Box::new(feed))),
    };
    if let Some(stats) = &summary.stats {
        say::out(format_args!(
            "{} points in {} s · round trip {} ms, {:.1} ticks ahead of the server · {} corrections of the prediction ({} ticks \
             simulated again) · {} effects, {} of them cancelled",
            summary.score,
            summary.played.as_secs(),
            stats.rtt_ms_p50,
            stats.lead_ticks_mean,
            stats.timeline.rebuilds,
            stats.timeline.resim_ticks,
            stats.cues_started,
            stats.cues_cancelled
        ))?;
        say::out(line_of(stats))?;
    }
    let has_played = HasPlayed::of(summary.stats.as_ref());
    Ok(Shown::Over(summary.ended, has_played))
}

fn options(backend: Backend, args: &ViewArgs) -> window::WindowOptions {
    window::WindowOptions {
        backend,
        size: args.windowed.map_or(SIZE, |size| (size.width, size.height)),
        fullscreen: args.fullscreen,
        mute: args.mute,
        vsync: true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use powderkeg_game::Rules;
    use powderkeg_view::rehearsal::{Rehearsal, Setup};

    use super::*;

    #[test]
    fn without_a_view_the_feed_is_returned_unplayed() {
        let setup = Setup::new(Arc::new(Rules::arena(4)), 5);
        let feed = Feed::rehearsal(Rehearsal::new(&setup), None);
        let shown = show(feed, ViewChoice::Nowhere, &ViewArgs::default()).unwrap();
        let Shown::Nowhere(feed) = shown else {
            panic!("nothing can have been shown");
        };
        assert_eq!(feed.now(), Duration::ZERO);
    }
}
