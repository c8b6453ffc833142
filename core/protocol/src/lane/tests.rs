use super::format::MASK_BYTES;
use super::*;
use crate::simnet::{LegProfile, LinkProfile, SimLink};
use crate::varint::{self, VarintError};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn content(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|i| (i / 251 + i * 7 + seed * 31) as u8)
        .collect()
}

fn frame(sender: &mut LaneSender, now: Duration) -> Option<Vec<u8>> {
    let mut out = [0; FRAME_BYTES_MAX];
    sender
        .poll(now, RTT, &mut out)
        .map(|bytes| out[..bytes].to_vec())
}

fn sender_of(bytes: usize) -> LaneSender {
    let mut sender = LaneSender::new(8 << 20);
    sender.set_rate(u32::MAX);
    sender.push(1, content(0, bytes).into()).unwrap();
    sender
}

/// A lane over a bad network, ticked at 60 Hz. Chunks go up; acks travel in packets sent every tick.
struct Pair {
    sender: LaneSender,
    receiver: LaneReceiver,
    link: SimLink,
    rtt: Duration,
    now: Duration,
    received: Vec<Message>,
}

impl Pair {
    fn new(profile: LinkProfile, seed: u64, message_bytes_max: usize) -> Pair {
        Pair {
            sender: LaneSender::new(message_bytes_max),
            receiver: LaneReceiver::new(message_bytes_max),
            link: SimLink::new(profile, seed),
            rtt: (profile.up.delay + profile.up.jitter / 2) * 2,
            now: Duration::ZERO,
            received: Vec::new(),
        }
    }

    fn tick(&mut self) {
        self.now += Duration::from_micros(16_667);
        while let Some(frame) = self.link.up.poll(self.now) {
            self.receiver.handle(frame).unwrap();
            while let Some(message) = self.receiver.poll_message().unwrap() {
                self.received.push(message);
            }
        }
        if let Some(ack) = self.receiver.poll_ack() {
            self.link.down.send(self.now, &ack.encode());
        }
        while let Some(ack) = self.link.down.poll(self.now) {
            let ack = LaneAck::decode(&mut &ack[..]).unwrap();
            self.sender.handle_ack(self.now, &ack).unwrap();
        }
        let mut out = [0; FRAME_BYTES_MAX];
        while let Some(bytes) = self.sender.poll(self.now, self.rtt, &mut out) {
            self.link.up.send(self.now, &out[..bytes]);
        }
    }

    #[track_caller]
    fn run(&mut self, at_most: Duration) -> Duration {
        let from = self.now;
        while !self.sender.is_idle() {
            self.tick();
            assert!(
                self.now - from < at_most,
                "stalled: {:?}",
                self.sender.progress()
            );
        }
        self.now - from
    }
}

#[test]
fn a_chunk_and_an_ack_have_fixed_bytes() {
    let mut sender = LaneSender::new(10_000);
    sender.push(5, Arc::from(&b"abc"[..])).unwrap();
    assert_eq!(
        frame(&mut sender, ms(0)).unwrap(),
        [0, 5, 3, b'a', b'b', b'c']
    );
    let ack = LaneAck {
        next: 300,
        mask: [0; MASK_BYTES],
    };
    assert_eq!(ack.encode().as_slice(), [0xac, 0x02, 0]);
    let mut ack = LaneAck { next: 1, ..ack };
    ack.set(1);
    ack.set(10);
    assert_eq!(ack.encode().as_slice(), [1, 2, 0b1, 0b10]);
}

#[test]
fn both_sides_report_progress() {
    let (mut sender, mut receiver) = (sender_of(3_000), LaneReceiver::new(3_000));
    let first = frame(&mut sender, ms(0)).unwrap();
    receiver.handle(&first).unwrap();
    let receiving = TransferProgress {
        kind: 1,
        received_bytes: 997,
        total_bytes: 3_000,
    };
    assert_eq!(receiver.progress(), Some(receiving));
    let sent = Sending {
        sent_bytes: 997,
        acked_bytes: 0,
        total_bytes: 3_000,
    };
    assert_eq!(sender.progress(), sent);
    sender.handle_ack(ms(100), &receiver.ack()).unwrap();
    assert_eq!(
        sender.progress(),
        Sending {
            acked_bytes: 997,
            ..sent
        }
    );
}

/// Finding P3-B1: on a lossy connection, a loading bar counted only bytes that arrived in order, so it stopped and then
/// jumped.
#[test]
fn progress_counts_out_of_order_chunks_once() {
    let mut sender = sender_of(10_000);
    let mut receiver = LaneReceiver::new(10_000);
    let chunks: Vec<Vec<u8>> = core::iter::from_fn(|| frame(&mut sender, Duration::ZERO)).collect();
    let received = |receiver: &LaneReceiver| receiver.progress().map(|now| now.received_bytes);
    assert_eq!(received(&receiver), None);
    receiver.handle(&chunks[0]).unwrap();
    let first = received(&receiver).unwrap();
    // The second chunk is lost; later ones arrive, one of them twice.
    for (n, at) in (1..).zip([2, 3, 5]) {
        receiver.handle(&chunks[at]).unwrap();
        assert_eq!(received(&receiver), Some(first + n * CHUNK_BYTES_MAX));
    }
    receiver.handle(&chunks[5]).unwrap();
    assert_eq!(received(&receiver), Some(first + 3 * CHUNK_BYTES_MAX));
    receiver.handle(&chunks[1]).unwrap();
    assert_eq!(received(&receiver), Some(first + 4 * CHUNK_BYTES_MAX));
    for chunk in &chunks {
        receiver.handle(chunk).unwrap();
    }
    assert_eq!(
        receiver.poll_message().unwrap().unwrap().bytes.len(),
        10_000
    );
    assert_eq!(received(&receiver), None);
}

#[test]
fn only_missing_chunks_are_resent() {
    let (mut sender, mut receiver) = (sender_of(5_000), LaneReceiver::new(5_000));
    let frames: Vec<_> = core::iter::from_fn(|| frame(&mut sender, ms(0))).collect();
    for (i, frame) in frames.iter().enumerate() {
        if i != 1 && i != 3 {
            receiver.handle(frame).unwrap();
        }
    }
    sender.handle_ack(ms(100), &receiver.ack()).unwrap();
    assert_eq!(frame(&mut sender, ms(199)), None);
    assert_eq!(frame(&mut sender, ms(200)).as_ref(), Some(&frames[1]));
    assert_eq!(frame(&mut sender, ms(200)).as_ref(), Some(&frames[3]));
    assert_eq!(frame(&mut sender, ms(200)), None);
}

#[test]
fn an_unfetched_message_stalls_the_lane_and_a_lost_ack_does_not() {
    let mut sender = sender_of(1);
    (0..9).for_each(|n| sender.push(n, Arc::from(&[n][..])).unwrap());
    let mut receiver = LaneReceiver::new(10_000);
    let frames: Vec<_> = core::iter::from_fn(|| frame(&mut sender, ms(0))).collect();
    // All chunks arrive, the first one last, and no message is fetched.
    frames
        .iter()
        .rev()
        .for_each(|frame| receiver.handle(frame).unwrap());
    assert_eq!(receiver.ack().next(), 1);
    sender
        .handle_ack(ms(100), &receiver.poll_ack().unwrap())
        .unwrap();
    let kinds: Vec<u8> = core::iter::from_fn(|| receiver.poll_message().unwrap())
        .map(|m| m.kind)
        .collect();
    assert_eq!(kinds, [1, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    // The ack of this is lost, so the oldest chunk is resent.
    assert!(receiver.poll_ack().is_some());
    let again = frame(&mut sender, ms(300)).unwrap();
    assert_eq!(again, frames[1]);
    receiver.handle(&again).unwrap();
    sender
        .handle_ack(ms(400), &receiver.poll_ack().unwrap())
        .unwrap();
    assert!(sender.is_idle());
}

#[test]
fn a_silent_peer_is_sent_one_chunk_at_a_time() {
    let mut sender = sender_of(100_000);
    while frame(&mut sender, ms(0)).is_some() {}
    // Silence starts after 400 ms: twice the resend time.
    let sent: usize = (401..2_401)
        .filter(|&at| frame(&mut sender, ms(at)).is_some())
        .count();
    assert_eq!(sent, 10);
}

/// Finding O3-18: a client that acknowledged single chunks was sent the rest of the window repeatedly, at the full
/// rate.
#[test]
fn a_peer_that_rarely_acknowledges_chunks_is_sent_little() {
    let mut sender = LaneSender::new(8 << 20);
    sender.push(1, content(0, 4 << 20).into()).unwrap();
    let (mut frames, mut arrived) = (0, 0);
    for now in (0..60_000).map(ms) {
        frames += u32::from(frame(&mut sender, now).is_some());
        if now.as_millis() % 500 == 499 {
            arrived += 1;
            let ack = LaneAck {
                next: arrived,
                mask: [0; MASK_BYTES],
            };
            sender.handle_ack(now, &ack).unwrap();
        }
    }
    // One window, one resent window, and the oldest chunk: on each resend, and once when it becomes the oldest.
    let oldest = 60_000 / 200 + arrived;
    let most = 2 * WINDOW_CHUNKS + 5 * arrived + oldest;
    assert!(frames <= most, "{frames} chunks for {arrived} acknowledged");
}

#[test]
fn the_rate_is_kept_and_a_burst_is_short() {
    let mut sender = LaneSender::new(8 << 20);
    sender.set_rate(100_000);
    sender.push(1, content(0, 1_000_000).into()).unwrap();
    let mut bytes_by_ms = vec![0; 1_001];
    let mut receiver = LaneReceiver::new(8 << 20);
    for at in 0..=1_000 {
        while let Some(frame) = frame(&mut sender, ms(at)) {
            bytes_by_ms[at as usize] += frame.len();
            receiver.handle(&frame).unwrap();
        }
        sender.handle_ack(ms(at), &receiver.ack()).unwrap();
    }
    let total: usize = bytes_by_ms.iter().sum();
    assert!((100_000..106_000).contains(&total), "{total}");
    assert!(
        bytes_by_ms[0] <= 4_000 + FRAME_BYTES_MAX,
        "{}",
        bytes_by_ms[0]
    );
}

/// Finding P3-B1: an interrupted message was resent from its first byte.
#[test]
fn the_rest_of_a_message_completes_it_over_another_lane() {
    let whole: Arc<[u8]> = content(3, 50_000).into();
    let mut had = Vec::new();
    for cut_after in [1, 20, 0, 7] {
        let mut sender = LaneSender::new(50_000);
        sender.push(1, Arc::from(&b"first"[..])).unwrap();
        sender.push_rest(2, whole.clone(), had.len()).unwrap();
        assert_eq!(sender.unfinished(2).as_deref(), Some(&*whole));
        let mut receiver = LaneReceiver::new(50_000);
        let chunks: Vec<_> = core::iter::from_fn(|| frame(&mut sender, ms(0))).collect();
        // All chunks arrive before the first message is fetched.
        for chunk in &chunks[..=cut_after] {
            receiver.handle(chunk).unwrap();
        }
        let before = had.len();
        assert_eq!(receiver.poll_message().unwrap().unwrap().kind, 1);
        receiver.go_on_with(2, had);
        assert_eq!(receiver.poll_message(), Ok(None));
        had = receiver.into_part(2).unwrap();
        assert!(had.len() >= before && had[..] == whole[..had.len()]);
    }
    let mut sender = LaneSender::new(50_000);
    sender.set_rate(u32::MAX);
    sender.push_rest(2, whole.clone(), had.len()).unwrap();
    let mut receiver = LaneReceiver::new(50_000);
    receiver.go_on_with(2, had.clone());
    while let Some(chunk) = frame(&mut sender, ms(0)) {
        receiver.handle(&chunk).unwrap();
    }
    let message = receiver.poll_message().unwrap().unwrap();
    assert_eq!((message.kind, &message.bytes[..]), (2, &whole[..]));
    assert_eq!(
        sender.progress().total_bytes,
        (whole.len() - had.len()) as u64
    );
}

#[test]
fn the_size_limit_of_a_message_includes_its_first_part() {
    let mut receiver = LaneReceiver::new(1_000);
    receiver.go_on_with(2, content(0, 600));
    let refused = LaneError::MessageTooLarge {
        bytes: 1_001,
        max: 1_000,
    };
    let head = [&[0, 2][..], &varint::encode(401)].concat();
    assert_eq!(receiver.handle(&head), Err(refused));
    // A message of another kind is independent of the kept bytes.
    let mut receiver = LaneReceiver::new(1_000);
    receiver.go_on_with(2, content(0, 600));
    let head = [&[0, 1][..], &varint::encode(1_000)].concat();
    receiver.handle(&head).unwrap();
    assert_eq!(receiver.progress().map(|p| p.total_bytes), Some(1_000));
    assert_eq!(receiver.into_part(2), None);
}

#[test]
fn a_push_beyond_a_limit_is_refused() {
    let mut sender = LaneSender::new(10);
    let bytes: Arc<[u8]> = content(0, 11).into();
    assert_eq!(
        sender.push(1, bytes),
        Err(PushError::TooLarge { bytes: 11, max: 10 })
    );
    let empty: Arc<[u8]> = Arc::from(&[][..]);
    (0..MESSAGES_QUEUED_MAX).for_each(|_| sender.push(1, empty.clone()).unwrap());
    assert_eq!(sender.push(1, empty), Err(PushError::QueueFull));
}

#[test]
fn sequence_numbers_end_rather_than_wrap() {
    let (mut sender, mut receiver) = (LaneSender::new(10), LaneReceiver::new(10));
    sender.skip_to(u32::MAX - 2);
    receiver.skip_to(u32::MAX - 2);
    let byte: Arc<[u8]> = Arc::from(&[9][..]);
    sender.push(1, byte.clone()).unwrap();
    sender.push(2, byte.clone()).unwrap();
    assert_eq!(sender.push(3, byte), Err(PushError::Exhausted));
    for kind in [1, 2] {
        receiver
            .handle(&frame(&mut sender, ms(0)).unwrap())
            .unwrap();
        assert_eq!(receiver.poll_message().unwrap().unwrap().kind, kind);
    }
    sender.handle_ack(ms(0), &receiver.ack()).unwrap();
    assert!(sender.is_idle());
    let beyond = [&varint::encode(u64::from(u32::MAX))[..], &[1, 0]].concat();
    let error = LaneError::BeyondWindow {
        seq: u32::MAX,
        end: u32::MAX,
    };
    assert_eq!(receiver.handle(&beyond), Err(error));
}

#[test]
fn a_peer_that_breaks_the_protocol_is_refused() {
    #[track_caller]
    fn check(frames: &[&[u8]], expected: LaneError) {
        let mut receiver = LaneReceiver::new(1_000_000);
        let (last, first) = frames.split_last().unwrap();
        first
            .iter()
            .for_each(|frame| receiver.handle(frame).unwrap());
        assert_eq!(receiver.handle(last), Err(expected));
        assert_eq!(receiver.poll_message(), Err(expected), "an error stays");
    }
    let big = varint::encode(1_000_001);
    let too_large = LaneError::MessageTooLarge {
        bytes: 1_000_001,
        max: 1_000_000,
    };
    check(&[&[&[0, 1][..], &big].concat()], too_large);
    check(
        &[&[0, 1, 2, 9, 9, 9]],
        LaneError::MessageOverrun {
            expected: 2,
            got: 3,
        },
    );
    check(
        &[&[1, 9, 9], &[0, 1, 2, 9]],
        LaneError::MessageOverrun {
            expected: 1,
            got: 2,
        },
    );
    check(&[&[0, 1]], LaneError::Varint(VarintError::Truncated));

    let mut receiver = LaneReceiver::new(1_000_000);
    for (frame, error) in [
        (&[][..], LaneError::Varint(VarintError::Truncated)),
        (&[0], LaneError::ChunkSize { bytes: 0 }),
        (&[0; 1_002], LaneError::ChunkSize { bytes: 1_001 }),
        (
            &[0x80, 0x04, 1],
            LaneError::BeyondWindow { seq: 512, end: 512 },
        ),
    ] {
        assert_eq!(receiver.handle(frame), Err(error));
    }
}

#[test]
fn an_ack_of_an_unsent_chunk_is_refused() {
    let mut sender = sender_of(5_000);
    frame(&mut sender, ms(0)).unwrap();
    let ack = LaneAck {
        next: 2,
        mask: [0; MASK_BYTES],
    };
    let refused = LaneError::AckOfUnsent { seq: 1, end: 1 };
    assert_eq!(sender.handle_ack(ms(0), &ack), Err(refused));
    let mut ack = LaneAck { next: 0, ..ack };
    ack.set(1);
    assert_eq!(sender.handle_ack(ms(0), &ack), Err(refused));
}

#[test]
fn a_claimed_size_reserves_little_memory() {
    let mut receiver = LaneReceiver::new(8 << 20);
    let head = [&[0, 1][..], &varint::encode(8 << 20), &[0; 900]].concat();
    receiver.handle(&head).unwrap();
    assert!(
        receiver.held_bytes() < 64 << 10,
        "{}",
        receiver.held_bytes()
    );
}

#[test]
fn a_receiver_of_small_messages_stashes_little() {
    let mut receiver = LaneReceiver::new(1_000);
    for seq in 1..WINDOW_CHUNKS {
        let frame = [&varint::encode(u64::from(seq))[..], &[0; CHUNK_BYTES_MAX]].concat();
        receiver.handle(&frame).unwrap();
    }
    assert!(
        receiver.held_bytes() < 16 << 10,
        "{}",
        receiver.held_bytes()
    );
}

#[test]
fn a_world_arrives_fast_enough_over_every_preset() {
    // 8 MiB at 512 KiB/s take 16 s, so a 30 s limit leaves 14 s for losses.
    for (name, profile) in LinkProfile::PRESETS {
        let mut pair = Pair::new(profile, 5, 8 << 20);
        let world = content(3, 8 << 20);
        pair.sender.push(1, world.as_slice().into()).unwrap();
        let took = pair.run(ms(30_000));
        assert_eq!(pair.received.len(), 1, "{name}");
        assert!(pair.received[0].bytes == world, "{name}");
        assert!(took > ms(15_500), "{name}: the rate was not kept: {took:?}");
    }
}

#[test]
fn a_blackout_costs_little_more_than_its_duration() {
    let mut pair = Pair::new(LinkProfile::WAN, 6, 1 << 20);
    pair.sender.push(1, content(0, 400_000).into()).unwrap();
    (0..30).for_each(|_| pair.tick());
    let sent_before = pair.link.up.counters().sent;
    pair.link
        .set_profile(LinkProfile::both(LegProfile::BLACKOUT));
    (0..120).for_each(|_| pair.tick());
    let sent_in_the_dark = pair.link.up.counters().sent - sent_before;
    assert!(
        sent_in_the_dark < 600,
        "a dead link is flooded: {sent_in_the_dark}"
    );
    pair.link.set_profile(LinkProfile::WAN);
    let took = pair.run(ms(2_500));
    assert!(
        pair.received[0].bytes == content(0, 400_000),
        "after {took:?}"
    );
}

fn any_ack() -> impl Strategy<Value = LaneAck> {
    (
        any::<u32>(),
        proptest::collection::vec(1..=WINDOW_CHUNKS, 0..20),
    )
        .prop_map(|(next, bits)| {
            let mut ack = LaneAck {
                next,
                mask: [0; MASK_BYTES],
            };
            bits.into_iter().for_each(|distance| ack.set(distance));
            ack
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_message_arrives_once_in_order_and_intact(
        seed: u64,
        sizes in proptest::collection::vec(prop_oneof![0usize..50, 900usize..2_100, 0usize..60_000], 1..20),
        delay_ms in 0u64..200,
        jitter_ms in 0u64..150,
        loss_ppm in 0u32..400_000,
        burst_datagrams in 1u32..6,
        duplicate_ppm in 0u32..300_000,
    ) {
        let leg = LegProfile {
            delay: ms(delay_ms),
            jitter: ms(jitter_ms),
            loss_ppm,
            burst_datagrams,
            duplicate_ppm,
            ..LegProfile::PERFECT
        };
        let mut pair = Pair::new(LinkProfile::both(leg), seed, 60_000);
        (0..60).for_each(|_| pair.tick());
        prop_assert_eq!(pair.link.up.counters().sent + pair.link.down.counters().sent, 0, "idle");
        let messages: Vec<Message> = (0..).zip(&sizes).map(|(n, &bytes)| Message {
            kind: n,
            bytes: content(usize::from(n), bytes),
        }).collect();
        for message in &messages {
            pair.sender.push(message.kind, message.bytes.as_slice().into()).unwrap();
            pair.tick();
        }
        pair.run(ms(60_000));
        prop_assert!(pair.received == messages);
        prop_assert_eq!(pair.sender.progress().acked_bytes, sizes.iter().sum::<usize>() as u64);
        let sent = pair.link.up.counters().sent;
        (0..600).for_each(|_| pair.tick());
        prop_assert_eq!(pair.link.up.counters().sent, sent, "an idle lane sends nothing");
    }

    #[test]
    fn an_ack_survives_a_round_trip(ack in any_ack()) {
        let bytes = ack.encode();
        let mut rest = bytes.as_slice();
        prop_assert_eq!(LaneAck::decode(&mut rest), Ok(ack));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn an_ack_has_one_encoding(bytes: [u8; 8]) {
        let mut rest = &bytes[..];
        if let Ok(ack) = LaneAck::decode(&mut rest) {
            let written = ack.encode();
            prop_assert_eq!(written.as_slice(), &bytes[..bytes.len() - rest.len()]);
        }
    }

    #[test]
    fn hostile_frames_and_acks_never_panic(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..40),
        acks in proptest::collection::vec(any_ack(), 0..10),
    ) {
        let mut receiver = LaneReceiver::new(500);
        for frame in frames {
            let _ = receiver.handle(&frame);
            let _ = receiver.poll_message();
            prop_assert!(LaneAck::decode(&mut &receiver.ack().encode()[..]).is_ok());
        }
        let mut sender = sender_of(100_000);
        while frame(&mut sender, ms(0)).is_some() {}
        for mut ack in acks {
            ack.next %= 120;
            let _ = sender.handle_ack(ms(10), &ack);
            let _ = frame(&mut sender, ms(1_000));
        }
    }
}

/// A sender has a chunk whenever `next_due` says, even if no chunk is acknowledged.
#[test]
fn a_sender_has_a_chunk_when_it_is_due() {
    for chunks in [1, 2, 40] {
        let mut sender = sender_of(chunks * 1_000);
        let mut now = ms(1_000);
        for _ in 0..200 {
            now = sender
                .next_due(now, RTT)
                .expect("nothing is acknowledged")
                .max(now);
            assert!(
                frame(&mut sender, now).is_some(),
                "{chunks} chunks, {now:?}"
            );
        }
        assert!(now > ms(10_000), "it pauses between resends: {now:?}");
    }
}
