//! What is printed: the one way to standard output and standard error.
//!
//! Whatever is in it (a journal's reason, a path, a player's name), nothing of it steers the terminal: see
//! [`twinstep_core::text`]. And nobody has to listen: a reader who has gone away ends no match and is no error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::{MakeWriter, format};
use twinstep_core::text::plain;

use crate::cli::Failure;

/// Prints to standard output, and ends the line.
///
/// # Errors
/// It cannot be written, as on a full disk. That nobody reads it is none.
pub(crate) fn out(text: impl Display) -> Result<(), Failure> {
    write(&mut io::stdout().lock(), text).map_err(|source| Failure::System {
        doing: "cannot write to standard output",
        source,
    })
}

/// Prints to standard error, and ends the line; best effort, since there is nowhere to say that it failed.
pub(crate) fn err(text: impl Display) {
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

/// A log whose every line is one row of the terminal, whatever was logged.
pub(crate) fn log<W>(
    filter: EnvFilter,
    writer: W,
    is_colored: bool,
) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let fields = format::debug_fn(|writer, field, value| {
        let value = format!("{value:?}").replace('\n', "\\n");
        match field.name() {
            "message" => write!(writer, "{}", plain(&value)),
            name => write!(writer, "{name}={}", plain(&value)),
        }
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(fields.delimited(" "))
        .with_writer(writer)
        .with_ansi(is_colored)
        // Else it prints to standard error that it cannot print to standard error, and panics.
        .log_internal_errors(false)
        .finish()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

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

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Finding C6: whatever is logged, by whichever part of the program.
    #[test]
    fn what_is_logged_steers_nothing_and_is_one_row() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = log(EnvFilter::new("info"), move || writer.clone(), false);
        let evil = "\u{1b}]0;owned\u{7}\u{202e}\ntwo";
        tracing::subscriber::with_default(log, || {
            tracing::info!(shown = %evil, debugged = ?evil, evil, "a message: {evil}");
        });
        let logged = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(plain(&logged).to_string(), logged);
        assert_eq!(logged.lines().count(), 1, "{logged}");
        assert_eq!(logged.matches("owned").count(), 4, "{logged}");
    }
}
