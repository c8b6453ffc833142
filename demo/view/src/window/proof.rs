//! Whether a picture shows what it should: looked at pixel by pixel, as it came back from the screen.
//!
//! Text is found by its letters: where a letter's stroke is, the picture has the text's colour, and beside it another
//! one. So a driver that draws nothing, in wrong colours or upside down is found out.

use super::art::{self, GLYPHS};
use super::atlas::{Atlas, Type};
use super::palette::{ColorMode, Tint};
use super::png::Screenshot;
use super::text;

/// Something that a picture must show, somewhere in a region: left, top, right and bottom, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sight {
    /// Words in a colour.
    Words(&'static str, Type, Tint, [usize; 4]),
    /// A colour, in at least so many pixels.
    Color(Tint, usize, [usize; 4]),
}

/// A picture does not show what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unseen {
    /// Another size.
    #[error("expected {0} by {1} pixels, got {2} by {3}")]
    Size(usize, usize, usize, usize),
    /// Hardly anything is drawn.
    #[error("expected a picture, got {0} colours")]
    Blank(usize),
    /// Words are missing.
    #[error("the words {0:?} are not there")]
    Words(&'static str),
    /// A colour is missing.
    #[error("expected {1} pixels or more of the colour {0:?}, got {2}")]
    Color([u8; 3], usize, usize),
}

/// A channel may be so far off: drivers round, and light mixes.
const OFF: i32 = 36;
/// Fewer colours are no picture.
const COLORS_MIN: usize = 64;

/// Looks at a picture.
///
/// # Errors
/// The first thing that is not as it should be.
pub(crate) fn check(
    shot: &Screenshot,
    size: (usize, usize),
    sights: &[Sight],
) -> Result<(), Unseen> {
    if (shot.width, shot.height) != size {
        return Err(Unseen::Size(size.0, size.1, shot.width, shot.height));
    }
    let mut colors: Vec<&[u8]> = shot.rgb.chunks_exact(3).step_by(7).collect();
    colors.sort_unstable();
    colors.dedup();
    if colors.len() < COLORS_MIN {
        return Err(Unseen::Blank(colors.len()));
    }
    let atlas = Atlas::new(1.0, ColorMode::Safe);
    for sight in sights {
        match *sight {
            Sight::Words(words, size, tint, region) => {
                if !shows(shot, &Mask::of(&atlas, size, words), tint, region) {
                    return Err(Unseen::Words(words));
                }
            }
            Sight::Color(tint, least, [left, top, right, bottom]) => {
                let pixels = (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
                let count = pixels.filter(|(x, y)| is_near(shot, *x, *y, tint)).count();
                if count < least {
                    return Err(Unseen::Color(tint.rgb, least, count));
                }
            }
        }
    }
    Ok(())
}

/// Where words have ink, and where they have none.
struct Mask {
    width: usize,
    height: usize,
    ink: Vec<(usize, usize)>,
    bare: Vec<(usize, usize)>,
}

impl Mask {
    /// The words, as a batch would draw them.
    fn of(atlas: &Atlas, size: Type, words: &str) -> Mask {
        let (before, below) = (atlas.before(size), atlas.below(size));
        let height = (size.cap() * atlas.scale + below * 2.0) as usize;
        let width = (text::width(size, atlas.scale, words) + before * 2.0) as usize + 2;
        let mut cover = vec![0_u8; width * height];
        let (origin, baseline) = (libm::ceilf(before), (height as f32 - below) as usize as f32);
        let mut pen = 0.0;
        for letter in words.chars().filter(|letter| *letter != '\n') {
            if letter != ' ' {
                let entry = atlas.letter(size, art::glyph(letter));
                let left = libm::roundf(origin + pen - before) as usize;
                let top = libm::roundf(baseline + below - entry.size.y) as i32;
                let from = (entry.from * atlas.side as f32 + 0.5).as_ivec2();
                for y in 0..entry.size.y as usize {
                    for x in 0..entry.size.x as usize {
                        let row = top + y as i32;
                        let (column, line) = (from.x as usize + x, from.y as usize + y);
                        // Without its shadow, which is black.
                        let alpha = atlas.bytes[(line * atlas.side + column) * 4];
                        if (0..height as i32).contains(&row) && left + x < width {
                            let at = row as usize * width + left + x;
                            cover[at] = cover[at].max(alpha);
                        }
                    }
                }
            }
            pen += text::advance(size, atlas.scale, letter);
        }
        debug_assert!(
            words
                .chars()
                .all(|letter| letter == ' ' || art::glyph(letter) < GLYPHS.len() - 1)
        );
        let places = |wanted: fn(u8) -> bool| {
            let all = cover
                .iter()
                .enumerate()
                .filter(|(_, alpha)| wanted(**alpha));
            all.map(|(n, _)| (n % width, n / width)).collect::<Vec<_>>()
        };
        Mask {
            width,
            height,
            ink: places(|alpha| alpha > 245),
            bare: places(|alpha| alpha == 0),
        }
    }
}

fn shows(
    shot: &Screenshot,
    mask: &Mask,
    tint: Tint,
    [left, top, right, bottom]: [usize; 4],
) -> bool {
    let (right, bottom) = (right.min(shot.width), bottom.min(shot.height));
    for y in top..=bottom.saturating_sub(mask.height) {
        for x in left..=right.saturating_sub(mask.width) {
            if fits(shot, mask, tint, x, y) {
                return true;
            }
        }
    }
    false
}

/// Nearly all ink has the colour, and most of the rest has not.
fn fits(shot: &Screenshot, mask: &Mask, tint: Tint, left: usize, top: usize) -> bool {
    let mut misses = mask.ink.len() / 20;
    for (x, y) in &mask.ink {
        if !is_near(shot, left + x, top + y, tint) {
            match misses.checked_sub(1) {
                Some(left) => misses = left,
                None => return false,
            }
        }
    }
    let alike = mask
        .bare
        .iter()
        .filter(|(x, y)| is_near(shot, left + x, top + y, tint));
    alike.count() * 8 < mask.bare.len()
}

fn is_near(shot: &Screenshot, x: usize, y: usize, tint: Tint) -> bool {
    let at = (y * shot.width + x) * 3;
    let pixel = shot.rgb.get(at..at + 3);
    pixel.is_some_and(|pixel| {
        pixel
            .iter()
            .zip(tint.rgb)
            .all(|(a, b)| (i32::from(*a) - i32::from(b)).abs() <= OFF)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::palette::{ACCENT, INK};

    const SIZE: (usize, usize) = (160, 90);
    const WHOLE: [usize; 4] = [0, 0, 160, 90];

    /// A background of many dark colours.
    fn empty() -> Screenshot {
        let pixels = (0..SIZE.0 * SIZE.1)
            .flat_map(|n| [(n % 40) as u8, (n / 60 % 50) as u8, (n % 70) as u8]);
        Screenshot {
            width: SIZE.0,
            height: SIZE.1,
            rgb: pixels.collect(),
        }
    }

    fn written(words: &str, tint: Tint) -> Screenshot {
        let mut shot = empty();
        let mask = Mask::of(&Atlas::new(1.0, ColorMode::Safe), Type::Head, words);
        for (x, y) in &mask.ink {
            let at = ((y + 20) * SIZE.0 + x + 9) * 3;
            shot.rgb[at..at + 3].copy_from_slice(&tint.rgb);
        }
        shot
    }

    #[test]
    fn words_are_found_where_they_are_and_only_as_they_are() {
        let wave = [Sight::Words("WAVE", Type::Head, INK, WHOLE)];
        assert_eq!(check(&written("WAVE", INK), SIZE, &wave), Ok(()));
        for other in [written("WAVY", INK), written("WAVE", ACCENT), empty()] {
            assert_eq!(check(&other, SIZE, &wave), Err(Unseen::Words("WAVE")));
        }
        let elsewhere = [Sight::Words("WAVE", Type::Head, INK, [0, 50, 160, 90])];
        assert_eq!(
            check(&written("WAVE", INK), SIZE, &elsewhere),
            Err(Unseen::Words("WAVE"))
        );
        // All in one colour is no text.
        let mut flood = empty();
        flood
            .rgb
            .chunks_exact_mut(3)
            .skip(1_000)
            .for_each(|pixel| pixel.copy_from_slice(&INK.rgb));
        assert_eq!(check(&flood, SIZE, &wave), Err(Unseen::Words("WAVE")));
    }

    #[test]
    fn a_blank_picture_another_size_and_a_missing_colour_are_found_out() {
        let blank = Screenshot {
            rgb: vec![9; SIZE.0 * SIZE.1 * 3],
            ..empty()
        };
        assert_eq!(check(&blank, SIZE, &[]), Err(Unseen::Blank(1)));
        assert!(matches!(
            check(&empty(), (161, 90), &[]),
            Err(Unseen::Size(..))
        ));
        let sight = [Sight::Color(ACCENT, 50, WHOLE)];
        assert!(matches!(
            check(&empty(), SIZE, &sight),
            Err(Unseen::Color(_, 50, 0))
        ));
        assert_eq!(check(&written("WAVE", ACCENT), SIZE, &sight), Ok(()));
    }
}
