//! Powderkeg on Twinstep: its rules, its policies, and the implementation of each hook.
//!
//! ```text
//!              server                       client
//!   resolver   Arbiter::resolve             speculate
//!   referee    Judge                        —
//!   show       —                            GameShow
//! ```

use std::sync::Arc;

use twinstep_client::SessionConfig;
use twinstep_core::Key;
use twinstep_server::MatchConfig;
use twinstep_server::config::Claims;

use crate::query::Query;
use crate::rules::Rules;
use crate::show::GameShow;
use crate::state::Game;
use crate::throw::speculate;

pub const BUILD: &str = concat!("powderkeg ", env!("CARGO_PKG_VERSION"));

/// The rules that the command line chooses: the campaign, or an endless arena with `enemies` enemies.
#[must_use]
pub fn rules(enemies: Option<u16>) -> Arc<Rules> {
    Arc::new(enemies.map_or_else(Rules::campaign, Rules::arena))
}

/// The default policies of a match: those of an action game, except that the referee claims harm that its owner has not
/// claimed within two thirds of a second.
#[must_use]
pub fn policies() -> MatchConfig {
    MatchConfig {
        claims: Claims::OwnerWithin(CLAIM_TICKS),
        ..MatchConfig::action()
    }
}

/// The time that the referee waits for an owner's claim. It is longer than a claim takes on a bad link, so the owner is
/// nearly always first, but short enough for the 64 ticks that a referee can look back.
pub(crate) const CLAIM_TICKS: u32 = 40;

#[must_use]
pub fn session(rules: &Arc<Rules>) -> SessionConfig<Game, GameShow> {
    let mut config = SessionConfig::new(rules.clone())
        .speculate(|game: &Game, rules: &Rules, _: Key, query: &Query| {
            speculate(game, rules, query)
        })
        // The referee checks owners' answers, so the guess is good enough as an answer.
        .resolve(|game: &Game, rules: &Rules, _: Key, query: &Query| speculate(game, rules, query))
        .show(GameShow, GameShow::SMOOTHING);
    config.build = BUILD.to_owned();
    config
}
