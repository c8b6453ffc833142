//! [`WindowPicture`]: all that is painted.

use crate::window::camera::Camera;
use crate::window::effects::WindowEffects;
use crate::window::rect::Rect;
use crate::window::scene::WindowScene;
use crate::window::screens::Screens;
use crate::window::settings::Settings;

/// All that a picture is made of.
pub(crate) struct WindowPicture<'a> {
    pub(crate) scene: &'a WindowScene,
    pub(crate) effects: &'a WindowEffects,
    pub(crate) camera: &'a Camera,
    pub(crate) screens: &'a Screens,
    pub(crate) settings: &'a Settings,
    /// The window, in pixels.
    pub(crate) screen: Rect,
    /// Where the first seat aims, in pixels; none: nobody aims with a mouse.
    pub(crate) crosshair: Option<glam::Vec2>,
    /// Where the mouse points at what is written, in pixels; none: there is nothing to point at.
    pub(crate) pointer: Option<glam::Vec2>,
}
