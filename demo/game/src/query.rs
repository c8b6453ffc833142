//! The questions that a step must not answer itself (Law: One door), and their outcomes.
//!
//! | question | answered by | file |
//! |---|---|---|
//! | which bodies does a blast hit? | the server; clients guess, nearly always right | `blast` |
//! | where does a blast throw things? | the server; clients guess, and are corrected | `toss`, `throw` |
//! | what is in a crate, was a hit critical? | only the server | `secret` |

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::{PlayerId, Tick};

use super::hit::{BlastHits, Bomb};
use super::state::{Item, TOSSED_MAX, Throw};
use super::units::Point;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// Which bodies does this blast hit?
    Blast {
        bomb: Bomb,
        at: Point,
        /// The tick of the query: bodies that appear later are not hurt.
        asked: Tick,
    },
    /// Where does this blast throw barrels and crates?
    Toss {
        bomb: Bomb,
        at: Point,
        /// The tick of the query: things that have moved since are not thrown.
        asked: Tick,
    },
    /// The content of a crate. Only the server knows it.
    Loot { n: u8 },
    /// Was this hit critical? Also a secret: only the server answers.
    Crit(Strike),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strike {
    pub slot: u16,
    pub by: PlayerId,
    pub asked: Tick,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The bodies hit: nearest first; at equal distances, in the order of `Victim`.
    Blast {
        hits: BlastHits,
    },
    /// The flying things: first the thrown ones, nearest first, then the ones that are only pushed.
    Toss {
        throws: ArrayVec<Throw, TOSSED_MAX>,
    },
    Loot(Option<Item>),
    Crit(bool),
}
