//! What is printed: the one way to standard output and standard error.
//!
//! Nothing that is printed can control the terminal, whatever it contains (a path, a player's name, an error of a
//! journal): see [`twinstep_protocol::text`]. If the reader of the output has gone away, that is no error, and the match
//! goes on.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use twinstep_protocol::text::plain;

/// Standard output takes nothing more, as on a full disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct Unsaid(#[from] io::Error);

/// Prints to standard output, and ends the line.
///
/// # Errors
/// It cannot be written, as on a full disk. That nobody reads it is none.
pub fn out(text: impl Display) -> Result<(), Unsaid> {
    Ok(write(&mut io::stdout().lock(), text)?)
}

/// Prints to standard error, and ends the line; best effort, since there is nowhere to say that it failed.
pub fn err(text: impl Display) {
    let _ = write(&mut io::stderr().lock(), text);
}

fn write(to: &mut impl Write, text: impl Display) -> io::Result<()> {
    let text = text.to_string();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    // At once: others print too.
    let row = format!("{}\n", plain(text));
    match to.write_all(row.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader who has gone away, or a full disk.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Finding O10.
    #[test]
    fn nobody_has_to_listen_but_a_full_disk_is_told() {
        assert!(write(&mut Broken(ErrorKind::BrokenPipe), "words").is_ok());
        let full = write(&mut Broken(ErrorKind::StorageFull), "words");
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn what_is_printed_steers_nothing_and_ends_its_line_once() {
        let mut out = Vec::new();
        write(&mut out, "two\nrows\n").unwrap();
        write(&mut out, "\u{1b}[2J\u{9b}\u{202e}.").unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "two\nrows\n\\u{1b}[2J\\u{9b}\\u{202e}.\n");
    }
}
