//! `powderkeg frames`: how long a picture of a crowded match takes here.
//!
//! ```text
//!   eight bots, 300 enemies, 2,000 bullets, in virtual time ──▶ a journal ──▶ WindowStage, uncapped ──▶ p50, p99
//! ```
//!
//! The match is recorded first, so that what is measured is the view alone: no server, bots or network. The whole arena
//! is in the picture, so nothing of it is left out. With a server the same arena is played live by one player and three
//! bots, all in this thread.
//!
//! Invariant: if the pictures showed less than what was asked for, the report says so, and the command fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use macroquad::prelude::next_frame;
use powderkeg_game::{Pad, Rules, ShowKey};
use serde::Serialize;
use twinstep_core::Tick;

use super::gpu::Gpu;
use super::input::Board;
use super::run;
use super::scene::WindowScene;
use super::sound::Speaker;
use super::stage::{StageInput, WindowStage};
use super::studio::{ShotsError, in_window};
use crate::feed::{Feed, Playback, ReplayClock};
use crate::rehearsal::{Rehearsal, Setup};
use crate::time::now;

/// What a picture shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Load {
    players: f64,
    enemies: f64,
    bullets: f64,
}

impl Load {
    /// What is to be drawn.
    const RECORDED: Load = Load {
        players: 8.0,
        enemies: 300.0,
        bullets: 2_000.0,
    };
    /// The same with a server and three bots in this thread.
    const LIVE: Load = Load {
        players: 4.0,
        ..Load::RECORDED
    };

    fn of(scene: &WindowScene) -> Load {
        let mut load = Load::default();
        for thing in &scene.things {
            match thing.key {
                ShowKey::Player { .. } => load.players += 1.0,
                ShowKey::Enemy { .. } => load.enemies += 1.0,
                ShowKey::Bullet { .. } => load.bullets += 1.0,
                _ => {}
            }
        }
        load
    }

    fn add_part(&mut self, other: Load, of: f64) {
        self.players += other.players / of;
        self.enemies += other.enemies / of;
        self.bullets += other.bullets / of;
    }

    /// Whether nothing is missing. A player may be dead for a moment.
    fn reaches(&self, asked: &Load) -> bool {
        self.players > asked.players - 0.05
            && self.enemies >= asked.enemies
            && self.bullets >= asked.bullets
    }
}

/// `8 players, 300 enemies, 2000 bullets`.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load {
            players,
            enemies,
            bullets,
        } = self;
        write!(
            f,
            "{players:.0} players, {enemies:.0} enemies, {bullets:.0} bullets"
        )
    }
}

/// Beyond what is asked for, so that what is drawn does not fall below it: some enemies are dead, and bullets that end
/// are missed until others are fired.
const SPARE_ENEMIES: u16 = 16;
const SPARE_BULLETS: u32 = 40;
/// So many frames go by before the first one counts.
const WARM_UP: u32 = 30;
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// A match that has not enough bullets after so long has them never.
const CROWDED_MAX: u32 = 60 * 60;

/// What was measured. Times are of the wall, in ms.
#[derive(Clone, Debug, Serialize)]
pub struct FrameTimes {
    frames: u32,
    width: u32,
    height: u32,
    with_server: bool,
    /// From one frame to the next.
    frame_ms_p50: f64,
    frame_ms_p99: f64,
    /// Of it: the match, the scene, the quads; without the graphics driver.
    stage_ms_p50: f64,
    stage_ms_p99: f64,
    /// What all threads of the process took for a frame, on average: it does not grow when others use the machine. None:
    /// it is not told here.
    cpu_ms_mean: Option<f64>,
    /// What the pictures were to show at least.
    asked: Load,
    /// What they showed, on average.
    drawn: Load,
    quads_mean: f64,
    /// The pictures showed less than was asked for: the times are those of an easier task.
    falls_short: bool,
}

impl FrameTimes {
    /// What to say when this is not what was asked for.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        self.falls_short.then(|| {
            format!(
                "the load fell short: expected {}, drawn were {}; these times are for the smaller load only",
                self.asked, self.drawn
            )
        })
    }
}

impl fmt::Display for FrameTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = match self.with_server {
            true => "with server and 3 bots in this thread",
            false => "a recorded match, no server",
        };
        writeln!(
            f,
            "{} frames at {}x{}, {with}: {}, {:.0} quads",
            self.frames, self.width, self.height, self.drawn, self.quads_mean
        )?;
        write!(
            f,
            "frame {:.2} ms (p99 {:.2}), of it match, scene and quads {:.2} ms (p99 {:.2})",
            self.frame_ms_p50, self.frame_ms_p99, self.stage_ms_p50, self.stage_ms_p99
        )?;
        match self.cpu_ms_mean {
            Some(cpu) => write!(f, "; {cpu:.2} ms of processor time"),
            None => Ok(()),
        }
    }
}

/// Measures so many frames; `None`: there is no display.
///
/// # Errors
/// There is a display, and no window of this size on it.
pub fn measure(frames: u32, with_server: bool) -> Result<Option<FrameTimes>, ShotsError> {
    in_window(move |gpu| async move {
        let (asked, feed) = match with_server {
            true => (Load::LIVE, live(&Load::LIVE)),
            false => (Load::RECORDED, recorded(&Load::RECORDED, frames)),
        };
        Ok(draw(gpu, feed, frames, &asked).await)
    })
}

fn rules(asked: &Load) -> Arc<Rules> {
    let mut rules = Rules::arena(asked.enemies as u16 + SPARE_ENEMIES);
    // Walls end bullets: half as large ones leave enough of them.
    for wall in &mut rules.walls {
        wall.half *= 0.5;
    }
    let tuning = &mut rules.tuning;
    // As many bullets as are asked for and no more: beyond it enemies hold their fire.
    tuning.bullets_max = asked.bullets as u32 + SPARE_BULLETS;
    // They fly until they meet something; and nobody dies.
    tuning.bullet_ticks = 460;
    tuning.player_health = 30_000;
    (tuning.enemy_arrival_ticks, tuning.enemy_return_ticks) = (120, 10);
    Arc::new(rules)
}

fn live(asked: &Load) -> Feed {
    let (mut rehearsal, rules) = match_of(asked);
    crowd(&mut rehearsal, &rules);
    Feed::rehearsal(rehearsal, None)
}

/// A crowded match, long enough for so many frames.
fn recorded(asked: &Load, frames: u32) -> Feed {
    let (mut rehearsal, rules) = match_of(asked);
    let crowded = crowd(&mut rehearsal, &rules);
    for _ in 0..WARM_UP + frames {
        step(&mut rehearsal);
    }
    let journal = rehearsal.journal().to_vec();
    let mut playback = Playback::open(journal, &rules).expect("a journal of these rules");
    playback.seek(crowded);
    Feed::playback(playback, ReplayClock::frames(FRAME))
}

/// One player with bots, who have just come.
fn match_of(asked: &Load) -> (Rehearsal, Arc<Rules>) {
    let rules = rules(asked);
    let setup = Setup {
        bots: asked.players as usize - 1,
        ..Setup::new(Arc::clone(&rules), 1)
    };
    (Rehearsal::new(&setup), rules)
}

/// Plays until as many bullets fly as there may be; the tick.
fn crowd(rehearsal: &mut Rehearsal, rules: &Rules) -> Tick {
    for _ in 0..CROWDED_MAX {
        step(rehearsal);
        if rehearsal.truth().bullets.len() >= rules.tuning.bullets_max as usize {
            break;
        }
    }
    rehearsal.tick()
}

fn step(rehearsal: &mut Rehearsal) {
    // Its own player stands still; a match that ends ends the measurement.
    let _ = rehearsal.advance(|_| Pad::default());
}

async fn draw(mut gpu: Gpu, feed: Feed, frames: u32, asked: &Load) -> FrameTimes {
    let size = run::window_size();
    let mut stage = WindowStage::new(feed, Speaker::silent(), size);
    stage.screens.title = false;
    stage.follows = false;
    let board = Board::default();
    let (mut whole, mut staged) = (Vec::new(), Vec::new());
    let (mut drawn, mut quads_mean) = (Load::default(), 0.0);
    let mut last = now();
    let mut cpu = None;
    for frame in 0..WARM_UP + frames {
        if frame == WARM_UP {
            cpu = cpu_ms();
        }
        let began = now();
        // A match that is over shows its last picture.
        let _ = stage.frame(&StageInput {
            board: &board,
            sticks: &[],
            size,
            dt: FRAME.as_secs_f32(),
            pads: None,
        });
        let painted = now();
        run::draw(&mut gpu, &mut stage);
        next_frame().await;
        let ended = now();
        if frame >= WARM_UP {
            staged.push(painted - began);
            whole.push(ended - last);
            drawn.add_part(Load::of(&stage.scene), f64::from(frames));
            quads_mean += stage.batch.quads() as f64 / f64::from(frames);
        }
        last = ended;
    }
    let cpu_ms_mean = cpu
        .zip(cpu_ms())
        .map(|(before, after)| (after - before) / f64::from(frames));
    FrameTimes {
        frames,
        width: size.x as u32,
        height: size.y as u32,
        with_server: *asked == Load::LIVE,
        frame_ms_p50: quantile(&mut whole, 0.50),
        frame_ms_p99: quantile(&mut whole, 0.99),
        stage_ms_p50: quantile(&mut staged, 0.50),
        stage_ms_p99: quantile(&mut staged, 0.99),
        cpu_ms_mean,
        asked: *asked,
        drawn,
        quads_mean,
        falls_short: !drawn.reaches(asked),
    }
}

/// What this process has taken of all processors so far, where Linux tells it.
fn cpu_ms() -> Option<f64> {
    /// Of a tick of the kernel's, everywhere.
    const TICK_MS: f64 = 10.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may have spaces; user and system time are the 12th and 13th word after it.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || words.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) * TICK_MS)
}

fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1) as f64;
    let time = times.get((last * part + 0.5) as usize);
    time.map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_match_shows_what_is_asked_for() {
        // A part of it, made in the same way: a whole one takes its time.
        let asked = Load {
            enemies: 60.0,
            bullets: 300.0,
            ..Load::RECORDED
        };
        let frames = 40;
        let mut feed = recorded(&asked, frames);
        let mut scene = WindowScene::new(feed.rules().clone());
        let mut drawn = Load::default();
        for frame in 0..WARM_UP + frames {
            feed.advance(&[]).expect("a recorded match goes on");
            scene.gather(&feed, false);
            if frame >= WARM_UP {
                drawn.add_part(Load::of(&scene), f64::from(frames));
            }
        }
        assert!(drawn.reaches(&asked), "{drawn}");
        assert!(
            drawn.bullets <= asked.bullets + f64::from(SPARE_BULLETS),
            "{drawn}"
        );
    }

    #[test]
    fn a_load_that_lacks_anything_falls_short() {
        let asked = Load::RECORDED;
        assert!(asked.reaches(&asked));
        for lacks in [
            Load {
                players: 7.0,
                ..asked
            },
            Load {
                enemies: 299.0,
                ..asked
            },
            Load {
                bullets: 1_535.0,
                ..asked
            },
        ] {
            assert!(!lacks.reaches(&asked), "{lacks}");
        }
    }

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let mut times: Vec<Duration> = (1..=101).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&mut times, 0.5), 51.0);
        assert_eq!(quantile(&mut times, 0.99), 100.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
