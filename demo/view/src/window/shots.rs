//! `powderkeg shots`: screenshots of matches in virtual time. They need neither a display nor a clock, and the same
//! seed produces the same pictures on every machine.
//!
//! ```text
//!   Moment ──▶ Rehearsal, bot at the controls ──▶ WindowStage::frame until the moment has come ──▶ NN-name.png
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use glam::{Vec2, vec2};
use powderkeg_game::{Bot, Command, EnemyKind, Heading, Pad, RoundPhase, Rules, ShowKey, Sticks};
use twinstep_core::{Key, Mwc, Tick};

use super::input::Board;
use super::screens::Overlay;
use super::screenshot::Screenshot;
use super::sound::Speaker;
use super::stage::{StageInput, WindowStage};
use crate::feed::Feed;
use crate::rehearsal::{Rehearsal, Setup};
use crate::scene::bursts::FIRE;
use crate::scene::{Sprite, ThingLook};

const SIZE: Vec2 = vec2(1_280.0, 720.0);
const FRAMES_MAX: u32 = 9_000;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenshotError {
    #[error("cannot write {path}: {why}")]
    File { path: PathBuf, why: String },
    #[error("this --seed has no scene for the picture {0}; choose another one")]
    Moment(&'static str),
}

#[derive(Clone, Copy)]
struct Moment {
    name: &'static str,
    link: &'static str,
    /// The number of waves that are cut to one enemy, so that the wave to be pictured comes early.
    skips: usize,
    seed: u64,
    open: fn(&mut WindowStage),
    pilot: Pilot,
    frames: u32,
    when: fn(&WindowStage) -> bool,
    after: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pilot {
    /// Stands still in the lobby, and is never ready.
    Nobody,
    Bot,
    /// Walks to and fro, so that there is something to predict.
    Walker,
}

const WAVE: Moment = Moment {
    name: "play",
    link: "wan",
    skips: 4,
    seed: 0,
    open: |_| {},
    pilot: Pilot::Bot,
    frames: 420,
    when: |stage| is_fought(stage) && seen(stage, is_enemy) >= 5 && seen(stage, is_bullet) >= 14,
    after: 0,
};

const MOMENTS: [Moment; 10] = [
    Moment {
        name: "title",
        open: |stage| stage.screens.title = true,
        pilot: Pilot::Nobody,
        frames: 100,
        when: |_| true,
        ..WAVE
    },
    Moment {
        name: "lobby",
        link: "lan",
        pilot: Pilot::Nobody,
        frames: 200,
        when: |stage| stage.scene.phase == RoundPhase::Lobby && stage.scene.team.len() == 4,
        ..WAVE
    },
    WAVE,
    Moment {
        name: "blast",
        skips: 3,
        seed: 1,
        frames: 600,
        when: |stage| is_fought(stage) && seen(stage, is_enemy) >= 2 && is_blown(stage),
        after: 5,
        ..WAVE
    },
    Moment {
        name: "toss",
        skips: 3,
        seed: 2,
        frames: 600,
        when: |stage| is_fought(stage) && stage.scene.enemies_left >= 2 && is_tossed(stage),
        after: 10,
        ..WAVE
    },
    Moment {
        name: "ghosts",
        link: "bad",
        open: |stage| stage.screens.ghosts = true,
        pilot: Pilot::Walker,
        frames: 480,
        when: |stage| is_fought(stage) && seen(stage, is_enemy) >= 3,
        ..WAVE
    },
    Moment {
        name: "netgraph",
        link: "awful",
        skips: 2,
        open: |stage| stage.screens.netgraph = true,
        frames: 720,
        when: |stage| is_fought(stage) && seen(stage, is_enemy) >= 2,
        ..WAVE
    },
    Moment {
        name: "boss",
        skips: 7,
        when: |stage| is_fought(stage) && seen(stage, is_boss) == 1 && seen(stage, is_bullet) >= 24,
        ..WAVE
    },
    Moment {
        name: "settings",
        skips: 1,
        open: |stage| stage.screens.overlay = Some(Overlay::Settings),
        frames: 300,
        when: |_| true,
        ..WAVE
    },
    Moment {
        name: GAME_OVER,
        skips: 6,
        frames: 60,
        when: |stage| matches!(stage.scene.phase, RoundPhase::Lost | RoundPhase::Won),
        after: 200,
        ..WAVE
    },
];

/// The name of the moment when the team has no lives.
const GAME_OVER: &str = "game-over";

fn is_enemy(key: &ShowKey) -> bool {
    matches!(key, ShowKey::Enemy { .. })
}

fn is_boss(key: &ShowKey) -> bool {
    key.kind() == Some(EnemyKind::Boss)
}

fn is_bullet(key: &ShowKey) -> bool {
    matches!(key, ShowKey::Bullet { .. })
}

/// The number of things with a matching key well inside the picture.
fn seen(stage: &WindowStage, of: fn(&ShowKey) -> bool) -> usize {
    let things = stage.scene.things.iter();
    things
        .filter(|thing| of(&thing.key) && stage.camera.sees(thing.at, -1.0))
        .count()
}

/// Returns `true` if a wave is being played, the player lives, and no banner covers the arena.
fn is_fought(stage: &WindowStage) -> bool {
    stage.scene.phase == RoundPhase::Wave
        && stage.effects.banner.is_none()
        && stage.scene.locals().len() == 1
}

/// Returns `true` if the front of a blast is in the picture, and still young.
fn is_blown(stage: &WindowStage) -> bool {
    stage.effects.particles.seen(stage.scene.now).any(|seen| {
        let is_front = seen.sprite == Sprite::Wave && seen.tint.rgb == FIRE.rgb;
        is_front && (2.0..4.0).contains(&seen.half.x) && stage.camera.sees(seen.at, -4.0)
    })
}

fn is_tossed(stage: &WindowStage) -> bool {
    stage.scene.things.iter().any(|thing| {
        let flies = matches!(thing.look, ThingLook::Prop { aloft: Some(part), .. } if part > 0.1);
        flies && stage.camera.sees(thing.at, -2.0)
    })
}

pub fn shots(out: &Path, seed: u64) -> Result<Vec<PathBuf>, ScreenshotError> {
    let failed = |path: &Path, why: &dyn std::error::Error| ScreenshotError::File {
        path: path.to_owned(),
        why: why.to_string(),
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, &error))?;
    let mut paths = Vec::new();
    for (n, moment) in MOMENTS.iter().enumerate() {
        let stage = play(moment, seed)?;
        let path = out.join(format!("{:02}-{}.png", n + 1, moment.name));
        let shot = Screenshot::of(&stage.batch, stage.background(), SIZE);
        shot.save(&path).map_err(|error| failed(&path, &error))?;
        paths.push(path);
    }
    Ok(paths)
}

fn rules(moment: &Moment) -> Rules {
    let mut rules = Rules::campaign();
    for wave in &mut rules.waves[..moment.skips] {
        wave.groups.truncate(1);
        wave.groups[0].count = 1;
        wave.groups[0].after_ticks = 0;
    }
    let tuning = &mut rules.tuning;
    if moment.skips > 0 {
        (
            tuning.lull_ticks,
            tuning.countdown_ticks,
            tuning.crowd_percent,
        ) = (40, 60, 20);
    }
    if moment.name == GAME_OVER {
        (tuning.lives, tuning.lives_per_player) = (0, 0);
    }
    rules
}

fn play(moment: &Moment, seed: u64) -> Result<WindowStage, ScreenshotError> {
    let seed = seed + moment.seed;
    let setup = Setup {
        link: moment.link.parse().expect("a preset"),
        ..Setup::new(Arc::new(rules(moment)), seed)
    };
    let feed = Feed::rehearsal(Rehearsal::new(&setup), Some(moment.link.to_owned()));
    let mut stage = WindowStage::new(feed, Speaker::silent(), SIZE);
    stage.screens.title = false;
    (moment.open)(&mut stage);
    let mut bot = Bot::new(Sticks::Analog, Mwc::seed(seed).fork(Key::new(99, 0)));
    let mut board = Board::default();
    let mut left = None;
    for frame in 0..FRAMES_MAX {
        let pad = pilot(moment.pilot, &mut bot, &mut stage, frame);
        if moment.pilot != Pilot::Nobody && frame % 60 == 30 {
            make_ready(&mut stage);
        }
        // The mouse follows the pad's aim.
        if let Some(at) = stage.scene.locals().first() {
            board.mouse = stage.camera.to_screen(*at + pad.aim.unit() * 7.0);
        }
        let is_over = stage
            .frame(&StageInput {
                board: &board,
                sticks: &[],
                size: SIZE,
                dt: 1.0 / 60.0,
                pads: Some(&[pad]),
            })
            .is_err();
        if left.is_none() && frame >= moment.frames && (moment.when)(&stage) {
            left = Some(moment.after);
        }
        match &mut left {
            Some(0) => return Ok(stage),
            Some(frames) => *frames -= 1,
            None if is_over => break,
            None => {}
        }
    }
    Err(ScreenshotError::Moment(moment.name))
}

fn make_ready(stage: &mut WindowStage) {
    let own = stage.scene.team.iter().find(|member| member.is_local);
    if stage.scene.phase == RoundPhase::Lobby && own.is_some_and(|own| !own.is_ready) {
        stage.feed.order(0, Command::Ready);
    }
}

fn pilot(pilot: Pilot, bot: &mut Bot, stage: &mut WindowStage, frame: u32) -> Pad {
    match pilot {
        Pilot::Nobody => Pad::default(),
        Pilot::Walker => {
            let way = if (frame / 90).is_multiple_of(2) {
                1.0
            } else {
                -1.0
            };
            Pad {
                walk: Heading::toward(vec2(0.9, 0.4) * way),
                aim: Heading::toward(vec2(1.0, 0.3 - (frame % 60) as f32 * 0.01)),
                buttons: if frame % 120 < 60 { Pad::FIRE } else { 0 },
            }
        }
        Pilot::Bot => {
            let me = stage.feed.seats().first().copied();
            let sampled = Tick(stage.feed.stats().map_or(0, |stats| stats.input_tick));
            let rules = stage.feed.rules().clone();
            let (pad, order) = me
                .zip(stage.feed.game())
                .map(|(me, game)| bot.think(game, &rules, me, sampled))
                .unwrap_or_default();
            // `make_ready` decides when the player is ready.
            if let Some(order) = order.filter(|order| *order != Command::Ready) {
                stage.feed.order(0, order);
            }
            pad
        }
    }
}
