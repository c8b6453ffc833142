//! [`Layout`]: which number of a gamepad's driver is which button or stick.
//!
//! Linux numbers the buttons and axes of a gamepad in the order of their codes, and skips those that it does not have.
//! So number 7 is Start on one gamepad and a trigger on the next. Which ones a gamepad has stands in sysfs, as two sets
//! of bits:
//!
//! ```text
//!   /sys/class/input/js0/device/capabilities/key   7fdb000000000000 0 0 0 0  ──▶ numbers of buttons
//!                                            abs   3003f                     ──▶ numbers of axes
//! ```
//!
//! The driver has the same map, made from the same two sets, but asking for it (`JSIOCGBTNMAP`, `JSIOCGAXMAP`) needs an
//! unsafe call. Codes are those of Linux' `input-event-codes.h`.

/// The first code that is a gamepad's or a joystick's, and the first of all buttons; the latter are numbered last.
const BTN_JOYSTICK: usize = 0x120;
const BTN_MISC: usize = 0x100;
const KEY_CODES: usize = 0x300;
const ABS_CODES: usize = 0x40;

/// Buttons, by where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    South,
    East,
    West,
    Select,
    Start,
    RightBumper,
    RightTrigger,
    /// The same trigger, where it also tells how far it is pulled.
    Pull,
    Up,
    Left,
    Down,
    Right,
}

/// What moves between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    LeftX,
    LeftY,
    RightX,
    RightY,
    /// At rest it is at its lower end.
    Trigger,
    CrossX,
    CrossY,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    buttons: Vec<Option<Button>>,
    axes: Vec<Option<Axis>>,
}

impl Layout {
    /// Of a device with these sets of codes, as sysfs writes them; none: it is no gamepad.
    pub(super) fn of(keys: &str, axes: &str) -> Option<Layout> {
        let (keys, axes) = (Codes::parse(keys)?, Codes::parse(axes)?);
        let numbered = (BTN_JOYSTICK..KEY_CODES).chain(BTN_MISC..BTN_JOYSTICK);
        let layout = Layout {
            buttons: numbered
                .filter(|code| keys.has(*code))
                .map(button)
                .collect(),
            axes: (0..ABS_CODES)
                .filter(|code| axes.has(*code))
                .map(|code| axis(code, &axes))
                .collect(),
        };
        let walks = layout.axes.contains(&Some(Axis::LeftX));
        (walks && layout.buttons.contains(&Some(Button::South))).then_some(layout)
    }

    /// What most have, for a device that does not say.
    pub(super) fn usual() -> Layout {
        use Button::{East, RightBumper, Select, South, Start, West};
        let (cross_x, cross_y) = (Some(Axis::CrossX), Some(Axis::CrossY));
        Layout {
            buttons: vec![
                Some(South),
                Some(East),
                Some(West),
                Some(West),
                None,
                Some(RightBumper),
                Some(Select),
                Some(Start),
            ],
            axes: vec![
                Some(Axis::LeftX),
                Some(Axis::LeftY),
                None,
                Some(Axis::RightX),
                Some(Axis::RightY),
                Some(Axis::Trigger),
                cross_x,
                cross_y,
            ],
        }
    }

    pub(super) fn button(&self, number: u8) -> Option<Button> {
        *self.buttons.get(usize::from(number))?
    }

    pub(super) fn axis(&self, number: u8) -> Option<Axis> {
        *self.axes.get(usize::from(number))?
    }
}

/// Drivers disagree on which of the two upper buttons is in the west, so both are; pads of no known make have joystick
/// codes, of which the lower ones are the four on the right, and the odd ones after them on the right side.
fn button(code: usize) -> Option<Button> {
    Some(match code {
        0x130 | 0x121 | 0x122 => Button::South,
        0x131 => Button::East,
        0x133 | 0x134 | 0x120 | 0x123 => Button::West,
        0x137 | 0x125 => Button::RightBumper,
        0x139 | 0x127 => Button::RightTrigger,
        0x13a | 0x128 => Button::Select,
        0x13b | 0x129 => Button::Start,
        0x220 => Button::Up,
        0x221 => Button::Down,
        0x222 => Button::Left,
        0x223 => Button::Right,
        _ => return None,
    })
}

/// Where the right stick has axes of its own, Z and RZ are triggers; else they are the right stick.
fn axis(code: usize, axes: &Codes) -> Option<Axis> {
    const Z: usize = 2;
    const RX: usize = 3;
    const RY: usize = 4;
    const RZ: usize = 5;
    let has_own = axes.has(RX) && axes.has(RY);
    Some(match code {
        0 => Axis::LeftX,
        1 => Axis::LeftY,
        RX if has_own => Axis::RightX,
        RY if has_own => Axis::RightY,
        RZ if has_own => Axis::Trigger,
        Z if axes.has(RZ) && !has_own => Axis::RightX,
        RZ if axes.has(Z) => Axis::RightY,
        // The right one of two pedals.
        9 => Axis::Trigger,
        0x10 => Axis::CrossX,
        0x11 => Axis::CrossY,
        _ => return None,
    })
}

/// A set of codes.
struct Codes(Vec<usize>);

impl Codes {
    /// Words in hexadecimal, the highest first, as long as this program's own.
    fn parse(text: &str) -> Option<Codes> {
        let words = text.split_whitespace().rev();
        let words = words.map(|word| usize::from_str_radix(word, 16).ok());
        words.collect::<Option<_>>().map(Codes)
    }

    fn has(&self, code: usize) -> bool {
        let bits = usize::BITS as usize;
        let word = self.0.get(code / bits).copied().unwrap_or_default();
        word >> (code % bits) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set as sysfs writes it.
    fn words(codes: &[usize]) -> String {
        let bits = usize::BITS as usize;
        let count = codes.iter().max().map_or(1, |max| max / bits + 1);
        let mut words = vec![0; count];
        codes
            .iter()
            .for_each(|code| words[code / bits] |= 1 << (code % bits));
        let words = words.iter().rev().map(|word: &usize| format!("{word:x}"));
        words.collect::<Vec<_>>().join(" ")
    }

    const STICKS_AND_TRIGGERS: [usize; 8] = [0, 1, 2, 3, 4, 5, 0x10, 0x11];

    fn numbered(layout: &Layout) -> Vec<(u8, Button)> {
        (0..32)
            .filter_map(|n| Some((n, layout.button(n)?)))
            .collect()
    }

    /// By Linux' `xpad.c`.
    #[test]
    fn an_xbox_pad_is_as_most_are() {
        let keys = [
            0x130, 0x131, 0x133, 0x134, 0x136, 0x137, 0x13a, 0x13b, 0x13c, 0x13d, 0x13e,
        ];
        let layout = Layout::of(&words(&keys), &words(&STICKS_AND_TRIGGERS)).unwrap();
        assert_eq!(numbered(&layout), numbered(&Layout::usual()));
        assert_eq!(layout.axes, Layout::usual().axes);
    }

    /// By Linux' `hid-playstation.c`: its triggers are buttons as well, so all that follow have other numbers.
    #[test]
    fn start_of_a_sony_pad_has_another_number() {
        let keys: Vec<usize> = [0x130, 0x131, 0x133, 0x134]
            .into_iter()
            .chain(0x136..=0x13e)
            .collect();
        let layout = Layout::of(&words(&keys), &words(&STICKS_AND_TRIGGERS)).unwrap();
        assert_eq!(
            numbered(&layout),
            [
                (0, Button::South),
                (1, Button::East),
                (2, Button::West),
                (3, Button::West),
                (5, Button::RightBumper),
                (7, Button::RightTrigger),
                (8, Button::Select),
                (9, Button::Start),
            ]
        );
        assert_eq!(layout.axis(5), Some(Axis::Trigger));
        #[cfg(target_pointer_width = "64")]
        assert_eq!(
            words(&keys),
            "7fdb000000000000 0 0 0 0",
            "as the kernel has it"
        );
    }

    /// Without a driver of its own a pad has joystick codes, and its right stick is on Z and RZ.
    #[test]
    fn a_pad_of_no_known_make_has_both_sticks_and_start() {
        let keys: Vec<usize> = (0x120..0x12c).collect();
        let layout = Layout::of(&words(&keys), &words(&[0, 1, 2, 5, 0x10, 0x11])).unwrap();
        assert_eq!(layout.button(9), Some(Button::Start));
        assert_eq!(
            (layout.axis(2), layout.axis(3)),
            (Some(Axis::RightX), Some(Axis::RightY))
        );
    }

    #[test]
    fn buttons_below_the_joystick_s_are_numbered_last() {
        let keys = [0x100, 0x130, 0x13b];
        let layout = Layout::of(&words(&keys), &words(&[0, 1])).unwrap();
        assert_eq!(numbered(&layout), [(0, Button::South), (1, Button::Start)]);
        assert_eq!(layout.buttons.len(), 3);
    }

    #[test]
    fn what_has_no_stick_or_no_button_is_no_gamepad() {
        assert_eq!(Layout::of(&words(&[0x110, 0x111]), &words(&[0, 1])), None);
        assert_eq!(Layout::of(&words(&[0x130]), &words(&[0x28])), None);
        assert_eq!(Layout::of("no set", "3"), None);
    }
}
