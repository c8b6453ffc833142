//! [`TerminalEffects`]: what cues have set off, and what became of them.
//!
//! ```text
//!   Started ──▶ drawn and logged, open ──┬── Confirmed ──▶ drawn in full
//!                                        └── Cancelled ──▶ gone at once; the log says so
//! ```
//!
//! A blast is drawn at once, from the client's guess. Whether the server agreed is shown a moment later.

use std::collections::VecDeque;
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{Cue, Item};
use twinstep_client::cues::{CueEvent, CueId, CueKind};
use twinstep_core::{PlayerId, Tick};

/// Lines of the log.
const LOG_MAX: usize = 32;
/// Flashes at once; the oldest makes room.
const FLASHES_MAX: usize = 256;

/// What became of a cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CueFate {
    /// Nothing yet.
    Open,
    /// It did happen, so many ticks after (or before) it was shown.
    Confirmed {
        /// In ticks.
        off_ticks: i64,
    },
    /// It did not happen.
    Cancelled,
    /// It is no cue: nothing will become of it.
    Told,
}

/// Something that flares up and is gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalFlash {
    id: CueId,
    /// What it is.
    pub kind: FlashKind,
    /// Where, in units.
    pub at: Vec2,
    /// Since when.
    pub began: Duration,
    /// What became of it.
    pub fate: CueFate,
}

/// What flares up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashKind {
    /// A barrel's blast: a circle that grows to its radius.
    Blast,
    /// A barrel that only smoked.
    Smoke,
    /// A hit.
    Spark,
    /// Somebody died.
    Death,
}

impl FlashKind {
    /// For how long it is drawn.
    #[must_use]
    pub const fn life(self) -> Duration {
        Duration::from_millis(match self {
            FlashKind::Blast => 700,
            FlashKind::Smoke | FlashKind::Death => 600,
            FlashKind::Spark => 120,
        })
    }
}

impl TerminalFlash {
    /// How much of its life has passed, 0 ..= 1.
    #[must_use]
    pub fn age(&self, now: Duration) -> f32 {
        let passed = now.saturating_sub(self.began).as_secs_f32();
        (passed / self.kind.life().as_secs_f32()).min(1.0)
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// None: no cue, but something that the view tells.
    id: Option<CueId>,
    /// The tick that it was shown for.
    pub tick: Tick,
    /// In words.
    pub words: String,
    /// What became of it.
    pub fate: CueFate,
}

/// Scores wait for their confirmation, so their words wait too.
struct Unshown {
    id: CueId,
    tick: Tick,
    words: String,
}

/// What cues have set off.
#[derive(Default)]
pub struct TerminalEffects {
    flashes: VecDeque<TerminalFlash>,
    log: VecDeque<LogLine>,
    unshown: VecDeque<Unshown>,
}

impl TerminalEffects {
    /// Takes what happened to a cue; `place` tells where its subject was shown last, `name` what a player is called.
    pub fn handle(
        &mut self,
        now: Duration,
        event: CueEvent<Cue>,
        place: impl FnOnce(&Cue) -> Option<Vec2>,
        name: impl Fn(PlayerId) -> String,
    ) {
        let id = event.id;
        match event.kind {
            CueKind::Started { tick, cue, .. } => self.start(now, id, tick, cue, place(&cue), name),
            CueKind::Confirmed { at } => self.confirm(id, at),
            CueKind::Cancelled => {
                self.flashes.retain(|flash| flash.id != id);
                self.unshown.retain(|unshown| unshown.id != id);
                if let Some(line) = self.log.iter_mut().find(|line| line.id == Some(id)) {
                    line.fate = CueFate::Cancelled;
                }
            }
        }
    }

    /// Tells something beside the cues.
    pub fn note(&mut self, tick: Tick, words: &str) {
        let line = LogLine {
            id: None,
            tick,
            words: words.to_owned(),
            fate: CueFate::Told,
        };
        push_bounded(&mut self.log, LOG_MAX, line);
    }

    /// Forgets what has burnt out.
    pub fn advance(&mut self, now: Duration) {
        self.flashes.retain(|flash| flash.age(now) < 1.0);
    }

    /// What flares, oldest first.
    pub fn flashes(&self) -> impl Iterator<Item = &TerminalFlash> {
        self.flashes.iter()
    }

    /// The log, newest first.
    pub fn log(&self) -> impl Iterator<Item = &LogLine> {
        self.log.iter().rev()
    }

    fn start(
        &mut self,
        now: Duration,
        id: CueId,
        tick: Tick,
        cue: Cue,
        place: Option<Vec2>,
        name: impl Fn(PlayerId) -> String,
    ) {
        let kind = match cue {
            Cue::Blast(_) | Cue::Burst { .. } => Some(FlashKind::Blast),
            Cue::Fizzle(_) => Some(FlashKind::Smoke),
            Cue::Hit(_) | Cue::Crit(_) => Some(FlashKind::Spark),
            Cue::EnemyDied(_) | Cue::PlayerDied(_) => Some(FlashKind::Death),
            _ => None,
        };
        if let (Some(kind), Some(at)) = (kind, place) {
            push_bounded(
                &mut self.flashes,
                FLASHES_MAX,
                TerminalFlash {
                    id,
                    kind,
                    at,
                    began: now,
                    fate: CueFate::Open,
                },
            );
        }
        let Some(words) = words(&cue, name) else {
            return;
        };
        if matches!(cue, Cue::Scored { .. }) {
            let unshown = Unshown { id, tick, words };
            push_bounded(&mut self.unshown, LOG_MAX, unshown);
        } else {
            let fate = CueFate::Open;
            let line = LogLine {
                id: Some(id),
                tick,
                words,
                fate,
            };
            push_bounded(&mut self.log, LOG_MAX, line);
        }
    }

    fn confirm(&mut self, id: CueId, at: Tick) {
        let fate = |started: Tick| CueFate::Confirmed {
            off_ticks: i64::from(at.0) - i64::from(started.0),
        };
        if let Some(flash) = self.flashes.iter_mut().find(|flash| flash.id == id) {
            flash.fate = fate(at);
        }
        if let Some(line) = self.log.iter_mut().find(|line| line.id == Some(id)) {
            line.fate = fate(line.tick);
        }
        if let Some(i) = self.unshown.iter().position(|unshown| unshown.id == id)
            && let Some(Unshown { id, tick, words }) = self.unshown.remove(i)
        {
            let line = LogLine {
                id: Some(id),
                tick,
                words,
                fate: fate(tick),
            };
            push_bounded(&mut self.log, LOG_MAX, line);
        }
    }
}

fn push_bounded<T>(list: &mut VecDeque<T>, max: usize, item: T) {
    if list.len() == max {
        list.pop_front();
    }
    list.push_back(item);
}

/// What the log says; nothing of what happens many times a second.
fn words(cue: &Cue, name: impl Fn(PlayerId) -> String) -> Option<String> {
    Some(match *cue {
        Cue::Shot { .. }
        | Cue::Hit(_)
        | Cue::Crit(_)
        | Cue::Volley(_)
        | Cue::CrateHit(_)
        | Cue::Tossed(_) => return None,
        Cue::Hurt(player) => format!("{} is hit", name(player)),
        Cue::ShieldBroke(player) => format!("the shield of {} breaks", name(player)),
        Cue::Took { player, item } => match item {
            Item::Weapon(weapon) => format!("{} takes a {weapon:?}", name(player)),
            item => format!("{} takes {item:?}", name(player)),
        },
        Cue::Ready(player) => format!("{} is ready", name(player)),
        Cue::Enraged { stage, .. } => format!("the boss rages: stage {stage}"),
        Cue::Burst { owner, .. } => format!("a shell of {} bursts", name(owner)),
        Cue::CrateBroke(n) => format!("crate {n} breaks"),
        Cue::Countdown => "all are ready".to_owned(),
        Cue::WaveBegan(n) => format!("wave {n}"),
        Cue::WaveCleared(n) => format!("wave {n} is cleared"),
        Cue::Won => "won".to_owned(),
        Cue::Lost => "lost".to_owned(),
        Cue::Appeared(player) => format!("{} appears", name(player)),
        Cue::Dashed(player) => format!("{} dashes", name(player)),
        Cue::EnemyDied(slot) => format!("enemy {slot} dies"),
        Cue::Lit(n) => format!("barrel {n} lit"),
        Cue::Blast(n) => format!("barrel {n} blows up"),
        Cue::Fizzle(n) => format!("barrel {n} only smokes"),
        Cue::PlayerDied(player) => format!("{} dies", name(player)),
        Cue::Scored { player, points } => format!("{} +{points}", name(player)),
    })
}

#[cfg(test)]
mod tests {
    use twinstep_core::Key;

    use super::*;

    const NOW: Duration = Duration::from_secs(5);

    fn tell(effects: &mut TerminalEffects, id: u64, kind: CueKind<Cue>) {
        let event = CueEvent {
            id: CueId(id),
            kind,
        };
        effects.handle(NOW, event, |_| Some(Vec2::ONE), |player| player.to_string());
    }

    fn start(effects: &mut TerminalEffects, id: u64, cue: Cue) {
        let (tick, key) = (Tick(100), Key::default());
        tell(effects, id, CueKind::Started { tick, key, cue });
    }

    #[test]
    fn a_blast_grows_where_its_barrel_stood_and_burns_out_in_time() {
        let mut effects = TerminalEffects::default();
        start(&mut effects, 1, Cue::Blast(3));
        let flash = *effects.flashes().next().unwrap();
        assert_eq!(flash.at, Vec2::ONE);
        assert_eq!((flash.age(NOW), flash.fate), (0.0, CueFate::Open));
        let half = NOW + FlashKind::Blast.life() / 2;
        assert!((flash.age(half) - 0.5).abs() < 1e-3);
        effects.advance(half);
        assert_eq!(effects.flashes().count(), 1);
        effects.advance(NOW + FlashKind::Blast.life());
        assert_eq!(effects.flashes().count(), 0);
    }

    #[test]
    fn a_confirmed_cue_stays_and_tells_how_far_it_was_off() {
        let mut effects = TerminalEffects::default();
        start(&mut effects, 1, Cue::Blast(3));
        tell(&mut effects, 1, CueKind::Confirmed { at: Tick(98) });
        assert!(matches!(
            effects.flashes().next().unwrap().fate,
            CueFate::Confirmed { .. }
        ));
        let line = effects.log().next().unwrap();
        assert_eq!(line.words, "barrel 3 blows up");
        assert_eq!(line.fate, CueFate::Confirmed { off_ticks: -2 });
    }

    #[test]
    fn a_cancelled_cue_is_gone_at_once_and_the_log_says_so() {
        let mut effects = TerminalEffects::default();
        start(&mut effects, 1, Cue::Blast(3));
        start(&mut effects, 2, Cue::Blast(4));
        tell(&mut effects, 1, CueKind::Cancelled);
        assert_eq!(effects.flashes().count(), 1);
        let fates: Vec<CueFate> = effects.log().map(|line| line.fate).collect();
        assert_eq!(fates, [CueFate::Open, CueFate::Cancelled]);
    }

    #[test]
    fn a_score_is_told_only_when_confirmed() {
        let mut effects = TerminalEffects::default();
        for id in [1, 2] {
            let (player, points) = (PlayerId(2), 25);
            start(&mut effects, id, Cue::Scored { player, points });
        }
        assert_eq!(effects.log().count(), 0);
        tell(&mut effects, 1, CueKind::Cancelled);
        tell(&mut effects, 2, CueKind::Confirmed { at: Tick(100) });
        let words: Vec<&str> = effects.log().map(|line| line.words.as_str()).collect();
        assert_eq!(words, ["p2 +25"]);
    }

    #[test]
    fn nothing_grows_without_bound() {
        let mut effects = TerminalEffects::default();
        for id in 0..2_000 {
            start(&mut effects, id, Cue::EnemyDied(0));
            start(
                &mut effects,
                id,
                Cue::Scored {
                    player: PlayerId(0),
                    points: 1,
                },
            );
        }
        assert_eq!(effects.flashes().count(), FLASHES_MAX);
        assert_eq!(effects.log().count(), LOG_MAX);
        assert_eq!(effects.unshown.len(), LOG_MAX);
    }
}
