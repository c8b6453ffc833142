//! [`ViewEffects`]: the effects of cues. Each starts exactly once, and is withdrawn if its cue is cancelled.
//!
//! ```text
//!   Started ──▶ particles, flash, sound, shake, a line ──┬── Confirmed ──▶ stays; points are shown now
//!                                                        └── Cancelled ──▶ fades in 0.1 s, its sound stops
//! ```
//!
//! The effects of each cue are in `bursts`.

use std::collections::VecDeque;
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::ShowKey;
use twinstep_client::CueId;
use twinstep_core::{PlayerId, Tick};

use super::palette::{ColorMode, Tint};
use super::particles::Particles;
use super::sounds::Sound;

/// Limits of the lists (law *Bounded*). The oldest entry is replaced; of sounds, the newest is dropped.
const FLASHES_MAX: usize = 128;
const FLOATS_MAX: usize = 48;
const LINES_MAX: usize = 64;
const SCORES_MAX: usize = 64;
const HEARD_MAX: usize = 64;

pub(crate) const FLASH: Duration = Duration::from_millis(110);
pub(crate) const FLOAT: Duration = Duration::from_millis(900);
pub(crate) const LINE: Duration = Duration::from_secs(5);
pub(crate) const BANNER: Duration = Duration::from_millis(2_400);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HitFlash {
    cue: CueId,
    pub(crate) whom: ShowKey,
    pub(crate) born: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Float {
    cue: CueId,
    pub(crate) at: Vec2,
    pub(crate) words: String,
    pub(crate) tint: Tint,
    pub(crate) born: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CueFate {
    Open,
    /// The cue happened this many ticks after the tick for which it was shown; before it if negative.
    Confirmed(i64),
    Cancelled,
    NoCue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogLine {
    cue: Option<CueId>,
    pub(crate) tick: Tick,
    pub(crate) words: String,
    pub(crate) tint: Tint,
    pub(crate) born: Duration,
    pub(crate) fate: CueFate,
    /// Whether the line is important enough for views that show only a few lines.
    pub(crate) is_news: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Banner {
    cue: CueId,
    pub(crate) words: String,
    pub(crate) below: String,
    pub(crate) tint: Tint,
    pub(crate) born: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HeardCue {
    pub(crate) cue: CueId,
    pub(crate) sound: Sound,
    /// `None` for everywhere.
    pub(crate) at: Option<Vec2>,
}

struct Score {
    at: Vec2,
    player: PlayerId,
    points: u16,
    line: LogLine,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) started: u64,
    pub(crate) confirmed: u64,
    pub(crate) cancelled: u64,
}

#[derive(Default)]
pub(crate) struct ViewEffects {
    pub(crate) particles: Particles,
    pub(crate) flashes: VecDeque<HitFlash>,
    pub(crate) floats: VecDeque<Float>,
    pub(crate) lines: VecDeque<LogLine>,
    pub(crate) banner: Option<Banner>,
    pub(crate) counts: Counts,
    pub(crate) heard: Vec<HeardCue>,
    pub(crate) hushed: Vec<CueId>,
    pub(crate) quakes: Vec<(Option<Vec2>, f32)>,
    scores: VecDeque<Score>,
}

fn push_bounded<T>(list: &mut VecDeque<T>, item: T, max: usize) {
    if list.len() == max {
        list.pop_front();
    }
    list.push_back(item);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    pub(super) cue: CueId,
    pub(super) now: Duration,
    pub(super) tick: Tick,
}

impl Cause {
    pub(super) fn line(self, words: String, tint: Tint, is_news: bool) -> LogLine {
        LogLine {
            cue: Some(self.cue),
            tick: self.tick,
            words,
            tint,
            born: self.now,
            fate: CueFate::Open,
            is_news,
        }
    }
}

impl ViewEffects {
    pub(super) fn confirm(&mut self, now: Duration, id: CueId, at: Tick, mode: ColorMode) {
        let fate = |shown: Tick| CueFate::Confirmed(i64::from(at.0) - i64::from(shown.0));
        self.particles.confirm(id);
        for line in self.lines.iter_mut().filter(|line| line.cue == Some(id)) {
            line.fate = fate(line.tick);
        }
        let scored = self
            .scores
            .iter()
            .position(|score| score.line.cue == Some(id));
        if let Some(mut score) = scored.and_then(|n| self.scores.remove(n)) {
            let cause = Cause {
                cue: id,
                now,
                tick: score.line.tick,
            };
            let tint = mode.player(score.player.index());
            self.float(cause, score.at, format!("+{}", score.points), tint);
            score.line.fate = fate(score.line.tick);
            self.line(score.line);
        }
    }

    pub(super) fn cancel(&mut self, now: Duration, id: CueId) {
        self.particles.cancel(id, now);
        self.flashes.retain(|flash| flash.cue != id);
        self.floats.retain(|float| float.cue != id);
        self.scores.retain(|score| score.line.cue != Some(id));
        self.heard.retain(|heard| heard.cue != id);
        self.banner = self.banner.take().filter(|banner| banner.cue != id);
        for line in self.lines.iter_mut().filter(|line| line.cue == Some(id)) {
            line.fate = CueFate::Cancelled;
        }
        self.hushed.push(id);
    }

    pub(super) fn flash(&mut self, Cause { cue, now: born, .. }: Cause, whom: ShowKey) {
        push_bounded(&mut self.flashes, HitFlash { cue, whom, born }, FLASHES_MAX);
    }

    pub(super) fn float(&mut self, cause: Cause, at: Vec2, words: String, tint: Tint) {
        let float = Float {
            cue: cause.cue,
            at,
            words,
            tint,
            born: cause.now,
        };
        push_bounded(&mut self.floats, float, FLOATS_MAX);
    }

    pub(super) fn line(&mut self, line: LogLine) {
        push_bounded(&mut self.lines, line, LINES_MAX);
    }

    pub(super) fn play_sound(&mut self, cue: CueId, sound: Sound, at: Option<Vec2>) {
        if self.heard.len() < HEARD_MAX {
            self.heard.push(HeardCue { cue, sound, at });
        }
    }

    pub(super) fn expect_score(&mut self, at: Vec2, player: PlayerId, points: u16, line: LogLine) {
        let score = Score {
            at,
            player,
            points,
            line,
        };
        push_bounded(&mut self.scores, score, SCORES_MAX);
    }

    pub(super) fn announce(&mut self, cause: Cause, words: String, below: String, tint: Tint) {
        self.banner = Some(Banner {
            cue: cause.cue,
            words,
            below,
            tint,
            born: cause.now,
        });
    }

    pub(crate) fn note(&mut self, now: Duration, tick: Tick, words: String, tint: Tint) {
        self.line(LogLine {
            cue: None,
            tick,
            words,
            tint,
            born: now,
            fate: CueFate::NoCue,
            is_news: true,
        });
    }

    pub(crate) fn whiteness(&self, whom: ShowKey, now: Duration) -> f32 {
        let newest = self.flashes.iter().rev().find(|flash| flash.whom == whom);
        newest.map_or(0.0, |flash| {
            let age = now.saturating_sub(flash.born).as_secs_f32() / FLASH.as_secs_f32();
            (1.0 - age).clamp(0.0, 1.0)
        })
    }

    pub(crate) fn news(&self, now: Duration) -> impl Iterator<Item = &LogLine> {
        const NEWS_MAX: usize = 6;
        let news = || {
            self.lines
                .iter()
                .filter(move |line| line.is_news && now < line.born + LINE)
        };
        news().skip(news().count().saturating_sub(NEWS_MAX))
    }

    /// Drops finished effects, and the sounds and quakes of the last frame. Lines stay for the log.
    pub(crate) fn advance(&mut self, now: Duration) {
        self.particles.advance(now);
        self.flashes.retain(|flash| now < flash.born + FLASH);
        self.floats.retain(|float| now < float.born + FLOAT);
        let banner = self.banner.take();
        self.banner = banner.filter(|banner| now < banner.born + BANNER);
        self.heard.clear();
        self.hushed.clear();
        self.quakes.clear();
    }

    pub(crate) fn clear(&mut self) {
        *self = ViewEffects {
            counts: self.counts,
            ..ViewEffects::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use glam::vec2;
    use powderkeg_game::{Cue, EnemyKind, Rules, Weapon};
    use twinstep_client::{CueEvent, CueKind};
    use twinstep_core::{Key, Tick};

    use super::*;
    use crate::scene::{ThingLook, ViewScene, ViewThing};

    const ENEMY: ShowKey = ShowKey::Enemy {
        slot: 3,
        life: 1,
        kind: EnemyKind::Gunner,
    };
    const PLAYER: ShowKey = ShowKey::Player {
        id: PlayerId(0),
        life: 1,
    };

    fn scene() -> ViewScene {
        let thing = |key, at| ViewThing {
            key,
            at,
            angle: 0.0,
            look: ThingLook::Plain,
        };
        let mut scene = ViewScene::new(Arc::new(Rules::campaign()));
        scene.things = vec![thing(PLAYER, vec2(1.0, 2.0)), thing(ENEMY, vec2(5.0, 6.0))];
        scene
    }

    fn happens(effects: &mut ViewEffects, ms: u64, id: u64, kind: CueKind<Cue>) {
        let event = CueEvent {
            id: CueId(id),
            kind,
        };
        effects.handle(Duration::from_millis(ms), &event, &scene(), ColorMode::Safe);
    }

    fn started(cue: Cue) -> CueKind<Cue> {
        CueKind::Started {
            tick: Tick(9),
            key: Key::new(1, 2),
            cue,
        }
    }

    #[test]
    fn a_cue_starts_its_effects_once_and_its_confirmation_adds_no_effects() {
        let mut effects = ViewEffects::default();
        happens(&mut effects, 0, 1, started(Cue::Hit(3)));
        let thrown = effects.particles.of(CueId(1));
        assert!(thrown > 0 && effects.heard.len() == 1);
        assert_eq!(effects.whiteness(ENEMY, Duration::ZERO), 1.0);
        happens(&mut effects, 50, 1, CueKind::Confirmed { at: Tick(9) });
        assert_eq!(
            (effects.particles.of(CueId(1)), effects.heard.len()),
            (thrown, 1)
        );
        let counts = Counts {
            started: 1,
            confirmed: 1,
            cancelled: 0,
        };
        assert_eq!(effects.counts, counts);
    }

    #[test]
    fn a_cancelled_cue_fades_and_stops_its_sound_and_marks_its_line() {
        let mut effects = ViewEffects::default();
        happens(&mut effects, 0, 1, started(Cue::PlayerDied(PlayerId(0))));
        assert_eq!(effects.lines.len(), 1);
        happens(&mut effects, 40, 1, CueKind::Cancelled);
        assert!(effects.lines[0].fate == CueFate::Cancelled && effects.heard.is_empty());
        assert_eq!(effects.hushed, [CueId(1)]);
        effects.advance(Duration::from_millis(141));
        assert_eq!(effects.particles.of(CueId(1)), 0);
    }

    #[test]
    fn points_are_shown_only_after_confirmation() {
        let mut effects = ViewEffects::default();
        let scored = Cue::Scored {
            player: PlayerId(0),
            points: 25,
        };
        happens(&mut effects, 0, 1, started(scored));
        happens(&mut effects, 0, 2, started(scored));
        assert!(effects.floats.is_empty());
        happens(&mut effects, 80, 1, CueKind::Confirmed { at: Tick(9) });
        happens(&mut effects, 80, 2, CueKind::Cancelled);
        let words: Vec<&str> = effects
            .floats
            .iter()
            .map(|float| float.words.as_str())
            .collect();
        assert_eq!(words, ["+25"]);
    }

    #[test]
    fn effects_that_never_end_are_bounded() {
        let mut effects = ViewEffects::default();
        let shot = Cue::Shot {
            player: PlayerId(0),
            weapon: Weapon::Scatter,
        };
        for id in 0..5_000 {
            happens(&mut effects, 0, id, started(shot));
            happens(&mut effects, 0, id, started(Cue::Hit(3)));
        }
        assert!(effects.flashes.len() <= FLASHES_MAX && effects.heard.len() <= HEARD_MAX);
    }
}
