//! [`Repeats`]: finds the ticks that packets have repeated often enough and can leave out.
//!
//! ```text
//!  acknowledged │ repeated enough │ repeated in every packet│ new
//!  ─────────────┴─────────────────┴─────────────────────────┴───────▶ ticks
//!                 left out while acks arrive as expected
//! ```
//!
//! Packets repeat unacknowledged ticks, and with a long round trip most of these are still in flight. Ticks that were
//! in enough packets, sent over a long enough time, are lost only if the connection fails for longer than that. A
//! sender that leaves them out must send them again as soon as acks stop.
//!
//! Invariant: ticks count as repeated enough only after the given number of packets carried them and the given time
//! has passed.

use core::time::Duration;

use twinstep_core::Tick;

// The number of packets kept.
const SENT: usize = 32;

#[derive(Clone, Debug, Default)]
pub struct Repeats {
    // The time when each packet was sent, and the end of its ticks. A ring; the newest is before `next`.
    sent: [(Duration, Tick); SENT],
    next: usize,
    len: usize,
}

impl Repeats {
    /// Records that a packet with the ticks before `end` was sent.
    pub fn record(&mut self, now: Duration, end: Tick) {
        self.sent[self.next] = (now, end);
        self.next = (self.next + 1) % SENT;
        self.len = (self.len + 1).min(SENT);
    }

    /// Drops all packets, because they took another path.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[must_use]
    pub fn newest(&self) -> Option<Tick> {
        self.newest_first().next().map(|(_, end)| end)
    }

    /// The end of the ticks that were in at least `packets` packets, the first of which was sent at least `time` ago.
    /// Returns tick 0 if the record is too short.
    #[must_use]
    pub fn repeated_until(&self, now: Duration, packets: usize, time: Duration) -> Tick {
        // The oldest of the newest `packets` packets: all of them reached at least as far.
        let often = self.newest_first().skip(packets.saturating_sub(1));
        let mut old = often.filter(|(at, _)| now.saturating_sub(*at) >= time);
        old.next().map_or(Tick(0), |(_, end)| end)
    }

    fn newest_first(&self) -> impl Iterator<Item = (Duration, Tick)> + '_ {
        (1..=self.len).map(|back| self.sent[(self.next + SENT - back) % SENT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Sends a packet every `every` ms, each one tick further.
    fn sent(packets: u32, every: u64) -> (Repeats, Duration) {
        let mut repeats = Repeats::default();
        let mut now = Duration::ZERO;
        for tick in 1..=packets {
            now = MS(every) * tick;
            repeats.record(now, Tick(tick));
        }
        (repeats, now)
    }

    #[test]
    fn ticks_count_as_repeated_after_the_given_packets_and_time() {
        let (repeats, now) = sent(10, 20);
        // Packet 6 contained tick 5, and so did 7, 8, 9 and 10: five packets, the first of them sent 80 ms ago.
        assert_eq!(repeats.repeated_until(now, 5, MS(80)), Tick(6));
        assert_eq!(
            repeats.repeated_until(now, 6, MS(80)),
            Tick(5),
            "too few packets"
        );
        assert_eq!(
            repeats.repeated_until(now, 5, MS(81)),
            Tick(5),
            "too short a time"
        );
        assert_eq!(repeats.repeated_until(now + MS(1), 5, MS(81)), Tick(6));
        assert_eq!(repeats.newest(), Some(Tick(10)));
    }

    #[test]
    fn a_short_record_does_not_leave_out_ticks() {
        let (repeats, now) = sent(4, 20);
        assert_eq!(repeats.repeated_until(now, 5, MS(0)), Tick(0));
        assert_eq!(repeats.repeated_until(now, 4, MS(61)), Tick(0));
        assert_eq!(repeats.repeated_until(now, 4, MS(60)), Tick(1));
        let (mut repeats, now) = sent(100, 1);
        assert_eq!(repeats.repeated_until(now, 1, MS(31)), Tick(69));
        assert_eq!(repeats.repeated_until(now, 1, MS(32)), Tick(0), "forgotten");
        repeats.clear();
        assert_eq!(repeats.repeated_until(now, 1, MS(0)), Tick(0));
        assert_eq!(repeats.newest(), None);
        repeats.record(now, Tick(200));
        repeats.record(now + MS(1), Tick(201));
        assert_eq!(repeats.repeated_until(now + MS(1), 2, MS(1)), Tick(200));
        assert_eq!(repeats.repeated_until(now + MS(1), 3, MS(0)), Tick(0));
    }
}
