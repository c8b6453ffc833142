//! [`BareSession`]: says to a server what a session says, and simulates nothing.
//!
//! ```text
//!  frames ──▶ which have come (a bit each) ──▶ acks, gaps  ╮
//!  margins ─▶ pace ──▶ inputs of the ticks that are due  ──┴──▶ one packet a frame
//! ```
//!
//! A load generator should cost less than what it loads. Most of what a whole session costs is for its player's eyes: both
//! worlds, the picture, statistics. A server sees none of that. What it does see is as many packets of the same sizes, as a
//! test holds that plays both. What is not here: more than one seat, commands, a look at digests (so a server is loaded with
//! some whole sessions too), silence while controls are held, and what only matches need that adapt their turns or delay
//! inputs.

use std::time::Duration;

use twinstep_client::again::Again;
use twinstep_client::orders::LocalActions;
use twinstep_client::pace::{Pace, PaceConfig};
use twinstep_core::bounds::{INPUT_WINDOW, KEEP_ALIVE, REFUSALS_PER_PACKET, WORLD_BYTES_MAX};
use twinstep_core::lane::{LaneAck, LaneReceiver, Message};
use twinstep_core::link::LinkState;
use twinstep_core::packet::frames::RunReader;
use twinstep_core::packet::gaps::{self, Gaps};
use twinstep_core::packet::hello::{Basis, CloseCode, Hello, Holds, Welcome};
use twinstep_core::packet::refusal::OrderRefusal;
use twinstep_core::packet::{
    DownKind, DownPart, NO_DIGEST, Parts, RareDown, RareUp, UpKind, UpPart, company, inputs,
    message,
};
use twinstep_core::turn::Cadence;
use twinstep_core::wire::{Reader, WireError, Writer};
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick, codec, digest};

use crate::process::Failed;

/// As a session does: while a world is on its way, acks leave this often.
const LOADING_ACKS: Duration = Duration::from_millis(20);
/// A goodbye is said so often, since nobody will be there to say it again.
const GOODBYES: u8 = 3;

/// See the [module](self).
pub(crate) struct BareSession<S: Simulation> {
    hello: Hello,
    link: LinkState,
    lane: LaneReceiver,
    welcome: Option<Welcome>,
    playing: Option<Box<Playing<S>>>,
    sent_at: Option<Duration>,
    /// Goodbyes that are left to say; `None`: it stays.
    goodbyes: Option<u8>,
}

/// What it keeps of its match.
struct Playing<S: Simulation> {
    run: RunReader<S>,
    frames: Frames,
    actions: LocalActions<S>,
    cadence: Cadence,
    /// The tick whose frame changed it.
    cadence_since: Tick,
    again: Again,
    /// Once all has come that was sealed before this session did.
    pace: Option<Pace>,
    /// The first tick of which the server holds no input of ours, and the next one that it seals.
    needed: Tick,
    next_seal: Tick,
    /// The server has told of the match.
    is_heard: bool,
    /// There are inputs that no packet has said.
    has_news: bool,
}

/// Which frames have come.
#[derive(Clone, Copy, Debug)]
struct Frames {
    /// The first one that has not.
    wanted: Tick,
    /// Those behind it that have: bit n is frame `wanted + n`.
    beyond: u128,
}

impl Frames {
    /// One came.
    fn note(&mut self, tick: Tick) {
        if tick < self.wanted {
            return;
        }
        // What is farther beyond a gap is told again once the gap is filled.
        self.beyond |= 1_u128.checked_shl(tick - self.wanted).unwrap_or(0);
        let come = self.beyond.trailing_ones();
        self.beyond = self.beyond.checked_shr(come).unwrap_or(0);
        self.wanted += come;
    }

    /// Those that are missing between others.
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

impl<S: Simulation> BareSession<S> {
    /// One that asks to join a match, which may have begun with `start`.
    pub(crate) fn new(rules: &S::Rules, start: &S) -> Result<Self, digest::NanError> {
        let hello = Hello {
            holds: Holds::Start(digest::digest(start)? as u32),
            ..Hello::of::<S>(rules, "")?
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

    /// Whether it has a seat.
    pub(crate) fn is_playing(&self) -> bool {
        self.playing.is_some()
    }

    /// Whether it has come as far as the match, and says what its player holds.
    pub(crate) fn is_settled(&self) -> bool {
        let playing = self.playing.as_ref();
        playing.is_some_and(|playing| playing.pace.is_some())
    }

    /// Says goodbye; [`poll_transmit`](BareSession::poll_transmit) carries it.
    pub(crate) fn leave(&mut self) {
        self.goodbyes.get_or_insert(GOODBYES);
    }

    /// Takes a packet of the server.
    ///
    /// # Errors
    /// The session is over, or the packet is none.
    pub(crate) fn handle(&mut self, now: Duration, bytes: &[u8]) -> Result<(), Failed> {
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
                let said = playing.read(parts, &mut packet)?;
                self.link.note(now, header);
                if header.newest {
                    playing.heed(now, said, self.link.rtt().unwrap_or_default());
                }
                return Ok(());
            }
            // Of a match that it is not in yet.
            (_, None) => {}
        }
        self.link.note(now, header);
        while let Some(told) = self.lane.poll_message()? {
            self.take_message(&told)?;
        }
        Ok(())
    }

    /// Names, tickets and notices are for who plays.
    fn take_message(&mut self, told: &Message) -> Result<(), Failed> {
        match told.kind {
            message::WELCOME => {
                let welcome: Welcome = codec::decode_whole(&told.bytes)?;
                if !welcome.is_sound() {
                    return Err("the server's welcome breaks its own bounds".into());
                }
                if welcome.command_delay > 0 || welcome.seats.len() != 1 {
                    return Err(format!(
                        "expected one seat in a match that is predicted, and was given {} with a command delay of {}",
                        welcome.seats.len(),
                        welcome.command_delay
                    )
                    .into());
                }
                if let Basis::Start(tick, cadence) = welcome.basis {
                    self.playing = Some(Box::new(Playing::new(&welcome, tick, cadence)));
                }
                self.welcome = Some(welcome);
            }
            message::WORLD => {
                let world: World<S> = codec::decode_whole(&told.bytes)?;
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

    /// Samples the inputs of the ticks that are due.
    pub(crate) fn advance(&mut self, now: Duration, input: impl FnMut() -> S::Input) {
        if let Some(playing) = &mut self.playing {
            let rtt = self.link.rtt().unwrap_or(Duration::from_millis(100));
            playing.sample(now, rtt, input);
        }
    }

    /// Writes the next packet that is due; its length. Call until there is none, after each
    /// [`advance`](BareSession::advance).
    pub(crate) fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
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

/// What a packet says of how early inputs come.
struct Said {
    next_seal: Tick,
    margin: i8,
    unbroken: u8,
}

impl<S: Simulation> Playing<S> {
    fn new(welcome: &Welcome, tick: Tick, cadence: Cadence) -> Playing<S> {
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
            is_heard: false,
            // That it is here.
            has_news: true,
        }
    }

    /// Reads a packet behind its link header, to its end.
    fn read(&mut self, parts: Parts<DownPart>, packet: &mut Reader<'_>) -> Result<Said, WireError> {
        let said = Said {
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
            let refusals = packet.u8()?;
            if usize::from(refusals) > REFUSALS_PER_PACKET {
                return Err(WireError::Malformed("more refusals than a packet tells"));
            }
            for _ in 0..refusals {
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
        self.is_heard = true;
        Ok(said)
    }

    fn read_frames(&mut self, packet: &mut Reader<'_>) -> Result<(), WireError> {
        let (own, actions) = (self.actions.players(), &self.actions);
        let (frames, cadence, since) =
            (&mut self.frames, &mut self.cadence, &mut self.cadence_since);
        self.run.begin(packet, frames.wanted)?;
        let sent = |player, tick| actions.input_of(player, tick);
        while self.run.next(packet, own, sent, |frame| {
            frames.note(frame.tick);
            // The same frame may come again after newer ones.
            let news = frame.cadence.filter(|cadence| cadence.is_sound());
            if let Some(news) = news.filter(|_| frame.tick >= *since) {
                (*cadence, *since) = (news, frame.tick);
            }
        })? {}
        if packet.u8()? != NO_DIGEST {
            packet.u32()?;
        }
        Ok(())
    }

    fn heed(&mut self, now: Duration, said: Said, rtt: Duration) {
        self.next_seal = said.next_seal;
        self.needed = said.next_seal + u32::from(said.unbroken);
        self.again.note_sealing(now, said.next_seal);
        let Some(pace) = &mut self.pace else { return };
        match said.margin {
            i8::MIN => pace.report_nothing(now, rtt),
            margin => {
                let newest_held = said.next_seal.0.saturating_add_signed(margin.into());
                pace.report(now, margin.into(), Tick(newest_held), rtt);
            }
        }
    }

    fn sample(&mut self, now: Duration, rtt: Duration, mut input: impl FnMut() -> S::Input) {
        let config = PaceConfig {
            tick: self.cadence.tick(),
            turn_ticks: u32::from(self.cadence.turn_ticks),
        };
        let wanted = self.frames.wanted;
        let has_come =
            self.is_heard && self.next_seal.0.saturating_sub(wanted.0) <= 2 * config.turn_ticks;
        if self.pace.is_none() && has_come {
            self.pace = Some(Pace::start(config, now, wanted, rtt));
        }
        let Some(pace) = &mut self.pace else { return };
        pace.set_config(config);
        // Whatever has come is confirmed at once.
        let beat = pace.advance(now, wanted, wanted);
        self.actions.skip_to(beat.first);
        for _ in beat.first.0..beat.end.0 {
            self.actions.sample(|_| input());
        }
        self.has_news |= beat.end > beat.first;
    }

    /// Writes a packet behind its link header; which parts it has.
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
        // All that came is confirmed, no machine is busy, and of late turns nothing is told.
        out.u8(0)?;
        out.u8(0)?;
        let end = self.actions.next().min(wanted + INPUT_WINDOW);
        let again = self.again.from(now, link, self.cadence.tick());
        let lacks = self.needed.max(self.actions.first()).max(wanted);
        let first = lacks.max(again);
        if first < end {
            let neutral = S::Input::default();
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

    fn frames(came: &[u32]) -> (u32, Vec<(u32, u32)>) {
        let mut frames = Frames {
            wanted: Tick(100),
            beyond: 0,
        };
        came.iter().for_each(|tick| frames.note(Tick(*tick)));
        let gaps = frames.gaps();
        let gaps = gaps.iter().map(|(first, end)| (first.0, end.0));
        (frames.wanted.0, gaps.collect())
    }

    #[test]
    fn frames_count_once_and_gaps_are_told_until_they_are_filled() {
        assert_eq!(frames(&[]), (100, vec![]));
        assert_eq!(frames(&[99, 100, 100, 101]), (102, vec![]));
        assert_eq!(
            frames(&[102, 103, 106]),
            (100, vec![(100, 102), (104, 106)])
        );
        assert_eq!(frames(&[102, 106, 100, 101]), (103, vec![(103, 106)]));
        // The farthest one that is remembered, and one beyond it.
        assert_eq!(frames(&[227]), (100, vec![(100, 227)]));
        assert_eq!(frames(&[228]), (100, vec![]));
        let all: Vec<u32> = (101..228).chain([100, 228]).collect();
        assert_eq!(frames(&all), (229, vec![]));
    }
}
