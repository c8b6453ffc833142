//! [`Reach`]: how far the server has sent the frames that one session has not acknowledged.
//!
//! Invariants, if these frames do not fit into one send: after the first packet, frames not sent yet precede repeats.
//! The server repeats reported gaps. If the client reports none, it repeats all frames sent so far, some of them with
//! each send. If no ack arrives for longer than a round trip, all of these frames count as lost.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::KEEP_ALIVE;
use twinstep_protocol::repeats::Repeats;

/// While acks arrive regularly, a frame is not resent after this many sends, spread over at least `covered`.
const SENDS: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// All frames before this one were sent at least once.
    sent: Tick,
    /// The frame at which the next repeat starts.
    again: Tick,
    /// Whether the unacknowledged frames did not fit into the last send.
    exceeds: bool,
    /// The first unacknowledged frame.
    first: Tick,
    /// When `first` became the first, or the sent frames last counted as lost.
    since: Duration,
    sends: Repeats,
}

impl Reach {
    /// For a send that cannot hold all frames: the first frame never sent, or sent only in a send that counts as lost.
    /// `first` is the first unacknowledged frame; an ack takes about `rtt`.
    pub(crate) fn first_unsent(&mut self, now: Duration, first: Tick, rtt: Duration) -> Tick {
        if self.first != first {
            (self.first, self.since) = (first, now);
        } else if now.saturating_sub(self.since) > rtt + 2 * KEEP_ALIVE {
            (self.sent, self.since) = (first, now);
        }
        self.sent.max(first)
    }

    /// The frame at which the repeats of `head..sent` start.
    pub(crate) fn next_repeat(&self, head: Tick, sent: Tick) -> Tick {
        match self.again {
            at if at > head && at < sent => at,
            _ => head,
        }
    }

    /// Records a send up to `end`. An incomplete send clears the record.
    pub(crate) fn record_send(&mut self, now: Duration, end: Tick, whole: bool) {
        match whole {
            true => self.sends.record(now, end),
            false => self.sends.clear(),
        }
    }

    /// The end of the frames that were in enough sends, spread over at least `covered`: while acks arrive regularly,
    /// these frames are probably still in flight.
    pub(crate) fn repeated_enough(&self, now: Duration, covered: Duration) -> Tick {
        self.sends.repeated_until(now, SENDS, covered)
    }

    /// Returns `true` if the last send held all unacknowledged frames, so that the next one probably will.
    pub(crate) fn fits(&self) -> bool {
        !self.exceeds
    }

    /// Records a send: all frames before `sent` were sent, and the next repeat starts at `again`. `all` is `true` if
    /// the send held all unacknowledged frames.
    pub(crate) fn record_sent(&mut self, sent: Tick, again: Tick, all: bool) {
        (self.sent, self.again, self.exceeds) = (sent, again, !all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn frames_without_an_ack_in_time_count_as_lost() {
        let mut reach = Reach::default();
        assert_eq!(reach.first_unsent(MS(0), Tick(4), MS(100)), Tick(4));
        reach.record_sent(Tick(40), Tick(4), false);
        assert_eq!(reach.first_unsent(MS(300), Tick(4), MS(100)), Tick(40));
        // An ack came, so the rest may still be on its way.
        assert_eq!(reach.first_unsent(MS(301), Tick(5), MS(100)), Tick(40));
        assert_eq!(reach.first_unsent(MS(601), Tick(5), MS(100)), Tick(40));
        assert_eq!(reach.first_unsent(MS(602), Tick(5), MS(100)), Tick(5));
        // At most once in each round trip.
        reach.record_sent(Tick(41), Tick(5), false);
        assert_eq!(reach.first_unsent(MS(902), Tick(5), MS(100)), Tick(41));
        assert_eq!(reach.first_unsent(MS(903), Tick(5), MS(100)), Tick(5));
    }

    #[test]
    fn frames_in_five_complete_sends_need_no_more_repeats() {
        let mut reach = Reach::default();
        for (send, end) in (1..=6).zip([2, 4, 6, 8, 10, 12]) {
            reach.record_send(MS(33 * send), Tick(end), true);
        }
        assert_eq!(reach.repeated_enough(MS(198), MS(132)), Tick(4));
        assert_eq!(
            reach.repeated_enough(MS(198), MS(133)),
            Tick(2),
            "too short a time"
        );
        reach.record_send(MS(231), Tick(14), false);
        assert_eq!(reach.repeated_enough(MS(231), MS(0)), Tick(0));
    }

    #[test]
    fn acknowledged_frames_are_not_repeated() {
        let mut reach = Reach::default();
        reach.record_sent(Tick(40), Tick(12), false);
        assert_eq!(reach.next_repeat(Tick(8), Tick(40)), Tick(12));
        assert_eq!(reach.next_repeat(Tick(12), Tick(40)), Tick(12));
        assert_eq!(reach.next_repeat(Tick(16), Tick(40)), Tick(16));
        assert_eq!(reach.next_repeat(Tick(8), Tick(12)), Tick(8));
    }
}
