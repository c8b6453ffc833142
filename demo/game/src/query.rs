//! The questions that a step may not answer itself (Law: One door), and their answers.
//!
//! | question | who may know | file |
//! |---|---|---|
//! | whom does a blast hit? | clients guess, nearly always right | `blast` |
//! | where does a blast throw things? | clients guess, and are corrected | `toss`, `throw` |
//! | what is in a crate, was a hit critical? | nobody before the server says it | `secret` |

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::{PlayerId, Tick};

use super::hit::{BlastHits, Bomb};
use super::state::{Item, TOSSED_MAX, Throw};
use super::units::Point;

/// What the simulation asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// Whom does this blast hit?
    Blast {
        /// What went off.
        bomb: Bomb,
        /// Where.
        at: Point,
        /// When it was asked: who comes later is not hurt.
        asked: Tick,
    },
    /// Where does this blast throw barrels and crates?
    Toss {
        /// What went off.
        bomb: Bomb,
        /// Where.
        at: Point,
        /// When it was asked: what has moved since then is not thrown.
        asked: Tick,
    },
    /// What is in this crate? A secret of the server's: nobody guesses it.
    Loot {
        /// Its number.
        n: u8,
    },
    /// Was this hit critical? A secret as well.
    Crit(Strike),
}

/// A hit that may be critical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strike {
    /// Who was hit.
    pub slot: u16,
    /// By whom.
    pub by: PlayerId,
    /// When it was asked: who comes later is not hurt.
    pub asked: Tick,
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// These, nearest first; of equals by body.
    Blast {
        /// Each body once.
        hits: BlastHits,
    },
    /// These fly so; the nearest first, then who is only pushed by them.
    Toss {
        /// Each thing once.
        throws: ArrayVec<Throw, TOSSED_MAX>,
    },
    /// This was in the crate, if anything.
    Loot(Option<Item>),
    /// Whether the hit was critical.
    Crit(bool),
}
