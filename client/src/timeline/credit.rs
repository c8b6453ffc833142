//! [`RebuildCredit`]: how often the other players' actions may cost a rebuild.
//!
//! ```text
//!  turn                1  2  3  …  40 41 42 43 44      every turn brings an action that nobody could foresee
//!  honest play         ■  ·  ■  ·  ■  ·  ■  ·  ■       the rebuild of turn 1 holds what was announced for turn 2
//!  a flood             ■  ■  ■  ■  ·  ■  ·  ■  ·       the credit is spent: the rebuild waits for the next turn
//! ```
//!
//! Invariant (law **Bounded**): others cost a rebuild in five of nine turns, and for [`CREDIT_MAX`] beside that; in turns
//! that are longer than [`SHORT_TURN`] at most one each. A rebuild waits for one turn at most. What differs in an own
//! action never waits.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::turn::Turn;

use crate::stats::Misprediction;

/// The credit that a turn earns: a little more than half of [`REBUILD_COST`], since honest play needs a rebuild in every second
/// turn.
const TURN_CREDIT: u32 = 5;
const REBUILD_COST: u32 = 9;
/// The most credit that is kept: that of 30 turns, a second at 60 Hz in turns of two ticks.
const CREDIT_MAX: u32 = 30 * TURN_CREDIT;
/// No rebuild waits for a turn that is longer than this.
const SHORT_TURN: Duration = Duration::from_millis(40);

/// See the [module](self).
pub(super) struct RebuildCredit {
    credit: u32,
    /// The newest turn that was credited.
    turn: u32,
    /// The difference whose rebuild waits for the turn after that one.
    waiting: Option<Misprediction>,
    /// The tick up to which the prediction went on while a rebuild waited.
    pub(super) went_on: Tick,
}

impl RebuildCredit {
    pub(super) fn full() -> Self {
        RebuildCredit {
            credit: CREDIT_MAX,
            turn: 0,
            waiting: None,
            went_on: Tick(0),
        }
    }

    /// A frame of `turn` differs from the assumed one. Returns the difference if its rebuild is due now; `None`: it waits.
    pub(super) fn differs(
        &mut self,
        turn: Turn,
        difference: Misprediction,
        is_own: bool,
    ) -> Option<Misprediction> {
        self.earn(turn);
        if is_own || turn.cadence.turn() > SHORT_TURN {
            return Some(difference);
        }
        if self.credit < REBUILD_COST {
            self.waiting = Some(difference);
            return None;
        }
        self.credit -= REBUILD_COST;
        Some(difference)
    }

    /// A rebuild waits, and a frame of `turn` was confirmed. Returns the difference that waited if its rebuild is due now.
    pub(super) fn go_on(&mut self, turn: Turn, is_own: bool) -> Option<Misprediction> {
        let is_next = turn.number != self.turn;
        self.earn(turn);
        if !is_next && !is_own {
            return None;
        }
        self.credit = self.credit.saturating_sub(REBUILD_COST);
        self.waiting.take()
    }

    /// Whether a rebuild waits for the next turn.
    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Nothing waits any more: the prediction begins again from the authority anyway.
    pub(super) fn forget(&mut self) {
        self.waiting = None;
    }

    fn earn(&mut self, turn: Turn) {
        let turns = turn.number.saturating_sub(self.turn);
        self.turn = turn.number;
        let earned = turns.saturating_mul(TURN_CREDIT);
        self.credit = self.credit.saturating_add(earned).min(CREDIT_MAX);
    }
}
