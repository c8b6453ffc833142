use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::journal::{JournalError, WrittenBy, records};
use crate::packet::closed::CloseCode;
use twinstep_core::PlayerId;
use twinstep_core::RosterChange;
use twinstep_core::bounds::TURN_TICKS_MAX;
use twinstep_core::frame::Order;
use twinstep_core::testing::doc::Echo;
use twinstep_core::turn::Cadence;

fn hello() -> Hello {
    Hello::of::<Echo>(&(), "test build").unwrap()
}

struct Server {
    late: bool,
    world: World<Echo>,
    stepper: Stepper<Echo>,
    recorder: Recorder<Echo>,
    file: Vec<u8>,
    digests: Vec<u64>,
    seq: u32,
}

impl Server {
    fn start(tick: Tick) -> Server {
        Server::clocked(tick, TICK)
    }

    fn clocked(tick: Tick, length: Duration) -> Server {
        let cadence = Cadence {
            tick_ns: length.as_nanos() as u32,
            ..Cadence::DEFAULT
        };
        let world = World::new(Echo::default(), tick).clocked(cadence);
        let mut file = Vec::new();
        let recorder =
            Recorder::start(WrittenBy::Server, &hello(), 7, 0, &world, &mut file).unwrap();
        Server {
            late: false,
            digests: Vec::from([world.digest().unwrap()]),
            world,
            stepper: Stepper::default(),
            recorder,
            file,
            seq: 0,
        }
    }

    fn turn(&mut self, held: &[u8], order: Option<u8>) {
        for (n, held) in held.iter().enumerate() {
            let mut frame = FrameData::<Echo>::empty(self.world.tick());
            if self.world.seated().is_empty() {
                frame.roster.push((PlayerId(0), RosterChange::Joined));
            }
            frame.inputs.set(PlayerId(0), Some(*held));
            if let Some(command) = order.filter(|_| n == 0) {
                frame.commands.push(Order {
                    player: PlayerId(0),
                    seq: self.seq,
                    command,
                });
                self.seq += 1;
            }
            let perspective = Perspective::authority(frame.tick);
            self.stepper
                .step(
                    &mut self.world,
                    &frame,
                    &(),
                    perspective,
                    PlayerSet::default(),
                )
                .unwrap();
            self.recorder.frame(&frame);
            self.digests.push(self.world.digest().unwrap());
        }
        let digest = *self.digests.last().unwrap();
        let (recorder, world, file) = (&mut self.recorder, &self.world, &mut self.file);
        if !self.late {
            return recorder.turn(world, digest, file).unwrap();
        }
        if recorder.turn_alone(world, digest, file).unwrap() {
            let mut bytes = Vec::new();
            codec::append(world, &mut bytes).unwrap();
            let written = recorder.late_world(world.tick(), &bytes, file);
            assert_eq!(written, Ok(true));
            let again = recorder.late_world(world.tick(), &bytes, file);
            assert_eq!(again, Ok(false), "already written");
        }
    }

    fn play(&mut self, turns: u32) {
        for n in 0..turns {
            let held = [0, 0, (n / 50 % 2) as u8, 0];
            let order = n.is_multiple_of(40).then_some(n as u8);
            self.turn(&held[..1 + n as usize % 4], order);
        }
    }

    fn replay(&self) -> Replay<'_, Echo> {
        Replay::open(&self.file, &()).unwrap()
    }
}

const TICK: Duration = Duration::from_nanos(16_666_667);

/// Rows 2, 20: a match that started at a saved tick is replayed from there to its last digest.
#[test]
fn a_replay_ends_with_the_final_digest_of_the_match() {
    for start in [Tick(0), Tick(12_345)] {
        let mut server = Server::start(start);
        server.play(800);
        let mut replay = server.replay();
        assert_eq!(replay.world().tick(), start);
        let verified = replay.verify();
        assert_eq!((verified.fault, verified.fields), (None, Vec::new()));
        assert_eq!(verified.ticks, server.world.tick() - start);
        assert!(verified.digests > 30 && verified.worlds > 2);
        assert_eq!(replay.world().digest(), server.world.digest());
    }
}

#[test]
fn a_late_world_is_recorded_like_a_timely_one() {
    let mut servers = [false, true].map(|late| Server {
        late,
        ..Server::start(Tick(7))
    });
    for server in &mut servers {
        server.play(900);
    }
    let [one, two] = servers;
    assert!(two.replay().index().worlds.len() > 3);
    assert!(one.file == two.file, "the journals differ");
}

/// Frames after a world are encoded against neutral inputs, and a turn's frames are encoded as they arrive.
#[test]
fn a_late_world_is_skipped_and_due_again() {
    let mut server = Server::start(Tick(0));
    server.play(20);
    let (tick, size) = (server.world.tick(), server.file.len());
    let mut bytes = Vec::new();
    codec::append(&server.world, &mut bytes).unwrap();
    let late = |server: &mut Server, tick| {
        let written = server.recorder.late_world(tick, &bytes, &mut server.file);
        written.unwrap()
    };
    assert!(!late(&mut server, tick.back(1)), "not the last one's");
    let mut frame = FrameData::<Echo>::empty(tick);
    frame.inputs.set(PlayerId(0), Some(1));
    server.recorder.frame(&frame);
    assert!(!late(&mut server, tick), "a frame was added");
    assert_eq!(server.file.len(), size);
    let after = server.world.clone();
    let mut due = |since: &mut u32| {
        *since += 1;
        let (recorder, file) = (&mut server.recorder, &mut server.file);
        recorder.frame(&frame);
        recorder.turn_alone(&after, None, file).unwrap()
    };
    let mut turns = 0;
    while !due(&mut turns) {}
    assert!(due(&mut turns) && due(&mut turns), "until it is written");
}

#[test]
fn seeking_anywhere_leads_to_the_recorded_worlds() {
    let mut server = Server::start(Tick(100));
    server.play(900);
    let mut replay = server.replay();
    assert!(replay.index().worlds.len() > 3);
    let end = server.world.tick();
    for to in [900, 100, 101, 2_000, 1_999, 1_100, 1_101, 0, 160] {
        let to = Tick(to);
        let reached = replay.seek(to).unwrap();
        assert_eq!(reached, to.clamp(Tick(100), end));
        let at = (reached - Tick(100)) as usize;
        assert_eq!(replay.world().digest().unwrap(), server.digests[at]);
        for next in &server.digests[at + 1..at + 20] {
            assert!(replay.step().unwrap());
            assert_eq!(replay.world().digest().unwrap(), *next);
            assert_eq!(replay.frame().tick + 1, replay.world().tick());
        }
    }
    assert_eq!(replay.seek(Tick::MAX).unwrap(), end);
    assert!(!replay.step().unwrap());
}

#[test]
fn only_a_turn_as_long_as_the_one_before_it_is_idle() {
    let mut server = Server::start(Tick(0));
    for ticks in [2, 2, 3, 3, 2, 2] {
        server.turn(&[0; 3][..ticks], None);
    }
    let kinds: Vec<u8> = records(&server.file)
        .map(|entry| entry.unwrap().record.kind())
        .collect();
    // Start, world, then turns. The first turn contains the present players.
    assert_eq!(kinds, [1, 2, 3, 4, 3, 4, 3, 4]);
    assert_eq!(server.replay().verify().ticks, 14);
}

/// A world at least every 10 s and a digest every second of match time, at any tick length.
#[test]
fn worlds_and_digests_are_written_by_time_not_by_ticks() {
    for (tick_ms, ticks) in [(5, 12_000), (50, 1_200), (1_000, 60)] {
        let mut server = Server::clocked(Tick(0), Duration::from_millis(tick_ms));
        for _ in 0..ticks {
            server.turn(&[0], None);
        }
        let index = Index::scan(&server.file).unwrap();
        assert_eq!(
            index.worlds.len(),
            7,
            "{tick_ms} ms: one, and six in a minute"
        );
        let verified = server.replay().verify();
        assert_eq!((verified.digests, verified.worlds), (60, 6), "{tick_ms} ms");
    }
}

#[test]
fn every_bit_flip_is_reported_and_everything_before_it_plays() {
    let mut server = Server::start(Tick(0));
    server.play(60);
    let ends: Vec<(u64, Tick)> = {
        let mut replay = server.replay();
        let mut ends = Vec::from([(0, Tick(0))]);
        while replay.step().unwrap() {
            ends.push((replay.frames.offset(), replay.world().tick()));
        }
        ends
    };
    let begins_at = Index::scan(&server.file).unwrap().worlds[0].offset();
    let after_worlds = records(&server.file).nth(2).unwrap().unwrap().offset;
    for bit in 0..server.file.len() * 8 {
        let mut file = server.file.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let flipped = (bit / 8) as u64;
        let Ok(mut replay) = Replay::<Echo>::open(&file, &()) else {
            // A damaged world or start, or a head whose one-byte check matched by chance.
            assert!(flipped < after_worlds, "byte {flipped}");
            continue;
        };
        assert!(flipped >= begins_at, "byte {flipped}");
        let verified = replay.verify();
        let fault = verified.fault.expect("a flipped bit is found");
        let sound = ends.iter().rev().find(|(offset, _)| {
            // The record that contains the bit starts at or before it.
            records(&server.file)
                .map(Result::unwrap)
                .any(|e| e.offset == *offset && e.offset + e.bytes as u64 <= flipped)
        });
        let reached = sound.map_or(Tick(0), |(_, tick)| *tick);
        assert!(
            verified.ticks >= reached.0.saturating_sub(4),
            "byte {flipped}: played {} of {reached}, then: {fault}",
            verified.ticks
        );
        // With a chance of 1/256 the head's check matches, and the next record reveals the damage.
        assert!(fault.to_string().contains("byte"), "{fault}");
    }
}

#[test]
fn a_torn_file_plays_up_to_the_tear_and_can_be_resumed() {
    let mut server = Server::start(Tick(0));
    server.play(50);
    let whole: Vec<u64> = records(&server.file)
        .map(|entry| entry.unwrap())
        .map(|entry| entry.offset + entry.bytes as u64)
        .collect();
    for cut in whole[1] as usize..server.file.len() {
        let torn = &server.file[..cut];
        let index = Index::scan(torn).unwrap();
        let sound = whole.iter().rev().find(|end| **end <= cut as u64).unwrap();
        assert_eq!(index.sound_bytes(), *sound);
        let is_whole = *sound == cut as u64;
        assert_eq!(index.stopped.is_none(), is_whole);
        let mut replay = Replay::<Echo>::open(torn, &()).unwrap();
        let fault = replay.verify().fault;
        assert_eq!(fault.is_none(), is_whole, "{fault:?}");
        // Another process resumes the match, and ends it.
        let mut file = torn[..*sound as usize].to_vec();
        let world = replay.world();
        let mut recorder = Recorder::resume(&index, &hello(), 9, world, &mut file).unwrap();
        recorder.end("over", &mut file).unwrap();
        let index = Index::scan(&file).unwrap();
        assert_eq!(index.stopped, None);
        assert_eq!((index.resumes, index.ended.as_deref()), (1, Some("over")));
        let verified = Replay::<Echo>::open(&file, &()).unwrap().verify();
        assert_eq!(verified.fault, None);
    }
}

#[test]
fn the_error_for_another_programs_journal_names_its_build() {
    let server = Server::start(Tick(0));
    let mut ours = hello();
    ours.version = 99;
    let refused = Index::scan(&server.file).unwrap().check(&ours);
    let refused = refused.unwrap_err();
    assert!(matches!(
        refused,
        ReplayError::Mismatch {
            code: CloseCode::WrongVersion,
            ..
        }
    ));
    for word in ["echo", "version 1", "test build"] {
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let mut nameless = Index::scan(&server.file).unwrap();
    nameless.about.build.clear();
    let text = nameless.check(&ours).unwrap_err().to_string();
    assert!(!text.contains("\"\""), "{text}");
    let refused = Replay::<Echo>::open(b"hello, world", &()).err();
    assert_eq!(refused, Some(JournalError::NotAJournal.into()));
}

/// A step that differs from the original is detected at the first digest, and the differing field is reported.
#[test]
fn a_diverging_step_is_reported_with_its_tick_and_field() {
    let mut server = Server::start(Tick(0));
    server.play(100);
    let honest = server.world.tick();
    server.world.corrupt().commands.push((PlayerId(9), 77));
    server.play(900);
    let verified = server.replay().verify();
    let Some(ReplayError::Differs { tick, agreed, .. }) = verified.fault else {
        panic!("{:?}", verified.fault)
    };
    assert!(agreed <= honest && honest < tick && tick - agreed <= 64);
    let paths: Vec<&str> = verified.fields.iter().map(|d| d.path.as_str()).collect();
    assert!(
        paths.iter().any(|path| path.contains("commands")),
        "{paths:?}"
    );
}

/// Finding H11: an idle turn repeats the ticks of the one before it for 2 bytes, so a small file could contain days
/// of ticks.
#[test]
fn a_turn_with_too_many_ticks_is_refused() {
    let longest = usize::from(TURN_TICKS_MAX);
    for (ticks, idle_turns) in [(longest, 3), (longest + 1, 3)] {
        let mut server = Server::start(Tick(0));
        for _ in 0..1 + idle_turns {
            server.turn(&[0; 32][..ticks], None);
        }
        let verified = server.replay().verify();
        let index = Index::scan(&server.file).unwrap();
        let survey = Survey::of::<Echo>(&server.file, &index);
        assert_eq!(survey.fault, verified.fault);
        if ticks == longest {
            assert_eq!((verified.ticks as usize, verified.fault), (4 * ticks, None));
        } else {
            let refused = matches!(verified.fault, Some(ReplayError::Turn { .. }));
            assert!(refused, "{verified:?}");
            assert!(verified.ticks <= u32::from(TURN_TICKS_MAX));
        }
    }
}

/// Finding K10: the journal of a cleanly stopped match ends with its world, and the match is resumed from it.
#[test]
fn a_snapshot_is_at_the_newest_tick_and_can_be_resumed() {
    let mut server = Server::start(Tick(0));
    server.play(50);
    let Server {
        world,
        recorder,
        file,
        ..
    } = &mut server;
    recorder.snapshot(world, file).unwrap();
    let length = file.len();
    // The world was already written.
    recorder.snapshot(world, file).unwrap();
    assert_eq!(file.len(), length);
    let end = server.world.tick();
    let index = Index::scan(&server.file).unwrap();
    assert_eq!(
        (index.newest, index.worlds.last().unwrap().tick),
        (end, end)
    );
    assert_eq!(server.replay().verify().fault, None);
    server.play(50);
    assert_eq!(server.replay().verify().fault, None);
}
