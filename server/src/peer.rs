//! One session at the server: who it is, how far its client has come, and what it must still be told.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    COMMANDS_OPEN_MAX, HEAL_EVERY, HEALS_MAX, REPORT_BYTES_MAX, SEATS_MAX, STRIKE_WINDOW,
    STRIKES_MAX, WORLD_BYTES_MAX,
};
use twinstep_core::frame::PlayerSet;
use twinstep_core::lane::{LaneReceiver, LaneSender};
use twinstep_core::link::Link;
use twinstep_core::packet::ByteCounts;
use twinstep_core::{PlayerId, Tick};

/// Packets of which it is remembered whether they told fates.
const TELLINGS: usize = 256;

/// A session, as the host numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing agreed yet.
    Greeting,
    /// A world is on its way.
    Loading,
    /// It has its world and steps through the turns since.
    CatchingUp,
    /// It is in the match.
    Playing,
}

/// An order that will not be executed, to be told until the client has heard it.
pub(crate) struct Refusal {
    pub(crate) seat: u8,
    pub(crate) claim: bool,
    pub(crate) seq: u32,
    /// The first packet that told it; 0: none yet.
    pub(crate) told_in: u32,
}

/// One session.
pub(crate) struct Peer {
    pub(crate) id: PeerId,
    pub(crate) identity: String,
    pub(crate) players: ArrayVec<PlayerId, SEATS_MAX>,
    pub(crate) stage: Stage,
    pub(crate) since: Duration,
    pub(crate) link: Link,
    pub(crate) lane_out: LaneSender,
    pub(crate) lane_in: LaneReceiver,
    /// The next frame that the client wants: all before it are acknowledged.
    pub(crate) wanted: Tick,
    pub(crate) progress_at: Duration,
    pub(crate) sent_at: Duration,
    /// The client's authority, as it tells.
    pub(crate) view: Tick,
    /// The first tick whose input came from this very session, per seat.
    pub(crate) first_input: [Tick; SEATS_MAX],
    pub(crate) refusals: Vec<Refusal>,
    /// Command acks are told while the client may not know them: the first packet that did.
    pub(crate) acks_told_in: Option<u32>,
    /// Which of the last packets told fates (those of the lane do not), by sequence.
    tellings: [bool; TELLINGS],
    /// The newest packet that told fates and was heard.
    heard_telling: u32,
    pub(crate) evidence: Option<(Tick, Arc<[u8]>)>,
    heals: u32,
    healed_at: Option<Duration>,
    strikes: u32,
    strikes_since: Duration,
    pub(crate) bytes_down: ByteCounts,
    pub(crate) bytes_up: u64,
    pub(crate) packets_up: u64,
}

impl Peer {
    pub(crate) fn new(
        id: PeerId,
        identity: String,
        players: ArrayVec<PlayerId, SEATS_MAX>,
        now: Duration,
    ) -> Self {
        Peer {
            id,
            identity,
            players,
            stage: Stage::Greeting,
            since: now,
            link: Link::default(),
            lane_out: LaneSender::new(WORLD_BYTES_MAX),
            lane_in: LaneReceiver::new(REPORT_BYTES_MAX),
            wanted: Tick(0),
            progress_at: now,
            sent_at: Duration::ZERO,
            view: Tick(0),
            first_input: [Tick::MAX; SEATS_MAX],
            refusals: Vec::with_capacity(COMMANDS_OPEN_MAX),
            acks_told_in: None,
            tellings: [false; TELLINGS],
            heard_telling: 0,
            evidence: None,
            heals: 0,
            healed_at: None,
            strikes: 0,
            strikes_since: now,
            bytes_down: ByteCounts::default(),
            bytes_up: 0,
            packets_up: 0,
        }
    }

    pub(crate) fn own(&self) -> PlayerSet {
        self.players.iter().copied().collect()
    }

    pub(crate) fn enter(&mut self, stage: Stage, now: Duration) {
        self.stage = stage;
        self.since = now;
        self.progress_at = now;
    }

    /// Counts a protocol error; whether it was one too many.
    pub(crate) fn strike(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.strikes_since) > STRIKE_WINDOW {
            self.strikes = 0;
            self.strikes_since = now;
        }
        self.strikes += 1;
        self.strikes > STRIKES_MAX
    }

    /// Whether this client may be healed now; `None`: it has been healed too often.
    pub(crate) fn may_heal(&mut self, now: Duration) -> Option<bool> {
        if self
            .healed_at
            .is_some_and(|at| now.saturating_sub(at) < HEAL_EVERY)
        {
            return Some(false);
        }
        if self.heals == HEALS_MAX {
            return None;
        }
        self.heals += 1;
        self.healed_at = Some(now);
        Some(true)
    }

    /// Tells the owner of an order that it is refused, until it has heard it.
    pub(crate) fn refuse(&mut self, player: PlayerId, claim: bool, seq: u32) {
        let seat = self.players.iter().position(|p| *p == player);
        if let Some(seat) = seat
            && self.refusals.len() < 2 * COMMANDS_OPEN_MAX
        {
            self.refusals.push(Refusal {
                seat: seat as u8,
                claim,
                seq,
                told_in: 0,
            });
        }
    }

    /// Notes that packet `seq` tells all fates that the client may not know.
    pub(crate) fn note_telling(&mut self, seq: u32) {
        self.tellings[seq as usize % TELLINGS] = true;
    }

    /// Notes that packet `seq` tells none.
    pub(crate) fn note_silent(&mut self, seq: u32) {
        self.tellings[seq as usize % TELLINGS] = false;
    }

    /// Forgets what the client has heard: a fate is told in every telling packet from the first to carry
    /// it on, so any newer one that was heard is enough.
    pub(crate) fn forget_heard(&mut self) {
        let acked = self.link.acked();
        if self.link.next_seq() - acked < TELLINGS as u32
            && self.tellings[acked as usize % TELLINGS]
        {
            self.heard_telling = self.heard_telling.max(acked);
        }
        let heard = self.heard_telling;
        self.refusals
            .retain(|refusal| refusal.told_in == 0 || refusal.told_in > heard);
        if self
            .acks_told_in
            .is_some_and(|seq| seq != 0 && seq <= heard)
        {
            self.acks_told_in = None;
        }
    }
}
