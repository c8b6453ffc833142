//! The received frames that the authority has not stepped yet, and the digests sent with them.
//!
//! Invariant: frames are taken out contiguously. Frames beyond a gap are kept until the gap is filled, because with a
//! long round trip the server sends many frames before it learns of the gap.

use std::collections::VecDeque;

use twinstep_core::bounds::{FRAMES_AHEAD_MAX, LOAD_TICKS};
use twinstep_core::frame::FrameData;
use twinstep_core::turn::Turn;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::packet::frames::RUN_FRAMES_MAX;
use twinstep_protocol::packet::gaps::Gaps;

/// The maximum number of contiguous frames that wait, about 8 s at 60 Hz. The server must resend later ones.
const FRAMES_MAX: usize = 512;
/// The number of digests kept, in a ring indexed by tick.
const DIGESTS: usize = 256;

/// A frame is kept if it is fewer than this many ticks after the first missing one: the server's limit for frames
/// ahead, plus one more run in the same packet.
const BEYOND_MAX: u32 = FRAMES_AHEAD_MAX + RUN_FRAMES_MAX as u32;

/// The contiguous frames before `next`, and the frames after the first gap.
pub(crate) struct Inbox<S: Simulation> {
    frames: VecDeque<FrameData<S>>,
    beyond: VecDeque<FrameData<S>>,
    /// Frames already stepped that may have to be stepped again, up to the first of `frames`.
    passed: VecDeque<FrameData<S>>,
    spare: Vec<FrameData<S>>,
    next: Tick,
    digests: Vec<(Tick, u32)>,
}

impl<S: Simulation> Inbox<S> {
    pub(crate) fn new(next: Tick) -> Self {
        Inbox {
            frames: VecDeque::with_capacity(FRAMES_MAX),
            beyond: VecDeque::with_capacity(64),
            passed: VecDeque::new(),
            spare: (0..64).map(|_| FrameData::preallocated(next)).collect(),
            next,
            digests: vec![(Tick::MAX, 0); DIGESTS],
        }
    }

    /// The first tick without a frame, which the client reports to the server.
    pub(crate) fn next(&self) -> Tick {
        self.next
    }

    pub(crate) fn gaps(&self) -> Gaps {
        let mut gaps = Gaps::new();
        let mut last = self.next;
        for frame in &self.beyond {
            if frame.tick > last {
                gaps.push((last, frame.tick));
                if gaps.is_full() {
                    break;
                }
            }
            last = frame.tick + 1;
        }
        gaps
    }

    pub(crate) fn push(&mut self, frame: &FrameData<S>) {
        if frame.tick == self.next && self.frames.len() < FRAMES_MAX {
            let kept = self.copy(frame);
            self.frames.push_back(kept);
            self.next += 1;
            self.join();
        } else if frame.tick > self.next && frame.tick - self.next < BEYOND_MAX {
            let place = self.beyond.partition_point(|kept| kept.tick < frame.tick);
            if self
                .beyond
                .get(place)
                .is_none_or(|kept| kept.tick != frame.tick)
            {
                let kept = self.copy(frame);
                self.beyond.insert(place, kept);
            }
        }
    }

    fn copy(&mut self, frame: &FrameData<S>) -> FrameData<S> {
        let spare = self.spare.pop();
        let mut kept = spare.unwrap_or_else(|| FrameData::preallocated(frame.tick));
        kept.clone_from(frame);
        kept
    }

    fn join(&mut self) {
        while let Some(frame) = self.beyond.pop_front() {
            if frame.tick < self.next {
                self.spare.push(frame);
            } else if frame.tick == self.next && self.frames.len() < FRAMES_MAX {
                self.frames.push_back(frame);
                self.next += 1;
            } else {
                self.beyond.push_front(frame);
                return;
            }
        }
    }

    /// Returns `true` if all frames of the turn at `tick` have arrived. The authority's `turn` starts or continues at
    /// that tick.
    pub(crate) fn has_turn(&self, turn: Turn, tick: Tick) -> bool {
        let Some(front) = self.frames.front().filter(|frame| frame.tick == tick) else {
            return false;
        };
        let cadence = front.cadence.unwrap_or(turn.cadence);
        self.next >= Turn { cadence, ..turn }.end()
    }

    pub(crate) fn front(&self) -> Option<&FrameData<S>> {
        self.frames.front()
    }

    pub(crate) fn since(&self, tick: Tick) -> impl Iterator<Item = &FrameData<S>> {
        let new = (self.next - tick) as usize;
        self.frames.range(self.frames.len().saturating_sub(new)..)
    }

    pub(crate) fn frames(&self) -> impl Iterator<Item = &FrameData<S>> {
        self.frames.iter()
    }

    pub(crate) fn pop(&mut self) -> Option<FrameData<S>> {
        self.frames.pop_front()
    }

    pub(crate) fn recycle(&mut self, frame: FrameData<S>) {
        if self.spare.len() < FRAMES_MAX {
            self.spare.push(frame);
        }
    }

    /// Keeps a frame stepped while the world is known to differ, because it must be stepped again after the heal. A
    /// heal may take as long as a join. Returns `false` if the store is full.
    pub(crate) fn keep(&mut self, frame: FrameData<S>) -> bool {
        // A clone has no spare capacity, so the preallocated buffer is recycled.
        self.passed.push_back(frame.clone());
        self.recycle(frame);
        self.passed.len() < LOAD_TICKS as usize
    }

    /// Drops frames before `tick`, and starts at `tick` if no frame is left. [Kept](Inbox::keep) frames from `tick`
    /// onwards are queued again.
    pub(crate) fn begin_at(&mut self, tick: Tick) {
        // Newest first, each pushed to the front, so that the order is kept.
        while let Some(frame) = self.passed.pop_back() {
            if frame.tick >= tick {
                self.frames.push_front(frame);
            } else {
                self.recycle(frame);
            }
        }
        while self.frames.front().is_some_and(|frame| frame.tick < tick) {
            self.spare.extend(self.frames.pop_front());
        }
        if self.frames.is_empty() {
            self.next = tick;
        }
        self.join();
    }

    /// Drops all frames and starts at `tick`, because another server may have sealed different frames.
    pub(crate) fn restart(&mut self, tick: Tick) {
        self.passed.clear();
        self.spare.extend(self.frames.drain(..));
        self.spare.extend(self.beyond.drain(..));
        self.next = tick;
        self.digests.fill((Tick::MAX, 0));
    }

    /// Records the low half of the server's world digest before `tick`.
    pub(crate) fn record_digest(&mut self, tick: Tick, digest: u32) {
        self.digests[tick.0 as usize % DIGESTS] = (tick, digest);
    }

    /// The server's digest of the world before `tick`. Returns `None` if none arrived, or it is no longer kept.
    pub(crate) fn digest(&self, tick: Tick) -> Option<u32> {
        let (at, digest) = self.digests[tick.0 as usize % DIGESTS];
        (at == tick).then_some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::testing::doc::Counter;
    use twinstep_core::turn::Cadence;

    /// Finding W3: with a long round trip, many frames beyond a lost frame arrive before the server can know of the
    /// loss.
    #[test]
    fn frames_beyond_a_gap_are_kept_until_the_gap_is_filled() {
        let mut inbox = Inbox::<Counter>::new(Tick(0));
        let taken = |inbox: &Inbox<Counter>| -> Vec<u32> {
            inbox.frames().map(|frame| frame.tick.0).collect()
        };
        for tick in [0, 5, 3, 3, 6, 1 + BEYOND_MAX] {
            inbox.push(&FrameData::empty(Tick(tick)));
        }
        assert_eq!((inbox.next(), taken(&inbox)), (Tick(1), vec![0]));
        let gaps: Gaps = [(Tick(1), Tick(3)), (Tick(4), Tick(5))]
            .into_iter()
            .collect();
        assert_eq!(inbox.gaps(), gaps);
        inbox.push(&FrameData::empty(Tick(2)));
        inbox.push(&FrameData::empty(Tick(1)));
        assert_eq!((inbox.next(), taken(&inbox)), (Tick(4), vec![0, 1, 2, 3]));
        let new: Vec<u32> = inbox.since(Tick(2)).map(|frame| frame.tick.0).collect();
        assert_eq!(new, [2, 3]);
        inbox.push(&FrameData::empty(Tick(4)));
        assert_eq!(inbox.next(), Tick(7));
        assert!(inbox.beyond.is_empty(), "too far ahead");
        assert!(inbox.gaps().is_empty());
    }

    /// A healed world may be inside the gap, or beyond it.
    #[test]
    fn a_heal_into_a_gap_continues_with_the_frames_beyond_it() {
        let mut inbox = Inbox::<Counter>::new(Tick(0));
        for tick in [0, 4, 5, 9] {
            inbox.push(&FrameData::empty(Tick(tick)));
        }
        inbox.begin_at(Tick(4));
        assert_eq!(inbox.next(), Tick(6));
        inbox.begin_at(Tick(8));
        assert_eq!(inbox.next(), Tick(8));
        inbox.restart(Tick(2));
        inbox.push(&FrameData::empty(Tick(2)));
        assert_eq!(inbox.next(), Tick(3));
    }

    /// Row 15: the commands of a turn are not enough to run it. Its length comes with its first frame, and all its
    /// frames must have arrived.
    #[test]
    fn a_turn_runs_only_when_its_length_and_all_its_frames_have_arrived() {
        let cadence = |turn_ticks| Cadence {
            turn_ticks,
            ..Cadence::DEFAULT
        };
        let turn = Turn {
            cadence: cadence(2),
            ..Turn::default()
        };
        let mut inbox = Inbox::<Counter>::new(Tick(0));
        assert!(!inbox.has_turn(turn, Tick(0)));
        // The first frame sets this turn's length to three ticks.
        let mut frame = FrameData::empty(Tick(0));
        frame.cadence = Some(cadence(3));
        inbox.push(&frame);
        for tick in 1..3 {
            assert!(
                !inbox.has_turn(turn, Tick(0)),
                "{tick} ticks are not a turn"
            );
            inbox.push(&FrameData::empty(Tick(tick)));
        }
        assert!(inbox.has_turn(turn, Tick(0)));
    }
}
