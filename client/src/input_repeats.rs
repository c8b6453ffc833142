//! [`InputRepeats`]: which of the own inputs that the server may lack a packet says again.
//!
//! ```text
//!  the server holds │ too late by now │ said often │ in time, or said seldom │ news
//!  ─────────────────┴─────────────────┴────────────┴─────────────────────────┴──────▶ I
//!                needed               ╰─ from ─────▶
//! ```
//!
//! Over a long way most inputs that are not acknowledged are in no danger: they are on their way, or their ticks are sealed
//! without them. Both are left out as long as acks come as they should. As soon as these stay away, all that the server may
//! lack is said again: so whatever is lost in an outage of any length is in the first packet behind it.
//!
//! Invariant: an input that may still be in time is in each packet, and every input is in at least [`PACKETS`] packets that
//! leave over at least [`COVERED`].
//!
//! [`Session`](crate::Session) does all this by itself. A program that speaks the protocol without simulating (a load generator)
//! goes through these steps:
//!
//! ```
//! # use std::time::Duration;
//! # use twinstep_client::internal::InputRepeats;
//! # use twinstep_core::Tick;
//! # use twinstep_protocol::link::LinkState;
//! # let (mut repeats, link, tick) = (InputRepeats::default(), LinkState::default(), Duration::from_millis(16));
//! # let (now, next_seal, held, end) = (Duration::from_secs(1), Tick(100), 3, Tick(110));
//! // The newest packet down says which tick is sealed next, and how many inputs from there on are held without a gap.
//! repeats.record_sealing(now, next_seal);
//! let needed = next_seal + held;
//! // The next packet up says the inputs `first..end`, and whether the line is to be taken for a lossy one.
//! let first = needed.max(repeats.from(now, &link, tick)).min(end);
//! let is_lossy = repeats.marks_lossy(now, &link);
//! repeats.record_sent(now, end, true);
//! # assert_eq!((first, is_lossy), (Tick(103), false));
//! ```

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::nanos;
use twinstep_protocol::link::LinkState;
use twinstep_protocol::repeats::Repeats;

/// Every input is in at least so many packets...
pub(crate) const PACKETS: usize = 6;
/// ...which leave over at least so long. Acks that stay away for longer are noticed, so this covers what is lost before.
pub(crate) const COVERED: Duration = Duration::from_millis(100);
/// Where packets were lost, more may be lost, for so long.
pub(crate) const LOSSY_FOR: Duration = Duration::from_secs(15);
/// A path that has lost nothing for so long is a good one.
pub(crate) const PROVEN: Duration = Duration::from_secs(10);
/// One packet in so many says that the line is lossy, or not known to be good.
pub(crate) const LOSSY_EVERY: u32 = 8;
/// The server may be so many ticks behind where its last word and the round trip say it is.
const LATE_TICKS: u32 = 3;

/// The own inputs that a packet repeats, because the server may lack them.
#[derive(Debug, Default)]
pub struct InputRepeats {
    sent: Repeats,
    /// The next tick that the server would seal, as it said last, and when that was heard.
    sealing: Option<(Tick, Duration)>,
    /// Since when the server is heard over the path that there is now.
    heard_since: Option<Duration>,
}

impl InputRepeats {
    /// Nothing was said yet over the path that there is now.
    pub(crate) fn begin_anew(&mut self) {
        *self = InputRepeats::default();
    }

    /// The server says which tick it seals next. Of packets that come out of order only the newest counts: call it for no other.
    pub fn record_sealing(&mut self, now: Duration, next: Tick) {
        self.sealing = Some((next, now));
        self.heard_since.get_or_insert(now);
    }

    /// Whether the path has carried everything for so long that it may be trusted to go on like that.
    pub(crate) fn is_proven(&self, now: Duration, link: &LinkState) -> bool {
        let long = |since| now.saturating_sub(since) >= PROVEN;
        self.heard_since.is_some_and(long) && !is_lossy(now, link)
    }

    /// Whether the packet at hand, whose link header is written, says that not all came within `LOSSY_FOR`, or that nobody knows
    /// yet (`PROVEN`): the server believes it for a second, and a byte in each packet would cost more than it saves. So one in
    /// `LOSSY_EVERY` says it.
    #[must_use]
    pub fn marks_lossy(&self, now: Duration, link: &LinkState) -> bool {
        !self.is_proven(now, link) && link.next_seq().is_multiple_of(LOSSY_EVERY)
    }

    /// A packet leaves with the inputs before `end`; `all`: those that are to be said found room. If not, nothing counts as said
    /// often: what was left out goes into the next packets.
    pub fn record_sent(&mut self, now: Duration, end: Tick, all: bool) {
        if !all {
            self.sent.clear();
        }
        self.sent.note(now, end);
    }

    /// Up to where inputs were said.
    pub(crate) fn sent_until(&self) -> Option<Tick> {
        self.sent.newest()
    }

    /// The first input that a packet says which leaves now, unless the server holds it already; ticks last `tick`. Tick 0: all that
    /// the server may lack.
    #[must_use]
    pub fn from(&self, now: Duration, link: &LinkState, tick: Duration) -> Tick {
        if !is_heard(now, link) {
            return Tick(0);
        }
        let often = self.sent.enough(now, PACKETS, COVERED);
        often.min(self.too_late_before(now, link, tick))
    }

    /// Before this tick all are sealed when a packet arrives that leaves now, unless the server stands still.
    fn too_late_before(&self, now: Duration, link: &LinkState, tick: Duration) -> Tick {
        let (Some((next, heard)), Some(rtt)) = (self.sealing, link.rtt()) else {
            return Tick(0);
        };
        let way = rtt.saturating_sub(2 * link.jitter());
        let passed = now.saturating_sub(heard) + way;
        let ticks = nanos(passed) / nanos(tick).max(1);
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        (next + ticks.saturating_sub(LATE_TICKS)).max(next)
    }
}

/// Whether this client has lost packets of the server lately.
fn is_lossy(now: Duration, link: &LinkState) -> bool {
    link.lost_at()
        .is_some_and(|at| now.saturating_sub(at) <= LOSSY_FOR)
}

/// Whether the server hears this client as it should: its newest ack is of a packet that left no longer ago than a round
/// trip and [`COVERED`].
pub(crate) fn is_heard(now: Duration, link: &LinkState) -> bool {
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
    /// A round trip, in ticks of 10 ms.
    const RTT: u64 = 20;
    /// The margin with which inputs arrive, in ticks.
    const MARGIN: u32 = 2;

    /// A client that speaks every 10 ms over a line of 200 ms there and back; the server acknowledges each packet at once.
    struct Line {
        client: LinkState,
        server: LinkState,
        repeats: InputRepeats,
        /// The tick after the newest input.
        next: u32,
        /// Packets that are on their way there and back.
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

        /// A tick later: a packet leaves, and if the server speaks an ack comes.
        fn frame(&mut self, speaks: bool) {
            self.next += 1;
            let now = self.now();
            let mut bytes = [0; LINK_BYTES];
            self.client
                .write(now, &mut Writer::new(&mut bytes))
                .unwrap();
            self.repeats.record_sent(now, Tick(self.next), true);
            self.under_way.push(bytes);
            if !speaks || (self.under_way.len() as u64) < RTT {
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
            // The input that left a round trip ago came with its margin.
            let sealing = Tick(self.next - RTT as u32).back(1 + MARGIN);
            self.repeats.record_sealing(now, sealing);
        }

        fn from(&self) -> u32 {
            self.repeats.from(self.now(), &self.client, MS(10)).0
        }
    }

    #[test]
    fn while_acks_come_what_was_said_often_and_is_under_way_is_left_out() {
        let line = Line::new();
        assert!(is_heard(line.now(), &line.client));
        // Ten ticks take 100 ms.
        assert_eq!(line.next - line.from(), 10);
    }

    #[test]
    fn as_soon_as_acks_stay_away_all_is_said_again() {
        let mut line = Line::new();
        for silent in 0..10 {
            assert!(line.from() > 0, "{silent}");
            line.frame(false);
        }
        line.frame(false);
        line.frame(false);
        assert_eq!(line.from(), 0);
        // What left in the silence is acknowledged: all is well again.
        line.under_way.drain(..10);
        (0..40).for_each(|_| line.frame(true));
        assert_eq!(line.next - line.from(), 10);
    }

    #[test]
    fn what_may_be_in_time_is_said_again_however_often_it_was() {
        let mut line = Line::new();
        // The server has stood still for a while, and says so.
        let sealing = Tick(line.next - 60);
        line.repeats.record_sealing(line.now(), sealing);
        let from = line.from();
        let ticks = RTT as u32 - LATE_TICKS;
        assert!((sealing.0..=sealing.0 + ticks).contains(&from), "{from}");
    }

    #[test]
    fn a_new_path_begins_with_everything() {
        let mut line = Line::new();
        assert!(line.repeats.sent_until().is_some());
        line.repeats.begin_anew();
        assert_eq!((line.from(), line.repeats.sent_until()), (0, None));
        line.repeats.record_sent(line.now(), Tick(line.next), true);
        assert_eq!(line.from(), 0);
    }

    #[test]
    fn what_found_no_room_was_not_said() {
        let mut line = Line::new();
        line.repeats.record_sent(line.now(), Tick(line.next), false);
        assert_eq!(line.from(), 0);
    }
}
