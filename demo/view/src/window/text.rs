//! Measures the width of text, and fits text into a space.

use super::art::{CAP, GLYPHS, glyph};
use super::atlas::Type;

/// The number of grid steps between two letters.
const SPACING: f32 = 2.3;
/// The width of a space, in steps of the grid.
const SPACE: f32 = 3.4;

pub(crate) fn advance(size: Type, scale: f32, letter: char) -> f32 {
    let steps = if letter == ' ' {
        SPACE
    } else {
        f32::from(GLYPHS[glyph(letter)].width) + SPACING
    };
    steps * size.cap() * scale / CAP
}

pub(crate) fn width(size: Type, scale: f32, text: &str) -> f32 {
    let advances: f32 = text
        .chars()
        .map(|letter| advance(size, scale, letter))
        .sum();
    // No space after the last letter.
    (advances - SPACING * size.cap() * scale / CAP).max(0.0)
}

/// Returns the text, or the part of it that fits, with two dots where it was cut.
pub(crate) fn fitted(size: Type, scale: f32, text: &str, width_max: f32) -> String {
    if width(size, scale, text) <= width_max {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while kept.pop().is_some() {
        let cut: String = kept
            .iter()
            .chain("..".chars().by_ref().collect::<Vec<_>>().iter())
            .collect();
        if width(size, scale, &cut) <= width_max {
            return cut;
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_grows_with_its_letters_and_its_size() {
        let of = |size, text| width(size, 1.0, text);
        assert_eq!(of(Type::Body, ""), 0.0);
        assert!(of(Type::Body, "wide") > of(Type::Body, "lil"));
        assert!(of(Type::Head, "wide") > of(Type::Body, "wide") * 1.5);
        assert!((width(Type::Body, 2.0, "wide") - of(Type::Body, "wide") * 2.0).abs() < 1e-3);
    }

    #[test]
    fn too_wide_text_is_cut_with_dots() {
        let room = width(Type::Body, 1.0, "a name of w..");
        let cut = fitted(Type::Body, 1.0, "a name of which there is much", room);
        assert_eq!(cut, "a name of w..");
        assert_eq!(fitted(Type::Body, 1.0, "short", room), "short");
        assert_eq!(fitted(Type::Body, 1.0, "none", 1.0), "");
    }
}
