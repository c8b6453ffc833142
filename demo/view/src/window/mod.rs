//! The window: Powderkeg with keyboard, mouse, gamepads and sound. Only this module names macroquad.
//!
//! ```text
//!   desk, gamepads ──▶ WindowStage::frame ──▶ Batch ──▶ gpu ──▶ the screen
//!                        │   │
//!                 Feed ──┘   └──▶ sound
//! ```
//!
//! The way from a key to a step of the simulation is drawn in the [crate's documentation](crate#from-a-key-to-a-step).
//!
//! | part | idea |
//! |---|---|
//! | `stage` | one frame, without window and clock; everything below is called by it |
//! | `scene`, `effects`, `bursts`, `particles`, `camera` | what is seen: of the feed, of the cues, from where |
//! | `paint` | a scene becomes quads |
//! | `art`, `atlas`, `batch`, `text`, `gpu` | sprites and letters made of shapes; one texture, one draw call |
//! | `screens`, `rows`, `settings`, `keeper` | overlays, what can be set, and how it is kept |
//! | `input`, `sound` | keys and gamepads, what is heard |
//! | `probe`, `run` | whether a window can be opened; the loop |
//! | `shots`, `proof`, `png` | pictures for documents, and whether they show what they should |
//! | `frame_times` | how long a picture takes |
//! | `studio`, `xvfb` | a window of one known size; a display where there is none |
//!
//! Invariants: a picture is a pure function of scene and effects; what is held in a frame is in that frame's picture;
//! no file is loaded, and no library is needed to build.

mod art;
mod atlas;
mod batch;
mod bursts;
mod camera;
mod effects;
mod frame_times;
mod gpu;
mod input;
mod keeper;
mod paint;
mod palette;
mod particles;
mod png;
mod probe;
mod proof;
mod rect;
mod rows;
mod run;
mod scene;
mod screens;
mod settings;
mod shots;
mod sound;
mod stage;
mod studio;
mod text;
mod xvfb;

pub use frame_times::{FrameTimes, measure};
pub use macroquad::miniquad::conf::LinuxBackend as Backend;
pub use probe::{NoWindow, display};
pub use proof::Unseen;
pub use run::{WindowOptions, WindowRefused, run};
pub use shots::shots;
pub use studio::{SIZE as SHOT_SIZE, ShotsError};
pub use xvfb::{NoDisplay, run_again};
