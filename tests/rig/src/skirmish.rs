//! The skirmish in the rig: strategy by commands alone.

use std::sync::Arc;

#[cfg(feature = "whole")]
use powderkeg_game::skirmish::Bombardier;
use powderkeg_game::skirmish::{Command, Rules, Skirmish, SkirmishBot};
use twinstep_core::{Mwc, PlayerId, Tick};
use twinstep_server::Resolver;

#[cfg(not(feature = "whole"))]
use crate::direct::unasked;
use crate::rig::{Play, Sticks};

impl Play for Skirmish {
    type Show = twinstep_client::Hidden;
    /// Nobody, if it is to be still.
    type Driver = Option<SkirmishBot>;

    /// The crowd is that of each town's villagers.
    fn rules(crowd: u16) -> Rules {
        let rules = Rules::default();
        Rules {
            villagers: if crowd == 0 { rules.villagers } else { crowd },
            ..rules
        }
    }

    fn start(_rules: &Rules, _seed: u64) -> Self {
        Skirmish::new()
    }

    fn show(_rules: &Arc<Rules>) -> Self::Show {
        twinstep_client::Hidden
    }

    #[cfg(feature = "whole")]
    fn resolver(_rules: &Rules, _seed: u64) -> impl Resolver<Self> {
        Bombardier::default()
    }

    #[cfg(not(feature = "whole"))]
    fn resolver(_rules: &Rules, _seed: u64) -> impl Resolver<Self> {
        unasked()
    }

    fn admit(&self, rules: &Rules, by: PlayerId, command: &Command) -> bool {
        self.admits(rules, by, command)
    }

    fn driver(sticks: Sticks, luck: Mwc) -> Option<SkirmishBot> {
        (sticks != Sticks::Still).then(|| SkirmishBot::new(luck))
    }

    fn drive(
        &self,
        bot: &mut Option<SkirmishBot>,
        _rules: &Rules,
        me: PlayerId,
        now: Tick,
    ) -> ((), Option<Command>) {
        let order = bot.as_mut().and_then(|bot| bot.think(self, me, now));
        ((), order)
    }

    fn flip(&mut self) {
        self.woken ^= 1;
    }
}
