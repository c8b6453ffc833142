//! One session on the server: its identity and its connection. Its other state is in these types:
//!
//!  PeerStage       its stage                         Rhythm   how well its client keeps up
//!  FrameAcks       the frames it acknowledged        Fates    the results of its orders
//!  Reach           the frames it was sent            Inquiry  where its world differed, and the side at fault
//!  IdentityLimits  its identity's usage of limits    Tickets  the tickets that it has
//!
//! Invariant: all state that must survive the session is in its limits.

use std::time::Duration;
use twinstep_protocol::identity::{Identity, Role, SessionId};
use twinstep_protocol::lineage::Stamp;

use crate::seat::NotAdmitted;
use arrayvec::ArrayVec;
use twinstep_core::bounds::{LANE_UP_BYTES_MAX, SEATS_MAX, SPARSE_AFTER, WORLD_BYTES_MAX};
use twinstep_core::frame::PlayerSet;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::lane::{LaneReceiver, LaneSender};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::packet::refusal::OrderRefusal;

use crate::identity_limits::{Away, IdentityLimits};
use crate::reach::Reach;

mod acks;
mod fates;
mod inquiry;
mod progress;
mod rhythm;
mod stage;
mod tickets;

use acks::FrameAcks;
use fates::Fates;
use inquiry::Inquiry;
pub(crate) use inquiry::Verdict;
use rhythm::Rhythm;
use stage::PeerStage;
pub(crate) use stage::{Distance, Greeting, Guest, Judgement};
use tickets::Tickets;

/// A session is not counted as late for this long after it started to play.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The stage of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStage {
    /// The session has not been accepted yet.
    Greeting,
    /// The session waits for the start of the match.
    Lobby,
    /// The session is receiving a world, or the frames that it requested.
    Loading,
    /// The session has its world and steps through the turns since then.
    CatchingUp,
    /// The session is in the match.
    Playing,
}

pub(crate) struct Peer {
    pub(crate) id: SessionId,
    pub(crate) identity: Identity,
    pub(crate) players: ArrayVec<PlayerId, SEATS_MAX>,
    stage: PeerStage,
    pub(crate) since: Duration,
    pub(crate) link: LinkState,
    pub(crate) lane_out: LaneSender,
    pub(crate) lane_in: LaneReceiver,
    pub(crate) acks: FrameAcks,
    pub(crate) reach: Reach,
    pub(crate) sent_at: Duration,
    pub(crate) bytes_down: ByteCounts,
    /// The first tick whose input came from this session, per seat.
    pub(crate) first_input: [Tick; SEATS_MAX],
    pub(crate) rhythm: Rhythm,
    pub(crate) fates: Fates,
    pub(crate) inquiry: Inquiry,
    pub(crate) tickets: Tickets,
    /// The version of the names last sent to the session; `presence_sent` is that of the presence block.
    pub(crate) names_sent: u32,
    pub(crate) presence_sent: u32,
    pub(crate) limits: IdentityLimits,
}

impl Peer {
    pub(crate) fn new(
        id: SessionId,
        (identity, came_by): (Identity, Option<Stamp>),
        players: ArrayVec<PlayerId, SEATS_MAX>,
        mut limits: IdentityLimits,
        now: Duration,
    ) -> Self {
        let untold = std::mem::take(&mut limits.refusals);
        let mut peer = Peer {
            id,
            identity,
            players,
            stage: PeerStage::Greeting(Greeting::new(now)),
            since: now,
            link: LinkState::default(),
            lane_out: LaneSender::new(WORLD_BYTES_MAX),
            lane_in: LaneReceiver::new(LANE_UP_BYTES_MAX),
            acks: FrameAcks::new(now),
            reach: Reach::default(),
            sent_at: Duration::ZERO,
            bytes_down: ByteCounts::default(),
            first_input: [Tick::MAX; SEATS_MAX],
            rhythm: Rhythm::default(),
            fates: Fates::new(),
            inquiry: Inquiry::default(),
            tickets: Tickets::new(came_by),
            names_sent: 0,
            presence_sent: 0,
            limits,
        };
        for refused in untold {
            peer.refuse(refused);
        }
        peer
    }

    /// Ends the session. Returns what its identity keeps: the usage of limits, and unacknowledged refusals.
    pub(crate) fn end(self) -> Away {
        let Peer {
            identity,
            players,
            fates,
            mut limits,
            bytes_down,
            ..
        } = self;
        limits.bytes_down += bytes_down;
        limits.refusals = fates
            .unacknowledged()
            .map(|refusal| NotAdmitted {
                player: players[refusal.seat],
                claim: refusal.claim,
                seq: refusal.seq,
                why: refusal.why,
            })
            .collect();
        Away { identity, limits }
    }

    pub(crate) fn bytes_down_in_all(&self) -> ByteCounts {
        self.limits.bytes_down + self.bytes_down
    }

    pub(crate) fn is_spectator(&self) -> bool {
        self.identity.role == Role::Spectator
    }

    pub(crate) fn plays_as(&self, identity: &str) -> bool {
        self.identity.plays_as(identity)
    }

    pub(crate) fn own(&self) -> PlayerSet {
        self.players.iter().copied().collect()
    }

    /// Returns `true` if no packet from the client has arrived for too long. Then the lane sends only with the rare
    /// turn packets.
    pub(crate) fn is_silent(&self, now: Duration) -> bool {
        let last_received_at = self.link.last_received_at().unwrap_or(self.since);
        now.saturating_sub(last_received_at) > SPARSE_AFTER
    }

    pub(crate) fn record_late(&mut self, now: Duration) {
        if self.plays() && now.saturating_sub(self.since) >= SETTLED_AFTER {
            self.rhythm.record_late(now);
        }
    }

    pub(crate) fn takes_ticket(&mut self, now: Duration) -> bool {
        // Not while a world is on its lane: a ticket must arrive soon or it is useless.
        self.plays() && self.lane_out.is_idle() && self.tickets.take_due(now)
    }

    /// Reports a refused order to its owner until the owner has acknowledged it.
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

    /// Shifts this session's deadlines by `slip`, the time that the match's clock skips.
    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        self.shift_stage(slip);
        self.acks.shift_deadlines(slip);
        self.rhythm.shift_deadlines(slip);
    }
}
