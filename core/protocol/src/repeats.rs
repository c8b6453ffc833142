//! [`Repeats`]: how far a stream of ticks was said often enough that packets need not say it again.
//!
//! ```text
//!  acknowledged │ said often enough │ said again in each packet │ news
//!  ─────────────┴───────────────────┴───────────────────────────┴───────▶ ticks
//!                 left out while acks come as they should
//! ```
//!
//! Packets repeat what is not acknowledged, and over a long way most of it is merely on its way. What stood in enough packets,
//! sent over long enough a time, is lost only by a gap of the line that is longer than both; whoever leaves it out must say
//! it again as soon as acks stay away.
//!
//! Invariant: nothing counts as said often enough before so many packets carried it and so much time has passed.

use core::time::Duration;

use twinstep_core::Tick;

/// Packets that are remembered.
const SAID: usize = 32;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// When packets left, and up to which tick they reached: the newest stands before `next`, and the older ones before it.
    said: [(Duration, Tick); SAID],
    next: usize,
    len: usize,
}

impl Repeats {
    /// A packet leaves that reaches up to `end`.
    pub fn note(&mut self, now: Duration, end: Tick) {
        self.said[self.next] = (now, end);
        self.next = (self.next + 1) % SAID;
        self.len = (self.len + 1).min(SAID);
    }

    /// What was said before counts for nothing: it took another path.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Up to where the newest packet reached.
    #[must_use]
    pub fn newest(&self) -> Option<Tick> {
        self.newest_first().next().map(|(_, end)| end)
    }

    /// The tick before which all stood in at least so many packets, the first of which left at least so long ago; tick 0 if
    /// not so much is known.
    #[must_use]
    pub fn enough(&self, now: Duration, packets: usize, time: Duration) -> Tick {
        let often = self.newest_first().skip(packets.saturating_sub(1));
        let mut old = often.filter(|(at, _)| now.saturating_sub(*at) >= time);
        old.next().map_or(Tick(0), |(_, end)| end)
    }

    fn newest_first(&self) -> impl Iterator<Item = (Duration, Tick)> + '_ {
        (1..=self.len).map(|back| self.said[(self.next + SAID - back) % SAID])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Packets every `every` ms, each one tick further.
    fn said(packets: u32, every: u64) -> (Repeats, Duration) {
        let mut repeats = Repeats::default();
        let mut now = Duration::ZERO;
        for tick in 1..=packets {
            now = MS(every) * tick;
            repeats.note(now, Tick(tick));
        }
        (repeats, now)
    }

    #[test]
    fn what_stood_in_enough_packets_for_long_enough_is_left_out() {
        let (repeats, now) = said(10, 20);
        // Packet 6 held tick 5, and so did 7, 8, 9 and 10: five packets, the first of which left 80 ms ago.
        assert_eq!(repeats.enough(now, 5, MS(80)), Tick(6));
        assert_eq!(repeats.enough(now, 6, MS(80)), Tick(5), "too few packets");
        assert_eq!(repeats.enough(now, 5, MS(81)), Tick(5), "too short a time");
        assert_eq!(repeats.enough(now + MS(1), 5, MS(81)), Tick(6));
        assert_eq!(repeats.newest(), Some(Tick(10)));
    }

    #[test]
    fn while_little_was_said_all_of_it_is_said_again() {
        let (repeats, now) = said(4, 20);
        assert_eq!(repeats.enough(now, 5, MS(0)), Tick(0));
        assert_eq!(repeats.enough(now, 4, MS(61)), Tick(0));
        assert_eq!(repeats.enough(now, 4, MS(60)), Tick(1));
        let (mut repeats, now) = said(100, 1);
        assert_eq!(repeats.enough(now, 1, MS(31)), Tick(69));
        assert_eq!(repeats.enough(now, 1, MS(32)), Tick(0), "forgotten");
        repeats.clear();
        assert_eq!(repeats.enough(now, 1, MS(0)), Tick(0));
        assert_eq!(repeats.newest(), None);
        repeats.note(now, Tick(200));
        repeats.note(now + MS(1), Tick(201));
        assert_eq!(repeats.enough(now + MS(1), 2, MS(1)), Tick(200));
        assert_eq!(repeats.enough(now + MS(1), 3, MS(0)), Tick(0));
    }
}
