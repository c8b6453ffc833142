//! Powderkeg for the authors' test kit: its bots as a script, and its largest wave.

use powderkeg_game::{Bot, Game, Outcome, Query, Rules, Sticks, admit, speculate};
use twinstep_core::Mwc;
use twinstep_testing::{Fault, Report, Script, check};

#[must_use]
pub fn bots() -> Script<Game> {
    let mut bots: Vec<Bot> = (0..16)
        .map(|n| {
            Bot::new(
                Sticks::Keys,
                Mwc::seed(9).fork(twinstep_core::Key::new(n, 0)),
            )
        })
        .collect();
    Script::driven(move |seen, _| {
        let bot = &mut bots[seen.player.index()];
        bot.think(seen.sim, seen.rules, seen.player, seen.tick)
    })
}

/// Checks Powderkeg with its bots as players.
pub fn powderkeg(rules: Rules, players: usize, ticks: u32) -> Result<Report, Box<Fault>> {
    let start = Game::new(&rules, 5);
    let script = bots()
        .outcomes(|asked, luck| match asked.query {
            Query::Blast { .. } | Query::Toss { .. } => {
                speculate(asked.sim, asked.rules, asked.query)
            }
            Query::Loot { .. } => Some(Outcome::Loot(None)),
            Query::Crit(_) => Some(Outcome::Crit(luck.below(4) == 0)),
        })
        .admits(|seen, command| admit(seen.sim, seen.rules, seen.player, command).is_ok())
        .players(players)
        .ticks(ticks);
    check(start, rules, script).map_err(Box::new)
}

#[must_use]
pub fn largest_wave_rules() -> Rules {
    let campaign = Rules::campaign();
    let crowd = campaign.tuning.crowd_percent;
    let largest = campaign
        .waves
        .iter()
        .max_by_key(|wave| wave.total(8, crowd))
        .expect("a campaign has waves");
    Rules {
        waves: vec![largest.clone()],
        ..campaign.clone()
    }
}
