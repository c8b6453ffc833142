//! One session at the server: who it is, how far its client has come, and what it must still be told.
//!
//! Invariant: what an identity may do only so often is counted in its standing, which outlives its sessions: coming
//! back resets nothing.

use std::collections::VecDeque;
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
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::{PlayerId, Tick};

use crate::sealer::Refused;

/// Batches whose arrival is remembered.
const SLACKS: usize = 16;
/// Packets of which it is remembered whether they told fates.
const TELLINGS: usize = 256;
/// An identity gets a world to join with, and thereby joins, at most once in so long.
const JOIN_EVERY: Duration = Duration::from_secs(5);
/// A ticket to return with is due when a session plays, and every so often from then on.
const TICKET_EVERY: Duration = Duration::from_secs(10);
/// Pauses for one player are summed up over this time, and one return in it counts as a sign of life.
const MINUTE: Duration = Duration::from_secs(60);
/// Identities whose standing is remembered while they are away.
const STANDINGS_MAX: usize = 256;
/// Who was too slow stays out for so long: a client tries to return for twice as long.
const BAR_TOO_SLOW: Duration = Duration::from_secs(30);
/// Who broke the protocol too often stays out for so long.
const BAR_STRIKES: Duration = Duration::from_secs(60);

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

/// What an identity has used up of its bounds, and must still be told: kept from session to session.
#[derive(Default)]
pub(crate) struct Standing {
    heals: u32,
    healed_at: Option<Duration>,
    strikes: u32,
    strikes_since: Duration,
    joined_at: Option<Duration>,
    excused_at: Option<Duration>,
    held: Held,
    /// Until when it may not return, and why.
    barred: Option<(Duration, CloseCode)>,
    /// Refused orders of which it has not heard: player, whether a claim, sequence.
    untold: Vec<(PlayerId, bool, u32)>,
    /// What was sent to its earlier sessions.
    bytes_down: ByteCounts,
}

impl Standing {
    /// Counts a protocol error; whether it was one too many.
    fn strike(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.strikes_since) > STRIKE_WINDOW {
            self.strikes = 0;
            self.strikes_since = now;
        }
        self.strikes += 1;
        self.strikes > STRIKES_MAX
    }

    /// It was removed for this reason, and some reasons keep it out for a while.
    fn bar(&mut self, now: Duration, code: CloseCode) {
        let until = match code {
            CloseCode::TooSlow => now + BAR_TOO_SLOW,
            CloseCode::Strikes => now + BAR_STRIKES,
            CloseCode::Kicked => Duration::MAX,
            _ => return,
        };
        self.barred = Some((until, code));
    }

    /// Why it may not return yet, if it may not.
    fn barred(&self, now: Duration) -> Option<CloseCode> {
        let (until, code) = self.barred?;
        (now < until).then_some(code)
    }

    /// Whether it may be healed now; `None`: it has been healed too often.
    fn may_heal(&mut self, now: Duration) -> Option<bool> {
        let lately = |at| now.saturating_sub(at) < HEAL_EVERY;
        if self.healed_at.is_some_and(lately) {
            return Some(false);
        }
        if self.heals == HEALS_MAX {
            return None;
        }
        self.heals += 1;
        self.healed_at = Some(now);
        Some(true)
    }
}

/// An identity that is away. Who plays may watch too, and each is one of these.
struct Away {
    identity: String,
    watches: bool,
    standing: Standing,
}

/// The standing of identities that are away, the longest away first.
#[derive(Default)]
pub(crate) struct Standings {
    away: VecDeque<Away>,
}

impl Standings {
    /// A session ended.
    pub(crate) fn keep(&mut self, now: Duration, peer: Peer) {
        let watches = peer.is_spectator();
        let Peer {
            identity,
            players,
            refusals,
            mut standing,
            bytes_down,
            ..
        } = peer;
        standing.bytes_down += bytes_down;
        standing.untold = refusals
            .iter()
            .map(|told| (players[usize::from(told.seat)], told.claim, told.seq))
            .collect();
        self.put(
            now,
            Away {
                identity,
                watches,
                standing,
            },
        );
    }

    /// Remembers one more, rather than the one that is away longest; who is barred is forgotten last.
    fn put(&mut self, now: Duration, away: Away) {
        if self.away.len() == STANDINGS_MAX {
            let free = |away: &Away| away.standing.barred(now).is_none();
            let at = self.away.iter().position(free).unwrap_or(0);
            self.away.remove(at);
        }
        self.away.push_back(away);
    }

    /// A session begins.
    pub(crate) fn take(&mut self, identity: &str, watches: bool) -> Standing {
        let is = |away: &Away| away.identity == identity && away.watches == watches;
        let at = self.away.iter().position(is);
        at.and_then(|at| self.away.remove(at))
            .map(|away| away.standing)
            .unwrap_or_default()
    }

    /// A player without a session is removed for this reason.
    pub(crate) fn bar(&mut self, now: Duration, identity: &str, code: CloseCode) {
        let mut standing = self.take(identity, false);
        standing.bar(now, code);
        self.put(
            now,
            Away {
                identity: identity.to_owned(),
                watches: false,
                standing,
            },
        );
    }

    /// An order of a player without a session is refused: it hears of it when it is back.
    pub(crate) fn refuse(&mut self, now: Duration, identity: &str, refused: &Refused) {
        let mut standing = self.take(identity, false);
        if standing.untold.len() < 2 * COMMANDS_OPEN_MAX {
            let told = (refused.player, refused.claim, refused.seq);
            standing.untold.push(told);
        }
        if refused.poison && standing.strike(now) {
            standing.bar(now, CloseCode::Strikes);
        }
        self.put(
            now,
            Away {
                identity: identity.to_owned(),
                watches: false,
                standing,
            },
        );
    }

    /// What was sent to the earlier sessions of an identity that is away.
    pub(crate) fn bytes_down(&self, identity: &str) -> ByteCounts {
        let own = self.away.iter().filter(|away| away.identity == identity);
        own.fold(ByteCounts::default(), |sum, away| {
            sum + away.standing.bytes_down
        })
    }

    /// Why an identity may not come yet, if it may not. Who was kicked does not watch either.
    pub(crate) fn barred(&self, now: Duration, identity: &str, watches: bool) -> Option<CloseCode> {
        let own = self.away.iter().filter(|away| away.identity == identity);
        own.filter_map(|away| {
            let code = away.standing.barred(now)?;
            (away.watches == watches || code == CloseCode::Kicked).then_some(code)
        })
        .next()
    }
}

/// For how long the match stood still for a session.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// At once.
    now: Duration,
    /// Within the minute that began...
    minute: Duration,
    /// ...then.
    since: Duration,
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
    /// Pauses that the client told of and nobody looked at yet.
    pub(crate) pauses: u32,
    pauses_told: Option<u8>,
    /// For what share of its time its machine is busy with the game, as it tells.
    pub(crate) load: u8,
    /// How early the last batches came before their turn was due, in milliseconds, newest last.
    slacks: ArrayVec<i16, SLACKS>,
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
    /// Its client goes on from frames: no world was sent.
    pub(crate) resumed: bool,
    /// Which names it was told last, and which state of the connections.
    pub(crate) names_told: u32,
    pub(crate) company_told: u32,
    /// When it is to get a ticket to return with; from when it plays on.
    ticket_due: Option<Duration>,
    standing: Standing,
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
            stage: Stage::Greeting,
            since: now,
            link: Link::default(),
            lane_out: LaneSender::new(WORLD_BYTES_MAX),
            lane_in: LaneReceiver::new(REPORT_BYTES_MAX),
            wanted: Tick(0),
            progress_at: now,
            sent_at: Duration::ZERO,
            view: Tick(0),
            pauses: 0,
            pauses_told: None,
            load: 0,
            slacks: ArrayVec::new(),
            trails_since: None,
            first_input: [Tick::MAX; SEATS_MAX],
            refusals: Vec::with_capacity(COMMANDS_OPEN_MAX),
            acks_told_in: None,
            tellings: [false; TELLINGS],
            heard_telling: 0,
            evidence: None,
            reports_due: 0,
            server_at_fault: false,
            resumed: false,
            names_told: 0,
            company_told: 0,
            ticket_due: None,
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

    /// What was sent to this identity, now and in earlier sessions.
    pub(crate) fn bytes_down_in_all(&self) -> ByteCounts {
        self.standing.bytes_down + self.bytes_down
    }

    /// Whether it only watches: it has no seat.
    pub(crate) fn is_spectator(&self) -> bool {
        self.players.is_empty()
    }

    pub(crate) fn own(&self) -> PlayerSet {
        self.players.iter().copied().collect()
    }

    pub(crate) fn enter(&mut self, stage: Stage, now: Duration) {
        self.stage = stage;
        self.since = now;
        self.progress_at = now;
    }

    /// The client counts its pauses in half a byte that wraps, and tells its load in the other.
    pub(crate) fn note_pauses(&mut self, told: u8) {
        self.load = told >> 4;
        let told = told & 15;
        let before = self.pauses_told.replace(told).unwrap_or(told);
        self.pauses += u32::from(told.wrapping_sub(before) & 15);
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

    /// Whether the match may stand still for this session, within limits at once and a minute.
    pub(crate) fn may_be_held_for(
        &self,
        now: Duration,
        at_once: Duration,
        per_minute: Duration,
    ) -> bool {
        let held = &self.standing.held;
        let spent = now.saturating_sub(held.since) < MINUTE && held.minute >= per_minute;
        held.now < at_once && !spent
    }

    /// The match stood still for this session.
    pub(crate) fn note_held(&mut self, now: Duration, time: Duration) {
        let held = &mut self.standing.held;
        if now.saturating_sub(held.since) >= MINUTE {
            held.since = now;
            held.minute = Duration::ZERO;
        }
        held.now += time;
        held.minute += time;
    }

    /// It does not trail any more: another pause may begin.
    pub(crate) fn note_close(&mut self) {
        self.standing.held.now = Duration::ZERO;
    }

    /// It is removed for this reason, and some reasons keep it out for a while.
    pub(crate) fn bar(&mut self, now: Duration, code: CloseCode) {
        self.standing.bar(now, code);
    }

    /// Counts a protocol error; whether it was one too many.
    pub(crate) fn strike(&mut self, now: Duration) -> bool {
        self.standing.strike(now)
    }

    /// Whether this client may be healed now; `None`: it has been healed too often.
    pub(crate) fn may_heal(&mut self, now: Duration) -> Option<bool> {
        self.standing.may_heal(now)
    }

    /// Whether this identity may get a world to join with now; if so, that counts.
    pub(crate) fn may_join(&mut self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) < JOIN_EVERY;
        let may = !self.standing.joined_at.is_some_and(lately);
        if may {
            self.standing.joined_at = Some(now);
        }
        may
    }

    /// Whether this identity's return counts as a sign of life: the first one in a minute. If so, that counts.
    pub(crate) fn may_be_excused(&mut self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) < MINUTE;
        let may = !self.standing.excused_at.is_some_and(lately);
        if may {
            self.standing.excused_at = Some(now);
        }
        may
    }

    /// Whether a ticket to return with is due now; if so, the next one is due a while later.
    pub(crate) fn takes_ticket(&mut self, now: Duration) -> bool {
        let due = self.stage == Stage::Playing
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
