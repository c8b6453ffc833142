//! [`LinkState`]: the state of a connection at each side: sequences, acks, round trip, jitter, loss.
//!
//! ```text
//! every packet:  [seq: low 16 bits][newest seq received: low 16][how long ago, ms: 8]
//! ```
//!
//! Packets are never resent. A session packet repeats all data that matters within its window, except for parts that
//! take turns because they exceed one packet. So the newest packet makes older ones superfluous: if the peer has
//! received packet `s`, it has every item that was in all packets from the item's first one up to `s`. Invariant: a
//! round trip is measured at most once per received packet, and never from a packet that a newer one overtook.

use core::time::Duration;

use crate::wire::{Reader, WireError, Writer, near16};

pub const LINK_BYTES: usize = 5;

const SENT: usize = 256;
/// [`LinkState::lost_at`] is set once a packet is missing this far before the newest one (three, as in QUIC, RFC 9002).
const OVERTAKEN: u32 = 3;
/// The wire value for a wait that is too long to measure.
const STALE: u8 = u8::MAX;

#[derive(Clone, Debug)]
pub struct LinkState {
    next_seq: u32,
    sent_at: [Duration; SENT],
    newest_received: Option<(u32, Duration)>,
    received_mask: u64,
    acked: u32,
    measured: u32,
    rtt: Option<Duration>,
    deviation: Duration,
    received: u64,
    missing: f32,
    first: u32,
    lost_at: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    pub seq: u32,
    /// Whether it is newer than all packets received before it.
    pub newest: bool,
    /// Whether the same packet has been received before. Also `true` for a packet that is too old to be remembered.
    pub repeated: bool,
    ack: u32,
    wait_ms: u8,
}

/// The mask bit of the packet `back` before the newest one received. 0 if it is too old for the mask.
fn bit_of(back: u32) -> u64 {
    1u64.checked_shl(back).unwrap_or(0)
}

impl Default for LinkState {
    fn default() -> Self {
        LinkState {
            next_seq: 1,
            sent_at: [Duration::ZERO; SENT],
            newest_received: None,
            received_mask: 0,
            acked: 0,
            measured: 0,
            rtt: None,
            deviation: Duration::ZERO,
            received: 0,
            missing: 0.0,
            first: 0,
            lost_at: None,
        }
    }
}

impl LinkState {
    /// A link between the same two endpoints over another path. Its sequences start again; the old path's measurements
    /// are the first estimates of the new one.
    #[must_use]
    pub fn anew(&self) -> LinkState {
        LinkState {
            rtt: self.rtt,
            deviation: self.deviation,
            missing: self.missing,
            lost_at: self.lost_at,
            ..LinkState::default()
        }
    }

    /// The sequence number of the next packet; the first is 1.
    #[must_use]
    pub fn next_seq(&self) -> u32 {
        self.next_seq
    }

    /// The newest of our packets that the peer has received; 0 if it has received none.
    #[must_use]
    pub fn acked(&self) -> u32 {
        self.acked
    }

    /// The smoothed round trip (weight 1/8, as in RFC 6298), without the peer's own wait. `None` before the first
    /// sample.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The smoothed mean deviation of the round trip (weight 1/4, as in RFC 6298; the first sample starts it at 1/8 of
    /// the round trip).
    #[must_use]
    pub fn jitter(&self) -> Duration {
        self.deviation
    }

    /// The fraction of the peer's packets lost, 0..=1, over about the last 100.
    #[must_use]
    pub fn loss(&self) -> f32 {
        self.missing
    }

    /// The time when a packet from the peer was last detected as lost: the third packet after it, or a later one, had
    /// arrived. `None` if no packet was lost.
    #[must_use]
    pub fn lost_at(&self) -> Option<Duration> {
        self.lost_at
    }

    /// The age of our newest packet that the peer has received. `None` if it has received none, or only one from long
    /// ago.
    #[must_use]
    pub fn acked_for(&self, now: Duration) -> Option<Duration> {
        // Older send times have been overwritten in the ring.
        let is_known = self.acked > 0 && self.next_seq - self.acked <= SENT as u32;
        is_known.then(|| now.saturating_sub(self.sent_at[self.acked as usize % SENT]))
    }

    #[must_use]
    pub fn last_received_at(&self) -> Option<Duration> {
        self.newest_received.map(|(_, at)| at)
    }

    /// Writes the header of the next packet.
    pub fn write(&mut self, now: Duration, out: &mut Writer<'_>) -> Result<(), WireError> {
        let (ack, wait_ms) = match self.newest_received {
            Some((seq, at)) => {
                // Rounded to the nearest millisecond. 255 and more become `STALE`.
                let wait = now.saturating_sub(at).as_micros().saturating_add(500) / 1_000;
                (seq, u8::try_from(wait).unwrap_or(STALE))
            }
            None => (0, STALE),
        };
        out.u16(self.next_seq as u16)?;
        out.u16(ack as u16)?;
        out.u8(wait_ms)?;
        self.sent_at[self.next_seq as usize % SENT] = now;
        self.next_seq += 1;
        Ok(())
    }

    /// Reads the header of a packet. Call [`note`](LinkState::note) once the whole packet has been read: only then does
    /// the header take effect.
    ///
    /// # Errors
    /// If the header is truncated, or acknowledges a packet never sent (a protocol error).
    pub fn parse(&self, packet: &mut Reader<'_>) -> Result<LinkHeader, WireError> {
        let newest_seq = self.newest_received.map_or(0, |(seq, _)| seq);
        let seq = near16(packet.u16()?, newest_seq);
        let ack = near16(packet.u16()?, self.acked);
        let wait_ms = packet.u8()?;
        if ack >= self.next_seq {
            return Err(WireError::Malformed(
                "it acknowledges a packet that was not sent",
            ));
        }
        let newest = self.newest_received.is_none() || seq > newest_seq;
        let bit = bit_of(newest_seq - seq.min(newest_seq));
        Ok(LinkHeader {
            seq,
            newest,
            // A packet too old to be remembered counts as repeated.
            repeated: !newest && (self.received_mask & bit != 0 || bit == 0),
            ack,
            wait_ms,
        })
    }

    /// Records that a packet with this header was received now.
    pub fn note(&mut self, now: Duration, header: LinkHeader) {
        let LinkHeader {
            seq,
            newest,
            ack,
            wait_ms,
            ..
        } = header;
        self.record_received(now, seq, newest);
        // An overtaken packet has older acks than those already known.
        if !newest {
            return;
        }
        self.newest_received = Some((seq, now));
        self.acked = self.acked.max(ack);
        // Once per ack: later packets with the same ack would include their own delay.
        if wait_ms != STALE && ack > self.measured && self.next_seq - ack <= SENT as u32 {
            self.measured = ack;
            let wait = Duration::from_millis(u64::from(wait_ms));
            self.measure(
                now.saturating_sub(self.sent_at[ack as usize % SENT])
                    .saturating_sub(wait),
            );
        }
    }

    /// Records which of the last 64 packets were received. A packet that leaves this window without
    /// being received counts as lost.
    fn record_received(&mut self, now: Duration, seq: u32, newest: bool) {
        self.received += 1;
        if self.newest_received.is_none() {
            self.first = seq;
        }
        let newest_seq = self.newest_received.map_or(0, |(seq, _)| seq);
        if !newest {
            self.received_mask |= bit_of(newest_seq - seq);
            return;
        }
        let ahead = if self.newest_received.is_none() {
            1
        } else {
            seq - newest_seq
        };
        for _ in 0..ahead.min(64) {
            // Until the window has filled, its empty bits are packets never sent.
            let lost = self.received > 64 && self.received_mask >> 63 == 0;
            self.missing += (if lost { 1.0 } else { 0.0 } - self.missing) / 100.0;
            self.received_mask <<= 1;
        }
        self.received_mask |= 1;
        // The packets that have only now fallen three or more behind the newest one.
        let overtaken = OVERTAKEN..(OVERTAKEN + ahead).min(64);
        let is_lost = |back: u32| back < seq - self.first && self.received_mask & bit_of(back) == 0;
        if overtaken.into_iter().any(is_lost) {
            self.lost_at = Some(now);
        }
    }

    fn measure(&mut self, sample: Duration) {
        let Some(rtt) = self.rtt else {
            self.rtt = Some(sample);
            self.deviation = sample / 8;
            return;
        };
        self.deviation = (self.deviation * 3 + sample.abs_diff(rtt)) / 4;
        self.rtt = Some((rtt * 7 + sample) / 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn header(link: &mut LinkState, now: Duration) -> [u8; LINK_BYTES] {
        let mut bytes = [0; LINK_BYTES];
        link.write(now, &mut Writer::new(&mut bytes)).unwrap();
        bytes
    }

    fn receive(link: &mut LinkState, now: Duration, bytes: &[u8]) -> Result<LinkHeader, WireError> {
        let header = link.parse(&mut Reader::new(bytes))?;
        link.note(now, header);
        Ok(header)
    }

    /// Finding A16: a header that was only parsed has no effect.
    #[test]
    fn a_header_takes_effect_when_it_is_noted() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        let up = header(&mut a, MS);
        let told = b.parse(&mut Reader::new(&up)).unwrap();
        assert_eq!(b.last_received_at(), None);
        assert!(told.newest && b.parse(&mut Reader::new(&up)) == Ok(told));
        b.note(MS, told);
        assert_eq!(b.last_received_at(), Some(MS));
        assert!(b.parse(&mut Reader::new(&up)).unwrap().repeated);
    }

    #[test]
    fn the_round_trip_excludes_the_peers_wait() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        let mut now = MS;
        for _ in 0..200 {
            let up = header(&mut a, now);
            receive(&mut b, now + 40 * MS, &up).unwrap();
            let down = header(&mut b, now + 57 * MS);
            receive(&mut a, now + 97 * MS, &down).unwrap();
            now += 100 * MS;
        }
        let rtt = a.rtt().unwrap();
        assert!(rtt.abs_diff(80 * MS) < 2 * MS, "{rtt:?}");
        assert!(a.jitter() < 2 * MS);
    }

    #[test]
    fn loss_is_counted_once_per_missing_packet() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        for i in 0..1_000u32 {
            let bytes = header(&mut a, i * MS);
            if i % 5 != 0 {
                receive(&mut b, i * MS, &bytes).unwrap();
            }
        }
        assert!((b.loss() - 0.2).abs() < 0.05, "{}", b.loss());
    }

    #[test]
    fn a_packet_counts_as_lost_once_three_later_packets_have_arrived() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        let packets: alloc::vec::Vec<_> = (0..200).map(|i| header(&mut a, i * MS)).collect();
        // The first packet received need not be the first one sent.
        for at in 10..30u32 {
            receive(&mut b, at * MS, &packets[at as usize]).unwrap();
            assert_eq!(b.lost_at(), None);
        }
        // Packet 30 arrives late, but only after two others.
        for at in [31, 32, 30, 33, 34, 35, 37, 38] {
            receive(&mut b, at * MS, &packets[at as usize]).unwrap();
            assert_eq!(b.lost_at(), None, "{at}");
        }
        receive(&mut b, 39 * MS, &packets[39]).unwrap();
        assert_eq!(b.lost_at(), Some(39 * MS), "36 is lost");
        for at in 40..60u32 {
            receive(&mut b, at * MS, &packets[at as usize]).unwrap();
        }
        assert_eq!(b.lost_at(), Some(39 * MS), "once");
        // A gap longer than the remembered window.
        receive(&mut b, 150 * MS, &packets[150]).unwrap();
        assert_eq!(b.lost_at(), Some(150 * MS));
        assert_eq!(b.anew().lost_at(), b.lost_at());
    }

    #[test]
    fn the_age_of_the_newest_ack_grows_while_the_peer_is_silent() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        assert_eq!(a.acked_for(MS), None);
        let up = header(&mut a, MS);
        receive(&mut b, 20 * MS, &up).unwrap();
        let down = header(&mut b, 20 * MS);
        assert_eq!(a.acked_for(30 * MS), None, "the ack has not arrived yet");
        receive(&mut a, 40 * MS, &down).unwrap();
        assert_eq!(a.acked_for(40 * MS), Some(39 * MS));
        assert_eq!(a.acked_for(90 * MS), Some(89 * MS));
        (0..SENT as u32).for_each(|i| _ = header(&mut a, i * MS));
        assert_eq!(a.acked_for(90 * MS), None, "forgotten");
    }

    #[test]
    fn older_and_repeated_packets_are_recognised() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        let packets: alloc::vec::Vec<_> = (0..4).map(|i| header(&mut a, i * MS)).collect();
        assert!(receive(&mut b, MS, &packets[0]).unwrap().newest);
        assert!(receive(&mut b, MS, &packets[3]).unwrap().newest);
        let late = receive(&mut b, MS, &packets[1]).unwrap();
        assert!(!late.newest && !late.repeated);
        assert!(receive(&mut b, MS, &packets[1]).unwrap().repeated);
        assert!(receive(&mut b, MS, &packets[3]).unwrap().repeated);
    }

    #[test]
    fn an_ack_of_an_unsent_packet_is_a_protocol_error() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        let up = header(&mut a, MS);
        receive(&mut b, MS, &up).unwrap();
        let down = header(&mut b, MS);
        let mut stranger = LinkState::default();
        assert!(receive(&mut stranger, MS, &down).is_err());
        assert_eq!(receive(&mut a, 2 * MS, &down).map(|h| h.newest), Ok(true));
        assert_eq!(a.acked(), 1);
    }

    #[test]
    fn sequences_never_wrap_in_memory() {
        let (mut a, mut b) = (LinkState::default(), LinkState::default());
        for i in 0..200_000u32 {
            let up = header(&mut a, i * MS);
            assert_eq!(receive(&mut b, i * MS, &up).unwrap().seq, i + 1);
            let down = header(&mut b, i * MS);
            receive(&mut a, i * MS, &down).unwrap();
        }
        assert_eq!(a.acked(), 200_000);
    }
}
