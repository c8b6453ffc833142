//! [`Rect`]: a box on the screen, in pixels, and how to cut it. All layout uses these cuts, so parts of one box cannot
//! overlap.

use glam::{Vec2, vec2};

/// A box; the y axis points down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) at: Vec2,
    pub(crate) size: Vec2,
}

impl Rect {
    pub(crate) const fn new(x: f32, y: f32, width: f32, height: f32) -> Rect {
        Rect {
            at: vec2(x, y),
            size: vec2(width, height),
        }
    }

    pub(crate) fn middle_part(&self, size: Vec2) -> Rect {
        let size = size.min(self.size);
        Rect {
            at: self.at + (self.size - size) * 0.5,
            size,
        }
    }

    pub(crate) fn around(middle: Vec2, half: Vec2) -> Rect {
        Rect {
            at: middle - half,
            size: half * 2.0,
        }
    }

    pub(crate) fn middle(&self) -> Vec2 {
        self.at + self.size * 0.5
    }

    pub(crate) fn right(&self) -> f32 {
        self.at.x + self.size.x
    }

    pub(crate) fn bottom(&self) -> f32 {
        self.at.y + self.size.y
    }

    pub(crate) fn shrunk(&self, by: f32) -> Rect {
        let by = Vec2::splat(by).min(self.size * 0.5);
        Rect {
            at: self.at + by,
            size: self.size - by * 2.0,
        }
    }

    pub(crate) fn cut_top(&mut self, height: f32) -> Rect {
        let height = height.min(self.size.y);
        let cut = Rect {
            at: self.at,
            size: vec2(self.size.x, height),
        };
        self.at.y += height;
        self.size.y -= height;
        cut
    }

    pub(crate) fn cut_bottom(&mut self, height: f32) -> Rect {
        let height = height.min(self.size.y);
        self.size.y -= height;
        Rect {
            at: vec2(self.at.x, self.bottom()),
            size: vec2(self.size.x, height),
        }
    }

    pub(crate) fn cut_left(&mut self, width: f32) -> Rect {
        let width = width.min(self.size.x);
        let cut = Rect {
            at: self.at,
            size: vec2(width, self.size.y),
        };
        self.at.x += width;
        self.size.x -= width;
        cut
    }

    pub(crate) fn cut_right(&mut self, width: f32) -> Rect {
        let width = width.min(self.size.x);
        self.size.x -= width;
        Rect {
            at: vec2(self.right(), self.at.y),
            size: vec2(width, self.size.y),
        }
    }

    pub(crate) fn contains(&self, at: Vec2) -> bool {
        at.cmpge(self.at).all() && at.cmplt(self.at + self.size).all()
    }

    pub(crate) fn holds(&self, other: &Rect) -> bool {
        let slack = Vec2::splat(0.01);
        other.at.cmpge(self.at - slack).all()
            && (other.at + other.size)
                .cmple(self.at + self.size + slack)
                .all()
    }

    pub(crate) fn overlaps(&self, other: &Rect) -> bool {
        let slack = Vec2::splat(0.01);
        (self.at + self.size).cmpgt(other.at + slack).all()
            && (other.at + other.size).cmpgt(self.at + slack).all()
    }

    pub(crate) fn corners(&self) -> [Vec2; 4] {
        let to = self.at + self.size;
        [self.at, vec2(to.x, self.at.y), to, vec2(self.at.x, to.y)]
    }
}
