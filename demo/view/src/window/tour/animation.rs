//! [`Animation`]: an animated PNG with one palette, in which each frame stores only what has changed.
//!
//! The palette is fixed: 15 colours and a transparent one. So each frame is written at once, without waiting for a
//! palette to be computed, and flat areas stay flat. Four bits per pixel halve the file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use png::{BitDepth, BlendOp, ColorType, Compression, Encoder, EncodingError, FilterType, Writer};

use crate::scene::palette::Tint;
use crate::window::screenshot::Screenshot;

// The index of a pixel that has not changed.
const SAME: u8 = 0;
// The number of colours without `SAME`.
pub(super) const COLORS_MAX: usize = 15;
// Colours are looked up by the five upper bits of each channel.
const BITS: usize = 5;

pub(super) struct Animation {
    width: usize,
    nearest: Vec<u8>,
    last: Vec<u8>,
    packed: Vec<u8>,
    writer: Writer<BufWriter<File>>,
}

impl Animation {
    /// Starts an animation file of `frames` frames, played at `per_second` frames per second in an endless loop.
    pub(super) fn begin(
        path: &Path,
        [width, height]: [usize; 2],
        (frames, per_second): (u32, u16),
        colors: &[Tint; COLORS_MAX],
    ) -> Result<Animation, EncodingError> {
        let unused = [[0; 3]];
        let palette: Vec<[u8; 3]> = unused
            .into_iter()
            .chain(colors.iter().map(|c| c.rgb))
            .collect();
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = Encoder::new(file, width as u32, height as u32);
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(BitDepth::Four);
        encoder.set_compression(Compression::Best);
        encoder.set_filter(FilterType::NoFilter);
        encoder.set_palette(palette.as_flattened().to_vec());
        encoder.set_trns(vec![0]);
        encoder.set_animated(frames, 0)?;
        encoder.set_frame_delay(1, per_second)?;
        encoder.set_blend_op(BlendOp::Over)?;
        Ok(Animation {
            width,
            nearest: nearest(&palette),
            last: Vec::new(),
            packed: Vec::new(),
            writer: encoder.write_header()?,
        })
    }

    pub(super) fn push(&mut self, shot: &Screenshot) -> Result<(), EncodingError> {
        let index = |pixel: &[u8; 3]| self.nearest[slot(*pixel)];
        let pixels: Vec<u8> = shot.pixels().iter().map(index).collect();
        let is_first = self.last.is_empty();
        let [x, y, width, height] = match is_first {
            true => [0, 0, self.width, pixels.len() / self.width],
            false => changed(&self.last, &pixels, self.width),
        };
        self.packed.clear();
        for row in y..y + height {
            let at = row * self.width + x..row * self.width + x + width;
            let value = |at: usize| match self.last.get(at) {
                Some(last) if *last == pixels[at] => SAME,
                _ => pixels[at],
            };
            let pairs = at.clone().step_by(2).map(|left| {
                let right = if left + 1 < at.end {
                    value(left + 1)
                } else {
                    SAME
                };
                value(left) << 4 | right
            });
            self.packed.extend(pairs);
        }
        if !is_first {
            // In this order, because the writer checks each position and size against the current ones.
            self.writer.set_frame_position(0, 0)?;
            self.writer
                .set_frame_dimension(width as u32, height as u32)?;
            self.writer.set_frame_position(x as u32, y as u32)?;
        }
        self.writer.write_image_data(&self.packed)?;
        self.last = pixels;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), EncodingError> {
        self.writer.finish()
    }
}

/// The box around all pixels that differ: x, y, width and height, at least one pixel.
fn changed(last: &[u8], pixels: &[u8], width: usize) -> [usize; 4] {
    let rows = || last.chunks(width).zip(pixels.chunks(width)).enumerate();
    let mut differing = rows().filter(|(_, (was, is))| was != is).map(|(y, _)| y);
    let Some(top) = differing.next() else {
        return [0, 0, 1, 1];
    };
    let bottom = differing.next_back().unwrap_or(top);
    let (mut left, mut right) = (width, 0);
    for (_, (was, is)) in rows().skip(top).take(bottom - top + 1) {
        let mut differs = (0..width).filter(|x| was[*x] != is[*x]);
        if let Some(first) = differs.next() {
            left = left.min(first);
            right = right.max(differs.next_back().unwrap_or(first));
        }
    }
    [left, top, right - left + 1, bottom - top + 1]
}

fn slot(pixel: [u8; 3]) -> usize {
    let part = |n: usize| usize::from(pixel[n]) >> (8 - BITS);
    (part(0) << (2 * BITS)) | (part(1) << BITS) | part(2)
}

fn nearest(palette: &[[u8; 3]]) -> Vec<u8> {
    let channel = |n: usize| ((n % (1 << BITS)) << (8 - BITS)) as i32 + (1 << (7 - BITS));
    let off = |color: &[u8; 3], n: usize| {
        let parts = [n >> (2 * BITS), n >> BITS, n].map(channel);
        let squares = color.iter().zip(parts).map(|(own, part)| {
            let off = i32::from(*own) - part;
            off * off
        });
        squares.sum::<i32>()
    };
    (0..1 << (3 * BITS))
        .map(|n| {
            let colors = palette.iter().enumerate().skip(1);
            let best = colors.min_by_key(|(_, color)| off(color, n));
            best.map_or(1, |(at, _)| at as u8)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_box_of_changed_pixels_is_stored() {
        let last = [1; 12];
        let mut pixels = last;
        assert_eq!(changed(&last, &pixels, 4), [0, 0, 1, 1]);
        pixels[5] = 2;
        assert_eq!(changed(&last, &pixels, 4), [1, 1, 1, 1]);
        pixels[11] = 2;
        assert_eq!(changed(&last, &pixels, 4), [1, 1, 3, 2]);
    }

    #[test]
    fn each_palette_colour_maps_to_itself() {
        let colors = [[0; 3], [0x12, 0x18, 0x20], [0xf0, 0xe4, 0x42], [0xff; 3]];
        let nearest = nearest(&colors);
        for (at, color) in colors.into_iter().enumerate().skip(1) {
            assert_eq!(usize::from(nearest[slot(color)]), at);
        }
    }

    #[test]
    fn an_animation_of_two_frames_can_be_decoded() {
        use crate::window::atlas::Atlas;
        use crate::window::batch::Batch;
        use crate::window::rect::Rect;

        let path = std::env::temp_dir().join(format!("film-{}.png", std::process::id()));
        let colors = [Tint::new(0x12_18_20); COLORS_MAX - 1];
        let colors: Vec<Tint> = colors.into_iter().chain([Tint::new(0xff_ff_ff)]).collect();
        let colors = colors.try_into().unwrap();
        let mut film = Animation::begin(&path, [9, 5], (2, 12), &colors).unwrap();
        let mut batch = Batch::new(Atlas::new(0.5, crate::scene::palette::ColorMode::Safe));
        for x in [2.0, 5.0] {
            batch.clear();
            batch.fill(Rect::new(x, 1.0, 2.0, 2.0), Tint::new(0xff_ff_ff));
            let size = glam::vec2(9.0, 5.0);
            film.push(&Screenshot::of(&batch, colors[0], size)).unwrap();
        }
        film.finish().unwrap();
        let file = File::open(&path).unwrap();
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut bytes).unwrap();
        let second = reader.next_frame(&mut bytes).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!((second.width, second.height), (5, 2));
        // Two pixels of the old place are dark again, one is the same, two are white.
        let row = [
            bytes[0] >> 4,
            bytes[0] & 15,
            bytes[1] >> 4,
            bytes[1] & 15,
            bytes[2] >> 4,
        ];
        assert_eq!(row, [1, 1, 0, 15, 15]);
    }
}
