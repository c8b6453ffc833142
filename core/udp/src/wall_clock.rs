//! [`WallClock`]: the clock by which tickets expire, when it is set.
//!
//! ```text
//!  set forward by 2 days      what a client was handed a moment ago, for twenty minutes, would have expired
//!  ───────┬────────────────▶  for twenty minutes nothing expires that would be good without that jump; meanwhile each
//!         └ 20 min ─┘         client that is connected is handed tickets by the new clock, and who is away comes back
//! ```
//!
//! A machine that slept is the same to it: the time of sessions stood still, and that of the wall went on.
//!
//! Invariant: a clock that is set keeps nobody out who was there, and lets nobody in for longer than [`GRACE`] whom the
//! wall clock would refuse.

use std::time::Duration;

/// A jump counts only after this time: the life of a ticket to return with.
const GRACE: Duration = Duration::from_secs(1_200);
/// A smaller difference is no jump: a call that took its time, or a clock that is being trimmed.
const JUMP_MIN: Duration = Duration::from_secs(2);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct WallClock {
    now_unix: Duration,
    /// The session time that belongs to it.
    now: Duration,
    /// How far it was set forward lately, and until when that counts for nothing.
    ahead: Duration,
    forgiven_until: Duration,
}

impl WallClock {
    pub(crate) fn new(now: Duration, now_unix: Duration) -> WallClock {
        WallClock {
            now_unix,
            now,
            ahead: Duration::ZERO,
            forgiven_until: Duration::ZERO,
        }
    }

    /// Time passes; the wall clock is read anew.
    pub(crate) fn advance(&mut self, now: Duration, now_unix: Duration) {
        let expected = self.now_unix + now.saturating_sub(self.now);
        (self.now, self.now_unix) = (now, now_unix);
        if now >= self.forgiven_until {
            self.ahead = Duration::ZERO;
        }
        if now_unix >= expected + JUMP_MIN {
            self.ahead += now_unix - expected;
            self.forgiven_until = now + GRACE;
        } else if expected >= now_unix + JUMP_MIN {
            self.ahead = self.ahead.saturating_sub(expected - now_unix);
        }
    }

    /// Seconds since the unix epoch.
    pub(crate) fn unix_s(&self) -> u64 {
        self.now_unix.as_secs()
    }

    /// Whether a ticket that expires then has expired.
    pub(crate) fn is_past(&self, expires_unix_s: u64) -> bool {
        self.now_unix.saturating_sub(self.ahead).as_secs() >= expires_unix_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_jump_forward_counts_after_twenty_minutes_and_one_back_at_once() {
        let start = DAY * 20_000;
        let mut clock = WallClock::new(Duration::ZERO, start);
        let (mut now, mut jump) = (Duration::ZERO, Duration::ZERO);
        let handed = (start + GRACE).as_secs();
        let mut run = |clock: &mut WallClock, seconds: u32, jumped: Duration| {
            jump += jumped;
            for _ in 0..seconds {
                now += SECOND;
                clock.advance(now, start + now + jump);
            }
        };
        run(&mut clock, 10, Duration::ZERO);
        run(&mut clock, 10, 2 * DAY);
        assert!(!clock.is_past(handed));
        assert!(
            clock.is_past(start.as_secs() + 20),
            "what expires by itself"
        );
        // Again, before that is over: from then on.
        run(&mut clock, 1_100, DAY);
        assert!(!clock.is_past(handed));
        run(&mut clock, 90, Duration::ZERO);
        assert!(clock.is_past(handed), "1,210 s are over by any clock");
        assert!(!clock.is_past(handed + 1_000));
        run(&mut clock, 1_000, Duration::ZERO);
        assert!(clock.is_past((start + 3 * DAY).as_secs()));

        // Set back, it is as it would have been.
        let mut clock = WallClock::new(Duration::ZERO, start);
        clock.advance(SECOND, start + DAY);
        clock.advance(2 * SECOND, start + 2 * SECOND);
        assert!(!clock.is_past((start + 3 * SECOND).as_secs()));
        assert!(clock.is_past((start + 2 * SECOND).as_secs()));
    }
}
