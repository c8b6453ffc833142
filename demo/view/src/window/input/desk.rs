//! [`Board`]: keyboard and mouse at one moment.

use glam::{Vec2, vec2};
use macroquad::prelude::{
    KeyCode, MouseButton, get_last_key_pressed, is_key_down, is_key_pressed, is_mouse_button_down,
    is_mouse_button_pressed, mouse_position, mouse_wheel,
};

use super::bindings::{Bindings, WindowAct};

/// What is held, and what was pressed since the last frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    held: Vec<WindowAct>,
    pressed: Vec<WindowAct>,
    /// Whatever key was pressed, bound or not.
    pub(crate) key: Option<KeyCode>,
    /// In pixels.
    pub(crate) mouse: Vec2,
    pub(crate) button: bool,
    pub(crate) clicked: bool,
    /// Up is above 0.
    pub(crate) wheel: f32,
}

impl Board {
    pub(crate) fn holds(&self, act: WindowAct) -> bool {
        self.held.contains(&act)
    }

    pub(crate) fn pressed(&self, act: WindowAct) -> bool {
        self.pressed.contains(&act)
    }

    /// A board on which these acts are held, and were pressed just now.
    #[cfg(test)]
    pub(crate) fn with(acts: &[WindowAct]) -> Board {
        Board {
            held: acts.to_vec(),
            pressed: acts.to_vec(),
            ..Board::default()
        }
    }
}

/// Reads keyboard and mouse of the window.
pub(crate) fn read(bindings: &Bindings, board: &mut Board) {
    board.held.clear();
    board.pressed.clear();
    for act in WindowAct::ALL {
        if is_key_down(bindings.key(act)) {
            board.held.push(act);
        }
        if is_key_pressed(bindings.key(act)) {
            board.pressed.push(act);
        }
    }
    board.key = get_last_key_pressed();
    let (x, y) = mouse_position();
    board.mouse = vec2(x, y);
    board.button = is_mouse_button_down(MouseButton::Left);
    board.clicked = is_mouse_button_pressed(MouseButton::Left);
    board.wheel = mouse_wheel().1;
}
