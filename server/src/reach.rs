//! [`Reach`]: how far one session was told of the frames that it has not acknowledged.
//!
//! Invariants: what was never told comes before what is said again; of what was told the gaps are said again that the client tells of,
//! or, while it tells of none, all of it, a part with each send; where nothing is acknowledged for longer than a way there and back takes, all of it counts as lost.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::KEEP_ALIVE;
use twinstep_protocol::repeats::Repeats;

/// A frame is in at least so many sends, over at least so long as its line is to cover.
const SENDS: usize = 5;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// All before it were told at least once.
    told: Tick,
    /// From where on what was told is said again next.
    again: Tick,
    /// Whether the last send did not hold all.
    exceeds: bool,
    /// The first frame that is not acknowledged, and since when it is that, or all that was told counts as lost.
    first: Tick,
    since: Duration,
    /// The last sends.
    sends: Repeats,
}

impl Reach {
    /// Where not all fits: the first tick that was never told, or whose telling counts as lost: `first` is not acknowledged, and an ack
    /// takes so long.
    pub(crate) fn told(&mut self, now: Duration, first: Tick, rtt: Duration) -> Tick {
        if self.first != first {
            (self.first, self.since) = (first, now);
        } else if now.saturating_sub(self.since) > rtt + 2 * KEEP_ALIVE {
            (self.told, self.since) = (first, now);
        }
        self.told.max(first)
    }

    /// From where on the frames `head..told` are said again.
    pub(crate) fn again(&self, head: Tick, told: Tick) -> Tick {
        match self.again {
            at if at > head && at < told => at,
            _ => head,
        }
    }

    /// A send reaches up to `end`; one that does not hold all that it begins with counts for nothing, nor do those before it.
    pub(crate) fn note_send(&mut self, now: Duration, end: Tick, whole: bool) {
        match whole {
            true => self.sends.note(now, end),
            false => self.sends.clear(),
        }
    }

    /// The frames before this one were said so often, over at least `covered`, that while acks come as they should they are
    /// merely on their way.
    pub(crate) fn said_often(&self, now: Duration, covered: Duration) -> Tick {
        self.sends.enough(now, SENDS, covered)
    }

    /// Whether a send holds all that is not acknowledged, as the last one did.
    pub(crate) fn fits(&self) -> bool {
        !self.exceeds
    }

    /// All before `told` were told; `again` is next to be said again. Whether the send held `all`.
    pub(crate) fn note(&mut self, told: Tick, again: Tick, all: bool) {
        (self.told, self.again, self.exceeds) = (told, again, !all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn what_is_not_acknowledged_in_time_counts_as_lost() {
        let mut reach = Reach::default();
        assert_eq!(reach.told(MS(0), Tick(4), MS(100)), Tick(4));
        reach.note(Tick(40), Tick(4), false);
        assert_eq!(reach.told(MS(300), Tick(4), MS(100)), Tick(40));
        // Something was: the rest is on its way.
        assert_eq!(reach.told(MS(301), Tick(5), MS(100)), Tick(40));
        assert_eq!(reach.told(MS(601), Tick(5), MS(100)), Tick(40));
        assert_eq!(reach.told(MS(602), Tick(5), MS(100)), Tick(5));
        // Once for each way there and back.
        reach.note(Tick(41), Tick(5), false);
        assert_eq!(reach.told(MS(902), Tick(5), MS(100)), Tick(41));
        assert_eq!(reach.told(MS(903), Tick(5), MS(100)), Tick(5));
    }

    #[test]
    fn what_stood_in_five_whole_sends_was_said_often() {
        let mut reach = Reach::default();
        for (send, end) in (1..=6).zip([2, 4, 6, 8, 10, 12]) {
            reach.note_send(MS(33 * send), Tick(end), true);
        }
        assert_eq!(reach.said_often(MS(198), MS(132)), Tick(4));
        assert_eq!(
            reach.said_often(MS(198), MS(133)),
            Tick(2),
            "too short a time"
        );
        reach.note_send(MS(231), Tick(14), false);
        assert_eq!(reach.said_often(MS(231), MS(0)), Tick(0));
    }

    #[test]
    fn what_was_acknowledged_is_not_said_again() {
        let mut reach = Reach::default();
        reach.note(Tick(40), Tick(12), false);
        assert_eq!(reach.again(Tick(8), Tick(40)), Tick(12));
        assert_eq!(reach.again(Tick(12), Tick(40)), Tick(12));
        assert_eq!(reach.again(Tick(16), Tick(40)), Tick(16));
        assert_eq!(reach.again(Tick(8), Tick(12)), Tick(8));
    }
}
