//! [`Batch`]: one picture as quads over the atlas, in painter's order. Pure data: it does not need a screen, so tests
//! can inspect it.
//!
//! Own code: macroquad's drawing functions need an open window, and start a new draw call whenever the texture or the
//! blending changes.
//!
//! ```text
//!   ViewScene ──paint::*──▶ Batch ──gpu──▶ one draw call per 16,000 quads
//! ```

use glam::{Vec2, vec2};

use super::atlas::{Atlas, AtlasEntry, Type};
use super::rect::Rect;
use super::text;
use crate::scene::Sprite;
use crate::scene::palette::Tint;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Corner {
    pub(crate) at: Vec2,
    pub(crate) uv: Vec2,
    pub(crate) color: [u8; 4],
}

pub(crate) struct Batch {
    pub(crate) atlas: Atlas,
    /// Four for each quad: upper left, upper right, lower right, lower left.
    pub(crate) corners: Vec<Corner>,
    /// The number of corners at the start that are plain: opaque, in one colour, drawn without the atlas.
    pub(crate) plain: usize,
}

const QUADS_ROOM: usize = 8_192;

impl Batch {
    pub(crate) fn new(atlas: Atlas) -> Batch {
        Batch {
            atlas,
            corners: Vec::with_capacity(QUADS_ROOM * 4),
            plain: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.corners.clear();
        self.plain = 0;
    }

    /// Marks all quads so far as plain, so that a floor costs little more than a cleared screen.
    pub(crate) fn end_plain(&mut self) {
        debug_assert!(self.corners.iter().all(|corner| corner.color[3] == 255));
        self.plain = self.corners.len();
    }

    /// Adds the visible part of an entry, which starts at `corner` and extends along `x` and `y`.
    fn entry(&mut self, corner: Vec2, x: Vec2, y: Vec2, entry: AtlasEntry, tint: Tint) {
        let [from, to] = entry.ink;
        let at = |part: Vec2| corner + x * part.x + y * part.y;
        let whole = entry.to - entry.from;
        self.quad(
            [
                at(from),
                at(vec2(to.x, from.y)),
                at(to),
                at(vec2(from.x, to.y)),
            ],
            [entry.from + whole * from, entry.from + whole * to],
            tint,
        );
    }

    fn quad(&mut self, at: [Vec2; 4], [from, to]: [Vec2; 2], tint: Tint) {
        let color = tint.premultiplied();
        let uv = [from, vec2(to.x, from.y), to, vec2(from.x, to.y)];
        self.corners.extend(
            at.into_iter()
                .zip(uv)
                .map(|(at, uv)| Corner { at, uv, color }),
        );
    }

    /// Adds a sprite centred on `middle`, with half-size `half`, rotated counter-clockwise by `angle`.
    pub(crate) fn sprite(
        &mut self,
        sprite: Sprite,
        middle: Vec2,
        half: Vec2,
        angle: f32,
        tint: Tint,
    ) {
        let (x, y) = if angle == 0.0 {
            (vec2(half.x, 0.0), vec2(0.0, half.y))
        } else {
            // The screen's y axis points down.
            let (sin, cos) = libm::sincosf(angle);
            (vec2(cos, -sin) * half.x, vec2(sin, cos) * half.y)
        };
        let entry = self.atlas.sprite(sprite);
        self.entry(middle - x - y, x * 2.0, y * 2.0, entry, tint);
    }

    pub(crate) fn disc(&mut self, sprite: Sprite, middle: Vec2, radius: f32, tint: Tint) {
        self.sprite(sprite, middle, Vec2::splat(radius), 0.0, tint);
    }

    pub(crate) fn fill(&mut self, rect: Rect, tint: Tint) {
        let white = self.white();
        self.quad(rect.corners(), white, tint);
    }

    /// The middle of the white sprite; a filter there does not reach the edge.
    fn white(&self) -> [Vec2; 2] {
        let entry = self.atlas.sprite(Sprite::White);
        [(entry.from + entry.to) * 0.5; 2]
    }

    pub(crate) fn line(&mut self, from: Vec2, to: Vec2, width: f32, tint: Tint) {
        let way = to - from;
        let length = way.length();
        if length == 0.0 {
            return;
        }
        let side = way.perp() * (width * 0.5 / length);
        let white = self.white();
        self.quad(
            [from - side, to - side, to + side, from + side],
            white,
            tint,
        );
    }

    pub(crate) fn nine(&mut self, sprite: Sprite, rect: Rect, border: f32, tint: Tint) {
        self.parts_of_nine(sprite, rect, border, tint, |_, _| true);
    }

    /// Adds only the lower and right edges of a nine-slice sprite, for a sprite whose other parts are hidden.
    pub(crate) fn nine_below(&mut self, sprite: Sprite, rect: Rect, border: f32, tint: Tint) {
        let at_edge = |row, column| row == 2 || column == 2;
        self.parts_of_nine(sprite, rect, border, tint, at_edge);
    }

    fn parts_of_nine(
        &mut self,
        sprite: Sprite,
        rect: Rect,
        border: f32,
        tint: Tint,
        wanted: fn(usize, usize) -> bool,
    ) {
        let entry = self.atlas.sprite(sprite);
        let border = border.min(rect.size.x * 0.5).min(rect.size.y * 0.5);
        let part = 0.34;
        let cut = (entry.to - entry.from) * part;
        let (left, right) = (rect.at, rect.at + rect.size);
        let xs = [left.x, left.x + border, right.x - border, right.x];
        let ys = [left.y, left.y + border, right.y - border, right.y];
        let us = [
            entry.from.x,
            entry.from.x + cut.x,
            entry.to.x - cut.x,
            entry.to.x,
        ];
        let vs = [
            entry.from.y,
            entry.from.y + cut.y,
            entry.to.y - cut.y,
            entry.to.y,
        ];
        for row in 0..3 {
            for column in (0..3).filter(|column| wanted(row, *column)) {
                let part = [vec2(us[column], vs[row]), vec2(us[column + 1], vs[row + 1])];
                let (from, to) = (vec2(xs[column], ys[row]), vec2(xs[column + 1], ys[row + 1]));
                if from.x < to.x && from.y < to.y {
                    self.quad(
                        Rect {
                            at: from,
                            size: to - from,
                        }
                        .corners(),
                        part,
                        tint,
                    );
                }
            }
        }
    }

    /// Adds text. `at` is the lower left corner of its first capital. Returns the width.
    pub(crate) fn text(&mut self, at: Vec2, size: Type, tint: Tint, text: &str) -> f32 {
        // On whole pixels, because letters blur otherwise.
        let at = vec2(libm::roundf(at.x), libm::roundf(at.y));
        let (before, below) = (self.atlas.before(size), self.atlas.below(size));
        let mut pen = 0.0;
        for letter in text.chars() {
            if letter != ' ' {
                let entry = self.atlas.letter(size, super::art::glyph(letter));
                let corner = vec2(
                    libm::roundf(at.x + pen - before),
                    libm::roundf(at.y + below - entry.size.y),
                );
                let (width, height) = (entry.size.x, entry.size.y);
                self.entry(corner, Vec2::X * width, Vec2::Y * height, entry, tint);
            }
            pen += text::advance(size, self.atlas.scale, letter);
        }
        pen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::palette::{ColorMode, WHITE};

    #[test]
    fn a_turned_sprite_keeps_its_middle_and_its_size() {
        let mut batch = Batch::new(Atlas::new(0.5, ColorMode::Safe));
        for angle in [0.0, 0.7, 3.0] {
            batch.clear();
            batch.sprite(
                Sprite::White,
                vec2(10.0, 20.0),
                vec2(4.0, 2.0),
                angle,
                WHITE,
            );
            let middle = batch.corners.iter().map(|corner| corner.at).sum::<Vec2>() / 4.0;
            assert!(middle.distance(vec2(10.0, 20.0)) < 1e-4);
            let width = batch.corners[0].at.distance(batch.corners[1].at);
            let height = batch.corners[1].at.distance(batch.corners[2].at);
            assert!((width - 8.0).abs() < 1e-4 && (height - 4.0).abs() < 1e-4);
        }
        // After a quarter turn counter-clockwise, the right end points up.
        batch.clear();
        batch.sprite(
            Sprite::Shot,
            Vec2::ZERO,
            vec2(4.0, 1.0),
            core::f32::consts::FRAC_PI_2,
            WHITE,
        );
        let right = (batch.corners[1].at + batch.corners[2].at) * 0.5;
        let ink = batch.atlas.sprite(Sprite::Shot).ink[1].x * 2.0 - 1.0;
        assert!(right.distance(vec2(0.0, -4.0 * ink)) < 1e-4, "{right}");
    }

    #[test]
    fn only_the_ink_of_a_sprite_is_drawn_at_an_unchanged_position() {
        let mut batch = Batch::new(Atlas::new(1.0, ColorMode::Safe));
        let entry = batch.atlas.sprite(Sprite::PlayerHull);
        let [from, to] = entry.ink;
        assert!(
            from.min_element() > 0.05 && from.cmplt(to).all(),
            "{from} {to}"
        );
        batch.sprite(
            Sprite::PlayerHull,
            vec2(50.0, 60.0),
            vec2(20.0, 10.0),
            0.0,
            WHITE,
        );
        let [first, _, last, _] = &batch.corners[..] else {
            panic!("one quad")
        };
        let place = |part: Vec2| vec2(30.0, 50.0) + vec2(40.0, 20.0) * part;
        assert!(first.at.distance(place(from)) < 1e-4 && last.at.distance(place(to)) < 1e-4);
        assert_eq!(first.uv, entry.from + (entry.to - entry.from) * from);
    }

    #[test]
    fn a_box_in_nine_parts_fills_its_rectangle_exactly() {
        let mut batch = Batch::new(Atlas::new(0.5, ColorMode::Safe));
        let rect = Rect::new(5.0, 6.0, 100.0, 40.0);
        batch.nine(Sprite::Panel, rect, 8.0, WHITE);
        assert_eq!(batch.corners.len(), 9 * 4);
        let area: f32 = batch
            .corners
            .chunks(4)
            .map(|quad| (quad[2].at.x - quad[0].at.x) * (quad[2].at.y - quad[0].at.y))
            .sum();
        assert!((area - 4_000.0).abs() < 1e-2, "{area}");
    }
}
