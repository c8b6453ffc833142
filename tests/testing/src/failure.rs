//! The reason why an arena failed.

use std::fmt;
use std::time::Duration;

/// The kinds of failures that an arena distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A client's confirmed state differs from the server's.
    Diverged,
    /// The step, a hook or the match is at fault: a panic, a NaN, or a prediction that differs from the confirmed step.
    Fault,
    /// A command was lost or ran twice.
    Orders,
    /// A cue was lost, or started or settled twice.
    Cues,
    /// A client was disconnected from the match.
    Disconnected,
    /// A client was not up to date after the network had healed.
    Behind,
}

/// The failure of an arena.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The virtual time of the failure.
    pub at: Duration,
    /// The client and the error.
    pub what: String,
    /// A command that reproduces the failed run.
    pub again: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            kind,
            at,
            what,
            again,
        } = self;
        write!(f, "{kind:?} after {at:.2?}: {what}\n  again: {again}")
    }
}

/// Like `Display`, so that `unwrap` in a test prints a readable text.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Failure {}

pub(crate) struct Wrong {
    pub(crate) kind: FailureKind,
    pub(crate) what: String,
}

impl Wrong {
    pub(crate) fn new(kind: FailureKind, what: impl Into<String>) -> Wrong {
        Wrong {
            kind,
            what: what.into(),
        }
    }
}
