//! [`Stick`]: a gamepad at one moment, as its driver's events make it.
//!
//! An event has 8 bytes: a time in ms, a value, a kind and a number (Linux, `joystick-api.rst`). What the number means
//! differs between gamepads: see [`Layout`].

use glam::Vec2;

use super::layout::{Axis, Button, Layout};

/// A trigger or a cross that is moved farther is a button.
const PULLED: f32 = 0.3;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stick {
    /// −1 ..= 1 each; y is up.
    pub(crate) left: Vec2,
    pub(crate) right: Vec2,
    held: u16,
    pressed: u16,
}

impl Stick {
    pub(crate) fn holds(&self, button: Button) -> bool {
        self.held & 1 << button as u16 != 0
    }

    /// Whether it was pressed since the last frame.
    pub(crate) fn pressed(&self, button: Button) -> bool {
        self.pressed & 1 << button as u16 != 0
    }

    /// Whether a button was pressed that says: go on.
    pub(crate) fn begins(&self) -> bool {
        self.pressed(Button::Start) || self.pressed(Button::South)
    }

    /// Whether it is fired with.
    pub(crate) fn fires(&self) -> bool {
        [Button::RightBumper, Button::RightTrigger, Button::Pull]
            .into_iter()
            .any(|button| self.holds(button))
    }

    /// Whether anything on it was pressed since the last frame.
    pub(crate) fn is_touched(&self) -> bool {
        self.pressed != 0
    }

    /// A frame begins.
    pub(super) fn begin(&mut self) {
        self.pressed = 0;
    }

    fn set(&mut self, button: Button, down: bool) {
        let bit = 1 << button as u16;
        if !down {
            self.held &= !bit;
        } else if self.held & bit == 0 {
            self.held |= bit;
            self.pressed |= bit;
        }
    }

    #[cfg(test)]
    pub(crate) fn press(&mut self, button: Button) {
        self.set(button, true);
    }

    /// Takes an event of the driver.
    pub(super) fn handle(&mut self, event: [u8; 8], layout: &Layout) {
        const BUTTON: u8 = 1;
        const AXIS: u8 = 2;
        /// Set in what is told when the file is opened: it is held, and was not pressed now.
        const AT_FIRST: u8 = 0x80;
        let value = i16::from_le_bytes([event[4], event[5]]);
        let pressed = self.pressed;
        match event[6] & !AT_FIRST {
            BUTTON => {
                if let Some(button) = layout.button(event[7]) {
                    self.set(button, value != 0);
                }
            }
            AXIS => {
                if let Some(axis) = layout.axis(event[7]) {
                    self.move_to(axis, f32::from(value) / f32::from(i16::MAX));
                }
            }
            _ => {}
        }
        if event[6] & AT_FIRST != 0 {
            self.pressed = pressed;
        }
    }

    fn move_to(&mut self, axis: Axis, part: f32) {
        match axis {
            Axis::LeftX => self.left.x = part,
            Axis::LeftY => self.left.y = -part,
            Axis::RightX => self.right.x = part,
            Axis::RightY => self.right.y = -part,
            Axis::Trigger => self.set(Button::Pull, (part + 1.0) * 0.5 > PULLED),
            Axis::CrossX => {
                self.set(Button::Left, part < -PULLED);
                self.set(Button::Right, part > PULLED);
            }
            Axis::CrossY => {
                self.set(Button::Up, part < -PULLED);
                self.set(Button::Down, part > PULLED);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(value: i16, kind: u8, number: u8) -> [u8; 8] {
        let [low, high] = value.to_le_bytes();
        [1, 2, 3, 4, low, high, kind, number]
    }

    fn stick_after(layout: &Layout, events: &[[u8; 8]]) -> Stick {
        let mut stick = Stick::default();
        events.iter().for_each(|event| stick.handle(*event, layout));
        stick
    }

    #[test]
    fn sticks_point_where_they_are_pushed() {
        let pushed = [
            event(i16::MAX, 2, 0),
            event(-i16::MAX, 2, 1),
            event(-i16::MAX, 2, 3),
            event(i16::MAX, 2, 4),
        ];
        let stick = stick_after(&Layout::usual(), &pushed);
        assert_eq!(stick.left, Vec2::new(1.0, 1.0), "up is up");
        assert_eq!(stick.right, Vec2::new(-1.0, -1.0));
    }

    #[test]
    fn a_button_is_pressed_once_however_long_it_is_held() {
        let (mut stick, layout) = (Stick::default(), Layout::usual());
        stick.handle(event(1, 1, 0), &layout);
        assert!(stick.holds(Button::South) && stick.pressed(Button::South));
        stick.begin();
        stick.handle(event(1, 1, 0), &layout);
        assert!(stick.holds(Button::South) && !stick.pressed(Button::South));
        stick.handle(event(0, 1, 0), &layout);
        assert!(!stick.holds(Button::South));
    }

    #[test]
    fn what_is_held_when_a_gamepad_is_connected_is_not_pressed() {
        let stick = stick_after(&Layout::usual(), &[event(1, 0x81, 0)]);
        assert!(stick.holds(Button::South) && !stick.is_touched());
    }

    #[test]
    fn a_trigger_is_pulled_beyond_a_third_and_a_cross_points_one_way_at_a_time() {
        let layout = Layout::usual();
        for (value, fires) in [(-i16::MAX, false), (0, true)] {
            assert_eq!(stick_after(&layout, &[event(value, 2, 5)]).fires(), fires);
        }
        let stick = stick_after(&layout, &[event(-i16::MAX, 2, 6), event(i16::MAX, 2, 7)]);
        assert!(stick.holds(Button::Left) && stick.holds(Button::Down));
        assert!(!stick.holds(Button::Right) && !stick.holds(Button::Up));
    }

    /// A pad whose trigger is a button and an axis at once: it is held until both let go.
    #[test]
    fn a_trigger_that_is_also_a_button_is_held_by_either() {
        let mut stick = Stick::default();
        stick.press(Button::RightTrigger);
        stick.move_to(Axis::Trigger, -0.9);
        assert!(stick.fires());
    }
}
