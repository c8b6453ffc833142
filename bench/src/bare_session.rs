//! [`BareSession`]: sends a server the packets of a session, and simulates nothing.
//!
//! ```text
//!  frames ──▶ which have arrived (a bit each) ──▶ acks, gaps  ╮
//!  margins ─▶ pace ──▶ inputs of the ticks that are due  ─────┴──▶ one packet a frame
//! ```
//!
//! A load generator is to cost less than the server. Most of the cost of a session serves its player's eyes: both worlds, the
//! picture, statistics. A server sees none of that. It sees the same number of packets of the same sizes, and a test compares
//! both. Missing here: more than one seat, commands, digests (so a server is loaded with some whole sessions too), silence while
//! controls are held, and adaptive turns or delayed inputs.

use std::time::Duration;

use twinstep_client::again::Again;
use twinstep_client::orders::LocalActions;
use twinstep_client::pace::{Pace, PaceConfig};
use twinstep_core::bounds::{INPUT_WINDOW, KEEP_ALIVE, WORLD_BYTES_MAX};
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{Tick, codec, digest};
use twinstep_protocol::lane::{LaneAck, LaneReceiver, Message};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::frames::RunReader;
use twinstep_protocol::packet::gaps::{self, Gaps};
use twinstep_protocol::packet::hello::{Basis, CloseCode, Hello, Holds, Welcome};
use twinstep_protocol::packet::refusal::OrderRefusal;
use twinstep_protocol::packet::{
    DownKind, DownPart, NO_DIGEST, Parts, RareDown, RareUp, UpKind, UpPart, company, inputs,
    message,
};
use twinstep_protocol::wire::{Reader, WireError, Writer};

use crate::game::{Blob, Pad, Pads, Seals};
use crate::process::Failed;
use crate::subject::Plays;

/// The interval of acks while a world is on its way, as a session's.
const LOADING_ACKS: Duration = Duration::from_millis(20);
/// Copies of the goodbye, since no one will be there to resend it.
const GOODBYES: u8 = 3;

pub(crate) struct BareSession {
    hello: Hello,
    link: LinkState,
    lane: LaneReceiver,
    welcome: Option<Welcome>,
    playing: Option<Box<Playing>>,
    sent_at: Option<Duration>,
    /// Goodbyes that are left to send; `None` while it stays.
    goodbyes: Option<u8>,
}

/// Its part in a match.
struct Playing {
    run: RunReader<Blob>,
    frames: Frames,
    actions: LocalActions<Blob>,
    cadence: Cadence,
    /// The tick whose frame changed the cadence.
    cadence_since: Tick,
    again: Again,
    /// `None` until the frames that were sealed before the join have arrived.
    pace: Option<Pace>,
    /// The first tick without an input of ours at the server.
    needed: Tick,
    next_seal: Tick,
    /// A packet about the match has arrived.
    has_arrived: bool,
    /// There are inputs that no packet has carried.
    has_news: bool,
}

/// The frames that have arrived.
#[derive(Clone, Copy, Debug)]
struct Frames {
    /// The first missing one.
    wanted: Tick,
    /// Bit n is set if frame `wanted + n` has arrived.
    beyond: u128,
}

impl Frames {
    fn note(&mut self, tick: Tick) {
        if tick < self.wanted {
            return;
        }
        // The server resends frames that are farther beyond a gap once the gap is filled.
        self.beyond |= 1_u128.checked_shl(tick - self.wanted).unwrap_or(0);
        let come = self.beyond.trailing_ones();
        self.beyond = self.beyond.checked_shr(come).unwrap_or(0);
        self.wanted += come;
    }

    /// The missing frames between others.
    fn gaps(&self) -> Gaps {
        let mut gaps = Gaps::new();
        let (mut left, mut at) = (self.beyond, self.wanted);
        while left != 0 && !gaps.is_full() {
            let lacks = left.trailing_zeros();
            if lacks > 0 {
                gaps.push((at, at + lacks));
            }
            left >>= lacks;
            let has = left.trailing_ones();
            left = left.checked_shr(has).unwrap_or(0);
            at += lacks + has;
        }
        gaps
    }
}

impl BareSession {
    /// Asks to join a match that may have begun with `start`.
    pub(crate) fn new(rules: &Seals, start: &Blob) -> Result<Self, digest::NanError> {
        let hello = Hello {
            holds: Holds::Start(digest::digest(start)? as u32),
            ..Hello::of::<Blob>(rules, "")?
        };
        Ok(BareSession {
            hello,
            link: LinkState::default(),
            lane: LaneReceiver::new(WORLD_BYTES_MAX),
            welcome: None,
            playing: None,
            sent_at: None,
            goodbyes: None,
        })
    }

    /// Ignores names, tickets and notices.
    fn take_message(&mut self, message: &Message) -> Result<(), Failed> {
        match message.kind {
            message::WELCOME => {
                let welcome: Welcome = codec::decode_whole(&message.bytes)?;
                if !welcome.is_sound() {
                    return Err("the server's welcome breaks its own bounds".into());
                }
                if welcome.command_delay > 0 || welcome.seats.len() != 1 {
                    return Err("expected one seat in a match without a command delay".into());
                }
                if let Basis::Start(tick, cadence) = welcome.basis {
                    self.playing = Some(Box::new(Playing::new(&welcome, tick, cadence)));
                }
                self.welcome = Some(welcome);
            }
            message::WORLD => {
                let world: World<Blob> = codec::decode_whole(&message.bytes)?;
                if !world.is_sound() {
                    return Err("the server's world breaks its own bounds".into());
                }
                let welcome = self.welcome.as_ref().ok_or("a world before a welcome")?;
                let playing = Playing::new(welcome, world.tick(), world.turn().cadence);
                self.playing = Some(Box::new(playing));
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, now: Duration, out: &mut Writer<'_>) -> Result<(), WireError> {
        let ack = self.lane.poll_ack();
        let Some(playing) = &mut self.playing else {
            let parts = match ack {
                Some(_) => Parts::default().with(UpPart::LaneAck),
                None => Parts::default(),
            };
            out.u8(UpKind::Hello.head(parts))?;
            self.link.write(now, out)?;
            return match ack {
                Some(ack) => out.bytes(&ack.encode()),
                None => self.hello.write(out),
            };
        };
        out.u8(UpKind::Play.alone())?;
        self.link.write(now, out)?;
        let parts = playing.write(now, &self.link, ack, out)?;
        out.patch(0, UpKind::Play.head(parts));
        Ok(())
    }
}

impl Plays for BareSession {
    fn handle(&mut self, now: Duration, bytes: &[u8]) -> Result<(), Failed> {
        let mut packet = Reader::new(bytes);
        let (kind, parts) = DownKind::read(packet.u8()?)?;
        if kind == DownKind::Closed {
            return Err(packet.value::<CloseCode>()?.into());
        }
        let header = self.link.parse(&mut packet)?;
        match (kind, &mut self.playing) {
            _ if header.repeated => {}
            (DownKind::Lane, _) => self.lane.handle(packet.rest())?,
            (_, Some(playing)) => {
                let report = playing.read(parts, &mut packet)?;
                self.link.note(now, header);
                if header.newest {
                    playing.take_report(now, report, self.link.rtt().unwrap_or_default());
                }
                return Ok(());
            }
            // A match without it, so far.
            (_, None) => {}
        }
        self.link.note(now, header);
        while let Some(message) = self.lane.poll_message()? {
            self.take_message(&message)?;
        }
        Ok(())
    }

    fn advance(&mut self, now: Duration, pads: &mut Pads) -> Result<(), Failed> {
        if let Some(playing) = &mut self.playing {
            let rtt = self.link.rtt().unwrap_or(Duration::from_millis(100));
            playing.sample(now, rtt, pads);
        }
        Ok(())
    }

    fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        if let Some(left) = &mut self.goodbyes {
            *left = left.checked_sub(1)?;
            let mut out = Writer::new(out);
            out.u8(UpKind::Leave.alone()).ok()?;
            self.link.write(now, &mut out).ok()?;
            return Some(out.len());
        }
        let has_news = self.playing.as_ref().is_some_and(|one| one.has_news);
        let patience = match self.lane.progress() {
            Some(_) if self.playing.is_none() => LOADING_ACKS,
            _ => KEEP_ALIVE,
        };
        let passed = self.sent_at.map(|at| now.saturating_sub(at));
        let is_silent = passed.is_none_or(|passed| passed >= patience);
        if !has_news && !is_silent {
            return None;
        }
        self.sent_at = Some(now);
        let mut out = Writer::new(out);
        self.write(now, &mut out).ok()?;
        Some(out.len())
    }

    fn leave(&mut self) {
        self.goodbyes.get_or_insert(GOODBYES);
    }

    fn is_playing(&self) -> bool {
        self.playing.is_some()
    }
}

/// How early inputs arrive, by a packet of the server.
struct Report {
    next_seal: Tick,
    margin: i8,
    unbroken: u8,
}

impl Playing {
    fn new(welcome: &Welcome, tick: Tick, cadence: Cadence) -> Playing {
        Playing {
            run: RunReader::default(),
            frames: Frames {
                wanted: tick,
                beyond: 0,
            },
            actions: LocalActions::new(welcome.seats.clone(), &welcome.next_seq),
            cadence,
            cadence_since: tick,
            again: Again::default(),
            pace: None,
            needed: tick,
            next_seal: tick,
            has_arrived: false,
            // It has joined.
            has_news: true,
        }
    }

    /// Reads a packet behind its link header.
    fn read(
        &mut self,
        parts: Parts<DownPart>,
        packet: &mut Reader<'_>,
    ) -> Result<Report, WireError> {
        let report = Report {
            next_seal: packet.tick16(self.next_seal)?,
            margin: packet.u8()? as i8,
            unbroken: packet.u8()?,
        };
        if parts.has(DownPart::Rare) {
            let rare = Parts::read(packet.u8()?)?;
            if rare.has(RareDown::Waiting) {
                packet.varint()?;
            }
            if rare.has(RareDown::Company) {
                company::read(packet)?;
            }
            if rare.has(RareDown::LaneAck) {
                LaneAck::decode(packet.rest_mut())
                    .map_err(|_| WireError::Malformed("an ack of the lane"))?;
            }
        }
        if parts.has(DownPart::CommandAcks) {
            packet.varint()?;
        }
        if parts.has(DownPart::Refusals) {
            for _ in 0..packet.u8()? {
                OrderRefusal::read(packet)?;
            }
        }
        if parts.has(DownPart::Frames) {
            self.read_frames(packet)?;
        }
        if parts.has(DownPart::Announced) {
            let own = self.actions.players();
            self.run.announced(packet, own, |_, _, _| {}, |_, _| {})?;
        }
        packet.end()?;
        self.has_arrived = true;
        Ok(report)
    }

    fn read_frames(&mut self, packet: &mut Reader<'_>) -> Result<(), WireError> {
        let (own, actions) = (self.actions.players(), &self.actions);
        let (frames, cadence, since) =
            (&mut self.frames, &mut self.cadence, &mut self.cadence_since);
        self.run.begin(packet, frames.wanted)?;
        let sent = |player, tick| actions.input_of(player, tick);
        while self.run.next(packet, own, sent, |frame| {
            frames.note(frame.tick);
            let sound = frame.cadence.filter(|cadence| cadence.is_sound());
            // An old frame may arrive again after newer ones.
            if let Some(newer) = sound.filter(|_| frame.tick >= *since) {
                (*cadence, *since) = (newer, frame.tick);
            }
        })? {}
        if packet.u8()? != NO_DIGEST {
            packet.u32()?;
        }
        Ok(())
    }

    fn take_report(&mut self, now: Duration, report: Report, rtt: Duration) {
        self.next_seal = report.next_seal;
        self.needed = report.next_seal + u32::from(report.unbroken);
        self.again.note_sealing(now, report.next_seal);
        let Some(pace) = &mut self.pace else { return };
        match report.margin {
            i8::MIN => pace.report_nothing(now, rtt),
            margin => {
                let newest_held = report.next_seal.0.saturating_add_signed(margin.into());
                pace.report(now, margin.into(), Tick(newest_held), rtt);
            }
        }
    }

    fn sample(&mut self, now: Duration, rtt: Duration, pads: &mut Pads) {
        let config = PaceConfig {
            tick: self.cadence.tick(),
            turn_ticks: u32::from(self.cadence.turn_ticks),
        };
        let wanted = self.frames.wanted;
        let has_come =
            self.has_arrived && self.next_seal.0.saturating_sub(wanted.0) <= 2 * config.turn_ticks;
        if self.pace.is_none() && has_come {
            self.pace = Some(Pace::start(config, now, wanted, rtt));
        }
        let Some(pace) = &mut self.pace else { return };
        pace.set_config(config);
        // All that has arrived is confirmed at once.
        let beat = pace.advance(now, wanted, wanted);
        self.actions.skip_to(beat.first);
        for _ in beat.first.0..beat.end.0 {
            self.actions.sample(|_| pads.next());
        }
        self.has_news |= beat.end > beat.first;
    }

    /// Writes a packet behind its link header, and returns its parts.
    fn write(
        &mut self,
        now: Duration,
        link: &LinkState,
        ack: Option<LaneAck>,
        out: &mut Writer<'_>,
    ) -> Result<Parts<UpPart>, WireError> {
        self.has_news = false;
        let lossy = self.again.says_lossy(now, link);
        let mut parts = Parts::default();
        let wanted = self.frames.wanted;
        out.tick16(wanted)?;
        // Nothing waits for confirmation, this machine is not busy, and late turns are not reported.
        out.u8(0)?;
        out.u8(0)?;
        let end = self.actions.next().min(wanted + INPUT_WINDOW);
        let again = self.again.from(now, link, self.cadence.tick());
        let lacks = self.needed.max(self.actions.first()).max(wanted);
        let first = lacks.max(again);
        if first < end {
            let neutral = Pad::default();
            let actions = &self.actions;
            let input = |seat, tick| actions.input(seat, tick).unwrap_or(&neutral);
            inputs::write(out, wanted, first, end - first, 1, input)?;
            parts.add(UpPart::Inputs);
        }
        self.again.note_said(now, end, true);
        if let Some(ack) = ack {
            out.bytes(&ack.encode())?;
            parts.add(UpPart::LaneAck);
        }
        let gaps = self.frames.gaps();
        if lossy || !gaps.is_empty() {
            let mut rare = Parts::default();
            let at = out.len();
            out.u8(0)?;
            if !gaps.is_empty() {
                rare.add(RareUp::Gaps);
                gaps::write(out, &gaps)?;
            }
            if lossy {
                rare.add(RareUp::Lossy);
            }
            out.patch(at, rare.bits());
            parts.add(UpPart::Rare);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(arrived: &[u32]) -> (u32, Vec<(u32, u32)>) {
        let mut frames = Frames {
            wanted: Tick(100),
            beyond: 0,
        };
        arrived.iter().for_each(|tick| frames.note(Tick(*tick)));
        let gaps = frames.gaps();
        let gaps = gaps.iter().map(|(first, end)| (first.0, end.0));
        (frames.wanted.0, gaps.collect())
    }

    #[test]
    fn a_frame_counts_once_and_a_gap_is_reported_until_it_is_filled() {
        assert_eq!(frames(&[]), (100, vec![]));
        assert_eq!(frames(&[99, 100, 100, 101]), (102, vec![]));
        let gaps = vec![(100, 102), (104, 106)];
        assert_eq!(frames(&[102, 103, 106]), (100, gaps));
        assert_eq!(frames(&[102, 106, 100, 101]), (103, vec![(103, 106)]));
        // The farthest frame that is remembered, and one beyond it.
        assert_eq!(frames(&[227]), (100, vec![(100, 227)]));
        assert_eq!(frames(&[228]), (100, vec![]));
        let all: Vec<u32> = (101..228).chain([100, 228]).collect();
        assert_eq!(frames(&all), (229, vec![]));
    }
}
