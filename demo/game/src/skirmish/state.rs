//! [`Skirmish`]: what there is, and what sleeps.

use serde::{Deserialize, Serialize};
use twinstep_core::{PlayerId, Schedule, Table, Tick};

use super::map::FieldPoint;
use super::messages::Blast;
use super::unit::{Unit, UnitId, UnitKind};

/// Everything that changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skirmish {
    /// One for each player that ever came.
    pub towns: Table<PlayerId, Town>,
    /// All who live.
    pub units: Table<UnitId, Unit>,
    /// Events that were handled so far: what sleeps is not among them.
    pub woken: u64,
    pub(super) timers: Schedule<SkirmishTimer>,
}

/// A player's town.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Town {
    /// Whether its player is in the match.
    pub is_open: bool,
    /// What can be spent.
    pub gold: u32,
    /// Enemies' units that its side killed.
    pub kills: u32,
    /// Names for units, bombs and timers. It never goes back, so that no name is used twice.
    pub(super) named: u32,
    /// When the units in training will be ready.
    pub(super) trained_at: Tick,
}

impl Town {
    pub(super) fn pay(&mut self, price: u32) -> bool {
        let can = self.gold >= price;
        if can {
            self.gold -= price;
        }
        can
    }

    pub(super) fn next_name(&mut self) -> u32 {
        self.named = self.named.wrapping_add(1);
        self.named
    }
}

/// What a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SkirmishTimer {
    /// A unit has arrived, or may strike again.
    Unit(UnitId),
    /// A unit is trained.
    Trained(UnitId, UnitKind),
    /// A bomb's fuse has burnt down.
    Fuse(Blast),
}

impl Skirmish {
    /// A map without towns: each comes with its player.
    #[must_use]
    pub fn new() -> Skirmish {
        Skirmish::default()
    }

    /// How many units, bombs and towns sleep.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.timers.len()
    }

    /// Where bombs will go up.
    pub fn bombs(&self) -> impl Iterator<Item = FieldPoint> {
        self.timers.iter().filter_map(|(_, _, timer)| match timer {
            SkirmishTimer::Fuse(blast) => Some(blast.at),
            _ => None,
        })
    }
}
