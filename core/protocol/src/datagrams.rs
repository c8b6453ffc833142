//! [`Datagrams`]: packets over a path that may pass only small datagrams. It detects which sizes pass, splits larger
//! packets into parts, and joins the peer's parts.
//!
//! ```text
//!  packet ─▶ cut ─▶ itself, if that size is known to pass          probe of the next size ─▶
//!               └─▶ 2 to 4 parts otherwise ─▶ path ─▶ join ─▶ packet        ◀─ report of its size
//! ```
//!
//! A new path is assumed to pass only [`SURE_BYTES`]. The first larger packet triggers a probe of the full size. If the
//! probe arrives, which takes one round trip, packets are no longer split. If it does not, a smaller size is probed as
//! well. These probes are repeated with growing pauses while packets are split. While large datagrams flow, the peer
//! reports every two seconds how large they were. If reports stop, a few probes are sent; if these get no response,
//! only small datagrams are used. So a path change is detected within seconds, and a dead path gets only a few probes.
//!
//! Invariants: a session with only small packets does not send this module's datagrams. A peer's parts take at most
//! [`JOINED_MAX`] packets of memory. If a part is lost, so is its packet.

use alloc::vec::Vec;
use core::time::Duration;

/// The datagram size that every path passes, in bytes: the IPv4 packet size that every host must accept (576), minus
/// the IP (at most 60) and UDP (8) headers.
pub const SURE_BYTES: usize = 508;
/// A size between the two others: it carries the largest packet in two parts instead of three.
const MIDDLE_BYTES: usize = 630;
/// The largest packet that can be split, in bytes.
pub const CUT_BYTES_MAX: usize = 1_200;
/// The maximum number of unfinished packets kept. The parts of this many packets can overtake each other.
pub const JOINED_MAX: usize = 16;

/// The first bytes of this module's datagrams. Packets must start with other bytes.
pub const MARKS: [u8; 3] = [PROBE, GOT, PART];
/// A probe; its other bytes are filler.
const PROBE: u8 = 0xfa;
/// A report, followed by the size of the largest datagram received since the last report, `u16`.
const GOT: u8 = 0xfb;
/// A part, followed by the packet's number, `u16`; the part's index and the number of parts, 4 bits each; the part's
/// offset, `u16`.
const PART: u8 = 0xfc;
const GOT_BYTES: usize = 3;
const PART_HEAD_BYTES: usize = 6;
const PARTS_MAX: usize = 4;

const REPORT_EVERY: Duration = Duration::from_secs(2);
// The time without reports after which large datagrams are in doubt.
const DOUBT_AFTER: Duration = Duration::from_secs(5);
const DOUBTS_MAX: u8 = 4;
/// The first pause between two probes. Every second probe of a larger size doubles it, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Larger sizes are tried only if a packet had to be split within this time.
const IN_USE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Datagrams {
    around: usize,
    /// The sizes, ascending. The first one passes on every path, so it is not probed.
    sizes: [usize; 3],
    passes: usize,
    cut_at: Option<Duration>,
    /// The largest datagram above the first size sent since the last report, and the time of the first one. `None` if a
    /// report has covered all of them.
    unproved: Option<(usize, Duration)>,
    doubts: u8,
    probe_at: Duration,
    pause: Duration,
    /// Whether the next probe of a larger size has the middle size.
    is_middle_next: bool,
    next_packet: u16,
    /// The largest datagram received since the last report, if it was above the first size.
    received_max: usize,
    report_at: Duration,
    joined: Vec<Joined>,
    next_joined: usize,
}

#[derive(Clone, Copy, Debug)]
struct Joined {
    number: u16,
    count: u8,
    each: usize,
    /// The parts that have arrived.
    mask: u8,
    end: usize,
    content: [u8; CUT_BYTES_MAX],
}

const NO_PACKET: Joined = Joined {
    number: 0,
    count: 0,
    each: 0,
    mask: 0,
    end: 0,
    content: [0; CUT_BYTES_MAX],
};

impl Datagrams {
    /// A path of unknown size. The layers below add `around` bytes to each datagram; no packet is larger than
    /// `packet_bytes_max`.
    ///
    /// # Panics
    /// If packets could be larger than [`CUT_BYTES_MAX`], or if `around` leaves too little space in a datagram.
    #[must_use]
    pub fn new(around: usize, packet_bytes_max: usize) -> Datagrams {
        assert!(
            packet_bytes_max <= CUT_BYTES_MAX,
            "{packet_bytes_max} bytes"
        );
        let sizes = [
            SURE_BYTES,
            MIDDLE_BYTES,
            (packet_bytes_max + around).max(MIDDLE_BYTES),
        ];
        assert!(around + PART_HEAD_BYTES + CUT_BYTES_MAX / PARTS_MAX <= SURE_BYTES);
        Datagrams {
            around,
            sizes,
            passes: 0,
            cut_at: None,
            unproved: None,
            doubts: 0,
            probe_at: Duration::ZERO,
            pause: PAUSE_FIRST,
            is_middle_next: false,
            next_packet: 0,
            received_max: 0,
            report_at: Duration::ZERO,
            joined: Vec::new(),
            next_joined: 0,
        }
    }

    /// The largest datagram known to pass, in bytes, including those that the layers below add.
    #[must_use]
    pub fn passes(&self) -> usize {
        self.sizes[self.passes]
    }

    /// Passes a packet to `send`, whole or in parts. Returns `false` if one of the calls returned `false`.
    pub fn cut(
        &mut self,
        now: Duration,
        packet: &[u8],
        mut send: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let size = packet.len() + self.around;
        if size <= self.sizes[0] {
            return send(packet);
        }
        if size <= self.passes() {
            self.record_large(now, size);
            return send(packet);
        }
        if self.cut_at.is_none_or(|at| now.saturating_sub(at) > IN_USE) {
            // The first split after a long time: probe immediately.
            self.probe_at = self.probe_at.min(now);
        }
        self.cut_at = Some(now);
        let room = self.passes() - self.around - PART_HEAD_BYTES;
        let count = packet.len().div_ceil(room);
        // Equal parts, so that the receiver can check their offsets.
        let each = packet.len().div_ceil(count);
        let number = self.next_packet;
        // May wrap: only the last few packets can be incomplete at the receiver.
        self.next_packet = number.wrapping_add(1);
        let mut all = true;
        for (n, content) in packet.chunks(each).enumerate() {
            let mut part = [0; MIDDLE_BYTES];
            part[0] = PART;
            part[1..3].copy_from_slice(&number.to_le_bytes());
            part[3] = (n << 4 | count) as u8;
            part[4..6].copy_from_slice(&((n * each) as u16).to_le_bytes());
            let end = PART_HEAD_BYTES + content.len();
            part[PART_HEAD_BYTES..end].copy_from_slice(content);
            let size = end + self.around;
            if size > self.sizes[0] {
                self.record_large(now, size);
            }
            all &= send(&part[..end]);
        }
        all
    }

    fn record_large(&mut self, now: Duration, size: usize) {
        let (largest, since) = self.unproved.unwrap_or((0, now));
        self.unproved = Some((largest.max(size), since));
    }

    /// Takes a datagram from the peer. Returns the packet that it contains or completes.
    pub fn join<'a>(&'a mut self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let size = datagram.len() + self.around;
        if size > self.sizes[0] {
            self.received_max = self.received_max.max(size);
        }
        match *datagram {
            [PROBE, ..] => {
                // The sender waits for the report, so send it immediately.
                self.report_at = Duration::ZERO;
                self.received_max = self.received_max.max(size);
                None
            }
            [GOT, low, high] => {
                self.handle_report(usize::from(u16::from_le_bytes([low, high])));
                None
            }
            [PART, ..] => self.take_part(datagram),
            _ => Some(datagram),
        }
    }

    fn handle_report(&mut self, size: usize) {
        let reached = self.sizes.iter().rposition(|passes| *passes <= size);
        if let Some(reached) = reached.filter(|reached| *reached > self.passes) {
            self.passes = reached;
            self.pause = PAUSE_FIRST;
        }
        if self.unproved.is_some_and(|(largest, _)| largest <= size) {
            self.unproved = None;
            self.doubts = 0;
        }
    }

    fn take_part(&mut self, datagram: &[u8]) -> Option<&[u8]> {
        let (head, content) = datagram.split_first_chunk::<PART_HEAD_BYTES>()?;
        let number = u16::from_le_bytes([head[1], head[2]]);
        let (n, count) = (head[3] >> 4, head[3] & 15);
        let start = usize::from(u16::from_le_bytes([head[4], head[5]]));
        let end = start + content.len();
        if !(2..=PARTS_MAX as u8).contains(&count) || n >= count || end > CUT_BYTES_MAX {
            return None;
        }
        // All parts but the last have the same length, so they neither overlap nor leave a gap.
        let before = usize::from(n);
        let each = match n + 1 == count {
            // The last part can be shorter, so the length of the others follows from its offset.
            true => start / before,
            false => content.len(),
        };
        if start != each * before || content.is_empty() || content.len() > each {
            return None;
        }
        let joined = &mut self.joined;
        // The length is also compared, so that a forged part does not mix with real ones.
        let is_it = |one: &Joined| (one.number, one.count, one.each) == (number, count, each);
        let at = joined.iter().position(is_it).unwrap_or_else(|| {
            let at = self.next_joined;
            self.next_joined = (at + 1) % JOINED_MAX;
            if at == joined.len() {
                joined.push(NO_PACKET);
            }
            let packet = &mut joined[at];
            (packet.number, packet.count, packet.each) = (number, count, each);
            (packet.mask, packet.end) = (0, 0);
            at
        });
        let packet = &mut joined[at];
        if packet.mask & 1 << n != 0 {
            return None;
        }
        packet.mask |= 1 << n;
        packet.end = packet.end.max(end);
        packet.content[start..end].copy_from_slice(content);
        // A completed packet stays known, so that a repeated part does not start it again.
        let is_whole = packet.mask == (1 << count) - 1;
        is_whole.then(|| &joined[at].content[..joined[at].end])
    }

    /// Returns `true` if a probe or a report is due.
    #[must_use]
    pub fn is_due(&self, now: Duration) -> bool {
        self.owes_report(now) || self.owes_probe(now)
    }

    fn owes_report(&self, now: Duration) -> bool {
        self.received_max > 0 && now >= self.report_at
    }

    fn is_in_doubt(&self, now: Duration) -> bool {
        let since = self.unproved.map(|(_, since)| since);
        since.is_some_and(|since| now.saturating_sub(since) >= DOUBT_AFTER)
    }

    fn owes_probe(&self, now: Duration) -> bool {
        let cuts = self
            .cut_at
            .is_some_and(|at| now.saturating_sub(at) <= IN_USE);
        let could_pass_more = cuts && self.passes + 1 < self.sizes.len();
        now >= self.probe_at && (could_pass_more || self.is_in_doubt(now))
    }

    /// Writes a probe or a report if one is due, and returns its length.
    ///
    /// # Panics
    /// If `out` is too short; [`CUT_BYTES_MAX`] bytes suffice.
    pub fn poll(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        if self.owes_report(now) {
            out[0] = GOT;
            out[1..GOT_BYTES].copy_from_slice(&(self.received_max as u16).to_le_bytes());
            self.received_max = 0;
            self.report_at = now + REPORT_EVERY;
            return Some(GOT_BYTES);
        }
        if !self.owes_probe(now) {
            return None;
        }
        let size = if self.is_in_doubt(now) {
            self.doubts += 1;
            if self.doubts > DOUBTS_MAX {
                // Several probes without a report: the path no longer passes this size.
                self.passes = 0;
                self.unproved = None;
                self.doubts = 0;
                self.pause = PAUSE_FIRST;
                return None;
            }
            self.probe_at = now + PAUSE_FIRST;
            self.passes()
        } else {
            // The full size and the one in between alternate, unless the first probe of the full size gets a response.
            let size = match self.is_middle_next && self.passes == 0 {
                true => self.sizes[1],
                false => self.sizes[2],
            };
            self.is_middle_next = !self.is_middle_next;
            self.probe_at = now + self.pause;
            if !self.is_middle_next {
                self.pause = (self.pause * 2).min(PAUSE_MAX);
            }
            size
        };
        let bytes = size - self.around;
        out[..bytes].fill(0);
        out[0] = PROBE;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const AROUND: usize = 25;
    const LARGEST: usize = 1_105;

    /// Two endpoints, and a path that passes datagrams of at most `passes` bytes, with 20 ms each way.
    struct TwoEnds {
        ends: [Datagrams; 2],
        passes: usize,
        flying: Vec<(Duration, usize, Vec<u8>)>,
        now: Duration,
        got: [Vec<Vec<u8>>; 2],
        sent: (usize, usize),
        keeps: u32,
        lost: u32,
    }

    impl TwoEnds {
        fn new(passes: usize) -> TwoEnds {
            TwoEnds {
                ends: [
                    Datagrams::new(AROUND, LARGEST),
                    Datagrams::new(AROUND, LARGEST),
                ],
                passes,
                flying: Vec::new(),
                now: 1_000 * MS,
                got: [Vec::new(), Vec::new()],
                sent: (0, 0),
                keeps: u32::MAX,
                lost: 0,
            }
        }

        fn fly(&mut self, to: usize, datagram: &[u8]) {
            self.sent = (self.sent.0 + 1, self.sent.1 + datagram.len() + AROUND);
            self.lost = self
                .lost
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            if datagram.len() + AROUND <= self.passes && self.lost <= self.keeps {
                self.flying
                    .push((self.now + 20 * MS, to, datagram.to_vec()));
            }
        }

        fn send(&mut self, from: usize, packet: &[u8]) {
            let mut parts = Vec::new();
            self.ends[from].cut(self.now, packet, |part| {
                parts.push(part.to_vec());
                true
            });
            for part in parts {
                self.fly(1 - from, &part);
            }
        }

        fn pass(&mut self, time: Duration) {
            let end = self.now + time;
            while self.now < end {
                self.now += 10 * MS;
                let due = |flight: &(Duration, usize, Vec<u8>)| flight.0 <= self.now;
                let (come, rest): (Vec<_>, Vec<_>) =
                    core::mem::take(&mut self.flying).into_iter().partition(due);
                self.flying = rest;
                for (_, to, datagram) in come {
                    if let Some(packet) = self.ends[to].join(&datagram) {
                        self.got[to].push(packet.to_vec());
                    }
                }
                for from in 0..2 {
                    let mut out = [0; CUT_BYTES_MAX];
                    while let Some(bytes) = self.ends[from].poll(self.now, &mut out) {
                        self.fly(1 - from, &out[..bytes]);
                    }
                }
            }
        }
    }

    fn packet(n: usize) -> Vec<u8> {
        (0..n).map(|at| (at * 7 + n) as u8 & 0x7f).collect()
    }

    /// Finding P3-U1: packets larger than the path's limit never arrived.
    #[test]
    fn packets_arrive_over_any_path_in_the_fewest_parts() {
        for (passes, largest) in [
            (SURE_BYTES, SURE_BYTES),
            (548, SURE_BYTES),
            (700, MIDDLE_BYTES),
            (1_000, MIDDLE_BYTES),
            (LARGEST + AROUND, LARGEST + AROUND),
            (9_000, LARGEST + AROUND),
        ] {
            let mut world = TwoEnds::new(passes);
            let mut sent = Vec::new();
            for n in 0..200 {
                let packet = packet([40, 483, 484, 700, 1_000, LARGEST][n % 6]);
                world.send(n % 2, &packet);
                sent.push(packet);
                world.pass(40 * MS);
            }
            for end in 0..2 {
                let of_other = sent.iter().skip(1 - end).step_by(2);
                assert!(world.got[end].iter().eq(of_other), "{passes} to {end}");
                assert_eq!(world.ends[end].passes(), largest, "{passes}");
            }
            // No more packets are split than necessary, and few extra datagrams are sent.
            let before = world.sent.0;
            for _ in 0..100 {
                world.send(0, &packet(LARGEST));
                world.pass(40 * MS);
            }
            let each = match largest {
                SURE_BYTES => 3,
                MIDDLE_BYTES => 2,
                _ => 1,
            };
            let datagrams = world.sent.0 - before;
            assert!(
                (100 * each..100 * each + 10).contains(&datagrams),
                "{datagrams} at {passes}"
            );
        }
    }

    #[test]
    fn a_session_with_small_packets_sends_no_extra_datagrams() {
        let mut world = TwoEnds::new(9_000);
        for _ in 0..1_000 {
            world.send(0, &packet(SURE_BYTES - AROUND));
            world.pass(20 * MS);
        }
        assert_eq!(world.sent.0, 1_000);
    }

    // Finding R5.
    #[test]
    fn the_first_split_after_a_pause_probes_immediately() {
        let mut world = TwoEnds::new(SURE_BYTES);
        let far = |world: &TwoEnds| world.ends[0].probe_at > world.now + 20_000 * MS;
        for _ in 0..10_000 {
            world.send(0, &packet(LARGEST));
            world.pass(20 * MS);
            if far(&world) {
                break;
            }
        }
        assert!(far(&world), "it probes rarely");
        world.passes = 9_000;
        world.pass(2 * IN_USE);
        world.send(0, &packet(LARGEST));
        world.pass(100 * MS);
        assert!(world.ends[0].passes() > SURE_BYTES);
    }

    #[test]
    fn a_changed_path_is_detected_within_seconds() {
        let mut world = TwoEnds::new(9_000);
        let second = |world: &mut TwoEnds| {
            let before = world.got[1].len();
            for _ in 0..25 {
                world.send(0, &packet(1_000));
                world.pass(40 * MS);
            }
            world.got[1].len() - before
        };
        second(&mut world);
        for _ in 0..20 {
            assert!(second(&mut world) >= 24);
        }
        world.passes = 548;
        let lost = (0..20).filter(|_| second(&mut world) < 20).count();
        assert!((1..=8).contains(&lost), "{lost} s until it was noticed");
        assert_eq!(world.ends[0].passes(), SURE_BYTES);
        world.passes = 9_000;
        let cut = (0..60)
            .take_while(|_| {
                second(&mut world);
                world.ends[0].passes() < 1_000
            })
            .count();
        assert!(cut < 45, "{cut} s until it was noticed");
    }

    #[test]
    fn a_lossy_path_still_uses_large_datagrams() {
        let mut world = TwoEnds::new(9_000);
        world.keeps = u32::MAX / 100 * 75;
        let mut cut = 0;
        for n in 0..3_000 {
            world.send(0, &packet(600 + n % 500));
            world.pass(40 * MS);
            cut += usize::from(world.ends[0].passes() < 1_000);
        }
        assert!(cut < 150, "{cut} of 3,000");
    }

    #[test]
    fn parts_may_be_repeated_or_reordered_and_damaged_parts_complete_no_packet() {
        let mut from = Datagrams::new(AROUND, LARGEST);
        let mut to = Datagrams::new(AROUND, LARGEST);
        let mut parts = Vec::new();
        let whole = packet(LARGEST);
        from.cut(MS, &whole, |part| {
            parts.push(part.to_vec());
            true
        });
        assert_eq!(parts.len(), 3);
        parts.reverse();
        for part in &parts[..2] {
            assert_eq!(to.join(part), None);
            assert_eq!(to.join(part), None, "twice");
        }
        assert_eq!(to.join(&parts[2]), Some(&whole[..]));
        assert!(parts.iter().all(|part| to.join(part).is_none()), "once");
        for at in 0..PART_HEAD_BYTES {
            for value in 0..=u8::MAX {
                let mut to = Datagrams::new(AROUND, LARGEST);
                let mut damaged = parts[1].clone();
                damaged[at] = value;
                for part in [&parts[0], &damaged, &parts[2]] {
                    if let Some(joined) = to.join(part) {
                        assert!(at == 0 || joined == whole, "byte {at}: {value}");
                    }
                }
            }
        }
        for length in 0..=PART_HEAD_BYTES {
            assert_eq!(
                Datagrams::new(AROUND, LARGEST).join(&parts[0][..length]),
                match length {
                    0 => Some(&[][..]),
                    _ => None,
                }
            );
        }
    }

    #[test]
    fn hostile_parts_and_probes_get_few_replies_and_little_memory() {
        let mut to = Datagrams::new(AROUND, LARGEST);
        let mut out = [0; CUT_BYTES_MAX];
        let mut answers = 0;
        for n in 0..100_000_u32 {
            let mut part = [0; 30];
            part[..6].copy_from_slice(&[PART, n as u8, (n >> 8) as u8, 2, 0, 0]);
            assert_eq!(to.join(&part), None);
            let got = [GOT, n as u8, (n >> 8) as u8];
            assert_eq!(to.join(&got), None);
            let probe = [PROBE; 100];
            assert_eq!(to.join(&probe), None);
            while let Some(bytes) = to.poll(MS * n, &mut out) {
                answers += 1;
                assert_eq!(bytes, GOT_BYTES);
            }
        }
        assert!(answers <= 100_000);
    }
}
