//! Takes a match over that another process on this machine plays: for a server whose matches are made on demand.
//!
//! ```text
//!  operator ─POST /take─▶ this server: room? ──POST /ready──▶ the other one: does it fit? is this one there?
//!                         the same journal? ──POST /drain──▶ tickets that lead here, then the journal's end
//!                         the match goes on ◀─────moved───── players dial
//! ```
//!
//! Invariant: nothing is stopped before it is known that the match can go on here: by these rules, from that very journal.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::fields::{Fields, Refusal};
use crate::host::admin_error::AdminError;
use crate::host::demand::Untakeable;
use crate::host::logged;
use crate::host::register::{Admin, Unready};
use crate::host::taker::{HandedOver, Taker, can_be_opened, take_over_by};

/// Why a match is not taken over: it plays on where it is.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error(transparent)]
    Untakeable(#[from] Untakeable),
    #[error("this server takes nobody in: {0}")]
    Unready(#[from] Unready),
    #[error("it runs here already")]
    RunsHere,
    #[error("this server has no admin token to ask by: start it with a TCP admin port")]
    NoToken,
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("the server at {0} runs no such match")]
    NotThere(SocketAddr),
    #[error("{0}")]
    Stays(String),
    #[error("the game's template panicked")]
    Panicked,
}

/// Takes one match over.
pub(super) async fn take(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
    body: String,
) -> Result<Response, Refusal> {
    let mut fields = Fields::read(query.as_deref(), &body)?;
    let (id, from) = (fields.match_id()?, fields.admin_port("from")?);
    fields.done()?;
    // Whoever asked may be gone meanwhile: what was begun is done all the same.
    let taken = tokio::task::spawn_blocking(move || take_one(&admin, id, from)).await;
    match taken.unwrap_or(Err(NotTaken::Panicked)) {
        Ok(moved) => {
            let told = json!({
                "match": id, "from": from, "journal": moved.journal, "tick": moved.tick,
                "stopped_unix_ms": moved.stopped_unix_ms,
            });
            Ok(Json(told).into_response())
        }
        Err(why) => {
            logged::warn!(id, %from, %why, "not taken over");
            let said = format!("match {id} is not taken over: {why}\n");
            Err(Refusal(StatusCode::CONFLICT, said))
        }
    }
}

fn take_one(admin: &Admin, id: u64, from: SocketAddr) -> Result<HandedOver, NotTaken> {
    let (taker, journal) = admin.demand.taker(id)?;
    if admin.known().contains_key(&id) {
        return Err(NotTaken::RunsHere);
    }
    if let Some(why) = admin.unready() {
        return Err(why.into());
    }
    let token = admin.token.as_ref().ok_or(NotTaken::NoToken)?.get();
    let taker = Taker {
        door: Some(admin.door),
        ..taker
    };
    let fits = |path| is_ours(path, &journal);
    let drained = take_over_by(&token, from, &admin.public, &taker, fits)?;
    if let Some(moved) = drained.moved.into_iter().find(|moved| moved.id == id) {
        logged::info!(id, %from, tick = moved.tick, "a match is taken over");
        admin.demand.take_up(id);
        return Ok(moved);
    }
    let stays = drained.stays.into_iter().find(|kept| kept.id == id);
    Err(stays.map_or(NotTaken::NotThere(from), |kept| NotTaken::Stays(kept.why)))
}

/// Whether the journal is the one that this server would look for, and can be opened.
fn is_ours(path: PathBuf, expected: &Path) -> Result<(), AdminError> {
    let same = expected.canonicalize().is_ok_and(|ours| ours == path);
    if !same {
        let expected = expected.to_owned();
        return Err(AdminError::Elsewhere { path, expected });
    }
    can_be_opened(path)
}
