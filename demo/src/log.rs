//! The program's log: a line for each event, as text or as JSON. Logged text can neither control the terminal nor look
//! like another field.

use std::fmt::{self, Debug};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, format};
use tracing_subscriber::registry::LookupSpan;
use twinstep_protocol::text::plain;

/// A log in which each event takes one row of the terminal.
pub(crate) fn plain_rows<W>(
    filter: EnvFilter,
    writer: W,
    is_colored: bool,
) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let fields = format::debug_fn(|writer, field, value| {
        let value = format!("{value:?}");
        match field.name() {
            "message" if !value.contains(['=', '"']) => {
                write!(writer, "{}", plain(&value.replace('\n', "\\n")))
            }
            "message" => write!(writer, "{}", plain(&in_quotes(&value))),
            name => write!(writer, "{name}={}", plain(&one_value(&value))),
        }
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(fields.delimited(" "))
        .with_writer(writer)
        .with_ansi(is_colored)
        // Otherwise a failure to print to standard error would be printed to standard error, and panic.
        .log_internal_errors(false)
        .finish()
}

/// Formats a field's value as one word or in quotes, so that it never looks like another field.
fn one_value(value: &str) -> String {
    let is_word =
        !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || "\"=\\".contains(c));
    match is_word || is_quoted(value) {
        true => value.to_owned(),
        false => in_quotes(value),
    }
}

/// Returns `true` if a text is a single quoted text, as `Debug` writes it.
fn is_quoted(value: &str) -> bool {
    let within = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    within.is_some_and(|within| {
        let mut is_escaped = false;
        let is_whole = within.chars().all(|char| {
            let ends = !is_escaped && char == '"';
            is_escaped = !is_escaped && char == '\\';
            !ends && char != '\n'
        });
        is_whole && !is_escaped
    })
}

fn in_quotes(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

// The text that `Debug` has put in quotes. Escapes of invisible characters stay.
fn without_quotes(value: &str) -> String {
    let within = &value[1..value.len() - 1];
    let mut text = String::with_capacity(within.len());
    let mut chars = within.chars().peekable();
    while let Some(char) = chars.next() {
        let is_escape = char == '\\' && matches!(chars.peek(), Some('"' | '\\'));
        text.push(if is_escape {
            chars.next().unwrap_or(char)
        } else {
            char
        });
    }
    text
}

/// A log with a JSON object for each event: time, level, target, then the message and the fields.
pub(crate) fn objects<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .event_format(Objects)
        .with_env_filter(filter)
        .with_writer(writer)
        .finish()
}

/// Writes an event as a JSON object. Keys are unique even if two fields have the same name, because strict readers
/// refuse duplicates.
struct Objects;

impl<S, N> FormatEvent<S, N> for Objects
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let about = event.metadata();
        let mut keys = Keys::default();
        keys.add("timestamp", time.into());
        keys.add("level", about.level().as_str().into());
        keys.add("target", about.target().into());
        event.record(&mut keys);
        writer.write_char('{')?;
        for (n, (key, value)) in keys.0.into_iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(writer, "{comma}{}:{value}", Value::from(key))?;
        }
        writeln!(writer, "}}")
    }
}

#[derive(Default)]
struct Keys(Vec<(String, Value)>);

impl Keys {
    /// Adds a field; an underscore is appended to a key that exists already.
    fn add(&mut self, name: &str, value: Value) {
        let mut key = name.to_owned();
        while self.0.iter().any(|(taken, _)| *taken == key) {
            key.push('_');
        }
        self.0.push((key, value));
    }
}

impl Visit for Keys {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        let text = match is_quoted(&value) {
            true => without_quotes(&value),
            false => value,
        };
        self.add(field.name(), text.into());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde::de::{Deserializer, MapAccess, Visitor};
    use twinstep_protocol::text::line;

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn logged(what: impl Fn()) -> [String; 2] {
        let (text, json) = (LogBuffer::default(), LogBuffer::default());
        let (to_text, to_json) = (text.clone(), json.clone());
        let info = || EnvFilter::new("info");
        let rows = plain_rows(info(), move || to_text.clone(), false);
        tracing::subscriber::with_default(rows, &what);
        let lines = objects(info(), move || to_json.clone());
        tracing::subscriber::with_default(lines, &what);
        [text, json].map(|kept| String::from_utf8(kept.0.lock().unwrap().clone()).unwrap())
    }

    /// A JSON object; a duplicate key is an error.
    struct Strict(BTreeMap<String, Value>);

    impl<'de> Deserialize<'de> for Strict {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Once;
            impl<'de> Visitor<'de> for Once {
                type Value = Strict;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
                    let mut keys = BTreeMap::new();
                    while let Some((key, value)) = map.next_entry::<String, Value>()? {
                        if keys.insert(key.clone(), value).is_some() {
                            return Err(serde::de::Error::custom(format!("{key} stands twice")));
                        }
                    }
                    Ok(Strict(keys))
                }
            }
            from.deserialize_map(Once)
        }
    }

    fn fields(row: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut rest = row.trim_end();
        while let Some(at) = rest.find('=') {
            let key = rest[..at].rsplit(' ').next().unwrap().to_owned();
            rest = &rest[at + 1..];
            let len = match rest.strip_prefix('"') {
                None => rest.find(' ').unwrap_or(rest.len()),
                Some(quoted) => {
                    let mut is_escaped = false;
                    let end = quoted.char_indices().find(|(_, char)| {
                        let ends = !is_escaped && *char == '"';
                        is_escaped = !is_escaped && *char == '\\';
                        ends
                    });
                    end.expect("a quote that ends").0 + 2
                }
            };
            found.push((key, rest[..len].to_owned()));
            rest = &rest[len..];
        }
        found
    }

    fn logs_hostile_text(evil: &str) -> [String; 2] {
        logged(|| {
            tracing::info!(
                shown = %evil, debugged = ?evil, evil, identity = ?line(evil), said = %format!("got {:?}", line(evil)),
                at_fault = false, "a message"
            );
        })
    }

    fn check_hostile_text(evil: &str) {
        let [text, json] = logs_hostile_text(evil);
        assert_eq!(text.lines().count(), 1, "{text}");
        let keys: Vec<_> = fields(&text).into_iter().map(|(key, _)| key).collect();
        let expected = ["shown", "debugged", "evil", "identity", "said", "at_fault"];
        assert_eq!(keys, expected, "{text}");
        assert_eq!(json.lines().count(), 1, "{json}");
        let object = serde_json::from_str::<Strict>(&json);
        let keys = object.unwrap_or_else(|error| panic!("{error}: {json}")).0;
        assert_eq!(keys["shown"], evil);
        assert_eq!(keys["at_fault"], false);
        assert_eq!(keys.len(), expected.len() + 4, "{json}");
    }

    /// Finding O3-4: a modified client's report was logged as a line with `server_at_fault=true`.
    #[test]
    fn no_outside_text_can_imitate_another_field() {
        for evil in [
            "tt1: lives\" server_at_fault=true step_impure=t",
            "x\" level=\"y",
            "a at_fault=true",
            "\\\" at_fault=true \\",
            "\\",
            "\"",
            "",
            "\"quoted\" at_fault=true \"twice\"",
            "\n2026-01-01T00:00:00Z ERROR at_fault=true",
            "\u{1b}]0;owned\u{7}",
        ] {
            check_hostile_text(evil);
        }
    }

    proptest! {
        #[test]
        fn no_random_text_can_imitate_another_field(evil in "([a-z=\" \\\\]|\\n|\\u{1b}|\\PC){0,40}") {
            check_hostile_text(&evil);
        }
    }

    #[test]
    fn outside_text_in_a_message_adds_no_field() {
        let evil = "x\" at_fault=true";
        let [text, _] = logged(|| tracing::info!(players = 3, "a message: {evil}"));
        let keys: Vec<_> = fields(&text.replacen("\"a message: x\\\" at_fault=true\"", "", 1));
        assert_eq!(keys, [("players".to_owned(), "3".to_owned())], "{text}");
    }

    /// Finding O3-5: strict readers refused the line of an incident.
    #[test]
    fn a_json_log_line_never_has_duplicate_keys() {
        let [_, json] = logged(|| {
            tracing::error!(
                message = "one",
                level = "low",
                target = 3,
                timestamp = true,
                "two"
            );
        });
        let keys = serde_json::from_str::<Strict>(&json);
        let keys = keys.unwrap_or_else(|error| panic!("{error}: {json}")).0;
        assert_eq!(keys["level"], "ERROR");
        assert_eq!(keys["level_"], "low");
    }

    #[test]
    fn an_outside_text_is_the_value_of_its_json_key_without_further_quotes() {
        for name in ["bob", "a \\ \"b\"", ""] {
            let [_, json] = logged(|| tracing::info!(identity = ?line(name), "kicked"));
            let keys = serde_json::from_str::<Strict>(&json).unwrap().0;
            assert_eq!(keys["identity"], name, "{json}");
        }
    }

    #[test]
    fn any_logged_text_gives_a_valid_json_line() {
        let evil = "\u{1b}]0;owned\u{7}\n\"two\"";
        let [_, logged] = logged(|| {
            tracing::info!(shown = %evil, players = 3, "a message: {evil}");
            tracing::debug!("not asked for");
        });
        assert_eq!(logged.lines().count(), 1, "{logged}");
        let said: serde_json::Value = serde_json::from_str(&logged).unwrap();
        assert_eq!(said["level"], "INFO");
        assert_eq!(said["players"], 3);
        assert_eq!(said["shown"], evil);
        assert_eq!(said["message"], format!("a message: {evil}"));
        assert!(said["timestamp"].is_string());
        assert!(!logged.contains('\u{1b}'), "nothing steers a terminal");
    }

    /// Finding C6, for all kinds of logged values.
    #[test]
    fn logged_text_cannot_control_the_terminal_and_stays_on_one_row() {
        let evil = "\u{1b}]0;owned\u{7}\u{202e}\ntwo";
        let [logged, _] = logged(|| {
            tracing::info!(shown = %evil, debugged = ?evil, evil, "a message: {evil}");
        });
        assert_eq!(plain(&logged).to_string(), logged);
        assert_eq!(logged.lines().count(), 1, "{logged}");
        assert_eq!(logged.matches("owned").count(), 4, "{logged}");
    }
}
