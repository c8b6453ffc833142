//! The source of a journal's bytes: memory, or a file of any length that is read piece by piece.
//!
//! Invariant: a reader requests one record at a time, so a journal of any length takes the memory of its largest
//! record.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The reason why a source could not be read, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceError(pub &'static str);

/// A journal's bytes. Bytes in memory are a source; the server provides one for files.
pub trait JournalSource {
    /// The bytes starting at `offset`: at least `least` of them, or all up to the end.
    ///
    /// # Errors
    /// If the bytes exist but cannot be read.
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError>;
}

fn from_offset(bytes: &[u8], offset: u64) -> &[u8] {
    let at = usize::try_from(offset).ok();
    at.and_then(|at| bytes.get(at..)).unwrap_or_default()
}

impl<B: AsRef<[u8]> + ?Sized> JournalSource for &B {
    fn window(&mut self, offset: u64, _: usize) -> Result<&[u8], SourceError> {
        Ok(from_offset((**self).as_ref(), offset))
    }
}

impl JournalSource for Vec<u8> {
    fn window(&mut self, offset: u64, _: usize) -> Result<&[u8], SourceError> {
        Ok(from_offset(self, offset))
    }
}

impl<J: JournalSource + ?Sized> JournalSource for &mut J {
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError> {
        (**self).window(offset, least)
    }
}

impl<J: JournalSource + ?Sized> JournalSource for Box<J> {
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError> {
        (**self).window(offset, least)
    }
}

/// A journal's bytes, up to an end.
#[derive(Clone, Debug)]
pub struct UpTo<J> {
    pub journal: J,
    pub end: u64,
}

impl<J: JournalSource> JournalSource for UpTo<J> {
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError> {
        let left = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let window = self.journal.window(offset, least.min(left))?;
        Ok(&window[..window.len().min(left)])
    }
}
