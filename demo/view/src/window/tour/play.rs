//! A tour in a window, or as an animated picture without one.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use glam::{Vec2, vec2};
use macroquad::prelude::{
    KeyCode, get_char_pressed, is_key_down, is_key_pressed, is_quit_requested, next_frame,
    prevent_quit,
};
use twinstep_client::SessionEnd;

use super::Tour;
use super::animation::Animation;
use super::frame::FRAMES_PER_SECOND;
use super::paint::{self, COLORS, GROUND, PAGE};
use super::script::CHAPTERS;
use crate::stop;
use crate::time::now;
use crate::window::gpu::Gpu;
use crate::window::probe::NoWindow;
use crate::window::run::{self, WindowOptions};
use crate::window::screenshot::Screenshot;

const FILM_RATE: u32 = 10;
/// The maximum number of frames that the window plays at once after a delay.
const LATE_MAX: f32 = 4.0;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TourError {
    #[error("cannot write {path}: {why}")]
    File { path: PathBuf, why: String },
    #[error("the tour's session ended: {0}; choose another --seed")]
    Over(SessionEnd),
    #[error("{0}; --out FILE writes the tour as a picture instead")]
    Window(NoWindow),
}

/// Writes a tour as an animated picture, and returns the number of its frames. The same seed produces the same picture.
///
/// # Errors
/// If the file cannot be written, or the session ends.
pub fn tour_picture(path: &Path, seed: u64) -> Result<u32, TourError> {
    let failed = |why: png::EncodingError| TourError::File {
        path: path.to_owned(),
        why: why.to_string(),
    };
    let every = FRAMES_PER_SECOND / FILM_RATE;
    let frames = CHAPTERS.iter().map(|chapter| {
        let [from, to] = chapter.filmed;
        (to - from) * FILM_RATE / 10
    });
    let frames = frames.sum();
    let size = [PAGE.x as usize, PAGE.y as usize];
    let mut film =
        Animation::begin(path, size, (frames, FILM_RATE as u16), &COLORS).map_err(failed)?;
    let mut batch = paint::batch(PAGE);
    let mut tour = Tour::new(seed);
    let mut taken = 0;
    while taken < frames {
        tour.step(Vec2::ZERO).map_err(TourError::Over)?;
        let Some(frame) = tour.shown() else { continue };
        let [from, to] = CHAPTERS[frame.chapter]
            .filmed
            .map(|tenth| tenth * FRAMES_PER_SECOND / 10);
        if (from..to).contains(&frame.age) && (frame.age - from).is_multiple_of(every) {
            paint::paint(&mut batch, PAGE, &tour, "every number is measured here");
            film.push(&Screenshot::of(&batch, GROUND, PAGE))
                .map_err(failed)?;
            taken += 1;
        }
    }
    film.finish().map_err(failed)?;
    Ok(frames)
}

/// Shows a tour in a window until it is over or the player quits. Takes over the calling thread, which must be the
/// process's main thread.
///
/// # Errors
/// If a window cannot be opened, or the session ends.
pub fn tour(seed: u64, options: WindowOptions) -> Result<(), TourError> {
    let ended = Rc::new(RefCell::new(Ok(())));
    let out = Rc::clone(&ended);
    run::open("Powderkeg: the tour", options, move || async move {
        let ended = match Gpu::new() {
            Ok(gpu) => play(gpu, seed).await.map_err(TourError::Over),
            Err(error) => Err(TourError::Window(NoWindow::Refused(error.to_string()))),
        };
        *out.borrow_mut() = ended;
    })
    .map_err(TourError::Window)?;
    ended.replace(Ok(()))
}

async fn play(mut gpu: Gpu, seed: u64) -> Result<(), SessionEnd> {
    prevent_quit();
    let mut tour = Tour::new(seed);
    let mut batch = paint::batch(run::window_size());
    gpu.load(&batch.atlas);
    let (mut last, mut owed, mut is_paused) = (now(), 0.0, false);
    while !is_key_pressed(KeyCode::Escape) && !is_quit_requested() && !stop::asked() {
        let size = run::window_size();
        if paint::scale_for(size) != batch.atlas.scale {
            batch = paint::batch(size);
            gpu.load(&batch.atlas);
        }
        let began = now();
        owed += (began - last).as_secs_f32() * FRAMES_PER_SECOND as f32;
        last = began;
        is_paused ^= is_key_pressed(KeyCode::Space);
        if is_paused {
            owed = f32::from(u8::from(is_key_pressed(KeyCode::Right)));
        }
        let digit = get_char_pressed().and_then(|letter| letter.to_digit(10));
        if let Some(at) = digit.filter(|n| (1..=CHAPTERS.len()).contains(&(*n as usize))) {
            tour.go_to(at as usize - 1);
        }
        if is_key_pressed(KeyCode::Enter) {
            tour.steer();
        }
        owed = owed.min(LATE_MAX);
        while owed >= 1.0 {
            owed -= 1.0;
            tour.step(held())?;
        }
        if tour.is_over() {
            break;
        }
        paint::paint(
            &mut batch,
            size,
            &tour,
            "1 to 8 chapters · Space pause · Enter: steer with W A S D · Esc",
        );
        gpu.draw(&batch, GROUND);
        next_frame().await;
    }
    Ok(())
}

fn held() -> Vec2 {
    let axis = |less, more| f32::from(i8::from(is_key_down(more)) - i8::from(is_key_down(less)));
    vec2(axis(KeyCode::A, KeyCode::D), axis(KeyCode::S, KeyCode::W)).normalize_or_zero()
}
