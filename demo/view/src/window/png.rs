//! Pictures as files, written by the crate `png`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, FilterType};

/// A picture of the screen.
pub(crate) struct Screenshot {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Red, green, blue; the top row first.
    pub(crate) rgb: Vec<u8>,
}

impl Screenshot {
    /// Writes it, as small as it can be without loss.
    pub(crate) fn save(&self, path: &Path) -> Result<(), EncodingError> {
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = Encoder::new(file, self.width as u32, self.height as u32);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Best);
        encoder.set_filter(FilterType::Paeth);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        writer.finish()
    }
}
