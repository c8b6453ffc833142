//! [`PeerStage`]: the stages of a session, with what each must know. How a session gets from one to the next: `peer/progress.rs`.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::WorldId;

/// See the [module](self).
pub(super) enum PeerStage {
    Greeting(Greeting),
    Loading(Loading),
    CatchingUp(Stride),
    Playing,
}

/// What a session asks for to begin with, and when it asked. Who asked first is served first, and only who goes on asking keeps
/// its turn.
pub(crate) struct Greeting {
    /// Since when it asks for a world.
    since: Option<Duration>,
    /// When it asked last, for a world or for frames.
    pub(super) at: Duration,
    /// Its join was counted, but its world has to be encoded first; whether that was begun for it.
    counted: Option<bool>,
    /// The turn's beginning when its world had to be encoded first.
    from: Option<Tick>,
}

impl Greeting {
    /// It has not asked yet.
    pub(super) fn new(now: Duration) -> Greeting {
        Greeting {
            since: None,
            at: now,
            counted: None,
            from: None,
        }
    }

    /// It asks, and needs no place for it.
    pub(crate) fn ask(&mut self, now: Duration) {
        self.at = now;
    }

    /// It asks for a world, of which only so many are on their way at once.
    pub(crate) fn ask_for_world(&mut self, now: Duration) {
        self.since.get_or_insert(now);
        self.at = now;
    }

    /// When it asked last.
    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    /// Whether it has asked for a world for longer than another one.
    pub(crate) fn is_before(&self, other: &Greeting) -> bool {
        self.since.is_some_and(|since| Some(since) < other.since)
    }

    /// Whether its join was counted already, and it waits for its world.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    /// Its join is counted now.
    pub(crate) fn count(&mut self) {
        self.counted = Some(false);
    }

    /// Its world is there, or was and is not any more: its next join counts.
    pub(crate) fn settle(&mut self) {
        self.counted = None;
    }

    /// Whether a world may be encoded for it: one for each join that is counted.
    pub(crate) fn may_encode(&mut self) -> bool {
        !self.counted.replace(true).unwrap_or(true)
    }

    /// Its world has to be encoded, in a turn that began here; the first time counts.
    pub(crate) fn wait_from(&mut self, began: Tick) -> Tick {
        *self.from.get_or_insert(began)
    }
}

/// What a session begins with is on its way.
pub(super) struct Loading {
    /// The world that is sent; `None`: frames from what it has are enough.
    pub(super) world: Option<WorldId>,
    /// The world came so slowly that it gave its place away, and comes beside the others.
    pub(super) beside: bool,
    pub(super) stride: Stride,
}

/// How a join comes on.
#[derive(Default)]
pub(super) struct Stride {
    /// When it came on last.
    pub(super) at: Duration,
    /// Whether it has, since its stage began.
    pub(super) came_on: bool,
    /// Bytes that had arrived by then.
    pub(super) bytes: u64,
    /// The smallest distance to now, in ticks.
    pub(super) distance: Option<u32>,
}

/// Where the match stands, for a session that is judged.
pub(crate) struct Distance {
    /// The oldest tick whose frame is kept.
    pub(crate) oldest: Tick,
    /// By how many ticks the session is behind what it may see.
    pub(crate) ticks: u32,
    /// A session that is no farther behind than this has caught up.
    pub(crate) near: u32,
    /// One that comes this much nearer makes progress.
    pub(crate) step: u32,
}

/// What becomes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It stays as it is.
    Stays,
    /// It has caught up: it is to [play](super::Peer::play).
    CaughtUp,
    /// It has used up its stage's patience.
    Over(CloseCode),
}

impl Stride {
    /// It catches up, and makes progress when it is a step nearer than ever before.
    pub(super) fn come_to(&mut self, now: Duration, distance: &Distance) {
        let least = self.distance;
        if least.is_none_or(|least| distance.ticks.saturating_add(distance.step) <= least) {
            self.came_on |= least.is_some();
            (self.at, self.distance) = (now, Some(distance.ticks));
        }
    }
}
