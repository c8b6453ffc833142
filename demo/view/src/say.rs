//! Printing: only this module writes to standard output and standard error.
//!
//! Printed text cannot control the terminal, even if it contains a path, a player's name or an error from a journal:
//! see [`twinstep_protocol::text`]. It is not an error if the reader of the output has closed its end; the match
//! continues.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use twinstep_protocol::text::plain;

/// Standard output cannot be written, for example because the disk is full.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct Unsaid(#[from] io::Error);

/// Prints a line to standard output.
///
/// # Errors
/// If standard output cannot be written, for example because the disk is full. A closed pipe is not an error.
pub fn out(text: impl Display) -> Result<(), Unsaid> {
    Ok(write(&mut io::stdout().lock(), text)?)
}

/// Prints a line to standard error; a failure is ignored, because it could not be reported anywhere.
pub fn err(text: impl Display) {
    let _ = write(&mut io::stderr().lock(), text);
}

fn write(to: &mut impl Write, text: impl Display) -> io::Result<()> {
    let text = text.to_string();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    // In one write: other threads also print, and lines must not mix.
    let row = format!("{}\n", plain(text));
    match to.write_all(row.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Finding O10: a closed pipe ended the program with a panic.
    #[test]
    fn a_closed_pipe_is_ignored_but_a_full_disk_is_an_error() {
        assert!(write(&mut Broken(ErrorKind::BrokenPipe), "words").is_ok());
        let full = write(&mut Broken(ErrorKind::StorageFull), "words");
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn printed_text_cannot_control_the_terminal_and_ends_its_line_once() {
        let mut out = Vec::new();
        write(&mut out, "two\nrows\n").unwrap();
        write(&mut out, "\u{1b}[2J\u{9b}\u{202e}.").unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "two\nrows\n\\u{1b}[2J\\u{9b}\\u{202e}.\n");
    }
}
