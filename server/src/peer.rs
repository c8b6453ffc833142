//! One session at the server: who it is and how it is reached. What else there is to it has rooms of its own:
//!
//! ```text
//!  Request     what it asked for to begin with       Rhythm   how well its client keeps up
//!  FrameAcks   how far its client has come           Fates    what became of its orders
//!  Reach       how far it was told                   Inquiry  where its world differed, and whose fault that is
//!  IdentityLimits    what its identity has used up         Tickets  what it came by, and may return with
//! ```
//!
//! Invariant: all that outlives a session is in its limits.

use std::time::Duration;
use twinstep_protocol::identity::SessionId;
use twinstep_protocol::lineage::Stamp;

use crate::seat::NotAdmitted;
use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    JOIN_PLACE_TIME, JOIN_STALL_MAX, JOIN_STEP_BYTES, JOIN_STEP_WITHIN, REPORT_BYTES_MAX, RTT_MAX,
    SEATS_MAX, SPARSE_AFTER, WORLD_BYTES_MAX,
};
use twinstep_core::frame::PlayerSet;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::lane::{LaneReceiver, LaneSender};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::refusal::OrderRefusal;
use twinstep_protocol::packet::{ByteCounts, message};

use crate::encoding::Snapshot;
use crate::identity_limits::{Away, IdentityLimits};
use crate::reach::Reach;

mod acks;
mod fates;
mod inquiry;
mod request;
mod rhythm;
mod tickets;

use acks::FrameAcks;
use fates::Fates;
use inquiry::Inquiry;
pub(crate) use inquiry::Verdict;
use request::Request;
use rhythm::Rhythm;
use tickets::Tickets;

/// A session finds its rhythm within so long.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Bytes a second of a world that has no place any more.
const BULK_BESIDE: u32 = 128 << 10;

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStage {
    /// Nothing agreed yet.
    Greeting,
    /// A world is on its way.
    Loading,
    /// It has its world and steps through the turns since.
    CatchingUp,
    /// It is in the match.
    Playing,
}

impl SessionStage {
    /// Whether it has come as far as its world: it is told turns.
    pub(crate) fn has_world(self) -> bool {
        matches!(self, SessionStage::CatchingUp | SessionStage::Playing)
    }

    /// Whether it is under way, by a world or by frames: the frames since what it began with are kept for it.
    pub(crate) fn joins(self) -> bool {
        matches!(self, SessionStage::Loading | SessionStage::CatchingUp)
    }
}

/// How a join comes on.
#[derive(Default)]
struct Stride {
    /// When it came on last.
    at: Duration,
    /// Whether it has, since its stage began.
    came_on: bool,
    /// Bytes that had arrived by then.
    bytes: u64,
    /// The smallest distance to now, in ticks.
    distance: Option<u32>,
}

/// One session.
pub(crate) struct Peer {
    pub(crate) id: SessionId,
    pub(crate) identity: String,
    pub(crate) players: ArrayVec<PlayerId, SEATS_MAX>,
    pub(crate) stage: SessionStage,
    pub(crate) since: Duration,
    pub(crate) request: Request,
    stride: Stride,
    /// Its world came so slowly that it gave its place away, and comes beside the others.
    beside: bool,
    pub(crate) link: LinkState,
    pub(crate) lane_out: LaneSender,
    pub(crate) lane_in: LaneReceiver,
    pub(crate) acks: FrameAcks,
    pub(crate) reach: Reach,
    /// When it was told something.
    pub(crate) told_at: Duration,
    /// What was sent to it, in all.
    pub(crate) bytes_down: ByteCounts,
    /// The first tick whose input came from this very session, per seat.
    pub(crate) first_input: [Tick; SEATS_MAX],
    pub(crate) rhythm: Rhythm,
    pub(crate) fates: Fates,
    pub(crate) inquiry: Inquiry,
    pub(crate) tickets: Tickets,
    /// Which names it was told last, and which state of the connections.
    pub(crate) names_told: u32,
    pub(crate) company_told: u32,
    pub(crate) limits: IdentityLimits,
}

impl Peer {
    /// A session begins; `came_by`: the stamp of its ticket.
    pub(crate) fn new(
        id: SessionId,
        (identity, came_by): (String, Option<Stamp>),
        players: ArrayVec<PlayerId, SEATS_MAX>,
        mut limits: IdentityLimits,
        now: Duration,
    ) -> Self {
        let untold = std::mem::take(&mut limits.untold);
        let mut peer = Peer {
            id,
            identity,
            players,
            stage: SessionStage::Greeting,
            since: now,
            request: Request::new(now),
            stride: Stride::default(),
            beside: false,
            link: LinkState::default(),
            lane_out: LaneSender::new(WORLD_BYTES_MAX),
            lane_in: LaneReceiver::new(REPORT_BYTES_MAX),
            acks: FrameAcks::new(now),
            reach: Reach::default(),
            told_at: Duration::ZERO,
            bytes_down: ByteCounts::default(),
            first_input: [Tick::MAX; SEATS_MAX],
            rhythm: Rhythm::default(),
            fates: Fates::new(),
            inquiry: Inquiry::default(),
            tickets: Tickets::new(came_by),
            names_told: 0,
            company_told: 0,
            limits,
        };
        for refused in untold {
            peer.refuse(refused);
        }
        peer
    }

    /// It ends: what its identity has used up of its bounds, and must still be told.
    pub(crate) fn end(self) -> Away {
        let watches = self.is_spectator();
        let Peer {
            identity,
            players,
            fates,
            mut limits,
            bytes_down,
            ..
        } = self;
        limits.bytes_down += bytes_down;
        limits.untold = fates
            .untold()
            .map(|refusal| NotAdmitted {
                player: players[refusal.seat],
                claim: refusal.claim,
                seq: refusal.seq,
                why: refusal.why,
            })
            .collect();
        Away {
            identity,
            watches,
            limits,
        }
    }

    /// What was sent to this identity, now and in earlier sessions.
    pub(crate) fn bytes_down_in_all(&self) -> ByteCounts {
        self.limits.bytes_down + self.bytes_down
    }

    /// Whether it only watches: it has no seat.
    pub(crate) fn is_spectator(&self) -> bool {
        self.players.is_empty()
    }

    /// Whether it is the session by which an identity plays.
    pub(crate) fn plays_as(&self, identity: &str) -> bool {
        !self.is_spectator() && self.identity == identity
    }

    pub(crate) fn own(&self) -> PlayerSet {
        self.players.iter().copied().collect()
    }

    pub(crate) fn enter(&mut self, stage: SessionStage, now: Duration) {
        self.stage = stage;
        self.since = now;
        self.stride = Stride {
            at: now,
            bytes: self.lane_out.arrived_bytes(),
            ..Stride::default()
        };
        self.acks.forgive(now);
    }

    /// Its client acknowledged some of its lane.
    pub(crate) fn note_arrived(&mut self, now: Duration) {
        let bytes = self.lane_out.arrived_bytes();
        let is_last = self.lane_out.is_idle() && bytes > self.stride.bytes;
        if is_last || bytes >= self.stride.bytes + JOIN_STEP_BYTES {
            (self.stride.at, self.stride.bytes) = (now, bytes);
            self.stride.came_on = true;
        }
    }

    /// It catches up, and is this many ticks behind. It makes progress when that is `step` less than ever before.
    pub(crate) fn note_distance(&mut self, now: Duration, ticks: u32, step: u32) {
        let least = self.stride.distance;
        if least.is_none_or(|least| ticks.saturating_add(step) <= least) {
            self.stride.came_on |= least.is_some();
            (self.stride.at, self.stride.distance) = (now, Some(ticks));
        }
    }

    /// Whether it has come on at all since its stage began.
    pub(crate) fn came_on(&self) -> bool {
        self.stride.came_on
    }

    /// Returns `true` if it made no progress for this long. A lost chunk is noticed a round trip later, and may be lost again.
    fn stands_for(&self, now: Duration, time: Duration) -> bool {
        let ways = 4 * self.link.rtt().unwrap_or_default().min(RTT_MAX);
        now.saturating_sub(self.stride.at) > time + ways
    }

    /// Whether its join does not come on any more.
    pub(crate) fn is_stuck(&self, now: Duration) -> bool {
        self.stands_for(now, JOIN_STALL_MAX)
    }

    /// Whether its world is on its way and takes a place.
    pub(crate) fn is_loading(&self) -> bool {
        let has_place = !self.beside && !self.limits.gave_way();
        self.stage == SessionStage::Loading && !self.has_loaded() && has_place
    }

    /// Whether it has the world that it begins with, or needed none.
    pub(crate) fn has_loaded(&self) -> bool {
        !self.request.needs_world() || self.lane_out.is_idle()
    }

    /// What it lacks of its join, if it has not come to its end: the first frame, and the world that is on its way to it.
    pub(crate) fn unfinished(&self) -> Option<(Tick, Option<Snapshot>)> {
        if !self.stage.joins() {
            return None;
        }
        let world = || {
            let (id, bytes) = (
                self.request.world()?,
                self.lane_out.unfinished(message::WORLD)?,
            );
            Some(Snapshot { id, bytes })
        };
        Some((self.acks.wanted(), world()))
    }

    /// Whether its world gets on too slowly to keep others waiting.
    pub(crate) fn is_stalled(&self, now: Duration) -> bool {
        self.stands_for(now, JOIN_STEP_WITHIN)
    }

    /// Whether its world has been on its way for a while and takes little of the server's line: it needs no place.
    pub(crate) fn is_slow(&self, now: Duration) -> bool {
        let under_way = now.saturating_sub(self.since);
        let much = u64::from(BULK_BESIDE) * under_way.as_millis() as u64 / 1_000;
        let trips = 2 * self.link.rtt().unwrap_or_default().min(RTT_MAX);
        under_way > JOIN_PLACE_TIME + trips && self.lane_out.progress().acked_bytes < much
    }

    /// Its world comes beside the others from now on, and needs no place.
    pub(crate) fn go_beside(&mut self) {
        self.beside = true;
        self.lane_out.set_rate(BULK_BESIDE);
    }

    /// Whether its world is on its way beside the others.
    pub(crate) fn loads_beside(&self) -> bool {
        self.stage == SessionStage::Loading && self.beside && !self.has_loaded()
    }

    /// Whether nothing was heard of it for long. Its lane rests then: what is on it cannot be acknowledged.
    pub(crate) fn is_silent(&self, now: Duration) -> bool {
        let heard_at = self.link.heard_at().unwrap_or(self.since);
        now.saturating_sub(heard_at) > SPARSE_AFTER
    }

    /// Whether its world does not come on, or did not and it asks for another one: whoever wants its seats may have them.
    pub(crate) fn is_overdue(&self, now: Duration) -> bool {
        let gave_way = self.limits.gave_way();
        match self.stage {
            SessionStage::Greeting => gave_way,
            SessionStage::Loading => !self.has_loaded() && (gave_way || self.is_stalled(now)),
            SessionStage::CatchingUp | SessionStage::Playing => false,
        }
    }

    /// The server saw that this session is late; of one that has just come that says nothing.
    pub(crate) fn note_late(&mut self, now: Duration) {
        if self.stage == SessionStage::Playing && now.saturating_sub(self.since) >= SETTLED_AFTER {
            self.rhythm.note_late(now);
        }
    }

    /// Whether a ticket to return with is due now; if so, the next one is due a while later.
    pub(crate) fn takes_ticket(&mut self, now: Duration) -> bool {
        // Not behind a world: a ticket is of use at once, or never.
        self.stage == SessionStage::Playing && self.lane_out.is_idle() && self.tickets.take_due(now)
    }

    /// Tells the owner of an order that it is refused, until it has heard it.
    pub(crate) fn refuse(&mut self, refused: NotAdmitted) {
        let seat = self.players.iter().position(|p| *p == refused.player);
        if let Some(seat) = seat {
            self.fates.refuse(OrderRefusal {
                seat,
                claim: refused.claim,
                seq: refused.seq,
                why: refused.why,
            });
        }
    }

    /// The match stood still for so long, for which this session is not to blame.
    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        self.since += slip;
        self.stride.at += slip;
        self.acks.shift_deadlines(slip);
        self.request.shift_deadlines(slip);
        self.rhythm.shift_deadlines(slip);
    }
}
