//! [`WindowPicture`]: all that is painted.

use crate::scene::ViewScene;
use crate::scene::effects::ViewEffects;
use crate::window::camera::Camera;
use crate::window::rect::Rect;
use crate::window::screens::Screens;
use crate::window::settings::Settings;

/// All that a picture is made of.
pub(crate) struct WindowPicture<'a> {
    pub(crate) scene: &'a ViewScene,
    pub(crate) effects: &'a ViewEffects,
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
