//! [`Bindings`]: which key does what. Any of them can be changed in the settings.
//!
//! Own code: it is one table, of macroquad's key codes.

use std::collections::BTreeMap;

use macroquad::prelude::KeyCode;

/// One row for each act: what it is called, and the key that it has unless somebody chose another one.
macro_rules! acts {
    ($($act:ident $name:literal $key:ident)*) => {
        /// What a key can do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum WindowAct {
            $($act,)*
        }

        impl WindowAct {
            pub(crate) const ALL: [WindowAct; [$($name),*].len()] = [$(WindowAct::$act),*];

            /// In words.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(WindowAct::$act => $name,)*
                }
            }

            const fn default_key(self) -> KeyCode {
                match self {
                    $(WindowAct::$act => KeyCode::$key,)*
                }
            }
        }
    };
}

acts! {
    Up           "up"                     W
    Left         "left"                   A
    Down         "down"                   S
    Right        "right"                  D
    // Beside the mouse's button.
    Fire         "fire"                   LeftControl
    Dash         "dash"                   Space
    Light        "light a barrel"         E
    Ready        "ready"                  R
    Settings     "settings"               Tab
    Help         "help"                   F1
    Ghosts       "the authority's ghosts" F2
    Netgraph     "netgraph"               F3
    Link         "next link preset"       F4
    Prediction   "prediction on, off"     F5
    Smoothing    "smoothing on, off"      F6
    Save         "save a replay"          F9
    Screenshot   "screenshot"             F12
    Quit         "quit"                   Escape
    SecondUp     "up"                     Up
    SecondLeft   "left"                   Left
    SecondDown   "down"                   Down
    SecondRight  "right"                  Right
    SecondFire   "fire"                   RightControl
    SecondDash   "dash"                   RightShift
    SecondLight  "light a barrel"         Slash
    SecondReady  "ready"                  Enter
}

impl WindowAct {
    /// Where the second seat walks, and what chooses in lists.
    pub(crate) const SECOND_WAYS: [WindowAct; 4] = {
        use WindowAct::*;
        [SecondUp, SecondLeft, SecondDown, SecondRight]
    };

    /// Those whose keys the settings offer to change.
    pub(crate) const CHANGEABLE: [WindowAct; 8] = {
        use WindowAct::*;
        [Up, Left, Down, Right, Fire, Dash, Light, Ready]
    };

    /// The act that a file calls so.
    fn of(text: &str) -> Option<WindowAct> {
        let mut all = WindowAct::ALL.into_iter();
        all.find(|act| format!("{act:?}") == text)
    }
}

/// All keys, by the names that they have in a file.
macro_rules! keys {
    ($($key:ident)*) => {
        const KEYS: &[(&str, KeyCode)] = &[$((stringify!($key), KeyCode::$key)),*];
    };
}

keys! {
    Space Apostrophe Comma Minus Period Slash Semicolon Equal LeftBracket Backslash RightBracket GraveAccent
    Key0 Key1 Key2 Key3 Key4 Key5 Key6 Key7 Key8 Key9 A B C D E F G H I J K L M N O P Q R S T U V W X Y Z
    Escape Enter Tab Backspace Insert Delete Right Left Down Up PageUp PageDown Home End
    CapsLock ScrollLock NumLock PrintScreen Pause World1 World2 Menu Back Unknown
    F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 F16 F17 F18 F19 F20 F21 F22 F23 F24 F25
    Kp0 Kp1 Kp2 Kp3 Kp4 Kp5 Kp6 Kp7 Kp8 Kp9 KpDecimal KpDivide KpMultiply KpSubtract KpAdd KpEnter KpEqual
    LeftShift LeftControl LeftAlt LeftSuper RightShift RightControl RightAlt RightSuper
}

/// So much of a file's word as a message has room for.
fn shortened(word: &str) -> String {
    word.chars().take(24).collect()
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bindings([KeyCode; WindowAct::ALL.len()]);

impl Default for Bindings {
    fn default() -> Bindings {
        Bindings(WindowAct::ALL.map(WindowAct::default_key))
    }
}

impl Bindings {
    pub(crate) fn key(&self, act: WindowAct) -> KeyCode {
        self.0[act as usize]
    }

    /// Gives an act another key; whoever had that key takes the old one, so that none is without.
    pub(crate) fn bind(&mut self, act: WindowAct, key: KeyCode) {
        let old = self.key(act);
        if let Some(other) = self.0.iter_mut().find(|bound| **bound == key) {
            *other = old;
        }
        self.0[act as usize] = key;
    }

    /// As a file has it: acts and keys by name.
    pub(crate) fn to_names(&self) -> BTreeMap<String, String> {
        let named = |act: WindowAct| (format!("{act:?}"), format!("{:?}", self.key(act)));
        WindowAct::ALL.into_iter().map(named).collect()
    }

    /// Reads what a file has; what it has not stays as usual.
    ///
    /// # Errors
    /// In words: there is no such act or key, or two acts have the same key.
    pub(crate) fn of_names(names: &BTreeMap<String, String>) -> Result<Bindings, String> {
        let mut bindings = Bindings::default();
        for (act, key) in names {
            let known = WindowAct::of(act)
                .ok_or_else(|| format!("expected an act such as Dash, got {:?}", shortened(act)))?;
            let found = KEYS.iter().find(|(name, _)| name == key);
            let (_, code) = found.ok_or_else(|| {
                format!(
                    "expected a key such as Space for {act}, got {:?}",
                    shortened(key)
                )
            })?;
            bindings.0[known as usize] = *code;
        }
        for (n, act) in WindowAct::ALL.into_iter().enumerate() {
            let key = bindings.key(act);
            if let Some(other) = bindings.0[..n].iter().position(|other| *other == key) {
                let other = WindowAct::ALL[other];
                return Err(format!(
                    "expected a key of its own for each act, got {key:?} for {other:?} and {act:?}"
                ));
            }
        }
        Ok(bindings)
    }

    /// Several keys' names, in a row.
    pub(crate) fn names<const N: usize>(&self, acts: [WindowAct; N]) -> String {
        const ARROWS: [KeyCode; 4] = [KeyCode::Up, KeyCode::Left, KeyCode::Down, KeyCode::Right];
        if acts.iter().map(|act| self.key(*act)).eq(ARROWS) {
            return "arrows".to_owned();
        }
        acts.map(|act| self.name(act)).join(" ")
    }

    /// A key's name, as it is printed on it.
    pub(crate) fn name(&self, act: WindowAct) -> String {
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
        for (n, act) in WindowAct::ALL.into_iter().enumerate() {
            assert_eq!(act as usize, n);
            let same = WindowAct::ALL
                .iter()
                .filter(|other| keys.key(**other) == keys.key(act));
            assert_eq!(same.count(), 1, "{act:?}");
        }
    }

    #[test]
    fn a_key_that_is_taken_is_swapped() {
        let mut keys = Bindings::default();
        keys.bind(WindowAct::Dash, KeyCode::E);
        assert_eq!(
            (keys.key(WindowAct::Dash), keys.key(WindowAct::Light)),
            (KeyCode::E, KeyCode::Space)
        );
        keys.bind(WindowAct::Up, KeyCode::Q);
        assert_eq!(keys.key(WindowAct::Up), KeyCode::Q);
        assert_eq!(
            (keys.name(WindowAct::Up), keys.name(WindowAct::Quit)),
            ("Q".to_owned(), "Esc".to_owned())
        );
    }

    #[test]
    fn what_was_bound_is_the_same_after_it_was_written_and_read() {
        let mut keys = Bindings::default();
        keys.bind(WindowAct::Dash, KeyCode::KpEnter);
        keys.bind(WindowAct::Up, KeyCode::Tab);
        assert_eq!(Bindings::of_names(&keys.to_names()), Ok(keys));
        assert_eq!(
            Bindings::of_names(&BTreeMap::new()),
            Ok(Bindings::default())
        );
        assert!(KEYS.iter().all(|(name, key)| format!("{key:?}") == *name));
    }

    #[test]
    fn what_no_key_or_act_is_called_is_refused_and_so_is_a_key_for_two() {
        for (act, key, complaint) in [
            ("Fly", "A", "an act"),
            ("Dash", "Any", "a key such as"),
            ("Dash", "W", "a key of its own"),
        ] {
            let names = BTreeMap::from([(act.to_owned(), key.to_owned())]);
            let refused = Bindings::of_names(&names).unwrap_err();
            assert!(refused.contains(complaint), "{refused}");
        }
    }
}
