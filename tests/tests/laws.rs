//! The laws, each with a test that names it.

use std::time::Duration;

use twinstep_core::bounds::{ACK_CLOSE_AFTER, ACK_SLOW_AFTER, COMMANDS_PER_TICK, FRAME_BYTES_MAX};
use twinstep_core::frame::{Answer, FrameData, Order, Perspective, PlayerSet};
use twinstep_core::testing::Solo;
use twinstep_core::world::{FrameError, Stepper};
use twinstep_core::{Key, Mwc, PlayerId, Tick, World};
use twinstep_protocol::packet::{ByteCounts, DownKind, DownPart, frames};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_protocol::wire::Writer;
use twinstep_rig::history::{Command, History, Pad};
use twinstep_rig::rig::{InputPattern, MUTE, Rig, RigConfig};
use twinstep_server::Output;

const SECOND: Duration = Duration::from_secs(1);

fn played(seed: u64, link: LinkProfile, seconds: u32) -> Rig<History> {
    let mut rig = Rig::new(RigConfig::new(seed, link));
    rig.run(SECOND * seconds);
    rig
}

/// Law Pure: the same frames produce the same states, bit for bit.
#[test]
fn the_same_frames_lead_to_the_same_states() {
    let play = || {
        let mut luck = Mwc::seed(5);
        let mut game = Solo::new(History::new(9), 7);
        game.join(PlayerId(0)).join(PlayerId(3));
        let mut digests = Vec::new();
        for n in 0..2_000 {
            game.hold(
                PlayerId(3),
                Pad {
                    stick: luck.below(5) as u8,
                    fire: luck.below(4) == 0,
                },
            );
            if luck.below(30) == 0 {
                game.command(PlayerId(0), Command::Note(n));
            }
            game.step();
            digests.push(game.world().digest().unwrap());
        }
        digests
    };
    assert_eq!(play(), play());
}

/// Law One way: however wrong a prediction is, the confirmed state is the server's. (The rig checks each tick.)
#[test]
fn wrong_predictions_never_reach_the_confirmed_state() {
    let rig = played(8, LinkProfile::BAD, 20);
    for i in 0..rig.clients.len() {
        let stats = rig.stats(i);
        assert!(
            stats.timeline.rebuilds > 300,
            "analog sticks are guessed wrong: {}",
            stats.timeline.rebuilds
        );
        let authority = rig.clients[i].session.authority().unwrap();
        assert_eq!(
            Some(authority.digest().unwrap()),
            rig.match_.digest_at(authority.tick())
        );
    }
}

/// Law Only on difference: a fill that was predicted correctly is not a difference. One player's link loses 40 % of its
/// upstream packets; no other client rebuilds because of that.
#[test]
fn a_correctly_filled_tick_does_not_cost_a_rebuild() {
    let mut config = RigConfig::new(6, LinkProfile::LAN);
    config.input_pattern = InputPattern::Still;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 3);
    let before: Vec<u64> = (0..4).map(|i| rig.stats(i).timeline.rebuilds).collect();
    let filled = rig.stats(0).fills;
    rig.relink(0, "rtt=60,jitter=60,loss=40/rtt=2".parse().unwrap());
    rig.run(SECOND * 20);
    assert!(
        rig.stats(0).fills > filled + 10,
        "the loss was felt: {} fills",
        rig.stats(0).fills - filled
    );
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(rig.stats(i).timeline.rebuilds, before, "client {i}");
    }
}

/// Law Stable names: keys that name causes survive wrong guesses, so few cues are cancelled.
#[test]
fn few_cues_are_cancelled() {
    let rig = played(2, LinkProfile::WAN, 30);
    let (mut started, mut cancelled) = (0, 0);
    for i in 0..rig.clients.len() {
        started += rig.stats(i).cues_started;
        cancelled += rig.stats(i).cues_cancelled;
    }
    println!("{cancelled} of {started} cues cancelled");
    assert!(started > 500);
    assert!(
        cancelled * 10 < started,
        "{cancelled} of {started} cues cancelled"
    );
}

/// Law Bounded: a client that never acknowledges gets few packets, and finally none.
#[test]
fn a_client_that_sends_no_acks_gets_fewer_packets_and_is_disconnected() {
    let mut rig = played(1, LinkProfile::LAN, 3);
    rig.relink(0, MUTE);
    let mut reported = |after, seconds| {
        rig.run(after);
        let before = rig.bytes_down(0).packets;
        rig.run(SECOND * seconds);
        rig.bytes_down(0).packets - before
    };
    // Each of the ten sends a second has at most 4 packets.
    let slow = reported(ACK_SLOW_AFTER + SECOND / 2, 2);
    assert!((16..=4 * 10 * 2).contains(&slow), "{slow} in 2 s");
    let sparse = reported(SECOND, 4);
    assert!((7..=2 * 4 * 4).contains(&sparse), "{sparse} in 4 s");
    rig.run(ACK_CLOSE_AFTER);
    assert_eq!(rig.match_.sessions(), 3);
}

/// Law Bounded: an unacknowledged lane does not block turns for a slow client.
#[test]
fn a_slow_client_receives_turns_next_to_a_busy_lane() {
    let mut rig = played(1, LinkProfile::LAN, 3);
    rig.relink(0, MUTE);
    rig.run(SECOND / 10);
    rig.match_.notify("the lane has something to say");
    rig.run(ACK_SLOW_AFTER + SECOND / 2);
    let before = rig.bytes_down(0);
    rig.run(2 * SECOND);
    let after = rig.bytes_down(0);
    assert!(after.bulk > before.bulk, "the lane is busy");
    // The same unacknowledged inputs, ten times a second.
    let turns = after.inputs - before.inputs;
    assert!(turns > 1_000, "{turns} bytes of inputs in 2 s");
}

/// Law Bounded: commands above the rate are refused, and their owner learns of each refusal.
#[test]
fn a_flood_of_commands_is_refused_with_a_reason() {
    let mut rig = played(1, LinkProfile::WAN, 3);
    rig.command(false);
    let mut given = 0;
    for n in 0..600u32 {
        rig.run(SECOND / 60);
        for i in 0..COMMANDS_PER_TICK as u32 {
            given += u64::from(
                rig.clients[0]
                    .session
                    .command(0, Command::Note(n * 17 * 4 + i * 17))
                    .is_ok(),
            );
        }
    }
    rig.run(SECOND * 5);
    let stats = rig.stats(0);
    let seat = rig.match_.seat_stats(PlayerId(0));
    assert!(
        seat.accepted <= 20 * 16 + 40,
        "{} accepted in 15 s",
        seat.accepted
    );
    assert!(
        stats.commands_refused > 100,
        "{} refused",
        stats.commands_refused
    );
    assert_eq!(
        stats.commands_sent,
        stats.commands_executed + stats.commands_refused
    );
    assert!(given > 300);
}

/// Law Bounded: the largest frame that can be sealed fits in `FRAME_BYTES_MAX`.
#[test]
fn the_largest_frame_fits_frame_bytes_max() {
    let mut rig = played(11, LinkProfile::PERFECT, 3);
    for n in 0..10u32 {
        for client in &mut rig.clients {
            for i in 0..COMMANDS_PER_TICK as u32 {
                let _ = client.session.command(0, Command::Note(n * 4 + i));
            }
        }
        rig.run(SECOND / 60);
    }
    rig.run(SECOND);
    let mut replay = Replay::<History>::open(&rig.journal, &7).unwrap();
    let mut largest = 0;
    while replay.step().unwrap() {
        let mut bytes = [0; 2 * FRAME_BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        let no_players = PlayerSet::default();
        frames::write(
            &mut out,
            None,
            replay.frame(),
            no_players,
            no_players,
            &mut ByteCounts::default(),
        )
        .unwrap();
        largest = largest.max(out.len());
    }
    assert!(
        largest > 60 && largest <= FRAME_BYTES_MAX,
        "{largest} bytes"
    );
}

/// Law Canonical: a frame with entries that are out of order, duplicated or misplaced is not stepped.
#[test]
fn a_frame_with_entries_out_of_order_is_refused_without_effect() {
    let mut world = World::new(History::new(1), Tick(0));
    let mut stepper = Stepper::default();
    let before = world.digest().unwrap();
    let mut step = |frame: &FrameData<History>, world: &mut World<History>| {
        stepper
            .step(
                world,
                frame,
                &7,
                Perspective::authority(Tick(0)),
                PlayerSet::default(),
            )
            .map(|_| ())
    };
    let order = |player, seq| Order {
        player: PlayerId(player),
        seq,
        command: Command::Note(seq),
    };
    let mut frame = FrameData::<History>::empty(Tick(0));
    frame.commands = vec![order(1, 0), order(0, 0)];
    assert_eq!(
        step(&frame, &mut world),
        Err(FrameError::NotCanonical(Tick(0)))
    );
    frame.commands = vec![order(0, 0)];
    assert!(
        matches!(step(&frame, &mut world), Err(FrameError::Roster { .. })),
        "no player is present"
    );
    frame.commands.clear();
    frame.outcomes = vec![Answer {
        asked: Tick(0),
        key: Key::new(1, 1),
        outcome: Some(3),
    }];
    assert!(matches!(
        step(&frame, &mut world),
        Err(FrameError::UnknownQuery { .. })
    ));
    frame.outcomes.clear();
    frame.tick = Tick(5);
    assert!(matches!(
        step(&frame, &mut world),
        Err(FrameError::OutOfTurn { .. })
    ));
    assert_eq!(world.digest().unwrap(), before);
}

/// Law Journal first: no packet contains a tick that is not yet in the journal.
#[test]
fn a_turn_is_written_before_any_client_receives_it() {
    let mut rig = played(3, LinkProfile::LAN, 1);
    // The rig drains in the same order; this test examines one of its turns.
    let mut reported = 0;
    for _ in 0..200 {
        rig.now += Duration::from_millis(5);
        let (now, turns) = (rig.now, rig.match_.stats().turns);
        rig.match_.advance(now);
        let mut written = turns == rig.match_.stats().turns;
        while let Some(output) = rig.match_.poll() {
            match output {
                Output::Journal(bytes) => written |= !bytes.is_empty(),
                Output::Packet { bytes, .. } => {
                    let (kind, parts) = DownKind::read(bytes[0]).unwrap();
                    if kind == DownKind::Play && parts.has(DownPart::Frames) {
                        assert!(written, "a packet left before its turn was written");
                        reported += 1;
                    }
                }
                _ => {}
            }
        }
    }
    assert!(reported > 100);
}
