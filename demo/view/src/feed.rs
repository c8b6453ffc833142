//! [`Feed`]: what a view draws from, be it a match that is played or one that was.
//!
//! ```text
//!   hands ── pads, orders ──▶ Live ──▶ Line: a client over UDP, or a rehearsal ─┐
//!                                                                              ├─▶ Feed ──▶ terminal, window
//!   keys ── pause, speed, seek ──▶ Playback ◀── a journal ──────────────────────┘
//! ```
//!
//! Invariant: a view knows of no session, packet or file. Each frame it calls [`Feed::advance`], takes cues and
//! notes until there are none, and draws what [`shown`](Feed::shown), [`game`](Feed::game) and the others tell.
//! Nothing here depends on how often that is.

mod clock;
mod companion;
mod frame;
mod gauges;
mod lagged;
mod live;
mod notice;
mod playback;
mod save;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::{Command, Cue, Game, GameShow, Pad, Pose, Rules, ShowKey, poses};
use twinstep_client::Client;
use twinstep_client::client::Ended;
use twinstep_client::cues::CueEvent;
use twinstep_client::smooth::Placed;
use twinstep_client::stats::SessionStats;
use twinstep_core::simnet::LinkProfile;
use twinstep_core::{PlayerId, PlayerSet, Tick};

use crate::time::unix_now;
pub use clock::Clock;
pub use companion::Companion;
use frame::Frame;
pub use gauges::{Gauges, Rates, Reading};
pub use live::{Line, Live};
pub use notice::{Note, Notice, Surplus};
pub use playback::{Playback, Speed};
pub use save::SaveError;

/// See the [module](self).
pub struct Feed {
    source: Source,
    rules: Arc<Rules>,
    now: Duration,
    frame: Frame,
    gauges: Gauges,
    score: u32,
}

enum Source {
    Live(Box<Live>),
    Playback(Box<Playback>, Clock),
}

impl Feed {
    /// Draws from a match that is played.
    #[must_use]
    pub fn live(live: Live, rules: Arc<Rules>) -> Feed {
        Feed::of(Source::Live(Box::new(live)), rules)
    }

    /// Draws from a match that was played, by the given clock.
    #[must_use]
    pub fn playback(playback: Playback, clock: Clock) -> Feed {
        let rules = Arc::clone(playback.rules());
        Feed::of(Source::Playback(Box::new(playback), clock), rules)
    }

    fn of(source: Source, rules: Arc<Rules>) -> Feed {
        Feed {
            source,
            rules,
            now: Duration::ZERO,
            frame: Frame::default(),
            gauges: Gauges::default(),
            score: 0,
        }
    }

    /// Lets everything happen that is due. `pads` are what the players here hold, by seat; who is missing holds
    /// nothing. Call it once a frame, or more often.
    ///
    /// # Errors
    /// The match is over for this screen; what it showed last stays. A replay never ends.
    pub fn advance(&mut self, pads: &[Pad]) -> Result<(), Ended> {
        let played = match &mut self.source {
            Source::Live(live) => {
                let played = live.advance(pads, &mut self.frame);
                self.now = live.now();
                self.gauges.read(self.now, &live.stats());
                played
            }
            Source::Playback(playback, clock) => {
                self.now = clock.tick();
                playback.advance(self.now, &mut self.frame);
                Ok(())
            }
        };
        self.score = self.game().map_or(self.score, |game| game.score);
        played
    }

    /// The client that plays, for whoever plays on without a view; none: it is a replay or a rehearsal.
    #[must_use]
    pub fn into_client(self) -> Option<Client<Game, GameShow>> {
        match self.source {
            Source::Live(live) => live.into_client(),
            Source::Playback(..) => None,
        }
    }

    /// The team's points, also when the match is over.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.score
    }

    /// The view's own time, for what flickers and grows.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// The level.
    #[must_use]
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// What is drawn where, by key: between ticks, and smoothed.
    #[must_use]
    pub fn shown(&self) -> &[(ShowKey, Placed)] {
        &self.frame.shown
    }

    /// The state behind the picture: the prediction's, or the authority's where prediction is off, or the replay's.
    #[must_use]
    pub fn game(&self) -> Option<&Game> {
        match &self.source {
            Source::Live(live) => live.world().map(|world| world.sim()),
            Source::Playback(playback, _) => Some(playback.game()),
        }
    }

    /// The tick of that state.
    #[must_use]
    pub fn tick(&self) -> Tick {
        match &self.source {
            Source::Live(live) => live.world().map_or(Tick(0), |world| world.tick()),
            Source::Playback(playback, _) => playback.tick(),
        }
    }

    /// How long until the next round begins although not all are ready; `None`: not before all are.
    #[must_use]
    pub fn begins_in(&self) -> Option<Duration> {
        let begins = self.game()?.begins_anyway(&self.rules)?;
        let tick = match &self.source {
            Source::Live(live) => live.world()?.turn().cadence.tick(),
            Source::Playback(playback, _) => playback.tick_length(),
        };
        Some(tick * begins.0.saturating_sub(self.tick().0))
    }

    /// Hands out where the authority has everything: the lagged truth behind a prediction. Nothing in a replay,
    /// which is nothing but truth.
    pub fn ghosts(&self, put: impl FnMut(ShowKey, Pose)) {
        if let Source::Live(live) = &self.source
            && let Some(authority) = live.authority()
        {
            poses(authority, |_| true, put);
        }
    }

    /// The next cue that started, was confirmed, or was cancelled.
    pub fn poll_cue(&mut self) -> Option<CueEvent<Cue>> {
        self.frame.cues.pop_front()
    }

    /// The next thing to tell the player in words.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.frame.notes.pop_front()
    }

    /// What stands between the player and the match, if anything does.
    #[must_use]
    pub fn notice(&self) -> Option<Notice> {
        match &self.source {
            Source::Live(live) => live.notice(self.gauges.silent(self.now)),
            Source::Playback(playback, _) => playback.fault().map(Notice::Damaged),
        }
    }

    /// The players at this screen, by seat; none in a replay.
    #[must_use]
    pub fn seats(&self) -> &[PlayerId] {
        match &self.source {
            Source::Live(live) => live.seats(),
            Source::Playback(..) => &[],
        }
    }

    /// Who plays, in the order of their numbers.
    #[must_use]
    pub fn company(&self) -> Vec<Companion> {
        match &self.source {
            Source::Live(live) => live.company(),
            Source::Playback(playback, _) => playback.company(),
        }
    }

    /// Those of a set of players whom the match waits for.
    #[must_use]
    pub fn waiting(&self) -> PlayerSet {
        match &self.source {
            Source::Live(live) => live.waiting(),
            Source::Playback(..) => PlayerSet::default(),
        }
    }

    /// What the session counted; none in a replay.
    #[must_use]
    pub fn stats(&self) -> Option<SessionStats> {
        match &self.source {
            Source::Live(live) => Some(live.stats()),
            Source::Playback(..) => None,
        }
    }

    /// Those numbers over the last 10 s.
    #[must_use]
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Gives an order of a player at this screen; if it is not taken, a note says why.
    pub fn order(&mut self, seat: usize, command: Command) {
        if let Source::Live(live) = &mut self.source {
            live.order(seat, command, &mut self.frame);
        }
    }

    /// Orders the nearest barrel in reach to be lit; if there is none, a note says so.
    pub fn light(&mut self, seat: usize) {
        if let Source::Live(live) = &mut self.source {
            live.light(seat, &self.rules, &mut self.frame);
        }
    }

    /// The name of the simulated link; `None`: the link is real, or this is a replay.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        match &self.source {
            Source::Live(live) => live.link(),
            Source::Playback(..) => None,
        }
    }

    /// Plays over another preset of [`LinkProfile::PRESETS`] from now on, if the link is a simulated one.
    pub fn set_link(&mut self, preset: usize) {
        if let (Source::Live(live), Some((name, profile))) =
            (&mut self.source, LinkProfile::PRESETS.get(preset))
        {
            live.set_link(name, *profile);
        }
    }

    /// Whether the prediction is shown, else the authority: what plain lockstep would feel like.
    #[must_use]
    pub fn predicts(&self) -> bool {
        match &self.source {
            Source::Live(live) => live.predicts(),
            Source::Playback(..) => false,
        }
    }

    /// Shows the prediction, or the authority alone.
    pub fn set_predicts(&mut self, predicts: bool) {
        if let Source::Live(live) = &mut self.source {
            live.set_predicts(predicts, &mut self.frame);
        }
    }

    /// Whether corrections of the picture are smoothed.
    #[must_use]
    pub fn smooths(&self) -> bool {
        match &self.source {
            Source::Live(live) => live.smooths(),
            Source::Playback(..) => false,
        }
    }

    /// Smooths corrections of the picture, or lets it jump.
    pub fn set_smooths(&mut self, smooths: bool) {
        if let Source::Live(live) = &mut self.source {
            live.set_smooths(smooths);
        }
    }

    /// The replay's controls; `None`: the match is played.
    #[must_use]
    pub fn replay(&self) -> Option<&Playback> {
        match &self.source {
            Source::Live(_) => None,
            Source::Playback(playback, _) => Some(playback),
        }
    }

    /// The replay's controls; `None`: the match is played.
    pub fn replay_mut(&mut self) -> Option<&mut Playback> {
        match &mut self.source {
            Source::Live(_) => None,
            Source::Playback(playback, _) => Some(playback),
        }
    }

    /// Saves what this screen has seen confirmed so far as a journal in `folder`, which `powderkeg replay` plays and
    /// verifies; where it is. Of a long match only the last minutes are there.
    ///
    /// # Errors
    /// There is nothing to save, or it cannot be written.
    pub fn save_replay(&self, folder: &Path) -> Result<PathBuf, SaveError> {
        let recording = match &self.source {
            Source::Live(live) => live.recording(),
            Source::Playback(..) => None,
        };
        let journal = recording.ok_or(SaveError::Nothing)?;
        save::save(journal, folder, unix_now())
    }

    /// As [`save_replay`](Feed::save_replay), in the working directory; a note says where, or why not.
    pub fn keep_replay(&mut self) {
        let words = match self.save_replay(Path::new("")) {
            Ok(path) => format!("replay saved: {}", path.display()),
            Err(error) => error.to_string(),
        };
        let tick = self.tick();
        self.frame.note(Note { tick, words });
    }

    /// Says goodbye to the server, if there is one.
    pub fn leave(&mut self) {
        if let Source::Live(live) = &mut self.source {
            live.leave();
        }
    }
}
