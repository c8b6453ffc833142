//! [`Fields`]: the parameters of a request, from its query or from a JSON object. Parsed strictly.
//!
//! Invariant: an unexpected field is an error, so a misspelt field is never ignored silently.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Map, Value};
use twinstep_protocol::text::{is_plain, line};
use twinstep_server::MatchRequest;
use twinstep_udp::{MatchId, is_identity};

use crate::bans::REASON_BYTES_MAX;

const MATCH: &str = "the id of a match, such as 1";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Refusal {
    pub(super) fn bad(name: &str, expected: &str, got: Option<&Value>) -> Refusal {
        let got = match got {
            None => "it is missing".to_owned(),
            Some(got) => format!("got {}", line(&got.to_string()).at_most(100)),
        };
        let message = format!("field `{name}`: expected {expected}; {got}\n");
        Refusal(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn form(expected: &str, got: &Value) -> Refusal {
        let got = got.to_string();
        let message = format!("expected {expected}, got {}\n", line(&got).at_most(100));
        Refusal(StatusCode::BAD_REQUEST, message)
    }

    fn field(name: &str, problem: &str) -> Refusal {
        let message = format!("field `{}`: {problem}\n", line(name).at_most(100));
        Refusal(StatusCode::BAD_REQUEST, message)
    }
}

#[derive(Debug)]
pub(super) struct Fields {
    /// The fields of a request that were not taken yet.
    given: Map<String, Value>,
    /// The names of the fields that the request takes.
    names: Vec<&'static str>,
}

impl Fields {
    /// Reads the fields of the body; without a body, the fields of the query.
    pub(super) fn read(query: Option<&str>, body: &str) -> Result<Fields, Refusal> {
        if body.trim().is_empty() {
            return Fields::of_query(query.unwrap_or_default());
        }
        if query.is_some_and(|query| !query.is_empty()) {
            let both = "fields came both in the query and in the body; send one of them\n";
            return Err(Refusal(StatusCode::BAD_REQUEST, both.to_owned()));
        }
        match serde_json::from_str(body) {
            Ok(Value::Object(fields)) => Ok(Fields::of(fields)),
            Ok(other) => Err(Refusal::form("a JSON object", &other)),
            Err(error) => {
                let message = format!("expected a JSON object: {error}\n");
                Err(Refusal(StatusCode::BAD_REQUEST, message))
            }
        }
    }

    fn of_query(query: &str) -> Result<Fields, Refusal> {
        let pairs: Result<Vec<(String, String)>, _> =
            axum::extract::Query::try_from_uri(&query_of(query)?).map(|pairs| pairs.0);
        let pairs = pairs.map_err(|_| unreadable(query))?;
        let mut fields = Map::new();
        for (name, value) in pairs {
            if fields.insert(name.clone(), Value::String(value)).is_some() {
                return Err(Refusal::field(&name, "given twice"));
            }
        }
        Ok(Fields::of(fields))
    }

    fn of(given: Map<String, Value>) -> Fields {
        let names = Vec::new();
        Fields { given, names }
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.names.push(name);
        self.given.remove(name)
    }

    pub(super) fn identity(&mut self) -> Result<String, Refusal> {
        let given = self.take("identity");
        let text = given.as_ref().and_then(Value::as_str);
        match text.filter(|text| is_identity(text)) {
            Some(text) => Ok(text.to_owned()),
            None => Err(Refusal::bad(
                "identity",
                "the name on the ticket, 1 to 32 bytes of visible characters",
                given.as_ref(),
            )),
        }
    }

    pub(super) fn match_if_said(&mut self) -> Result<Option<MatchId>, Refusal> {
        let number = self.number("match", MATCH)?;
        Ok(number.map(MatchId))
    }

    pub(super) fn match_id(&mut self) -> Result<MatchId, Refusal> {
        let id = self.match_if_said()?;
        id.ok_or_else(|| Refusal::bad("match", MATCH, None))
    }

    /// The field `request`, and the number that some requests need.
    pub(super) fn request(&mut self) -> Result<MatchRequest, Refusal> {
        let given = self.take("request");
        match given.as_ref().and_then(Value::as_str) {
            Some("pause") => Ok(MatchRequest::Pause),
            Some("resume") => Ok(MatchRequest::Resume),
            Some("step") => {
                let expected = "1 to 255 ticks";
                let ticks = self.number("ticks", expected)?.unwrap_or(1);
                match u8::try_from(ticks) {
                    Ok(ticks) if ticks > 0 => Ok(MatchRequest::Step(ticks)),
                    _ => Err(Refusal::bad("ticks", expected, Some(&ticks.into()))),
                }
            }
            // "tick" is the earlier name.
            Some("speed" | "tick") => {
                let expected = "the length of a tick in µs, such as 16667";
                let tick = self.number("tick_us", expected)?;
                let tick = tick.ok_or_else(|| Refusal::bad("tick_us", expected, None))?;
                Ok(MatchRequest::Tick(Duration::from_micros(tick)))
            }
            _ => Err(Refusal::bad(
                "request",
                "pause, resume, step or speed",
                given.as_ref(),
            )),
        }
    }

    /// A file name without an extension. It cannot be a path or a hidden file.
    pub(super) fn file_name(&mut self) -> Result<String, Refusal> {
        let given = self.take("name");
        let is_name = |name: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
        };
        match given.as_ref().and_then(Value::as_str).filter(is_name) {
            Some(name) => Ok(name.to_owned()),
            None => Err(Refusal::bad(
                "name",
                "1 to 64 characters of a-z, A-Z, 0-9, - and _ (no extension)",
                given.as_ref(),
            )),
        }
    }

    pub(super) fn number(
        &mut self,
        name: &'static str,
        expected: &str,
    ) -> Result<Option<u64>, Refusal> {
        let Some(given) = self.take(name) else {
            return Ok(None);
        };
        let number = match &given {
            Value::String(digits) => digits.parse().ok(),
            given => given.as_u64(),
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::bad(name, expected, Some(&given))),
        }
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<String, Refusal> {
        let Some(given) = self.take(name) else {
            return Ok(String::new());
        };
        let is_line = |text: &&str| text.len() <= REASON_BYTES_MAX && is_plain(text);
        match given.as_str().filter(is_line) {
            Some(text) => Ok(text.to_owned()),
            None => {
                let expected = format!("a line of text, at most {REASON_BYTES_MAX} bytes");
                Err(Refusal::bad(name, &expected, Some(&given)))
            }
        }
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    pub(super) fn done(self) -> Result<(), Refusal> {
        let Some((name, _)) = self.given.into_iter().next() else {
            return Ok(());
        };
        let names: Vec<_> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let problem = format!("unknown; this request takes {}", names.join(", "));
        Err(Refusal::field(&name, &problem))
    }
}

fn query_of(query: &str) -> Result<axum::http::Uri, Refusal> {
    format!("/?{query}").parse().map_err(|_| unreadable(query))
}

fn unreadable(query: &str) -> Refusal {
    Refusal::form("a query such as match=1&identity=anna", &query.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_and_a_json_body_are_equivalent() {
        for (query, body) in [
            (Some("match=7&identity=Zo%C3%AB+of+x&reason=a%20b"), ""),
            (
                None,
                "{\"match\":7,\"identity\":\"Zoë of x\",\"reason\":\"a b\"}",
            ),
            (
                Some(""),
                "{\"match\":\"7\",\"identity\":\"Zoë of x\",\"reason\":\"a b\"}",
            ),
        ] {
            let mut fields = Fields::read(query, body).unwrap();
            assert_eq!(fields.match_id(), Ok(MatchId(7)));
            assert_eq!(fields.identity().unwrap(), "Zoë of x");
            assert_eq!(fields.text("reason").unwrap(), "a b");
            assert_eq!(fields.done(), Ok(()));
        }
    }

    #[test]
    fn an_invalid_field_is_refused_with_the_expected_and_the_given_value() {
        type Read = fn(Fields) -> Result<(), Refusal>;
        let id: Read = |mut fields| fields.match_id().map(drop);
        let asks: Read = |mut fields| fields.request().map(drop);
        let who: Read = |mut fields| fields.identity().map(drop);
        let words: Read = |mut fields| fields.text("reason").map(drop);
        let only_a_match: Read = |mut fields| fields.match_if_said().and_then(|_| fields.done());
        let long = format!("{{\"reason\":\"{}\"}}", "x".repeat(201));
        for (query, body, read, expected) in [
            ("match=one", "", id, "got \"one\""),
            ("match=-1", "", id, "got \"-1\""),
            ("match=1.5", "", id, "`match`"),
            ("match=99999999999999999999", "", id, "`match`"),
            ("", "", id, "it is missing"),
            ("", "{\"match\":1.5}", id, "got 1.5"),
            ("", "{\"match\":null}", id, "got null"),
            ("", "{\"match\":[1]}", id, "got [1]"),
            ("", "[1]", id, "a JSON object"),
            ("", "{\"match\":1", id, "a JSON object"),
            ("match=1&match=2", "", id, "given twice"),
            ("match=1", "{\"match\":1}", id, "both in the query"),
            ("request=stop", "", asks, "pause, resume, step or speed"),
            ("request=step&ticks=256", "", asks, "got 256"),
            ("request=step&ticks=0", "", asks, "got 0"),
            ("request=tick", "", asks, "`tick_us`"),
            ("identity=", "", who, "got \"\""),
            ("identity=a%0Ab", "", who, "`identity`"),
            (
                "identity=abcdefghijklmnopqrstuvwxyzabcdefg",
                "",
                who,
                "1 to 32 bytes of visible characters",
            ),
            ("", "{\"identity\":7}", who, "got 7"),
            ("", &long, words, "at most 200"),
            ("", "{\"reason\":\"a\\u001bb\"}", words, "`reason`"),
            (
                "identiy=anna",
                "",
                only_a_match,
                "field `identiy`: unknown; this request takes `match`",
            ),
        ] {
            let done = Fields::read(Some(query), body).and_then(read);
            let Err(Refusal(status, message)) = done else {
                panic!("{query} {body} was taken");
            };
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(message.contains(expected), "{query} {body}: {message}");
            assert!(is_plain(message.trim_end()), "{message:?}");
        }
    }
}
