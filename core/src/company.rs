//! Who else is there: what players want to be called, and how good their links are.
//!
//! Nothing of this is part of a world: it is told beside the frames, and no step may look at it. Law *Hostile wire*:
//! whatever text came in, a [`Name`] is short, in one line, and shows as what it is.

use alloc::string::String;
use core::fmt;

use arrayvec::ArrayString;
use serde::{Deserialize, Serialize};

/// The longest name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 48;
/// The longest name, in characters.
pub const NAME_CHARS_MAX: usize = 16;

/// What a player wants to be called: nobody has checked who it is, and two may have the same.
///
/// ```
/// use twinstep_core::company::Name;
///
/// assert_eq!(Name::new("  Anna\tBerta\n").as_str(), "Anna Berta");
/// assert_eq!(Name::new("\u{1b}[31mred").as_str(), "[31mred");
/// assert!(Name::new("\u{202e}").is_empty());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Name(ArrayString<NAME_BYTES_MAX>);

impl Name {
    /// As much of a text as can be a name: no control characters, nothing invisible, nothing that turns or covers the
    /// text around it, single spaces, at most [`NAME_CHARS_MAX`] characters. Empty if nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Name {
        let mut name = ArrayString::new();
        let mut chars = 0;
        for word in text.split_whitespace() {
            let mut begins = true;
            for char in word.chars().filter(|char| shows(*char)) {
                let gap = begins && !name.is_empty();
                begins = false;
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
            }
        }
        Name(name)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is wished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a character has a shape of its own and keeps to its place: no controls, joiners, marks of direction or
/// variation, marks that pile up on the one before, or characters without a meaning for everybody.
fn shows(char: char) -> bool {
    !char.is_control()
        && !matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}'
            | '\u{0300}'..='\u{036f}' | '\u{0483}'..='\u{0489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20d0}'..='\u{20ff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{fff0}'..='\u{ffff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
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

/// How good a player's link is, as the server measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkQuality {
    /// The smoothed round trip in ms, up to 1,020 in steps of 4.
    pub rtt_ms: u16,
    /// Packets of the player that did not come, of 100.
    pub loss_percent: u8,
    /// The newest input held minus the next tick to seal, in ticks: below 0, inputs come late and are filled. In
    /// lockstep 0.
    pub margin_ticks: i8,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_keeps_what_shows() {
        for (text, name) in [
            ("Anna", "Anna"),
            ("Jörg ☃ 世界", "Jörg ☃ 世界"),
            (" \u{a0}two \r\n lines ", "two lines"),
            ("a\u{200d}b\u{202e}c\u{0}d", "abcd"),
            ("z\u{300}\u{301}\u{302}a", "za"),
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
        fn any_text_makes_a_short_name_in_one_line_that_stays_itself(text in "\\PC*|.*") {
            let name = Name::new(&text);
            prop_assert!(name.as_str().len() <= NAME_BYTES_MAX);
            prop_assert!(name.as_str().chars().count() <= NAME_CHARS_MAX);
            prop_assert!(name.as_str().chars().all(shows));
            prop_assert_eq!(name.as_str(), name.as_str().trim());
            prop_assert_eq!(Name::new(name.as_str()), name);
        }

        #[test]
        fn a_name_off_the_wire_is_cleaned_too(text in ".{0,60}") {
            let bytes = {
                let mut bytes = alloc::vec::Vec::new();
                crate::codec::append(&text, &mut bytes).unwrap();
                bytes
            };
            let name: Name = crate::codec::decode_whole(&bytes).unwrap();
            prop_assert_eq!(name, Name::new(&text));
        }
    }
}
