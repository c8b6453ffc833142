//! `powderkeg shots`: a match by a script, in virtual time, whose moments become pictures. The same seed gives the same
//! match on every machine; so what documents show is what the game is.
//!
//! ```text
//!   Script ──▶ Rehearsal, bot at the desk ──▶ WindowStage::frame until the moment has come ──▶ gpu ──▶ NN-name.png
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use glam::vec2;
use macroquad::prelude::next_frame;
use powderkeg_game::{Bot, Command, EnemyKind, Heading, Pad, RoundPhase, Rules, ShowKey, Sticks};
use twinstep_core::{Key, Mwc, PlayerId, Tick};

use super::art::Sprite;
use super::atlas::Type;
use super::bursts::FIRE;
use super::gpu::Gpu;
use super::input::Board;
use super::palette::{BAD, FAINT, GOOD, INK, Tint};
use super::proof::{self, Sight};
use super::run;
use super::scene::WindowThing;
use super::screens::Overlay;
use super::sound::Speaker;
use super::stage::{StageInput, WindowStage};
use super::studio::{SIZE, ShotsError, in_window};
use crate::feed::Feed;
use crate::rehearsal::{Rehearsal, Setup};

/// Frames per second of the script.
const FPS: f32 = 60.0;
/// A moment that has not come after so many frames is not waited for any longer.
const FRAMES_MAX: u32 = 9_000;

/// What a picture is of.
struct Script {
    name: &'static str,
    /// The link that is played over.
    link: &'static str,
    /// Waves that are over soon, so that the script comes to the interesting one.
    skips: usize,
    /// Besides the picture's own number.
    seed: u64,
    /// What is open.
    open: fn(&mut WindowStage),
    pilot: Pilot,
    /// It says that it is ready, in the lobby.
    plays: bool,
    /// At least so many frames are played before.
    frames: u32,
    /// Whether the moment has come.
    when: fn(&WindowStage, &[WindowThing]) -> bool,
    /// So many frames after that the picture is taken.
    after: u32,
    /// What it must show.
    shows: &'static [Sight],
}

/// Who holds the first seat's pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pilot {
    Nobody,
    Bot,
    /// Walks to and fro, so that there is something to predict.
    Walker,
}

/// The whole picture.
const WHOLE: [usize; 4] = [0, 0, SIZE.0 as usize, SIZE.1 as usize];

const SCRIPTS: [Script; 10] = [
    Script {
        name: "title",
        link: "wan",
        skips: 0,
        seed: 0,
        open: |stage| stage.screens.title = true,
        pilot: Pilot::Nobody,
        plays: false,
        frames: 100,
        when: |_, _| true,
        after: 0,
        shows: &[
            Sight::Words(
                "POWDERKEG",
                Type::Title,
                Tint::new(0xff_e9_c9),
                [380, 130, 900, 280],
            ),
            Sight::Words("a co-op shooter", Type::Body, INK, [440, 240, 840, 300]),
            Sight::Color(Tint::new(0x56_b4_e9), 40, [320, 300, 420, 400]),
        ],
    },
    Script {
        name: "lobby",
        link: "lan",
        skips: 0,
        seed: 0,
        open: |_| {},
        pilot: Pilot::Walker,
        plays: false,
        frames: 200,
        when: |stage, _| stage.scene.phase == RoundPhase::Lobby && stage.scene.team.len() == 4,
        after: 0,
        shows: &[
            Sight::Words("LOBBY", Type::Head, INK, [900, 60, 1_280, 140]),
            Sight::Words("READY", Type::Small, GOOD, [1_100, 100, 1_280, 320]),
            Sight::Color(Tint::new(0xe3_8f_c0), 40, [900, 200, 1_000, 300]),
        ],
    },
    Script {
        name: "play",
        link: "wan",
        skips: 4,
        seed: 0,
        open: |_| {},
        pilot: Pilot::Bot,
        plays: true,
        frames: 420,
        when: |stage, _| {
            is_alive(stage)
                && is_clear(stage)
                && seen(stage, is_enemy) >= 5
                && seen(stage, is_bullet) >= 14
        },
        after: 0,
        shows: &[
            Sight::Words("WAVE", Type::Head, INK, [480, 0, 800, 70]),
            Sight::Words("SCORE", Type::Small, FAINT, [0, 0, 120, 60]),
            Sight::Color(Tint::new(0x56_b4_e9), 40, [200, 100, 1_080, 620]),
        ],
    },
    Script {
        name: "blast",
        link: "wan",
        skips: 3,
        seed: 1,
        open: |_| {},
        pilot: Pilot::Bot,
        plays: true,
        frames: 600,
        when: |stage, _| {
            is_alive(stage) && is_clear(stage) && seen(stage, is_enemy) >= 2 && blast_seen(stage)
        },
        after: 5,
        shows: &[
            Sight::Color(Tint::new(0xff_b3_47), 600, WHOLE),
            Sight::Color(Tint::new(0x56_b4_e9), 40, WHOLE),
        ],
    },
    Script {
        name: "toss",
        link: "wan",
        skips: 3,
        seed: 2,
        open: |_| {},
        pilot: Pilot::Bot,
        plays: true,
        frames: 600,
        when: |stage, before| {
            // With enemies left: else the wave ends before the picture is taken.
            is_alive(stage)
                && is_clear(stage)
                && stage.scene.enemies_left >= 2
                && tossed(stage, before)
        },
        after: 10,
        shows: &[
            Sight::Words("WAVE", Type::Head, INK, [480, 0, 800, 70]),
            Sight::Color(Tint::new(0xa8_7a_48), 60, WHOLE),
        ],
    },
    Script {
        name: "ghosts",
        link: "bad",
        skips: 4,
        seed: 0,
        open: |stage| stage.screens.ghosts = true,
        pilot: Pilot::Walker,
        plays: true,
        frames: 480,
        when: |stage, _| seen(stage, is_enemy) >= 3 && is_alive(stage),
        after: 0,
        shows: &[
            Sight::Words("WAVE", Type::Head, INK, [480, 0, 800, 70]),
            Sight::Color(INK, 60, [200, 100, 1_080, 620]),
        ],
    },
    Script {
        name: "netgraph",
        link: "awful",
        skips: 2,
        seed: 0,
        open: |stage| stage.screens.netgraph = true,
        pilot: Pilot::Bot,
        plays: true,
        frames: 720,
        when: |stage, _| seen(stage, is_enemy) >= 2 && is_alive(stage),
        after: 0,
        shows: &[
            Sight::Words("NETGRAPH", Type::Small, INK, [880, 300, 1_280, 380]),
            Sight::Words("round trip", Type::Small, FAINT, [880, 300, 1_280, 400]),
            Sight::Color(GOOD, 60, [890, 400, 1_280, 480]),
        ],
    },
    Script {
        name: "boss",
        link: "wan",
        skips: 7,
        seed: 0,
        open: |_| {},
        pilot: Pilot::Bot,
        plays: true,
        frames: 420,
        when: |stage, _| {
            is_alive(stage)
                && is_clear(stage)
                && seen(stage, |key| key.kind() == Some(EnemyKind::Boss)) == 1
                && seen(stage, is_bullet) >= 24
        },
        after: 0,
        shows: &[
            Sight::Words("WAVE", Type::Head, INK, [480, 0, 800, 70]),
            Sight::Color(Tint::new(0xff_74_2e), 400, [380, 80, 900, 120]),
        ],
    },
    Script {
        name: "settings",
        link: "wan",
        skips: 1,
        seed: 0,
        open: |stage| stage.screens.overlay = Some(Overlay::Settings),
        pilot: Pilot::Bot,
        plays: true,
        frames: 300,
        when: |_, _| true,
        after: 0,
        shows: &[
            Sight::Words("SETTINGS", Type::Head, INK, [380, 130, 640, 220]),
            Sight::Words("colour-blind safe", Type::Body, INK, [640, 200, 900, 320]),
        ],
    },
    Script {
        name: "game-over",
        link: "wan",
        skips: 6,
        seed: 0,
        open: |_| {},
        pilot: Pilot::Bot,
        plays: true,
        frames: 60,
        when: |stage, _| matches!(stage.scene.phase, RoundPhase::Lost | RoundPhase::Won),
        after: 200,
        shows: &[
            Sight::Words("DEFEAT", Type::Title, BAD, [380, 60, 900, 320]),
            Sight::Words("again?", Type::Small, FAINT, [800, 200, 1_000, 420]),
        ],
    },
];

/// The campaign, of whose first waves only one enemy each comes.
fn rules(skips: usize, lives: bool) -> Rules {
    let mut rules = Rules::campaign();
    for wave in &mut rules.waves[..skips] {
        wave.groups.truncate(1);
        wave.groups[0].count = 1;
        wave.groups[0].after_ticks = 0;
    }
    if skips > 0 {
        (
            rules.tuning.lull_ticks,
            rules.tuning.countdown_ticks,
            rules.tuning.crowd_percent,
        ) = (40, 60, 20);
    }
    if !lives {
        (rules.tuning.lives, rules.tuning.lives_per_player) = (0, 0);
    }
    rules
}

fn is_enemy(key: &ShowKey) -> bool {
    matches!(key, ShowKey::Enemy { .. })
}

fn is_bullet(key: &ShowKey) -> bool {
    matches!(key, ShowKey::Bullet { .. })
}

/// How many of them are well inside of the picture.
fn seen(stage: &WindowStage, of: fn(&ShowKey) -> bool) -> usize {
    let things = stage.scene.things.iter();
    things
        .filter(|thing| of(&thing.key) && stage.camera.sees(thing.at, -1.0))
        .count()
}

/// Whoever sits here is to be seen.
fn is_alive(stage: &WindowStage) -> bool {
    stage.scene.locals().len() == 1
}

/// A wave is on, and no word lies across the arena.
fn is_clear(stage: &WindowStage) -> bool {
    stage.scene.phase == RoundPhase::Wave && stage.effects.banner.is_none()
}

/// A blast's front is in the picture, and still young.
fn blast_seen(stage: &WindowStage) -> bool {
    let mut particles = stage.effects.particles.seen(stage.scene.now);
    particles.any(|seen| {
        seen.sprite == Sprite::Wave
            && seen.tint.rgb == FIRE.rgb
            && (2.0..4.0).contains(&seen.half.x)
            && stage.camera.sees(seen.at, -4.0)
    })
}

/// A barrel or crate is in the air.
fn tossed(stage: &WindowStage, before: &[WindowThing]) -> bool {
    stage.scene.things.iter().any(|thing| {
        let moves = matches!(thing.key, ShowKey::Barrel { .. } | ShowKey::Crate { .. });
        let last = before.iter().find(|last| last.key == thing.key);
        moves
            && last.is_some_and(|last| last.at.distance(thing.at) > 0.08)
            && stage.camera.sees(thing.at, -2.0)
    })
}

/// Plays the script and writes its pictures, numbered, into a folder; their paths.
///
/// # Errors
/// No display, no folder, or a moment that did not come.
pub fn shots(out: &Path, seed: u64) -> Result<Option<Vec<PathBuf>>, ShotsError> {
    std::fs::create_dir_all(out).map_err(|error| ShotsError::File {
        path: out.to_owned(),
        why: error.to_string(),
    })?;
    let folder = out.to_owned();
    in_window(move |gpu| take_all(gpu, folder, seed))
}

async fn take_all(mut gpu: Gpu, out: PathBuf, seed: u64) -> Result<Vec<PathBuf>, ShotsError> {
    let mut paths = Vec::new();
    for (n, script) in SCRIPTS.iter().enumerate() {
        let mut stage = played(script, seed)?;
        run::draw(&mut gpu, &mut stage);
        let path = out.join(format!("{:02}-{}.png", n + 1, script.name));
        let shot = run::shot();
        shot.save(&path).map_err(|error| ShotsError::File {
            path: path.clone(),
            why: error.to_string(),
        })?;
        let size = (SIZE.0.into(), SIZE.1.into());
        proof::check(&shot, size, script.shows)
            .map_err(|why| ShotsError::Unseen(script.name, why))?;
        paths.push(path);
        next_frame().await;
    }
    Ok(paths)
}

/// The stage at the moment of a script.
fn played(script: &Script, seed: u64) -> Result<WindowStage, ShotsError> {
    let seed = seed + script.seed;
    let rules = Arc::new(rules(script.skips, script.name != "game-over"));
    let setup = Setup {
        link: script.link.parse().expect("a preset"),
        ..Setup::new(rules, seed)
    };
    let feed = Feed::rehearsal(Rehearsal::new(&setup), Some(script.link.to_owned()));
    let size = vec2(SIZE.0.into(), SIZE.1.into());
    let mut stage = WindowStage::new(feed, Speaker::silent(), size);
    stage.screens.title = false;
    (script.open)(&mut stage);
    let mut bot = Bot::new(Sticks::Analog, Mwc::seed(seed).fork(Key::new(99, 0)));
    let mut board = Board::default();
    let mut left = None;
    let again = script.name != "game-over";
    for frame in 0..FRAMES_MAX {
        let pad = pilot(script.pilot, &mut bot, &mut stage, frame);
        let own = stage.scene.team.iter().find(|member| member.is_local);
        if script.plays
            && frame % 60 == 30
            && (stage.scene.phase == RoundPhase::Lobby || stage.scene.phase.is_waiting() && again)
            && own.is_some_and(|own| !own.is_ready)
        {
            stage.feed.order(0, Command::Ready);
        }
        // The mouse is where the pad aims.
        if let Some(at) = stage.scene.locals().first() {
            board.mouse = stage.camera.to_screen(*at + pad.aim.unit() * 7.0);
        }
        let before = stage.scene.things.clone();
        let input = StageInput {
            board: &board,
            sticks: &[],
            size,
            dt: 1.0 / FPS,
            pads: Some(&[pad]),
        };
        // The last picture of a match that is over is a picture as well.
        let over = stage.frame(&input).is_err();
        if left.is_none() && frame >= script.frames && (script.when)(&stage, &before) {
            left = Some(script.after);
        }
        match &mut left {
            Some(0) => return Ok(stage),
            Some(frames) => *frames -= 1,
            None if over => break,
            None => {}
        }
    }
    Err(ShotsError::Moment(script.name))
}

fn pilot(pilot: Pilot, bot: &mut Bot, stage: &mut WindowStage, frame: u32) -> Pad {
    match pilot {
        Pilot::Nobody => Pad::default(),
        Pilot::Walker => Pad {
            walk: Heading::toward(if (frame / 90).is_multiple_of(2) {
                vec2(0.9, 0.4)
            } else {
                vec2(-0.9, -0.4)
            }),
            aim: Heading::toward(vec2(1.0, 0.3 - (frame % 60) as f32 * 0.01)),
            buttons: if frame % 120 < 60 { Pad::FIRE } else { 0 },
        },
        Pilot::Bot => {
            let me: Option<PlayerId> = stage.feed.seats().first().copied();
            let sampled = stage.feed.stats().map_or(0, |stats| stats.input_tick);
            let rules = stage.feed.rules().clone();
            let thought = me
                .zip(stage.feed.game())
                .map(|(me, game)| bot.think(game, &rules, me, Tick(sampled)));
            let (pad, order): (Pad, Option<Command>) = thought.unwrap_or_default();
            // The script says when it is ready.
            if let Some(order) = order.filter(|order| *order != Command::Ready) {
                stage.feed.order(0, order);
            }
            pad
        }
    }
}
