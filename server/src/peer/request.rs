//! [`Request`]: what a session asks for to begin with, and when it asked.
//!
//! Invariant: who asked first is served first, and only who goes on asking keeps its turn.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_protocol::packet::hello::WorldId;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Request {
    /// Since when it asks for a world.
    since: Option<Duration>,
    /// When it asked last, for a world or for frames.
    at: Duration,
    /// It begins with a world that is sent, not by frames from what it has.
    needs_world: bool,
    /// That world.
    world: Option<WorldId>,
    /// Its join was counted, but its world has to be encoded first; whether that was begun for it.
    counted: Option<bool>,
    /// The turn's beginning when its world had to be encoded first.
    from: Option<Tick>,
}

impl Request {
    /// It has not asked yet.
    pub(crate) fn new(now: Duration) -> Request {
        Request {
            since: None,
            at: now,
            needs_world: true,
            world: None,
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

    /// When it asked last.
    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    /// Whether it has asked for a world for longer than another one.
    pub(crate) fn is_before(&self, other: &Request) -> bool {
        self.since.is_some_and(|since| Some(since) < other.since)
    }

    /// It gets what it asked for: a world, or frames from what it has.
    pub(crate) fn grant(&mut self, world: Option<WorldId>) {
        self.needs_world = world.is_some();
        self.world = world;
    }

    /// The world that it was given to begin with.
    pub(crate) fn world(&self) -> Option<WorldId> {
        self.world
    }

    /// Whether a world is sent for it to begin with, as far as is known.
    pub(crate) fn needs_world(&self) -> bool {
        self.needs_world
    }

    /// The match stood still for so long, for which nobody here is to blame.
    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        self.at += slip;
    }
}
