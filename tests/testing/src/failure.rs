//! Why an arena failed.

use std::fmt;
use std::time::Duration;

/// What kinds of failures an arena tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A client's confirmed state is not the server's.
    Diverged,
    /// The step, a hook or the match is at fault: it panicked, left a NaN, or predicted what it did not confirm.
    Fault,
    /// A command was lost or ran twice.
    Orders,
    /// A cue was lost, or started or settled twice.
    Cues,
    /// Somebody is out of the match.
    FellOut,
    /// After the network had healed, somebody was not up to date.
    Apart,
}

/// Why an arena failed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// When, in virtual time.
    pub at: Duration,
    /// Who, and what.
    pub what: String,
    /// One command that plays it again.
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

/// As `Display`, so that `unwrap` in a test prints words.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Failure {}

/// Something went wrong.
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
