//! What a journal says at its end, and whether its match is to go on.

use twinstep_protocol::replay::Index;

/// The reason in a journal whose match another process is to take up.
pub const MOVED: &str = "moved";

/// The reason in a journal whose server ended in order, and whose match is to go on.
pub const KEPT: &str = "kept";

/// Why the match of a journal is over for good, if it is.
pub fn is_over(index: &Index) -> Option<&str> {
    let reason = index.ended.as_deref()?;
    (!is_resumable(reason)).then_some(reason)
}

/// Whether a match that stopped for this reason is to go on.
pub fn is_resumable(reason: &str) -> bool {
    [MOVED, KEPT].contains(&reason)
}
