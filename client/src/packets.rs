//! The session's packets: what is read from the server's, and how its own are put together.

use std::time::Duration;

use twinstep_core::bounds::PACKETS_PER_SEND_MAX;
use twinstep_core::lane::{self, LaneAck};
use twinstep_core::packet::batches::{self, BATCHES_MAX};
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::packet::{
    ByteCounts, LOAD_UNITS, OUTER_BYTES, SLACK_UNIT_MS, down, inputs, kind, rare, up,
};
use twinstep_core::wire::{Reader, WireError, Writer};
use twinstep_core::{PlayerSet, Simulation, Tick};

use crate::orders::Refused;
use crate::picture::Show;
use crate::playing::Playing;
use crate::session::{Closed, Event, Session, State};

impl<S: Simulation, V: Show<S>> Session<S, V> {
    pub(crate) fn read(&mut self, now: Duration, bytes: &[u8]) -> Result<(), WireError> {
        let mut packet = Reader::new(bytes);
        let first = packet.u8()?;
        if kind(first) == down::CLOSED {
            let code: CloseCode = packet.value()?;
            packet.end()?;
            match (&self.state, code) {
                (State::Closed(_), _) => {}
                // What ended is the transport; the player may come back.
                (
                    State::Playing(_),
                    CloseCode::NoAcks | CloseCode::Moved | CloseCode::Restarting { .. },
                ) => self.cut = Some(code),
                // Removed while it was lost, or its turn did not come in time: it may come back, and tries.
                (State::Playing(_), CloseCode::TooSlow | CloseCode::JoinTooSlow)
                    if self.returning.is_some() =>
                {
                    self.cut = Some(code);
                }
                _ => self.close(Closed::Server(code)),
            }
            return Ok(());
        }
        let heard = self.link.read(now, &mut packet)?;
        match kind(first) {
            _ if heard.repeated => Ok(()),
            down::PLAY | down::PLAY_COMPANY => {
                self.read_play(now, first, heard.newest, &mut packet)
            }
            down::LANE => {
                let chunk = packet.rest();
                self.lane_in
                    .handle(chunk)
                    .map_err(|_| WireError::Malformed("a chunk of the lane"))
            }
            _ => Err(WireError::Malformed("a kind of packet")),
        }
    }

    fn read_play(
        &mut self,
        now: Duration,
        flags: u8,
        newest: bool,
        packet: &mut Reader<'_>,
    ) -> Result<(), WireError> {
        if self.returning.is_some() {
            return Ok(());
        }
        let State::Playing(playing) = &mut self.state else {
            return Ok(());
        };
        let next_seal = packet.tick16(self.next_seal)?;
        let (margin, unbroken) = (packet.u8()? as i8, packet.u8()?);
        let rtt = self.link.rtt().unwrap_or_default();
        let batched = playing.lockstep.as_mut().filter(|l| l.delay > 0);
        let next_turn = match &batched {
            Some(lockstep) => packet.tick16(Tick(lockstep.next_turn))?.0,
            None => 0,
        };
        let waiting = if flags & down::WAITING != 0 {
            PlayerSet(packet.varint()? as u16)
        } else {
            PlayerSet::default()
        };
        if kind(flags) == down::PLAY_COMPANY {
            self.company.read(packet, newest)?;
        }
        if newest {
            self.next_seal = next_seal;
            self.waiting = waiting;
            playing.meter.rtts.add(rtt.as_millis() as i32);
            match batched {
                None => self.needed = next_seal + u32::from(unbroken),
                Some(lockstep) => {
                    lockstep.next_turn = next_turn;
                    lockstep.needed = next_turn + u32::from(unbroken);
                    if margin != i8::MIN {
                        let slack_ms = i32::from(margin) * i32::from(SLACK_UNIT_MS);
                        lockstep.playout.report(f64::from(slack_ms));
                        playing.meter.margins.add(i32::from(margin));
                    }
                }
            }
            if let Some(pace) = &mut playing.pace
                && margin != i8::MIN
            {
                playing.meter.margins.add(i32::from(margin));
                let newest_held = Tick(next_seal.0.saturating_add_signed(i32::from(margin)));
                pace.report(now, i32::from(margin), newest_held, rtt);
            }
        }
        if flags & down::COMMAND_ACKS != 0 {
            for seat in 0..playing.timeline.orders().seats().len() {
                let next = packet.varint()?;
                playing.timeline.orders_mut().acknowledge(seat, next);
            }
        }
        if flags & down::REFUSALS != 0 {
            for _ in 0..packet.u8()? {
                let (head, seq) = (packet.u8()?, packet.varint()?);
                let (seat, claim) = (usize::from(head >> 1), head & 1 != 0);
                let orders = playing.timeline.orders_mut();
                if claim {
                    playing.meter.claims_refused += u64::from(orders.refused_claim(seat, seq));
                    continue;
                }
                let news = orders.refused_command(seat, seq);
                if news == Refused::AfterAll {
                    playing.meter.commands_executed -= 1;
                }
                if news != Refused::Known {
                    playing.meter.commands_refused += 1;
                    self.events.push(Event::CommandRefused { seat, seq });
                }
            }
        }
        if flags & down::LANE_ACK != 0 {
            let ack = LaneAck::decode(packet.rest_mut())
                .map_err(|_| WireError::Malformed("an ack of the lane"))?;
            self.lane_out
                .handle_ack(now, &ack)
                .map_err(|_| WireError::Malformed("an ack of an unsent chunk"))?;
        }
        if flags & down::FRAMES != 0 {
            let own = playing.timeline.orders().players();
            self.run.begin(packet, playing.inbox.next())?;
            let mut news = false;
            loop {
                let Playing {
                    timeline,
                    inbox,
                    lockstep,
                    ..
                } = &mut **playing;
                let sent = |player, tick| timeline.orders().input_of(player, tick);
                if !self.run.next(packet, own, sent, |frame| {
                    if inbox.push(frame) {
                        news = true;
                        if let Some(lockstep) = lockstep {
                            lockstep.hear(now, frame);
                        }
                    }
                })? {
                    break;
                }
            }
            let end = self.run.tick();
            let newest_turn = end.back(u32::from(packet.u8()?));
            playing.inbox.note_digest(newest_turn, packet.u32()?);
            playing.meter.turns += 1;
            if news {
                playing.note_news(now);
            }
        }
        if flags & down::ANNOUNCE != 0 {
            let own = playing.timeline.orders().players();
            // One borrow for both kinds: inputs are noted at once, commands too.
            let timeline = std::cell::RefCell::new(&mut playing.timeline);
            self.run.announced(
                packet,
                own,
                |player, tick, input| timeline.borrow_mut().announce(player, tick, input),
                |tick, order| timeline.borrow_mut().announce_command(tick, order),
            )?;
        }
        packet.end()
    }

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
                if self.leaving == 0 {
                    return None;
                }
                self.leaving -= 1;
                self.head(now, up::LEAVE, &mut packet, &mut bytes)
            }
            State::Joining { .. } if due => self.write_hello(now, &mut packet, &mut bytes),
            State::Playing(_) if self.returning.is_some() => {
                if !due {
                    return None;
                }
                self.write_hello(now, &mut packet, &mut bytes)
            }
            State::Playing(_) if due => self.write_play(now, &mut packet, &mut bytes),
            State::Playing(_) => return self.write_chunk(now, out),
            State::Joining { .. } => return None,
        };
        self.send_now = false;
        self.sent_at = Some(now);
        written.ok()?;
        self.up += bytes;
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
                self.head(now, up::HELLO | up::LANE_ACK, out, bytes)?;
                out.bytes(&ack.encode())
            }
            None => {
                self.head(now, up::HELLO, out, bytes)?;
                self.hello.write(out)
            }
        }
    }

    fn write_play(
        &mut self,
        now: Duration,
        out: &mut Writer<'_>,
        bytes: &mut ByteCounts,
    ) -> Result<(), WireError> {
        self.head(now, up::PLAY, out, bytes)?;
        let State::Playing(playing) = &mut self.state else {
            return Ok(());
        };
        let mut flags = up::PLAY;
        let mut at = out.len();
        let mut count = |out: &Writer<'_>, kind: &mut u64| {
            *kind += (out.len() - at) as u64;
            at = out.len();
        };
        let wanted = playing.inbox.next();
        out.tick16(wanted)?;
        out.u8((wanted - playing.timeline.authority().tick()).min(255) as u8)?;
        let load = (self.load * LOAD_UNITS) as u8;
        out.u8(load << 4 | playing.meter.late_turns as u8 & 15)?;
        count(out, &mut bytes.acks);
        if playing.lockstep.is_none() && write_inputs(playing, self.needed, wanted, out) {
            flags |= up::INPUTS;
        }
        count(out, &mut bytes.inputs);
        let (commands, left) = write_orders(playing, out, false);
        if commands {
            flags |= up::COMMANDS;
        }
        if write_orders(playing, out, true).0 {
            flags |= up::CLAIMS;
        }
        count(out, &mut bytes.commands);
        if write_batches(playing, left, out) {
            flags |= up::INPUTS;
        }
        count(out, &mut bytes.inputs);
        if let Some(ack) = self.lane_in.poll_ack() {
            flags |= up::LANE_ACK;
            out.bytes(&ack.encode())?;
        }
        let asked = self.asked_evidence.map(|(tick, _)| tick);
        let rare_at = out.len();
        let mut rare = 0;
        for (flag, tick) in [(rare::HEAL, playing.differs), (rare::EVIDENCE, asked)] {
            let Some(tick) = tick else { continue };
            if rare == 0 {
                out.u8(0)?;
            }
            rare |= flag;
            out.u32(tick.0)?;
        }
        if let Some(answers) = &playing.answers {
            let begun = rare != 0 || out.u8(0).is_ok();
            if begun && answers.write(wanted, 0, out) {
                rare |= rare::ANSWERS;
            } else if rare == 0 {
                out.truncate(rare_at);
            }
        }
        if rare != 0 {
            flags |= up::RARE;
            out.patch(rare_at, rare);
        }
        count(out, &mut bytes.bulk);
        out.patch(0, flags);
        Ok(())
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
        self.head(now, up::LANE, &mut packet, &mut bytes).ok()?;
        packet.bytes(&chunk[..len]).ok()?;
        self.up += bytes;
        Some(packet.len())
    }
}

/// Room that orders leave for what ends a packet: the lane's ack, and what is asked of the server.
const TAIL_ROOM: usize = LaneAck::BYTES_MAX + 1 + 4 + 4;
/// Room that inputs leave for what follows them in a packet.
const ORDERS_ROOM: usize = 300;

/// Writes the inputs that the server does not hold; if they are too many, the newest.
fn write_inputs<S: Simulation, V: Show<S>>(
    playing: &Playing<S, V>,
    needed: Tick,
    wanted: Tick,
    out: &mut Writer<'_>,
) -> bool {
    let orders = playing.timeline.orders();
    let (seats, next) = (orders.seats().len(), orders.next());
    let mut first = needed.max(orders.first()).max(wanted);
    for _ in 0..PACKETS_PER_SEND_MAX {
        if first >= next {
            return false;
        }
        let neutral = S::Input::default();
        let input = |seat, tick| orders.input(seat, tick).unwrap_or(&neutral);
        let start = out.len();
        let written = inputs::write(out, wanted, first, next - first, seats, input);
        if written.is_ok() && out.room() >= ORDERS_ROOM {
            return true;
        }
        out.truncate(start);
        first = Tick(first.0 + (next - first).div_ceil(2));
    }
    false
}

/// Writes closed batches that the server may lack, oldest first. A batch is closed by its being there, so
/// those from `left` on, whose commands found no room in this packet, wait for the next one.
fn write_batches<S: Simulation, V: Show<S>>(
    playing: &Playing<S, V>,
    left: Option<Tick>,
    out: &mut Writer<'_>,
) -> bool {
    let Some(lockstep) = playing.lockstep.as_ref().filter(|l| l.delay > 0) else {
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
        if batches::write(out, first, count, seats, input).is_ok() && out.room() >= TAIL_ROOM {
            return true;
        }
        out.truncate(start);
    }
    false
}

/// Room that commands leave for closed batches.
const BATCHES_ROOM: usize = 300;

/// Writes commands (or claims) whose fate is open, oldest first, as many as fit; whether there were any,
/// and the stamp of the first one that is left.
fn write_orders<S: Simulation, V: Show<S>>(
    playing: &Playing<S, V>,
    out: &mut Writer<'_>,
    claims: bool,
) -> (bool, Option<Tick>) {
    let orders = playing.timeline.orders();
    let start = out.len();
    if out.u8(0).is_err() {
        return (false, Some(Tick(0)));
    }
    let room = match playing.lockstep {
        None => TAIL_ROOM,
        Some(_) => TAIL_ROOM + BATCHES_ROOM,
    };
    let mut left = None;
    let mut count = 0u8;
    let mut write = |pending: &crate::orders::Pending<S::Command>| {
        let end = out.len();
        let seat = orders
            .seats()
            .iter()
            .position(|p| *p == pending.order.player)
            .unwrap_or(0);
        let written = (|| {
            out.u8(seat as u8)?;
            if claims {
                out.tick16(Tick(pending.order.seq))?;
            } else {
                out.varint(pending.order.seq)?;
                out.tick16(pending.stamp)?;
            }
            out.value(&pending.order.command)
        })();
        let fits = written.is_ok() && out.room() >= room && count < 64;
        if fits {
            count += 1;
        } else {
            out.truncate(end);
            left = Some(pending.stamp);
        }
        fits
    };
    if claims {
        let _ = orders.claims().all(&mut write);
    } else {
        let _ = orders.unacknowledged().all(&mut write);
    }
    if count == 0 {
        out.truncate(start);
    } else {
        out.patch(start, count);
    }
    (count > 0, left)
}
