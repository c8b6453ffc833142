//! The typeface: strokes on a grid, with cut corners, drawn with round pens.
//!
//! Own code: `fontdue` draws the letters of a font file, and would need a file with its own licence. Strokes are drawn
//! by the same canvas as all sprites.
//!
//! A stroke is a list of points of two characters each: x from 0, then y in base 36, where 0 is the lowest, 2 the
//! baseline, 8 the height of small letters and `a` that of capitals. So `"02 0a|5a 02"` are two strokes.

use glam::{Vec2, vec2};

pub(crate) const CAP: f32 = 8.0;
/// The baseline, in steps from the lowest point.
pub(crate) const BASE: f32 = 2.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Glyph {
    pub(crate) letter: char,
    pub(crate) width: u8,
    strokes: &'static str,
}

impl Glyph {
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Vec2, Vec2)> {
        self.strokes.split('|').flat_map(|way| {
            let points = way.split(' ').map(point);
            points.clone().zip(points.skip(1))
        })
    }
}

fn point(text: &str) -> Vec2 {
    let mut digits = text
        .chars()
        .map(|digit| digit.to_digit(36).unwrap_or(0) as f32);
    vec2(digits.next().unwrap_or(0.0), digits.next().unwrap_or(0.0))
}

pub(crate) fn glyph(letter: char) -> usize {
    // Printable ASCII comes first, in order.
    let code = letter as usize;
    if (33..127).contains(&code) {
        return code - 33;
    }
    let others = GLYPHS
        .iter()
        .skip(94)
        .position(|glyph| glyph.letter == letter);
    others.map_or(GLYPHS.len() - 1, |n| n + 94)
}

const fn g(letter: char, width: u8, strokes: &'static str) -> Glyph {
    Glyph {
        letter,
        width,
        strokes,
    }
}

/// All glyphs: ASCII in order, then some signs, and last the box for missing letters.
pub(crate) const GLYPHS: [Glyph; 102] = [
    g('!', 0, "0a 05|02 02"),
    g('"', 2, "0a 08|2a 28"),
    g('#', 4, "13 19|33 39|07 47|05 45"),
    g('$', 4, "48 39 19 08 07 16 36 45 44 33 13 04|2b 21"),
    g('%', 5, "02 5a|09 1a 29 18 09|33 44 53 42 33"),
    g('&', 5, "52 08 19 29 38 05 03 12 32 54"),
    g('\'', 0, "0a 08"),
    g('(', 1, "1b 09 03 11"),
    g(')', 1, "0b 19 13 01"),
    g('*', 4, "04 48|08 44|06 46|28 24"),
    g('+', 4, "06 46|28 24"),
    g(',', 1, "12 01"),
    g('-', 3, "06 36"),
    g('.', 0, "02 02"),
    g('/', 3, "02 3a"),
    g('0', 4, "12 03 09 1a 3a 49 43 32 12"),
    g('1', 4, "08 2a 22|02 42"),
    g('2', 4, "09 1a 3a 49 47 02 42"),
    g('3', 4, "09 1a 3a 49 47 36 16|36 45 43 32 12 03"),
    g('4', 4, "32 3a 05 04 44"),
    g('5', 4, "4a 0a 07 37 46 43 32 12 03"),
    g('6', 4, "49 3a 1a 09 03 12 32 43 45 36 06"),
    g('7', 4, "0a 4a 49 12"),
    g('8', 4, "16 07 09 1a 3a 49 47 36 16 05 03 12 32 43 45 36"),
    g('9', 4, "46 16 07 09 1a 3a 49 43 32 12 03"),
    g(':', 0, "03 03|07 07"),
    g(';', 1, "12 01|17 17"),
    g('<', 3, "39 06 33"),
    g('=', 4, "07 47|04 44"),
    g('>', 3, "09 36 03"),
    g('?', 4, "09 1a 3a 49 47 25 24|22 22"),
    g('@', 6, "52 12 03 09 1a 5a 69 65 44 24 25 27 38 48 44"),
    g('A', 5, "02 08 2a 3a 58 52|05 55"),
    g('B', 5, "02 0a 4a 59 57 46 06|46 55 53 42 02"),
    g('C', 5, "59 4a 1a 09 03 12 42 53"),
    g('D', 5, "02 0a 3a 58 54 32 02"),
    g('E', 4, "4a 0a 02 42|06 36"),
    g('F', 4, "4a 0a 02|06 36"),
    g('G', 5, "59 4a 1a 09 03 12 42 53 56 36"),
    g('H', 5, "02 0a|52 5a|06 56"),
    g('I', 2, "0a 2a|02 22|1a 12"),
    g('J', 4, "4a 43 32 12 03"),
    g('K', 5, "02 0a|06 16 5a|16 52"),
    g('L', 4, "0a 02 42"),
    g('M', 6, "02 0a 36 6a 62"),
    g('N', 5, "02 0a 52 5a"),
    g('O', 5, "12 03 09 1a 4a 59 53 42 12"),
    g('P', 5, "02 0a 4a 59 56 45 05"),
    g('Q', 5, "12 03 09 1a 4a 59 53 42 12|34 52"),
    g('R', 5, "02 0a 4a 59 57 46 06|26 52"),
    g('S', 5, "59 4a 1a 09 07 16 46 55 53 42 12 03"),
    g('T', 4, "0a 4a|2a 22"),
    g('U', 5, "0a 03 12 42 53 5a"),
    g('V', 4, "0a 22 4a"),
    g('W', 6, "0a 12 38 52 6a"),
    g('X', 5, "0a 52|5a 02"),
    g('Y', 4, "0a 26 4a|26 22"),
    g('Z', 5, "0a 5a 02 52"),
    g('[', 1, "1b 0b 01 11"),
    g('\\', 3, "0a 32"),
    g(']', 1, "0b 1b 11 01"),
    g('^', 4, "08 2a 48"),
    g('_', 4, "01 41"),
    g('`', 1, "0a 18"),
    g('a', 4, "07 18 38 47 42|45 15 04 03 12 32 43"),
    g('b', 4, "0a 02|07 18 38 47 43 32 12 03"),
    g('c', 4, "47 38 18 07 03 12 32 43"),
    g('d', 4, "4a 42|47 38 18 07 03 12 32 43"),
    g('e', 4, "05 45 47 38 18 07 03 12 32 43"),
    g('f', 3, "3a 2a 19 12|07 37"),
    g('g', 4, "48 41 30 10 01|47 38 18 07 03 12 32 43"),
    g('h', 4, "0a 02|07 18 38 47 42"),
    g('i', 0, "07 02|0a 0a"),
    g('j', 1, "17 11 00|1a 1a"),
    g('k', 4, "0a 02|04 48|26 42"),
    g('l', 1, "0a 03 12"),
    g('m', 6, "08 02|07 18 28 37 32|37 48 58 67 62"),
    g('n', 4, "08 02|07 18 38 47 42"),
    g('o', 4, "12 03 07 18 38 47 43 32 12"),
    g('p', 4, "08 00|07 18 38 47 43 32 12 03"),
    g('q', 4, "48 40|47 38 18 07 03 12 32 43"),
    g('r', 3, "08 02|06 28 38"),
    g('s', 4, "47 38 18 07 06 15 35 44 43 32 12 03"),
    g('t', 3, "1a 13 22 32|07 37"),
    g('u', 4, "08 03 12 32 43|48 42"),
    g('v', 4, "08 22 48"),
    g('w', 6, "08 12 37 52 68"),
    g('x', 4, "08 42|48 02"),
    g('y', 4, "08 22|48 10"),
    g('z', 4, "08 48 02 42"),
    g('{', 2, "2b 19 17 06 15 13 21"),
    g('|', 0, "0b 01"),
    g('}', 2, "0b 19 17 26 15 13 01"),
    g('~', 4, "06 17 35 46"),
    g('·', 0, "06 06"),
    g('×', 3, "04 37|34 07"),
    g('→', 5, "06 56|38 56 34"),
    g('±', 4, "07 47|29 25|03 43"),
    g('∞', 6, "36 28 18 07 05 14 24 36 48 58 67 65 54 44 36"),
    g('▲', 4, "03 43 28 03"),
    g('▼', 4, "08 48 23 08"),
    g('\u{fffd}', 4, "02 0a 4a 42 02"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_has_its_own_glyph_and_unknown_letters_get_the_box() {
        for (n, known) in GLYPHS.iter().enumerate() {
            assert_eq!(glyph(known.letter), n, "{}", known.letter);
        }
        assert_eq!(GLYPHS[glyph('漢')].letter, '\u{fffd}');
    }

    #[test]
    fn every_stroke_stays_in_its_glyph() {
        for glyph in &GLYPHS {
            assert!(glyph.lines().count() > 0, "{} has no stroke", glyph.letter);
            for (from, to) in glyph.lines() {
                for end in [from, to] {
                    assert!(
                        end.x <= f32::from(glyph.width) && end.y <= 11.0,
                        "{}",
                        glyph.letter
                    );
                }
            }
        }
    }
}
