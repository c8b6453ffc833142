//! A simulated network with a seed and without I/O. Every test and the demo can use a bad link and repeat it.
//!
//! Invariant: a datagram's fate is drawn from the seed, the profile and the number of earlier datagrams, never from its
//! content; only a size limit and the bottleneck also use its size and time. Every datagram takes the same number of
//! draws. So a run repeats exactly, and runs of two profiles with one seed differ only where the profiles do.
//!
//! ```text
//!  send ──► bottleneck ──► loss ──► delay + jitter ──► in flight, by due time ──► poll
//!           (queue full:   (or                         (a duplicate flies twice)
//!            dropped)       burst)
//! ```
//!
//! Buffers are reused: no memory is allocated unless more datagrams are in flight than ever before. See
//! [`Leg::reserve`].
//!
//! ```
//! use core::time::Duration;
//! use twinstep_protocol::simnet::{SimLink, LinkProfile};
//! let mut link = SimLink::new("rtt=100,jitter=0,loss=0".parse::<LinkProfile>().unwrap(), 7);
//! link.up.send(Duration::ZERO, b"hello");
//! assert_eq!(link.up.poll(Duration::from_millis(49)), None);
//! assert_eq!(link.up.poll(Duration::from_millis(50)), Some(&b"hello"[..]));
//! ```

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use twinstep_core::rng::Mwc;

mod profile;
pub use profile::{ALWAYS_PPM, Bandwidth, IP_BYTES, LegProfile, LinkProfile, LinkProfileError};

/// The maximum number of datagrams in flight on a leg. Any more are dropped.
pub const IN_FLIGHT_MAX: usize = 16_384;

const BUFFER_BYTES: usize = 1_200;

/// The fates of one leg's datagrams.
///
/// `sent + duplicated == delivered + lost + dropped + in flight`, at any moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegCounters {
    pub sent: u64,
    pub duplicated: u64,
    pub delivered: u64,
    /// Datagrams lost by chance.
    pub lost: u64,
    /// Datagrams dropped because the bottleneck's queue or the leg was full, or because they were too large.
    pub dropped: u64,
    pub sent_bytes: u64,
    pub delivered_bytes: u64,
}

/// Both directions between a client and the server.
#[derive(Clone, Debug)]
pub struct SimLink {
    /// The direction from the client to the server.
    pub up: Leg,
    /// The direction from the server to the client.
    pub down: Leg,
}

impl SimLink {
    /// A link whose legs have separate random generators.
    #[must_use]
    pub fn new(profile: LinkProfile, seed: u64) -> SimLink {
        SimLink {
            up: Leg::new(profile.up, seed),
            // Another seed, or both legs would lose the same datagrams.
            down: Leg::new(profile.down, !seed),
        }
    }

    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.up.set_profile(profile.up);
        self.down.set_profile(profile.down);
    }

    /// The time when the next datagram of either leg arrives. `None` if none is in flight.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.up
            .next_due()
            .into_iter()
            .chain(self.down.next_due())
            .min()
    }
}

/// One direction of a link. Datagrams can arrive late, twice, reordered, or not at all.
#[derive(Clone, Debug)]
pub struct Leg {
    profile: LegProfile,
    rng: Mwc,
    is_in_burst: bool,
    /// The time when the bottleneck will have passed all queued datagrams.
    bottleneck_free_at: Duration,
    /// The latest arrival so far. With `fifo`, no datagram arrives earlier.
    last_due: Duration,
    /// No datagram arrives before this time.
    held_until: Duration,
    in_flight: BinaryHeap<Reverse<Flight>>,
    /// The number of flights so far, which orders datagrams due at the same time.
    flights: u64,
    buffers: Vec<Vec<u8>>,
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
    #[must_use]
    pub fn new(profile: LegProfile, seed: u64) -> Leg {
        Leg {
            profile,
            rng: Mwc::seed(seed),
            is_in_burst: false,
            bottleneck_free_at: Duration::ZERO,
            last_due: Duration::ZERO,
            held_until: Duration::ZERO,
            in_flight: BinaryHeap::new(),
            flights: 0,
            buffers: Vec::new(),
            spare: Vec::new(),
            counters: LegCounters::default(),
        }
    }

    /// Allocates buffers for this many datagrams in flight, so that none is allocated later.
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

    /// Sends a datagram. Costs O(log n) for n datagrams in flight.
    pub fn send(&mut self, now: Duration, datagram: &[u8]) {
        self.counters.sent += 1;
        self.counters.sent_bytes += datagram.len() as u64;
        // Make all draws for every datagram, used or not: see the module's invariant.
        let is_lost = self.draw_loss();
        let is_duplicated = self.draw(self.profile.duplicate_ppm);
        let jitters = [self.draw_jitter(), self.draw_jitter()];

        let bytes = datagram.len() as u64 + u64::from(IP_BYTES);
        if self
            .profile
            .mtu_bytes
            .is_some_and(|mtu| bytes > u64::from(mtu))
        {
            self.counters.dropped += 1;
            return;
        }
        let Some(passed_at) = self.pass_bottleneck(now, datagram.len()) else {
            self.counters.dropped += 1;
            return;
        };
        // Decided after the bottleneck, because a lost datagram also uses bandwidth.
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
        // The buffer counts as free, but is not overwritten before the next call that needs one, which ends this
        // borrow.
        self.spare.push(flight.buffer);
        let datagram = &self.buffers[flight.buffer];
        self.counters.delivered += 1;
        self.counters.delivered_bytes += datagram.len() as u64;
        Some(datagram)
    }

    /// The arrival time of the next datagram, which may lie in the past.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let next = self.in_flight.peek();
        next.map(|Reverse(flight)| flight.due.max(self.held_until))
    }

    /// Holds all datagrams that have not arrived, and those sent from now on, until this time. All that are due by then
    /// arrive at once, as on a radio link that stalls.
    pub fn hold(&mut self, until: Duration) {
        self.held_until = until;
    }

    /// The profile of datagrams sent from now on.
    #[must_use]
    pub fn profile(&self) -> LegProfile {
        self.profile
    }

    /// Sets the profile of datagrams sent from now on. Those in flight arrive as before.
    pub fn set_profile(&mut self, profile: LegProfile) {
        self.profile = profile;
        if profile.burst_datagrams <= 1 {
            self.is_in_burst = false;
        }
    }

    #[must_use]
    pub fn counters(&self) -> LegCounters {
        self.counters
    }

    /// The number of datagrams and duplicates in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// An integer in 0..`n` from exactly one draw. An unbiased one would sometimes take two.
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
        // A burst ends with chance 1/mean. The share of time inside bursts must be the loss: enter / (enter + leave)
        // = loss. If `enter` would exceed 1, bursts last longer instead.
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

    /// The time when a datagram leaves the bottleneck, or `None` if it is dropped there.
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
        // Updated even without `fifo`, which a later profile may set.
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
mod tests;
