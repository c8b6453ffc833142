//! [`Bindings`]: which key does what. Any of them can be changed in the settings.

use macroquad::prelude::KeyCode;

/// What a key can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Up,
    Left,
    Down,
    Right,
    Fire,
    Dash,
    Light,
    Ready,
    Settings,
    Help,
    Ghosts,
    Netgraph,
    Link,
    Prediction,
    Smoothing,
    Save,
    Screenshot,
    Quit,
    SecondUp,
    SecondLeft,
    SecondDown,
    SecondRight,
    SecondFire,
    SecondDash,
    SecondLight,
    SecondReady,
}

impl Act {
    pub(crate) const ALL: [Act; 26] = {
        use Act::*;
        [
            Up,
            Left,
            Down,
            Right,
            Fire,
            Dash,
            Light,
            Ready,
            Settings,
            Help,
            Ghosts,
            Netgraph,
            Link,
            Prediction,
            Smoothing,
            Save,
            Screenshot,
            Quit,
            SecondUp,
            SecondLeft,
            SecondDown,
            SecondRight,
            SecondFire,
            SecondDash,
            SecondLight,
            SecondReady,
        ]
    };

    /// Those whose keys the settings offer to change.
    pub(crate) const CHANGEABLE: [Act; 8] = {
        use Act::*;
        [Up, Left, Down, Right, Fire, Dash, Light, Ready]
    };

    /// In words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Act::Up | Act::SecondUp => "up",
            Act::Left | Act::SecondLeft => "left",
            Act::Down | Act::SecondDown => "down",
            Act::Right | Act::SecondRight => "right",
            Act::Fire | Act::SecondFire => "fire",
            Act::Dash | Act::SecondDash => "dash",
            Act::Light | Act::SecondLight => "light a barrel",
            Act::Ready | Act::SecondReady => "ready",
            Act::Settings => "settings",
            Act::Help => "help",
            Act::Ghosts => "the authority's ghosts",
            Act::Netgraph => "netgraph",
            Act::Link => "next link preset",
            Act::Prediction => "prediction on, off",
            Act::Smoothing => "smoothing on, off",
            Act::Save => "save a replay",
            Act::Screenshot => "screenshot",
            Act::Quit => "quit",
        }
    }

    const fn default_key(self) -> KeyCode {
        match self {
            Act::Up => KeyCode::W,
            Act::Left => KeyCode::A,
            Act::Down => KeyCode::S,
            Act::Right => KeyCode::D,
            // Beside the mouse's button.
            Act::Fire => KeyCode::LeftControl,
            Act::Dash => KeyCode::Space,
            Act::Light => KeyCode::E,
            Act::Ready => KeyCode::R,
            Act::Settings => KeyCode::Tab,
            Act::Help => KeyCode::F1,
            Act::Ghosts => KeyCode::F2,
            Act::Netgraph => KeyCode::F3,
            Act::Link => KeyCode::F4,
            Act::Prediction => KeyCode::F5,
            Act::Smoothing => KeyCode::F6,
            Act::Save => KeyCode::F9,
            Act::Screenshot => KeyCode::F12,
            Act::Quit => KeyCode::Escape,
            Act::SecondUp => KeyCode::Up,
            Act::SecondLeft => KeyCode::Left,
            Act::SecondDown => KeyCode::Down,
            Act::SecondRight => KeyCode::Right,
            Act::SecondFire => KeyCode::RightControl,
            Act::SecondDash => KeyCode::RightShift,
            Act::SecondLight => KeyCode::Slash,
            Act::SecondReady => KeyCode::Enter,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bindings([KeyCode; Act::ALL.len()]);

impl Default for Bindings {
    fn default() -> Bindings {
        Bindings(Act::ALL.map(Act::default_key))
    }
}

impl Bindings {
    pub(crate) fn key(&self, act: Act) -> KeyCode {
        self.0[act as usize]
    }

    /// Gives an act another key; whoever had that key takes the old one, so that none is without.
    pub(crate) fn bind(&mut self, act: Act, key: KeyCode) {
        let old = self.key(act);
        if let Some(other) = self.0.iter_mut().find(|bound| **bound == key) {
            *other = old;
        }
        self.0[act as usize] = key;
    }

    /// Several keys' names, in a row.
    pub(crate) fn names<const N: usize>(&self, acts: [Act; N]) -> String {
        const ARROWS: [KeyCode; 4] = [KeyCode::Up, KeyCode::Left, KeyCode::Down, KeyCode::Right];
        if acts.iter().map(|act| self.key(*act)).eq(ARROWS) {
            return "arrows".to_owned();
        }
        acts.map(|act| self.name(act)).join(" ")
    }

    /// A key's name, as it is printed on it.
    pub(crate) fn name(&self, act: Act) -> String {
        let name = format!("{:?}", self.key(act));
        match name.as_str() {
            "LeftControl" => "Ctrl".to_owned(),
            "RightControl" => "right Ctrl".to_owned(),
            "LeftShift" => "Shift".to_owned(),
            "RightShift" => "right Shift".to_owned(),
            "Escape" => "Esc".to_owned(),
            "Slash" => "/".to_owned(),
            digit if digit.starts_with("Key") => digit.trim_start_matches("Key").to_owned(),
            _ => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_does_two_things() {
        let keys = Bindings::default();
        for (n, act) in Act::ALL.into_iter().enumerate() {
            assert_eq!(act as usize, n);
            let same = Act::ALL
                .iter()
                .filter(|other| keys.key(**other) == keys.key(act));
            assert_eq!(same.count(), 1, "{act:?}");
        }
    }

    #[test]
    fn a_key_that_is_taken_is_swapped() {
        let mut keys = Bindings::default();
        keys.bind(Act::Dash, KeyCode::E);
        assert_eq!(
            (keys.key(Act::Dash), keys.key(Act::Light)),
            (KeyCode::E, KeyCode::Space)
        );
        keys.bind(Act::Up, KeyCode::Q);
        assert_eq!(keys.key(Act::Up), KeyCode::Q);
        assert_eq!(
            (keys.name(Act::Up), keys.name(Act::Quit)),
            ("Q".to_owned(), "Esc".to_owned())
        );
    }
}
