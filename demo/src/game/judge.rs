//! The server's referee: it admits orders, claims and answers, and may claim what an owner owes.
//!
//! ```text
//!   Claims::OwnerOnly            an owner's screen alone decides its death; the server tests nobody (row 64)
//!   Claims::OwnerWithin(ticks)   so many ticks after a touch in the *sealed* game, whoever has not claimed
//!                                its death is claimed for: nobody is immortal
//! ```
//!
//! Either way the death enters as a claim of a frame, so `step` is one function on all sides.

use twinstep_core::{Key, PlayerId};
use twinstep_server::{Look, Referee};

use super::{Command, Game, Outcome, Query, admit, speculate};

/// Powderkeg's referee.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judge;

impl Referee<Game> for Judge {
    fn admit(
        &mut self,
        look: &Look<'_, Game>,
        by: PlayerId,
        command: &Command,
        _claimed: bool,
    ) -> bool {
        admit(look.sim(), look.rules(), by, command).is_ok()
    }

    /// Where the client of who lit a barrel answers: admits what the cheap estimate agrees with, to within an
    /// 8th of a unit; otherwise the physics decides.
    fn admit_answer(
        &mut self,
        look: &Look<'_, Game>,
        _by: PlayerId,
        _key: Key,
        query: &Query,
        outcome: &Outcome,
    ) -> bool {
        // Secrets are the server's alone.
        let Query::Blast { asked, .. } = *query else {
            return false;
        };
        let estimate = look
            .at(asked + 1)
            .and_then(|game| speculate(game, look.rules(), query));
        estimate.is_some_and(|estimate| estimate.agrees_with(outcome))
    }

    /// Looks at each tick once, `within` ticks after it was sealed.
    fn owed(&mut self, look: &Look<'_, Game>, player: PlayerId, within: u32) -> Option<Command> {
        let end = look.tick().back(within);
        let then = look.at(end)?;
        let lives = |game: &Game| {
            let alive = game.players.get(&player).filter(|who| who.is_alive());
            alive.map(|who| who.life)
        };
        // Who died meanwhile, of whatever, owes nothing.
        if lives(look.sim()).is_none() || lives(look.sim()) != lives(then) {
            return None;
        }
        then.harm_of(player, end.back(1), look.rules())
    }
}
