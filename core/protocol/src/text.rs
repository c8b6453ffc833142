//! Shows foreign text, from a file, a ticket or a peer, without effects on its surroundings.
//!
//! ```text
//!   a journal's reason, an identity, a report ──▶ line(text) ──▶ one row, clipped, right-to-left isolated ──┐
//!   a whole message of our own, with such pieces in it ──▶ plain(text) ──▶ many rows, not clipped ──────────┴▶ shown
//! ```
//!
//! Invariant (law *Hostile wire*): except for isolates, and the line breaks of [`plain`], the output contains no
//! character that controls a terminal, that reorders or covers the text around it, or that is invisible. Such
//! characters are escaped like `\u{1b}`, so that they stay visible to a reader who searches for a cause. Characters are
//! judged by general category and by a list of invisible ones. Unassigned and private-use characters are also escaped.

use core::fmt::{self, Write};

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// The maximum number of characters shown of foreign text. Escapes count at their written length.
pub const LINE_CHARS_MAX: usize = 300;
/// The maximum number of marks on a letter. Two are enough for every living script.
pub const MARKS_MAX: usize = 2;

/// Starts a text whose direction does not affect its neighbours (FSI).
pub const ISOLATE: char = '\u{2068}';
/// Ends an isolated text (PDI).
pub const ISOLATE_ENDS: char = '\u{2069}';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The character has a shape and stays in its place.
    Shape,
    /// The character is drawn over the one before it.
    Mark,
    /// The character is a gap in the line.
    Space,
    /// The character is invisible, controls the display, or has no meaning.
    Nothing,
}

impl Look {
    pub(crate) fn of(char: char) -> Look {
        use GeneralCategory as C;
        match char.general_category() {
            _ if is_unseen(char) => Look::Nothing,
            C::NonspacingMark | C::SpacingMark => Look::Mark,
            C::SpaceSeparator => Look::Space,
            // Enclosing marks are drawn over their neighbours.
            C::EnclosingMark
            | C::Control
            | C::Format
            | C::Surrogate
            | C::PrivateUse
            | C::Unassigned
            | C::LineSeparator
            | C::ParagraphSeparator => Look::Nothing,
            _ => Look::Shape,
        }
    }
}

/// Returns `true` for letters, marks and signs that are invisible despite their category: those that Unicode lets every
/// renderer ignore (`Default_Ignorable_Code_Point`), blank ones, and the placeholder of a missing object.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fffc}' | '\u{13441}'..='\u{13442}' | '\u{16fe4}'
        | '\u{1d159}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns `true` if a character is written from right to left, judged by the blocks that Unicode reserves for scripts
/// of this direction.
#[must_use]
pub fn is_right_to_left(char: char) -> bool {
    Look::of(char) != Look::Nothing
        && matches!(char,
            '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}')
}

/// Returns `true` if a text is displayed without escapes: every character is visible and in its place, and no letter
/// has too many marks.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let mut marks = Marks::default();
    text.chars().all(|char| marks.take(char) && char != '\n')
}

/// A piece of foreign text for one row: [`Display`](fmt::Display) escapes invisible and misplaced characters, clips
/// the text after [`LINE_CHARS_MAX`] characters, and isolates it if it is written from right to left. `Debug` adds
/// quotes and also escapes quotes and backslashes: a text cannot end its own quotes and continue as another field.
///
/// ```
/// use twinstep_protocol::text::line;
///
/// assert_eq!(line("power\u{1b}]0;owned\u{7}\nloss").to_string(), "power\\u{1b}]0;owned\\u{7}\\nloss");
/// assert_eq!(format!("{:?}", line("Jörg")), "\"Jörg\"");
/// assert_eq!(format!("{:?}", line("a\" kicked=\"b")), r#""a\" kicked=\"b""#);
/// ```
#[must_use]
pub fn line(text: &str) -> Line<'_> {
    Line {
        text,
        chars_max: LINE_CHARS_MAX,
    }
}

/// A text of several rows that this program wrote: it is neither clipped nor isolated, and isolated pieces in it stay
/// isolated.
#[must_use]
pub fn plain(text: &str) -> Plain<'_> {
    Plain(text)
}

/// A piece of foreign text, from [`line()`].
#[derive(Clone, Copy)]
pub struct Line<'a> {
    text: &'a str,
    chars_max: usize,
}

impl<'a> Line<'a> {
    /// Sets the number of characters after which the text is clipped.
    #[must_use]
    pub fn at_most(self, chars_max: usize) -> Line<'a> {
        Line { chars_max, ..self }
    }
}

/// A text of several rows, from [`plain`].
#[derive(Clone, Copy)]
pub struct Plain<'a>(&'a str);

impl Line<'_> {
    fn write(&self, f: &mut fmt::Formatter<'_>, is_quoted: bool) -> fmt::Result {
        // Clipped characters do not affect the direction.
        let turns = self.text.chars().take(self.chars_max).any(is_right_to_left);
        if turns {
            f.write_char(ISOLATE)?;
        }
        let mut marks = Marks::default();
        let mut room = self.chars_max;
        for char in self.text.chars() {
            let space = Look::of(char) == Look::Space;
            let ends_quotes = is_quoted && matches!(char, '"' | '\\');
            let takes = match marks.take(char) {
                _ if ends_quotes => 2,
                true => 1,
                // An escape counts at its written length, so a row cannot exceed its limit.
                false => escape(char).count(),
            };
            let Some(left) = room.checked_sub(takes) else {
                f.write_char('…')?;
                break;
            };
            room = left;
            match (takes, space) {
                _ if ends_quotes => {
                    f.write_char('\\')?;
                    f.write_char(char)?;
                }
                (1, true) => f.write_char(' ')?,
                (1, false) => f.write_char(char)?,
                _ => escape(char).try_for_each(|char| f.write_char(char))?,
            }
        }
        if turns {
            f.write_char(ISOLATE_ENDS)?;
        }
        Ok(())
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.write(f, true)?;
        f.write_char('"')
    }
}

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, row) in self.0.split('\n').enumerate() {
            if n > 0 {
                f.write_char('\n')?;
            }
            let (mut marks, mut open) = (Marks::default(), 0_u32);
            for char in row.chars() {
                let is_seen = match char {
                    ISOLATE => true,
                    // Without an open isolate in this row, it would close one in the surrounding text.
                    ISOLATE_ENDS => open > 0,
                    char => marks.take(char),
                };
                match is_seen {
                    true => f.write_char(char)?,
                    false => escape(char).try_for_each(|char| f.write_char(char))?,
                }
                open += u32::from(char == ISOLATE);
                open -= u32::from(char == ISOLATE_ENDS && is_seen);
            }
            // Close everything that the row opened.
            (0..open).try_for_each(|_| f.write_char(ISOLATE_ENDS))?;
        }
        Ok(())
    }
}

#[derive(Default)]
pub(crate) struct Marks {
    /// The number of marks still allowed; 0 before the first letter.
    room: usize,
}

impl Marks {
    /// Takes the next character. Returns `true` if it is visible and may follow the characters before it.
    pub(crate) fn take(&mut self, char: char) -> bool {
        match Look::of(char) {
            Look::Shape => {
                self.room = MARKS_MAX;
                true
            }
            Look::Mark => {
                let fits = self.room > 0;
                self.room = self.room.saturating_sub(1);
                fits
            }
            // A mark after a space has no letter to combine with.
            Look::Space => {
                self.room = 0;
                true
            }
            Look::Nothing => {
                self.room = 0;
                false
            }
        }
    }
}

fn escape(char: char) -> impl Iterator<Item = char> {
    let short = match char {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    };
    let long = short.is_none().then(|| char.escape_unicode());
    let short = short.map(|short| ['\\', short]);
    short
        .into_iter()
        .flatten()
        .chain(long.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_escaped() {
        for (text, shown) in [
            ("Jörg ☃ 世界 👾", "Jörg ☃ 世界 👾"),
            ("\u{1b}]0;owned\u{7}", "\\u{1b}]0;owned\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("two\r\nrows\t.", "two\\r\\nrows\\t."),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}\u{feff}b", "a\\u{200b}\\u{feff}b"),
            ("\u{3164}\u{e000}\u{378}", "\\u{3164}\\u{e000}\\u{378}"),
            ("a\u{a0}b", "a b"),
            ("e\u{301}", "e\u{301}"),
            ("\u{301}", "\\u{301}"),
            ("z\u{300}\u{301}\u{302}", "z\u{300}\u{301}\\u{302}"),
        ] {
            assert_eq!(line(text).to_string(), shown, "{text:?}");
            assert_eq!(format!("{:?}", line(text)), format!("\"{shown}\""));
            assert_eq!(is_plain(text), text == shown || text == "a\u{a0}b");
        }
    }

    /// Finding O3-4: `x" level="y` became one more field of a log line.
    #[test]
    fn a_text_in_quotes_does_not_end_them() {
        for (text, shown) in [
            ("x\" level=\"y", r#""x\" level=\"y""#),
            ("\\", r#""\\""#),
            ("\\\" a=\"", r#""\\\" a=\"""#),
            ("\\u{1b}\u{1b}", r#""\\u{1b}\u{1b}""#),
        ] {
            assert_eq!(format!("{:?}", line(text)), shown);
        }
        let clipped = format!("{:?}", line(&"\"".repeat(1_000)));
        assert_eq!(clipped.chars().count(), LINE_CHARS_MAX + 3);
    }

    #[test]
    fn right_to_left_text_does_not_reorder_its_neighbours() {
        let name = "\u{5d0}\u{5d1}";
        assert_eq!(line(name).to_string(), format!("\u{2068}{name}\u{2069}"));
        let message = format!("{} is here\nnext", line(name));
        assert_eq!(plain(&message).to_string(), message);
        // Isolates that foreign text opened are closed at the end of the row; closing characters without an opening
        // one are escaped.
        let torn = "\u{2069}a\u{2068}b\nc";
        assert_eq!(plain(torn).to_string(), "\\u{2069}a\u{2068}b\u{2069}\nc");
    }

    #[test]
    fn a_long_text_is_clipped_even_if_escaping_lengthens_it() {
        for char in ["a", "\u{7}", "\u{10ffff}"] {
            let shown = line(&char.repeat(10_000)).to_string();
            let count = shown.chars().count();
            assert!(
                count <= LINE_CHARS_MAX + 1 && count > LINE_CHARS_MAX - 12,
                "{count}"
            );
            assert!(shown.ends_with('…'));
        }
        let fits = "a".repeat(LINE_CHARS_MAX);
        assert_eq!(line(&fits).to_string(), fits);
        let long = "a".repeat(5_000);
        assert_eq!(plain(&long).to_string(), long);
    }

    proptest! {
        /// Law *Hostile wire*.
        #[test]
        fn shown_text_never_controls_the_display(text in "\\PC*|(.|\\n|\\u{1b}|\\u{202e}|\\u{5d0}|\\u{301}){0,80}") {
            let steers = |shown: &str| -> Option<char> {
                let mut marks = Marks::default();
                shown.chars().find(|char| !marks.take(*char) && !matches!(*char, ISOLATE | ISOLATE_ENDS))
            };
            let one: String = line(&text).to_string();
            prop_assert_eq!(steers(&one), None);
            prop_assert!(one.chars().count() <= LINE_CHARS_MAX + 3);
            let quoted = format!("{:?}", line(&text));
            let within = quoted[1..quoted.len() - 1].replace("\\\\", "").replace("\\\"", "");
            prop_assert!(!within.contains('"'), "{}", quoted);
            let many = plain(&text).to_string();
            prop_assert_eq!(steers(&many.replace('\n', "")), None);
            prop_assert_eq!(plain(&many).to_string(), many.clone());
            prop_assert_eq!(plain(&one).to_string(), one);
            for row in many.split('\n') {
                let count = |wanted| row.chars().filter(|char| *char == wanted).count();
                prop_assert_eq!(count(ISOLATE), count(ISOLATE_ENDS));
            }
        }
    }
}
