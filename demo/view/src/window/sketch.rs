//! [`Sketch`]: the simple pictures of an example: boxes and words, a mouse and typed letters.
//!
//! ```text
//!   run_sketch ──▶ Sketch::begin (mouse, letter) ──▶ the example's frame ──▶ Batch ──▶ gpu ──▶ the screen
//!                                                                              └──▶ save: a picture without a window
//! ```
//!
//! Positions and sizes are in units of the caller, x to the right and y down; colours are 0xRRGGBB, opacities 0 to 1.
//! Later shapes cover earlier ones.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use glam::{Vec2, vec2};
use macroquad::prelude::{
    KeyCode, MouseButton, get_char_pressed, is_key_pressed, is_mouse_button_down,
    is_mouse_button_pressed, mouse_position, next_frame,
};

use super::atlas::{Atlas, Type};
use super::batch::Batch;
use super::gpu::Gpu;
use super::probe::display;
use super::rect::Rect;
use super::run::{self, WindowOptions};
use super::screenshot::Screenshot;
use super::text;
use crate::scene::palette::{ColorMode, Tint, WHITE};
use crate::stop;

const SIZE: Vec2 = vec2(1_280.0, 768.0); // pixels

pub struct Sketch {
    batch: Batch,
    background: Tint,
    units: Vec2,
    size: Vec2,
    mouse: Vec2,
    pressed_at: Option<Vec2>,
    dragged: Option<[[f32; 2]; 2]>,
    clicked: Option<[f32; 2]>,
    letter: Option<char>,
}

impl Sketch {
    #[must_use]
    pub fn new(units: [f32; 2]) -> Sketch {
        Sketch {
            batch: Batch::new(Atlas::new(Atlas::scale_for(SIZE, false), ColorMode::Safe)),
            background: Tint::new(0),
            units: units.into(),
            size: SIZE,
            mouse: Vec2::ZERO,
            pressed_at: None,
            dragged: None,
            clicked: None,
            letter: None,
        }
    }

    #[must_use]
    pub fn mouse(&self) -> [f32; 2] {
        self.mouse.into()
    }

    // A click without a drag gives a box without size.
    #[must_use]
    pub fn dragged(&self) -> Option<[[f32; 2]; 2]> {
        self.dragged
    }

    #[must_use]
    pub fn clicked(&self) -> Option<[f32; 2]> {
        self.clicked
    }

    #[must_use]
    pub fn letter(&self) -> Option<char> {
        self.letter
    }

    pub fn clear(&mut self, rgb: u32) {
        self.background = Tint::new(rgb);
        self.batch.clear();
    }

    pub fn fill(&mut self, at: [f32; 2], size: [f32; 2], rgb: u32, alpha: f32) {
        let at = self.to_pixels(at);
        let size = Vec2::from(size) * self.pixels_per_unit();
        self.batch
            .fill(Rect { at, size }, Tint::new(rgb).alpha(alpha));
    }

    pub fn words(&mut self, at: [f32; 2], rgb: u32, words: &str) {
        let at = self.to_pixels(at);
        let room = (self.size.x - at.x).max(0.0);
        let words = text::fitted(Type::Body, self.batch.atlas.scale, words, room);
        self.batch.text(at, Type::Body, Tint::new(rgb), &words);
    }

    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let shot = Screenshot::of(&self.batch, self.background, self.size);
        shot.save(path).map_err(std::io::Error::other)
    }

    fn pixels_per_unit(&self) -> f32 {
        (self.size / self.units).min_element()
    }

    fn to_pixels(&self, at: [f32; 2]) -> Vec2 {
        let margin = self.size - self.units * self.pixels_per_unit();
        Vec2::from(at) * self.pixels_per_unit() + margin * 0.5
    }

    fn to_units(&self, at: Vec2) -> Vec2 {
        (at - self.to_pixels([0.0, 0.0])) / self.pixels_per_unit()
    }

    fn begin(&mut self, size: Vec2) {
        self.size = size;
        self.mouse = self.to_units(mouse_position().into());
        if is_mouse_button_pressed(MouseButton::Left) {
            self.pressed_at = Some(self.mouse);
        }
        let is_up = !is_mouse_button_down(MouseButton::Left);
        let from = self.pressed_at.take_if(|_| is_up);
        self.dragged = from.map(|from| corners(from, self.mouse));
        let clicked = is_mouse_button_pressed(MouseButton::Right);
        self.clicked = clicked.then_some(self.mouse.into());
        self.letter = get_char_pressed();
    }

    fn draw_drag(&mut self) {
        let Some(from) = self.pressed_at else {
            return;
        };
        let [from, to] = corners(from, self.mouse).map(|at| self.to_pixels(at));
        for [from, to] in [
            [from, vec2(to.x, from.y)],
            [vec2(from.x, to.y), to],
            [from, vec2(from.x, to.y)],
            [vec2(to.x, from.y), to],
        ] {
            self.batch.line(from, to, 1.0, WHITE);
        }
    }
}

fn corners(from: Vec2, to: Vec2) -> [[f32; 2]; 2] {
    [from.min(to).into(), from.max(to).into()]
}

/// Opens a window and calls `frame` for each picture, until the player presses Escape or closes the window. Takes over
/// the calling thread, which must be the process's main thread. A process can open one window in its life.
///
/// # Errors
/// If a window cannot be opened, or `frame` fails.
pub fn run_sketch(
    title: &str,
    units: [f32; 2],
    mut frame: impl FnMut(&mut Sketch) -> Result<(), Box<dyn Error>> + 'static,
) -> Result<(), Box<dyn Error>> {
    let options = WindowOptions {
        backend: display()?,
        size: (SIZE.x as u16, SIZE.y as u16),
        fullscreen: false,
        mute: true,
        vsync: true,
    };
    let ended = Rc::new(RefCell::new(Ok(())));
    let out = Rc::clone(&ended);
    run::open(title, options, move || async move {
        let mut play = async || {
            let mut gpu = Gpu::new()?;
            let mut sketch = Sketch::new(units);
            gpu.load(&sketch.batch.atlas);
            while !is_key_pressed(KeyCode::Escape) && !stop::asked() {
                sketch.begin(run::window_size());
                frame(&mut sketch)?;
                sketch.draw_drag();
                gpu.draw(&sketch.batch, sketch.background);
                next_frame().await;
            }
            Ok(())
        };
        let ended = play().await;
        *out.borrow_mut() = ended;
    })?;
    ended.replace(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_drawn_in_units_and_later_shapes_cover_earlier_ones() {
        let mut sketch = Sketch::new([64.0, 32.0]);
        sketch.clear(0x10_20_30);
        sketch.fill([8.0, 8.0], [16.0, 8.0], 0xff_00_00, 1.0);
        sketch.fill([8.0, 8.0], [1.0, 1.0], 0x00_ff_00, 1.0);
        sketch.words([60.0, 20.0], 0xff_ff_ff, "a line of words that is too long");
        let corners = sketch.batch.corners.iter();
        assert!(corners.map(|corner| corner.at.x).all(|x| x <= SIZE.x));
        let file = std::env::temp_dir().join(format!("sketch-{}.png", std::process::id()));
        sketch.save(&file).unwrap();
        let reader = png::Decoder::new(std::fs::File::open(&file).unwrap()).read_info();
        let mut reader = reader.unwrap();
        let mut bytes = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut bytes).unwrap();
        std::fs::remove_file(file).unwrap();
        let pixel = |at: [f32; 2]| {
            let at = sketch.to_pixels(at);
            &bytes[(at.y as usize * SIZE.x as usize + at.x as usize) * 3..][..3]
        };
        assert_eq!(pixel([2.0, 2.0]), [0x10, 0x20, 0x30]);
        assert_eq!(pixel([8.5, 8.5]), [0, 0xff, 0]);
        assert_eq!(pixel([12.0, 12.0]), [0xff, 0, 0]);
        assert_eq!(pixel([24.5, 8.5]), [0x10, 0x20, 0x30]);
    }

    #[test]
    fn mouse_positions_are_in_the_units_of_the_picture() {
        for size in [SIZE, vec2(300.0, 900.0), vec2(900.0, 300.0)] {
            let mut sketch = Sketch::new([64.0, 32.0]);
            sketch.size = size;
            for at in [[0.0, 0.0], [64.0, 32.0], [7.0, 30.0]] {
                let pixels = sketch.to_pixels(at);
                assert!(pixels.cmpge(Vec2::ZERO).all() && pixels.cmple(size).all());
                assert!(sketch.to_units(pixels).distance(at.into()) < 1e-3);
            }
        }
    }

    #[test]
    fn a_box_can_be_dragged_in_any_direction() {
        let (a, b) = (vec2(30.0, 4.0), vec2(10.0, 24.0));
        assert_eq!(corners(a, b), [[10.0, 4.0], [30.0, 24.0]]);
        assert_eq!(corners(b, a), corners(a, b));
    }
}
