//! [`Playback`]: a recorded match, with pause, speed and seek. It owns no clock: `now` is an argument.
//!
//! ```text
//!   now ── passed × speed ──▶ ticks owed ── Replay::step ──▶ picture, cues (each happened: started and confirmed)
//!   seek(tick) ── nearest world before it, steps ──▶ a new picture, no cues
//! ```
//!
//! Invariant: the picture shows the journal's world at [`tick`](Playback::tick). A seek usually steps at most 10 s of
//! match time, so it takes a few hundredths of a second anywhere in a match of any length.

use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::{Cue, Game, GameShow, Rules, ShowKey};
use twinstep_client::internal::Picture;
use twinstep_client::{CueEvent, CueId, CueKind, Placed, Poses, Scene, Show};
use twinstep_core::{PlayerId, PlayerSet, Tick};
use twinstep_protocol::journal::JournalSource;
use twinstep_protocol::names::Name;
use twinstep_protocol::replay::{Replay, ReplayError};

use super::news::{Companion, News};
use crate::time::{Instant, now};

/// The maximum number of steps per advance. After a longer stall of the view, the rest is skipped.
const STEPS_MAX: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speed {
    Quarter,
    Half,
    Real,
    Two,
    Four,
    Eight,
    Sixteen,
}

impl Speed {
    const ALL: [Speed; 7] = [
        Speed::Quarter,
        Speed::Half,
        Speed::Real,
        Speed::Two,
        Speed::Four,
        Speed::Eight,
        Speed::Sixteen,
    ];

    #[must_use]
    pub fn faster(self) -> Speed {
        Speed::ALL[(self as usize + 1).min(Speed::ALL.len() - 1)]
    }

    #[must_use]
    pub fn slower(self) -> Speed {
        Speed::ALL[(self as usize).saturating_sub(1)]
    }

    /// Match time per second, in quarters of a second.
    fn quarters(self) -> u32 {
        1 << self as u32
    }
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.quarters() {
            1 => write!(f, "1/4x"),
            2 => write!(f, "1/2x"),
            quarters => write!(f, "{}x", quarters / 4),
        }
    }
}

#[derive(Clone, Debug)]
pub enum ReplayClock {
    Wall(Instant),
    /// A count of frames of a fixed length, for pictures that must be reproducible.
    Frames {
        frame: Duration,
        now: Duration,
    },
}

impl ReplayClock {
    #[must_use]
    pub fn wall() -> ReplayClock {
        ReplayClock::Wall(now())
    }

    #[must_use]
    pub fn frames(frame: Duration) -> ReplayClock {
        ReplayClock::Frames {
            frame,
            now: Duration::ZERO,
        }
    }

    pub(super) fn tick(&mut self) -> Duration {
        match self {
            ReplayClock::Wall(began) => began.elapsed(),
            ReplayClock::Frames { frame, now } => {
                *now += *frame;
                *now
            }
        }
    }
}

pub struct Playback {
    replay: Replay<'static, Game>,
    rules: Arc<Rules>,
    show: GameShow,
    picture: Picture<ShowKey, Placed>,
    poses: Poses<ShowKey, Placed>,
    first: Tick,
    end: Tick,
    speed: Speed,
    is_paused: bool,
    at: Option<Duration>,
    /// The match time that is due and not stepped yet.
    owed: Duration,
    /// Whether the picture must be rebuilt, without interpolation from the old one.
    jumped: bool,
    /// The target of a seek, for the next advance.
    wanted: Option<Tick>,
    cues: u64,
    fault: Option<String>,
    /// The damage at the end of the file, if there is any.
    torn: Option<String>,
}

impl Playback {
    /// Opens a journal at its first world, not paused.
    ///
    /// # Errors
    /// If the file is not a journal; is a journal of another game, version or rules; or does not contain a world.
    ///
    /// # Panics
    /// If the rules contain a NaN.
    pub fn open(
        journal: impl JournalSource + Send + 'static,
        rules: &Arc<Rules>,
    ) -> Result<Playback, ReplayError> {
        let mut replay = Replay::<Game>::own(journal, Arc::clone(rules))?;
        let survey = replay.survey();
        Ok(Playback {
            first: survey.first,
            end: survey.first + survey.ticks,
            replay,
            show: GameShow,
            rules: Arc::clone(rules),
            picture: Picture::new(GameShow::SMOOTHING),
            poses: Poses::new(),
            speed: Speed::Real,
            is_paused: false,
            at: None,
            owed: Duration::ZERO,
            jumped: true,
            wanted: None,
            cues: 0,
            fault: None,
            torn: survey.fault.map(|fault| fault.to_string()),
        })
    }

    #[must_use]
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    #[must_use]
    pub fn game(&self) -> &Game {
        self.replay.world().sim()
    }

    #[must_use]
    pub fn tick(&self) -> Tick {
        self.replay.world().tick()
    }

    #[must_use]
    pub fn first(&self) -> Tick {
        self.first
    }

    #[must_use]
    pub fn end(&self) -> Tick {
        self.end
    }

    #[must_use]
    pub fn tick_length(&self) -> Duration {
        self.replay.world().turn().cadence.tick()
    }

    #[must_use]
    pub fn part(&self) -> f32 {
        let all = (self.end - self.first).max(1);
        (self.tick() - self.first) as f32 / all as f32
    }

    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.is_paused || self.is_over()
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        self.tick() >= self.end || self.fault.is_some()
    }

    /// Pauses or resumes. At the end of the journal it starts over.
    pub fn toggle_pause(&mut self) {
        if self.is_over() && !self.is_paused {
            self.seek(self.first);
        } else {
            self.is_paused = !self.is_paused;
        }
    }

    #[must_use]
    pub fn speed(&self) -> Speed {
        self.speed
    }

    pub fn set_speed(&mut self, speed: Speed) {
        self.speed = speed;
    }

    /// Goes to a tick, or as near as possible, at the next advance. If there are several seeks in one frame, only the
    /// last one costs time.
    pub fn seek(&mut self, tick: Tick) {
        self.wanted = Some(tick.max(self.first).min(self.end));
    }

    pub fn seek_part(&mut self, part: f32) {
        let all = f64::from(self.end - self.first);
        let ticks = (f64::from(part.clamp(0.0, 1.0)) * all).round();
        self.seek(self.first + ticks as u32);
    }

    pub fn nudge(&mut self, ticks: i32) {
        let from = self.wanted.unwrap_or(self.tick());
        self.is_paused = true;
        self.seek(Tick(from.0.saturating_add_signed(ticks)));
    }

    pub fn skip_seconds(&mut self, seconds: i32) {
        let per_second = (1.0 / self.tick_length().as_secs_f64()).round() as i32;
        let from = self.wanted.unwrap_or(self.tick());
        self.seek(Tick(
            from.0
                .saturating_add_signed(seconds.saturating_mul(per_second)),
        ));
    }

    /// The reason why the journal cannot be played beyond this tick, if there is one.
    pub(super) fn fault(&self) -> Option<String> {
        let torn = || self.torn.clone().filter(|_| self.tick() >= self.end);
        self.fault.clone().or_else(torn)
    }

    pub(super) fn companions(&self) -> Vec<Companion> {
        let world = self.replay.world();
        let seats = &self.replay.index().seats;
        let companion = |id: PlayerId| {
            let named = seats.iter().rev().find(|(who, _)| *who == id);
            // A journal's identities are arbitrary text from the file, so they are cleaned like any name.
            let named = named.map(|(_, name)| Name::new(name));
            let named = named.filter(|name| !name.is_empty());
            Companion {
                id,
                name: named.map_or_else(|| id.to_string(), |name| name.to_string()),
                is_local: false,
                is_here: world.present().contains(id),
                is_late: false,
                link: None,
            }
        };
        world.seated().iter().map(companion).collect()
    }

    pub(super) fn advance(&mut self, now: Duration, news: &mut News) {
        let passed = now.saturating_sub(self.at.replace(now).unwrap_or(now));
        if let Some(tick) = self.wanted.take() {
            self.go_to(tick);
        } else if !self.is_paused {
            self.owed += passed * self.speed.quarters() / 4;
        }
        let mut steps = 0;
        while self.owed >= self.tick_length() && !self.is_over() {
            self.owed -= self.tick_length();
            steps += 1;
            if steps > STEPS_MAX {
                // After a stall, skip the rest instead of running late.
                self.owed = Duration::ZERO;
            } else if self.step() {
                self.emit_cues(news);
                self.capture(now);
            }
        }
        if self.is_over() {
            self.owed = Duration::ZERO;
        }
        if std::mem::take(&mut self.jumped) {
            self.picture = Picture::new(GameShow::SMOOTHING);
            // Twice, so that both ends of the interpolation are the new picture.
            self.capture(now);
            self.capture(now);
        }
        news.shown.clear();
        let alpha = self.owed.as_secs_f32() / self.tick_length().as_secs_f32();
        news.shown.extend(self.picture.shown(alpha.min(0.999), now));
    }

    fn go_to(&mut self, tick: Tick) {
        self.owed = Duration::ZERO;
        self.jumped = true;
        self.fault = None;
        while let Err(error) = self.replay.seek(tick) {
            // A world that differs from the recorded one is still shown, as this program computes it from the frames.
            if !matches!(error, ReplayError::Differs { .. }) {
                self.fault = Some(error.to_string());
                return;
            }
        }
    }

    fn step(&mut self) -> bool {
        loop {
            match self.replay.step() {
                Ok(played) => return played,
                Err(ReplayError::Differs { .. }) => {}
                Err(error) => {
                    self.fault = Some(error.to_string());
                    return false;
                }
            }
        }
    }

    fn emit_cues(&mut self, news: &mut News) {
        let tick = self.replay.frame().tick;
        for (key, cue) in self.replay.effects().cues() {
            let id = CueId(self.cues);
            self.cues += 1;
            let started = CueKind::<Cue>::Started {
                tick,
                key: *key,
                cue: *cue,
            };
            for kind in [started, CueKind::Confirmed { at: tick }] {
                news.cue(CueEvent { id, kind });
            }
        }
    }

    fn capture(&mut self, now: Duration) {
        self.poses.begin(PlayerSet::default());
        let scene = Scene::new(self.replay.world(), &self.rules);
        self.show.poses(&scene, &mut self.poses);
        self.picture.ticked(&mut self.poses, now);
    }
}
