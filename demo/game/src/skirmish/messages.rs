//! What goes into a step and comes out of it: commands, questions and their answers, cues.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::map::FieldPoint;
use super::unit::{UnitId, UnitKind};

/// What a bomb costs.
pub const BOMB_COST: u32 = 40;
/// How far a blast reaches, in steps.
pub const BLAST_RADIUS: u32 = 48;

/// What a player orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Trains a unit, for its price.
    Train(UnitKind),
    /// Sends all own soldiers to a place. On the way they fight whoever comes into reach.
    Send(FieldPoint),
    /// Drops a bomb on a place: it hits friend and foe.
    Bomb(FieldPoint),
}

/// The question that the simulation may not answer itself: whom does this bomb hit?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blast {
    /// Who dropped it.
    pub by: PlayerId,
    /// Where.
    pub at: FieldPoint,
}

/// Units that one blast hits at most: the nearest. As many fit an outcome's bytes.
pub const HITS_MAX: usize = 24;

/// The answer: whom it hits, and how far from the middle, in steps.
pub type BombHits = ArrayVec<(UnitId, u16), HITS_MAX>;

/// Something to show or play once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    /// A unit died.
    Fell(UnitId),
    /// A bomb went up.
    Blast(FieldPoint),
}
