//! Copies the journal of a running match, for inspection or for the game's developers; and saves a match as a file from
//! which another one starts.
//!
//! The copy ends where the journal ended at that moment. It is next to the journal, under a name that no server
//! resumes. Saved games are in a separate folder, and a request cannot write outside it.

use std::path::Path;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;
use twinstep_host::internal::{copy_to_new, logged, open_to_read, unix_now};
use twinstep_host::{MatchOrder, write_save_in};

use super::act::{ANSWER_PATIENCE, does_not_answer, running};
use super::fields::{Fields, Refusal};
use super::state::Admin;

pub(super) async fn save(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Result<Response, Refusal> {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let id = fields.match_id()?;
    fields.done()?;
    let known = running(&admin, id)?;
    let (answer, answered) = oneshot::channel();
    // If its mailbox is full, the response channel closes.
    known.order(MatchOrder::Journal(answer));
    let journal = match timeout(ANSWER_PATIENCE, answered).await {
        Ok(Ok(Ok(journal))) => journal,
        Ok(Ok(Err(why))) => {
            let message = format!(
                "the journal of match {id} cannot be copied: {why}; `admin save-game` saves the match instead\n"
            );
            return Err(Refusal(StatusCode::CONFLICT, message));
        }
        Ok(Err(_)) | Err(_) => {
            return Err(does_not_answer(id));
        }
    };
    let mut copy = journal.as_os_str().to_owned();
    copy.push(format!(".copy-{}", unix_now().as_millis()));
    let (from, to) = (journal.clone(), copy.clone());
    let copied = tokio::task::spawn_blocking(move || {
        let from = open_to_read(&from)?;
        copy_to_new(&from, Path::new(&to))
    });
    let copied = copied.await;
    match copied {
        Ok(Ok(bytes)) => {
            let (journal, copy) = (absolute(&journal), absolute(Path::new(&copy)));
            logged::info!(
                "match" = id.0,
                path = copy,
                bytes,
                "journal copied by an operator"
            );
            let answer = json!({ "match": id.0, "journal": journal, "copy": copy, "bytes": bytes });
            Ok(Json(answer).into_response())
        }
        Ok(Err(error)) => {
            let message = format!("the journal of match {id} cannot be copied: {error}\n");
            Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, message))
        }
        // The copy was cancelled by a shutdown, or panicked.
        Err(error) => {
            let message = format!("the copy of match {id}'s journal was aborted: {error}\n");
            Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, message))
        }
    }
}

pub(super) async fn save_game(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Result<Response, Refusal> {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (id, name) = (fields.match_id()?, fields.file_name()?);
    fields.done()?;
    let Some(folder) = admin.saves.clone() else {
        let message = "this server saves no games: it was started without a directory for them (`OpsConfig::saves`)\n".to_owned();
        return Err(Refusal(StatusCode::CONFLICT, message));
    };
    let known = running(&admin, id)?;
    let (answer, answered) = oneshot::channel();
    known.order(MatchOrder::Save(answer));
    let save = match timeout(ANSWER_PATIENCE, answered).await {
        Ok(Ok(Ok(save))) => save,
        Ok(Ok(Err(why))) => {
            let message = format!("match {id}: {why}\n");
            return Err(Refusal(StatusCode::CONFLICT, message));
        }
        Ok(Err(_)) | Err(_) => return Err(does_not_answer(id)),
    };
    let bytes = save.len();
    let written = tokio::task::spawn_blocking(move || {
        let written = write_save_in(&folder, &name, &save);
        let path = written.map_err(|error| error.to_string())?;
        Ok(absolute(&path))
    });
    let failed = |why: String| {
        let message = format!("match {id}: {why}\n");
        Refusal(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    // The write was cancelled by a shutdown, or panicked.
    let written = written.await.map_err(|error| failed(error.to_string()))?;
    let saved = written.map_err(failed)?;
    logged::info!(
        "match" = id.0,
        path = saved,
        bytes,
        "match saved by an operator"
    );
    Ok(Json(json!({ "match": id.0, "saved": saved, "bytes": bytes })).into_response())
}

fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    absolute.as_deref().unwrap_or(path).display().to_string()
}
