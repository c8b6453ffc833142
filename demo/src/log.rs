//! The program's log: a line for each event, for a reader or as JSON. Nothing that is logged can control the terminal.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::{MakeWriter, format};
use twinstep_core::text::plain;

/// A log whose every line is one row of the terminal, whatever was logged.
pub(crate) fn plain_rows<W>(
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

/// A log whose every line is an object: time, level, message, fields.
pub(crate) fn objects<W>(filter: EnvFilter, writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(writer)
        .log_internal_errors(false)
        .finish()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

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

    #[test]
    fn what_is_logged_as_an_object_is_one_line_of_json_whatever_it_says() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = objects(EnvFilter::new("info"), move || writer.clone());
        let evil = "\u{1b}]0;owned\u{7}\n\"two\"";
        tracing::subscriber::with_default(log, || {
            tracing::info!(shown = %evil, players = 3, "a message: {evil}");
            tracing::debug!("not asked for");
        });
        let logged = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(logged.lines().count(), 1, "{logged}");
        let said: serde_json::Value = serde_json::from_str(&logged).unwrap();
        assert_eq!(said["level"], "INFO");
        assert_eq!(said["players"], 3);
        assert_eq!(said["shown"], evil);
        assert_eq!(said["message"], format!("a message: {evil}"));
        assert!(said["timestamp"].is_string());
        assert!(!logged.contains('\u{1b}'), "nothing steers a terminal");
    }

    /// Finding C6: whatever is logged, by whichever part of the program.
    #[test]
    fn what_is_logged_steers_nothing_and_is_one_row() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = plain_rows(EnvFilter::new("info"), move || writer.clone(), false);
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
