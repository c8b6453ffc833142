//! Bots: the game's own rules play the seats that no human currently holds.
//!
//! ```text
//!   roster of the tick ─▶ does a human hold the seat?
//!      yes ─▶ its input and commands come in the frame
//!      no  ─▶ Simulation::bot(state, player, tick, rules) ─┬─ a move ─▶ a bot: the frame contains it as well
//!                                                          └─ `None` ─▶ an empty seat
//! ```
//!
//! Invariant: a move depends only on the state before the step, the tick and the rules (law **Pure**). So it is never
//! sent, journalled or compared: servers, clients, late joiners and replays compute it, and no client mispredicts it
//! unless its state is wrong (law **Only on difference**).

use super::roster::Presence;
use super::state::World;
use crate::PlayerId;
use crate::bounds::PLAYERS_MAX;
use crate::simulation::{BotMove, BotMoves, Controls, Simulation};

impl<S: Simulation> BotMoves<S> {
    /// Asks the rules for the moves of a tick, with the roster of that tick and the state before its step.
    pub(super) fn decide(&mut self, world: &World<S>, rules: &S::Rules) {
        self.inputs.clear();
        self.commands.clear();
        for player in (0..PLAYERS_MAX as u8).map(PlayerId) {
            let Some(BotMove { input, command }) = world.bot(player, rules) else {
                continue;
            };
            self.inputs.set(player, Some(input.or_neutral()));
            self.commands
                .extend(command.map(|command| (player, command)));
        }
    }
}

impl<S: Simulation> World<S> {
    fn bot(&self, player: PlayerId, rules: &S::Rules) -> Option<BotMove<S>> {
        let is_person = self.presence(player) == Presence::Present;
        (!is_person).then(|| self.sim().bot(player, self.tick(), rules))?
    }

    /// Returns `true` if a bot plays for this player now. A seat that has neither a bot nor a present player is empty,
    /// or its player is [dropped](Presence::Dropped).
    #[must_use]
    pub fn has_bot(&self, player: PlayerId, rules: &S::Rules) -> bool {
        self.bot(player, rules).is_some()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::testing::Solo;
    use crate::{Effects, Frame, Never, Tick};

    /// The rules play seats 1 and 3 as bots. A bot's input is computed from its number and the tick; it issues a
    /// command every fourth tick.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Seen {
        inputs: Vec<(PlayerId, Held)>,
        commands: Vec<(PlayerId, u8)>,
        bots: u16,
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    struct Held(u8);
    impl Controls for Held {
        fn is_valid(&self) -> bool {
            self.0 < 100
        }
    }

    impl Simulation for Seen {
        const NAME: &'static str = "seen";
        const VERSION: u32 = 1;
        type Rules = u8;
        type Input = Held;
        type Command = u8;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
            let copied = |(player, input): (PlayerId, &Held)| (player, input.clone());
            self.inputs = frame.inputs().map(copied).collect();
            for (player, input) in &self.inputs {
                assert_eq!(frame.input(*player), Some(input));
            }
            self.commands = frame.commands().map(|(p, c)| (p, *c)).collect();
            let bots = (0..16).filter(|n| frame.is_bot(PlayerId(*n)));
            self.bots = bots.map(|n| 1 << n).sum();
            assert_eq!(frame.input(PlayerId(16)), None);
        }

        fn bot(&self, player: PlayerId, tick: Tick, rules: &u8) -> Option<BotMove<Self>> {
            (player.0 % 2 == 1 && player.0 < 4).then(|| BotMove {
                input: Held(player.0 * rules + tick.0 as u8),
                command: tick.0.is_multiple_of(4).then_some(player.0),
            })
        }
    }

    fn held(inputs: &[(u8, u8)]) -> Vec<(PlayerId, Held)> {
        let held = inputs.iter().map(|(p, input)| (PlayerId(*p), Held(*input)));
        held.collect()
    }

    #[test]
    fn a_bot_holds_a_seat_exactly_while_no_human_does() {
        let mut game = Solo::new(Seen::default(), 10);
        game.step();
        assert_eq!(game.sim().inputs, held(&[(1, 10), (3, 30)]));
        assert_eq!(game.sim().commands, [(PlayerId(1), 1), (PlayerId(3), 3)]);
        assert!(game.world().has_bot(PlayerId(3), &10) && !game.world().has_bot(PlayerId(0), &10));

        game.join(PlayerId(1)).hold(PlayerId(1), Held(7)).step();
        assert_eq!(game.sim().inputs, held(&[(1, 7), (3, 31)]));
        assert_eq!(game.sim().bots, 1 << 3);
        assert!(!game.world().has_bot(PlayerId(1), &10));
        game.cut_off(PlayerId(1)).step();
        assert_eq!(game.sim().inputs, held(&[(1, 12), (3, 32)]));
        game.reconnect(PlayerId(1)).step();
        assert_eq!(game.sim().inputs, held(&[(1, 0), (3, 33)]));
        game.leave(PlayerId(1)).join(PlayerId(0)).join(PlayerId(2));
        game.hold(PlayerId(0), Held(5))
            .command(PlayerId(2), 9)
            .step();
        assert_eq!(game.sim().inputs, held(&[(0, 5), (1, 14), (2, 0), (3, 34)]));
        let commands = [(PlayerId(2), 9), (PlayerId(1), 1), (PlayerId(3), 3)];
        assert_eq!(game.sim().commands, commands, "humans first");
        assert_eq!(game.sim().bots, 0b1010);
    }

    #[test]
    fn an_invalid_bot_input_becomes_neutral() {
        let mut game = Solo::new(Seen::default(), 40);
        game.step();
        assert_eq!(game.sim().inputs, held(&[(1, 40), (3, 0)]));
    }
}
