//! [`InputRepeats`]: selects the unacknowledged inputs that a packet repeats.
//!
//! ```text
//!  the server holds │ too late by now │ sent often │ in time, or sent seldom │ new
//!  ─────────────────┴─────────────────┴────────────┴─────────────────────────┴──────▶ I
//!                needed               ╰─ from ─────▶
//! ```
//!
//! With a long round trip, most unacknowledged inputs need not be repeated: they are in flight, or their ticks are
//! sealed without them. Packets leave out both kinds as long as acks arrive as expected. When acks stop, packets repeat
//! everything that the server may lack, so the first packet after an outage of any length carries all inputs that were
//! lost in it.
//!
//! Invariant: an unacknowledged input that may still be in time is in every packet, and every unacknowledged input is
//! in at least [`PACKETS`] packets, sent over at least [`COVERED`].
//!
//! [`Session`](crate::Session) does this automatically. A program that uses the protocol without simulating (a load
//! generator) takes these steps:
//!
//! ```
//! # use std::time::Duration;
//! # use twinstep_client::internal::InputRepeats;
//! # use twinstep_core::Tick;
//! # use twinstep_protocol::link::LinkState;
//! # let (mut repeats, link, tick) = (InputRepeats::default(), LinkState::default(), Duration::from_millis(16));
//! # let (now, next_seal, held, end) = (Duration::from_secs(1), Tick(100), 3, Tick(110));
//! // The newest packet down has the tick to seal next, and the number of inputs held after it without a gap.
//! repeats.record_sealing(now, next_seal);
//! let needed = next_seal + held;
//! // The next packet up carries the inputs `first..end`, and a flag if the path may lose packets.
//! let first = needed.max(repeats.first_to_repeat(now, &link, tick)).min(end);
//! let is_lossy = repeats.marks_lossy(now, &link);
//! repeats.record_sent(now, end, true);
//! # assert_eq!((first, is_lossy), (Tick(103), false));
//! ```

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::nanos;
use twinstep_protocol::link::LinkState;
use twinstep_protocol::repeats::Repeats;

/// Each input is in at least this many packets.
pub(crate) const PACKETS: usize = 6;
/// These packets are spread over at least this time. A longer gap in the acks is detected; this covers shorter ones.
pub(crate) const COVERED: Duration = Duration::from_millis(100);
/// After a loss, the path counts as lossy for this long.
pub(crate) const LOSSY_FOR: Duration = Duration::from_secs(15);
/// A new path counts as proven after this time, unless it is lossy.
pub(crate) const PROVEN: Duration = Duration::from_secs(10);
/// One in this many packets carries the flag that the path is lossy or not proven.
pub(crate) const LOSSY_EVERY: u32 = 8;
/// The server may be this many ticks behind the expected tick.
const LATE_TICKS: u32 = 3;

/// Selects the inputs that a packet repeats because the server may lack them.
#[derive(Debug, Default)]
pub struct InputRepeats {
    sent: Repeats,
    /// The tick that the server was about to seal, according to its newest report, and the time of that report.
    sealing: Option<(Tick, Duration)>,
    /// The time of the first report over the current path.
    reported_since: Option<Duration>,
}

impl InputRepeats {
    pub(crate) fn restart(&mut self) {
        *self = InputRepeats::default();
    }

    /// Records the tick that the server will seal next. Call it only for the newest packet, not for one that arrives
    /// out of order.
    pub fn record_sealing(&mut self, now: Duration, next: Tick) {
        self.sealing = Some((next, now));
        self.reported_since.get_or_insert(now);
    }

    /// Returns `true` if the path has been free of loss for long enough to be trusted.
    pub(crate) fn is_proven(&self, now: Duration, link: &LinkState) -> bool {
        let long = |since| now.saturating_sub(since) >= PROVEN;
        self.reported_since.is_some_and(long) && !is_lossy(now, link)
    }

    /// Returns `true` if the packet being written carries the lossy flag; its link header must already be written. The
    /// flag means that packets were lost within `LOSSY_FOR`, or that the path is not proven yet (`PROVEN`). The server
    /// remembers the flag for a second, so it is enough that one packet in `LOSSY_EVERY` carries it.
    #[must_use]
    pub fn marks_lossy(&self, now: Duration, link: &LinkState) -> bool {
        !self.is_proven(now, link) && link.next_seq().is_multiple_of(LOSSY_EVERY)
    }

    /// Records a packet with the inputs before `end`. `all` is `false` if not all selected inputs fitted; in that case
    /// the record is cleared, so that the next packets repeat the omitted inputs.
    pub fn record_sent(&mut self, now: Duration, end: Tick, all: bool) {
        if !all {
            self.sent.clear();
        }
        self.sent.record(now, end);
    }

    pub(crate) fn sent_until(&self) -> Option<Tick> {
        self.sent.newest()
    }

    /// Returns the first input that a packet sent now must repeat, unless the server already has it. `tick` is the tick
    /// length. Tick 0 means all inputs that the server may lack.
    #[must_use]
    pub fn first_to_repeat(&self, now: Duration, link: &LinkState, tick: Duration) -> Tick {
        if !is_acknowledged(now, link) {
            return Tick(0);
        }
        let often = self.sent.repeated_until(now, PACKETS, COVERED);
        often.min(self.too_late_before(now, link, tick))
    }

    /// Returns the first tick that may not be sealed yet when a packet sent now arrives, if the server has not paused.
    fn too_late_before(&self, now: Duration, link: &LinkState, tick: Duration) -> Tick {
        let (Some((next, heard)), Some(rtt)) = (self.sealing, link.rtt()) else {
            return Tick(0);
        };
        // The report took half a round trip, and the packet will take the other half. Assume a fast round trip, so that
        // an input is omitted only if it will be too late in any case.
        let way = rtt.saturating_sub(2 * link.jitter());
        let passed = now.saturating_sub(heard) + way;
        let ticks = nanos(passed) / nanos(tick).max(1);
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        (next + ticks.saturating_sub(LATE_TICKS)).max(next)
    }
}

fn is_lossy(now: Duration, link: &LinkState) -> bool {
    link.lost_at()
        .is_some_and(|at| now.saturating_sub(at) <= LOSSY_FOR)
}

/// Returns `true` if the server receives this client's packets as expected: its newest ack is for a packet sent at most
/// a round trip and [`COVERED`] ago.
pub(crate) fn is_acknowledged(now: Duration, link: &LinkState) -> bool {
    let (Some(rtt), Some(acked)) = (link.rtt(), link.acked_for(now)) else {
        return false;
    };
    acked <= rtt + COVERED
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_protocol::link::LINK_BYTES;
    use twinstep_protocol::wire::{Reader, Writer};

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const RTT: u64 = 20;
    const MARGIN: u32 = 2;

    /// A client that sends every 10 ms on a path with a 200 ms round trip; the server acknowledges each packet
    /// immediately.
    struct Line {
        client: LinkState,
        server: LinkState,
        repeats: InputRepeats,
        next: u32,
        under_way: Vec<[u8; LINK_BYTES]>,
    }

    impl Line {
        fn new() -> Line {
            let mut line = Line {
                client: LinkState::default(),
                server: LinkState::default(),
                repeats: InputRepeats::default(),
                next: 100,
                under_way: Vec::new(),
            };
            (0..100).for_each(|_| line.frame(true));
            line
        }

        fn now(&self) -> Duration {
            MS(10) * self.next
        }

        /// Advances by a tick: the client sends, and the server's ack arrives if it responds.
        fn frame(&mut self, answers: bool) {
            self.next += 1;
            let now = self.now();
            let mut bytes = [0; LINK_BYTES];
            self.client
                .write(now, &mut Writer::new(&mut bytes))
                .unwrap();
            self.repeats.record_sent(now, Tick(self.next), true);
            self.under_way.push(bytes);
            if !answers || (self.under_way.len() as u64) < RTT {
                return;
            }
            let oldest = self.under_way.remove(0);
            let there = now.saturating_sub(MS(100));
            let header = self.server.parse(&mut Reader::new(&oldest)).unwrap();
            self.server.note(there, header);
            let mut ack = [0; LINK_BYTES];
            self.server
                .write(there, &mut Writer::new(&mut ack))
                .unwrap();
            let header = self.client.parse(&mut Reader::new(&ack)).unwrap();
            self.client.note(now, header);
            // The input sent a round trip ago arrived with its margin.
            let sealing = Tick(self.next - RTT as u32).back(1 + MARGIN);
            self.repeats.record_sealing(now, sealing);
        }

        fn from(&self) -> u32 {
            self.repeats
                .first_to_repeat(self.now(), &self.client, MS(10))
                .0
        }
    }

    #[test]
    fn inputs_sent_often_are_omitted_while_acks_arrive() {
        let line = Line::new();
        assert!(is_acknowledged(line.now(), &line.client));
        // Ten ticks take 100 ms.
        assert_eq!(line.next - line.from(), 10);
    }

    #[test]
    fn all_inputs_are_repeated_when_acks_stop() {
        let mut line = Line::new();
        for silent in 0..10 {
            assert!(line.from() > 0, "{silent}");
            line.frame(false);
        }
        line.frame(false);
        line.frame(false);
        assert_eq!(line.from(), 0);
        // Packets sent during the silence are acknowledged, so repeats stop.
        line.under_way.drain(..10);
        (0..40).for_each(|_| line.frame(true));
        assert_eq!(line.next - line.from(), 10);
    }

    #[test]
    fn an_input_that_may_still_be_in_time_is_always_repeated() {
        let mut line = Line::new();
        // The server has paused for a while, and reports it.
        let sealing = Tick(line.next - 60);
        line.repeats.record_sealing(line.now(), sealing);
        let from = line.from();
        let ticks = RTT as u32 - LATE_TICKS;
        assert!((sealing.0..=sealing.0 + ticks).contains(&from), "{from}");
    }

    #[test]
    fn a_new_path_starts_with_all_inputs() {
        let mut line = Line::new();
        assert!(line.repeats.sent_until().is_some());
        line.repeats.restart();
        assert_eq!((line.from(), line.repeats.sent_until()), (0, None));
        line.repeats.record_sent(line.now(), Tick(line.next), true);
        assert_eq!(line.from(), 0);
    }

    #[test]
    fn an_input_that_does_not_fit_does_not_count_as_sent() {
        let mut line = Line::new();
        line.repeats.record_sent(line.now(), Tick(line.next), false);
        assert_eq!(line.from(), 0);
    }
}
