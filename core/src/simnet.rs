//! A seeded network without I/O, so that every test and the demo can play over a bad link and replay it.
//!
//! Invariant: the fate of a datagram depends only on the seed, the profile and how many were sent before,
//! never on its bytes or on when it is polled; each takes the same number of draws. So a run repeats
//! exactly, and two profiles under one seed differ only by what the profiles differ in.
//!
//! ```text
//!  send ──► bottleneck ──► loss ──► delay + jitter ──► in flight, by due time ──► poll
//!           (queue full:   (or                         (a duplicate flies twice)
//!            dropped)       burst)
//! ```
//!
//! Nothing is allocated once as many buffers exist as datagrams were ever in flight at once; see [`Leg::reserve`].
//!
//! ```
//! use core::time::Duration;
//! use twinstep_core::simnet::{Link, LinkProfile};
//! let mut link = Link::new("rtt=100,jitter=0,loss=0".parse::<LinkProfile>().unwrap(), 7);
//! link.up.send(Duration::ZERO, b"hello");
//! assert_eq!(link.up.poll(Duration::from_millis(49)), None);
//! assert_eq!(link.up.poll(Duration::from_millis(50)), Some(&b"hello"[..]));
//! ```

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use crate::rng::Mwc;

mod profile;
pub use profile::{ALWAYS_PPM, Bandwidth, LegProfile, LinkProfile, LinkProfileError};

/// Datagrams that one leg holds in flight; what comes on top is dropped.
pub const IN_FLIGHT_MAX: usize = 16_384;

/// What a new buffer holds: a full datagram.
const BUFFER_BYTES: usize = 1_200;

/// What became of the datagrams of one leg.
///
/// `sent + duplicated == delivered + lost + dropped + in flight`, at any moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegCounters {
    /// Handed to [`Leg::send`].
    pub sent: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Handed out by [`Leg::poll`].
    pub delivered: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Dropped because the bottleneck's queue, or the leg, was full.
    pub dropped: u64,
    /// Bytes handed to [`Leg::send`].
    pub sent_bytes: u64,
    /// Bytes handed out by [`Leg::poll`].
    pub delivered_bytes: u64,
}

/// Both directions between a client and the server.
#[derive(Clone, Debug)]
pub struct Link {
    /// From the client to the server.
    pub up: Leg,
    /// From the server to the client.
    pub down: Leg,
}

impl Link {
    /// A link whose legs draw from generators of their own.
    #[must_use]
    pub fn new(profile: LinkProfile, seed: u64) -> Link {
        Link {
            up: Leg::new(profile.up, seed),
            down: Leg::new(profile.down, !seed),
        }
    }

    /// Changes both legs; see [`Leg::set_profile`].
    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.up.set_profile(profile.up);
        self.down.set_profile(profile.down);
    }

    /// When the next datagram of either leg arrives.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.up
            .next_due()
            .into_iter()
            .chain(self.down.next_due())
            .min()
    }
}

/// One direction of a link: datagrams go in, and come out later, twice, in another order, or not at all.
#[derive(Clone, Debug)]
pub struct Leg {
    profile: LegProfile,
    rng: Mwc,
    /// The state of the two-state loss model.
    is_in_burst: bool,
    /// When the bottleneck has passed all that waits before it.
    bottleneck_free_at: Duration,
    /// The latest arrival so far: under `fifo`, nothing arrives earlier.
    last_due: Duration,
    in_flight: BinaryHeap<Reverse<Flight>>,
    /// Flights so far: the order among those due at the same moment.
    flights: u64,
    buffers: Vec<Vec<u8>>,
    /// Indices of `buffers` that are not in flight.
    spare: Vec<usize>,
    counters: LegCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    due: Duration,
    order: u64,
    buffer: usize,
}

impl Leg {
    /// An empty leg.
    #[must_use]
    pub fn new(profile: LegProfile, seed: u64) -> Leg {
        Leg {
            profile,
            rng: Mwc::seed(seed),
            is_in_burst: false,
            bottleneck_free_at: Duration::ZERO,
            last_due: Duration::ZERO,
            in_flight: BinaryHeap::new(),
            flights: 0,
            buffers: Vec::new(),
            spare: Vec::new(),
            counters: LegCounters::default(),
        }
    }

    /// Allocates buffers for so many datagrams in flight now, so that none is allocated later.
    pub fn reserve(&mut self, datagrams: usize) {
        let datagrams = datagrams.min(IN_FLIGHT_MAX);
        self.in_flight
            .reserve(datagrams.saturating_sub(self.in_flight.len()));
        self.spare
            .reserve(datagrams.saturating_sub(self.spare.len()));
        while self.buffers.len() < datagrams {
            self.spare.push(self.buffers.len());
            self.buffers.push(Vec::with_capacity(BUFFER_BYTES));
        }
    }

    /// Takes a datagram on its way. Costs O(log n) of those in flight.
    pub fn send(&mut self, now: Duration, datagram: &[u8]) {
        self.counters.sent += 1;
        self.counters.sent_bytes += datagram.len() as u64;
        // All draws are made for every datagram, used or not: see the module's invariant.
        let is_lost = self.draw_loss();
        let is_duplicated = self.draw(self.profile.duplicate_ppm);
        let jitters = [self.draw_jitter(), self.draw_jitter()];

        let Some(passed_at) = self.pass_bottleneck(now, datagram.len()) else {
            self.counters.dropped += 1;
            return;
        };
        if is_lost {
            self.counters.lost += 1;
            return;
        }
        self.fly(passed_at, jitters[0], datagram);
        if is_duplicated {
            self.counters.duplicated += 1;
            self.fly(passed_at, jitters[1], datagram);
        }
    }

    /// The next datagram that has arrived by `now`, in the order of arrival.
    #[must_use]
    pub fn poll(&mut self, now: Duration) -> Option<&[u8]> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(flight) = self.in_flight.pop()?;
        // Free from now on, yet untouched until the next call that needs a buffer, which ends this borrow.
        self.spare.push(flight.buffer);
        let datagram = &self.buffers[flight.buffer];
        self.counters.delivered += 1;
        self.counters.delivered_bytes += datagram.len() as u64;
        Some(datagram)
    }

    /// When the next datagram arrives; may lie in the past.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.in_flight.peek().map(|Reverse(flight)| flight.due)
    }

    /// The profile of datagrams sent from now on.
    #[must_use]
    pub fn profile(&self) -> LegProfile {
        self.profile
    }

    /// Changes the fate of datagrams sent from now on; those in flight arrive as they would have.
    pub fn set_profile(&mut self, profile: LegProfile) {
        self.profile = profile;
        if profile.burst_datagrams <= 1 {
            self.is_in_burst = false;
        }
    }

    /// What became of the datagrams so far.
    #[must_use]
    pub fn counters(&self) -> LegCounters {
        self.counters
    }

    /// Datagrams, and copies of them, that are on their way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// An integer in 0..`n`, by exactly one draw: an unbiased one would sometimes take two.
    fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(n)) >> 32) as u32
    }

    fn draw(&mut self, chance_ppm: u32) -> bool {
        self.below(ALWAYS_PPM) < chance_ppm
    }

    fn draw_loss(&mut self) -> bool {
        let LegProfile {
            loss_ppm,
            burst_datagrams,
            ..
        } = self.profile;
        if burst_datagrams <= 1 || loss_ppm >= ALWAYS_PPM {
            return self.draw(loss_ppm);
        }
        // A burst ends with chance 1/mean. Between bursts, the share of time inside them must be the loss:
        // enter / (enter + leave) = loss. Where `enter` would exceed 1, bursts last longer instead.
        let (loss, whole) = (u64::from(loss_ppm), u64::from(ALWAYS_PPM));
        let kept = whole - loss;
        let leave = (whole / u64::from(burst_datagrams)).min(whole * kept / loss.max(1));
        let enter = leave * loss / kept;
        self.is_in_burst = if self.is_in_burst {
            !self.draw(leave as u32)
        } else {
            self.draw(enter as u32)
        };
        self.is_in_burst
    }

    fn draw_jitter(&mut self) -> Duration {
        let jitter_us = u32::try_from(self.profile.jitter.as_micros()).unwrap_or(u32::MAX);
        Duration::from_micros(u64::from(self.below(jitter_us)))
    }

    /// When a datagram has left the bottleneck, or `None` if its queue is full.
    fn pass_bottleneck(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        let Some(Bandwidth {
            bytes_per_s,
            queue_bytes_max,
        }) = self.profile.bandwidth
        else {
            return Some(now);
        };
        let ns_per_s = 1_000_000_000;
        let waiting_ns = self.bottleneck_free_at.saturating_sub(now).as_nanos();
        let waiting_bytes = waiting_ns * u128::from(bytes_per_s) / ns_per_s;
        let is_full = waiting_ns > 0 && waiting_bytes + bytes as u128 > u128::from(queue_bytes_max);
        if is_full || bytes_per_s == 0 {
            return None;
        }
        let passing_ns = bytes as u64 * ns_per_s as u64 / u64::from(bytes_per_s);
        self.bottleneck_free_at =
            self.bottleneck_free_at.max(now) + Duration::from_nanos(passing_ns);
        Some(self.bottleneck_free_at)
    }

    fn fly(&mut self, from: Duration, jitter: Duration, datagram: &[u8]) {
        if self.in_flight.len() == IN_FLIGHT_MAX {
            self.counters.dropped += 1;
            return;
        }
        let mut due = from
            .saturating_add(self.profile.delay)
            .saturating_add(jitter);
        if self.profile.fifo {
            due = due.max(self.last_due);
        }
        self.last_due = self.last_due.max(due);
        if self.spare.is_empty() {
            self.reserve(self.buffers.len() + 1);
        }
        let buffer = self
            .spare
            .pop()
            .expect("fewer in flight than IN_FLIGHT_MAX leave a buffer");
        self.buffers[buffer].clear();
        self.buffers[buffer].extend_from_slice(datagram);
        self.in_flight.push(Reverse(Flight {
            due,
            order: self.flights,
            buffer,
        }));
        self.flights += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(1_000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Sends numbered datagrams, one each ms, and drains at the end: the numbers and due times as they arrived.
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
    fn a_datagram_takes_the_delay_and_less_than_the_jitter_on_top() {
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

    /// The share of lost datagrams, and the mean length of a run of them.
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
    fn losses_have_the_given_share_and_mean_run() {
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
        // Every fifth arrives: runs of 2 cannot lose that much, so they are 4 long.
        check(800_000, 2, 0.8, 4.0);
    }

    #[test]
    fn nothing_arrives_in_a_blackout_and_all_does_after_it() {
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
        // The queue has drained: a datagram above its limit passes an idle bottleneck.
        leg.send(ms(300), &[0; 4_000]);
        assert_eq!(leg.next_due(), Some(ms(700)));
    }

    #[test]
    fn a_changed_profile_leaves_what_is_in_flight() {
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
    fn a_leg_that_is_never_polled_is_bounded() {
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
    fn a_link_draws_apart_for_its_legs_and_tells_the_earlier_arrival() {
        let mut link = Link::new(LinkProfile::WAN, 11);
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
        fn the_same_seed_brings_the_same_fates(seed: u64, profile in 0usize..5) {
            let profile = LinkProfile::PRESETS[profile].1.up;
            prop_assert_eq!(run(profile, seed, 50).1, run(profile, seed, 50).1);
        }

        #[test]
        fn more_loss_under_the_same_seed_only_takes_away(seed: u64) {
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
}
