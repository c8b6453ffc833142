//! Writing the session's packets.
//!
//! Each send repeats everything that the server may lack, except inputs sent often enough and still in flight
//! ([`input_repeats`](crate::input_repeats)). Inputs that exceed one datagram are split over at most
//! [`PACKETS_PER_SEND_MAX`](twinstep_core::bounds::PACKETS_PER_SEND_MAX) datagrams, each decodable alone, newest first,
//! because the oldest inputs are the most likely to be too late. Commands that exceed a datagram are spread over
//! several packets. In lockstep, commands and batches are sent oldest first.
//!
//! A client without new data *rests*: it sends only every second tick.
//!
//! ```text
//!  tick      t      t+1     t+2     t+3     t+4
//!  holds     a       a       a       b       b
//!  packet   t │rests       t+1 t+2 │rests  t+3      t+4      b leaves at once, as it always does
//! ```
//!
//! A packet with the flag "rests" states that the input stays the same for one tick beyond the packet's inputs, unless
//! a later packet arrives before that tick is sealed. The server's fill for this tick equals the held input, so sealing
//! it before the next packet arrives is no loss; the server counts neither a missing input nor a smaller margin.
//!
//! Invariant: a client rests only if a fill equals its input and it has no other data. No input arrives later, or
//! differs, compared with a client that sends every tick.

use std::time::Duration;

use arrayvec::ArrayVec;
use serde::Serialize;
use twinstep_core::bounds::{COMMAND_INLINE_MAX, INPUT_WINDOW, OUTCOME_INLINE_MAX, SEATS_MAX};
use twinstep_core::frame::{LargeEntry, Order};
use twinstep_core::{PlayerId, Simulation, Tick, codec};
use twinstep_protocol::lane::{self, LaneAck};
use twinstep_protocol::packet::play_up::{
    ClaimUp, CommandUp, LOAD_UNITS, PlayUpWriter, UpNotes, UpStatus,
};
use twinstep_protocol::packet::{ByteCounts, chunk, gaps, hello, large, leave, message};
use twinstep_protocol::wire::{WireError, Writer};

use crate::hooks::Answers;
use crate::input_repeats;
use crate::local_actions::LocalActions;
use crate::outgoing::UPLOADS_MAX;
use crate::pace::Pace;
use crate::picture::Show;
use crate::session::Session;
use crate::session::playing::{Mode, Playing};
use crate::session::stage::Stage;

/// After the server has been silent for this long, it gets only the newest inputs. The datagram allowance that
/// accumulates during the silence can be used when the server responds again.
const OLDER_SILENCE_MAX: Duration = Duration::from_millis(500);

/// A client rests after this many ticks without a changed input.
const AFTER_TICKS: u32 = 8;
/// The interval between packets of a resting client, in ticks.
const EVERY_TICKS: u32 = 2;
/// The maximum interval between packets of a resting client. With it, frames are still acknowledged in time.
const EVERY_MAX: Duration = Duration::from_millis(50);
/// A client rests only if round trips vary, on average, by at most a tick divided by this. Over a worse path, the
/// server's reports of late packets would come later.
const JITTER_PARTS: u32 = 3;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Writes the next packet: a hello or play packet if `due`, a goodbye as soon as the session is closed. While
    /// playing, an extra datagram (older inputs, a chunk) may leave before the next packet is due.
    pub(crate) fn write(&mut self, now: Duration, due: bool, out: &mut [u8]) -> Option<usize> {
        let mut packet = Writer::new(out);
        let written = match &self.stage {
            Stage::Closed(_) => {
                if !self.outgoing.take_goodbye() {
                    return None;
                }
                leave::write(now, &mut self.link, &mut packet)
            }
            Stage::Joining(_) | Stage::Returning(_) if due => self.write_hello(now, &mut packet),
            Stage::Joining(_) | Stage::Returning(_) => return None,
            Stage::Playing(_) if due => self.write_play(now, &mut packet),
            Stage::Playing(_) => {
                let older = self.write_older(now, out);
                return older.or_else(|| self.write_chunk(now, out));
            }
        };
        self.outgoing.record_sent(now);
        self.traffic.record_up(written.ok()?);
        Some(packet.len())
    }

    fn write_hello(
        &mut self,
        now: Duration,
        out: &mut Writer<'_>,
    ) -> Result<ByteCounts, WireError> {
        if let Some(lobby) = self.stage.antechamber()
            && let Some(waiting) = lobby.waiting(self.hello.rules)
        {
            let ack = self
                .lane_in
                .poll_ack()
                .unwrap_or_else(|| self.lane_in.ack());
            return hello::write_waiting(now, &mut self.link, &ack, waiting, out);
        }
        // Once chunks arrive, the server has the hello, so chunk acks replace it.
        match self.lane_in.poll_ack() {
            Some(ack) => hello::write_loading(now, &mut self.link, &ack, out),
            None => hello::write(now, &mut self.link, &self.hello, out),
        }
    }

    fn status(&self, playing: &Playing<S, V>) -> UpStatus {
        UpStatus {
            wanted: playing.replica.inbox.next(),
            view: playing.replica.timeline.authority().tick(),
            load: (self.load * LOAD_UNITS) as u8,
            late_turns: playing.replica.meter.late_turns as u8,
        }
    }

    /// Queues the large commands and answers that the server lacks, once per path. Those that do not fit into the lane
    /// follow with a later packet.
    fn upload(&mut self) {
        let Some(playing) = self.stage.playing() else {
            return;
        };
        let actions = playing.replica.timeline.local_actions();
        let sent = &mut self.outgoing.uploaded;
        let mut open = ArrayVec::<LargeEntry, UPLOADS_MAX>::new();
        for pending in actions.unacknowledged() {
            let Order { player, seq, .. } = pending.order;
            let entry = LargeEntry::Command { player, seq };
            let Some(whole) = pending.large.as_deref().filter(|_| !open.is_full()) else {
                continue;
            };
            if !sent.contains(&entry) {
                let earlier = actions
                    .unacknowledged()
                    .filter(|p| p.order.player == player && p.order.seq < seq);
                let message = large::write_command(&CommandUp {
                    seat: actions.seat_of(player),
                    seq,
                    stamp: pending.stamp,
                    settled_from: earlier.last().map_or(0, |p| p.order.seq + 1),
                    command: whole,
                });
                if self
                    .lane_out
                    .push(message::COMMAND, message.into())
                    .is_err()
                {
                    continue;
                }
            }
            open.push(entry);
        }
        for (asked, key, outcome) in playing.replica.answers.iter().flat_map(Answers::given) {
            let entry = LargeEntry::Outcome { asked, key };
            if open.is_full() || !is_large_outcome(outcome) {
                continue;
            }
            if !sent.contains(&entry) {
                let mut whole = Vec::new();
                if codec::append(outcome, &mut whole).is_err() {
                    continue;
                }
                let message = large::write_answer(asked, key, &whole);
                if self.lane_out.push(message::ANSWER, message.into()).is_err() {
                    continue;
                }
            }
            open.push(entry);
        }
        *sent = open;
    }

    fn write_play(&mut self, now: Duration, out: &mut Writer<'_>) -> Result<ByteCounts, WireError> {
        self.upload();
        let Some(playing) = self.stage.playing() else {
            return Err(WireError::Malformed("a session that does not play"));
        };
        let status = self.status(playing);
        let mut packet = PlayUpWriter::begin(now, &mut self.link, status, out)?;
        let lossy = self.outgoing.repeats.marks_lossy(now, &self.link);
        let rests = self.rests(now);
        let Some(playing) = self.stage.playing_mut() else {
            return Err(WireError::Malformed("a session that does not play"));
        };
        let gaps = playing.replica.inbox.gaps();
        let tail = TAIL_ROOM + if gaps.is_empty() { 0 } else { gaps::BYTES_MAX };
        let actions = playing.replica.timeline.local_actions();
        let wanted = status.wanted;
        if let Mode::Predicting(_) = playing.mode {
            // The server accepts inputs only within the window.
            let end = actions.next().min(wanted + INPUT_WINDOW);
            let tick = playing.replica.timeline.authority().turn().cadence.tick();
            let again = self.outgoing.repeats.first_to_repeat(now, &self.link, tick);
            let lacks = self
                .outgoing
                .needed
                .max(actions.first_input_tick())
                .max(wanted);
            let first = lacks.max(again);
            let written = write_inputs(actions, (first, end), ORDERS_ROOM + tail, &mut packet);
            self.outgoing
                .older
                .begin((first < written).then_some((first, written)));
            self.outgoing
                .repeats
                .record_sent(now, end, first >= written);
        }
        let left = write_commands(playing, self.outgoing.commands_from, tail, &mut packet);
        let actions = playing.replica.timeline.local_actions();
        self.outgoing.commands_from = left.map(|left| (actions.seats()[left.seat], left.seq));
        let claims = actions.claims().map(|pending| ClaimUp {
            seat: actions.seat_of(pending.order.player),
            tick: Tick(pending.order.seq),
            command: &pending.order.command,
        });
        packet.claims(claims, tail);
        let left = left.map(|left| left.stamp);
        write_batches(playing, left, tail, &mut packet);
        if let Some(ack) = self.lane_in.poll_ack() {
            packet.lane_ack(&ack)?;
        }
        self.outgoing.rests = rests;
        let notes = UpNotes {
            heal: playing.replica.divergence.since(),
            evidence: self.asked_evidence.map(|(tick, _)| tick),
            gaps,
            lossy,
            rests,
        };
        let answers = playing.replica.answers.iter().flat_map(Answers::given);
        let answers = answers.filter(|(_, _, outcome)| !is_large_outcome(*outcome));
        packet.rare(&notes, answers)?;
        Ok(packet.end())
    }

    /// Writes a datagram with only acks and the older inputs that did not fit into the newest one. Returns `None` if
    /// none may be sent now.
    fn write_older(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let heard = self.link.last_received_at()?;
        if now.saturating_sub(heard) > OLDER_SILENCE_MAX {
            return None;
        }
        let (first, end) = self.outgoing.older.take(now)?;
        // Confirmed ticks no longer need inputs.
        let wanted = self.stage.playing()?.replica.inbox.next();
        let first = first.max(wanted);
        // After a heal to a much older world, the run may lie beyond the window.
        let end = end.min(wanted + INPUT_WINDOW);
        if first >= end {
            return None;
        }
        let mut out = Writer::new(out);
        let playing = self.stage.playing()?;
        let status = self.status(playing);
        let mut packet = PlayUpWriter::begin(now, &mut self.link, status, &mut out).ok()?;
        let written = write_inputs(
            playing.replica.timeline.local_actions(),
            (first, end),
            0,
            &mut packet,
        );
        self.outgoing
            .older
            .leave((first < written).then_some((first, written)));
        self.traffic.record_up(packet.end());
        Some(out.len())
    }

    /// The time of the next extra packet, with older inputs or with a lane chunk.
    pub(crate) fn next_extra_packet(&self, playing: &Playing<S, V>) -> Option<Duration> {
        let wanted = playing.replica.inbox.next();
        let reachable_until = self
            .link
            .last_received_at()
            .map(|at| at + OLDER_SILENCE_MAX);
        let older = self
            .outgoing
            .older
            .next_due()
            .filter(|(due, (first, end))| {
                let (first, end) = (wanted.max(*first), (wanted + INPUT_WINDOW).min(*end));
                first < end && reachable_until.is_some_and(|until| self.now().max(*due) <= until)
            });
        let chunk = self.lane_out.next_due(self.now(), self.lane_rtt());
        older.map(|(due, _)| due).into_iter().chain(chunk).min()
    }

    fn lane_rtt(&self) -> Duration {
        self.link.rtt().unwrap_or(Duration::from_millis(200))
    }

    fn write_chunk(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let rtt = self.lane_rtt();
        let mut chunk = [0; lane::FRAME_BYTES_MAX];
        let len = self.lane_out.poll(now, rtt, &mut chunk)?;
        let mut packet = Writer::new(out);
        let bytes = chunk::write_up(now, &mut self.link, &chunk[..len], &mut packet).ok()?;
        self.traffic.record_up(bytes);
        Some(packet.len())
    }
}

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Returns `true` if the inputs sampled now wait for the next tick's packet, as the last packet announced.
    pub(crate) fn keeps_silent(&self, now: Duration) -> bool {
        let Some(playing) = self.stage.playing() else {
            return false;
        };
        let Some(said) = self.outgoing.repeats.sent_until() else {
            return false;
        };
        let is_due = playing.replica.timeline.local_actions().next() - said >= EVERY_TICKS;
        self.outgoing.rests && !is_due && self.rests(now)
    }

    /// Returns `true` if the next packet would only repeat that the inputs stay the same.
    pub(crate) fn rests(&self, now: Duration) -> bool {
        let Some(playing) = self.stage.playing() else {
            return false;
        };
        let actions = playing.replica.timeline.local_actions();
        let tick = playing.replica.timeline.authority().turn().cadence.tick();
        let is_at_rest =
            actions.held_for() >= AFTER_TICKS && actions.would_fills_match(EVERY_TICKS);
        let has_no_order = actions.unacknowledged().next().is_none()
            && actions.claims().next().is_none()
            && playing.replica.answers.is_none();
        let asks_nothing = playing.replica.inbox.gaps().is_empty()
            && playing.replica.divergence.since().is_none()
            && self.asked_evidence.is_none()
            && !self.is_returning();
        let is_calm = match &playing.mode {
            Mode::Predicting(predicting) => predicting.pace.as_ref().is_some_and(Pace::is_calm),
            Mode::Lockstep(_) => false,
        };
        let is_line_good = input_repeats::is_acknowledged(now, &self.link)
            && self.outgoing.repeats.is_proven(now, &self.link)
            && self.link.jitter() * JITTER_PARTS <= tick;
        tick * EVERY_TICKS <= EVERY_MAX
            && is_calm
            && is_at_rest
            && has_no_order
            && asks_nothing
            && is_line_good
    }
}

fn is_large_outcome<O: Serialize>(outcome: &O) -> bool {
    codec::size(outcome).is_ok_and(|bytes| bytes > OUTCOME_INLINE_MAX)
}

/// The number of bytes that orders leave for the end of a packet: the lane ack, and requests to the server. Gaps need
/// extra space.
const TAIL_ROOM: usize = LaneAck::BYTES_MAX + 1 + 4 + 4;
/// The largest command in a packet up, in bytes, with its seat, sequence number and stamp.
const COMMAND_UP_MAX: usize = 1 + 5 + 2 + COMMAND_INLINE_MAX;
/// The number of bytes that commands leave for a claim, if one is open: the count, and the largest claim.
const CLAIM_ROOM: usize = 1 + 1 + 2 + COMMAND_INLINE_MAX;
/// The number of bytes that inputs leave for the largest command and claim.
const ORDERS_ROOM: usize = 1 + COMMAND_UP_MAX + CLAIM_ROOM;

/// Writes the newest of the inputs `first..end`, as many as possible with `room` bytes left. Returns the first tick
/// written, or `end`.
fn write_inputs<S: Simulation>(
    actions: &LocalActions<S>,
    run: (Tick, Tick),
    room: usize,
    packet: &mut PlayUpWriter<'_, '_>,
) -> Tick {
    let neutral = S::Input::default();
    let input = |seat, tick| actions.input(seat, tick).unwrap_or(&neutral);
    packet.inputs(run, actions.seats().len(), input, room)
}

/// Writes the closed batches that the server may lack, oldest first. A sent batch counts as closed, so the batches
/// starting at `left` wait for the next packet, because their commands did not fit.
fn write_batches<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    left: Option<Tick>,
    tail: usize,
    packet: &mut PlayUpWriter<'_, '_>,
) {
    let Mode::Lockstep(lockstep) = &mut playing.mode else {
        return;
    };
    if lockstep.delay == 0 {
        return;
    }
    let seats = playing.replica.timeline.local_actions().seats().len();
    let (first, count) = lockstep.unacknowledged();
    // The server accepts only these. After it lost turns, older batches may still be kept here.
    let open = (lockstep.next_turn + lockstep.delay).saturating_sub(first);
    let count = count.min(open as usize);
    let whole = left.map_or(count, |left| count.min((left - Tick(first)) as usize));
    let neutral = S::Input::default();
    let input = |seat, turn| lockstep.input(seat, turn).unwrap_or(&neutral);
    let written = packet.batches(first, whole, seats, input, tail);
    if written > 0 {
        lockstep.record_sent(first + written as u32);
    }
}

/// The number of bytes that commands leave for closed batches.
const BATCHES_ROOM: usize = 300;

/// Writes the commands that the server may lack, as far as they fit, and returns the first one that did not fit. They
/// start with `from` if the server still lacks it, otherwise with the oldest. In lockstep they always start with the
/// oldest, because batches wait for them.
fn write_commands<'p, S: Simulation, V: Show<S>>(
    playing: &'p Playing<S, V>,
    from: Option<(PlayerId, u32)>,
    tail: usize,
    packet: &mut PlayUpWriter<'_, '_>,
) -> Option<CommandUp<&'p S::Command>> {
    let actions = playing.replica.timeline.local_actions();
    let mut room = tail;
    if actions.claims().next().is_some() {
        room += CLAIM_ROOM;
    }
    let is_lockstep = matches!(playing.mode, Mode::Lockstep(_));
    if is_lockstep {
        room += BATCHES_ROOM;
    }
    let mut oldest = [u32::MAX; SEATS_MAX];
    let mut begin = 0;
    let mut small = 0;
    for pending in actions.unacknowledged() {
        let Order { player, seq, .. } = pending.order;
        let oldest = &mut oldest[actions.seat_of(player)];
        *oldest = seq.min(*oldest);
        if from == Some((player, seq)) && !is_lockstep {
            begin = small;
        }
        small += usize::from(pending.large.is_none());
    }
    // Large commands are sent over the lane.
    let all = || actions.unacknowledged().filter(|p| p.large.is_none());
    let commands = all().skip(begin).chain(all().take(begin)).map(|pending| {
        let seat = actions.seat_of(pending.order.player);
        CommandUp {
            seat,
            seq: pending.order.seq,
            stamp: pending.stamp,
            settled_from: if pending.order.seq == oldest[seat] {
                0
            } else {
                pending.order.seq
            },
            command: &pending.order.command,
        }
    });
    packet.commands(commands, room)
}
