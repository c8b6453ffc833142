//! A player made of numbers: looks at a state, draws from its own generator, holds a pad.
//!
//! Bots are real clients: what they decide goes through the same door as a person's fingers, and their luck
//! is no part of the game's. The same seed and the same states make the same bot.

use twinstep_core::{Mwc, PlayerId, Tick};

use super::barrel::Stage;
use super::{Command, Game, Heading, Pad, Player, Rules};

/// How a bot moves its sticks: what a prediction has to cope with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sticks {
    /// Both directions change at every tick, as a human thumb's do: the hardest to guess.
    Analog,
    /// All that is held changes at every tenth tick.
    Sticky,
    /// Neutral, no fire, no orders.
    Still,
}

/// How often a sticky bot changes its mind.
const STICKY_TICKS: u32 = 10;
/// From how far bots fire at enemies, in units.
const SIGHT: f32 = 18.0;

/// One bot.
#[derive(Clone, Debug)]
pub struct Bot {
    sticks: Sticks,
    luck: Mwc,
    pad: Pad,
    next_order: Tick,
}

impl Bot {
    /// A bot with luck of its own.
    #[must_use]
    pub fn new(sticks: Sticks, luck: Mwc) -> Bot {
        Bot {
            sticks,
            luck,
            pad: Pad::default(),
            next_order: Tick(0),
        }
    }

    /// What it holds at `now`, and what it orders: about once a second a barrel to light, or a dash. Call it
    /// once for each tick.
    pub fn think(
        &mut self,
        game: &Game,
        rules: &Rules,
        me: PlayerId,
        now: Tick,
    ) -> (Pad, Option<Command>) {
        if self.sticks == Sticks::Still {
            return (Pad::default(), None);
        }
        if let Some(order) = self.vote(game, me, now) {
            return (Pad::default(), Some(order));
        }
        let Some(player) = game.players.get(&me).filter(|player| player.is_alive()) else {
            // Waiting for the return with idle thumbs.
            self.pad = Pad::default();
            return (self.pad, None);
        };
        if self.sticks == Sticks::Analog || now.0.is_multiple_of(STICKY_TICKS) {
            self.pad = self.grip(game, rules, player);
        }
        (self.pad, self.order(game, rules, player, now))
    }

    /// Ready, when it is asked.
    fn vote(&mut self, game: &Game, me: PlayerId, now: Tick) -> Option<Command> {
        let player = game.players.get(&me)?;
        if !game.phase.is_waiting() || player.is_ready || now < self.next_order {
            return None;
        }
        self.next_order = now + 45 + self.luck.below(30);
        Some(Command::Ready)
    }

    fn grip(&mut self, game: &Game, rules: &Rules, player: &Player) -> Pad {
        let swing = if self.sticks == Sticks::Analog { 6 } else { 40 };
        let at_edge = player.at.abs().cmpgt(rules.half * 0.85).any();
        let course = if at_edge {
            Heading::toward(-player.at)
        } else {
            self.pad.walk
        };
        let enemies = game.enemies.iter().filter(|enemy| enemy.is_alive());
        let target = enemies
            .map(|enemy| enemy.at - player.at)
            .filter(|offset| offset.length_squared() < SIGHT * SIGHT)
            .min_by(|a, b| a.length_squared().total_cmp(&b.length_squared()));
        let aim = target.map_or(course, Heading::toward);
        Pad {
            walk: course.turned(self.other_than_zero(swing)),
            aim: aim.turned(self.other_than_zero(3)),
            buttons: if target.is_some() { Pad::FIRE } else { 0 },
        }
    }

    fn order(&mut self, game: &Game, rules: &Rules, player: &Player, now: Tick) -> Option<Command> {
        if now < self.next_order {
            return None;
        }
        self.next_order = now + 45 + self.luck.below(30);
        let reach = rules.tuning.light_reach;
        let mut near = game.barrels.iter().zip(0..).filter(|(barrel, _)| {
            barrel.stage == Stage::Whole && barrel.at.distance(player.at) <= reach
        });
        Some(
            near.next()
                .map_or(Command::Dash, |(_, barrel)| Command::Light { barrel }),
        )
    }

    /// A number within ± `most` that is not 0: thumbs never rest.
    fn other_than_zero(&mut self, most: i32) -> i32 {
        let n = self.luck.range(-most..most);
        if n >= 0 { n + 1 } else { n }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// The pads and orders of a bot in `ticks` ticks of a match.
    fn play(sticks: Sticks, ticks: u32) -> (Vec<Pad>, usize) {
        let mut game = with_player(arena(24));
        let mut bot = Bot::new(sticks, Mwc::seed(5));
        let (mut pads, mut orders) = (Vec::new(), 0);
        for _ in 0..ticks {
            let (pad, order) = bot.think(game.sim(), &rules(), ONE, game.world().tick());
            game.hold(ONE, pad);
            if let Some(order) = order {
                game.command(ONE, order);
                orders += 1;
            }
            pads.push(pad);
            game.step();
        }
        (pads, orders)
    }

    fn changes(pads: &[Pad]) -> usize {
        pads.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    #[test]
    fn analog_sticks_change_at_every_tick() {
        let (pads, orders) = play(Sticks::Analog, 600);
        assert_eq!(changes(&pads), 599);
        assert!((8..=13).contains(&orders), "{orders}");
        assert!(pads.iter().any(Pad::fires));
    }

    #[test]
    fn sticky_ones_change_at_every_tenth() {
        let (pads, _) = play(Sticks::Sticky, 600);
        assert!((50..=60).contains(&changes(&pads)), "{}", changes(&pads));
    }

    #[test]
    fn still_ones_hold_and_order_nothing() {
        let (pads, orders) = play(Sticks::Still, 600);
        assert!(pads.iter().all(Pad::is_neutral) && orders == 0);
    }

    #[test]
    fn a_bot_is_made_of_its_seed() {
        assert_eq!(play(Sticks::Analog, 300), play(Sticks::Analog, 300));
    }
}
