//! [`BareSession`]: sends a server the packets of a session, without a simulation.
//!
//! ```text
//!  frames ──▶ which have arrived (a bit each) ──▶ acks, gaps  ╮
//!  margins ─▶ pace ──▶ inputs of the ticks that are due  ─────┴──▶ one packet a frame
//! ```
//!
//! A load generator must cost less than the server. Most of a session's cost does not concern the server: both worlds,
//! interpolation, statistics. The server gets the same number of packets of the same sizes; a test compares them.
//! Missing here: more than one seat, commands, digests (so the load also includes some full sessions), silence while
//! controls are held, and adaptive turns or delayed inputs.

use std::iter;
use std::time::Duration;

use twinstep_client::internal::{InputRepeats, LocalActions, Pace, PaceConfig};
use twinstep_core::bounds::{INPUT_WINDOW, KEEP_ALIVE, WORLD_BYTES_MAX};
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{Never, Tick, codec, digest};
use twinstep_protocol::lane::{LaneAck, LaneReceiver, Message};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::gaps::Gaps;
use twinstep_protocol::packet::hello::{self, Basis, Hello, Holds, Welcome};
use twinstep_protocol::packet::play_down::{DownContext, PlayDown};
use twinstep_protocol::packet::play_up::{PlayUpWriter, UpNotes, UpStatus};
use twinstep_protocol::packet::{
    ByteCounts, DownPacket, DownPart, PacketBody, closed, leave, message,
};
use twinstep_protocol::wire::{WireError, Writer};

use crate::game::{Blob, Pad, Pads, Seals};
use crate::process::Failed;
use crate::subject::Plays;

const LOADING_ACKS: Duration = Duration::from_millis(20);
/// The number of copies of the goodbye to send. A session that has ended cannot resend it.
const GOODBYES: u8 = 3;

pub(crate) struct BareSession {
    hello: Hello,
    link: LinkState,
    lane: LaneReceiver,
    welcome: Option<Welcome>,
    playing: Option<Box<Playing>>,
    sent_at: Option<Duration>,
    /// The number of goodbyes still to be sent. `None` until the session leaves.
    goodbyes: Option<u8>,
}

struct Playing {
    packet: PlayDown<Blob>,
    frames: Frames,
    actions: LocalActions<Blob>,
    cadence: Cadence,
    cadence_since: Tick,
    repeats: InputRepeats,
    /// `None` until the frames sealed before the join have arrived.
    pace: Option<Pace>,
    needed: Tick,
    next_seal: Tick,
    has_arrived: bool,
    /// Whether there are inputs that no packet has carried yet.
    has_news: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frames {
    wanted: Tick,
    beyond: u128,
}

impl Frames {
    fn note(&mut self, tick: Tick) {
        if tick < self.wanted {
            return;
        }
        // A frame 128 ticks beyond the first missing one is forgotten; the server resends it once the gap is filled.
        self.beyond |= 1_u128.checked_shl(tick - self.wanted).unwrap_or(0);
        let come = self.beyond.trailing_ones();
        self.beyond = self.beyond.checked_shr(come).unwrap_or(0);
        self.wanted += come;
    }

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
    pub(crate) fn new(rules: &Seals, start: &Blob) -> Result<Self, digest::DigestError> {
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
        let (link, ack) = (&mut self.link, self.lane.poll_ack());
        match (&mut self.playing, ack) {
            (Some(playing), ack) => playing.write(now, link, ack, out)?,
            (None, Some(ack)) => hello::write_loading(now, link, &ack, out)?,
            (None, None) => hello::write(now, link, &self.hello, out)?,
        };
        Ok(())
    }
}

impl Plays for BareSession {
    fn handle(&mut self, now: Duration, bytes: &[u8]) -> Result<(), Failed> {
        let header = match DownPacket::open(bytes, &self.link)? {
            DownPacket::Closed(body) => return Err(closed::read(body)?.into()),
            DownPacket::Lane(header, _) | DownPacket::Play(header, _) if header.repeated => header,
            DownPacket::Lane(header, chunk) => {
                self.lane.handle(chunk)?;
                header
            }
            DownPacket::Play(header, body) => {
                // Before the session has joined, these packets are not for it.
                if let Some(playing) = &mut self.playing {
                    playing.read(body)?;
                    self.link.note(now, header);
                    if header.newest {
                        playing.take_report(now, self.link.rtt().unwrap_or_default());
                    }
                    return Ok(());
                }
                header
            }
        };
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
            leave::write(now, &mut self.link, &mut out).ok()?;
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

impl Playing {
    fn new(welcome: &Welcome, tick: Tick, cadence: Cadence) -> Playing {
        Playing {
            packet: PlayDown::default(),
            frames: Frames {
                wanted: tick,
                beyond: 0,
            },
            actions: LocalActions::new(welcome.seats.clone(), &welcome.next_seq),
            cadence,
            cadence_since: tick,
            repeats: InputRepeats::default(),
            pace: None,
            needed: tick,
            next_seal: tick,
            has_arrived: false,
            // The join itself must be acknowledged.
            has_news: true,
        }
    }

    fn read(&mut self, body: PacketBody<'_, DownPart>) -> Result<(), WireError> {
        let near = DownContext {
            next_seal: self.next_seal,
            next_turn: None,
            wanted: self.frames.wanted,
            seats: self.actions.seats().len(),
            own: self.actions.players(),
        };
        let actions = &self.actions;
        let sent = |player, tick| actions.input_of(player, tick);
        self.packet.read(body, &near, sent)?;
        for frame in self.packet.frames() {
            self.frames.note(frame.tick);
            let sound = frame.cadence.filter(|cadence| cadence.is_sound());
            // An old frame may arrive again after newer ones.
            if let Some(newer) = sound.filter(|_| frame.tick >= self.cadence_since) {
                (self.cadence, self.cadence_since) = (newer, frame.tick);
            }
        }
        self.has_arrived = true;
        Ok(())
    }

    fn take_report(&mut self, now: Duration, rtt: Duration) {
        let status = &self.packet.status;
        self.next_seal = status.next_seal;
        self.needed = status.next_seal + u32::from(status.unbroken);
        self.repeats.record_sealing(now, status.next_seal);
        let Some(pace) = &mut self.pace else { return };
        match status.margin {
            i8::MIN => pace.report_nothing(now, rtt),
            margin => {
                let newest_held = status.next_seal.0.saturating_add_signed(margin.into());
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
        // Every frame that has arrived counts as confirmed immediately.
        let beat = pace.advance(now, wanted, wanted);
        self.actions.skip_to(beat.first);
        for _ in beat.first.0..beat.end.0 {
            self.actions.sample(|_| pads.next());
        }
        self.has_news |= beat.end > beat.first;
    }

    fn write(
        &mut self,
        now: Duration,
        link: &mut LinkState,
        ack: Option<LaneAck>,
        out: &mut Writer<'_>,
    ) -> Result<ByteCounts, WireError> {
        self.has_news = false;
        let wanted = self.frames.wanted;
        // No confirmation is pending, this machine is not busy, and late turns are not reported.
        let status = UpStatus {
            wanted,
            view: wanted,
            ..UpStatus::default()
        };
        let mut packet = PlayUpWriter::begin(now, link, status, out)?;
        let notes = UpNotes {
            lossy: self.repeats.marks_lossy(now, link),
            gaps: self.frames.gaps(),
            ..UpNotes::default()
        };
        let end = self.actions.next().min(wanted + INPUT_WINDOW);
        let again = self.repeats.first_to_repeat(now, link, self.cadence.tick());
        let lacks = self.needed.max(self.actions.first_input_tick()).max(wanted);
        let (neutral, actions) = (Pad::default(), &self.actions);
        let input = |seat, tick| actions.input(seat, tick).unwrap_or(&neutral);
        packet.inputs((lacks.max(again), end), 1, input, 0);
        self.repeats.record_sent(now, end, true);
        if let Some(ack) = ack {
            packet.lane_ack(&ack)?;
        }
        packet.rare(&notes, iter::empty::<(_, _, &Never)>())?;
        Ok(packet.end())
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
        // The farthest remembered frame, and one beyond it.
        assert_eq!(frames(&[227]), (100, vec![(100, 227)]));
        assert_eq!(frames(&[228]), (100, vec![]));
        let all: Vec<u32> = (101..228).chain([100, 228]).collect();
        assert_eq!(frames(&all), (229, vec![]));
    }
}
