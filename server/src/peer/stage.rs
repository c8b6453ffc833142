//! [`PeerStage`]: the stages of a session, with the data of each. Transitions: `peer/progress.rs`.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::WorldId;

pub(super) enum PeerStage {
    Greeting(Greeting),
    Loading(Loading),
    CatchingUp(Stride),
    Playing,
}

/// A session's request for something to begin with. The session that asked first is served first, and must keep asking
/// to keep its turn.
pub(crate) struct Greeting {
    /// The first time it asked for a world.
    since: Option<Duration>,
    /// The last time it asked, for a world or for frames.
    pub(super) at: Duration,
    /// `Some`: its join was counted, but its world must be encoded first. `true`: that encoding was started for it.
    counted: Option<bool>,
    /// The first tick of the turn in which its world first had to be encoded.
    from: Option<Tick>,
}

impl Greeting {
    pub(super) fn new(now: Duration) -> Greeting {
        Greeting {
            since: None,
            at: now,
            counted: None,
            from: None,
        }
    }

    /// It asks for frames, which need no place.
    pub(crate) fn ask(&mut self, now: Duration) {
        self.at = now;
    }

    /// It asks for a world, which needs a place.
    pub(crate) fn ask_for_world(&mut self, now: Duration) {
        self.since.get_or_insert(now);
        self.at = now;
    }

    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    /// Returns `true` if it has asked for a world for longer than `other` has.
    pub(crate) fn is_before(&self, other: &Greeting) -> bool {
        self.since.is_some_and(|since| Some(since) < other.since)
    }

    /// Returns `true` if its join was counted already, and it waits for its world.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    pub(crate) fn count(&mut self) {
        self.counted = Some(false);
    }

    /// Its world is ready, or was and has been dropped: its next join counts again.
    pub(crate) fn settle(&mut self) {
        self.counted = None;
    }

    /// Returns `true` if a world may be encoded for it: once for each counted join.
    pub(crate) fn may_encode(&mut self) -> bool {
        !self.counted.replace(true).unwrap_or(true)
    }

    /// Its world must be encoded, in a turn that began at `began`. Returns the start of the first such turn.
    pub(crate) fn wait_from(&mut self, began: Tick) -> Tick {
        *self.from.get_or_insert(began)
    }
}

pub(super) struct Loading {
    /// The world that is sent; `None`: frames from what the client has are enough.
    pub(super) world: Option<WorldId>,
    /// Whether the world was so slow that it lost its place, and continues without one.
    pub(super) beside: bool,
    pub(super) stride: Stride,
}

/// The progress of a join.
#[derive(Default)]
pub(super) struct Stride {
    /// The last time when it made progress.
    pub(super) at: Duration,
    /// Whether it has made any since its stage began.
    pub(super) came_on: bool,
    /// The bytes that had arrived by then.
    pub(super) bytes: u64,
    /// The smallest distance to the newest shown tick so far, in ticks.
    pub(super) distance: Option<u32>,
}

/// The distance of a session from the match, for [`Peer::judge`](super::Peer::judge).
pub(crate) struct Distance {
    /// The oldest tick whose frame is kept.
    pub(crate) oldest: Tick,
    /// The session's distance from the newest tick that it may see, in ticks.
    pub(crate) ticks: u32,
    /// A session that is no farther behind than this has caught up.
    pub(crate) near: u32,
    /// A session that comes this much nearer makes progress.
    pub(crate) step: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Stays,
    /// It has caught up and must [play](super::Peer::play).
    CaughtUp,
    /// It has used up its stage's patience.
    Over(CloseCode),
}

impl Stride {
    /// Records a distance. It is progress when it is at least a step smaller than ever before.
    pub(super) fn come_to(&mut self, now: Duration, distance: &Distance) {
        let least = self.distance;
        if least.is_none_or(|least| distance.ticks.saturating_add(distance.step) <= least) {
            self.came_on |= least.is_some();
            (self.at, self.distance) = (now, Some(distance.ticks));
        }
    }
}
