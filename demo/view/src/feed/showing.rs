//! [`Showing`]: selects which of a session's two worlds is shown, prediction or authority, and whether it is smoothed.
//!
//! Invariant: it only reads. Switching changes neither the match nor the sent packets.

use std::time::Duration;

use powderkeg_game::{Cue, Game, GameShow, Rules, ShowKey};
use twinstep_client::internal::Picture;
use twinstep_client::{CueEvent, CueKind, Placed, Poses, Scene, Session, Show};
use twinstep_core::bounds::CUES_OPEN_MAX;
use twinstep_core::world::World;
use twinstep_core::{PlayerSet, Tick};

use super::news::News;

pub(super) struct Showing {
    lagged: Lagged,
    predicts: bool,
    smooths: bool,
}

impl Showing {
    pub(super) fn new() -> Showing {
        Showing {
            lagged: Lagged::new(GameShow),
            predicts: true,
            smooths: true,
        }
    }

    pub(super) fn world<'s>(
        &self,
        session: &'s Session<Game, GameShow>,
    ) -> Option<&'s World<Game>> {
        if self.predicts {
            session.prediction()
        } else {
            session.authority()
        }
    }

    pub(super) fn take(
        &mut self,
        now: Duration,
        session: &mut Session<Game, GameShow>,
        news: &mut News,
    ) {
        // Set in every call, because a new session starts with its own setting.
        session.set_smooths(self.smooths);
        while let Some(event) = session.poll_cue() {
            if self.predicts {
                news.cue(event);
            } else {
                self.lagged.handle(event, |event| news.cue(event));
            }
        }
        if let (Some(authority), Some(rules)) = (session.authority(), session.rules()) {
            self.lagged.advance(now, authority, rules);
        }
        news.shown.clear();
        news.fading.clear();
        if self.predicts {
            news.shown.extend(session.shown());
            news.fading.extend(session.fading());
        } else {
            news.shown.extend(self.lagged.shown(now));
        }
    }

    pub(super) fn predicts(&self) -> bool {
        self.predicts
    }

    pub(super) fn set_predicts(&mut self, predicts: bool, news: &mut News) {
        self.predicts = predicts;
        if predicts {
            self.lagged.release(|event| news.cue(event));
        }
    }

    pub(super) fn smooths(&self) -> bool {
        self.smooths
    }

    pub(super) fn set_smooths(&mut self, smooths: bool) {
        self.smooths = smooths;
    }
}

/// The picture of plain lockstep: the authority, one turn late, and only confirmed cues. The prediction continues
/// without being shown, so switching back is immediate.
pub(crate) struct Lagged {
    show: GameShow,
    picture: Picture<ShowKey, Placed>,
    poses: Poses<ShowKey, Placed>,
    before: Tick,
    tick: Tick,
    began: Duration,
    over: Duration,
    /// Guessed but unconfirmed cues, not shown yet.
    held: Vec<CueEvent<Cue>>,
}

impl Lagged {
    pub(crate) fn new(show: GameShow) -> Lagged {
        Lagged {
            show,
            picture: Picture::new(GameShow::SMOOTHING),
            poses: Poses::new(),
            before: Tick(0),
            tick: Tick(0),
            began: Duration::ZERO,
            over: Duration::ZERO,
            held: Vec::new(),
        }
    }

    /// Follows the authority: interpolates to its new world over the playing time of the new ticks, at most a turn.
    pub(crate) fn advance(&mut self, now: Duration, authority: &World<Game>, rules: &Rules) {
        let tick = authority.tick();
        if tick == self.tick {
            return;
        }
        // No player is local here, so the confirmed poses of all players are interpolated between two turns.
        self.poses.begin(PlayerSet::default());
        self.show
            .poses(&Scene::new(authority, rules), &mut self.poses);
        self.picture.ticked(&mut self.poses, now);
        let turn = authority.turn().cadence;
        self.over = turn.tick() * (tick - self.tick).clamp(1, turn.turn_ticks.into());
        self.began = now;
        self.before = self.tick;
        self.tick = tick;
    }

    fn alpha(&self, now: Duration) -> f32 {
        const LAST: f32 = 0.999;
        let passed = now.saturating_sub(self.began).as_secs_f32();
        (passed / self.over.as_secs_f32().max(1e-6)).min(LAST)
    }

    pub(crate) fn shown(&self, now: Duration) -> impl Iterator<Item = (ShowKey, Placed)> + '_ {
        self.picture.shown(self.alpha(now), now)
    }

    /// The shown time, in ticks; 7.5 is halfway between the worlds of ticks 7 and 8.
    pub(crate) fn time(&self, now: Duration) -> f64 {
        let ticks = f64::from(self.tick.0) - f64::from(self.before.0);
        f64::from(self.before.0) + ticks * f64::from(self.alpha(now))
    }

    /// Holds back a guessed cue until it is confirmed.
    fn handle(&mut self, event: CueEvent<Cue>, mut emit: impl FnMut(CueEvent<Cue>)) {
        let held = self.held.iter().position(|held| held.id == event.id);
        match (&event.kind, held) {
            (CueKind::Started { .. }, _) if self.held.len() < CUES_OPEN_MAX => {
                self.held.push(event);
            }
            (CueKind::Cancelled, Some(at)) => {
                self.held.remove(at);
            }
            (CueKind::Confirmed { .. }, Some(at)) => {
                emit(self.held.remove(at));
                emit(event);
            }
            // Shown before the prediction was switched off, or beyond the limit.
            _ => emit(event),
        }
    }

    fn release(&mut self, emit: impl FnMut(CueEvent<Cue>)) {
        self.held.drain(..).for_each(emit);
    }
}
