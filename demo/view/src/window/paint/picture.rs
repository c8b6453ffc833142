//! [`WindowPicture`]: the input of all painting.

use crate::scene::ViewScene;
use crate::scene::effects::ViewEffects;
use crate::window::camera::Camera;
use crate::window::rect::Rect;
use crate::window::screens::Screens;
use crate::window::settings::Settings;

pub(crate) struct WindowPicture<'a> {
    pub(crate) scene: &'a ViewScene,
    pub(crate) effects: &'a ViewEffects,
    pub(crate) camera: &'a Camera,
    pub(crate) screens: &'a Screens,
    pub(crate) settings: &'a Settings,
    pub(crate) screen: Rect,
    // Frames a second, and whether they wait for the screen.
    pub(crate) frames: (f32, bool),
    pub(crate) is_alone: bool,
    /// The aim of the first seat, in pixels. `None` if the seat does not aim with a mouse.
    pub(crate) crosshair: Option<glam::Vec2>,
    /// The mouse pointer over screens and overlays, in pixels. `None` if no pointer is shown.
    pub(crate) pointer: Option<glam::Vec2>,
}
