//! [`WallClock`]: the clock by which tickets expire, protected against jumps.
//!
//! ```text
//!  set forward by 2 days      a ticket issued a moment ago for twenty minutes would have expired
//!  ───────┬────────────────▶  for twenty minutes no ticket expires that would be valid without that jump; meanwhile each
//!         └ 20 min ─┘         connected client gets tickets by the new clock, and a client that is away can reconnect
//! ```
//!
//! A machine that wakes from sleep looks the same: the sessions' time stopped while the wall clock continued.
//!
//! Invariant: setting the clock does not lock out a client that was connected. A ticket that the wall clock would
//! refuse is admitted for at most [`GRACE`] after the last jump.

use std::time::Duration;

/// A jump takes effect only after this time, which is the minimum lifetime of a reconnect ticket.
const GRACE: Duration = Duration::from_secs(1_200);
/// A smaller difference is not a jump: the call took time, or the clock is being adjusted.
const JUMP_MIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct WallClock {
    now_unix: Duration,
    now: Duration,
    /// The amount by which the clock was recently set forward.
    ahead: Duration,
    /// The time until which that amount is ignored.
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

    pub(crate) fn unix_s(&self) -> u64 {
        self.now_unix.as_secs()
    }

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
    fn a_forward_jump_takes_effect_after_twenty_minutes_and_a_backward_jump_immediately() {
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
        // Another jump within that time: the wait starts again.
        run(&mut clock, 1_100, DAY);
        assert!(!clock.is_past(handed));
        run(&mut clock, 90, Duration::ZERO);
        assert!(clock.is_past(handed), "1,210 s are over by any clock");
        assert!(!clock.is_past(handed + 1_000));
        run(&mut clock, 1_000, Duration::ZERO);
        assert!(clock.is_past((start + 3 * DAY).as_secs()));

        // Setting the clock back undoes the jump.
        let mut clock = WallClock::new(Duration::ZERO, start);
        clock.advance(SECOND, start + DAY);
        clock.advance(2 * SECOND, start + 2 * SECOND);
        assert!(!clock.is_past((start + 3 * SECOND).as_secs()));
        assert!(clock.is_past((start + 2 * SECOND).as_secs()));
    }
}
