//! Secrets: what is in a crate, and whether a hit was critical. Rolled by the server, guessed by nobody.
//!
//! ```text
//!   crate breaks, lance hits ──▶ Query ──▶ the server's luck, drawn at that moment ──▶ Outcome in a frame
//! ```
//!
//! Invariant: before it is asked, the answer is nowhere: in no world, no packet, no generator that a client could
//! copy. So nobody can read ahead, and a client that was to guess (it never does) would guess blind.
//!
//! The odds are here for everybody to read; only the server calls these two functions.

use twinstep_core::{Effects, Frame, Key, Mwc, PlayerId};

use super::query::Strike;
use super::{Cue, Game, Item, Query, Tuning, Weapon};

/// What is in a crate, if anything.
pub(super) fn loot(luck: &mut Mwc) -> Option<Item> {
    match luck.below(10) {
        0 => Some(Item::Weapon(Weapon::Scatter)),
        1 => Some(Item::Weapon(Weapon::Lance)),
        2 => Some(Item::Weapon(Weapon::Thumper)),
        3 | 4 => Some(Item::Health),
        5 | 6 => Some(Item::Shield),
        7 => Some(Item::Life),
        _ => None,
    }
}

/// Whether a hit was critical.
pub(super) fn crit(luck: &mut Mwc, tuning: &Tuning) -> bool {
    luck.below(100) < tuning.crit_percent
}

/// Critical hits asked for in one tick; a blast that is asked in the same tick always finds room.
const CRITS_PER_TICK: usize = 8;

impl Game {
    /// Asks whether a hit was critical.
    pub(super) fn ask_crit(
        &self,
        cause: Key,
        slot: u16,
        by: PlayerId,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        if fx.asks().len() < CRITS_PER_TICK {
            let asked = frame.tick();
            fx.ask(cause, Query::Crit(Strike { slot, by, asked }));
        }
    }

    /// It was: it takes more, unless its victim is gone.
    pub(super) fn crit(
        &mut self,
        key: Key,
        strike: Strike,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let Strike { slot, by, asked } = strike;
        let enemy = self.enemies.get(usize::from(slot));
        if enemy.is_some_and(|enemy| enemy.is_alive() && enemy.born <= asked) {
            fx.cue(key, Cue::Crit(slot));
            self.hurt_enemy(slot, frame.rules().tuning.crit_damage, Some(by), frame, fx);
        }
    }
}
