//! The admin port's actions, and its lists of players. On loopback, all need the token (`admin_port.rs`).
//!
//! ```text
//!  kick    removed from one match until it ends                   MatchOrder::Kick ─▶ that match
//!  ban     removed from all matches, refused with any ticket      file ─▶ listener ─▶ HostControl::remove ─▶ all matches
//!  revoke  existing tickets are refused; current sessions stay     MatchOrder::Revoke ─▶ one match, or all
//!  message shown to all who are present                         MatchOrder::Notify ─▶ one match, or all
//!  request a pause, a step, another speed                        MatchOrder::Request ─▶ that match
//!  end     a match is over for good                               MatchOrder::End ─▶ that match
//!  release a match ends here and is kept: see `host/runner.rs`     MatchOrder::Release ─▶ that match
//! ```
//!
//! Invariant: the I/O task knows a ban before sessions are removed, so that no new session can start in between.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::oneshot;
use twinstep_host::internal::{logged, unix_now, utc};
use twinstep_host::{ListedMatch, MatchId, MatchOrder};
use twinstep_protocol::text::line;

use super::fields::{Fields, Refusal};
use super::state::Admin;
use crate::bans::{Ban, BansError};

/// A match that does not respond within this time counts as hung.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(2);
/// A match that does not respond to a release within this time counts as hung. It first lets joining clients finish,
/// and its disk may be slow.
const RELEASE_PATIENCE: Duration = Duration::from_secs(9);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

type Answer = Result<Response, Refusal>;

pub(super) async fn players(State(admin): State<Admin>, Path(id): Path<String>) -> Answer {
    let id = id.parse::<MatchId>().map_err(|_| {
        Refusal::form(
            "the id of a match in the path, such as /matches/1",
            &id.into(),
        )
    })?;
    let known = running(&admin, id)?;
    let players = ask(&admin, id, &known, MatchOrder::People).await?;
    Ok(Json(json!({ "match": id.0, "players": players })).into_response())
}

pub(super) async fn kick(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (id, identity) = (fields.match_id()?, fields.identity()?);
    fields.done()?;
    let known = running(&admin, id)?;
    let order = |answer| MatchOrder::Kick(identity.clone(), answer);
    match ask(&admin, id, &known, order).await? {
        true => Ok(Json(json!({ "match": id.0, "kicked": identity })).into_response()),
        false => Err(not_in_match(&identity, id)),
    }
}

pub(super) async fn ban(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (identity, reason) = (fields.identity()?, fields.text("reason")?);
    let now = unix_now();
    let for_s = fields.number("for_s", "seconds, 1 or more")?;
    let until = fields.number("until_unix_s", "a Unix time in seconds")?;
    fields.done()?;
    let until_unix_s = match (for_s, until) {
        (None, until) => until,
        (Some(for_s), None) => Some(now.as_secs().saturating_add(for_s)),
        (Some(_), Some(_)) => {
            let message =
                "give `for_s` or `until_unix_s`, not both; without them the ban never ends\n";
            return Err(Refusal(StatusCode::BAD_REQUEST, message.to_owned()));
        }
    };
    if until_unix_s.is_some_and(|until| until <= now.as_secs()) {
        let (until, now) = (until_unix_s.unwrap_or_default(), now.as_secs());
        let message = match for_s {
            Some(for_s) => format!("field `for_s`: expected 1 or more, got {for_s}\n"),
            None => {
                format!("field `until_unix_s`: expected a time after now ({now}), got {until}\n")
            }
        };
        return Err(Refusal(StatusCode::BAD_REQUEST, message));
    }
    let ban = Ban {
        identity: identity.clone(),
        since_unix_s: now.as_secs(),
        until_unix_s,
        reason,
    };
    let code = ban.code(now);
    let (bans, why) = (admin.bans.clone(), ban.reason.clone());
    let written = off_the_runtime(move || bans.ban(ban, now)).await;
    if let Err(error @ BansError::TooMany) = written {
        return Err(Refusal(StatusCode::CONFLICT, format!("{error}\n")));
    }
    let until = until_unix_s.map_or_else(|| "forever".to_owned(), utc);
    logged::info!(identity = ?line(&identity), until, reason = ?line(&why), "player banned by an operator");
    // Sessions are removed even if the disk failed.
    let put_out = admin.control.remove(&identity, code).await;
    let put_out: Vec<u64> = put_out.into_iter().map(|id| id.0).collect();
    put_out_learned(&admin, now).await;
    written.map_err(|error| unwritten(&identity, &error))?;
    let message =
        json!({ "banned": identity, "until_unix_s": until_unix_s, "removed_from": put_out });
    Ok(Json(message).into_response())
}

pub(super) async fn unban(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let identity = fields.identity()?;
    fields.done()?;
    let now = unix_now();
    let (bans, name) = (admin.bans.clone(), identity.clone());
    let unbanned = off_the_runtime(move || bans.unban(&name, now)).await;
    put_out_learned(&admin, now).await;
    let order = |answer| MatchOrder::Pardon(identity.clone(), answer);
    // A match that does not respond in time executes the order later.
    let (answers, _) = ask_all(&admin, admin.control.matches(), ANSWER_PATIENCE, order).await;
    let pardoned = answers.into_iter().filter(|(_, was_kicked)| *was_kicked);
    let pardoned: Vec<u64> = pardoned.map(|(id, _)| id.0).collect();
    // Kicks are lifted even if the disk failed.
    let was_banned = unbanned.map_err(|error| unwritten(&identity, &error))?;
    if !was_banned && pardoned.is_empty() {
        let message = format!("{:?} is neither banned nor kicked here\n", line(&identity));
        return Err(Refusal(StatusCode::NOT_FOUND, message));
    }
    logged::info!(identity = ?line(&identity), "player unbanned by an operator");
    let message =
        json!({ "unbanned": identity, "was_banned": was_banned, "was_kicked_from": pardoned });
    Ok(Json(message).into_response())
}

pub(super) async fn bans(State(admin): State<Admin>) -> Response {
    Json(admin.bans.all(unix_now())).into_response()
}

pub(super) async fn revoke(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (id, identity) = (fields.match_if_said()?, fields.identity()?);
    fields.done()?;
    let matches = match id {
        Some(id) if admin.control.is_on_demand() && !admin.control.matches().contains_key(&id) => {
            let made_before = admin.control.revoke_unmade(id, &identity);
            let revoked = json!([{ "match": id.0, "made_before_unix_ms": made_before }]);
            return Ok(Json(json!({ "identity": identity, "revoked": revoked })).into_response());
        }
        Some(id) => BTreeMap::from([(id, running(&admin, id)?)]),
        None => admin.control.matches(),
    };
    if matches.is_empty() {
        let hint = match admin.control.is_on_demand() {
            true => {
                "; name a match to revoke tickets before it runs (field `match`, or --match ID)"
            }
            false => "",
        };
        let message = format!("no match is running here{hint}\n");
        return Err(Refusal(StatusCode::NOT_FOUND, message));
    }
    let order = |answer| MatchOrder::Revoke(identity.clone(), answer);
    let (answers, silent) = ask_all(&admin, matches, ANSWER_PATIENCE, order).await;
    all_answered(silent)?;
    let revoked = answers.into_iter();
    let revoked: Vec<_> = revoked
        .map(|(id, made_before)| json!({ "match": id.0, "made_before_unix_ms": made_before }))
        .collect();
    Ok(Json(json!({ "identity": identity, "revoked": revoked })).into_response())
}

pub(super) async fn message(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let is_given = fields.is_given("text");
    let (id, text) = (fields.match_if_said()?, fields.text("text")?);
    fields.done()?;
    if text.is_empty() {
        return Err(Refusal::bad(
            "text",
            "the message for players",
            is_given.then_some(&"".into()),
        ));
    }
    let matches = match id {
        Some(id) => BTreeMap::from([(id, running(&admin, id)?)]),
        None => admin.control.matches(),
    };
    logged::info!("match" = id.map(|id| id.0), text = ?line(&text), "message from an operator to players");
    let order = |answer| MatchOrder::Notify(text.clone(), answer);
    let (answers, silent) = ask_all(&admin, matches, ANSWER_PATIENCE, order).await;
    all_answered(silent)?;
    let reports = answers.into_iter();
    let reports: Vec<_> = reports
        .map(|(id, sessions)| json!({ "match": id.0, "sessions": sessions }))
        .collect();
    Ok(Json(json!({ "text": text, "sent_to": reports })).into_response())
}

pub(super) async fn request(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (id, request) = (fields.match_id()?, fields.request()?);
    fields.done()?;
    let known = running(&admin, id)?;
    let order = |answer| MatchOrder::Request(request, answer);
    match ask(&admin, id, &known, order).await? {
        Ok(()) => {
            let told = json!({ "match": id.0, "requested": request.to_string() });
            Ok(Json(told).into_response())
        }
        Err(why) => Err(Refusal(StatusCode::BAD_REQUEST, format!("{why}\n"))),
    }
}

pub(super) async fn end(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (id, reason) = (fields.match_id()?, fields.text("reason")?);
    fields.done()?;
    let known = running(&admin, id)?;
    ask(&admin, id, &known, |answer| {
        MatchOrder::End(reason.clone(), answer)
    })
    .await?;
    Ok(Json(json!({ "match": id.0, "reason": reason })).into_response())
}

/// Ends a match here, so that another server can resume it from its journal. Its players dial the next address in their
/// tickets.
pub(super) async fn release(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Answer {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let id = fields.match_id()?;
    fields.done()?;
    let known = BTreeMap::from([(id, running(&admin, id)?)]);
    let (mut answers, silent) = ask_all(&admin, known, RELEASE_PATIENCE, MatchOrder::Release).await;
    all_answered(silent)?;
    match answers.pop() {
        Some((_, Ok(tick))) => Ok(Json(json!({ "match": id.0, "tick": tick })).into_response()),
        Some((_, Err(why))) => {
            let message = format!("match {id} is not released: {why}\n");
            Err(Refusal(StatusCode::CONFLICT, message))
        }
        None => unreachable!("one was asked, and answered"),
    }
}

/// Removes identities that other processes have banned in the same file. Does not wait for matches.
async fn put_out_learned(admin: &Admin, now: Duration) {
    for ban in admin.bans.take_learned() {
        logged::info!(identity = ?line(&ban.identity), "player banned by another server (same ban file)");
        let code = ban.code(now);
        drop(admin.control.begin_removal(&ban.identity, code).await);
    }
}

pub(super) fn running(admin: &Admin, id: MatchId) -> Result<ListedMatch, Refusal> {
    admin.control.matches().remove(&id).ok_or_else(|| {
        let message =
            format!("match {id} is not running here; list the running matches with `admin matches` or GET /matches\n");
        Refusal(StatusCode::NOT_FOUND, message)
    })
}

async fn ask<A>(
    admin: &Admin,
    id: MatchId,
    known: &ListedMatch,
    order: impl Fn(oneshot::Sender<A>) -> MatchOrder,
) -> Result<A, Refusal> {
    let (mut answers, silent) = ask_all(
        admin,
        BTreeMap::from([(id, known.clone())]),
        ANSWER_PATIENCE,
        order,
    )
    .await;
    all_answered(silent)?;
    let (_, answer) = answers.pop().expect("one was asked, and answered");
    Ok(answer)
}

/// Sends an order to all matches, then waits for their responses. Also returns one match that did not respond, if any.
/// Such a match does not block the others, and may carry the order out later.
async fn ask_all<A>(
    admin: &Admin,
    matches: BTreeMap<MatchId, ListedMatch>,
    patience: Duration,
    order: impl Fn(oneshot::Sender<A>) -> MatchOrder,
) -> (Vec<(MatchId, A)>, Option<MatchId>) {
    let asked: Vec<_> = matches
        .into_iter()
        .map(|(id, known)| {
            let (answer, answered) = oneshot::channel();
            // If its mailbox is full, the response channel closes.
            known.order(order(answer));
            (id, answered)
        })
        .collect();
    let clock = admin.control.clock();
    let by = clock.now() + patience;
    let (mut answers, mut silent) = (Vec::new(), None);
    for (id, answered) in asked {
        match clock.wait_until(by, answered).await {
            Some(Ok(answer)) => answers.push((id, answer)),
            Some(Err(_)) | None => silent = silent.or(Some(id)),
        }
    }
    (answers, silent)
}

fn all_answered(silent: Option<MatchId>) -> Result<(), Refusal> {
    silent.map_or(Ok(()), |id| Err(does_not_answer(id)))
}

pub(super) fn does_not_answer(id: MatchId) -> Refusal {
    let message = format!(
        "match {id} did not answer in time: it is ending, or it hangs (then the log names it). If the match continues, it still \
         carries the request out: look at `admin matches` before you repeat the request\n"
    );
    Refusal(StatusCode::SERVICE_UNAVAILABLE, message)
}

fn not_in_match(identity: &str, id: MatchId) -> Refusal {
    let message = format!(
        "{:?} is not in match {id}; `admin players {id}` or GET /matches/{id} lists its players (a ban also works for absent \
         players)\n",
        line(identity)
    );
    Refusal(StatusCode::NOT_FOUND, message)
}

fn unwritten(identity: &str, error: &BansError) -> Refusal {
    let message = match error {
        BansError::Unchanged(error) => {
            logged::error!(identity = ?line(identity), %error, "player not unbanned: the ban file cannot be read");
            format!("kicks are lifted, but no ban: {error}\n")
        }
        error => {
            logged::error!(identity = ?line(identity), %error, "a ban or its end is in force here, but the ban file could not be written: when this server ends, the change is lost unless a later one is written");
            format!(
                "the change is in force on this server, but the ban file could not be written: when the server ends, the change \
                 is lost unless a later one is written: {error}\n"
            )
        }
    };
    Refusal(StatusCode::INTERNAL_SERVER_ERROR, message)
}

/// Runs work that takes milliseconds of disk time on a thread for blocking work.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("nothing panics there")
}
