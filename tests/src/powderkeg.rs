//! Powderkeg in the rig: the real game, its bots, its mirror.

use std::sync::Arc;

use powderkeg::game::{Blaster, Bot, Command, Game, Outcome, Pad, Query, Rules, admit, speculate};
use powderkeg::game_show::GameShow;
use twinstep_core::{Mwc, PlayerId, Tick};
use twinstep_server::Resolver;

use crate::rig::{Play, Sticks};

impl Play for Game {
    type Show = GameShow;
    type Driver = Bot;

    fn rules(crowd: u16) -> Rules {
        let rules = Rules::default();
        Rules {
            enemies: if crowd == 0 { rules.enemies } else { crowd },
            ..rules
        }
    }

    fn start(rules: &Rules, seed: u64) -> Self {
        Game::new(rules, seed)
    }

    fn show(rules: &Arc<Rules>) -> GameShow {
        GameShow::new(rules.clone())
    }

    fn resolver(rules: &Rules, _seed: u64) -> impl Resolver<Self> {
        Blaster::new(rules).expect("walls that a mirror can hold")
    }

    fn speculate(sim: &Self, rules: &Rules, query: &Query) -> Option<Outcome> {
        speculate(sim, rules, query)
    }

    fn admit(&self, rules: &Rules, by: PlayerId, command: &Command) -> bool {
        admit(self, rules, by, command).is_ok()
    }

    fn driver(sticks: Sticks, luck: Mwc) -> Bot {
        let sticks = match sticks {
            Sticks::Analog => powderkeg::game::Sticks::Analog,
            Sticks::Sticky => powderkeg::game::Sticks::Sticky,
            Sticks::Still => powderkeg::game::Sticks::Still,
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
