use super::*;
use alloc::vec;
use proptest::prelude::*;

const LONG: Duration = Duration::from_secs(1_000);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Sends numbered datagrams, one per ms, and drains the leg at the end. Returns the numbers and due times in order of
/// arrival.
fn run(profile: LegProfile, seed: u64, datagrams: u32) -> (Leg, Vec<(u32, Duration)>) {
    let mut leg = Leg::new(profile, seed);
    for n in 0..datagrams {
        leg.send(ms(u64::from(n)), &n.to_le_bytes());
    }
    let mut arrived = Vec::new();
    while let Some(due) = leg.next_due() {
        let bytes = leg.poll(due).unwrap();
        arrived.push((u32::from_le_bytes(bytes.try_into().unwrap()), due));
    }
    (leg, arrived)
}

#[test]
fn a_perfect_leg_delivers_at_once_and_in_order() {
    let mut leg = Leg::new(LegProfile::PERFECT, 1);
    leg.send(ms(5), b"one");
    leg.send(ms(5), b"two");
    assert_eq!(leg.next_due(), Some(ms(5)));
    assert_eq!(leg.poll(ms(4)), None);
    assert_eq!(leg.poll(ms(5)), Some(&b"one"[..]));
    assert_eq!(leg.poll(ms(5)), Some(&b"two"[..]));
    assert_eq!(leg.poll(LONG), None);
}

#[test]
fn a_datagram_takes_the_delay_plus_less_than_the_jitter() {
    let profile = LegProfile {
        delay: ms(50),
        jitter: ms(20),
        ..LegProfile::PERFECT
    };
    let (_, arrived) = run(profile, 2, 2_000);
    let extra = |(n, due): (u32, Duration)| due - ms(u64::from(n)) - ms(50);
    let extras: Vec<Duration> = arrived.iter().copied().map(extra).collect();
    assert!(extras.iter().all(|&extra| extra < ms(20)));
    let mean = extras.iter().sum::<Duration>() / 2_000;
    assert!((ms(9)..ms(11)).contains(&mean), "{mean:?}");
}

#[test]
fn jitter_reorders_unless_the_leg_is_fifo() {
    let jittery = LegProfile {
        jitter: ms(30),
        ..LegProfile::PERFECT
    };
    let is_ordered = |profile| run(profile, 3, 200).1.is_sorted_by_key(|&(n, _)| n);
    assert!(!is_ordered(jittery));
    assert!(is_ordered(LegProfile {
        fifo: true,
        ..jittery
    }));
}

fn losses(profile: LegProfile) -> (f64, f64) {
    const SENT: u32 = 200_000;
    let mut leg = Leg::new(profile, 4);
    let (mut lost, mut runs, mut was_lost) = (0, 0, false);
    for _ in 0..SENT {
        leg.send(Duration::ZERO, &[]);
        let is_lost = leg.poll(LONG).is_none();
        lost += u32::from(is_lost);
        runs += u32::from(is_lost && !was_lost);
        was_lost = is_lost;
    }
    assert_eq!(u64::from(lost), leg.counters().lost);
    (
        f64::from(lost) / f64::from(SENT),
        f64::from(lost) / f64::from(runs),
    )
}

#[test]
fn losses_have_the_given_share_and_mean_run_length() {
    #[track_caller]
    fn check(loss_ppm: u32, burst_datagrams: u32, share: f64, run: f64) {
        let profile = LegProfile {
            loss_ppm,
            burst_datagrams,
            ..LegProfile::PERFECT
        };
        let got = losses(profile);
        assert!((got.0 / share - 1.0).abs() < 0.05, "share {got:?}");
        assert!((got.1 / run - 1.0).abs() < 0.05, "run {got:?}");
    }
    check(20_000, 1, 0.02, 1.0 / 0.98);
    check(100_000, 4, 0.1, 4.0);
    check(20_000, 10, 0.02, 10.0);
    // Every fifth datagram arrives: runs of 2 cannot lose this much, so they are 4 long.
    check(800_000, 2, 0.8, 4.0);
}

#[test]
fn a_blackout_loses_every_datagram_and_ends_with_its_profile() {
    let mut leg = Leg::new(
        LegProfile {
            burst_datagrams: 4,
            ..LegProfile::BLACKOUT
        },
        5,
    );
    for _ in 0..1_000 {
        leg.send(Duration::ZERO, &[1]);
    }
    assert_eq!(leg.next_due(), None);
    leg.set_profile(LegProfile::PERFECT);
    leg.send(Duration::ZERO, &[2]);
    assert_eq!(leg.poll(Duration::ZERO), Some(&[2][..]));
}

#[test]
fn a_duplicate_arrives_twice() {
    let profile = LegProfile {
        duplicate_ppm: ALWAYS_PPM,
        ..LegProfile::PERFECT
    };
    let (leg, arrived) = run(profile, 6, 3);
    let numbers: Vec<u32> = arrived.iter().map(|&(n, _)| n).collect();
    assert_eq!(numbers, [0, 0, 1, 1, 2, 2]);
    assert_eq!(leg.counters().duplicated, 3);
}

#[test]
fn a_bottleneck_spaces_datagrams_and_drops_the_tail_of_its_queue() {
    let bandwidth = Some(Bandwidth {
        bytes_per_s: 10_000,
        queue_bytes_max: 3_000,
    });
    let mut leg = Leg::new(
        LegProfile {
            bandwidth,
            ..LegProfile::PERFECT
        },
        7,
    );
    for _ in 0..10 {
        leg.send(Duration::ZERO, &[0; 1_000]);
    }
    assert_eq!(leg.counters().dropped, 7);
    for at in [100, 200, 300] {
        assert_eq!(leg.next_due(), Some(ms(at)));
        assert!(leg.poll(ms(at)).is_some());
    }
    // The queue has drained: an idle bottleneck passes a datagram above the queue's limit.
    leg.send(ms(300), &[0; 4_000]);
    assert_eq!(leg.next_due(), Some(ms(700)));
}

#[test]
fn a_changed_profile_does_not_affect_datagrams_in_flight() {
    let mut leg = Leg::new(
        LegProfile {
            delay: ms(100),
            ..LegProfile::PERFECT
        },
        8,
    );
    leg.send(Duration::ZERO, &[1]);
    leg.set_profile(LegProfile::PERFECT);
    leg.send(ms(1), &[2]);
    assert_eq!(leg.poll(LONG), Some(&[2][..]));
    assert_eq!(leg.next_due(), Some(ms(100)));
}

#[test]
fn a_never_polled_leg_is_bounded() {
    let mut leg = Leg::new(LegProfile::PERFECT, 9);
    for _ in 0..IN_FLIGHT_MAX + 10 {
        leg.send(Duration::ZERO, &[]);
    }
    assert_eq!(
        (leg.in_flight(), leg.counters().dropped),
        (IN_FLIGHT_MAX, 10)
    );
}

#[test]
fn buffers_are_reused() {
    let mut leg = Leg::new(LinkProfile::AWFUL.up, 10);
    leg.reserve(64);
    for n in 0..10_000 {
        leg.send(ms(10 * n), &[0; BUFFER_BYTES]);
        while leg.poll(ms(10 * n)).is_some() {}
    }
    assert_eq!(leg.buffers.len(), 64);
    assert!(
        leg.buffers
            .iter()
            .all(|buffer| buffer.capacity() == BUFFER_BYTES)
    );
}

#[test]
fn the_legs_of_a_link_draw_separately_and_the_earlier_arrival_is_next() {
    let mut link = SimLink::new(LinkProfile::WAN, 11);
    link.up.send(Duration::ZERO, &[]);
    link.down.send(Duration::ZERO, &[]);
    assert_ne!(link.up.next_due(), link.down.next_due());
    assert_eq!(
        link.next_due(),
        link.up.next_due().min(link.down.next_due())
    );
    link.set_profile(LinkProfile::PERFECT);
    assert_eq!(
        (link.up.profile(), link.down.profile()),
        (LegProfile::PERFECT, LegProfile::PERFECT)
    );
}

proptest! {
    #[test]
    fn the_same_seed_gives_the_same_fates(seed: u64, profile in 0usize..5) {
        let profile = LinkProfile::PRESETS[profile].1.up;
        prop_assert_eq!(run(profile, seed, 50).1, run(profile, seed, 50).1);
    }

    #[test]
    fn more_loss_with_the_same_seed_only_removes_arrivals(seed: u64) {
        let wan = LegProfile { loss_ppm: 20_000, jitter: ms(20), ..LegProfile::PERFECT };
        let worse = LegProfile { loss_ppm: 200_000, ..wan };
        let (_, most) = run(wan, seed, 100);
        let (_, fewer) = run(worse, seed, 100);
        prop_assert!(fewer.iter().all(|arrival| most.contains(arrival)));
    }

    #[test]
    fn every_datagram_is_accounted_for(
        seed: u64,
        chances in (0..=ALWAYS_PPM, 0..=ALWAYS_PPM, 0u32..6),
        is_narrow: bool,
        steps in proptest::collection::vec((0u64..20, 0usize..1_200, 0usize..4), 1..100),
    ) {
        let profile = LegProfile {
            delay: ms(30),
            jitter: ms(30),
            loss_ppm: chances.0,
            duplicate_ppm: chances.1,
            burst_datagrams: chances.2,
            bandwidth: is_narrow.then_some(Bandwidth::new(20_000)),
            ..LegProfile::PERFECT
        };
        let mut leg = Leg::new(profile, seed);
        let mut now = Duration::ZERO;
        for (wait_ms, bytes, polls) in steps {
            now += ms(wait_ms);
            leg.send(now, &vec![0xa5; bytes]);
            for _ in 0..polls {
                if let Some(datagram) = leg.poll(now) {
                    prop_assert!(datagram.iter().all(|&byte| byte == 0xa5));
                }
            }
            let c = leg.counters();
            let ends = c.delivered + c.lost + c.dropped + leg.in_flight() as u64;
            prop_assert_eq!(c.sent + c.duplicated, ends);
        }
    }
}

#[test]
fn a_leg_drops_exactly_the_packets_above_its_mtu() {
    let profile = LegProfile {
        mtu_bytes: Some(576),
        ..LegProfile::PERFECT
    };
    let mut leg = Leg::new(profile, 1);
    for bytes in [548, 549, 1_200, 1] {
        leg.send(Duration::ZERO, &vec![0; bytes]);
    }
    let mut arrived = Vec::new();
    while let Some(datagram) = leg.poll(Duration::ZERO) {
        arrived.push(datagram.len());
    }
    assert_eq!(arrived, [548, 1]);
    assert_eq!((leg.counters().sent, leg.counters().dropped), (4, 2));
}
