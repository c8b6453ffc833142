use alloc::vec;

use proptest::collection;
use proptest::prelude::*;
use twinstep_core::bounds::{PACKET_BYTES_MAX, PLAYERS_MAX};
use twinstep_core::testing::doc::Echo;

use super::*;
use crate::packet::presence::LinkQuality;
use crate::packet::refusal::CommandRefusal;
use crate::packet::tests::frame_strategy;
use crate::packet::{DownPacket, OUTER_BYTES};

const SEALING: Tick = Tick(70_000);
const OWN: PlayerSet = PlayerSet(0b11);

#[derive(Clone, Debug)]
struct Content {
    status: DownStatus,
    frames: Vec<FrameData<Echo>>,
    digest: Option<(Tick, u64)>,
    announced: Vec<Option<u8>>,
}

fn near(status: &DownStatus) -> DownContext {
    DownContext {
        next_seal: SEALING.back(20),
        next_turn: status.next_turn.map(|_| 9_000),
        wanted: Tick(100),
        seats: 2,
        own: OWN,
    }
}

fn status() -> impl Strategy<Value = DownStatus> {
    let head = (
        0u32..99,
        any::<i8>(),
        any::<u8>(),
        proptest::option::of(9_000u32..9_099),
    );
    let rare = (
        any::<u16>(),
        proptest::option::of(any::<u16>()),
        any::<Option<u32>>(),
    );
    let fates = (
        any::<Option<[u32; 2]>>(),
        collection::vec((0usize..4, any::<bool>(), any::<u32>()), 0..5),
    );
    (head, rare, fates).prop_map(|(head, rare, fates)| {
        let (waiting, presence, ack) = rare;
        let presence = presence.map(|here| {
            let here = PlayerSet(here);
            let mut links = [LinkQuality::default(); PLAYERS_MAX];
            for player in here.iter() {
                links[player.index()] = LinkQuality {
                    rtt_ms: 4 * u16::from(player.0),
                    loss_percent: player.0,
                    margin_ticks: -3,
                };
            }
            PresenceUpdate { here, links }
        });
        let refusals = fates.1.into_iter().map(|(seat, claim, seq)| OrderRefusal {
            seat,
            claim,
            seq,
            why: CommandRefusal::Referee(seq as u16),
        });
        DownStatus {
            next_seal: SEALING.back(head.0),
            margin: head.1,
            unbroken: head.2,
            next_turn: head.3,
            waiting: PlayerSet(waiting),
            presence,
            lane_ack: ack.map(LaneAck::all_before),
            command_acks: fates.0.into_iter().flatten().collect(),
            refusals: refusals.collect(),
        }
    })
}

fn content() -> impl Strategy<Value = Content> {
    let digest = proptest::option::of((1u32..200, any::<u64>()));
    let announced = collection::vec(any::<Option<u8>>(), 0..5);
    (
        status(),
        collection::vec(frame_strategy(), 0..7),
        digest,
        announced,
    )
        .prop_map(|(status, mut frames, digest, announced)| {
            for (tick, frame) in (100..).zip(&mut frames) {
                frame.tick = Tick(tick);
            }
            let end = Tick(100 + frames.len() as u32);
            let digest = digest.map(|(age, digest)| (end.back(age.min(end.0)), digest));
            Content {
                status,
                frames,
                digest,
                announced,
            }
        })
}

type Inputs = Vec<(PlayerId, Tick, u8)>;
type Commands = Vec<(Tick, Order<u8>)>;

/// The expected announcements: the inputs of player 2, if it is present, and its command at the first tick.
fn announced(content: &Content) -> (Inputs, Commands) {
    let last = content.frames.last();
    let Some(last) = last.filter(|last| last.inputs.get(PlayerId(2)).is_some()) else {
        return Default::default();
    };
    let input =
        |(ahead, held): (u32, &Option<u8>)| Some((PlayerId(2), last.tick + ahead, (*held)?));
    let order = Order {
        player: PlayerId(2),
        seq: 3,
        command: 9,
    };
    let commands = content.announced.first().map(|_| (last.tick + 1, order));
    let inputs = (1..).zip(&content.announced).filter_map(input);
    (inputs.collect(), commands.into_iter().collect())
}

fn write(content: &Content) -> Vec<u8> {
    let mut bytes = vec![0; 8 * PACKET_BYTES_MAX];
    let mut out = Writer::new(&mut bytes);
    let (now, mut link) = (Duration::ZERO, LinkState::default());
    let packet = PlayDownWriter::begin(now, &mut link, &content.status, &mut out).unwrap();
    let counts = if let Some(last) = content.frames.last() {
        let mut frames = packet.frames();
        let mut before = last;
        for frame in &content.frames {
            // The client's own input is the one it sent, unless the server filled it.
            let as_sent = OWN.without(frame.filled);
            assert!(frames.push(before, frame, OWN, as_sent));
            before = frame;
        }
        let mut packet = frames.end(Tick(100), content.digest);
        let (inputs, commands) = announced(content);
        let ticks = match commands.is_empty() {
            true => 0,
            false => content.announced.len() as u32,
        };
        let input = |player, tick| {
            let at = inputs.iter().find(|(p, t, _)| (*p, *t) == (player, tick));
            at.map(|(_, _, input)| input)
        };
        let due = |tick, each: &mut dyn FnMut(&Order<u8>)| {
            commands
                .iter()
                .filter(|(at, _)| *at == tick)
                .for_each(|(_, order)| each(order));
        };
        packet.announce(last, OWN, ticks, input, due);
        packet.end()
    } else {
        packet.end()
    };
    let len = out.len();
    assert_eq!(counts.total(), len as u64 + OUTER_BYTES);
    bytes.truncate(len);
    bytes
}

fn read(bytes: &[u8], content: &Content, play: &mut PlayDown<Echo>) -> Result<(), WireError> {
    let sent = |player, tick: Tick| {
        let frame = content.frames.get((tick.0 - 100) as usize)?;
        frame.inputs.get(player)
    };
    match DownPacket::open(bytes, &LinkState::default())? {
        DownPacket::Play(_, body) => play.read(body, &near(&content.status), sent),
        _ => Err(WireError::Malformed("another kind")),
    }
}

proptest! {
    #[test]
    fn a_packet_survives_a_round_trip_and_a_truncated_one_is_an_error(content in content()) {
        let bytes = write(&content);
        let mut play = PlayDown::default();
        for _ in 0..2 {
            read(&bytes, &content, &mut play).unwrap();
            prop_assert_eq!(&play.status, &content.status);
            prop_assert_eq!(play.frames(), &content.frames[..]);
            for (read, written) in play.frames().iter().zip(&content.frames) {
                prop_assert_eq!(read.filled, written.filled);
            }
            prop_assert_eq!(play.has_frames, !content.frames.is_empty());
            let digest = content.digest.filter(|_| play.has_frames);
            prop_assert_eq!(play.digest, digest.map(|(tick, digest)| (tick, digest as u32)));
            let (inputs, commands) = announced(&content);
            prop_assert_eq!(&play.inputs, &inputs);
            prop_assert_eq!(&play.commands, &commands);
            for short in 0..bytes.len() {
                let cut = read(&bytes[..short], &content, &mut play);
                prop_assert!(cut.is_err(), "{short} of {} bytes", bytes.len());
            }
        }
        let mut longer = bytes;
        longer.push(0);
        prop_assert!(read(&longer, &content, &mut play).is_err());
    }

    #[test]
    fn random_bytes_give_an_error_or_a_bounded_packet(
        mut bytes in collection::vec(any::<u8>(), 4..600), parts in 0u8..32, content in content(),
    ) {
        bytes[0] = DownKind::Play as u8 | parts << 3;
        let body = match DownPacket::open(&bytes, &LinkState::default()) {
            Ok(DownPacket::Play(_, body)) => body,
            _ => return Ok(()),
        };
        let mut play = PlayDown::<Echo>::default();
        if play.read(body, &near(&content.status), |_, _| Some(&3)).is_ok() {
            prop_assert!(play.frames().len() <= frames::RUN_FRAMES_MAX);
            prop_assert!(play.status.next_turn.is_none_or(|turn| turn <= COUNT_MAX));
        }
    }
}

/// A spectator's packet copies the frames of another packet, and their counts.
#[test]
fn copied_frames_produce_the_same_packet() {
    let mut frame = FrameData::<Echo>::empty(Tick(100));
    frame.inputs.set(PlayerId(3), Some(4));
    let status = DownStatus::default();
    let (mut first, mut second) = ([0; 200], [0; 200]);
    let mut out = Writer::new(&mut first);
    let (now, link) = (Duration::ZERO, LinkState::default());
    let packet = PlayDownWriter::begin(now, &mut link.clone(), &status, &mut out).unwrap();
    let mut frames = packet.frames();
    let no_players = PlayerSet::default();
    assert!(frames.push(&frame, &frame, no_players, no_players));
    let mut packet = frames.end(Tick(100), Some((Tick(101), 7)));
    let (run, spent) = packet.frames();
    let mut copy = Writer::new(&mut second);
    let other = PlayDownWriter::begin(now, &mut link.clone(), &status, &mut copy).unwrap();
    let other = other.frames().copy(run, spent).unwrap();
    assert_eq!(other.end(), packet.end());
    assert_eq!(first, second);
}

/// A frame that would leave no space for a digest goes into the next packet; a packet without frames does not have a
/// part for frames.
#[test]
fn frames_end_when_the_packet_is_full() {
    let mut frame = FrameData::<Echo>::empty(Tick(100));
    frame.inputs.set(PlayerId(3), Some(4));
    let no_players = PlayerSet::default();
    let status = DownStatus::default();
    for size in 11..40 {
        let mut bytes = vec![0; size];
        let mut out = Writer::new(&mut bytes);
        let mut link = LinkState::default();
        let packet = PlayDownWriter::begin(Duration::ZERO, &mut link, &status, &mut out).unwrap();
        let mut frames = packet.frames();
        let room = frames.room();
        let count = (0..99)
            .take_while(|_| frames.push(&frame, &frame, no_players, no_players))
            .count();
        // A run starts with 4 bytes, its first frame takes 2, an unchanged frame 1, a digest 5.
        assert_eq!(count, (room + 1).saturating_sub(4 + 2 + 5), "{room} bytes");
        let counts = frames.end(Tick(100), Some((Tick(100), 1))).end();
        let len = out.len();
        assert_eq!(counts.total(), len as u64 + OUTER_BYTES);
        let read = DownPacket::open(&bytes[..len], &LinkState::default());
        let Ok(DownPacket::Play(_, body)) = read else {
            panic!("another kind");
        };
        assert_eq!(body.parts.has(DownPart::Frames), count > 0);
    }
}
