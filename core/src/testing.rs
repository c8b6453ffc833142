//! Helpers for authors' tests: build a frame, step a state and read its effects, without a network.
//!
//! ```
//! # use twinstep_core::testing::doc::Counter;
//! use twinstep_core::testing::Solo;
//! use twinstep_core::PlayerId;
//!
//! let mut game = Solo::new(Counter::default(), ());
//! game.join(PlayerId(0)).hold(PlayerId(0), 3).step();
//! assert_eq!(game.sim().total, 3);
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use crate::frame::{Answer, FrameData, Learned, Order, Perspective, PlayerSet, RosterChange};
use crate::turn::Cadence;
use crate::world::{Stepper, World};
use crate::{Effects, Key, PlayerId, Simulation, Tick};

/// One world, stepped by hand: calls before [`step`](Solo::step) add to the next frame.
///
/// Players hold their last input until it changes. Queries stay open until [`answer`](Solo::answer) or
/// [`refuse`](Solo::refuse) settles them.
pub struct Solo<S: Simulation> {
    world: World<S>,
    rules: S::Rules,
    next: FrameData<S>,
    holding: Vec<(PlayerId, S::Input)>,
    stepper: Stepper<S>,
    screen: Option<(PlayerSet, Tick, Learned)>,
}

impl<S: Simulation> Solo<S> {
    /// A state at tick 0 without players, in the authority phase.
    #[must_use]
    pub fn new(sim: S, rules: S::Rules) -> Self {
        Solo {
            world: World::new(sim, Tick(0)),
            rules,
            next: FrameData::empty(Tick(0)),
            holding: Vec::new(),
            stepper: Stepper::default(),
            screen: None,
        }
    }

    /// Sets the time that a step simulates. The default is 1/60 s.
    ///
    /// # Panics
    /// If `length` is less than a millisecond or more than a second.
    #[must_use]
    pub fn tick_length(mut self, length: Duration) -> Self {
        let tick_ns = u32::try_from(length.as_nanos()).unwrap_or(u32::MAX);
        self.world = self.world.clocked(Cadence {
            tick_ns,
            ..Cadence::DEFAULT
        });
        self
    }

    /// Makes the following steps predict, as on a client. `locals` are its local players, `confirmed` is its
    /// authority's next tick, and remote inputs are known from the ticks recorded in `learned`.
    pub fn predict(&mut self, locals: PlayerSet, confirmed: Tick, learned: Learned) -> &mut Self {
        self.screen = Some((locals, confirmed, learned));
        self
    }

    /// Makes the following steps run as the authority again.
    pub fn confirm(&mut self) -> &mut Self {
        self.screen = None;
        self
    }

    /// Lets a player join with the next frame, with a neutral input.
    pub fn join(&mut self, player: PlayerId) -> &mut Self {
        self.holding.push((player, S::Input::default()));
        self.change(player, RosterChange::Joined)
    }

    /// Lets a player leave with the next frame.
    pub fn leave(&mut self, player: PlayerId) -> &mut Self {
        self.holding.retain(|(p, _)| *p != player);
        self.change(player, RosterChange::Left)
    }

    /// Stops a player's inputs with the next frame. The player keeps its seat.
    pub fn cut_off(&mut self, player: PlayerId) -> &mut Self {
        self.holding.retain(|(p, _)| *p != player);
        self.change(player, RosterChange::Dropped)
    }

    /// Lets a player that was cut off reconnect with the next frame, with a neutral input.
    pub fn reconnect(&mut self, player: PlayerId) -> &mut Self {
        self.holding.push((player, S::Input::default()));
        self.change(player, RosterChange::Returned)
    }

    fn change(&mut self, player: PlayerId, change: RosterChange) -> &mut Self {
        self.next.roster.push((player, change));
        self.next.roster.sort_by_key(|r| r.0);
        self
    }

    /// Sets a player's input, starting with the next frame.
    ///
    /// # Panics
    /// If the player has not joined.
    pub fn hold(&mut self, player: PlayerId, input: S::Input) -> &mut Self {
        let held = self.holding.iter_mut().find(|(p, _)| *p == player);
        held.unwrap_or_else(|| panic!("{player} holds an input but has not joined"))
            .1 = input;
        self
    }

    /// Adds a command to the next frame.
    pub fn command(&mut self, player: PlayerId, command: S::Command) -> &mut Self {
        let mine = self
            .next
            .commands
            .iter()
            .filter(|o| o.player == player)
            .count() as u32;
        let seq = self.world.next_seq(player) + mine;
        self.next.commands.push(Order {
            player,
            seq,
            command,
        });
        self.next.commands.sort_by_key(|o| (o.player, o.seq));
        self
    }

    /// Adds an admitted claim to the next frame.
    pub fn claim(&mut self, player: PlayerId, command: S::Command) -> &mut Self {
        self.next.claims.push(Order {
            player,
            seq: self.world.tick().0,
            command,
        });
        self.next.claims.sort_by_key(|o| (o.player, o.seq));
        self
    }

    /// Answers an open query in the next frame.
    ///
    /// # Panics
    /// If no query is open under `key`.
    pub fn answer(&mut self, key: Key, outcome: S::Outcome) -> &mut Self {
        self.settle(key, Some(outcome))
    }

    /// Leaves an open query unanswered: its outcome in the next frame is `None`.
    ///
    /// # Panics
    /// If no query is open under `key`.
    pub fn refuse(&mut self, key: Key) -> &mut Self {
        self.settle(key, None)
    }

    fn settle(&mut self, key: Key, outcome: Option<S::Outcome>) -> &mut Self {
        let open = self
            .world
            .open_queries()
            .iter()
            .find(|open| open.key == key);
        let asked = open
            .unwrap_or_else(|| panic!("no query is open under {key}"))
            .asked;
        self.next.outcomes.push(Answer {
            asked,
            key,
            outcome,
        });
        self.next.outcomes.sort_by_key(|a| (a.asked, a.key));
        self
    }

    /// Steps once. Returns the effects of the step.
    ///
    /// # Panics
    /// If the frame does not fit the world (for example a command from an absent player).
    pub fn step(&mut self) -> &Effects<S> {
        for (player, input) in &self.holding {
            self.next.inputs.set(*player, Some(input.clone()));
        }
        let tick = self.world.tick();
        let (perspective, claimants) = match &self.screen {
            None => (Perspective::authority(tick), PlayerSet::default()),
            // Each step is the first one of its tick, so local players can claim.
            Some((locals, confirmed, learned)) => (
                Perspective::prediction(*confirmed, *locals, learned),
                *locals,
            ),
        };
        let stepped = self.stepper.step(
            &mut self.world,
            &self.next,
            &self.rules,
            perspective,
            claimants,
        );
        if let Err(error) = stepped {
            panic!("{error}");
        }
        self.next.reset(self.world.tick());
        self.stepper.effects()
    }

    /// Steps `ticks` times.
    pub fn run(&mut self, ticks: u32) -> &mut Self {
        for _ in 0..ticks {
            self.step();
        }
        self
    }

    /// The state.
    #[must_use]
    pub fn sim(&self) -> &S {
        self.world.sim()
    }

    /// The state, for setup by hand.
    #[must_use]
    pub fn sim_mut(&mut self) -> &mut S {
        self.world.corrupt()
    }

    /// The world around the state.
    #[must_use]
    pub fn world(&self) -> &World<S> {
        &self.world
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &S::Rules {
        &self.rules
    }

    /// The number of queries dropped so far because too many waited ([`Effects::ask`]).
    #[must_use]
    pub fn dropped_asks(&self) -> u64 {
        self.stepper.dropped_asks()
    }

    /// The effects of the last step.
    #[must_use]
    pub fn effects(&self) -> &Effects<S> {
        self.stepper.effects()
    }
}

/// Games small enough for examples in documentation, and for tests of the machinery around a game.
pub mod doc {
    use alloc::vec::Vec;

    use serde::{Deserialize, Serialize};

    use crate::{Effects, Frame, Key, Never, PlayerId, Simulation};

    /// Adds up the inputs of all players.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Counter {
        /// The sum of all inputs so far.
        pub total: u64,
    }

    impl Simulation for Counter {
        const NAME: &'static str = "counter";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
            self.total += frame
                .inputs()
                .map(|(_, held)| u64::from(*held))
                .sum::<u64>();
        }
    }

    /// Repeats its players' orders: a command becomes a cue, and an input of `n` asks `n` queries.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Echo {
        /// The commands that ran, in order.
        pub commands: Vec<(PlayerId, u8)>,
        /// The outcomes of its queries, in order of arrival.
        pub answers: Vec<(Key, Option<u8>)>,
    }

    impl Simulation for Echo {
        const NAME: &'static str = "echo";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = u8;
        type Query = u8;
        type Outcome = u8;
        type Cue = u8;

        fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
            for (player, command) in frame.commands() {
                self.commands.push((player, *command));
                fx.cue(Key::player(player, frame.tick().0), *command);
            }
            for (key, _, outcome) in frame.outcomes() {
                self.answers.push((key, outcome.copied()));
            }
            for (player, asks) in frame.inputs() {
                for n in 0..u32::from(*asks) {
                    fx.ask(Key::player(player, frame.tick().0 * 256 + n), n as u8);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::doc::Echo;
    use super::*;
    use crate::bounds::{ASKS_PER_TICK, QUERIES_OPEN_MAX, QUERIES_WAITING_MAX};

    const P: PlayerId = PlayerId(1);

    #[test]
    fn commands_run_once_in_canonical_order() {
        let mut game = Solo::new(Echo::default(), ());
        game.join(P).join(PlayerId(0));
        game.command(P, 5)
            .command(P, 6)
            .command(PlayerId(0), 9)
            .step();
        game.run(3);
        assert_eq!(game.sim().commands, [(PlayerId(0), 9), (P, 5), (P, 6)]);
        assert_eq!(game.world().next_seq(P), 2);
    }

    fn answer_all(game: &mut Solo<Echo>) -> u32 {
        let mut ticks = 0;
        while !game.world().open_queries().is_empty() {
            let open = game.world().open_queries().iter();
            let keys: Vec<Key> = open.map(|open| open.key).collect();
            for key in keys {
                game.answer(key, 1);
            }
            game.step();
            ticks += 1;
        }
        ticks
    }

    #[test]
    fn a_burst_of_queries_is_answered_in_order_over_the_next_ticks() {
        let mut game = Solo::new(Echo::default(), ());
        game.join(P).hold(P, 40).step();
        assert_eq!(game.world().open_queries().len(), ASKS_PER_TICK);
        assert_eq!(game.world().just_opened().len(), ASKS_PER_TICK);
        game.hold(P, 0);
        assert_eq!(answer_all(&mut game), 3, "16, 16 and 8");
        assert!(game.world().just_opened().is_empty());
        let answers = &game.sim().answers;
        assert_eq!(answers.len(), 40);
        assert!(answers.is_sorted(), "in the order of their keys");
        assert!(answers.iter().all(|(_, outcome)| *outcome == Some(1)));
    }

    #[test]
    fn queries_beyond_both_bounds_are_dropped_and_counted() {
        let mut game = Solo::new(Echo::default(), ());
        game.join(P).hold(P, 200).run(2);
        assert_eq!(game.world().open_queries().len(), 2 * ASKS_PER_TICK);
        game.hold(P, 0).run(2);
        assert_eq!(game.world().open_queries().len(), QUERIES_OPEN_MAX);
        answer_all(&mut game);
        let answered = 2 * ASKS_PER_TICK + QUERIES_WAITING_MAX;
        assert_eq!(game.sim().answers.len(), answered);
        assert_eq!(game.dropped_asks() as usize, 400 - answered);
    }

    #[test]
    fn a_loaded_world_continues_to_open_its_waiting_queries() {
        let mut game = Solo::new(Echo::default(), ());
        game.join(P).hold(P, 40).step();
        let mut bytes = Vec::new();
        crate::codec::append(game.world(), &mut bytes).unwrap();
        let world: World<Echo> = crate::codec::decode_whole(&bytes).unwrap();
        assert!(world.is_sound());
        assert!(world.just_opened().is_empty(), "in a world that was read");
        let mut twin = Solo::new(Echo::default(), ());
        twin.world = world;
        for game in [&mut game, &mut twin] {
            game.next.reset(Tick(1));
            game.holding = alloc::vec![(P, 0)];
            answer_all(game);
            assert_eq!(game.sim().answers.len(), 40);
        }
        assert_eq!(game.world().digest(), twin.world().digest());
    }

    #[test]
    fn the_digest_ignores_whether_an_input_was_filled() {
        let run = |filled: bool| {
            let mut world = World::new(Echo::default(), Tick(0));
            let mut stepper = Stepper::default();
            let mut frame = FrameData::<Echo>::empty(Tick(0));
            frame.roster.push((P, RosterChange::Joined));
            frame.inputs.set(P, Some(0));
            frame.filled.set(P, filled);
            stepper
                .step(
                    &mut world,
                    &frame,
                    &(),
                    Perspective::authority(Tick(0)),
                    PlayerSet::default(),
                )
                .unwrap();
            (world.digest().unwrap(), world.held(P).1)
        };
        let (given, filled) = (run(false), run(true));
        assert_eq!(given.0, filled.0);
        assert_eq!(
            (given.1, filled.1),
            (0, 1),
            "but the age of a held input is known"
        );
    }
}
