//! Gamepads, without any library: Linux offers each as a file of events (`/dev/input/js0` and so on).
//!
//! An event has 8 bytes: a time in ms, a value, a kind and a number (Linux, `joystick-api.rst`). Sticks and buttons
//! have the numbers that the drivers of the usual gamepads give them.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use glam::Vec2;

/// Gamepads that are looked for.
const GAMEPADS_MAX: usize = 4;
/// A trigger that is pulled farther is a button.
const PULLED: f32 = 0.3;

/// A gamepad that is there and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "no gamepad: {path} cannot be read ({source}); add yourself to the group `input`, or play with keys"
)]
pub(crate) struct NoGamepad {
    path: PathBuf,
    source: std::io::Error,
}

/// Buttons, by where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    South,
    West,
    Start,
    RightBumper,
    RightTrigger,
}

/// A gamepad at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stick {
    /// −1 ..= 1 each; y is up.
    pub(crate) left: Vec2,
    pub(crate) right: Vec2,
    held: u8,
    pressed: u8,
}

impl Stick {
    pub(crate) fn holds(&self, button: Button) -> bool {
        self.held & 1 << button as u8 != 0
    }

    /// Whether it was pressed since the last frame.
    pub(crate) fn pressed(&self, button: Button) -> bool {
        self.pressed & 1 << button as u8 != 0
    }

    /// Whether a button was pressed that says: go on.
    pub(crate) fn begins(&self) -> bool {
        self.pressed(Button::Start) || self.pressed(Button::South)
    }

    fn set(&mut self, button: Button, down: bool) {
        let bit = 1 << button as u8;
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
    fn handle(&mut self, event: [u8; 8]) {
        const BUTTON: u8 = 1;
        const AXIS: u8 = 2;
        /// Set in what is told when the file is opened.
        const AT_FIRST: u8 = 0x80;
        let value = i16::from_le_bytes([event[4], event[5]]);
        let part = f32::from(value) / f32::from(i16::MAX);
        match (event[6] & !AT_FIRST, event[7]) {
            (AXIS, 0) => self.left.x = part,
            (AXIS, 1) => self.left.y = -part,
            (AXIS, 3) => self.right.x = part,
            (AXIS, 4) => self.right.y = -part,
            // At rest it is at −1.
            (AXIS, 5) => self.set(Button::RightTrigger, (part + 1.0) * 0.5 > PULLED),
            (BUTTON, 0) => self.set(Button::South, value != 0),
            (BUTTON, 2) => self.set(Button::West, value != 0),
            (BUTTON, 5) => self.set(Button::RightBumper, value != 0),
            (BUTTON, 7 | 9) => self.set(Button::Start, value != 0),
            _ => {}
        }
    }
}

/// All gamepads that are connected.
#[derive(Default)]
pub(crate) struct Gamepads {
    files: Vec<(PathBuf, File)>,
    pub(crate) sticks: Vec<Stick>,
}

impl Gamepads {
    /// Opens those that are there. None is no fault.
    ///
    /// # Errors
    /// One is there that may not be read.
    pub(crate) fn open() -> Result<Gamepads, NoGamepad> {
        let mut gamepads = Gamepads::default();
        for n in 0..GAMEPADS_MAX {
            let path = PathBuf::from(format!("/dev/input/js{n}"));
            match open_without_waiting(&path) {
                Ok(file) => {
                    gamepads.files.push((path, file));
                    gamepads.sticks.push(Stick::default());
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(NoGamepad {
                        path,
                        source: error,
                    });
                }
                Err(_) => {}
            }
        }
        Ok(gamepads)
    }

    /// Reads what has happened since the last frame. One that is pulled out holds nothing any more.
    pub(crate) fn read(&mut self) {
        let mut n = 0;
        while n < self.files.len() {
            self.sticks[n].pressed = 0;
            if drain(&mut self.files[n].1, &mut self.sticks[n]) {
                n += 1;
            } else {
                self.files.remove(n);
                self.sticks.remove(n);
            }
        }
    }
}

/// Takes all events that wait; whether there may come more.
fn drain(source: &mut impl Read, stick: &mut Stick) -> bool {
    let mut event = [0; 8];
    loop {
        match source.read(&mut event) {
            Ok(8) => stick.handle(event),
            Ok(_) => return false,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[cfg(target_os = "linux")]
fn open_without_waiting(path: &PathBuf) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    const O_NONBLOCK: i32 = 0o4000;
    File::options()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_without_waiting(_: &PathBuf) -> std::io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(value: i16, kind: u8, number: u8) -> [u8; 8] {
        let [low, high] = value.to_le_bytes();
        [1, 2, 3, 4, low, high, kind, number]
    }

    /// Events, then nothing yet, or the end.
    struct Wire(Vec<[u8; 8]>, Option<ErrorKind>);

    impl Read for Wire {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return self.1.map_or(Ok(0), |kind| Err(kind.into()));
            }
            out.copy_from_slice(&self.0.remove(0));
            Ok(8)
        }
    }

    #[test]
    fn sticks_point_where_they_are_pushed() {
        let mut stick = Stick::default();
        let pushed = vec![
            event(i16::MAX, 2, 0),
            event(-i16::MAX, 2, 1),
            event(-i16::MAX, 2, 3),
            event(i16::MAX, 2, 4),
        ];
        assert!(drain(
            &mut Wire(pushed, Some(ErrorKind::WouldBlock)),
            &mut stick
        ));
        assert_eq!(stick.left, Vec2::new(1.0, 1.0), "up is up");
        assert_eq!(stick.right, Vec2::new(-1.0, -1.0));
    }

    #[test]
    fn a_button_is_pressed_once_however_long_it_is_held() {
        let mut stick = Stick::default();
        stick.handle(event(1, 1, 0));
        assert!(stick.holds(Button::South) && stick.pressed(Button::South));
        stick.pressed = 0;
        stick.handle(event(1, 1, 0));
        assert!(stick.holds(Button::South) && !stick.pressed(Button::South));
        stick.handle(event(0, 1, 0));
        assert!(!stick.holds(Button::South));
        // At rest, half pulled, and told when the file was opened.
        for (value, held) in [(-i16::MAX, false), (0, true)] {
            stick.handle(event(value, 0x82, 5));
            assert_eq!(stick.holds(Button::RightTrigger), held);
        }
    }

    #[test]
    fn a_gamepad_that_is_pulled_out_is_gone() {
        let mut stick = Stick::default();
        assert!(!drain(&mut Wire(Vec::new(), None), &mut stick));
        assert!(!drain(
            &mut Wire(Vec::new(), Some(ErrorKind::NotFound)),
            &mut stick
        ));
    }
}
