//! The stages of a session: how it changes stage, how its join progresses, and when its time limit ends it.
//!
//! ```text
//!  connect ─▶ Greeting ── begin_loading ─▶ Loading ── take_wanted ─▶ CatchingUp ── play ─▶ Playing
//!               │ silent                     │ stuck, in vain          │ stuck             │ no acks
//!               ▼                            ▼                         ▼                   ▼
//!             JoinTooSlow                  JoinTooSlow               JoinTooSlow         NoAcks      (`judge`)
//! ```
//!
//! Invariants: only these three methods change the stage, and a session never goes back to an earlier one. Every stage
//! before play has a time limit for a client that falls silent.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::{
    ACK_CLOSE_AFTER, HELLO_WITHIN, JOIN_PLACE_TIME, JOIN_STALL_MAX, JOIN_STEP_BYTES,
    JOIN_STEP_WITHIN, RTT_MAX,
};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::WorldId;
use twinstep_protocol::packet::message;

use super::stage::{Distance, Greeting, Guest, Judgement, Loading, PeerStage, Stride};
use super::{Peer, SessionStage};
use crate::encoding::Snapshot;

/// The rate of a world download that has lost its slot, in bytes per second.
const BULK_BESIDE: u32 = 128 << 10;

impl Peer {
    pub(crate) fn stage(&self) -> SessionStage {
        match self.stage {
            PeerStage::Greeting(Greeting { guest: Some(_), .. }) => SessionStage::Lobby,
            PeerStage::Greeting(_) => SessionStage::Greeting,
            PeerStage::Loading(_) => SessionStage::Loading,
            PeerStage::CatchingUp(_) => SessionStage::CatchingUp,
            PeerStage::Playing => SessionStage::Playing,
        }
    }

    pub(crate) fn plays(&self) -> bool {
        matches!(self.stage, PeerStage::Playing)
    }

    /// Returns `true` if the client has its world, so that turns are sent to it.
    pub(crate) fn has_world(&self) -> bool {
        matches!(self.stage, PeerStage::CatchingUp(_) | PeerStage::Playing)
    }

    /// Returns `true` while the session loads or catches up: the frames since its starting point are kept.
    pub(crate) fn joins(&self) -> bool {
        matches!(self.stage, PeerStage::Loading(_) | PeerStage::CatchingUp(_))
    }

    pub(crate) fn greeting(&self) -> Option<&Greeting> {
        match &self.stage {
            PeerStage::Greeting(greeting) => Some(greeting),
            _ => None,
        }
    }

    pub(crate) fn greeting_mut(&mut self) -> Option<&mut Greeting> {
        match &mut self.stage {
            PeerStage::Greeting(greeting) => Some(greeting),
            _ => None,
        }
    }

    pub(crate) fn guest(&self) -> Option<&Guest> {
        self.greeting()?.guest.as_deref()
    }

    pub(crate) fn guest_mut(&mut self) -> Option<&mut Guest> {
        self.greeting_mut()?.guest.as_deref_mut()
    }

    // Returns `true` if rules may be sent to the session now, and counts that as its join.
    pub(crate) fn count_rules(&mut self, now: Duration) -> bool {
        let may = self.limits.may_join(now);
        if let Some(greeting) = self.greeting_mut().filter(|_| may) {
            greeting.count();
        }
        may
    }

    /// Enters the next stage: the session loads this world, or only frames, starting at `from`.
    pub(crate) fn begin_loading(&mut self, now: Duration, world: Option<WorldId>, from: Tick) {
        self.stage = PeerStage::Loading(Loading {
            world,
            beside: false,
            stride: self.stride(now),
        });
        self.enter(now);
        self.acks.begin(from);
    }

    /// Handles the client's request for its next frame. Returns `true` if `wanted` acknowledges frames. If the session
    /// is loading, `wanted` only shows that it has the world, and the session enters the next stage.
    pub(crate) fn take_wanted(&mut self, now: Duration, wanted: Tick) -> bool {
        if !matches!(self.stage, PeerStage::Loading(_)) {
            return true;
        }
        if self.has_loaded() && wanted >= self.acks.wanted() {
            self.limits.record_loaded();
            self.stage = PeerStage::CatchingUp(self.stride(now));
            self.enter(now);
            self.acks.record_loaded(wanted);
        }
        false
    }

    pub(crate) fn play(&mut self, now: Duration) {
        self.stage = PeerStage::Playing;
        self.enter(now);
    }

    fn enter(&mut self, now: Duration) {
        self.since = now;
        self.acks.forgive(now);
    }

    fn stride(&self, now: Duration) -> Stride {
        Stride {
            at: now,
            bytes: self.lane_out.arrived_bytes(),
            ..Stride::default()
        }
    }

    pub(crate) fn judge(&mut self, now: Duration, distance: &Distance) -> Judgement {
        let too_slow = |is: bool| match is {
            true => Judgement::Over(CloseCode::JoinTooSlow),
            false => Judgement::Stays,
        };
        let is_stuck = self.has_stalled_for(now, JOIN_STALL_MAX);
        let has_loaded = self.has_loaded();
        let silent_for = now.saturating_sub(self.link.last_received_at().unwrap_or(self.since));
        match &mut self.stage {
            PeerStage::Greeting(Greeting { guest: Some(_), .. }) => {
                match silent_for > ACK_CLOSE_AFTER {
                    true => Judgement::Over(CloseCode::NoAcks),
                    false => Judgement::Stays,
                }
            }
            // Waiting for a slot does not count while the client keeps asking.
            PeerStage::Greeting(greeting) => {
                too_slow(now.saturating_sub(greeting.at.max(self.since)) > HELLO_WITHIN)
            }
            PeerStage::Loading(loading) => {
                if is_stuck && !has_loaded && !loading.stride.has_progressed {
                    self.limits.give_way(now);
                }
                // Without the frames since then, its world is useless.
                let in_vain = !has_loaded && self.acks.wanted() < distance.oldest;
                too_slow(in_vain || is_stuck)
            }
            PeerStage::CatchingUp(_) if distance.ticks <= distance.near => Judgement::CaughtUp,
            PeerStage::CatchingUp(stride) => {
                stride.come_to(now, distance);
                too_slow(self.has_stalled_for(now, JOIN_STALL_MAX))
            }
            PeerStage::Playing if self.acks.stood_for(now) > ACK_CLOSE_AFTER => {
                Judgement::Over(CloseCode::NoAcks)
            }
            PeerStage::Playing => Judgement::Stays,
        }
    }

    pub(crate) fn record_arrived(&mut self, now: Duration) {
        let (bytes, is_idle) = (self.lane_out.arrived_bytes(), self.lane_out.is_idle());
        if let Some(stride) = self.stride_mut() {
            let is_last = is_idle && bytes > stride.bytes;
            if is_last || bytes >= stride.bytes + JOIN_STEP_BYTES {
                (stride.at, stride.bytes) = (now, bytes);
                stride.has_progressed = true;
            }
        }
    }

    fn stride_mut(&mut self) -> Option<&mut Stride> {
        match &mut self.stage {
            PeerStage::Loading(Loading { stride, .. }) | PeerStage::CatchingUp(stride) => {
                Some(stride)
            }
            PeerStage::Greeting(_) | PeerStage::Playing => None,
        }
    }

    pub(crate) fn has_progressed(&self) -> bool {
        match &self.stage {
            PeerStage::Loading(Loading { stride, .. }) | PeerStage::CatchingUp(stride) => {
                stride.has_progressed
            }
            PeerStage::Greeting(_) | PeerStage::Playing => false,
        }
    }

    /// Returns `true` if the join has made no progress for `time` plus four round trips: a lost chunk is noticed one
    /// round trip later, and its copy may be lost again.
    fn has_stalled_for(&self, now: Duration, time: Duration) -> bool {
        let ways = 4 * self.link.rtt().unwrap_or_default().min(RTT_MAX);
        match &self.stage {
            PeerStage::Loading(Loading { stride, .. }) | PeerStage::CatchingUp(stride) => {
                now.saturating_sub(stride.at) > time + ways
            }
            PeerStage::Greeting(_) | PeerStage::Playing => false,
        }
    }

    fn has_loaded(&self) -> bool {
        match &self.stage {
            PeerStage::Greeting(_) => false,
            PeerStage::Loading(loading) => loading.world.is_none() || self.lane_out.is_idle(),
            PeerStage::CatchingUp(_) | PeerStage::Playing => true,
        }
    }

    /// Returns `true` if the session's world is being sent: without a slot if `beside`, otherwise with one.
    fn loads(&self, beside: bool) -> bool {
        let is_so = |loading: &Loading| loading.beside == beside;
        matches!(&self.stage, PeerStage::Loading(loading) if is_so(loading)) && !self.has_loaded()
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.loads(false) && !self.limits.gave_way()
    }

    pub(crate) fn loads_beside(&self) -> bool {
        self.loads(true)
    }

    /// Continues the session's world download without a slot, at a low rate.
    pub(crate) fn go_beside(&mut self) {
        if let PeerStage::Loading(loading) = &mut self.stage {
            loading.beside = true;
            self.lane_out.set_rate(BULK_BESIDE);
        }
    }

    pub(crate) fn is_stalled(&self, now: Duration) -> bool {
        self.has_stalled_for(now, JOIN_STEP_WITHIN)
    }

    /// Returns `true` if the world has been sent for longer than [`JOIN_PLACE_TIME`] and uses little of the server's
    /// bandwidth: it does not need a slot.
    pub(crate) fn is_slow(&self, now: Duration) -> bool {
        let under_way = now.saturating_sub(self.since);
        let much = u64::from(BULK_BESIDE) * under_way.as_millis() as u64 / 1_000;
        let trips = 2 * self.link.rtt().unwrap_or_default().min(RTT_MAX);
        under_way > JOIN_PLACE_TIME + trips && self.lane_out.progress().acked_bytes < much
    }

    /// Returns `true` if the session's seats may be given to others, because its world download has stalled, or stalled
    /// before and the session requests another world.
    pub(crate) fn is_overdue(&self, now: Duration) -> bool {
        let gave_way = self.limits.gave_way();
        match self.stage {
            PeerStage::Greeting(_) => gave_way,
            PeerStage::Loading(_) => !self.has_loaded() && (gave_way || self.is_stalled(now)),
            PeerStage::CatchingUp(_) | PeerStage::Playing => false,
        }
    }

    /// The first frame that the session still needs to join, and the world being sent. Returns `None` if the session is
    /// not joining.
    pub(crate) fn unfinished(&self) -> Option<(Tick, Option<Snapshot>)> {
        let world = match &self.stage {
            PeerStage::Loading(loading) => loading.world,
            PeerStage::CatchingUp(_) => None,
            PeerStage::Greeting(_) | PeerStage::Playing => return None,
        };
        let world = world.and_then(|id| {
            let bytes = self.lane_out.unfinished(message::WORLD)?;
            Some(Snapshot { id, bytes })
        });
        Some((self.acks.wanted(), world))
    }

    pub(super) fn shift_stage(&mut self, slip: Duration) {
        self.since += slip;
        match &mut self.stage {
            PeerStage::Greeting(greeting) => greeting.at += slip,
            PeerStage::Loading(Loading { stride, .. }) | PeerStage::CatchingUp(stride) => {
                stride.at += slip;
            }
            PeerStage::Playing => {}
        }
    }
}
