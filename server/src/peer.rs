//! One session at the server: who it is, how far its client has come, and what it must still be told.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    COMMANDS_OPEN_MAX, JOIN_BYTES_PER_SECOND, JOIN_START, REPORT_BYTES_MAX, RTT_MAX, SEATS_MAX,
    WORLD_BYTES_MAX,
};
use twinstep_core::frame::PlayerSet;
use twinstep_core::lane::{LaneReceiver, LaneSender};
use twinstep_core::link::LinkState;
use twinstep_core::packet::ByteCounts;
use twinstep_core::packet::gaps::Gaps;
use twinstep_core::{PlayerId, Tick};

use crate::reach::Reach;
use crate::standing::{Away, Standing};
use crate::tempo::Tempo;

/// Tickets that a session was handed and may still say to have stored: they come one in 10 s.
pub(crate) const HANDED_MAX: usize = 16;
/// Batches whose arrival is remembered.
const SLACKS: usize = 16;
/// Packets of which it is remembered whether they told fates.
const TELLINGS: usize = 256;
/// Who was late is believed for so long that its machine or its line is slow.
const LATE_FOR: Duration = Duration::from_secs(5);
/// A session finds its rhythm within so long.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// A ticket to return with is due when a session plays, and every so often from then on.
const TICKET_EVERY: Duration = Duration::from_secs(10);

/// A session, as the host numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

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
    pub(crate) stage: SessionStage,
    pub(crate) since: Duration,
    /// Since when it asks for a world, and when it asked last.
    pub(crate) asked_since: Option<Duration>,
    pub(crate) asked_at: Duration,
    pub(crate) link: LinkState,
    pub(crate) lane_out: LaneSender,
    pub(crate) lane_in: LaneReceiver,
    /// The next frame that the client wants: all before it are acknowledged.
    pub(crate) wanted: Tick,
    pub(crate) reach: Reach,
    /// What its client lacked of the frames that it was told, as it said last.
    pub(crate) gaps: Gaps,
    pub(crate) progress_at: Duration,
    pub(crate) sent_at: Duration,
    /// The client's authority, as it tells.
    pub(crate) view: Tick,
    /// Pauses that the client told of and nobody looked at yet.
    pub(crate) pauses: u32,
    pauses_told: Option<u8>,
    /// For what share of its time its machine is busy with the game, as it tells.
    pub(crate) load: u8,
    /// How early the last batches came before their turn was due, in milliseconds, newest last.
    slacks: ArrayVec<i16, SLACKS>,
    /// When it was last seen to be late, by this server's own clock.
    late_at: Option<Duration>,
    /// What its machine and its line ask for.
    pub(crate) tempo: Tempo,
    /// Since when it trails.
    pub(crate) trails_since: Option<Duration>,
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
    /// Reports that it may send: one for each evidence that it got.
    pub(crate) reports_due: u32,
    /// The journal says that this client was right.
    pub(crate) server_at_fault: bool,
    /// The journal's frames lead to another world each time.
    pub(crate) step_impure: bool,
    /// It begins with a world that is sent, not by frames from what it has.
    pub(crate) needs_world: bool,
    /// Which names it was told last, and which state of the connections.
    pub(crate) names_told: u32,
    pub(crate) company_told: u32,
    /// When it is to get a ticket to return with; from when it plays on.
    ticket_due: Option<Duration>,
    /// The serial of the ticket that it came by, if it came by one.
    pub(crate) came_by: Option<u64>,
    /// Serials of tickets that it was handed, oldest first, and that are not safe yet.
    pub(crate) handed: ArrayVec<u64, HANDED_MAX>,
    pub(crate) standing: Standing,
    pub(crate) bytes_down: ByteCounts,
    pub(crate) bytes_up: u64,
    pub(crate) packets_up: u64,
}

impl Peer {
    pub(crate) fn new(
        id: PeerId,
        identity: String,
        players: ArrayVec<PlayerId, SEATS_MAX>,
        mut standing: Standing,
        now: Duration,
    ) -> Self {
        let untold = std::mem::take(&mut standing.untold);
        let mut peer = Peer {
            id,
            identity,
            players,
            stage: SessionStage::Greeting,
            since: now,
            asked_since: None,
            asked_at: now,
            link: LinkState::default(),
            lane_out: LaneSender::new(WORLD_BYTES_MAX),
            lane_in: LaneReceiver::new(REPORT_BYTES_MAX),
            wanted: Tick(0),
            reach: Reach::default(),
            gaps: Gaps::new(),
            progress_at: now,
            sent_at: Duration::ZERO,
            view: Tick(0),
            pauses: 0,
            pauses_told: None,
            load: 0,
            slacks: ArrayVec::new(),
            late_at: None,
            tempo: Tempo::default(),
            trails_since: None,
            first_input: [Tick::MAX; SEATS_MAX],
            refusals: Vec::with_capacity(COMMANDS_OPEN_MAX),
            acks_told_in: None,
            tellings: [false; TELLINGS],
            heard_telling: 0,
            evidence: None,
            reports_due: 0,
            server_at_fault: false,
            step_impure: false,
            needs_world: true,
            names_told: 0,
            company_told: 0,
            ticket_due: None,
            came_by: None,
            handed: ArrayVec::new(),
            standing,
            bytes_down: ByteCounts::default(),
            bytes_up: 0,
            packets_up: 0,
        };
        for (player, claim, seq) in untold {
            peer.refuse(player, claim, seq);
        }
        peer
    }

    /// It ends: what its identity has used up of its bounds, and must still be told.
    pub(crate) fn end(self) -> Away {
        let watches = self.is_spectator();
        let Peer {
            identity,
            players,
            refusals,
            mut standing,
            bytes_down,
            ..
        } = self;
        standing.bytes_down += bytes_down;
        standing.untold = refusals
            .iter()
            .map(|told| (players[usize::from(told.seat)], told.claim, told.seq))
            .collect();
        Away {
            identity,
            watches,
            standing,
        }
    }

    /// What was sent to this identity, now and in earlier sessions.
    pub(crate) fn bytes_down_in_all(&self) -> ByteCounts {
        self.standing.bytes_down + self.bytes_down
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
        self.progress_at = now;
    }

    /// Whether its world is on its way and takes a place.
    pub(crate) fn is_loading(&self) -> bool {
        self.stage == SessionStage::Loading && !self.has_loaded() && !self.standing.gave_way()
    }

    /// Whether it has the world that it begins with, or needed none.
    pub(crate) fn has_loaded(&self) -> bool {
        !self.needs_world || self.lane_out.is_idle()
    }

    /// Whether its world gets on too slowly to keep others waiting.
    pub(crate) fn is_stalled(&self, now: Duration) -> bool {
        // A lost chunk is noticed a way there and back later, and may be lost again.
        let ways = 4 * self.link.rtt().unwrap_or_default().min(RTT_MAX);
        let start = JOIN_START + ways;
        let Some(under_way) = now.saturating_sub(self.since).checked_sub(start) else {
            return false;
        };
        let due = u64::from(JOIN_BYTES_PER_SECOND) * under_way.as_millis() as u64 / 1_000;
        self.lane_out.progress().acked_bytes <= due
    }

    /// Whether its world does not come on, or did not and it asks for another one: whoever wants its seats may have them.
    pub(crate) fn is_overdue(&self, now: Duration) -> bool {
        let gave_way = self.standing.gave_way();
        match self.stage {
            SessionStage::Greeting => gave_way,
            SessionStage::Loading => !self.has_loaded() && (gave_way || self.is_stalled(now)),
            SessionStage::CatchingUp | SessionStage::Playing => false,
        }
    }

    /// The client counts its pauses in half a byte that wraps, and tells its load in the other.
    pub(crate) fn note_pauses(&mut self, told: u8) {
        self.load = told >> 4;
        let told = told & 15;
        let before = self.pauses_told.replace(told).unwrap_or(told);
        self.pauses += u32::from(told.wrapping_sub(before) & 15);
    }

    /// The server saw that this session is late; of one that has just come that says nothing.
    pub(crate) fn note_late(&mut self, now: Duration) {
        if self.stage == SessionStage::Playing && now.saturating_sub(self.since) >= SETTLED_AFTER {
            self.late_at = Some(now);
        }
    }

    /// Whether the server saw lately that this session is late.
    pub(crate) fn is_late(&self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) <= LATE_FOR;
        self.late_at.is_some_and(lately)
    }

    /// Notes how early a batch came, in milliseconds; late ones are below 0.
    pub(crate) fn note_slack(&mut self, ms: i64) {
        if self.slacks.is_full() {
            self.slacks.remove(0);
        }
        self.slacks
            .push(ms.clamp(i16::MIN.into(), i16::MAX.into()) as i16);
    }

    /// How early the latest of the last batches came, in milliseconds; `None`: none came.
    pub(crate) fn slack(&self) -> Option<i16> {
        self.slacks.iter().copied().min()
    }

    /// Whether a ticket to return with is due now; if so, the next one is due a while later.
    pub(crate) fn takes_ticket(&mut self, now: Duration) -> bool {
        let due = self.stage == SessionStage::Playing
            && self.ticket_due.is_none_or(|due| now >= due)
            // Not behind a world: a ticket is of use at once, or never.
            && self.lane_out.is_idle();
        if due {
            self.ticket_due = Some(now + TICKET_EVERY);
        }
        due
    }

    /// Tells the owner of an order that it is refused, until it has heard it.
    pub(crate) fn refuse(&mut self, player: PlayerId, claim: bool, seq: u32) {
        let seat = self.players.iter().position(|p| *p == player);
        let known = |seat: usize| {
            let same = |r: &Refusal| (usize::from(r.seat), r.claim, r.seq) == (seat, claim, seq);
            self.refusals.iter().any(same)
        };
        if let Some(seat) = seat.filter(|seat| !known(*seat))
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
