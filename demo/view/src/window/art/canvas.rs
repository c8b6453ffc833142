//! [`Canvas`]: a small picture drawn with signed distances, with one-pixel soft edges.
//!
//! Units: the shorter side reaches from −1 to 1, +x to the right and +y up, the origin in the middle. Colours are
//! premultiplied, so that sprites scale and blend without dark seams.

use glam::Vec2;

use crate::scene::palette::Tint;

pub(crate) type Ink = [f32; 4];

pub(crate) const fn gray(value: f32) -> Ink {
    [value, value, value, 1.0]
}

pub(crate) const fn veil(value: f32, alpha: f32) -> Ink {
    [value, value, value, alpha]
}

/// Opacities up to this (out of 255) are invisible.
const FAINTEST: u8 = 4;

pub(crate) struct Canvas {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pixels: Vec<[f32; 4]>,
    /// Units per pixel.
    step: f32,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize) -> Canvas {
        Canvas {
            width,
            height,
            pixels: vec![[0.0; 4]; width * height],
            step: 2.0 / width.min(height) as f32,
        }
    }

    pub(crate) fn fill(&mut self, shape: impl Fn(Vec2) -> f32, ink: impl Fn(Vec2) -> Ink) {
        let step = self.step;
        self.each(|at| {
            let cover = (0.5 - shape(at) / step).clamp(0.0, 1.0);
            if cover == 0.0 {
                return [0.0; 4];
            }
            let [r, g, b, a] = ink(at);
            [r, g, b, a * cover]
        });
    }

    pub(crate) fn white(&mut self, shape: impl Fn(Vec2) -> f32) {
        self.fill(shape, |_| gray(1.0));
    }

    pub(crate) fn glow(&mut self, shape: impl Fn(Vec2) -> f32, reach: f32, ink: Ink) {
        self.each(|at| {
            let near = (1.0 - shape(at) / reach).clamp(0.0, 1.0);
            let [r, g, b, a] = ink;
            [r, g, b, a * near * near]
        });
    }

    pub(crate) fn each(&mut self, paint: impl Fn(Vec2) -> Ink) {
        let middle = Vec2::new(self.width as f32, self.height as f32) * 0.5;
        for row in 0..self.height {
            for column in 0..self.width {
                let at = Vec2::new(column as f32 + 0.5 - middle.x, middle.y - row as f32 - 0.5)
                    * self.step;
                let [r, g, b, a] = paint(at);
                if a <= 0.0 {
                    continue;
                }
                let pixel = &mut self.pixels[row * self.width + column];
                for (below, above) in pixel.iter_mut().zip([r * a, g * a, b * a, a]) {
                    *below = above + *below * (1.0 - a);
                }
            }
        }
    }

    pub(crate) fn cover(&mut self, above: &Canvas, tint: Tint) {
        let [r, g, b] = tint.rgb.map(|part| f32::from(part) / 255.0);
        for (below, above) in self.pixels.iter_mut().zip(&above.pixels) {
            let part = [above[0] * r, above[1] * g, above[2] * b, above[3]];
            for (below, part) in below.iter_mut().zip(part) {
                *below = part + *below * (1.0 - above[3]);
            }
        }
    }

    /// The box of all visible pixels: its upper left corner, and the corner beyond its lower right. Empty if there are
    /// none.
    pub(crate) fn ink(&self) -> [(usize, usize); 2] {
        let (mut from, mut to) = ((self.width, self.height), (0, 0));
        for y in 0..self.height {
            for x in (0..self.width).filter(|x| self.bytes(*x, y)[3] > FAINTEST) {
                from = (from.0.min(x), from.1.min(y));
                to = (to.0.max(x + 1), to.1.max(y + 1));
            }
        }
        [(from.0.min(to.0), from.1.min(to.1)), to]
    }

    /// The premultiplied bytes of a pixel; the top row is row 0.
    pub(crate) fn bytes(&self, x: usize, y: usize) -> [u8; 4] {
        self.pixels[y * self.width + x].map(|part| (part.clamp(0.0, 1.0) * 255.0 + 0.5) as u8)
    }
}

/// Distances to shapes, negative inside.
pub(crate) mod shape {
    use core::f32::consts::TAU;

    use glam::Vec2;

    pub(crate) fn disc(at: Vec2, middle: Vec2, radius: f32) -> f32 {
        at.distance(middle) - radius
    }

    pub(crate) fn ring(at: Vec2, radius: f32, width: f32) -> f32 {
        (at.length() - radius).abs() - width * 0.5
    }

    pub(crate) fn stroke(at: Vec2, from: Vec2, to: Vec2, radius: f32) -> f32 {
        let (way, offset) = (to - from, at - from);
        let part = if way == Vec2::ZERO {
            0.0
        } else {
            (offset.dot(way) / way.length_squared()).clamp(0.0, 1.0)
        };
        offset.distance(way * part) - radius
    }

    pub(crate) fn slab(at: Vec2, middle: Vec2, half: Vec2, round: f32) -> f32 {
        let out = (at - middle).abs() - half + round;
        out.max(Vec2::ZERO).length() + out.x.max(out.y).min(0.0) - round
    }

    pub(crate) fn polygon(at: Vec2, corners: &[Vec2]) -> f32 {
        let mut nearest = f32::MAX;
        let mut inside = false;
        let mut from = corners[corners.len() - 1];
        for &to in corners {
            nearest = nearest.min(stroke(at, from, to, 0.0));
            // A ray to the right crosses this edge.
            if (from.y > at.y) != (to.y > at.y)
                && at.x < (to.x - from.x) * (at.y - from.y) / (to.y - from.y) + from.x
            {
                inside = !inside;
            }
            from = to;
        }
        if inside { -nearest } else { nearest }
    }

    pub(crate) fn folded(at: Vec2, n: u32) -> Vec2 {
        let sector = TAU / n as f32;
        let angle = libm::atan2f(at.y, at.x);
        turned(at, -libm::roundf(angle / sector) * sector)
    }

    pub(crate) fn turned(at: Vec2, angle: f32) -> Vec2 {
        Vec2::new(libm::cosf(angle), libm::sinf(angle)).rotate(at)
    }

    pub(crate) fn regular(at: Vec2, corners: u32, radius: f32) -> f32 {
        let half = TAU / (2 * corners) as f32;
        let folded = folded(turned(at, half), corners);
        folded.x - radius * libm::cosf(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disc_is_full_in_its_middle_and_empty_beyond_its_edge() {
        let mut canvas = Canvas::new(32, 32);
        canvas.white(|at| shape::disc(at, Vec2::ZERO, 0.8));
        assert_eq!(canvas.bytes(16, 16), [255; 4]);
        assert_eq!(canvas.bytes(0, 0), [0; 4]);
        let edge = canvas.bytes(16, 3)[3];
        assert!(edge > 0 && edge < 255, "soft: {edge}");
    }

    #[test]
    fn a_polygon_has_an_inside_and_an_outside_with_distances() {
        let square = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(Vec2::from);
        assert!((shape::polygon(Vec2::ZERO, &square) + 1.0).abs() < 1e-6);
        assert!((shape::polygon(Vec2::new(3.0, 0.0), &square) - 2.0).abs() < 1e-6);
        assert!((shape::regular(Vec2::new(2.0, 0.0), 4, 1.0) - 0.70).abs() < 0.02);
    }
}
