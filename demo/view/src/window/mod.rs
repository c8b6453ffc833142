//! The window: Powderkeg with keyboard, mouse, gamepads and sound. Only this module uses macroquad.
//!
//! ```text
//!   keys, gamepads ──▶ WindowStage::frame ──▶ Batch ──▶ gpu ──▶ the screen
//!                        │   │
//!                 Feed ──┘   └──▶ sound
//! ```
//!
//! The path from a key to a step of the simulation is drawn in the [crate's
//! documentation](crate#from-a-key-to-a-step).
//!
//! | part | idea |
//! |---|---|
//! | `stage` | one frame, without window and clock; it calls everything below |
//! | `camera`, `paint` | the visible part of a scene; how it becomes quads |
//! | `art`, `atlas`, `batch`, `text`, `gpu` | sprites and letters made of shapes; one texture, few draw calls |
//! | `screens`, `settings` | overlays, the settings, and their file |
//! | `input`, `sound` | keys and gamepads; sounds |
//! | `probe`, `run` | whether a window can be opened; the loop |
//! | `shots`, `screenshot` | pictures without a window |
//! | `tour` | one session drawn in four ways, in a window or as an animated picture |
//! | `sketch` | boxes and words for small examples |
//!
//! Invariants: a picture is a pure function of scene and effects; a frame's inputs show in that frame's picture; no
//! picture, sound or font is loaded from a file, and the default build needs no system library.

mod art;
mod atlas;
mod batch;
mod camera;
mod gpu;
mod input;
mod paint;
mod probe;
mod rect;
mod run;
mod screens;
mod screenshot;
mod settings;
mod shots;
mod sketch;
mod sound;
mod stage;
mod text;
mod tour;

pub use macroquad::miniquad::conf::LinuxBackend as Backend;
pub use probe::{NoWindow, display};
#[cfg(target_arch = "wasm32")]
pub(crate) use run::show;
pub use run::{WindowOptions, WindowRefused, run};
pub use shots::{ScreenshotError, shots};
pub use sketch::{Sketch, run_sketch};
pub use tour::{TourError, tour, tour_picture};
