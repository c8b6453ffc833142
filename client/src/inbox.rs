//! Frames that arrived and wait for the authority, without gaps, and the digests that came with them.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::ticks_in;
use twinstep_core::frame::FrameData;
use twinstep_core::turn::Turn;
use twinstep_core::{Simulation, Tick};

/// Frames that wait at most: about 8 s at 60 Hz, after which the server's repeats must serve.
const FRAMES_MAX: usize = 512;
/// Frames are remembered that were stepped while the world was known to differ: those of so long, which is longer than
/// between two heals, and at least so many. They are stepped once more after the heal.
const PASSED: Duration = Duration::from_secs(15);
const PASSED_MIN: u32 = 1_024;
/// Digests remembered, by tick.
const DIGESTS: usize = 256;

/// Frames `next - len .. next`.
pub(crate) struct Inbox<S: Simulation> {
    frames: VecDeque<FrameData<S>>,
    /// Stepped, but perhaps to be stepped again: they end where `frames` begin.
    passed: VecDeque<FrameData<S>>,
    spare: Vec<FrameData<S>>,
    next: Tick,
    digests: Vec<(Tick, u32)>,
}

impl<S: Simulation> Inbox<S> {
    pub(crate) fn new(next: Tick) -> Self {
        Inbox {
            frames: VecDeque::with_capacity(FRAMES_MAX),
            passed: VecDeque::new(),
            spare: (0..64).map(|_| FrameData::roomy(next)).collect(),
            next,
            digests: vec![(Tick::MAX, 0); DIGESTS],
        }
    }

    /// The first tick that no frame here covers: what the server is told that we want.
    pub(crate) fn next(&self) -> Tick {
        self.next
    }

    /// Keeps a frame if it is the next one; whether it was news.
    pub(crate) fn push(&mut self, frame: &FrameData<S>) -> bool {
        let news = frame.tick == self.next && self.frames.len() < FRAMES_MAX;
        if news {
            let mut kept = self
                .spare
                .pop()
                .unwrap_or_else(|| FrameData::roomy(frame.tick));
            kept.clone_from(frame);
            self.frames.push_back(kept);
            self.next += 1;
        }
        news
    }

    /// Whether all of the turn is here that `turn`, the authority's, says begins or goes on at `tick`.
    pub(crate) fn has_turn(&self, turn: Turn, tick: Tick) -> bool {
        let Some(front) = self.frames.front().filter(|frame| frame.tick == tick) else {
            return false;
        };
        let cadence = front.cadence.unwrap_or(turn.cadence);
        self.next >= Turn { cadence, ..turn }.end()
    }

    /// The oldest frame.
    pub(crate) fn front(&self) -> Option<&FrameData<S>> {
        self.frames.front()
    }

    /// All frames that wait, oldest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &FrameData<S>> {
        self.frames.iter()
    }

    /// Takes the oldest frame out; give it back by [`recycle`](Inbox::recycle).
    pub(crate) fn pop(&mut self) -> Option<FrameData<S>> {
        self.frames.pop_front()
    }

    pub(crate) fn recycle(&mut self, frame: FrameData<S>) {
        self.spare.push(frame);
    }

    /// Gives back a frame that may have to be stepped again; whether another one may be. Ticks last `tick`.
    pub(crate) fn keep(&mut self, frame: FrameData<S>, tick: Duration) -> bool {
        self.passed.push_back(frame);
        let most = ticks_in(PASSED, tick).max(PASSED_MIN);
        self.passed.len() < most as usize
    }

    /// Forgets frames before `tick`, and begins there if it has none beyond. Those that were [kept](Inbox::keep) are to
    /// come once more.
    pub(crate) fn begin_at(&mut self, tick: Tick) {
        while let Some(frame) = self.passed.pop_back() {
            if frame.tick >= tick {
                self.frames.push_front(frame);
            } else {
                self.spare.push(frame);
            }
        }
        while self.frames.front().is_some_and(|frame| frame.tick < tick) {
            self.spare.extend(self.frames.pop_front());
        }
        if self.frames.is_empty() {
            self.next = tick;
        }
    }

    /// Forgets all that came, and begins at `tick`: what a server said that is lost may not be what another one says.
    pub(crate) fn restart(&mut self, tick: Tick) {
        self.spare.extend(self.passed.drain(..));
        self.spare.extend(self.frames.drain(..));
        self.next = tick;
        self.digests.fill((Tick::MAX, 0));
    }

    /// Notes the low half of the server's digest of the world before `tick`.
    pub(crate) fn note_digest(&mut self, tick: Tick, digest: u32) {
        self.digests[tick.0 as usize % DIGESTS] = (tick, digest);
    }

    /// What the server's digest of the world before `tick` is known to be.
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

    /// Row 15: commands alone let no turn run; its length comes with it, and all of it must be here.
    #[test]
    fn a_turn_runs_only_when_its_length_and_all_of_it_is_here() {
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
        // The first frame says that this turn is of three ticks.
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
