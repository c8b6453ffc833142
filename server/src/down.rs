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
//! packet is decodable alone, and the client keeps what comes beyond a gap. What one packet says is in `play`.

mod play;

use std::ops::Range;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    ACK_SLOW_AFTER, FRAMES_AHEAD_MAX, GAP_PACKETS_PER_SEND_MAX, NEWS_PER_SEND_MAX,
    PACKET_BYTES_MAX, PACKETS_PER_SEND_MAX,
};
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::lane;
use twinstep_protocol::packet::company::CompanyTold;
use twinstep_protocol::packet::gaps::{GAPS_MAX, Gaps};
use twinstep_protocol::packet::{ByteCounts, chunk};
use twinstep_protocol::wire::Writer;

use crate::config::Announce;
use crate::history::History;
use crate::mode::MatchMode;
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::seat::Seat;

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
    pub(crate) mode: MatchMode,
    /// The next turn to be sealed.
    pub(crate) turn: u32,
    /// The players that the match waits for.
    pub(crate) waiting: PlayerSet,
    /// Who is connected how well, and the number of that.
    pub(crate) company: Option<(u32, &'a CompanyTold)>,
    pub(crate) announce: Announce,
    /// Nothing of these players is announced.
    pub(crate) struck: PlayerSet,
    pub(crate) history: &'a History<S>,
    pub(crate) seats: &'a [Seat<S>],
    pub(crate) scratch: &'a mut Scratch<S>,
}

/// What whoever tells writes on, again and again.
pub(crate) struct Scratch<S: Simulation> {
    pub(crate) before: FrameData<S>,
    pub(crate) frame: FrameData<S>,
    pub(crate) views: Views,
}

impl<S: Simulation> Scratch<S> {
    /// Empty ones.
    pub(crate) fn new(start: Tick) -> Self {
        Scratch {
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

/// How much of what a session has not acknowledged it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The first packet: its line seems to carry nothing.
    First,
    /// No frames: it has been so for long, and was sent the first of them often enough.
    NoFrames,
}

impl<S: Simulation> Telling<'_, S> {
    /// Sends what the session has not acknowledged, see the [module](self).
    pub(crate) fn tell(&mut self, peer: &mut Peer, extent: Extent, out: &mut Outbox<S::Outcome>) {
        peer.fates.forget_heard(&peer.link);
        let first = peer.acks.wanted().max(self.history.first());
        let from = self.begins_at(peer, first);
        let end = match extent {
            Extent::NoFrames => from,
            _ => self.next,
        };
        let head = self.packet(peer, (from, end), true, out);
        let whole = extent == Extent::Whole;
        if head > from && whole {
            match peer.reach.fits() {
                true => self.tell_all(peer, head, out),
                false => self.tell_in_turns(peer, first, head, out),
            }
        }
        let whole = whole && peer.reach.fits();
        peer.reach.note_send(self.now, self.next, whole);
        peer.told_at = self.now;
    }

    /// Where a send begins to a session that lacks `first`. Over a long way most of what is not acknowledged is merely on its
    /// way: to a client that loses nothing and comes on, what was said often is not said again.
    fn begins_at(&self, peer: &Peer, first: Tick) -> Tick {
        let covered = COVERED.max(peer.link.rtt().unwrap_or(RTT_GUESS) / 2);
        let is_steady = peer.plays() && peer.reach.fits() && peer.acks.is_steady(self.now, covered);
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

/// Sends the chunks of the session's lane that are due.
pub(crate) fn tell_lane<O>(peer: &mut Peer, now: Duration, out: &mut Outbox<O>) {
    let rtt = peer.link.rtt().unwrap_or(RTT_GUESS);
    // One ack on the way there, whatever the state: an idle lane costs nothing.
    while out.packet(peer.id, PACKET_BYTES_MAX, |buffer| {
        lane_packet(peer, now, rtt, buffer)
    }) {
        // Whoever is slow is told turns rarely; its lane must not make that never.
        if peer.acks.stood_for(now) <= ACK_SLOW_AFTER {
            peer.told_at = now;
        }
    }
}

fn lane_packet(peer: &mut Peer, now: Duration, rtt: Duration, buffer: &mut [u8]) -> Option<usize> {
    let mut chunk = [0; lane::FRAME_BYTES_MAX];
    let len = peer.lane_out.poll(now, rtt, &mut chunk)?;
    let mut packet = Writer::new(buffer);
    let bytes = chunk::write_down(now, &mut peer.link, &chunk[..len], &mut packet).ok()?;
    peer.fates.note_silent(peer.link.next_seq() - 1);
    peer.bytes_down += bytes;
    Some(packet.len())
}
