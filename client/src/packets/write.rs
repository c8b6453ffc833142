//! The session's own packets, put together.
//!
//! Each send repeats all that the server may lack, but for inputs that were said often and are on their way
//! ([`again`](crate::again)). Inputs that exceed one datagram are split over at most
//! [`PACKETS_PER_SEND_MAX`](twinstep_core::bounds::PACKETS_PER_SEND_MAX), each decodable alone, newest first, since the oldest are the likeliest to be too late.
//! Commands that exceed it take turns; in lockstep they and the batches go oldest first.

use std::time::Duration;

use twinstep_core::bounds::{COMMAND_BYTES_MAX, INPUT_WINDOW, SEATS_MAX};
use twinstep_core::frame::Order;
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::lane::{self, LaneAck};
use twinstep_protocol::packet::batches::{self, BATCHES_MAX};
use twinstep_protocol::packet::gaps::{self, Gaps};
use twinstep_protocol::packet::{
    ByteCounts, LOAD_UNITS, OLDEST_OPEN, OUTER_BYTES, Parts, RareUp, UpKind, UpPart, inputs,
};
use twinstep_protocol::wire::{WireError, Writer};

use crate::orders::{LocalActions, Pending};
use crate::picture::Show;
use crate::playing::Playing;
use crate::session::{Session, State};

/// A server that was not heard for so long is told the newest inputs only: what is earned meanwhile is there when it is
/// heard again.
const OLDER_UNHEARD: Duration = Duration::from_millis(500);

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Writes the next packet, if `due` or if there is something that cannot wait.
    pub(crate) fn write(&mut self, now: Duration, due: bool, out: &mut [u8]) -> Option<usize> {
        let mut packet = Writer::new(out);
        let mut bytes = ByteCounts {
            packets: 1,
            headers: OUTER_BYTES,
            ..ByteCounts::default()
        };
        let written = match &self.state {
            State::Closed(_) => {
                if !self.outgoing.take_goodbye() {
                    return None;
                }
                self.head(now, UpKind::Leave.alone(), &mut packet, &mut bytes)
            }
            State::Joining { .. } if due => self.write_hello(now, &mut packet, &mut bytes),
            State::Playing(_) if self.contact.goes_back() => {
                if !due {
                    return None;
                }
                self.write_hello(now, &mut packet, &mut bytes)
            }
            State::Playing(_) if due => self.write_play(now, &mut packet, &mut bytes),
            State::Playing(_) => {
                let older = self.write_older(now, out);
                return older.or_else(|| self.write_chunk(now, out));
            }
            State::Joining { .. } => return None,
        };
        self.outgoing.note_sent(now);
        written.ok()?;
        self.traffic.note_up(bytes);
        Some(packet.len())
    }

    fn head(
        &mut self,
        now: Duration,
        first: u8,
        out: &mut Writer<'_>,
        bytes: &mut ByteCounts,
    ) -> Result<(), WireError> {
        out.u8(first)?;
        self.link.write(now, out)?;
        bytes.headers += out.len() as u64;
        Ok(())
    }

    fn write_hello(
        &mut self,
        now: Duration,
        out: &mut Writer<'_>,
        bytes: &mut ByteCounts,
    ) -> Result<(), WireError> {
        // Once chunks come, the hello was heard: from then on they are acknowledged instead.
        match self.lane_in.poll_ack() {
            Some(ack) => {
                let parts = Parts::default().with(UpPart::LaneAck);
                self.head(now, UpKind::Hello.head(parts), out, bytes)?;
                out.bytes(&ack.encode())
            }
            None => {
                self.head(now, UpKind::Hello.alone(), out, bytes)?;
                self.hello.write(out)
            }
        }
    }

    /// What every `Play` begins with.
    fn write_acks(
        &mut self,
        now: Duration,
        out: &mut Writer<'_>,
        bytes: &mut ByteCounts,
    ) -> Result<(), WireError> {
        self.head(now, UpKind::Play.alone(), out, bytes)?;
        let State::Playing(playing) = &self.state else {
            return Ok(());
        };
        let start = out.len();
        let wanted = playing.inbox.next();
        out.tick16(wanted)?;
        out.u8((wanted - playing.timeline.authority().tick()).min(255) as u8)?;
        let load = (self.load * LOAD_UNITS) as u8;
        out.u8(load << 4 | playing.meter.late_turns as u8 & 15)?;
        bytes.acks += (out.len() - start) as u64;
        Ok(())
    }

    fn write_play(
        &mut self,
        now: Duration,
        out: &mut Writer<'_>,
        bytes: &mut ByteCounts,
    ) -> Result<(), WireError> {
        self.write_acks(now, out, bytes)?;
        let lossy = self.outgoing.again.says_lossy(now, &self.link);
        let rests = self.rests(now);
        let State::Playing(playing) = &mut self.state else {
            return Ok(());
        };
        let mut parts = Parts::default();
        let mut at = out.len();
        let mut count = |out: &Writer<'_>, kind: &mut u64| {
            *kind += (out.len() - at) as u64;
            at = out.len();
        };
        let gaps = playing.inbox.gaps();
        let tail = TAIL_ROOM + if gaps.is_empty() { 0 } else { gaps::BYTES_MAX };
        let orders = playing.timeline.orders();
        let wanted = playing.inbox.next();
        if playing.lockstep.is_none() {
            // The window is what the server takes.
            let end = orders.next().min(wanted + INPUT_WINDOW);
            let tick = playing.timeline.authority().turn().cadence.tick();
            let again = self.outgoing.again.from(now, &self.link, tick);
            let lacks = self.outgoing.needed.max(orders.first()).max(wanted);
            let first = lacks.max(again);
            let written = write_newest(orders, wanted, (first, end), ORDERS_ROOM + tail, out);
            if written < end {
                parts.add(UpPart::Inputs);
            }
            self.outgoing
                .older
                .begin((first < written).then_some((first, written)));
            self.outgoing.again.note_said(now, end, first >= written);
        }
        count(out, &mut bytes.inputs);
        let (commands, left) = write_commands(playing, self.outgoing.commands_from, tail, out);
        self.outgoing.commands_from = left.map(|left| (left.player, left.seq));
        if commands {
            parts.add(UpPart::Commands);
        }
        if write_claims(playing.timeline.orders(), tail, out) {
            parts.add(UpPart::Claims);
        }
        count(out, &mut bytes.commands);
        if write_batches(playing, left.map(|left| left.stamp), tail, out) {
            parts.add(UpPart::Inputs);
        }
        count(out, &mut bytes.inputs);
        if let Some(ack) = self.lane_in.poll_ack() {
            parts.add(UpPart::LaneAck);
            out.bytes(&ack.encode())?;
        }
        let asked = self.asked_evidence.map(|(tick, _)| tick);
        self.outgoing.rests = rests;
        let says = [(RareUp::Lossy, lossy), (RareUp::Rests, rests)];
        if write_rare(playing, asked, &gaps, says, out)? {
            parts.add(UpPart::Rare);
        }
        count(out, &mut bytes.bulk);
        out.patch(0, UpKind::Play.head(parts));
        Ok(())
    }

    /// A datagram with nothing but acks and inputs that found no room in the newest one; `None`: none is left.
    fn write_older(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let heard = self.link.heard_at()?;
        if now.saturating_sub(heard) > OLDER_UNHEARD {
            return None;
        }
        let (first, end) = self.outgoing.older.take(now)?;
        // Frames that arrived meanwhile need no inputs any more.
        let wanted = self.playing()?.inbox.next();
        let first = first.max(wanted);
        // After a heal to a world of long ago it is from another time.
        let end = end.min(wanted + INPUT_WINDOW);
        if first >= end {
            return None;
        }
        let mut out = Writer::new(out);
        let mut bytes = ByteCounts {
            packets: 1,
            headers: OUTER_BYTES,
            ..ByteCounts::default()
        };
        self.write_acks(now, &mut out, &mut bytes).ok()?;
        let State::Playing(playing) = &self.state else {
            return None;
        };
        let start = out.len();
        let orders = playing.timeline.orders();
        let written = write_newest(orders, wanted, (first, end), 0, &mut out);
        if written < end {
            let parts = Parts::default().with(UpPart::Inputs);
            out.patch(0, UpKind::Play.head(parts));
        }
        bytes.inputs += (out.len() - start) as u64;
        self.outgoing
            .older
            .leave((first < written).then_some((first, written)));
        self.traffic.note_up(bytes);
        Some(out.len())
    }

    /// A chunk of a desync report.
    fn write_chunk(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let rtt = self.link.rtt().unwrap_or(Duration::from_millis(200));
        let mut chunk = [0; lane::FRAME_BYTES_MAX];
        let len = self.lane_out.poll(now, rtt, &mut chunk)?;
        let mut packet = Writer::new(out);
        let mut bytes = ByteCounts {
            packets: 1,
            headers: OUTER_BYTES,
            bulk: len as u64,
            ..ByteCounts::default()
        };
        self.head(now, UpKind::Lane.alone(), &mut packet, &mut bytes)
            .ok()?;
        packet.bytes(&chunk[..len]).ok()?;
        self.traffic.note_up(bytes);
        Some(packet.len())
    }
}

/// Room that orders leave for what ends a packet: the lane's ack, and what is asked of the server; gaps take more.
const TAIL_ROOM: usize = LaneAck::BYTES_MAX + 1 + 4 + 4;
/// The largest command in a packet up, in bytes: seat, sequence, stamp.
const COMMAND_UP_MAX: usize = 1 + 5 + 2 + COMMAND_BYTES_MAX;
/// Room that commands leave for a claim, if one is open: their count, and the largest.
const CLAIM_ROOM: usize = 1 + 1 + 2 + COMMAND_BYTES_MAX;
/// Room that inputs leave for a command and a claim, however large.
const ORDERS_ROOM: usize = 1 + COMMAND_UP_MAX + CLAIM_ROOM;

/// Writes the newest of the inputs `first..end`, as many as leave `room` bytes; the first tick written, or `end`.
fn write_newest<S: Simulation>(
    orders: &LocalActions<S>,
    wanted: Tick,
    (first, end): (Tick, Tick),
    room: usize,
    out: &mut Writer<'_>,
) -> Tick {
    let neutral = S::Input::default();
    let input = |seat, tick| orders.input(seat, tick).unwrap_or(&neutral);
    let seats = orders.seats().len();
    let start = out.len();
    let fits = |from: Tick, out: &mut Writer<'_>| {
        let written = inputs::write(out, wanted, from, end - from, seats, input);
        let fits = written.is_ok() && out.room() >= room;
        if !fits {
            out.truncate(start);
        }
        fits
    };
    if first >= end || fits(first, out) {
        return first.min(end);
    }
    // A shorter run never takes more bytes: the longest that fits is one tick shorter than one that does not.
    let (mut too_long, mut from) = (first, end);
    while from - too_long > 1 {
        let middle = too_long + (from - too_long) / 2;
        if fits(middle, out) {
            out.truncate(start);
            from = middle;
        } else {
            too_long = middle;
        }
    }
    if from < end && !fits(from, out) {
        return end;
    }
    from
}

/// Writes what is asked of the server, and answers where owners give them; whether there was any of it.
fn write_rare<S: Simulation, V: Show<S>>(
    playing: &Playing<S, V>,
    asked_evidence: Option<Tick>,
    gaps: &Gaps,
    says: [(RareUp, bool); 2],
    out: &mut Writer<'_>,
) -> Result<bool, WireError> {
    let start = out.len();
    out.u8(0)?;
    let mut rare = Parts::default();
    for (part, tick) in [
        (RareUp::Heal, playing.divergence.since()),
        (RareUp::Evidence, asked_evidence),
    ] {
        if let Some(tick) = tick {
            rare.add(part);
            out.u32(tick.0)?;
        }
    }
    if !gaps.is_empty() {
        rare.add(RareUp::Gaps);
        gaps::write(out, gaps)?;
    }
    if let Some(answers) = &playing.answers
        && answers.write(playing.inbox.next(), 0, out)
    {
        rare.add(RareUp::Answers);
    }
    for (part, is_so) in says {
        if is_so {
            rare.add(part);
        }
    }
    if rare.is_empty() {
        out.truncate(start);
    } else {
        out.patch(start, rare.bits());
    }
    Ok(!rare.is_empty())
}

/// Writes closed batches that the server may lack, oldest first. A batch is closed by its being there, so
/// those from `left` on, whose commands found no room in this packet, wait for the next one.
fn write_batches<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    left: Option<Tick>,
    tail: usize,
    out: &mut Writer<'_>,
) -> bool {
    let Some(lockstep) = playing.lockstep.as_mut().filter(|l| l.delay > 0) else {
        return false;
    };
    let seats = playing.timeline.orders().seats().len();
    let (first, count) = lockstep.unacknowledged();
    // No more than the server takes: when it lost turns, older batches than its own may be remembered.
    let open = (lockstep.next_turn + lockstep.delay).saturating_sub(first);
    let count = count.min(open as usize);
    let whole = left.map_or(count, |left| count.min((left - Tick(first)) as usize));
    let neutral = S::Input::default();
    let input = |seat, turn| lockstep.input(seat, turn).unwrap_or(&neutral);
    for count in (1..=whole.min(BATCHES_MAX)).rev() {
        let start = out.len();
        if batches::write(out, first, count, seats, input).is_ok() && out.room() >= tail {
            lockstep.note_said(first + count as u32);
            return true;
        }
        out.truncate(start);
    }
    false
}

/// Room that commands leave for closed batches.
const BATCHES_ROOM: usize = 300;

/// The first command that found no room in a packet.
#[derive(Clone, Copy)]
struct Left {
    player: PlayerId,
    seq: u32,
    stamp: Tick,
}

/// Writes commands that the server may lack, as many as fit, and says which is the first one left. They begin with
/// `from`, if the server lacks that still, or else with the oldest; in lockstep always with the oldest, since batches
/// wait for them.
fn write_commands<S: Simulation, V: Show<S>>(
    playing: &Playing<S, V>,
    from: Option<(PlayerId, u32)>,
    tail: usize,
    out: &mut Writer<'_>,
) -> (bool, Option<Left>) {
    let orders = playing.timeline.orders();
    let mut room = tail;
    if orders.claims().next().is_some() {
        room += CLAIM_ROOM;
    }
    if playing.lockstep.is_some() {
        room += BATCHES_ROOM;
    }
    let mut oldest = [u32::MAX; SEATS_MAX];
    let mut begin = 0;
    for (at, pending) in orders.unacknowledged().enumerate() {
        let Order { player, seq, .. } = pending.order;
        let oldest = &mut oldest[orders.seat_of(player)];
        *oldest = seq.min(*oldest);
        if from == Some((player, seq)) && playing.lockstep.is_none() {
            begin = at;
        }
    }
    let all = || orders.unacknowledged();
    write_list(
        all().skip(begin).chain(all().take(begin)),
        out,
        |pending, out| {
            let Order { player, seq, .. } = pending.order;
            let seat = orders.seat_of(player);
            let mark = if seq == oldest[seat] { OLDEST_OPEN } else { 0 };
            out.u8(seat as u8 | mark)?;
            out.varint(seq)?;
            out.tick16(pending.stamp)?;
            out.value(&pending.order.command)?;
            Ok(out.room() >= room)
        },
    )
}

/// Writes claims whose fate is open, oldest first, as many as fit; whether there were any.
fn write_claims<S: Simulation>(
    orders: &LocalActions<S>,
    tail: usize,
    out: &mut Writer<'_>,
) -> bool {
    let (any, _) = write_list(orders.claims(), out, |pending, out| {
        out.u8(orders.seat_of(pending.order.player) as u8)?;
        out.tick16(Tick(pending.order.seq))?;
        out.value(&pending.order.command)?;
        Ok(out.room() >= tail)
    });
    any
}

/// Writes a count and as many of `list` as `write` says there is room for; whether there were any, and the first that
/// is left.
fn write_list<'a, C: 'a>(
    list: impl Iterator<Item = &'a Pending<C>>,
    out: &mut Writer<'_>,
    write: impl Fn(&Pending<C>, &mut Writer<'_>) -> Result<bool, WireError>,
) -> (bool, Option<Left>) {
    let start = out.len();
    let mut count = 0u8;
    let mut has_room = out.u8(0).is_ok();
    let mut left = None;
    for pending in list {
        let end = out.len();
        has_room = has_room && write(pending, out).unwrap_or(false);
        if !has_room {
            out.truncate(end);
            let Order { player, seq, .. } = pending.order;
            let stamp = pending.stamp;
            left = Some(Left { player, seq, stamp });
            break;
        }
        count += 1;
    }
    if count == 0 {
        out.truncate(start);
    } else {
        out.patch(start, count);
    }
    (count > 0, left)
}
