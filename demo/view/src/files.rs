//! Files requested by the player, which are written, or downloaded by a browser.

use std::io;
use std::path::Path;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    std::fs::write(path, bytes)
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    crate::page::download(&path.to_string_lossy(), bytes.as_ref());
    Ok(())
}
