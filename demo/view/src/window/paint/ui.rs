//! [`Ui`]: boxes, bars and text, in pixels, scaled with the window.

use glam::{Vec2, vec2};

use crate::scene::Sprite;
use crate::scene::palette::{EDGE, FAINT, INK, PANEL, Tint};
use crate::window::atlas::Type;
use crate::window::batch::Batch;
use crate::window::rect::Rect;
use crate::window::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Middle,
    Right,
}

pub(crate) struct Ui<'a> {
    pub(crate) batch: &'a mut Batch,
    pub(crate) screen: Rect,
    pub(crate) scale: f32,
    #[cfg(test)]
    pub(crate) said: Vec<(Rect, String)>,
}

impl<'a> Ui<'a> {
    pub(crate) fn new(batch: &'a mut Batch, screen: Rect) -> Ui<'a> {
        let scale = batch.atlas.scale;
        Ui {
            batch,
            screen,
            scale,
            #[cfg(test)]
            said: Vec::new(),
        }
    }

    pub(crate) fn inside(&self) -> Rect {
        self.screen.shrunk(14.0 * self.scale)
    }

    pub(crate) fn panel(&mut self, rect: Rect) {
        let border = 8.0 * self.scale;
        self.batch
            .nine(Sprite::Panel, rect, border, PANEL.alpha(0.88));
        self.batch
            .nine(Sprite::Frame, rect, border, EDGE.alpha(0.9));
    }

    pub(crate) fn plate(&mut self, rect: Rect, tint: Tint) {
        self.batch.nine(Sprite::Panel, rect, 5.0 * self.scale, tint);
    }

    pub(crate) fn bar(&mut self, rect: Rect, part: f32, tint: Tint) {
        self.batch.fill(rect, PANEL.alpha(0.85));
        let mut filled = rect.shrunk(1.5 * self.scale);
        self.batch.fill(filled, EDGE.alpha(0.7));
        filled.size.x *= part.clamp(0.0, 1.0);
        if filled.size.x > 0.0 {
            self.batch.fill(filled, tint);
        }
    }

    pub(crate) fn icon(&mut self, sprite: Sprite, rect: Rect, tint: Tint) {
        let half = rect.size.min_element() * 0.5;
        self.batch
            .sprite(sprite, rect.middle(), Vec2::splat(half), 0.0, tint);
    }

    pub(crate) fn small(&mut self, rect: Rect, align: Align, tint: Tint, words: &str) {
        self.text(rect, align, Type::Small, tint, words);
    }

    pub(crate) fn body(&mut self, rect: Rect, align: Align, tint: Tint, words: &str) {
        self.text(rect, align, Type::Body, tint, words);
    }

    pub(crate) fn head(&mut self, rect: Rect, align: Align, tint: Tint, words: &str) {
        self.text(rect, align, Type::Head, tint, words);
    }

    /// Draws one line of text, vertically centered in its box, and cut if it is too wide.
    pub(crate) fn text(&mut self, rect: Rect, align: Align, size: Type, tint: Tint, words: &str) {
        let words = text::fitted(size, self.scale, words, rect.size.x);
        let width = text::width(size, self.scale, &words);
        let cap = size.cap() * self.scale;
        let left = match align {
            Align::Left => rect.at.x,
            Align::Middle => rect.middle().x - width * 0.5,
            Align::Right => rect.right() - width,
        };
        let baseline = rect.middle().y + cap * 0.5;
        self.batch.text(vec2(left, baseline), size, tint, &words);
        #[cfg(test)]
        if !words.is_empty() {
            let descends = cap * 0.25;
            self.said.push((
                Rect::new(left, baseline - cap, width, cap + descends),
                words,
            ));
        }
    }

    pub(crate) fn pair(&mut self, rect: Rect, name: &str, value: &str, tint: Tint) {
        let width = text::width(Type::Small, self.scale, value);
        self.text(rect, Align::Right, Type::Small, tint, value);
        let mut left = rect;
        left.cut_right(width + 6.0 * self.scale);
        self.text(left, Align::Left, Type::Small, FAINT, name);
    }

    /// Draws a heading with a line below it. Returns the rest of the box.
    pub(crate) fn heading(&mut self, mut rect: Rect, words: &str) -> Rect {
        let line = rect.cut_top(30.0 * self.scale);
        self.text(line, Align::Left, Type::Head, INK, words);
        let rule = rect.cut_top(12.0 * self.scale);
        let rule = Rect::new(
            rule.at.x,
            rule.at.y + 4.0 * self.scale,
            rule.size.x,
            self.scale.max(1.0),
        );
        self.batch.fill(rule, EDGE);
        rect
    }
}
