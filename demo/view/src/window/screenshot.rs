//! [`Screenshot`]: a batch as an image. The processor draws it, so no window, display or driver is needed, and every
//! machine produces the same pixels. The crate `png` writes the file.

use std::path::Path;

use glam::{Vec2, vec2};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, FilterType};

use super::atlas::Atlas;
use super::batch::{Batch, Corner};
use crate::files;
use crate::scene::palette::Tint;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Screenshot {
    width: usize,
    height: usize,
    /// Red, green, blue; the top row first.
    pixels: Vec<[u8; 3]>,
}

impl Screenshot {
    pub(crate) fn of(batch: &Batch, background: Tint, size: Vec2) -> Screenshot {
        let (width, height) = (size.x as usize, size.y as usize);
        let mut shot = Screenshot {
            width,
            height,
            pixels: vec![background.rgb; width * height],
        };
        for quad in batch.corners.chunks_exact(4) {
            shot.draw(&batch.atlas, quad);
        }
        shot
    }

    /// Draws a quad, which is a parallelogram. `way` from the first corner is `s` times the upper edge plus `t` times
    /// the left edge.
    fn draw(&mut self, atlas: &Atlas, quad: &[Corner]) {
        let (first, right, below) = (&quad[0], &quad[1], &quad[3]);
        let (x, y) = (right.at - first.at, below.at - first.at);
        let (u, v) = (right.uv - first.uv, below.uv - first.uv);
        let area = x.perp_dot(y);
        let far = first.at + x + y;
        let low = first.at.min(far).min(right.at).min(below.at);
        let high = first.at.max(far).max(right.at).max(below.at);
        let span = |low: f32, high: f32, end: usize| {
            low.max(0.0) as usize..(high.max(0.0) as usize + 1).min(end)
        };
        for row in span(low.y, high.y, self.height) {
            for column in span(low.x, high.x, self.width) {
                let way = vec2(column as f32 + 0.5, row as f32 + 0.5) - first.at;
                let (s, t) = (way.perp_dot(y) / area, x.perp_dot(way) / area);
                // Half-open, so that neighbours do not draw a pixel twice.
                if !(0.0..1.0).contains(&s) || !(0.0..1.0).contains(&t) {
                    continue;
                }
                let texel = atlas.texel(first.uv + u * s + v * t);
                let paint = |n: usize| texel[n] * f32::from(first.color[n]) / 255.0;
                let left = 1.0 - paint(3) / 255.0;
                for (n, channel) in self.pixels[row * self.width + column]
                    .iter_mut()
                    .enumerate()
                {
                    *channel = libm::roundf(paint(n) + f32::from(*channel) * left).min(255.0) as u8;
                }
            }
        }
    }

    pub(crate) fn pixels(&self) -> &[[u8; 3]] {
        &self.pixels
    }

    #[cfg(test)]
    pub(crate) fn resembles(&self, file: &Path, off: u8) -> bool {
        let mut reader = png::Decoder::new(std::fs::File::open(file).unwrap())
            .read_info()
            .unwrap();
        let mut bytes = vec![0; reader.output_buffer_size()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let own = self.pixels.as_flattened();
        (info.width as usize, info.height as usize, own.len())
            == (self.width, self.height, bytes.len())
            && own.iter().zip(&bytes).all(|(a, b)| a.abs_diff(*b) <= off)
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Best);
        encoder.set_filter(FilterType::Paeth);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(files::write(path, bytes)?)
    }
}
