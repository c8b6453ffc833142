//! A match handed over to another process, as the one that has it sees that.
//!
//! ```text
//!  POST /ready?to=ADDR   { ready: [{ id, journal }], stays: [{ id, why }] }
//!  POST /drain?to=ADDR   { moved: [{ id, journal, tick, stopped_unix_ms }], stays: [{ id, why }] }
//!                        409: why nothing moves. A server says in the body what it can take over: { wire, game, version,
//!                        rules, seats, delays, only, door }. Both need the token.
//! ```
//!
//! The hand-over, seen from both processes and a client:
//!
//! ```text
//!  old   play ──▶ fits? is it there? ──────────────▶ tickets for the new address ──heard──▶ seal, "moved" into the journal ──▶ done
//!  new   bind ──▶ POST /ready ──▶ opens the journal ──▶ POST /drain ── waits ───────────────▶ take the journal up ──▶ play
//!  client                                                                       "moved" ──▶ dials with the new ticket ──▶ play
//! ```
//!
//! First all are asked, then all move, each time at once. If one of them refuses, none moves; one that stands still and
//! does not answer stays, alone. Each step has its time, whatever a match does and however many there are, so the answer
//! comes within 12 s: 1 s to knock, 1 s to ask, 8 s to move.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::oneshot;
use twinstep_udp::ServerAddress;

use super::knock::{self, Found};
use super::logged;
use super::moves::{Move, MoveOrder};
use super::register::{Admin, Drains, ListedMatch};
use super::taker::{Drained, HandedOver, Kept, Ready, ReadyMatch, Taker};

/// A match says within so long whether it can move. One that does not stands still.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// A match that said so has moved within so long: its clients get their tickets, and its journal its end.
const MOVE_PATIENCE: Duration = Duration::from_secs(8);

/// Where players are to go.
#[derive(Deserialize)]
pub(super) struct To {
    to: String,
}

/// What a hand-over would come to.
struct Plan {
    to: Vec<ServerAddress>,
    ready: Vec<(u64, ListedMatch, PathBuf)>,
    stays: Vec<Kept>,
}

/// Why nothing is handed over.
type OrderRefusal = (StatusCode, String);

/// Says what a hand-over would come to.
pub(super) async fn ready(
    State(admin): State<Admin>,
    Query(to): Query<To>,
    body: String,
) -> Response {
    match plan(&admin, &to, &body).await {
        Ok(plan) => {
            let ready = plan
                .ready
                .into_iter()
                .map(|(id, _, journal)| ReadyMatch { id, journal });
            let ready = ready.collect();
            let stays = plan.stays;
            Json(Ready { ready, stays }).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Hands the matches over.
pub(super) async fn drain(
    State(admin): State<Admin>,
    Query(to): Query<To>,
    body: String,
) -> Response {
    let plan = match plan(&admin, &to, &body).await {
        Ok(plan) => plan,
        Err(refusal) => return refusal.into_response(),
    };
    logged::info!(to = ?plan.to, "asked to hand over");
    let drains = Draining::begin(&admin.drains);
    let mut drained = Drained {
        moved: Vec::new(),
        stays: plan.stays,
    };
    let mut moving = Vec::new();
    for (id, known, _) in plan.ready {
        let (done, moved) = oneshot::channel();
        let order = Move::Go(MoveOrder {
            to: plan.to.clone(),
            done,
        });
        if known.moves.try_send(order) {
            moving.push((id, moved));
        }
    }
    let by = admin.clock.now() + MOVE_PATIENCE;
    for (id, moved) in moving {
        match admin.clock.wait_until(by, moved).await {
            Some(Ok(Ok(moved))) => drained.moved.push(HandedOver {
                id,
                journal: moved.journal,
                tick: moved.tick,
                stopped_unix_ms: moved.stopped_unix_ms,
            }),
            Some(Ok(Err(why))) => drained.stays.push(Kept {
                id,
                why: why.to_owned(),
            }),
            // Its thread was given up.
            Some(Err(_)) => drained.stays.push(Kept {
                id,
                why: "it ended meanwhile".to_owned(),
            }),
            None => drained.stays.push(stands_still(id)),
        }
    }
    if !drained.moved.is_empty() {
        drains.went_through();
    }
    Json(drained).into_response()
}

/// A hand-over that is under way: newcomers are not sent here. Dropped, it is called off.
struct Draining<'d>(Option<&'d Drains>);

impl<'d> Draining<'d> {
    fn begin(drains: &'d Drains) -> Draining<'d> {
        drains.begin();
        Draining(Some(drains))
    }

    fn went_through(mut self) {
        self.0 = None;
    }
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        if let Some(drains) = self.0 {
            drains.call_off();
        }
    }
}

/// Asks all that can be asked before anything is stopped.
async fn plan(admin: &Admin, to: &To, body: &str) -> Result<Plan, OrderRefusal> {
    let to = addresses(&to.to)?;
    let taker = match body {
        // An operator who asks says nothing of what that server is; a server does.
        "" => None,
        body => Some(serde_json::from_str::<Taker>(body).map_err(|error| {
            let said = format!("expected no body, or what a server can take over: {error}\n");
            (StatusCode::BAD_REQUEST, said)
        })?),
    };
    let only = taker.as_ref().and_then(|taker| taker.only);
    let (wanted, others): (Vec<_>, Vec<_>) = admin
        .known()
        .into_iter()
        .partition(|(id, _)| only.is_none_or(|only| only == *id));
    for (id, known) in &wanted {
        let refusal = taker.as_ref().and_then(|taker| known.needs.refusal(taker));
        if let Some(why) = refusal {
            return Err(stays_here(*id, &why));
        }
    }
    if let Some(why) = nobody_at(admin, &to, taker.and_then(|taker| taker.door)).await {
        logged::warn!(?to, %why, "not handed over");
        return Err((StatusCode::CONFLICT, why));
    }
    let mut stays: Vec<Kept> = others
        .into_iter()
        .map(|(id, _)| Kept {
            id,
            why: "the other server does not take it".to_owned(),
        })
        .collect();
    // All of them at once, or many that stand still would take longer than whoever asked waits.
    let asked: Vec<_> = wanted
        .into_iter()
        .map(|(id, known)| {
            let (answer, answered) = oneshot::channel();
            // If there is no room, nobody answers.
            let _ = known.moves.try_send(Move::Can(answer));
            (id, known, answered)
        })
        .collect();
    let by = admin.clock.now() + ASK_PATIENCE;
    let mut ready = Vec::new();
    for (id, known, answered) in asked {
        match admin.clock.wait_until(by, answered).await {
            Some(Ok(Ok(journal))) => ready.push((id, known, journal)),
            Some(Ok(Err(why))) => return Err(stays_here(id, why)),
            Some(Err(_)) | None => stays.push(stands_still(id)),
        }
    }
    Ok(Plan { to, ready, stays })
}

fn addresses(text: &str) -> Result<Vec<ServerAddress>, OrderRefusal> {
    let to: Result<Vec<ServerAddress>, _> = text.split(',').map(str::parse).collect();
    match to {
        Ok(to) if (1..=twinstep_udp::SERVERS_MAX).contains(&to.len()) => Ok(to),
        _ => {
            let said =
                format!("expected ?to=ADDR[,ADDR], such as 203.0.113.7:7777, got {text:?}\n");
            Err((StatusCode::BAD_REQUEST, said))
        }
    }
}

fn stays_here(id: u64, why: &str) -> OrderRefusal {
    logged::warn!(id, %why, "not handed over");
    let said = format!("match {id} stays here: {why}\n");
    (StatusCode::CONFLICT, said)
}

fn stands_still(id: u64) -> Kept {
    Kept {
        id,
        why: "it stands still".to_owned(),
    }
}

/// Why players are not sent to these addresses: another server of this game must answer at one of them, or at its `door`,
/// and those that do not answer must lead to the machine on which this very server is dialled, but not to itself.
async fn nobody_at(
    admin: &Admin,
    to: &[ServerAddress],
    door: Option<SocketAddr>,
) -> Option<String> {
    let asked: Vec<_> = to
        .iter()
        .copied()
        .chain(door.map(Into::into))
        .map(|at| {
            let (game, own) = (admin.game.clone(), admin.own_knocks.clone());
            let knock = tokio::task::spawn_blocking(move || {
                let sockets = at.look_up().unwrap_or_default().into_iter();
                let mut found = sockets.map(|at| knock::who_is(at, &game, &own));
                found.find(|found| *found != Found::Nobody)
            });
            (at, knock)
        })
        .collect();
    let mut there = Vec::new();
    for (at, knock) in asked {
        let found = match knock.await.ok().flatten().unwrap_or(Found::Nobody) {
            // Behind NAT it may not be reached from here at the address that it has itself.
            Found::Nobody if admin.public.contains(&at) => Found::Ourselves,
            found => found,
        };
        match found {
            Found::Ourselves => {
                return Some(format!(
                    "{at} leads to this very server: start the other one at another port, and give its address\n"
                ));
            }
            Found::Other => there.push(at),
            Found::Nobody => {}
        }
    }
    let is_ours = |at: &ServerAddress| admin.public.iter().any(|ours| ours.is_machine_of(at));
    let known = |at: &&ServerAddress| there.contains(at) || (!there.is_empty() && is_ours(at));
    let stranger = to.iter().find(|at| !known(at))?;
    Some(format!(
        "expected a server of {:?} at {stranger} before players are sent there, but none answers; start it first\n",
        admin.game
    ))
}
