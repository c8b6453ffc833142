//! The packets to one session: unacknowledged frames, margins, fates, announcements.
//!
//! ```text
//!  acknowledged │ head   │ sent, and perhaps lost        │ never sent    │ not sealed
//!            wanted      └─ again: repeats, in the room left ┴ sent ─────────┴ next
//! ```
//!
//! Every send repeats all unacknowledged frames if they fit into [`PACKETS_PER_SEND_MAX`] packets, except frames
//! already sent often enough to a client with regular acks (see [`DownSender::begins_at`]). If they do not fit (many
//! players with large inputs, and a long round trip), each send starts with the first frames that the client lacks, and
//! continues with frames not sent yet. Then it repeats the gaps that the client reports. If the client reports none, it
//! repeats as many sent frames as fit, a different part each time. So a long round trip does not delay new frames. Each
//! packet can be decoded alone, and the client keeps frames after a gap. The contents of one packet are in `play`.

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
use twinstep_protocol::packet::gaps::{GAPS_MAX, Gaps};
use twinstep_protocol::packet::presence::PresenceUpdate;
use twinstep_protocol::packet::{ByteCounts, chunk};
use twinstep_protocol::wire::Writer;

use crate::config::Announce;
use crate::history::History;
use crate::mode::MatchMode;
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::seat::Seat;

/// A frame is repeated for at least this long, or half of the round trip if that is longer. If no ack arrives for
/// longer, all frames that the client may lack are repeated again, so an outage costs the client no more time than the
/// outage lasts.
const COVERED: Duration = Duration::from_millis(150);
/// The assumed round trip before the first measurement.
const RTT_GUESS: Duration = Duration::from_millis(200);

pub(crate) struct DownSender<'a, S: Simulation> {
    pub(crate) now: Duration,
    /// The end of the frames to send: the first tick of the unfinished turn, or the first one hidden from the session.
    pub(crate) next: Tick,
    /// The next tick to be sealed; margins are relative to it.
    pub(crate) sealing: Tick,
    pub(crate) mode: MatchMode,
    pub(crate) turn: u32,
    pub(crate) waiting: PlayerSet,
    /// The presence and link quality of players, and the number of that block.
    pub(crate) presence: Option<(u32, &'a PresenceUpdate)>,
    pub(crate) announce: Announce,
    pub(crate) struck: PlayerSet,
    pub(crate) history: &'a History<S>,
    pub(crate) seats: &'a [Seat<S>],
    pub(crate) scratch: &'a mut Scratch<S>,
}

pub(crate) struct Scratch<S: Simulation> {
    pub(crate) before: FrameData<S>,
    pub(crate) frame: FrameData<S>,
    pub(crate) views: Views,
}

impl<S: Simulation> Scratch<S> {
    pub(crate) fn new(start: Tick) -> Self {
        Scratch {
            before: FrameData::preallocated(start),
            frame: FrameData::preallocated(start),
            views: Views::default(),
        }
    }
}

/// Encoded runs of frames for spectators. Spectators that lack the same frames share one encoding, so an additional
/// spectator costs little more than the copy of a packet.
#[derive(Default)]
pub(crate) struct Views {
    runs: Vec<View>,
    bytes: Vec<u8>,
}

struct View {
    from: Tick,
    next: Tick,
    reached: Tick,
    at: Range<usize>,
    spent: ByteCounts,
}

impl Views {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Only the first packet, for a session that does not send acks.
    First,
    /// No frames, because the session has been silent for too long, and the first packet was sent often enough.
    NoFrames,
}

impl<S: Simulation> DownSender<'_, S> {
    pub(crate) fn send(&mut self, peer: &mut Peer, extent: Extent, out: &mut Outbox<S::Outcome>) {
        peer.fates.forget_acknowledged(&peer.link);
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
                true => self.send_all(peer, head, out),
                false => self.send_in_turns(peer, first, head, out),
            }
        }
        let whole = whole && peer.reach.fits();
        peer.reach.record_send(self.now, self.next, whole);
        peer.sent_at = self.now;
    }

    /// The first frame of a send to a session that lacks `first`. With a long round trip, most unacknowledged frames
    /// are still in flight. So frames already sent often enough are not repeated to a client that makes progress
    /// without losses.
    fn begins_at(&self, peer: &Peer, first: Tick) -> Tick {
        let covered = COVERED.max(peer.link.rtt().unwrap_or(RTT_GUESS) / 2);
        let is_steady = peer.plays() && peer.reach.fits() && peer.acks.is_steady(self.now, covered);
        match is_steady {
            true => first
                .max(peer.reach.repeated_enough(self.now, covered))
                .min(self.next),
            false => first,
        }
    }

    /// Sends all frames from `head` onwards, in at most [`PACKETS_PER_SEND_MAX`] packets including the first one.
    fn send_all(&mut self, peer: &mut Peer, head: Tick, out: &mut Outbox<S::Outcome>) {
        let mut reached = head;
        for _ in 1..PACKETS_PER_SEND_MAX {
            if reached == self.next {
                break;
            }
            reached = self.packet(peer, (reached, self.next), false, out);
        }
        peer.reach.record_sent(reached, head, reached == self.next);
    }

    /// Sends the frames not sent yet, and a part of the others.
    fn send_in_turns(
        &mut self,
        peer: &mut Peer,
        first: Tick,
        head: Tick,
        out: &mut Outbox<S::Outcome>,
    ) {
        let rtt = peer.link.rtt().unwrap_or(RTT_GUESS) + 2 * peer.link.jitter();
        let sent = peer.reach.first_unsent(self.now, first, rtt).max(head);
        let end = self.next.min(first + FRAMES_AHEAD_MAX);
        let (mut unsent, mut packets) = (sent, 1);
        while unsent < end && packets < NEWS_PER_SEND_MAX {
            let reached = self.packet(peer, (unsent, self.next), false, out);
            if reached == unsent {
                break;
            }
            (unsent, packets) = (reached, packets + 1);
        }
        let most = packets.max(PACKETS_PER_SEND_MAX - 1);
        let mut again = peer.reach.next_repeat(head, sent);
        let mut left = sent - head;
        let lacking = lacking(peer.acks.gaps(), head, sent);
        let most_gaps = packets + GAP_PACKETS_PER_SEND_MAX;
        for (from, to) in in_turn(&lacking, again) {
            let mut from = from;
            while from < to && packets < most_gaps {
                from = self.packet(peer, (from, to), false, out);
                (again, packets) = (from, packets + 1);
            }
        }
        while lacking.is_empty() && left > 0 && packets <= most {
            let reached = self.packet(peer, (again, sent), false, out);
            left = left.saturating_sub((reached - again).max(1));
            again = if reached < sent { reached } else { head };
            packets += 1;
        }
        // Reordering causes gaps even without loss. If full packets like the first one could hold everything, the next
        // send is a complete one; that send detects whether this guess was wrong.
        let would_fit = self.next - first <= (PACKETS_PER_SEND_MAX as u32 - 1) * (head - first);
        let all = left == 0 && unsent == self.next && packets <= PACKETS_PER_SEND_MAX;
        peer.reach.record_sent(unsent, again, all || would_fit);
    }

    /// Sends one packet with the frames `from..end`, as far as they fit. Returns the tick after its last frame.
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

/// The frames between `head` and `sent` that a client lacks. A full list of gaps may be incomplete, so all frames after
/// it count as lacking.
fn lacking(gaps: &Gaps, head: Tick, sent: Tick) -> ArrayVec<(Tick, Tick), { GAPS_MAX + 1 }> {
    let rest = gaps.last().filter(|_| gaps.is_full());
    let rest = rest.map(|(_, end)| (*end, sent));
    gaps.iter()
        .copied()
        .chain(rest)
        .map(|(first, end)| (first.max(head), end.min(sent)))
        .filter(|(first, end)| first < end)
        .collect()
}

/// The parts of `gaps` from `again` onwards, followed by the parts before `again`.
fn in_turn(gaps: &[(Tick, Tick)], again: Tick) -> impl Iterator<Item = (Tick, Tick)> + '_ {
    let behind = gaps
        .iter()
        .map(move |(first, end)| ((*first).max(again), *end));
    let before = gaps
        .iter()
        .map(move |(first, end)| (*first, (*end).min(again)));
    behind.chain(before).filter(|(first, end)| first < end)
}

pub(crate) fn send_lane<O>(peer: &mut Peer, now: Duration, out: &mut Outbox<O>) {
    let rtt = peer.link.rtt().unwrap_or(RTT_GUESS);
    // Ends when no chunk is due; an idle lane sends no packets.
    while out.packet(peer.id, PACKET_BYTES_MAX, |buffer| {
        lane_packet(peer, now, rtt, buffer)
    }) {
        // The rare turn packets of a slow session are timed by `sent_at`, so lane packets must not delay them.
        if peer.acks.stood_for(now) <= ACK_SLOW_AFTER {
            peer.sent_at = now;
        }
    }
}

fn lane_packet(peer: &mut Peer, now: Duration, rtt: Duration, buffer: &mut [u8]) -> Option<usize> {
    let mut chunk = [0; lane::FRAME_BYTES_MAX];
    let len = peer.lane_out.poll(now, rtt, &mut chunk)?;
    let mut packet = Writer::new(buffer);
    let bytes = chunk::write_down(now, &mut peer.link, &chunk[..len], &mut packet).ok()?;
    peer.fates.record_without_fates(peer.link.next_seq() - 1);
    peer.bytes_down += bytes;
    Some(packet.len())
}
