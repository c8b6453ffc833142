//! What clients assume of a question until the server has answered it.

use super::query::{Outcome, Query};
use super::rules::Rules;
use super::state::Game;
use super::{blast, throw};

/// What a client assumes until the server's answer is there: of a blast the exact one, nearly always; of a toss
/// about the right one; of secrets nothing. It is told the state at the end of the tick that asked.
///
/// Cost: three lines past all walls and crates for each body within reach; see `throw` for a toss.
#[must_use]
pub fn speculate(game: &Game, rules: &Rules, query: &Query) -> Option<Outcome> {
    match *query {
        Query::Blast { bomb, at, .. } => {
            let hits = blast::guess(game, rules, bomb, at.to_vec2());
            Some(Outcome::Blast { hits })
        }
        Query::Toss { bomb, at, .. } => {
            let hits = blast::guess(game, rules, bomb, at.to_vec2());
            Some(throw::guess(game, rules, bomb, at.to_vec2(), &hits))
        }
        Query::Loot { .. } | Query::Crit(_) => None,
    }
}
