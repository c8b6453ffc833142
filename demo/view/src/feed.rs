//! [`Feed`]: the source of a view's pictures, for a live match or a replay.
//!
//! ```text
//!                                   Feed
//!   hands ── pads, orders ──▶  Client (sockets, clock) ──┐
//!                              Rehearsal (neither) ──────┼─▶ Session ─▶ Showing ─┐
//!                                                                                ├─▶ News ──▶ terminal, window
//!   keys ── pause, speed, seek ──▶ Playback ◀── a journal ───────────────────────┘
//! ```
//!
//! Invariant: a view does not know sessions, packets or files. Each frame it calls [`Feed::advance`], takes cues and
//! notes until there are none, and draws [`shown`](Feed::shown), [`game`](Feed::game) and the other getters. The result
//! does not depend on how often that happens.

mod gauges;
mod news;
mod notice;
mod playback;
mod showing;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::{BarrelStage, Command, Cue, Game, GameShow, Pad, Pose, Rules, ShowKey, poses};
use twinstep_client::CueEvent;
use twinstep_client::Placed;
use twinstep_client::SessionEnd;
use twinstep_client::SessionStats;
#[cfg(not(target_arch = "wasm32"))]
use twinstep_client::UdpClient as Line;
use twinstep_client::{Client, MatchRequest, Session};
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::journal;
use twinstep_protocol::simnet::LinkProfile;
#[cfg(target_arch = "wasm32")]
use twinstep_web::WebLine as Line;

use crate::files;
use crate::rehearsal::Rehearsal;
use crate::time::unix_now;
pub use gauges::{GaugeWindow, Gauges, Rates, Reading};
pub use news::Companion;
use news::News;
pub use notice::{Note, Notice, Surplus};
pub use playback::{Playback, ReplayClock, Speed};
pub(crate) use showing::Lagged;
use showing::Showing;

/// A client in a match over a network.
pub type NetClient = Client<Game, GameShow, Line>;

pub struct Feed {
    source: Source,
    rules: Arc<Rules>,
    /// The name of the simulated link. `None` if the link is real, or there is no link.
    link: Option<String>,
    now: Duration,
    showing: Showing,
    news: News,
    gauges: Gauges,
    pads: [Pad; SEATS_MAX],
    unused: Surplus,
    score: u32,
    title: String,
    is_alone: bool,
    // The time at which a screen last requested a pause, or the end of one.
    held: Option<Duration>,
}

const HOLD_AGAIN: Duration = Duration::from_millis(500);

enum Source {
    Client(Box<NetClient>),
    Rehearsal(Box<Rehearsal>),
    Replay(Box<Playback>, ReplayClock),
}

impl Source {
    fn session(&self) -> Option<&Session<Game, GameShow>> {
        match self {
            Source::Client(client) => Some(client.session()),
            Source::Rehearsal(rehearsal) => Some(rehearsal.session()),
            Source::Replay(..) => None,
        }
    }

    fn session_mut(&mut self) -> Option<&mut Session<Game, GameShow>> {
        match self {
            Source::Client(client) => Some(client.session_mut()),
            Source::Rehearsal(rehearsal) => Some(rehearsal.session_mut()),
            Source::Replay(..) => None,
        }
    }
}

impl Feed {
    /// Shows a match played over a network. `link` names the simulated link. If `None`, the link is real and cannot be
    /// switched.
    #[must_use]
    pub fn client(client: NetClient, rules: Arc<Rules>, link: Option<String>) -> Feed {
        let source = Source::Client(Box::new(client));
        Feed {
            link,
            ..Feed::of(source, rules)
        }
    }

    #[must_use]
    pub fn rehearsal(rehearsal: Rehearsal, link: Option<String>) -> Feed {
        let rules = Arc::clone(rehearsal.rules());
        let source = Source::Rehearsal(Box::new(rehearsal));
        Feed {
            link,
            ..Feed::of(source, rules)
        }
    }

    #[must_use]
    pub fn playback(playback: Playback, clock: ReplayClock) -> Feed {
        let rules = Arc::clone(playback.rules());
        Feed::of(Source::Replay(Box::new(playback), clock), rules)
    }

    fn of(source: Source, rules: Arc<Rules>) -> Feed {
        Feed {
            source,
            rules,
            link: None,
            now: Duration::ZERO,
            showing: Showing::new(),
            news: News::default(),
            gauges: Gauges::default(),
            pads: Default::default(),
            unused: Surplus::default(),
            score: 0,
            title: "Powderkeg".to_owned(),
            is_alone: false,
            held: None,
        }
    }

    /// Sets the number of names given for this screen. If the screen gets fewer seats, a note reports that.
    #[must_use]
    pub fn with_names(self, names: usize) -> Feed {
        let unused = Surplus::of(names);
        Feed { unused, ..self }
    }

    #[must_use]
    pub fn titled(self, who: &str) -> Feed {
        let title = format!("Powderkeg · {who}");
        Feed { title, ..self }
    }

    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    // Declares that only bots play besides the local players, so that overlays pause the match.
    #[must_use]
    pub fn alone(self) -> Feed {
        Feed {
            is_alone: true,
            ..self
        }
    }

    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    // Pauses a lone player's match while `holds` is set. A pause requested by the player stays.
    pub fn hold(&mut self, holds: bool) {
        let (now, is_alone) = (self.now, self.is_alone);
        let Some(session) = self.source.session_mut().filter(|_| is_alone) else {
            return;
        };
        let Some(world) = session.authority() else {
            return;
        };
        let is_paused = world.turn().cadence.paused;
        let is_due = self.held.is_none_or(|asked| now > asked + HOLD_AGAIN);
        let request = match (holds, is_paused) {
            (true, false) if is_due => MatchRequest::Pause,
            (false, true) if is_due && self.held.is_some() => MatchRequest::Resume,
            (false, false) if is_due => {
                self.held = None;
                return;
            }
            _ => return,
        };
        self.held = Some(now);
        // A refused request is repeated.
        let _ = session.request(0, request);
    }

    /// Runs everything that is due. `pads` are the inputs of the local players, by seat; a missing pad is neutral.
    /// Call it once a frame, or more often.
    ///
    /// # Errors
    /// If the match is over for this screen. Its last picture stays. A replay never ends.
    pub fn advance(&mut self, pads: &[Pad]) -> Result<(), SessionEnd> {
        let pad = |seat: usize| pads.get(seat).copied().unwrap_or_default();
        for (seat, before) in self.pads.iter_mut().enumerate() {
            let now = pad(seat);
            if std::mem::replace(before, now).has_other_keys(&now)
                && let Some(session) = self.source.session_mut()
            {
                session.sample_now();
            }
        }
        let played = match &mut self.source {
            Source::Client(client) => {
                #[cfg(not(target_arch = "wasm32"))]
                let played = client.advance(pad);
                #[cfg(target_arch = "wasm32")]
                let played = client.advance_at(crate::page::now(), crate::page::now, pad);
                self.now = client.now();
                played
            }
            Source::Rehearsal(rehearsal) => {
                let played = rehearsal.advance(pad);
                self.now = rehearsal.now();
                played
            }
            Source::Replay(playback, clock) => {
                self.now = clock.tick();
                playback.advance(self.now, &mut self.news);
                Ok(())
            }
        };
        // Once the session is over, its last picture stays.
        if played.is_ok() {
            self.take_outputs();
        }
        if let Some(session) = self.source.session() {
            let world = session.authority();
            let tick = world.map_or(Duration::ZERO, |world| world.turn().cadence.tick());
            self.gauges.read(self.now, &session.stats(), tick, || {
                session.picture_errors()
            });
        }
        self.score = self.game().map_or(self.score, |game| game.score);
        played
    }

    fn take_outputs(&mut self) {
        let Some(session) = self.source.session_mut() else {
            return;
        };
        self.showing.take(self.now, session, &mut self.news);
        let tick = session.prediction().map(|world| world.tick());
        let tick = tick.unwrap_or_default();
        while let Some(event) = session.poll_event() {
            if let Some(words) = notice::words(&event) {
                let words = words.into_owned();
                self.news.note(Note { tick, words });
            }
        }
        if let Some(words) = self.unused.noticed(session.seats().len()) {
            self.news.note(Note { tick, words });
        }
    }

    /// Returns the client, for a match that continues without a view; `None` for a replay or a rehearsal.
    #[must_use]
    pub fn into_client(self) -> Option<NetClient> {
        match self.source {
            Source::Client(client) => Some(*client),
            Source::Rehearsal(_) | Source::Replay(..) => None,
        }
    }

    /// The team's points, which stay available after the match.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.score
    }

    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    #[must_use]
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// The bodies to draw, in key order, interpolated between ticks and smoothed.
    #[must_use]
    pub fn shown(&self) -> &[(ShowKey, Placed)] {
        &self.news.shown
    }

    /// The bodies removed by a correction, in key order, with the former pose and the remaining opacity of each.
    #[must_use]
    pub fn fading(&self) -> &[(ShowKey, Placed, f32)] {
        &self.news.fading
    }

    /// The state behind the picture: the prediction's, or the authority's if prediction is off, or a replay's.
    #[must_use]
    pub fn game(&self) -> Option<&Game> {
        match self.replay() {
            None => self.world().map(|world| world.sim()),
            Some(playback) => Some(playback.game()),
        }
    }

    #[must_use]
    pub fn tick(&self) -> Tick {
        match self.replay() {
            None => self.world().map(|world| world.tick()).unwrap_or_default(),
            Some(playback) => playback.tick(),
        }
    }

    fn world(&self) -> Option<&World<Game>> {
        self.showing.world(self.source.session()?)
    }

    /// The time until the next round starts even if some players are not ready. `None` if it waits for all players.
    #[must_use]
    pub fn begins_in(&self) -> Option<Duration> {
        let begins = self.game()?.begins_anyway(&self.rules)?;
        let tick = match self.replay() {
            None => self.world()?.turn().cadence.tick(),
            Some(playback) => playback.tick_length(),
        };
        Some(tick * begins.0.saturating_sub(self.tick().0))
    }

    /// Passes the poses of the authority to `put`: the confirmed, delayed state behind a prediction. A replay has no
    /// ghosts, because its picture is already the confirmed state.
    pub fn ghosts(&self, mut put: impl FnMut(ShowKey, Pose)) {
        let authority = self.source.session().and_then(Session::authority);
        if let Some(authority) = authority {
            poses(authority.sim(), |key, pose, _| put(key, pose));
        }
    }

    pub fn poll_cue(&mut self) -> Option<CueEvent<Cue>> {
        self.news.cues.pop_front()
    }

    pub fn poll_note(&mut self) -> Option<Note> {
        self.news.notes.pop_front()
    }

    /// Returns the reason why the player cannot play right now, or `None` if it can play.
    #[must_use]
    pub fn notice(&self) -> Option<Notice> {
        if let Some(playback) = self.replay() {
            return playback.fault().map(Notice::Damaged);
        }
        Notice::of(self.source.session()?, self.gauges.silent(self.now))
    }

    #[must_use]
    pub fn seats(&self) -> &[PlayerId] {
        self.source.session().map_or(&[], Session::seats)
    }

    #[must_use]
    pub fn companions(&self) -> Vec<Companion> {
        match self.replay() {
            None => self
                .source
                .session()
                .map_or_else(Vec::new, Companion::all_of),
            Some(playback) => playback.companions(),
        }
    }

    #[must_use]
    pub fn stats(&self) -> Option<SessionStats> {
        self.source.session().map(Session::stats)
    }

    /// The counters over the last 10 s.
    #[must_use]
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Issues a local player's order. If the session refuses it, a note gives the reason.
    pub fn order(&mut self, seat: usize, command: Command) {
        let ordered = self
            .source
            .session_mut()
            .map(|session| session.command(seat, command));
        if let Some(Err(error)) = ordered {
            self.add_note(error.to_string());
        }
    }

    /// Requests a pause of the match, or the end of the pause. A note reports a request that cannot be sent; an event
    /// reports the match's decision.
    pub fn pause(&mut self) {
        let Some(session) = self.source.session_mut() else {
            return;
        };
        let is_paused = session
            .authority()
            .is_some_and(|world| world.turn().cadence.paused);
        let request = match is_paused {
            true => MatchRequest::Resume,
            false => MatchRequest::Pause,
        };
        if let Err(error) = session.request(0, request) {
            self.add_note(error.to_string());
        }
    }

    /// Issues an order to light the nearest barrel within reach; if there is none, a note reports that.
    pub fn light(&mut self, seat: usize) {
        if self.source.session().is_none() {
            return;
        }
        let (player, game) = (self.seats().get(seat), self.game());
        let nearest = player
            .zip(game)
            .and_then(|(player, game)| nearest_barrel(game, &self.rules, *player));
        match nearest {
            Some(barrel) => self.order(seat, Command::Light { barrel }),
            None => self.add_note("no barrel within reach".to_owned()),
        }
    }

    #[must_use]
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// Switches a simulated link to a preset of [`LinkProfile::PRESETS`].
    pub fn set_link(&mut self, preset: usize) {
        let (Some(link), Some((name, profile))) =
            (&mut self.link, LinkProfile::PRESETS.get(preset))
        else {
            return;
        };
        (*name).clone_into(link);
        match &mut self.source {
            #[cfg(not(target_arch = "wasm32"))]
            Source::Client(client) => client.transport().set_profile(*profile),
            // A page's connection is real.
            #[cfg(target_arch = "wasm32")]
            Source::Client(_) => {}
            Source::Rehearsal(rehearsal) => rehearsal.set_link(*profile),
            Source::Replay(..) => {}
        }
    }

    /// Returns `true` if the prediction is shown. Otherwise the authority is shown, which feels like plain lockstep.
    #[must_use]
    pub fn predicts(&self) -> bool {
        self.replay().is_none() && self.showing.predicts()
    }

    pub fn set_predicts(&mut self, predicts: bool) {
        self.showing.set_predicts(predicts, &mut self.news);
    }

    #[must_use]
    pub fn smooths(&self) -> bool {
        self.replay().is_none() && self.showing.smooths()
    }

    pub fn set_smooths(&mut self, smooths: bool) {
        self.showing.set_smooths(smooths);
    }

    #[must_use]
    pub fn replay(&self) -> Option<&Playback> {
        match &self.source {
            Source::Client(_) | Source::Rehearsal(_) => None,
            Source::Replay(playback, _) => Some(playback),
        }
    }

    pub fn replay_mut(&mut self) -> Option<&mut Playback> {
        match &mut self.source {
            Source::Client(_) | Source::Rehearsal(_) => None,
            Source::Replay(playback, _) => Some(playback),
        }
    }

    /// Saves a journal of everything that this screen has seen confirmed so far in `folder`; `powderkeg replay` plays
    /// and verifies it. Only the last minutes of a long match are kept. Returns the file's path.
    ///
    /// # Errors
    /// If there is no recording, or the file cannot be written.
    pub fn save_replay(&self, folder: &Path) -> Result<PathBuf, SaveError> {
        let recording = self.source.session().and_then(Session::recording);
        let recording = recording.ok_or(SaveError::Nothing)?;
        let name = format!(
            "powderkeg-{}.{}",
            unix_now().as_millis(),
            journal::EXTENSION
        );
        let path = folder.join(name);
        match files::write(&path, recording) {
            Ok(()) => Ok(path),
            Err(source) => Err(SaveError::Unwritable { path, source }),
        }
    }

    /// Saves a replay in the working directory, like [`save_replay`](Feed::save_replay). A note shows its path, or the
    /// reason for a failure.
    pub fn keep_replay(&mut self) {
        let words = match self.save_replay(Path::new("")) {
            Ok(path) => format!("replay saved: {}", path.display()),
            Err(error) => error.to_string(),
        };
        self.add_note(words);
    }

    pub fn leave(&mut self) {
        match &mut self.source {
            Source::Client(client) => client.leave(),
            Source::Rehearsal(rehearsal) => rehearsal.leave(),
            Source::Replay(..) => {}
        }
    }

    fn add_note(&mut self, words: String) {
        let tick = self.tick();
        self.news.note(Note { tick, words });
    }
}

fn nearest_barrel(game: &Game, rules: &Rules, player: PlayerId) -> Option<u8> {
    let at = game.players.get(&player)?.at;
    let barrels = game.barrels.iter().zip(0..);
    barrels
        .filter(|(barrel, _)| barrel.stage == BarrelStage::Whole)
        .map(|(barrel, n)| (barrel.at.distance(at), n))
        .filter(|(distance, _)| *distance <= rules.tuning.light_reach)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, n)| n)
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    #[error(
        "nothing to save: a recording starts when this screen joins a match, and a replay is already a file"
    )]
    Nothing,
    #[error("cannot write {path}: {source}; start powderkeg in a directory that you can write to")]
    Unwritable { path: PathBuf, source: io::Error },
}
