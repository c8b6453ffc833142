//! Measures how long an author's code takes. A match has no clock, so its host provides one.
//!
//! Invariant: measurements are only reported. A match does not depend on them.

use std::time::Duration;

/// A kind of measured call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// One tick of the game, with its digest.
    Step,
    /// The resolver's answer to one query, if it answers immediately.
    Resolver,
}

/// A clock that also receives the measurements.
pub trait Stopwatch: Send {
    /// Returns the time since an arbitrary but fixed start.
    fn now(&self) -> Duration;
    /// Records that one call of this kind took `took`.
    fn note(&self, what: Timed, took: Duration);
}

#[derive(Default)]
pub(crate) struct Timing(Option<Box<dyn Stopwatch>>);

impl Timing {
    pub(crate) fn by(stopwatch: impl Stopwatch + 'static) -> Timing {
        Timing(Some(Box::new(stopwatch)))
    }

    pub(crate) fn begin(&self) -> Option<Duration> {
        self.0.as_ref().map(|watch| watch.now())
    }

    pub(crate) fn end(&self, what: Timed, began: Option<Duration>) {
        if let (Some(watch), Some(began)) = (&self.0, began) {
            watch.note(what, watch.now().saturating_sub(began));
        }
    }
}
