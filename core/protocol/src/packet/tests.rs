//! Frames decode to the encoded values, and garbage is an error.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::ByteCounts;
use super::frames::{self, RunReader};
use super::large;
use super::play_up::{CommandUp, UpContext};
use crate::wire::{Reader, Writer};
use twinstep_core::frame::{Answer, Fragment, FrameData, LargeEntry, Order, PlayerSet};
use twinstep_core::testing::doc::Echo;
use twinstep_core::{Key, PlayerId, RosterChange, Tick};

pub(super) fn frame_strategy() -> impl Strategy<Value = FrameData<Echo>> {
    let inputs = proptest::collection::btree_map(0u8..6, 0u8..3, 0..6);
    let commands = proptest::collection::btree_map((0u8..6, 0u32..300), any::<u8>(), 0..3);
    let claims = proptest::collection::btree_map((0u8..6, 0u32..300), any::<u8>(), 0..2);
    let outcomes =
        proptest::collection::btree_map((0u32..9, any::<u64>()), any::<Option<u8>>(), 0..3);
    let roster = proptest::collection::btree_map(0u8..16, Just(RosterChange::Joined), 0..2);
    let bytes = proptest::collection::vec(any::<u8>(), 1..40);
    let fragments =
        proptest::collection::btree_map(0u8..6, (0u32..9_000, 1u32..9_000, bytes), 0..3);
    let lists = (claims, outcomes, fragments);
    (inputs, commands, lists, roster, any::<u16>()).prop_map(
        |(inputs, commands, (claims, outcomes, fragments), roster, filled)| {
            let order = |((player, seq), command): ((u8, u32), u8)| Order {
                player: PlayerId(player),
                seq,
                command,
            };
            let mut frame = FrameData::empty(Tick(0));
            for (player, input) in inputs {
                frame.inputs.set(PlayerId(player), Some(input));
            }
            frame.commands = commands.into_iter().map(order).collect();
            frame.claims = claims.into_iter().map(order).collect();
            let fragments = fragments.into_iter();
            frame.fragments = fragments
                .map(|(player, (from, left, bytes))| Fragment {
                    entry: LargeEntry::Command {
                        player: PlayerId(player),
                        seq: from,
                    },
                    from,
                    left,
                    bytes,
                })
                .collect();
            frame.outcomes = outcomes
                .into_iter()
                .map(|((ago, of), outcome)| Answer {
                    asked: Tick(100 - ago),
                    key: Key::new(of, ago),
                    outcome,
                })
                .collect();
            frame.outcomes.sort_by_key(|a| (a.asked, a.key));
            frame.roster = roster.into_iter().map(|(p, c)| (PlayerId(p), c)).collect();
            frame.filled = PlayerSet(filled & 0b11_1111);
            frame
        },
    )
}

fn encode(
    frames: &[FrameData<Echo>],
    own: PlayerSet,
    as_sent: impl Fn(Tick) -> PlayerSet,
) -> Vec<u8> {
    let mut bytes = alloc::vec![0; 64 << 10];
    let mut out = Writer::new(&mut bytes);
    let mut spent = ByteCounts::default();
    let run = frames::begin(&mut out, &frames[0]).unwrap();
    for (i, frame) in frames.iter().enumerate() {
        let previous = i.checked_sub(1).map(|i| &frames[i]);
        frames::write(
            &mut out,
            previous,
            frame,
            own,
            as_sent(frame.tick),
            &mut spent,
        )
        .unwrap();
    }
    frames::end(&mut out, &run, frames.len());
    let len = out.len();
    assert!(spent.total() <= len as u64);
    bytes.truncate(len);
    bytes
}

proptest! {
    #[test]
    fn a_run_of_frames_survives_a_round_trip(
        mut run in proptest::collection::vec(frame_strategy(), 1..20),
        own in any::<u16>(), kept in any::<u64>(),
    ) {
        for (i, frame) in run.iter_mut().enumerate() {
            frame.tick = Tick(100 + i as u32);
        }
        let own = PlayerSet(own & 0b11);
        let as_sent = |tick: Tick| if kept >> (tick.0 % 64) & 1 == 1 { own } else { PlayerSet(0) };
        let bytes = encode(&run, own, as_sent);
        let mut packet = Reader::new(&bytes);
        let mut reader = RunReader::<Echo>::default();
        reader.begin(&mut packet, Tick(90)).unwrap();
        let sent = |player, tick: Tick| run[(tick.0 - 100) as usize].inputs.get(player);
        let mut got = Vec::new();
        while reader.next(&mut packet, own, sent, |frame| got.push((frame.clone(), frame.filled))).unwrap() {}
        packet.end().unwrap();
        prop_assert_eq!(got.len(), run.len());
        for ((frame, filled), truth) in got.iter().zip(&run) {
            prop_assert_eq!(frame, truth);
            prop_assert_eq!(*filled, truth.filled);
            prop_assert_eq!(&frame.fragments, &truth.fragments);
        }
    }

    #[test]
    fn garbage_frames_are_an_error_or_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut packet = Reader::new(&bytes);
        let mut reader = RunReader::<Echo>::default();
        if reader.begin(&mut packet, Tick(7)).is_ok() {
            let held = 3u8;
            while let Ok(true) = reader.next(&mut packet, PlayerSet(1), |_, _| Some(&held), |frame| {
                assert!(frame.outcomes.len() <= 64 && frame.commands.len() <= 64);
                assert!(frame.fragments.iter().map(|f| f.bytes.len()).sum::<usize>() <= 600);
            }) {}
            let _ = reader.announced(&mut packet, PlayerSet(1), |_, _, _| {}, |_, _| {});
        }
    }

    #[test]
    fn random_bytes_give_an_error_or_a_bounded_large_command_or_answer(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let players = [PlayerId(3)];
        let near = UpContext { wanted: Tick(5), next: Tick(9), turn: 4, command_delay: 0, players: &players };
        if let Ok(given) = large::read_command::<u8>(&bytes, &near) {
            assert!(given.seat == 0 && given.stamp <= Tick(9) + 255);
        }
        if let Ok((player, answer)) = large::read_answer::<Echo>(&bytes, &players) {
            assert!(player == PlayerId(3) && answer.outcome.is_some());
        }
    }

    #[test]
    fn a_large_command_and_an_answer_survive_a_round_trip(seq: u32, value: u8, settled_from: u32, asked in 0u32..9) {
        let players = [PlayerId(3), PlayerId(5)];
        let near = UpContext { wanted: Tick(5), next: Tick(9), turn: 4, command_delay: 2, players: &players };
        let command = CommandUp { seat: 1, seq, stamp: Tick(6), settled_from, command: &[value.min(250)][..] };
        let message = large::write_command(&command);
        let CommandUp { seat, stamp, .. } = command;
        let read = large::read_command::<u8>(&message, &near).unwrap();
        prop_assert_eq!(read, CommandUp { seat, seq, stamp, settled_from, command: value.min(250) });
        let key = Key::player(PlayerId(5), seq);
        let message = large::write_answer(Tick(asked), key, &[7]);
        let answer = Answer { asked: Tick(asked), key, outcome: Some(7) };
        prop_assert_eq!(large::read_answer::<Echo>(&message, &players).unwrap(), (PlayerId(5), answer));
        prop_assert!(large::read_answer::<Echo>(&message, &players[..1]).is_err());
    }

    #[test]
    fn announcements_survive_a_round_trip(known in proptest::collection::vec(proptest::option::of(0u8..3), 4 * 8), ticks in 0u32..=8) {
        let mut last = FrameData::<Echo>::empty(Tick(50));
        for player in 0..4 {
            last.inputs.set(PlayerId(player), Some(1));
        }
        let own = PlayerSet(0b10);
        let at = |player: PlayerId, tick: Tick| known[player.index() * 8 + (tick.0 - 51) as usize].as_ref();
        let due = |tick: Tick| if tick.0.is_multiple_of(3) { Some(Order { player: PlayerId(2), seq: tick.0, command: 9u8 }) } else { None };
        let mut bytes = [0; 1_100];
        let mut out = Writer::new(&mut bytes);
        let run = frames::begin(&mut out, &last).unwrap();
        frames::write(&mut out, None, &last, own, own, &mut ByteCounts::default()).unwrap();
        frames::end(&mut out, &run, 1);
        frames::announce(&mut out, &last, own, ticks, at, |tick, each| if let Some(order) = due(tick) { each(&order) }).unwrap();
        let len = out.len();
        let mut packet = Reader::new(&bytes[..len]);
        let mut reader = RunReader::<Echo>::default();
        reader.begin(&mut packet, Tick(40)).unwrap();
        let held = 1u8;
        while reader.next(&mut packet, own, |_, _| Some(&held), |_| ()).unwrap() {}
        let (mut inputs, mut commands) = (Vec::new(), Vec::new());
        reader.announced(&mut packet, own, |p, t, i| inputs.push((t, p, *i)), |t, c| commands.push((t, c))).unwrap();
        packet.end().unwrap();
        let others = [PlayerId(0), PlayerId(2), PlayerId(3)];
        let expected: Vec<_> = (51..51 + ticks).map(Tick)
            .flat_map(|t| others.map(|p| (t, p)))
            .filter_map(|(t, p)| at(p, t).map(|i| (t, p, *i))).collect();
        prop_assert_eq!(inputs, expected);
        prop_assert_eq!(commands, (51..51 + ticks).filter_map(|t| due(Tick(t)).map(|o| (Tick(t), o))).collect::<Vec<_>>());
    }
}

/// Finding K3-L2: if one tick had more than 255 commands, none was announced.
#[test]
fn the_first_255_of_too_many_commands_are_announced() {
    let mut last = FrameData::<Echo>::empty(Tick(50));
    last.inputs.set(PlayerId(2), Some(1));
    let own = PlayerSet(0);
    let orders = |seq| Order {
        player: PlayerId(2),
        seq,
        command: 9u8,
    };
    let mut bytes = [0; 1_100];
    let mut out = Writer::new(&mut bytes);
    let run = frames::begin(&mut out, &last).unwrap();
    frames::write(&mut out, None, &last, own, own, &mut ByteCounts::default()).unwrap();
    frames::end(&mut out, &run, 1);
    let due =
        |_: Tick, each: &mut dyn FnMut(&Order<u8>)| (0..300).for_each(|seq| each(&orders(seq)));
    frames::announce(&mut out, &last, own, 1, |_, _| None, due).unwrap();
    let len = out.len();
    let mut packet = Reader::new(&bytes[..len]);
    let mut reader = RunReader::<Echo>::default();
    reader.begin(&mut packet, Tick(40)).unwrap();
    let held = 1u8;
    while reader
        .next(&mut packet, own, |_, _| Some(&held), |_| ())
        .unwrap()
    {}
    let mut commands = Vec::new();
    let announced = reader.announced(
        &mut packet,
        own,
        |_, _, _| (),
        |_, order| commands.push(order),
    );
    announced.unwrap();
    packet.end().unwrap();
    assert_eq!(commands, (0..255).map(orders).collect::<Vec<_>>());
}

#[test]
fn an_unchanged_frame_costs_one_byte() {
    let mut first = FrameData::<Echo>::empty(Tick(9));
    for player in 0..4 {
        first.inputs.set(PlayerId(player), Some(200));
    }
    let mut second = first.clone();
    second.tick = Tick(10);
    let one = encode(core::slice::from_ref(&first), PlayerSet(0), |_| {
        PlayerSet(0)
    })
    .len();
    assert_eq!(
        encode(&[first, second], PlayerSet(0), |_| PlayerSet(0)).len(),
        one + 1
    );
}
