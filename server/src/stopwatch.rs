//! How long an author's code takes, for whoever wants to know: a match has no clock, so its host lends it one.
//!
//! Invariant: what was measured is only told. Nothing that a match does depends on it.

use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// One tick of the game, with its digest.
    Step,
    /// The answer to one query, if it came at once.
    Resolver,
}

/// A clock, and who is told what it showed.
pub trait Stopwatch: Send {
    /// The time since any start.
    fn now(&self) -> Duration;
    /// Something took so long.
    fn note(&self, what: Timed, took: Duration);
}

/// A stopwatch, or none.
#[derive(Default)]
pub(crate) struct Timing(Option<Box<dyn Stopwatch>>);

impl Timing {
    /// Measures with this one from now on.
    pub(crate) fn by(stopwatch: impl Stopwatch + 'static) -> Timing {
        Timing(Some(Box::new(stopwatch)))
    }

    /// Something begins.
    pub(crate) fn begin(&self) -> Option<Duration> {
        self.0.as_ref().map(|watch| watch.now())
    }

    /// What began then is done.
    pub(crate) fn end(&self, what: Timed, began: Option<Duration>) {
        if let (Some(watch), Some(began)) = (&self.0, began) {
            watch.note(what, watch.now().saturating_sub(began));
        }
    }
}
