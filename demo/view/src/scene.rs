//! [`ViewScene`]: everything that one picture shows, gathered from the feed; and [`ViewEffects`], the effects of cues
//! in it.
//!
//! ```text
//!   Feed ── poses, state, numbers ──▶ ViewScene ─┬─▶ window::paint    quads
//!   Feed ── cues ──▶ ViewEffects ────────────────┴─▶ terminal::draw   cells
//! ```
//!
//! Both views draw only from these two. So a test can create and inspect a picture without a window or a match.

pub(crate) mod bursts;
pub(crate) mod effects;
mod member;
pub(crate) mod palette;
pub(crate) mod particles;
mod sounds;
mod sprite;
mod thing;

use std::sync::Arc;
use std::time::Duration;

use glam::Vec2;
use member::member;
use powderkeg_game::{Cue, EnemyKind, RoundPhase, Rules, ShowKey};
use twinstep_client::SessionStats;
use twinstep_core::{PlayerId, Tick};

use crate::feed::{Feed, GaugeWindow, Gauges, Rates, Speed};
pub(crate) use member::{ViewMember, item_name, weapon_name};
pub(crate) use sounds::{Layer, Sound, Waveform};
pub(crate) use sprite::Sprite;
pub(crate) use thing::{ThingLook, ViewThing};
use thing::{facing, look};

/// After this time without a packet the link counts as silent.
const SILENCE: Duration = Duration::from_millis(500);
const MEMORY: Duration = Duration::from_millis(1_500);

pub(crate) struct ViewScene {
    pub(crate) rules: Arc<Rules>,
    pub(crate) now: Duration,
    pub(crate) tick: Tick,
    pub(crate) things: Vec<ViewThing>,
    /// Bullets and shots that a correction removed, and the remaining opacity of each.
    pub(crate) fading: Vec<(ShowKey, Vec2, f32)>,
    /// Recently shown things, and when each was last shown. A cue may come after its subject has vanished.
    gone: Vec<(ViewThing, Duration)>,
    pub(crate) ghosts: Vec<(ShowKey, Vec2)>,
    pub(crate) team: Vec<ViewMember>,
    pub(crate) phase: RoundPhase,
    /// Seconds until this phase ends by itself; after a result, until the next round can start.
    pub(crate) phase_left: Option<f32>,
    /// Seconds until the next round starts even if some players are not ready.
    pub(crate) begins_left: Option<f32>,
    pub(crate) wave: u8,
    pub(crate) enemies_left: usize,
    pub(crate) lives: u16,
    pub(crate) score: u32,
    pub(crate) boss: Option<Boss>,
    pub(crate) notice: Option<String>,
    /// The simulated link's name. `None` if the link is real.
    pub(crate) link: Option<String>,
    pub(crate) predicts: bool,
    pub(crate) smooths: bool,
    pub(crate) stats: Option<SessionStats>,
    pub(crate) rates: Rates,
    pub(crate) window: GaugeWindow,
    pub(crate) silent: Duration,
    pub(crate) plots: Vec<NetSample>,
    pub(crate) replay: Option<ReelState>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Boss {
    /// From 0 to 1.
    pub(crate) health: f32,
    pub(crate) stage: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NetSample {
    pub(crate) rtt_ms: f32,
    pub(crate) jitter_ms: f32,
    pub(crate) loss_percent: f32,
    pub(crate) lead_ticks: f32,
    pub(crate) margin_ticks: f32,
    pub(crate) rebuilds: f32,
    pub(crate) resim_ticks: f32,
    pub(crate) kbytes: f32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReelState {
    pub(crate) tick: Tick,
    /// From 0 to 1.
    pub(crate) part: f32,
    pub(crate) passed: Duration,
    pub(crate) length: Duration,
    pub(crate) speed: Speed,
    pub(crate) is_paused: bool,
}

impl ViewScene {
    pub(crate) fn new(rules: Arc<Rules>) -> ViewScene {
        ViewScene {
            phase: if rules.is_campaign() {
                RoundPhase::Lobby
            } else {
                RoundPhase::Endless
            },
            rules,
            now: Duration::ZERO,
            tick: Tick(0),
            things: Vec::new(),
            fading: Vec::new(),
            gone: Vec::new(),
            ghosts: Vec::new(),
            team: Vec::new(),
            phase_left: None,
            begins_left: None,
            wave: 0,
            enemies_left: 0,
            lives: 0,
            score: 0,
            boss: None,
            notice: None,
            link: None,
            predicts: true,
            smooths: true,
            stats: None,
            rates: Rates::default(),
            window: GaugeWindow::default(),
            silent: Duration::ZERO,
            plots: Vec::new(),
            replay: None,
        }
    }

    pub(crate) fn gather(&mut self, feed: &Feed, with_ghosts: bool) {
        self.now = feed.now();
        self.tick = feed.tick();
        self.score = feed.score();
        self.notice = feed.notice().map(|notice| notice.to_string());
        self.link = feed.link().map(str::to_owned);
        self.predicts = feed.predicts();
        self.smooths = feed.smooths();
        self.gather_arena(feed);
        self.fading.clear();
        let fading = feed
            .fading()
            .iter()
            .filter(|(key, ..)| matches!(key, ShowKey::Bullet { .. } | ShowKey::Shot { .. }));
        self.fading
            .extend(fading.map(|(key, pose, left)| (*key, pose.at, *left)));
        self.ghosts.clear();
        if with_ghosts {
            feed.ghosts(|key, pose| {
                if matches!(key, ShowKey::Player { .. } | ShowKey::Enemy { .. }) {
                    self.ghosts.push((key, pose.at));
                }
            });
        }
        self.gather_numbers(feed);
        self.replay = feed.replay().map(|reel| ReelState {
            tick: reel.tick(),
            part: reel.part(),
            passed: reel.tick_length() * (reel.tick() - reel.first()),
            length: reel.tick_length() * (reel.end() - reel.first()),
            speed: reel.speed(),
            is_paused: reel.is_paused(),
        });
    }

    fn gather_arena(&mut self, feed: &Feed) {
        let before = std::mem::take(&mut self.things);
        self.team.clear();
        self.boss = None;
        let Some(game) = feed.game() else { return };
        self.things = Vec::with_capacity(before.len());
        for (key, pose) in feed.shown() {
            let last = find(&before, *key);
            let angle = match key {
                ShowKey::Enemy { kind, .. } => facing(*kind, pose.at, last, game, self.now),
                _ => pose.angle.0,
            };
            self.things.push(ViewThing {
                key: *key,
                at: pose.at,
                angle,
                look: look(*key, game, self.tick, &self.rules),
            });
        }
        self.remember(&before);
        self.phase = game.phase;
        let left = game
            .phase_ends(&self.rules)
            .map(|ends| ends.0.saturating_sub(self.tick.0));
        self.phase_left = left.map(|ticks| ticks as f32 / 60.0);
        self.begins_left = feed.begins_in().map(|left| left.as_secs_f32());
        self.wave = game.wave;
        self.lives = game.lives;
        self.enemies_left = game
            .enemies
            .iter()
            .filter(|enemy| enemy.is_alive() || enemy.is_coming)
            .count();
        let boss = game
            .enemies
            .iter()
            .find(|enemy| enemy.is_alive() && enemy.kind == EnemyKind::Boss);
        self.boss = boss.map(|boss| Boss {
            health: f32::from(boss.health) / f32::from(boss.full_health.max(1)),
            stage: boss.stage,
        });
        let companions = feed.companions();
        let players = game.players.iter();
        self.team.extend(players.map(|(id, player)| {
            let companion = companions.iter().find(|companion| companion.id == *id);
            member(*id, player, companion, self.tick, &self.rules)
        }));
    }

    /// Remembers vanished things for [`MEMORY`], except bullets and direct shots.
    fn remember(&mut self, before: &[ViewThing]) {
        let now = self.now;
        self.gone.retain(|(_, at)| now.saturating_sub(*at) < MEMORY);
        for thing in before {
            let flies = match thing.key {
                ShowKey::Bullet { .. } => true,
                ShowKey::Shot { weapon, .. } => !weapon.is_lobbed(),
                _ => false,
            };
            if !flies && find(&self.things, thing.key).is_none() {
                self.gone.push((*thing, now));
            }
        }
    }

    fn gather_numbers(&mut self, feed: &Feed) {
        self.stats = feed.stats();
        self.rates = feed.gauges().rates();
        self.window = feed.gauges().window();
        self.silent = feed.gauges().silent(feed.now());
        self.plots.clear();
        let readings: Vec<_> = feed.gauges().readings().collect();
        self.plots.extend(readings.windows(2).map(|pair| {
            let (stats, rates) = (&pair[1].stats, Gauges::between(pair[0], pair[1]));
            NetSample {
                rtt_ms: stats.rtt_ms as f32,
                jitter_ms: stats.jitter_ms as f32,
                // The link measures no loss while no packets arrive.
                loss_percent: match rates.bytes_down > 0.0 {
                    true => stats.loss * 100.0,
                    false => 100.0,
                },
                lead_ticks: stats.prediction_tick.saturating_sub(stats.authority_tick) as f32,
                margin_ticks: stats.margin_ticks_now as f32,
                rebuilds: rates.rebuilds as f32,
                resim_ticks: rates.resim_ticks as f32,
                kbytes: (rates.bytes_up + rates.bytes_down) as f32 / 1_024.0,
            }
        }));
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent > SILENCE
    }

    pub(crate) fn loss(&self) -> String {
        match &self.stats {
            _ if self.is_silent() => "silent".to_owned(),
            Some(stats) => format!("{:.1} %", stats.loss * 100.0),
            None => String::new(),
        }
    }

    /// The number of ticks simulated again per second, and the percentage of their loop items that were run.
    pub(crate) fn resimulated(&self) -> String {
        let rates = &self.rates;
        let share = rates.items_run / (rates.items_run + rates.items_taken).max(1.0);
        format!("{:.0}, {:.1} % run", rates.resim_ticks, share * 100.0)
    }

    pub(crate) fn name(&self, id: PlayerId) -> String {
        let member = self.team.iter().find(|member| member.id == id);
        member.map_or_else(|| id.to_string(), |member| member.name.clone())
    }

    pub(crate) fn own_fate(&self) -> Option<&'static str> {
        let is_on = matches!(
            self.phase,
            RoundPhase::Wave | RoundPhase::Lull | RoundPhase::Endless
        );
        let mut own = self.team.iter().filter(|member| member.is_local && is_on);
        let dead = own.find(|own| own.is_here && own.health == 0.0)?;
        Some(match dead.is_out {
            true => "you are out: back with the next wave",
            false => "you died: back in a moment",
        })
    }

    pub(crate) fn place(&self, key: ShowKey) -> Option<Vec2> {
        find(&self.things, key).map(|thing| thing.at)
    }

    pub(crate) fn player(&self, id: PlayerId) -> Option<&ViewThing> {
        self.things
            .iter()
            .find(|thing| matches!(thing.key, ShowKey::Player { id: who, .. } if who == id))
    }

    /// The thing that a cue is about, where it was last shown.
    pub(crate) fn subject(&self, cue: &Cue) -> Option<&ViewThing> {
        let gone = self.gone.iter().rev().map(|(thing, _)| thing);
        self.things
            .iter()
            .chain(gone)
            .find(|thing| thing.key.is_subject_of(cue))
    }

    pub(crate) fn locals(&self) -> Vec<Vec2> {
        let locals = self.team.iter().filter(|member| member.is_local);
        locals
            .filter_map(|member| self.player(member.id))
            .map(|thing| thing.at)
            .collect()
    }
}

fn find(things: &[ViewThing], key: ShowKey) -> Option<&ViewThing> {
    // Pictures are sorted by key.
    let at = things.binary_search_by(|thing| thing.key.cmp(&key)).ok()?;
    things.get(at)
}

pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
