//! Display names of players.
//!
//! Names are outside the world: they are sent in addition to the frames, and no step can read them. Law *Hostile wire*:
//! a [`Name`] created from any received text is short, has one line, and is displayed unchanged.

use alloc::string::String;
use core::fmt::{self, Write};

use arrayvec::ArrayString;
use serde::{Deserialize, Serialize};

use crate::text::{Look, Marks};

/// The longest name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 48;
/// The longest name, in characters.
pub const NAME_CHARS_MAX: usize = 16;

/// A player's chosen display name, which does not prove an identity. If two players choose names that look alike, the
/// match adds a number to the second.
///
/// ```
/// use twinstep_protocol::names::Name;
///
/// assert_eq!(Name::new("  Anna\tBerta\n").as_str(), "Anna Berta");
/// assert_eq!(Name::new("\u{1b}[31mred").as_str(), "[31mred");
/// assert!(Name::new("\u{202e}").is_empty());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Name(ArrayString<NAME_BYTES_MAX>);

impl Name {
    /// Turns a text into a clean name: no invisible or misplaced characters (see [`text`](crate::text)), no more marks
    /// on a letter than a language needs, single spaces, at most [`NAME_CHARS_MAX`] characters and [`NAME_BYTES_MAX`]
    /// bytes. Empty if no character is left.
    #[must_use]
    pub fn new(text: &str) -> Name {
        let mut name = ArrayString::new();
        let mut marks = Marks::default();
        let (mut chars, mut gap) = (0, false);
        for char in text.chars() {
            let look = Look::of(char);
            if look == Look::Space || char.is_whitespace() {
                // A space is written only before the next character, so leading and trailing spaces vanish.
                gap = !name.is_empty();
                marks = Marks::default();
                continue;
            }
            // A dropped character does not reset the marks of the letter before it.
            if look == Look::Nothing || !marks.take(char) {
                continue;
            }
            let room = name.remaining_capacity() >= char.len_utf8() + usize::from(gap);
            if chars + 1 + usize::from(gap) > NAME_CHARS_MAX || !room {
                return Name(name);
            }
            if gap {
                name.push(' ');
                chars += 1;
            }
            name.push(char);
            chars += 1;
            gap = false;
        }
        Name(name)
    }

    /// The name with a number after it, shortened to make space, for the second of two names that look alike.
    ///
    /// ```
    /// use twinstep_protocol::names::Name;
    ///
    /// assert_eq!(Name::new("Anna").numbered(2).as_str(), "Anna 2");
    /// assert_eq!(Name::new("a very long name").numbered(12).as_str(), "a very long n 12");
    /// ```
    #[must_use]
    pub fn numbered(&self, number: u8) -> Name {
        let mut digits = ArrayString::<4>::new();
        write!(digits, " {number}").expect("a space and at most three digits");
        let mut name = self.0;
        // Both limits apply: characters and bytes.
        while name.chars().count() + digits.len() > NAME_CHARS_MAX
            || name.remaining_capacity() < digits.len()
        {
            name.pop();
        }
        while name.ends_with(' ') {
            name.pop();
        }
        let digits = match name.is_empty() {
            true => digits.trim_start(),
            false => &digits,
        };
        name.push_str(digits);
        Name(name)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the name has no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.as_str().into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_keeps_its_visible_characters() {
        for (text, name) in [
            ("Anna", "Anna"),
            ("Jörg ☃ 世界", "Jörg ☃ 世界"),
            (" \u{a0}two \r\n lines ", "two lines"),
            ("a\u{200d}b\u{202e}c\u{0}d", "abcd"),
            ("z\u{300}\u{301}\u{302}a", "z\u{300}\u{301}a"),
            // Finding C9: blank letters, marks without a letter, characters without meaning.
            ("\u{3164}\u{2800}\u{115f}", ""),
            ("\u{16fe4}\u{13441}x\u{e0100}", "x"),
            ("\u{301}\u{20dd}a\u{378}\u{e000}", "a"),
            ("0123456789abcdefXYZ", "0123456789abcdef"),
            ("0123456789abcde X", "0123456789abcde"),
            ("\u{feff}\t", ""),
        ] {
            assert_eq!(Name::new(text).as_str(), name, "{text:?}");
        }
    }

    proptest! {
        /// Law *Hostile wire*.
        #[test]
        fn any_text_becomes_a_short_stable_one_line_name(text in "\\PC*|.*") {
            let name = Name::new(&text);
            prop_assert!(name.as_str().len() <= NAME_BYTES_MAX);
            prop_assert!(name.as_str().chars().count() <= NAME_CHARS_MAX);
            prop_assert!(crate::text::is_plain(name.as_str()));
            prop_assert_eq!(name.as_str(), name.as_str().trim());
            prop_assert_eq!(Name::new(name.as_str()), name);
        }

        #[test]
        fn a_numbered_name_is_a_valid_name_ending_with_its_number(text in "\\PC*", number in 2_u8..) {
            let alone = Name::default().numbered(number);
            prop_assert_eq!(alone.as_str(), alloc::format!("{number}"));
            let name = Name::new(&alloc::format!("x{text}")).numbered(number);
            prop_assert_eq!(Name::new(name.as_str()), name);
            let end = alloc::format!(" {number}");
            prop_assert!(name.as_str().ends_with(&end));
        }

        #[test]
        fn a_name_from_the_wire_is_also_cleaned(text in ".{0,60}") {
            let bytes = {
                let mut bytes = alloc::vec::Vec::new();
                twinstep_core::codec::append(&text, &mut bytes).unwrap();
                bytes
            };
            let name: Name = twinstep_core::codec::decode_whole(&bytes).unwrap();
            prop_assert_eq!(name, Name::new(&text));
        }
    }
}
