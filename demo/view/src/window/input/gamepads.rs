//! [`Gamepads`]: the connected gamepads, each as a [`Stick`]. The crate `gilrs` reads them; it needs the headers of
//! libudev on Linux, so the feature `gamepads` is off by default. Without it there are no gamepads, except in a
//! browser.

use glam::Vec2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Button {
    South,
    East,
    West,
    Start,
    Select,
    Fire,
    Up,
    Left,
    Down,
    Right,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stick {
    /// From −1 to 1 on each axis; y is up.
    pub(crate) left: Vec2,
    pub(crate) right: Vec2,
    held: Vec<Button>,
    pressed: Vec<Button>,
}

impl Stick {
    pub(crate) fn holds(&self, button: Button) -> bool {
        self.held.contains(&button)
    }

    pub(crate) fn pressed(&self, button: Button) -> bool {
        self.pressed.contains(&button)
    }

    /// Returns `true` if a button was pressed that leaves the title.
    pub(crate) fn begins(&self) -> bool {
        self.pressed(Button::Start) || self.pressed(Button::South)
    }

    pub(crate) fn is_touched(&self) -> bool {
        !self.pressed.is_empty()
    }

    #[cfg(any(test, feature = "gamepads", target_arch = "wasm32"))]
    pub(crate) fn hold(&mut self, held: Vec<Button>) {
        let is_new = |button: &Button| !self.held.contains(button);
        self.pressed = held.iter().copied().filter(is_new).collect();
        self.held = held;
    }
}

#[derive(Default)]
pub(crate) struct Gamepads {
    sticks: Vec<Stick>,
    #[cfg(feature = "gamepads")]
    driver: Option<gilrs::Gilrs>,
}

impl Gamepads {
    pub(crate) fn of_system() -> Gamepads {
        Gamepads {
            sticks: Vec::new(),
            // Without a driver, the keyboard still works.
            #[cfg(feature = "gamepads")]
            driver: gilrs::Gilrs::new().ok(),
        }
    }

    pub(crate) fn read(&mut self) -> &[Stick] {
        #[cfg(feature = "gamepads")]
        self.read_driver();
        #[cfg(target_arch = "wasm32")]
        self.read_page();
        &self.sticks
    }

    /// Reads the browser's gamepads, with the button numbers of its standard layout.
    #[cfg(target_arch = "wasm32")]
    fn read_page(&mut self) {
        const BUTTONS: [(u32, Button); 11] = [
            (0, Button::South),
            (1, Button::East),
            (2, Button::West),
            (9, Button::Start),
            (8, Button::Select),
            (5, Button::Fire),
            (7, Button::Fire),
            (12, Button::Up),
            (13, Button::Down),
            (14, Button::Left),
            (15, Button::Right),
        ];
        let mut count = 0;
        crate::page::gamepads(|n, [x, y, aim_x, aim_y], bits| {
            count = n + 1;
            self.sticks
                .resize_with(count.max(self.sticks.len()), Stick::default);
            let stick = &mut self.sticks[n];
            // A browser's y axis points down.
            (stick.left, stick.right) = (Vec2::new(x, -y), Vec2::new(aim_x, -aim_y));
            let held = BUTTONS.iter().filter(|(bit, _)| bits >> bit & 1 == 1);
            stick.hold(held.map(|(_, button)| *button).collect());
        });
        self.sticks.truncate(count);
    }

    #[cfg(feature = "gamepads")]
    fn read_driver(&mut self) {
        use gilrs::{Axis, Button as Pressed};

        const BUTTONS: [(Pressed, Button); 11] = [
            (Pressed::South, Button::South),
            (Pressed::East, Button::East),
            (Pressed::West, Button::West),
            (Pressed::Start, Button::Start),
            (Pressed::Select, Button::Select),
            (Pressed::RightTrigger, Button::Fire),
            (Pressed::RightTrigger2, Button::Fire),
            (Pressed::DPadUp, Button::Up),
            (Pressed::DPadLeft, Button::Left),
            (Pressed::DPadDown, Button::Down),
            (Pressed::DPadRight, Button::Right),
        ];
        let Some(driver) = &mut self.driver else {
            return;
        };
        while driver.next_event().is_some() {}
        self.sticks
            .resize_with(driver.gamepads().count(), Stick::default);
        for ((_, gamepad), stick) in driver.gamepads().zip(&mut self.sticks) {
            let at = |x, y| Vec2::new(gamepad.value(x), gamepad.value(y));
            stick.left = at(Axis::LeftStickX, Axis::LeftStickY);
            stick.right = at(Axis::RightStickX, Axis::RightStickY);
            let held = BUTTONS.iter().filter(|(name, _)| gamepad.is_pressed(*name));
            stick.hold(held.map(|(_, button)| *button).collect());
        }
    }
}
