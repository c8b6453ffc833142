//! `powderkeg admin`: sends a request to the admin port of a server on this machine, and prints the response as text
//! or, with `--json`, unchanged.
//!
//! In the text, strings that players chose are escaped.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use powderkeg_view::say;
use powderkeg_view::time::unix_now;
use serde_json::{Value, json};
use twinstep_host::internal::utc;
use twinstep_ops::{AdminAddress, AdminClient};
use twinstep_protocol::text::line;

use crate::failure::Failure;

#[derive(Clone, Debug, Args)]
pub(crate) struct AdminArgs {
    /// The --admin address of the server, such as 127.0.0.1:7700 or unix:/run/game/admin.sock
    #[arg(long, global = true, value_name = "ADDR")]
    to: Option<AdminAddress>,
    /// The server's --admin-token-file (default: KEY-FILE.admin in its --state directory, or beside the key file). Not
    /// needed for ready, matches and metrics, nor at a Unix socket
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print the server's response unchanged, as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    task: AdminTask,
}

#[derive(Clone, Debug, Subcommand)]
enum AdminTask {
    /// Check whether new players can join; if not, print the reason and exit with 1
    Ready,
    /// List the running matches
    Matches,
    /// Print the metrics in Prometheus format
    Metrics,
    /// List the players and spectators of a match
    Players {
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
    },
    /// Remove a player from a match; they cannot rejoin it
    Kick {
        /// The name on the ticket
        identity: String,
        /// The match
        #[arg(long = "match", value_name = "ID", default_value_t = 1)]
        id: u64,
    },
    /// Ban a player from all matches
    Ban {
        /// The name on the ticket
        identity: String,
        /// Length of the ban, such as 90s, 30m, 12h or 7d [default: forever]
        #[arg(long = "for", value_name = "TIME", value_parser = length)]
        length: Option<Duration>,
        /// The reason, for other operators
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Lift a ban or a kick
    Unban {
        /// The name on the ticket
        identity: String,
    },
    /// List the banned players
    Bans,
    /// Revoke all tickets of a player made until now or within the next 5 s; after that, make a new ticket. A connected
    /// player stays, and gets a new ticket
    Revoke {
        /// The name on the ticket
        identity: String,
        /// Only tickets for this match [default: all running matches]
        #[arg(long = "match", value_name = "ID")]
        id: Option<u64>,
    },
    /// Copy a match's journal on the server, next to the journal, and print the path
    #[command(alias = "save")]
    CopyJournal {
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
    },
    /// Save the state of a match as NAME.save on the server; `serve --load` or `host --load` starts a new match from it
    SaveGame {
        /// The name of the file, without .save, in the server's directory of saved games
        name: String,
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
    },
    /// Send a message to players
    Message {
        /// The message
        text: String,
        /// Only to this match [default: all running matches]
        #[arg(long = "match", value_name = "ID")]
        id: Option<u64>,
    },
    /// Pause a match
    Pause {
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
    },
    /// Continue a paused match
    Resume {
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
    },
    /// Play single ticks of a paused match
    Step {
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
        /// Ticks to play, rounded up to whole turns
        #[arg(long, default_value_t = 1)]
        ticks: u8,
    },
    /// Set the length of a match's ticks: 16667 µs is the usual speed, and longer ticks are slower
    Speed {
        /// The match
        #[arg(default_value_t = 1)]
        id: u64,
        /// The length of a tick in microseconds (µs)
        #[arg(long, value_name = "US")]
        tick_us: u64,
    },
    /// Hand a match over to another server. It ends here and keeps its journal; the next server in its players' tickets
    /// resumes it, if both use the same journal directory
    Release {
        /// The match
        id: u64,
    },
    /// End a match for good
    End {
        /// The match
        id: u64,
        /// The reason, for the journal and the log
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
    },
}

fn length(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let unit = units.iter().find(|(unit, _)| text.ends_with(*unit));
    let seconds = unit.and_then(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*seconds).filter(|seconds| *seconds > 0)
    });
    let expected = "expected a number and s, m, h or d, such as 90s, 30m, 12h or 7d";
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| expected.to_owned())
}

pub(crate) fn admin(args: &AdminArgs) -> Result<ExitCode, Failure> {
    let to = args.to.clone().ok_or_else(|| Failure::Flag {
        flag: "to",
        reason: "expected the --admin address of the server, such as 127.0.0.1:7700".to_owned(),
    })?;
    let mut client = AdminClient::new(to);
    if let Some(file) = &args.token_file {
        client = client.with_token(file)?;
    }
    let answer = match request(&args.task) {
        (path, None) => client.get(&path),
        (path, Some(body)) => client.post(&path, &body.to_string()),
    }?;
    if answer.status != 200 {
        // The server's text describes the error, but not the flag that is missing after a 401.
        let said = match (answer.status, &args.token_file) {
            (401, None) => {
                "give --token-file FILE: the server's --admin-token-file (default: KEY-FILE.admin in its --state \
                 directory, or beside the key file)"
                    .to_owned()
            }
            (401, Some(file)) => format!(
                "the server does not accept the token in {}: give its own admin token file",
                file.display()
            ),
            _ => answer.body.trim_end().to_owned(),
        };
        say::err(format_args!("error: {said}"));
        return Ok(ExitCode::FAILURE);
    }
    let raw = args.json || matches!(args.task, AdminTask::Metrics | AdminTask::Ready);
    let told = (!raw).then(|| serde_json::from_str(&answer.body).ok());
    match told.flatten() {
        Some(told) => say::out(words(&args.task, &told))?,
        None => say::out(answer.body)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn request(task: &AdminTask) -> (String, Option<Value>) {
    let (path, body) = match task {
        AdminTask::Ready => ("/readyz", None),
        AdminTask::Matches => ("/matches", None),
        AdminTask::Metrics => ("/metrics", None),
        AdminTask::Bans => ("/bans", None),
        AdminTask::Players { id } => return (format!("/matches/{id}"), None),
        AdminTask::Kick { identity, id } => {
            let body = json!({ "match": id, "identity": identity });
            ("/kick", Some(body))
        }
        AdminTask::Ban {
            identity,
            length,
            reason,
        } => {
            let mut body = json!({ "identity": identity, "reason": reason });
            if let Some(length) = length {
                body["for_s"] = length.as_secs().into();
            }
            ("/ban", Some(body))
        }
        AdminTask::Unban { identity } => ("/unban", Some(json!({ "identity": identity }))),
        AdminTask::Revoke { identity, id } => {
            let mut body = json!({ "identity": identity });
            if let Some(id) = id {
                body["match"] = (*id).into();
            }
            ("/revoke", Some(body))
        }
        AdminTask::CopyJournal { id } => ("/copy-journal", Some(json!({ "match": id }))),
        AdminTask::SaveGame { name, id } => {
            let body = json!({ "match": id, "name": name });
            ("/save-game", Some(body))
        }
        AdminTask::Message { text, id } => {
            let mut body = json!({ "text": text });
            if let Some(id) = id {
                body["match"] = (*id).into();
            }
            ("/message", Some(body))
        }
        AdminTask::Pause { id } => asked(*id, "pause", None),
        AdminTask::Resume { id } => asked(*id, "resume", None),
        AdminTask::Step { id, ticks } => asked(*id, "step", Some(("ticks", u64::from(*ticks)))),
        AdminTask::Speed { id, tick_us } => asked(*id, "speed", Some(("tick_us", *tick_us))),
        AdminTask::Release { id } => ("/release", Some(json!({ "match": id }))),
        AdminTask::End { id, reason } => {
            let body = json!({ "match": id, "reason": reason });
            ("/end", Some(body))
        }
    };
    (path.to_owned(), body)
}

fn asked(id: u64, request: &str, number: Option<(&str, u64)>) -> (&'static str, Option<Value>) {
    let mut body = json!({ "match": id, "request": request });
    if let Some((name, number)) = number {
        body[name] = number.into();
    }
    ("/request", Some(body))
}

fn words(task: &AdminTask, told: &Value) -> String {
    match task {
        AdminTask::Matches => table(
            "no match is running",
            &["match", "players", "spectators", "tick", "lateness (ms)"],
            rows(told, |one| {
                let late = one["lateness_ms"].as_f64().unwrap_or_default();
                vec![
                    cell(&one["match"]),
                    cell(&one["players"]),
                    cell(&one["spectators"]),
                    cell(&one["tick"]),
                    format!("{late:.1}"),
                ]
            }),
        ),
        AdminTask::Players { .. } => table(
            "no players or spectators in that match",
            &[
                "seat",
                "identity",
                "name",
                "state",
                "for",
                "input margin (ticks)",
                "round trip (ms)",
            ],
            rows(&told["players"], |one| {
                let since = one["since_s"].as_f64().unwrap_or_default();
                let seat = match &one["seat"] {
                    Value::Null => "watching".to_owned(),
                    seat => cell(seat),
                };
                vec![
                    seat,
                    cell(&one["identity"]),
                    cell(&one["name"]),
                    cell(&one["state"]),
                    span(since as u64),
                    cell(&one["margin_ticks"]),
                    cell(&one["round_trip_ms"]),
                ]
            }),
        ),
        AdminTask::Bans => {
            let now = unix_now().as_secs();
            table(
                "no bans",
                &["identity", "banned", "ends", "reason"],
                rows(told, |one| {
                    let since = one["since_unix_s"].as_u64().unwrap_or(now);
                    let until = one["until_unix_s"].as_u64();
                    vec![
                        cell(&one["identity"]),
                        format!("{} ago", span(now.saturating_sub(since))),
                        until.map_or("never".to_owned(), |until| {
                            format!("in {}", span(until.saturating_sub(now)))
                        }),
                        cell(&one["reason"]),
                    ]
                }),
            )
        }
        AdminTask::Kick { identity, id } => {
            format!(
                "kicked {:?} from match {id}; they cannot rejoin until the match ends, the server restarts, or you run `unban`",
                line(identity)
            )
        }
        AdminTask::Ban {
            identity, length, ..
        } => {
            let long = length.map_or("forever".to_owned(), |length| {
                format!("for {}", span(length.as_secs()))
            });
            let here = match told["removed_from"].as_array().map(Vec::as_slice) {
                None | Some([]) => "; they were in no match here".to_owned(),
                Some(ids) => format!(", and was removed from match {}", list(ids)),
            };
            format!("{:?} is banned {long}{here}", line(identity))
        }
        AdminTask::Unban { identity } => format!("{:?} may join again", line(identity)),
        AdminTask::Revoke { identity, .. } => {
            let all = told["revoked"].as_array().cloned().unwrap_or_default();
            let ids: Vec<Value> = all.iter().map(|one| one["match"].clone()).collect();
            let until = all
                .iter()
                .filter_map(|one| one["made_before_unix_ms"].as_u64());
            let until = until.max().unwrap_or_default() / 1_000;
            format!(
                "revoked all tickets of {:?} for match {} made before {}, which is 5 s from now, because clocks differ",
                line(identity),
                list(&ids),
                utc(until)
            )
        }
        AdminTask::CopyJournal { .. } => {
            format!("copied {} ({} bytes)", cell(&told["copy"]), told["bytes"])
        }
        AdminTask::SaveGame { .. } => {
            format!("saved {} ({} bytes)", cell(&told["saved"]), told["bytes"])
        }
        AdminTask::Message { .. } => {
            let told = told["sent_to"].as_array().into_iter().flatten();
            let sessions: u64 = told.filter_map(|one| one["sessions"].as_u64()).sum();
            match sessions {
                1 => "sent to 1 client".to_owned(),
                _ => format!("sent to {sessions} clients"),
            }
        }
        AdminTask::Pause { id } => format!("match {id} is paused"),
        AdminTask::Resume { id } => format!("match {id} continues"),
        AdminTask::Step { id, ticks } => {
            let ticks = if *ticks == 1 {
                "1 tick".to_owned()
            } else {
                format!("{ticks} ticks")
            };
            format!("requested {ticks} of match {id} (has no effect unless the match is paused)")
        }
        AdminTask::Speed { id, tick_us } => format!("match {id} now has ticks of {tick_us} µs"),
        AdminTask::Release { id } => {
            let tick = cell(&told["tick"]);
            format!(
                "match {id} is released at tick {tick}; its players reconnect to the next server in their tickets"
            )
        }
        AdminTask::End { id, .. } => format!("match {id} is over"),
        AdminTask::Ready | AdminTask::Metrics => told.to_string(),
    }
}

fn rows(told: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    let all = told.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(row).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        // On one line, even if a player has chosen a name with line breaks.
        Value::String(text) => line(text).to_string(),
        other => other.to_string(),
    }
}

fn list(ids: &[Value]) -> String {
    ids.iter().map(cell).collect::<Vec<_>>().join(", ")
}

fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn table(if_empty: &str, head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return if_empty.to_owned();
    }
    let head = head.iter().map(|title| (*title).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let wide = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let mut out = String::new();
    for row in &rows {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(text, "{cell:<width$}  ", width = wide(column));
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_number_and_a_unit() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1_800),
            ("12h", 43_200),
            ("7d", 604_800),
        ] {
            assert_eq!(length(text), Ok(Duration::from_secs(seconds)));
        }
        for text in [
            "",
            "7",
            "d",
            "0s",
            "-1h",
            "1.5h",
            "99999999999999999999d",
            "7w",
            "1 h",
        ] {
            assert!(length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn players_are_listed_one_per_row_even_with_hostile_names() {
        let told = json!({ "players": [
            { "seat": 0, "identity": "anna", "name": "A\u{1b}]0;x\nB", "state": "playing", "since_s": 130.2,
              "margin_ticks": 3, "round_trip_ms": 20.5 },
            { "seat": null, "identity": "eve", "name": "", "state": "away", "since_s": 1.0,
              "margin_ticks": null, "round_trip_ms": null },
        ] });
        let said = words(&AdminTask::Players { id: 1 }, &told);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 3, "{said}");
        assert!(
            lines[1].starts_with("0         anna      A\\u{1b}]0;x"),
            "{said}"
        );
        assert!(lines[1].contains("2 min"), "{said}");
        assert!(lines[2].starts_with("watching  eve"), "{said}");
        assert!(lines[2].ends_with('-'), "{said}");
        let nobody = words(&AdminTask::Players { id: 1 }, &json!({ "players": [] }));
        assert_eq!(nobody, "no players or spectators in that match");
    }

    /// A server of another version may send any response.
    #[test]
    fn an_unexpected_response_does_not_panic() {
        for told in [
            json!(null),
            json!([1, null, []]),
            json!({ "players": 7 }),
            json!("x"),
        ] {
            for task in [
                AdminTask::Matches,
                AdminTask::Players { id: 1 },
                AdminTask::Bans,
                AdminTask::Revoke {
                    identity: "a".to_owned(),
                    id: None,
                },
            ] {
                let _ = words(&task, &told);
            }
        }
    }
}
