use alloc::vec;
use core::iter;

use proptest::collection;
use proptest::prelude::*;
use twinstep_core::Never;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::testing::doc::Echo;

use super::*;
use crate::packet::UpPacket;

const NEXT: Tick = Tick(70_000);
const TURN: u32 = 9_000;
const PLAYERS: [PlayerId; 2] = [PlayerId(2), PlayerId(5)];

#[derive(Clone, Debug)]
struct Content {
    delay: u8,
    status: UpStatus,
    /// The held values by tick, or by turn with a command delay, then by seat.
    held: Vec<[u8; 2]>,
    commands: Vec<CommandUp<u8>>,
    claims: Vec<ClaimUp<u8>>,
    ack: Option<LaneAck>,
    notes: UpNotes,
    answers: Vec<(PlayerId, Answer<u8>)>,
}

fn near(delay: u8) -> UpContext<'static> {
    UpContext {
        wanted: NEXT.back(30),
        next: NEXT,
        turn: TURN,
        command_delay: delay,
        players: &PLAYERS,
    }
}

fn content() -> impl Strategy<Value = Content> {
    let status = (0u32..40, 0u32..=255, 0u8..16, 0u8..16).prop_map(|(back, shown, load, late)| {
        let wanted = NEXT.back(back);
        UpStatus {
            wanted,
            view: wanted.back(shown),
            load,
            late_turns: late,
        }
    });
    let command = (
        0usize..2,
        any::<u32>(),
        0u32..50,
        any::<bool>(),
        any::<u8>(),
    );
    let claim = (0usize..2, 0u32..50, any::<u8>());
    let answer = (0usize..2, 0u32..300, any::<u8>());
    let tick = || proptest::option::of(any::<u32>().prop_map(Tick));
    let gaps = collection::vec((1u32..50, 1u32..50), 0..=gaps::GAPS_MAX);
    let held = collection::vec(any::<[u8; 2]>(), 0..=BATCHES_MAX);
    let lists = (
        collection::vec(command, 0..9),
        collection::vec(claim, 0..9),
        collection::vec(answer, 0..9),
    );
    let rare = (tick(), tick(), gaps, any::<[bool; 2]>());
    let all = (
        any::<bool>(),
        status,
        held,
        lists,
        any::<Option<u32>>(),
        rare,
    );
    all.prop_map(|(lockstep, status, held, lists, ack, rare)| {
        let (commands, claims, answers) = lists;
        let delay = if lockstep { 40 } else { 0 };
        let commands = commands
            .into_iter()
            .map(|(seat, seq, ahead, is_oldest, command)| CommandUp {
                seat,
                seq,
                stamp: if lockstep {
                    Tick(TURN + ahead.min(40))
                } else {
                    NEXT.back(9) + ahead
                },
                settled_from: if is_oldest { 0 } else { seq },
                command,
            });
        let claims = claims.into_iter().map(|(seat, back, command)| ClaimUp {
            seat,
            tick: NEXT.back(back),
            command,
        });
        let answers = answers.into_iter().map(|(seat, ago, outcome)| {
            let answer = Answer {
                asked: status.wanted.back(ago),
                key: Key::player(PLAYERS[seat], ago),
                outcome: Some(outcome),
            };
            (PLAYERS[seat], answer)
        });
        let mut end = status.wanted;
        let (heal, evidence, gaps, [lossy, rests]) = rare;
        let gaps = gaps.into_iter().map(|(before, ticks)| {
            let first = end + before;
            end = first + ticks;
            (first, end)
        });
        Content {
            delay,
            status,
            held,
            commands: commands.collect(),
            claims: claims.collect(),
            ack: ack.map(LaneAck::all_before),
            notes: UpNotes {
                heal,
                evidence,
                gaps: gaps.collect(),
                lossy,
                rests,
            },
            answers: answers.collect(),
        }
    })
}

fn write(content: &Content) -> Vec<u8> {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut out = Writer::new(&mut bytes);
    let (now, mut link) = (Duration::ZERO, LinkState::default());
    let mut packet = PlayUpWriter::begin(now, &mut link, content.status, &mut out).unwrap();
    let (wanted, held) = (content.status.wanted, &content.held);
    let ticks = held.len() as u32;
    if content.delay == 0 {
        let input = |seat: usize, tick: Tick| &held[(tick - wanted) as usize][seat];
        assert_eq!(packet.inputs((wanted, wanted + ticks), 2, input, 0), wanted);
    }
    let commands = content.commands.iter().map(|given| CommandUp {
        seat: given.seat,
        seq: given.seq,
        stamp: given.stamp,
        settled_from: given.settled_from,
        command: &given.command,
    });
    assert_eq!(packet.commands(commands, 0), None);
    let claims = content.claims.iter().map(|claim| ClaimUp {
        seat: claim.seat,
        tick: claim.tick,
        command: &claim.command,
    });
    packet.claims(claims, 0);
    if content.delay > 0 {
        let input = |seat: usize, turn: u32| &held[(turn - TURN) as usize][seat];
        assert_eq!(packet.batches(TURN, held.len(), 2, input, 0), held.len());
    }
    if let Some(ack) = &content.ack {
        packet.lane_ack(ack).unwrap();
    }
    let answers = content.answers.iter();
    let answers =
        answers.map(|(_, answer)| (answer.asked, answer.key, answer.outcome.as_ref().unwrap()));
    packet.rare(&content.notes, answers).unwrap();
    let counts = packet.end();
    let len = out.len();
    assert_eq!(counts.total(), len as u64 + crate::packet::OUTER_BYTES);
    bytes.truncate(len);
    bytes
}

fn read(bytes: &[u8], delay: u8) -> Result<PlayUp<Echo>, WireError> {
    let packet = UpPacket::open(bytes, &LinkState::default())?;
    if packet.kind != UpKind::Play {
        return Err(WireError::Malformed("another kind"));
    }
    let mut play = PlayUp::default();
    play.read(packet.body, &near(delay)).map(|()| play)
}

proptest! {
    #[test]
    fn a_packet_survives_a_round_trip_and_a_truncated_one_is_an_error(content in content()) {
        let bytes = write(&content);
        let play = read(&bytes, content.delay).unwrap();
        prop_assert_eq!(play.status, content.status);
        let start = if content.delay > 0 { TURN } else { content.status.wanted.0 };
        let held: Vec<_> = (start..)
            .zip(&content.held)
            .flat_map(|(at, held)| (0..2).map(move |seat| (seat, at, held[seat])))
            .collect();
        let inputs = play.inputs.iter().map(|(seat, tick, input)| (*seat, tick.0, *input));
        prop_assert_eq!(inputs.chain(play.batches.iter().copied()).collect::<Vec<_>>(), held);
        prop_assert_eq!(play.batches.is_empty(), content.delay == 0 || content.held.is_empty());
        prop_assert_eq!(play.commands, content.commands);
        prop_assert_eq!(play.claims, content.claims);
        prop_assert_eq!(play.lane_ack, content.ack);
        prop_assert_eq!(play.notes, content.notes);
        prop_assert_eq!(play.answers, content.answers);
        for short in 0..bytes.len() {
            prop_assert!(read(&bytes[..short], content.delay).is_err(), "{short} of {} bytes", bytes.len());
        }
        let mut longer = bytes;
        longer.push(0);
        prop_assert!(read(&longer, content.delay).is_err());
    }

    #[test]
    fn random_bytes_give_an_error_or_a_bounded_packet(
        mut bytes in collection::vec(any::<u8>(), 4..600), parts in 0u8..32, lockstep in any::<bool>(),
    ) {
        bytes[0] = UpKind::Play as u8 | parts << 3;
        if let Ok(play) = read(&bytes, if lockstep { 2 } else { 0 }) {
            prop_assert!(play.inputs.len() <= INPUT_WINDOW as usize * SEATS_MAX);
            prop_assert!(play.status.wanted <= NEXT);
            prop_assert!(play.commands.iter().all(|given| given.seat < PLAYERS.len()));
            prop_assert!(play.answers.iter().all(|(owner, _)| PLAYERS.contains(owner)));
        }
    }
}

/// Also checks that the first command left out is returned.
#[test]
fn lists_leave_the_requested_space_free() {
    let status = UpStatus::default();
    let values = [7u8; 100];
    let commands = || {
        values.iter().enumerate().map(|(at, command)| CommandUp {
            seat: 0,
            seq: at as u32,
            stamp: Tick(0),
            settled_from: at as u32,
            command,
        })
    };
    for size in 20..200 {
        let mut bytes = vec![0; size];
        let mut out = Writer::new(&mut bytes);
        let mut link = LinkState::default();
        let mut packet = PlayUpWriter::begin(Duration::ZERO, &mut link, status, &mut out).unwrap();
        let before = packet.packet.out().room();
        let left = packet.commands(commands(), 10).expect("not all fit");
        // A count, and 5 bytes per command.
        let fit = before.saturating_sub(1 + 10) / 5;
        assert_eq!(left.seq as usize, fit, "{size} bytes");
        let notes = UpNotes::default();
        packet
            .rare(&notes, iter::empty::<(_, _, &Never)>())
            .unwrap();
        let _ = packet.end();
        let len = out.len();
        let read = read(&bytes[..len], 0).unwrap();
        assert_eq!(read.commands.len(), fit);
    }
}

#[test]
#[should_panic(expected = "Inputs after Claims")]
fn a_part_out_of_order_panics() {
    let mut bytes = [0; 64];
    let mut out = Writer::new(&mut bytes);
    let mut link = LinkState::default();
    let status = UpStatus::default();
    let mut packet = PlayUpWriter::begin(Duration::ZERO, &mut link, status, &mut out).unwrap();
    packet.claims(iter::empty::<ClaimUp<&u8>>(), 0);
    packet.inputs((Tick(0), Tick(1)), 1, |_, _| &0u8, 0);
}
