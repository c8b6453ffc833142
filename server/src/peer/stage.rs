//! [`PeerStage`]: the stages of a session, with the data of each. Transitions: `peer/progress.rs`.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::{Hello, Holds, Waiting, WorldId};

pub(super) enum PeerStage {
    Greeting(Greeting),
    Loading(Loading),
    CatchingUp(Stride),
    Playing,
}

/// A session's request for its first world or frames. The session that asked first is served first, but must repeat its
/// request to keep its turn.
pub(crate) struct Greeting {
    /// When the session first asked for a world.
    since: Option<Duration>,
    /// The time of the session's latest request for a world or for frames.
    pub(super) at: Duration,
    /// `Some` if the join was counted, but has no world yet; `true` if this session started to encode one.
    counted: Option<bool>,
    /// The first tick of the turn in which the session's world first had to be encoded.
    from: Option<Tick>,
    // `Some` while the session is in the lobby, and until its world is sent.
    pub(crate) guest: Option<Box<Guest>>,
}

impl Greeting {
    pub(super) fn new(now: Duration) -> Greeting {
        Greeting {
            since: None,
            at: now,
            counted: None,
            from: None,
            guest: None,
        }
    }

    pub(crate) fn ask(&mut self, now: Duration) {
        self.at = now;
    }

    pub(crate) fn ask_for_world(&mut self, now: Duration) {
        self.since.get_or_insert(now);
        self.at = now;
    }

    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    pub(crate) fn is_before(&self, other: &Greeting) -> bool {
        self.since.is_some_and(|since| Some(since) < other.since)
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    pub(crate) fn count(&mut self) {
        self.counted = Some(false);
    }

    /// Records that the session's world is ready, or was ready and has been dropped. The next join counts again.
    pub(crate) fn settle(&mut self) {
        self.counted = None;
    }

    /// Returns `true` if a world may be encoded for the session: once for each counted join.
    pub(crate) fn may_encode(&mut self) -> bool {
        !self.counted.replace(true).unwrap_or(true)
    }

    /// Records that the session's world must be encoded, in the turn that started at `began`. Returns the start of the
    /// first turn for which this was recorded.
    pub(crate) fn wait_from(&mut self, began: Tick) -> Tick {
        *self.from.get_or_insert(began)
    }
}

/// A session in the lobby of a match that waits for its players.
pub(crate) struct Guest {
    pub(crate) hello: Hello,
    // The newest choice of rules that the client reports to have; 0: none.
    choice: u32,
    ready: bool,
    // The number of times that the client has asked for the start.
    starts: u32,
    // The choice of rules sent to the session and not confirmed yet; 0: none.
    pub(crate) sent: u32,
    // The number of the lobby last sent to the session; 0: none.
    pub(crate) shown: u32,
    pub(crate) shown_at: Duration,
}

impl Guest {
    pub(crate) fn new(hello: Hello, choice: u32, now: Duration) -> Guest {
        Guest {
            hello,
            choice,
            ready: false,
            starts: 0,
            sent: 0,
            shown: 0,
            shown_at: now,
        }
    }

    // Returns `true` if the client asks for the start.
    pub(crate) fn record(&mut self, waiting: Waiting) -> bool {
        (self.choice, self.ready) = (waiting.choice, waiting.ready);
        let asks = waiting.starts > self.starts;
        self.starts = waiting.starts;
        asks
    }

    pub(crate) fn has(&self, choice: u32) -> bool {
        self.choice == choice
    }

    pub(crate) fn is_ready(&self, choice: u32) -> bool {
        self.ready && self.has(choice)
    }

    // Records the rules with this digest as the client's, if the client has confirmed their choice.
    pub(crate) fn settle(&mut self, choice: u32, rules: u64) {
        if self.has(choice) {
            (self.hello.rules, self.sent) = (rules, 0);
        }
    }

    // Records a new choice of rules. Returns `false` if the client neither has the rules nor accepts them.
    pub(crate) fn takes(&mut self, choice: u32, rules: u64) -> bool {
        // Rules that are on their way replace the client's current ones.
        let has = self.hello.rules == rules && self.sent == 0;
        if has {
            self.choice = choice;
        }
        self.ready = false;
        has || self.hello.holds == Holds::AnyRules
    }
}

pub(super) struct Loading {
    /// The world being sent. `None` if the client can continue by frames alone.
    pub(super) world: Option<WorldId>,
    /// Whether the world was too slow and lost its slot, so that it is sent without one.
    pub(super) beside: bool,
    pub(super) stride: Stride,
}

#[derive(Default)]
pub(super) struct Stride {
    pub(super) at: Duration,
    pub(super) has_progressed: bool,
    /// The number of bytes that had arrived at `at`.
    pub(super) bytes: u64,
    /// The distance to the newest shown tick at the last progress, in ticks.
    pub(super) distance: Option<u32>,
}

/// The distance between a session and the match, for [`Peer::judge`](super::Peer::judge).
pub(crate) struct Distance {
    pub(crate) oldest: Tick,
    /// The session's distance from the newest tick that it may see, in ticks.
    pub(crate) ticks: u32,
    /// The distance in ticks within which a session has caught up.
    pub(crate) near: u32,
    /// The distance in ticks by which a session must come nearer to make progress.
    pub(crate) step: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Stays,
    CaughtUp,
    Over(CloseCode),
}

impl Stride {
    /// Records a distance. A distance is progress if it is at least a step smaller than at the last progress.
    pub(super) fn come_to(&mut self, now: Duration, distance: &Distance) {
        let least = self.distance;
        if least.is_none_or(|least| distance.ticks.saturating_add(distance.step) <= least) {
            self.has_progressed |= least.is_some();
            (self.at, self.distance) = (now, Some(distance.ticks));
        }
    }
}
