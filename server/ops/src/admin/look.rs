//! The admin port's responses for everyone on this machine: whether the process is alive, whether newcomers can join,
//! the matches, and the metrics. They do not contain players' names.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use twinstep_host::NotReady;

use super::state::Admin;
use crate::metrics;

#[derive(Serialize)]
struct MatchLine {
    #[serde(rename = "match")]
    id: u64,
    players: u32,
    spectators: u32,
    tick: u32,
    lateness_ms: f64,
}

pub(super) async fn livez(State(admin): State<Admin>) -> Response {
    if admin.control.is_alive() {
        (StatusCode::OK, "alive\n").into_response()
    } else {
        let message = format!("{}\n", NotReady::Hung);
        (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
    }
}

pub(super) async fn readyz(State(admin): State<Admin>) -> Response {
    match admin.control.not_ready() {
        None => (StatusCode::OK, "ready\n").into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

pub(super) async fn metrics(State(admin): State<Admin>) -> Response {
    let control = &admin.control;
    let is_ready = control.not_ready().is_none();
    let page = metrics::page(control.game(), is_ready, &control.status(), &admin.metrics);
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response()
}

pub(super) async fn list(State(admin): State<Admin>) -> Response {
    let lines: Vec<MatchLine> = admin
        .control
        .matches()
        .into_iter()
        .map(|(id, known)| {
            let shown = known.glance();
            MatchLine {
                id: id.0,
                players: shown.players,
                spectators: shown.spectators,
                tick: shown.tick.0,
                lateness_ms: shown.lateness.as_secs_f64() * 1e3,
            }
        })
        .collect();
    Json(lines).into_response()
}
