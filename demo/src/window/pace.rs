//! `powderkeg frames`: how long a picture of a crowded match takes here.
//!
//! ```text
//!   eight bots, 300 enemies, 2,000 bullets, in virtual time ──▶ a journal ──▶ Stage, uncapped ──▶ p50, p99
//! ```
//!
//! The match is recorded first, so that what is measured is the view alone: no server, bots or network. The whole arena
//! is in the picture, so nothing of it is left out. With a server the same arena is played live by one player and three
//! bots, all in this thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use macroquad::prelude::next_frame;
use serde::Serialize;

use super::gpu::Gpu;
use super::input::Board;
use super::probe::{self, NoWindow};
use super::run::{self, Options};
use super::shots::{SIZE, ShotsError};
use super::sound::Speaker;
use super::stage::{Input, Stage};
use crate::feed::{Clock, Feed, Line, Live, Playback};
use crate::game::{Pad, Rules};
use crate::game_show::GameShow;
use crate::rehearsal::{Rehearsal, Setup};

/// What is to be drawn.
const ENEMIES: u16 = 300;
const BULLETS: usize = 2_000;
const PLAYERS: usize = 8;
/// So many frames go by before the first one counts.
const WARM_UP: u32 = 30;
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// A match that has not enough bullets after so long has them never.
const RECORDED_MAX: u32 = 60 * 60;

/// What was measured. Times are of the wall, in ms.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Pace {
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
    players_mean: f64,
    enemies_mean: f64,
    bullets_mean: f64,
    quads_mean: f64,
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let with = match self.with_server {
            true => "with server and 3 bots in this thread",
            false => "a recorded match, no server",
        };
        writeln!(
            f,
            "{} frames at {}x{}, {with}: {:.0} players, {:.0} enemies, {:.0} bullets, {:.0} quads",
            self.frames,
            self.width,
            self.height,
            self.players_mean,
            self.enemies_mean,
            self.bullets_mean,
            self.quads_mean
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
/// There is a display, and no window on it.
pub(crate) fn measure(frames: u32, with_server: bool) -> Result<Option<Pace>, ShotsError> {
    let backend = match probe::display() {
        Ok(backend) => backend,
        Err(NoWindow::NoDisplay) => return Ok(None),
        Err(why) => return Err(ShotsError::Window(why.to_string())),
    };
    let options = Options {
        backend,
        size: SIZE,
        fullscreen: false,
        mute: true,
        waits: false,
    };
    let feed = if with_server { live() } else { recorded() };
    let done = std::rc::Rc::new(std::cell::RefCell::new(None));
    let told = std::rc::Rc::clone(&done);
    run::open(options, move || async move {
        let gpu = Gpu::new().map_err(|error| ShotsError::Window(error.to_string()));
        *told.borrow_mut() = Some(match gpu {
            Ok(gpu) => Ok(draw(gpu, feed, frames, with_server).await),
            Err(error) => Err(error),
        });
    })
    .map_err(|why| ShotsError::Window(why.to_string()))?;
    match done.take() {
        Some(done) => done.map(Some),
        None => Err(ShotsError::Window("the window was closed".to_owned())),
    }
}

fn rules() -> Arc<Rules> {
    // Some are always dead, or just coming.
    let mut rules = Rules::arena(ENEMIES * 11 / 10);
    let tuning = &mut rules.tuning;
    // Bullets fly longer than in the game, until there are enough of them; and nobody dies.
    tuning.bullet_ticks = 460;
    tuning.player_health = i16::MAX;
    (tuning.enemy_arrival_ticks, tuning.enemy_return_ticks) = (120, 20);
    Arc::new(rules)
}

fn live() -> Feed {
    let rules = rules();
    let mut line = Rehearsal::new(&Setup::new(Arc::clone(&rules), 1));
    crowd(&mut line);
    Feed::live(Live::new(line, GameShow, None), rules)
}

fn recorded() -> Feed {
    let rules = rules();
    let mut line = Rehearsal::new(&Setup {
        bots: PLAYERS - 1,
        ..Setup::new(Arc::clone(&rules), 1)
    });
    let crowded = crowd(&mut line);
    for _ in 0..60 * 20 {
        step(&mut line);
    }
    let journal = line.journal().to_vec();
    let mut playback = Playback::open(journal, &rules).expect("a journal of these rules");
    playback.seek(crowded);
    Feed::playback(playback, Clock::frames(FRAME))
}

/// Plays until there are enough bullets; the tick.
fn crowd(line: &mut Rehearsal) -> twinstep_core::Tick {
    for _ in 0..RECORDED_MAX {
        step(line);
        if line.truth().bullets.len() >= BULLETS {
            break;
        }
    }
    line.tick()
}

fn step(line: &mut Rehearsal) {
    // Its own player stands still; a match that ends ends the measurement.
    let _ = line.advance(&|_| Pad::default());
}

async fn draw(mut gpu: Gpu, feed: Feed, frames: u32, with_server: bool) -> Pace {
    let size = run::window_size();
    let mut stage = Stage::new(feed, Speaker::silent(), size);
    stage.screens.title = false;
    stage.follows = false;
    let board = Board::default();
    let (mut whole, mut staged) = (Vec::new(), Vec::new());
    let mut sums = [0.0; 4];
    let mut last = now();
    let mut cpu = None;
    for frame in 0..WARM_UP + frames {
        if frame == WARM_UP {
            cpu = cpu_ms();
        }
        let began = now();
        // A match that is over shows its last picture.
        let _ = stage.frame(&Input {
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
            for (sum, value) in sums.iter_mut().zip(load(&stage)) {
                *sum += value / f64::from(frames);
            }
        }
        last = ended;
    }
    let cpu_ms_mean = cpu
        .zip(cpu_ms())
        .map(|(before, after)| (after - before) / f64::from(frames));
    let [players_mean, enemies_mean, bullets_mean, quads_mean] = sums;
    Pace {
        frames,
        width: size.x as u32,
        height: size.y as u32,
        with_server,
        frame_ms_p50: quantile(&mut whole, 0.50),
        frame_ms_p99: quantile(&mut whole, 0.99),
        stage_ms_p50: quantile(&mut staged, 0.50),
        stage_ms_p99: quantile(&mut staged, 0.99),
        cpu_ms_mean,
        players_mean,
        enemies_mean,
        bullets_mean,
        quads_mean,
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

fn load(stage: &Stage) -> [f64; 4] {
    use crate::game::ShowKey;
    let mut counts = [0.0; 4];
    for thing in &stage.scene.things {
        match thing.key {
            ShowKey::Player { .. } => counts[0] += 1.0,
            ShowKey::Enemy { .. } => counts[1] += 1.0,
            ShowKey::Bullet { .. } => counts[2] += 1.0,
            _ => {}
        }
    }
    counts[3] = stage.batch.quads() as f64;
    counts
}

fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1) as f64;
    let time = times.get((last * part + 0.5) as usize);
    time.map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let mut times: Vec<Duration> = (1..=101).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&mut times, 0.5), 51.0);
        assert_eq!(quantile(&mut times, 0.99), 100.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
