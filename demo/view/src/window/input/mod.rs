//! Input of the local players: keyboard, mouse and gamepads become pads and orders.
//!
//! ```text
//!   keyboard, mouse ──read──▶ Board ─┐
//!                                    ├─ Hands::read ──▶ pads by seat, and orders
//!   gamepads (feature) ──▶ Stick ────┘
//! ```
//!
//! The first seat uses keyboard and mouse, and the gamepad too if there is no second seat. A second seat uses the
//! gamepad or, without one, the arrow keys.

mod gamepads;
mod hands;

use glam::{Vec2, vec2};
use macroquad::prelude::{
    KeyCode, MouseButton, get_last_key_pressed, is_key_down, is_key_pressed, is_mouse_button_down,
    is_mouse_button_pressed, mouse_position,
};

pub(crate) use gamepads::{Button, Gamepads, Stick};
pub(crate) use hands::{Hands, MouseView, SeatOrder};

/// One row for each action, with its key.
macro_rules! acts {
    ($($act:ident $key:ident)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum WindowAct {
            $($act,)*
        }

        impl WindowAct {
            const ALL: &[WindowAct] = &[$(WindowAct::$act),*];

            const fn key(self) -> KeyCode {
                match self {
                    $(WindowAct::$act => KeyCode::$key,)*
                }
            }
        }
    };
}

acts! {
    Up           W
    Left         A
    Down         S
    Right        D
    // Close to the hand that does not hold the mouse.
    Fire         LeftControl
    Dash         Space
    Light        E
    Ready        R
    Settings     Tab
    Help         F1
    Ghosts       F2
    Netgraph     F3
    Link         F4
    Prediction   F5
    Smoothing    F6
    Pause        P
    Mute         M
    Save         F9
    Fullscreen   F11
    Screenshot   F12
    Quit         Escape
    SecondUp     Up
    SecondLeft   Left
    SecondDown   Down
    SecondRight  Right
    SecondFire   RightControl
    SecondDash   RightShift
    SecondLight  Slash
    SecondReady  Enter
}

impl WindowAct {
    /// In a browser, replaces the Control keys, because Control and W close a tab, which no page can prevent.
    fn key_here(self) -> KeyCode {
        match self.key() {
            KeyCode::LeftControl if cfg!(target_arch = "wasm32") => KeyCode::LeftShift,
            KeyCode::RightControl if cfg!(target_arch = "wasm32") => KeyCode::Period,
            key => key,
        }
    }
}

/// Keyboard and mouse at one moment: what is held, and what was pressed since the last frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    held: Vec<WindowAct>,
    pressed: Vec<WindowAct>,
    pub(crate) is_touched: bool,
    pub(crate) mouse: Vec2,
    pub(crate) button: bool,
    pub(crate) clicked: bool,
}

impl Board {
    pub(crate) fn holds(&self, act: WindowAct) -> bool {
        self.held.contains(&act)
    }

    pub(crate) fn pressed(&self, act: WindowAct) -> bool {
        self.pressed.contains(&act)
    }

    /// A board on which these actions are held, and were just pressed.
    #[cfg(test)]
    pub(crate) fn with(acts: &[WindowAct]) -> Board {
        Board {
            held: acts.to_vec(),
            pressed: acts.to_vec(),
            ..Board::default()
        }
    }
}

pub(crate) fn read(board: &mut Board) {
    let those = |is: fn(KeyCode) -> bool| {
        let acts = WindowAct::ALL.iter().copied();
        acts.filter(|act| is(act.key_here())).collect()
    };
    board.held = those(is_key_down);
    board.pressed = those(is_key_pressed);
    board.is_touched = get_last_key_pressed().is_some();
    board.mouse = vec2(mouse_position().0, mouse_position().1);
    board.button = is_mouse_button_down(MouseButton::Left);
    board.clicked = is_mouse_button_pressed(MouseButton::Left);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_action() {
        for act in WindowAct::ALL {
            let same = WindowAct::ALL.iter().filter(|one| one.key() == act.key());
            assert_eq!(same.count(), 1, "{act:?}");
        }
    }
}
