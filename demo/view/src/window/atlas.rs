//! [`Atlas`]: all sprites and all letters in one texture, so that a whole picture takes few draw calls.
//!
//! Invariant: entries do not touch. Each has an empty margin, which filtering may read.
//!
//! On a software renderer, invisible pixels cost as much as visible ones. So each entry knows the box of its visible
//! pixels, its *ink*, and only that box is drawn.

use glam::{Vec2, vec2};

use super::art::canvas::{Canvas, gray, shape, veil};
use super::art::{BASE, CAP, GLYPHS, Glyph};
use crate::scene::Sprite;
use crate::scene::palette::ColorMode;

const BORDER: usize = 2;
/// The number of free grid steps below and above a letter, which leaves space for pens.
const PEN_ROOM: f32 = 1.6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    Small,
    Body,
    Head,
    Title,
}

impl Type {
    pub(crate) const ALL: [Type; 4] = [Type::Small, Type::Body, Type::Head, Type::Title];

    pub(crate) const fn cap(self) -> f32 {
        match self {
            Type::Small => 8.0,
            Type::Body => 10.5,
            Type::Head => 18.0,
            Type::Title => 56.0,
        }
    }

    /// Returns `true` if this size has the letter: titles have capitals and digits only.
    const fn has(self, letter: char) -> bool {
        !matches!(self, Type::Title) || letter.is_ascii_uppercase() || letter.is_ascii_digit()
    }

    /// The pen's radius, in steps of the grid.
    const fn pen(self) -> f32 {
        match self {
            Type::Small => 0.56,
            Type::Body => 0.52,
            Type::Head => 0.56,
            Type::Title => 0.72,
        }
    }
}

/// A part of the texture, in fractions of the texture's side, and the part's size in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AtlasEntry {
    pub(crate) from: Vec2,
    pub(crate) to: Vec2,
    pub(crate) size: Vec2,
    /// The corners of the visible part, in fractions of the size.
    pub(crate) ink: [Vec2; 2],
}

pub(crate) struct Atlas {
    /// Pixels per design pixel.
    pub(crate) scale: f32,
    pub(crate) mode: ColorMode,
    pub(crate) side: usize,
    /// RGBA, premultiplied.
    pub(crate) bytes: Vec<u8>,
    entries: Vec<AtlasEntry>,
}

impl Atlas {
    pub(crate) fn new(scale: f32, mode: ColorMode) -> Atlas {
        let mut canvases = Vec::new();
        for sprite in Sprite::ALL {
            let (width, height) = sprite.pixels();
            let mut canvas = Canvas::new(scaled(width, scale), scaled(height, scale));
            sprite.draw(&mut canvas, mode);
            canvases.push(canvas);
        }
        for size in Type::ALL {
            canvases.extend(GLYPHS.iter().map(|glyph| match size.has(glyph.letter) {
                true => letter(glyph, size, scale),
                false => Canvas::new(1, 1),
            }));
        }
        let sizes: Vec<_> = canvases.iter().map(|one| (one.width, one.height)).collect();
        let (side, places) = packed(&sizes);
        let mut bytes = vec![0; side * side * 4];
        let mut entries = Vec::with_capacity(canvases.len());
        for (canvas, (left, top)) in canvases.iter().zip(places) {
            for y in 0..canvas.height {
                for x in 0..canvas.width {
                    let at = ((top + y) * side + left + x) * 4;
                    bytes[at..at + 4].copy_from_slice(&canvas.bytes(x, y));
                }
            }
            let size = vec2(canvas.width as f32, canvas.height as f32);
            let from = vec2(left as f32, top as f32);
            entries.push(AtlasEntry {
                from: from / side as f32,
                to: (from + size) / side as f32,
                size,
                ink: canvas.ink().map(|(x, y)| vec2(x as f32, y as f32) / size),
            });
        }
        Atlas {
            scale,
            mode,
            side,
            bytes,
            entries,
        }
    }

    // The scale for a window of this size: text grows with the window. If `large`, the scale is the largest at which
    // all panels fit, as in windows smaller than the design.
    pub(crate) fn scale_for(size: Vec2, large: bool) -> f32 {
        let fits = |page: Vec2| (size / page).min_element();
        let usual = libm::roundf(fits(vec2(1_280.0, 720.0)) * 4.0) / 4.0;
        let most = libm::floorf(fits(vec2(960.0, 540.0)) * 4.0) / 4.0;
        let scale = usual.max(if large { most } else { most.min(1.0) });
        scale.clamp(0.5, 4.0)
    }

    pub(crate) fn sprite(&self, sprite: Sprite) -> AtlasEntry {
        self.entries[sprite as usize]
    }

    /// The picture of a letter; its lower edge is [`below`](Atlas::below) pixels under the baseline.
    pub(crate) fn letter(&self, size: Type, glyph: usize) -> AtlasEntry {
        self.entries[Sprite::ALL.len() + size as usize * GLYPHS.len() + glyph]
    }

    pub(crate) fn grid(&self, size: Type) -> f32 {
        size.cap() * self.scale / CAP
    }

    /// The height of the baseline above the lower edge of a letter's picture, in pixels.
    pub(crate) fn below(&self, size: Type) -> f32 {
        (BASE + PEN_ROOM) * self.grid(size)
    }

    /// The colour at a point of the texture, interpolated between its four nearest pixels as on a graphics card.
    pub(crate) fn texel(&self, uv: Vec2) -> [f32; 4] {
        let at = (uv * self.side as f32 - 0.5).max(Vec2::ZERO);
        let (first, part) = (at.floor(), at - at.floor());
        let pixel = |x: usize, y: usize| {
            let (x, y) = (first.x as usize + x, first.y as usize + y);
            let at = (y.min(self.side - 1) * self.side + x.min(self.side - 1)) * 4;
            &self.bytes[at..at + 4]
        };
        let corners = [pixel(0, 0), pixel(1, 0), pixel(0, 1), pixel(1, 1)];
        std::array::from_fn(|n| {
            let [a, b, c, d] = corners.map(|corner| f32::from(corner[n]));
            let (above, below) = (a + (b - a) * part.x, c + (d - c) * part.x);
            above + (below - above) * part.y
        })
    }

    /// The distance from the left edge of a letter's picture to its first stroke, in pixels.
    pub(crate) fn before(&self, size: Type) -> f32 {
        PEN_ROOM * self.grid(size)
    }
}

fn scaled(pixels: usize, scale: f32) -> usize {
    (libm::roundf(pixels as f32 * scale) as usize).max(2)
}

fn letter(glyph: &Glyph, size: Type, scale: f32) -> Canvas {
    let grid = size.cap() * scale / CAP;
    let width = (f32::from(glyph.width) + 2.0 * PEN_ROOM) * grid;
    let height = (11.0 + 2.0 * PEN_ROOM) * grid;
    let mut canvas = Canvas::new(libm::ceilf(width) as usize, libm::ceilf(height) as usize);
    let middle = vec2(canvas.width as f32, canvas.height as f32) * 0.5;
    let unit = 2.0 / canvas.width.min(canvas.height) as f32;
    // Converts grid steps to canvas units, with the lower left corner on whole pixels.
    let place = |point: Vec2| ((point + PEN_ROOM) * grid - middle) * unit;
    let pen = (size.pen() * grid).max(0.62) * unit;
    let stroke = |at: Vec2| {
        let strokes = glyph
            .lines()
            .map(|(from, to)| shape::stroke(at, place(from), place(to), pen));
        strokes.fold(f32::MAX, f32::min)
    };
    // With a shadow, so that it is readable on any background: black stays black in every tint.
    let shade = vec2(1.0, -1.0) * scale.max(1.0) * unit;
    canvas.fill(|at| stroke(at - shade), |_| veil(0.0, 0.75));
    canvas.fill(stroke, |_| gray(1.0));
    canvas
}

/// Packs boxes into a square whose side is a power of two, in rows, the highest boxes first.
fn packed(sizes: &[(usize, usize)]) -> (usize, Vec<(usize, usize)>) {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|n| (std::cmp::Reverse(sizes[*n].1), *n));
    let mut side = 256;
    loop {
        let mut places = vec![(0, 0); sizes.len()];
        let (mut x, mut y, mut row) = (BORDER, BORDER, 0);
        for &n in &order {
            let (width, height) = sizes[n];
            if x + width + BORDER > side {
                (x, y, row) = (BORDER, y + row + BORDER, 0);
            }
            places[n] = (x, y);
            x += width + BORDER;
            row = row.max(height);
        }
        let widest = sizes.iter().map(|size| size.0).max().unwrap_or(0);
        if y + row + BORDER <= side && widest + 2 * BORDER <= side {
            return (side, places);
        }
        side *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_atlas_do_not_touch() {
        let sizes: Vec<_> = (0..150)
            .map(|n| (5 + n * 7 % 60, 4 + n * 13 % 50))
            .collect();
        let (side, places) = packed(&sizes);
        let boxes: Vec<_> = sizes.iter().zip(&places).collect();
        for (n, (size, at)) in boxes.iter().enumerate() {
            assert!(at.0 + size.0 + BORDER <= side && at.1 + size.1 + BORDER <= side);
            for (other_size, other_at) in &boxes[..n] {
                let apart = at.0 >= other_at.0 + other_size.0 + BORDER
                    || other_at.0 >= at.0 + size.0 + BORDER
                    || at.1 >= other_at.1 + other_size.1 + BORDER
                    || other_at.1 >= at.1 + size.1 + BORDER;
                assert!(apart, "{n}");
            }
        }
    }

    #[test]
    fn the_atlas_fits_every_graphics_card_at_any_window_size() {
        for (size, scale) in [
            ((640.0, 360.0), 0.5),
            ((960.0, 540.0), 1.0),
            ((1280.0, 720.0), 1.0),
            ((2560.0, 1440.0), 2.0),
            ((800.0, 1400.0), 0.75),
            ((3840.0, 2160.0), 3.0),
        ] {
            assert_eq!(Atlas::scale_for(size.into(), false), scale);
            let large = Atlas::scale_for(size.into(), true);
            assert!(
                large >= scale && (large > scale || scale < 1.0 || size.0 < 1000.0),
                "{size:?}"
            );
        }
        let atlas = Atlas::new(1.0, ColorMode::Safe);
        assert!(atlas.side <= 1_024, "{}", atlas.side);
        assert_eq!(atlas.bytes.len(), atlas.side * atlas.side * 4);
    }

    #[test]
    fn letters_are_drawn_where_their_strokes_are() {
        let atlas = Atlas::new(1.0, ColorMode::Safe);
        let entry = atlas.letter(Type::Title, super::super::art::glyph('L'));
        let left = entry.from * atlas.side as f32;
        let cover = |steps: Vec2| {
            let grid = atlas.grid(Type::Title);
            let x = left.x + atlas.before(Type::Title) + steps.x * grid;
            let y = left.y + entry.size.y - atlas.below(Type::Title) - steps.y * grid;
            atlas.bytes[(y as usize * atlas.side + x as usize) * 4 + 3]
        };
        assert!(cover(vec2(0.0, 4.0)) > 200 && cover(vec2(2.0, 0.0)) > 200);
        assert_eq!(cover(vec2(3.0, 5.0)), 0);
    }
}
