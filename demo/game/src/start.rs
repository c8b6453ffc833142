//! How a match begins.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::{Schedule, Table, Tick};

use super::rules::Rules;
use super::state::{Game, RoundPhase};

impl Game {
    /// The start of a match. Equal rules and seeds make equal matches, on every machine.
    #[must_use]
    pub fn new(rules: &Rules, seed: u64) -> Game {
        let mut game = Game {
            round: 0,
            phase: if rules.is_campaign() {
                RoundPhase::Lobby
            } else {
                RoundPhase::Endless
            },
            phase_since: Tick(0),
            half_ready_since: None,
            wave: 0,
            lives: 0,
            score: 0,
            players: Table::new(),
            former: Table::with_capacity(PLAYERS_MAX),
            enemies: Vec::new(),
            shots: Vec::new(),
            bullets: Vec::new(),
            barrels: Vec::new(),
            crates: Vec::new(),
            flights: Vec::new(),
            pickups: Vec::new(),
            timers: Schedule::new(),
            seed,
        };
        game.place_barrels(rules);
        game.place_crates(rules);
        game.make_slots(rules);
        game
    }
}
