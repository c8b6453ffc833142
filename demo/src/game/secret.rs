//! The critical hit: rolled by the server, guessed by nobody.

use twinstep_core::{Effects, Frame, Key, PlayerId};

use super::blast::Strike;
use super::{Cue, Game, Query};

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
