//! Parse, then act: a packet truncated or corrupted anywhere does not change the state.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twinstep_core::bounds::{COUNT_MAX, PACKET_BYTES_MAX, PLAYERS_MAX};
use twinstep_core::frame::{FrameData, Order, Perspective};
use twinstep_core::turn::Cadence;
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Effects, Frame, Never, PlayerId, PlayerSet, RosterChange, codec};
use twinstep_protocol::lane::LaneAck;
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::hello::{Basis, Welcome, WorldId};
use twinstep_protocol::packet::play_down::PlayDownWriter;
use twinstep_protocol::packet::presence::LinkQuality;
use twinstep_protocol::packet::presence::PresenceUpdate;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::{chunk, message};
use twinstep_protocol::varint;
use twinstep_protocol::wire::{Reader, Writer};

use super::*;
use crate::SessionConfig;
use crate::picture::NoPicture;

mod absurd;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct LocalActions(Vec<u8>);

impl Simulation for LocalActions {
    const NAME: &'static str = "orders";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = u8;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0.extend(frame.commands().map(|(_, order)| *order));
    }
}

const OWN: PlayerSet = PlayerSet(0b01);
const MS: Duration = Duration::from_millis(1);

struct Table {
    session: Session<LocalActions, NoPicture>,
    server: LinkState,
    now: Duration,
}

impl Table {
    fn greeting() -> Table {
        Table {
            session: Session::new(SessionConfig::new(Arc::new(()))).unwrap(),
            server: LinkState::default(),
            now: MS,
        }
    }

    /// A match with players 0 (this session's) and 1. A command and a lane chunk are in flight.
    fn new() -> Table {
        let mut world = World::new(LocalActions::default(), Tick(0));
        let mut first = FrameData::empty(Tick(0));
        for player in [PlayerId(0), PlayerId(1)] {
            first.roster.push((player, RosterChange::Joined));
            first.inputs.set(player, Some(0));
        }
        let perspective = Perspective::authority(Tick(0));
        Stepper::default()
            .step(&mut world, &first, &(), perspective, PlayerSet::default())
            .unwrap();
        let welcome = Welcome {
            seats: [PlayerId(0)].into_iter().collect(),
            next_seq: [0].into_iter().collect(),
            command_delay: 0,
            owners_answer: false,
            basis: Basis::World {
                world: WorldId::of(Tick(0), &[]),
                from: 0,
            },
        };
        let mut table = Table::greeting();
        table.send_chunk(0, message::WELCOME, &welcome);
        table.send_chunk(1, message::WORLD, &world);
        let packet = table.packet(Tick(1), false);
        table.session.handle(table.now, &packet);
        table.frame();
        table.session.command(0, 7).unwrap();
        let report = vec![b'x'; 10].into();
        table
            .session
            .lane_out
            .push(message::REPORT, report)
            .unwrap();
        table.frame();
        assert_eq!(table.session.stats().malformed, 0);
        table
    }

    fn send_chunk(&mut self, seq: u32, kind: u8, value: &impl Serialize) {
        let mut body = Vec::new();
        codec::append(value, &mut body).unwrap();
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        let mut chunk = varint::encode(u64::from(seq)).to_vec();
        chunk.push(kind);
        chunk.extend(varint::encode(body.len() as u64));
        chunk.extend(body);
        chunk::write_down(self.now, &mut self.server, &chunk, &mut out).unwrap();
        let len = out.len();
        self.session.handle(self.now, &bytes[..len]);
    }

    fn frame(&mut self) {
        self.now += 20 * MS;
        self.session.advance(self.now, 16, |_| 3).unwrap();
        let mut bytes = [0; PACKET_BYTES_MAX];
        while let Some(len) = self.session.poll_transmit(self.now, &mut bytes) {
            let mut packet = Reader::new(&bytes[1..len]);
            let header = self.server.parse(&mut packet).unwrap();
            self.server.note(self.now, header);
        }
    }

    fn packet(&mut self, first: Tick, all: bool) -> Vec<u8> {
        let mut status = DownStatus {
            next_seal: first + 2,
            margin: 3,
            unbroken: 1,
            ..DownStatus::default()
        };
        if all {
            status.waiting = PlayerSet(0b10);
            let link = LinkQuality {
                rtt_ms: 40,
                ..LinkQuality::default()
            };
            status.presence = Some(PresenceUpdate {
                here: PlayerSet(0b11),
                links: [link; PLAYERS_MAX],
            });
            // The lane's first chunk has arrived; so has command 0, which is refused.
            status.lane_ack = Some(LaneAck::all_before(1));
            status.command_acks.push(1);
            status.refusals.push(OrderRefusal {
                seat: 0,
                claim: false,
                seq: 0,
                why: CommandRefusal::Referee(0),
            });
        }
        let frames = [first, first + 1].map(|tick| {
            let mut frame = FrameData::empty(tick);
            frame.inputs.set(PlayerId(0), Some(0));
            frame.inputs.set(PlayerId(1), Some(tick.0 as u8));
            frame.filled = OWN;
            frame
        });
        let order = Order {
            player: PlayerId(1),
            seq: 0,
            command: 9,
        };
        // The digest is of an earlier world, so it is not compared.
        self.play(&status, &frames, 200, all.then_some(&order))
    }

    /// A packet of frames, with a digest taken `age` ticks before their end, and optionally a command announced for two
    /// ticks later.
    fn play(
        &mut self,
        status: &DownStatus,
        frames: &[FrameData<LocalActions>],
        age: u8,
        announced: Option<&Order<u8>>,
    ) -> Vec<u8> {
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        let (now, link) = (self.now, &mut self.server);
        let packet = PlayDownWriter::begin(now, link, status, &mut out).unwrap();
        let mut packet = packet.frames();
        let mut last = &frames[0];
        for frame in frames {
            assert!(packet.push(last, frame, OWN, PlayerSet::default()));
            last = frame;
        }
        // A digest is written by its age, so any tick numbers will do.
        let end = Tick(1_000);
        let digest = (age > 0).then(|| (end.back(age.into()), 0));
        let mut packet = packet.end(end.back(frames.len() as u32), digest);
        if let Some(order) = announced {
            let commands = |_, each: &mut dyn FnMut(&Order<u8>)| each(order);
            packet.announce(last, OWN, 2, |_, _| Some(&200), commands);
        }
        let _ = packet.end();
        let len = out.len();
        bytes.truncate(len);
        bytes
    }

    fn state(&self) -> String {
        let session = &self.session;
        let playing = session.stage.playing().unwrap();
        let actions = playing.replica.timeline.local_actions();
        let mut stats = session.stats();
        (stats.malformed, stats.down_packets, stats.down_bytes) = (0, 0, 0);
        format!(
            "{:?}",
            (
                &session.link,
                (session.match_status.next_seal(), session.outgoing.needed),
                (session.waiting(), session.presence()),
                session.lane_out.progress(),
                playing.replica.inbox.next(),
                (0..8)
                    .map(|tick| playing.replica.inbox.digest(Tick(tick)))
                    .collect::<Vec<_>>(),
                actions.unacknowledged().count(),
                actions.commands().count(),
                &playing.replica.meter,
                stats,
            )
        )
    }
}

/// Finding A16: state was changed before a malformed tail was detected.
#[test]
fn a_truncated_packet_does_not_change_the_state() {
    let mut table = Table::new();
    let packet = table.packet(Tick(3), true);
    let before = table.state();
    for len in 0..packet.len() {
        let read = table.session.read(table.now, &packet[..len]);
        assert!(read.is_err(), "{len} of {} bytes", packet.len());
        assert_eq!(table.state(), before, "{len} of {} bytes", packet.len());
    }
    let mut longer = packet.clone();
    longer.push(0);
    assert!(table.session.read(table.now, &longer).is_err());
    assert_eq!(table.state(), before);
    table.session.read(table.now, &packet).unwrap();
    let playing = table.session.stage.playing().unwrap();
    assert_eq!(playing.replica.inbox.next(), Tick(5));
    assert_eq!(
        playing.replica.timeline.local_actions().commands().count(),
        0,
        "refused"
    );
    assert_eq!(table.session.waiting(), PlayerSet(0b10));
    assert!(table.session.lane_out.is_idle());
}

#[test]
fn a_corrupted_packet_is_valid_or_does_not_change_the_state() {
    let (mut wrong, mut right) = (0, 0);
    let mut table = Table::new();
    for at in 0..table.packet(Tick(3), true).len() {
        for bit in 0..8 {
            let mut packet = table.packet(Tick(3), true);
            packet[at] ^= 1 << bit;
            let before = table.state();
            if table.session.read(table.now, &packet).is_err() {
                wrong += 1;
                assert_eq!(table.state(), before, "bit {bit} of byte {at}");
            } else {
                right += 1;
                table = Table::new();
            }
        }
    }
    println!("{wrong} were no packets, {right} were others");
    assert!(wrong > 50 && right > 50);
}

/// Law Hostile wire: a session does not start from a world that it does not have, or at a tick that does not exist.
#[test]
fn a_session_starts_only_from_a_world_that_it_has() {
    let begins = |start: Option<LocalActions>, basis: Basis| {
        let mut config = SessionConfig::new(Arc::new(()));
        config.start = start;
        let mut table = Table {
            session: Session::new(config).unwrap(),
            server: LinkState::default(),
            now: MS,
        };
        let welcome = Welcome {
            seats: [PlayerId(0)].into_iter().collect(),
            next_seq: [0].into_iter().collect(),
            command_delay: 0,
            owners_answer: false,
            basis,
        };
        table.send_chunk(0, message::WELCOME, &welcome);
        assert_eq!(table.session.closed(), None);
        let began = table.session.authority().map(World::tick);
        assert_eq!(table.session.stats().malformed, u64::from(began.is_none()));
        began
    };
    let start = |tick| Basis::Start(Tick(tick), Cadence::DEFAULT);
    assert_eq!(begins(None, start(5)), None);
    assert_eq!(begins(None, Basis::Authority), None);
    let own = || Some(LocalActions::default());
    assert_eq!(begins(own(), start(5)), Some(Tick(5)));
    assert_eq!(begins(own(), Basis::Authority), None);
    assert_eq!(begins(own(), start(COUNT_MAX + 1)), None);
    // It also does not continue a world of which it has no part.
    let world = WorldId::of(Tick(0), &[]);
    assert_eq!(begins(own(), Basis::World { world, from: 7 }), None);
}
