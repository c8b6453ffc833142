//! What is told to one session: frames that it has not acknowledged, margins, fates, announcements.
//!
//! ```text
//!  acknowledged │ head   │ told, and perhaps lost        │ news          │ not sealed
//!            wanted      └─ again: what room is left for ┴ told ─────────┴ next
//! ```
//!
//! Every send says again all that is unacknowledged, but for what was said often to a client whose acks come as they should
//! (see [`Telling::begins_at`]), where [`PACKETS_PER_SEND_MAX`] packets hold that. Where they do not
//! (many players with large inputs, over a long way), each send still begins with what the client lacks first, goes
//! on with all that it was never told, and says of what lies between the gaps that the client tells of; while it tells
//! of none, as much as there is room for, in turns. So a long way costs nobody the frames that are sealed meanwhile. Each
//! packet is decodable alone, and the client keeps what comes beyond a gap.

use std::ops::Range;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    ANNOUNCE_TICKS, FRAMES_AHEAD_MAX, GAP_PACKETS_PER_SEND_MAX, NEWS_PER_SEND_MAX,
    PACKET_BYTES_MAX, PACKETS_PER_SEND_MAX,
};
use twinstep_core::frame::{FrameData, Order, PlayerSet};
use twinstep_core::lane;
use twinstep_core::packet::gaps::{GAPS_MAX, Gaps};
use twinstep_core::packet::{
    ByteCounts, DownKind, DownPart, NO_DIGEST, OUTER_BYTES, Parts, RareDown, SLACK_UNIT_MS, frames,
};
use twinstep_core::wire::{WireError, Writer};
use twinstep_core::{PlayerId, Simulation, Tick};

use crate::config::Announce;
use crate::history::History;
use crate::outbox::Outbox;
use crate::peer::{OpenRefusal, Peer, SessionStage};
use crate::seat::Seat;

/// Bytes of a digest and its place, which end a run of frames, at most.
const DIGEST_BYTES: usize = 5;
/// What a session was told is told again for at least so long, or half of its round trip. Acks that stay away for longer are
/// noticed, and then all is told again that it may lack: so an outage of any length costs it no more than it lasts.
const COVERED: Duration = Duration::from_millis(150);
/// How long a way there and back is taken to be while none was measured.
const RTT_GUESS: Duration = Duration::from_millis(200);

/// What sessions are told from.
pub(crate) struct Telling<'a, S: Simulation> {
    pub(crate) now: Duration,
    /// The first tick of the turn that is not full, or that the session may not see yet; all before it are
    /// sent.
    pub(crate) next: Tick,
    /// The next tick to be sealed: what margins are told from.
    pub(crate) sealing: Tick,
    /// The next turn to be sealed, with a command delay.
    pub(crate) turn: Option<u32>,
    /// The players that the match waits for.
    pub(crate) waiting: PlayerSet,
    /// Who is connected how well, and the number of that.
    pub(crate) company: Option<(u32, &'a [u8])>,
    pub(crate) announce: Announce,
    pub(crate) history: &'a History<S>,
    pub(crate) seats: &'a [Seat<S>],
    pub(crate) pages: &'a mut Pages<S>,
}

/// What whoever tells writes on, again and again.
pub(crate) struct Pages<S: Simulation> {
    pub(crate) before: FrameData<S>,
    pub(crate) frame: FrameData<S>,
    pub(crate) views: Views,
}

impl<S: Simulation> Pages<S> {
    /// Empty ones.
    pub(crate) fn new(start: Tick) -> Self {
        Pages {
            before: FrameData::roomy(start),
            frame: FrameData::roomy(start),
            views: Views::default(),
        }
    }
}

/// Runs of frames as those see them who only watch: alike for all who lack the same ones, so written once for all of
/// them. What a spectator costs is then little more than the copy of a packet.
#[derive(Default)]
pub(crate) struct Views {
    runs: Vec<View>,
    bytes: Vec<u8>,
}

struct View {
    from: Tick,
    /// Up to where it was to reach, and up to where it does.
    next: Tick,
    reached: Tick,
    at: Range<usize>,
    spent: ByteCounts,
}

impl Views {
    /// Forgets all runs: others are sealed by now.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.bytes.clear();
    }

    fn find(&self, from: Tick, next: Tick) -> Option<&View> {
        let alike = |view: &&View| view.from == from && view.next == next;
        self.runs.iter().find(alike)
    }

    fn keep(&mut self, from: Tick, next: Tick, reached: Tick, bytes: &[u8], spent: ByteCounts) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.runs.push(View {
            from,
            next,
            reached,
            at: start..self.bytes.len(),
            spent,
        });
    }
}

impl<S: Simulation> Telling<'_, S> {
    /// Sends what the session has not acknowledged, see the [module](self); `spare`: a line that seems to carry nothing is
    /// spared all but the first packet.
    pub(crate) fn tell(&mut self, peer: &mut Peer, spare: bool, out: &mut Outbox<S::Outcome>) {
        peer.fates.forget_heard(&peer.link);
        let first = peer.acks.wanted().max(self.history.first());
        let from = self.begins_at(peer, first);
        let head = self.packet(peer, (from, self.next), true, out);
        if head > from && !spare {
            match peer.reach.fits() {
                true => self.tell_all(peer, head, out),
                false => self.tell_in_turns(peer, first, head, out),
            }
        }
        let whole = !spare && peer.reach.fits();
        peer.reach.note_send(self.now, self.next, whole);
        peer.sent_at = self.now;
    }

    /// Where a send begins to a session that lacks `first`. Over a long way most of what is not acknowledged is merely on its
    /// way: to a client that loses nothing and comes on, what was said often is not said again.
    fn begins_at(&self, peer: &Peer, first: Tick) -> Tick {
        let covered = COVERED.max(peer.link.rtt().unwrap_or(RTT_GUESS) / 2);
        let is_steady = peer.stage == SessionStage::Playing
            && peer.reach.fits()
            && peer.acks.is_steady(self.now, covered);
        match is_steady {
            true => first
                .max(peer.reach.said_often(self.now, covered))
                .min(self.next),
            false => first,
        }
    }

    /// Says all that is not acknowledged, as long as so many packets hold it.
    fn tell_all(&mut self, peer: &mut Peer, head: Tick, out: &mut Outbox<S::Outcome>) {
        let mut reached = head;
        for _ in 1..PACKETS_PER_SEND_MAX {
            if reached == self.next {
                break;
            }
            reached = self.packet(peer, (reached, self.next), false, out);
        }
        peer.reach.note(reached, head, reached == self.next);
    }

    /// Says what was never told, and a part of what was.
    fn tell_in_turns(
        &mut self,
        peer: &mut Peer,
        first: Tick,
        head: Tick,
        out: &mut Outbox<S::Outcome>,
    ) {
        let rtt = peer.link.rtt().unwrap_or(RTT_GUESS) + 2 * peer.link.jitter();
        let told = peer.reach.told(self.now, first, rtt).max(head);
        let end = self.next.min(first + FRAMES_AHEAD_MAX);
        let (mut news, mut packets) = (told, 1);
        while news < end && packets < NEWS_PER_SEND_MAX {
            let reached = self.packet(peer, (news, self.next), false, out);
            if reached == news {
                break;
            }
            (news, packets) = (reached, packets + 1);
        }
        let most = packets.max(PACKETS_PER_SEND_MAX - 1);
        let mut again = peer.reach.again(head, told);
        let mut left = told - head;
        let lacking = lacking(peer.acks.gaps(), head, told);
        let most_gaps = packets + GAP_PACKETS_PER_SEND_MAX;
        for (from, to) in in_turn(&lacking, again) {
            let mut from = from;
            while from < to && packets < most_gaps {
                from = self.packet(peer, (from, to), false, out);
                (again, packets) = (from, packets + 1);
            }
        }
        while lacking.is_empty() && left > 0 && packets <= most {
            let reached = self.packet(peer, (again, told), false, out);
            left = left.saturating_sub((reached - again).max(1));
            again = if reached < told { reached } else { head };
            packets += 1;
        }
        // Where nothing is lost packets overtake each other, and there are gaps all the same. If other packets hold as much
        // as the first one does, all of it is told again; a guess that was wrong is found by that.
        let would_fit = self.next - first <= (PACKETS_PER_SEND_MAX as u32 - 1) * (head - first);
        let all = left == 0 && news == self.next && packets <= PACKETS_PER_SEND_MAX;
        peer.reach.note(news, again, all || would_fit);
    }

    /// Sends one packet with the frames from the one tick on and before the other, as far as they fit; the tick after its
    /// last one.
    fn packet(
        &mut self,
        peer: &mut Peer,
        (from, end): (Tick, Tick),
        first: bool,
        out: &mut Outbox<S::Outcome>,
    ) -> Tick {
        let mut reached = from;
        out.packet(peer.id, PACKET_BYTES_MAX, |buffer| {
            let mut packet = Writer::new(buffer);
            reached = self.play(peer, &mut packet, (from, end), first).ok()?;
            Some(packet.len())
        });
        reached
    }

    /// As [`packet`](Telling::packet), into `out`.
    fn play(
        &mut self,
        peer: &mut Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        first: bool,
    ) -> Result<Tick, WireError> {
        let mut bytes = ByteCounts {
            packets: 1,
            headers: OUTER_BYTES,
            ..ByteCounts::default()
        };
        let mut parts = Parts::default();
        out.u8(0)?;
        peer.link.write(self.now, out)?;
        bytes.headers += out.len() as u64;
        let mut at = out.len();
        let mut count = |out: &Writer<'_>, kind: &mut u64| {
            *kind += (out.len() - at) as u64;
            at = out.len();
        };
        let (margin, unbroken) = match self.turn {
            None => self.held(peer),
            Some(turn) => self.batches_held(peer, turn),
        };
        out.tick16(self.sealing)?;
        out.u8(margin as u8)?;
        out.u8(unbroken)?;
        if let Some(turn) = self.turn {
            out.tick16(Tick(turn))?;
        }
        if self.write_rare(peer, first, out)? {
            parts.add(DownPart::Rare);
        }
        count(out, &mut bytes.acks);
        if peer.fates.owes_acks() {
            parts.add(DownPart::CommandAcks);
            for player in &peer.players {
                out.varint(self.seats[player.index()].next_seq)?;
            }
        }
        if !peer.fates.refusals().is_empty() {
            parts.add(DownPart::Refusals);
            write_refusals(peer.fates.refusals(), out)?;
        }
        count(out, &mut bytes.commands);
        let mut reached = from;
        if from < end {
            parts.add(DownPart::Frames);
            reached = match peer.is_spectator() {
                true => self.view(peer, out, (from, end), &mut bytes)?,
                false => self.frames(peer, out, (from, end), &mut bytes)?,
            };
            at = out.len();
            if reached == self.next
                && peer.stage == SessionStage::Playing
                && !peer.is_spectator()
                && self.announce(peer.own(), out)?
            {
                parts.add(DownPart::Announced);
            }
            bytes.announcements += (out.len() - at) as u64;
        }
        out.patch(0, DownKind::Play.head(parts));
        peer.fates.note_telling(peer.link.next_seq() - 1);
        peer.bytes_down += bytes;
        Ok(reached)
    }

    /// Writes what is told only now and then; whether there was any of it.
    fn write_rare(
        &self,
        peer: &mut Peer,
        first: bool,
        out: &mut Writer<'_>,
    ) -> Result<bool, WireError> {
        let start = out.len();
        out.u8(0)?;
        let mut rare = Parts::default();
        if !self.waiting.is_empty() {
            rare.add(RareDown::Waiting);
            out.varint(u32::from(self.waiting.0))?;
        }
        if let Some((number, company)) = self.company
            && peer.company_told != number
            && peer.stage == SessionStage::Playing
        {
            rare.add(RareDown::Company);
            out.bytes(company)?;
            peer.company_told = number;
        }
        if first && let Some(ack) = peer.lane_in.poll_ack() {
            rare.add(RareDown::LaneAck);
            out.bytes(&ack.encode())?;
        }
        if rare.is_empty() {
            out.truncate(start);
        } else {
            out.patch(start, rare.bits());
        }
        Ok(!rare.is_empty())
    }

    /// Newest input held minus the next tick to seal, and how many are held without a gap; of the worst seat. −127 means
    /// this late or more, −128 that none is held: a client that takes the one for the other never sets its clock right.
    fn held(&self, peer: &Peer) -> (i8, u8) {
        let mut worst = (i8::MAX, u8::MAX);
        for player in &peer.players {
            let seat = &self.seats[player.index()];
            let margin = seat.newest_by(self.now).map_or(i8::MIN, |newest| {
                let margin = i64::from(newest.0) - i64::from(self.sealing.0);
                margin.clamp(-127, 127) as i8
            });
            worst.0 = worst.0.min(margin);
            worst.1 = worst.1.min(seat.unbroken(self.sealing) as u8);
        }
        worst
    }

    /// With a command delay: how early the latest of the last batches came, in units of
    /// [`SLACK_UNIT_MS`] (−128: none came), and how many batches are held.
    fn batches_held(&self, peer: &Peer, turn: u32) -> (i8, u8) {
        let slack = peer
            .rhythm
            .slack()
            .map_or(i8::MIN, |ms| (ms / SLACK_UNIT_MS).clamp(-127, 127) as i8);
        let held = peer
            .players
            .iter()
            .map(|player| self.seats[player.index()].next_batch.saturating_sub(turn))
            .min();
        (slack, held.unwrap_or(0).min(255) as u8)
    }

    /// As [`frames`](Telling::frames), for who only watches.
    fn view(
        &mut self,
        peer: &Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        bytes: &mut ByteCounts,
    ) -> Result<Tick, WireError> {
        if let Some(view) = self.pages.views.find(from, end)
            && view.at.len() <= out.room()
        {
            out.bytes(&self.pages.views.bytes[view.at.clone()])?;
            *bytes += view.spent;
            return Ok(view.reached);
        }
        let start = out.len();
        let mut spent = ByteCounts::default();
        let reached = self.frames(peer, out, (from, end), &mut spent)?;
        // What one of them lost is nobody else's gap.
        if end == self.next {
            self.pages
                .views
                .keep(from, end, reached, out.since(start), spent);
        }
        *bytes += spent;
        Ok(reached)
    }

    fn frames(
        &mut self,
        peer: &Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        bytes: &mut ByteCounts,
    ) -> Result<Tick, WireError> {
        let own = peer.own();
        let mut walk = self.history.frames(from);
        let mut run = None;
        let mut count = 0;
        let start = out.len();
        let mut spent = ByteCounts::default();
        // Some are not shown all that is sealed.
        let most = frames::RUN_MAX.min((end - from) as usize);
        while count < most && walk.next(&mut self.pages.frame) {
            if run.is_none() {
                run = Some(frames::begin(out, &self.pages.frame)?);
            }
            let end = out.len();
            let as_sent = self.as_sent(peer);
            let previous = (count > 0).then_some(&self.pages.before);
            let before = spent;
            if frames::write(out, previous, &self.pages.frame, own, as_sent, &mut spent).is_err() {
                break;
            }
            if out.room() < DIGEST_BYTES {
                out.truncate(end);
                spent = before;
                break;
            }
            count += 1;
            std::mem::swap(&mut self.pages.before, &mut self.pages.frame);
        }
        let Some(run) = run else { return Ok(from) };
        frames::end(out, &run, count);
        let reached = from + count as u32;
        let run_ends = out.len();
        match self.history.newest_digest(from, reached) {
            Some((tick, digest)) => {
                out.u8((reached - tick) as u8)?;
                out.u32(digest as u32)?;
            }
            None => out.u8(NO_DIGEST)?,
        }
        *bytes += spent;
        bytes.acks += (out.len() - run_ends) as u64;
        let rest = (run_ends - start) as u64;
        bytes.inputs += rest - spent.total();
        Ok(reached)
    }

    /// The own players whose input in the frame at hand is the very one that this session sent.
    fn as_sent(&self, peer: &Peer) -> PlayerSet {
        let sent = peer
            .players
            .iter()
            .zip(peer.first_input)
            .filter(|(player, first)| {
                self.pages.frame.tick >= *first && !self.pages.frame.filled.contains(**player)
            });
        sent.map(|(player, _)| *player).collect()
    }

    /// Announces what is held of other players for ticks to come; whether there was anything.
    fn announce(&self, own: PlayerSet, out: &mut Writer<'_>) -> Result<bool, WireError> {
        match self.announce {
            Announce::Never => return Ok(false),
            // Orders for turns to come are nobody else's business.
            Announce::Ahead if self.turn.is_some() => return Ok(false),
            Announce::Ahead => {}
        }
        // The last frame written is the one that the announcements continue.
        let last = &self.pages.before;
        let others: PlayerSet = last
            .inputs
            .iter()
            .map(|(p, _)| p)
            .filter(|p| !own.contains(*p))
            .collect();
        let horizon = |player: PlayerId| {
            let seat = &self.seats[player.index()];
            let command = seat
                .commands
                .iter()
                .map(|held| held.stamp.max(self.next))
                .max();
            seat.newest()
                .max(command)
                .map_or(0, |newest| (newest + 1) - self.next)
        };
        let ticks = others
            .iter()
            .map(horizon)
            .max()
            .unwrap_or(0)
            .min(ANNOUNCE_TICKS);
        if ticks == 0 {
            return Ok(false);
        }
        let input = |player: PlayerId, tick: Tick| self.seats[player.index()].input(tick);
        let commands = |tick: Tick, each: &mut dyn FnMut(&Order<S::Command>)| {
            for player in others.iter() {
                let held = &self.seats[player.index()].commands;
                held.iter()
                    .filter(|held| held.stamp.max(self.next) == tick)
                    .for_each(|held| each(&held.order));
            }
        };
        Ok(frames::announce(out, last, own, ticks, input, commands).is_ok())
    }
}

/// What a client lacks between `head` and `told`. A list that is full does not say how it goes on: all of that, then.
fn lacking(gaps: &Gaps, head: Tick, told: Tick) -> ArrayVec<(Tick, Tick), { GAPS_MAX + 1 }> {
    let rest = gaps.last().filter(|_| gaps.is_full());
    let rest = rest.map(|(_, end)| (*end, told));
    gaps.iter()
        .copied()
        .chain(rest)
        .map(|(first, end)| (first.max(head), end.min(told)))
        .filter(|(first, end)| first < end)
        .collect()
}

/// The parts of `gaps` from `again` on first, then those before it.
fn in_turn(gaps: &[(Tick, Tick)], again: Tick) -> impl Iterator<Item = (Tick, Tick)> + '_ {
    let behind = gaps
        .iter()
        .map(move |(first, end)| ((*first).max(again), *end));
    let before = gaps
        .iter()
        .map(move |(first, end)| (*first, (*end).min(again)));
    behind.chain(before).filter(|(first, end)| first < end)
}

fn write_refusals(refusals: &[OpenRefusal], out: &mut Writer<'_>) -> Result<(), WireError> {
    out.u8(refusals.len() as u8)?;
    refusals.iter().try_for_each(|open| open.refusal.write(out))
}

/// Sends the chunks of the session's lane that are due.
pub(crate) fn tell_lane<O>(peer: &mut Peer, now: Duration, out: &mut Outbox<O>) {
    let rtt = peer.link.rtt().unwrap_or(RTT_GUESS);
    // One ack on the way there, whatever the state: an idle lane costs nothing.
    while out.packet(peer.id, PACKET_BYTES_MAX, |buffer| {
        lane_packet(peer, now, rtt, buffer)
    }) {
        peer.sent_at = now;
    }
}

fn lane_packet(peer: &mut Peer, now: Duration, rtt: Duration, buffer: &mut [u8]) -> Option<usize> {
    let mut chunk = [0; lane::FRAME_BYTES_MAX];
    let len = peer.lane_out.poll(now, rtt, &mut chunk)?;
    let mut packet = Writer::new(buffer);
    packet.u8(DownKind::Lane.alone()).ok()?;
    peer.link.write(now, &mut packet).ok()?;
    let headers = OUTER_BYTES + packet.len() as u64;
    packet.bytes(&chunk[..len]).ok()?;
    peer.fates.note_silent(peer.link.next_seq() - 1);
    peer.bytes_down += ByteCounts {
        packets: 1,
        headers,
        bulk: len as u64,
        ..ByteCounts::default()
    };
    Some(packet.len())
}
