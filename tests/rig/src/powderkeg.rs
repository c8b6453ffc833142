//! Powderkeg in the rig: the real game, its bots, and its physics mirror.

use std::sync::Arc;

#[cfg(feature = "whole")]
use powderkeg_game::{Arbiter, Luck};
use powderkeg_game::{
    BlastHit, Bot, Command, Game, GameShow, Outcome, Pad, Query, Rules, Victim, admit, speculate,
};
use twinstep_core::{Mwc, PlayerId, Tick};
use twinstep_server::Resolver;

#[cfg(not(feature = "whole"))]
use crate::direct::no_queries;
use crate::rig::{InputPattern, Play};

/// The crowd that selects the campaign: lobby, waves and a boss.
pub const CAMPAIGN: u16 = u16::MAX;

impl Play for Game {
    type Show = GameShow;
    type Driver = Bot;

    /// An endless arena with `crowd` enemies (24 for 0), or the full game for [`CAMPAIGN`].
    fn rules(crowd: u16) -> Rules {
        match crowd {
            0 => Rules::arena(24),
            CAMPAIGN => Rules::campaign(),
            _ => Rules::arena(crowd),
        }
    }

    fn start(rules: &Rules, seed: u64) -> Self {
        Game::new(rules, seed)
    }

    fn show(_rules: &Arc<Rules>) -> GameShow {
        GameShow
    }

    #[cfg(feature = "whole")]
    fn resolver(rules: &Rules, seed: u64) -> impl Resolver<Self> {
        Arbiter::new(rules, Luck::Seeded(seed)).expect("walls that a mirror can hold")
    }

    #[cfg(not(feature = "whole"))]
    fn resolver(_rules: &Rules, _seed: u64) -> impl Resolver<Self> {
        no_queries()
    }

    fn speculate(sim: &Self, rules: &Rules, query: &Query) -> Option<Outcome> {
        speculate(sim, rules, query)
    }

    fn answer(game: &Self, rules: &Rules, query: &Query, forge: bool) -> Option<Outcome> {
        match (speculate(game, rules, query)?, forge) {
            (honest, false) => Some(honest),
            // A forged blast hits no player, and throws every object across the field.
            (Outcome::Blast { .. }, true) => Some(Outcome::Blast {
                hits: [BlastHit::new(Victim::Enemy(0), 0)].into_iter().collect(),
            }),
            (Outcome::Toss { mut throws }, true) => {
                for throw in &mut throws {
                    throw.legs = [[127, 0]; 6].into_iter().collect();
                }
                Some(Outcome::Toss { throws })
            }
            (other, true) => Some(other),
        }
    }

    fn admit(&self, rules: &Rules, by: PlayerId, command: &Command) -> bool {
        admit(self, rules, by, command).is_ok()
    }

    fn driver(input_pattern: InputPattern, luck: Mwc) -> Bot {
        let sticks = match input_pattern {
            InputPattern::Human => powderkeg_game::Sticks::Keys,
            InputPattern::Analog => powderkeg_game::Sticks::Analog,
            InputPattern::Sticky => powderkeg_game::Sticks::Sticky,
            InputPattern::Still => powderkeg_game::Sticks::Still,
        };
        Bot::new(sticks, luck)
    }

    fn drive(
        &self,
        bot: &mut Bot,
        rules: &Rules,
        me: PlayerId,
        now: Tick,
    ) -> (Pad, Option<Command>) {
        bot.think(self, rules, me, now)
    }

    fn flip(&mut self) {
        self.score ^= 1;
    }
}
