//! What a view shows or plays once.
//!
//! Cues say *who*, not *where*: a cue's identity is its key and its value, and a position in it would turn a
//! spark that moved by a pixel into another spark, played twice. A view knows where everybody was shown last.

use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

/// Something to show or play once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    /// A player appeared.
    Appeared(PlayerId),
    /// A player fired.
    Shot(PlayerId),
    /// A player sprints.
    Dashed(PlayerId),
    /// A shot hit an enemy (its slot).
    Hit(u16),
    /// An enemy (its slot) fired: a bullet, or a ring of them.
    Volley(u16),
    /// An enemy (its slot) died.
    EnemyDied(u16),
    /// A barrel's fuse burns.
    Lit(u8),
    /// A barrel went up.
    Blast(u8),
    /// A barrel's blast got no answer: it only smoked.
    Fizzle(u8),
    /// A player died.
    PlayerDied(PlayerId),
    /// A player's score rose. Shown only when confirmed: a score that counts back looks like a bug.
    Scored {
        /// Whose.
        player: PlayerId,
        /// By how much.
        points: u16,
    },
}
