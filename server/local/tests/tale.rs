//! A game that records its inputs and orders, and local matches of it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Session, SessionConfig};
use twinstep_core::{Effects, Frame, Key, Phase, Simulation, Tick};
use twinstep_local::{Local, LocalGame};
use twinstep_server::{Decision, HookContext};

/// A frame of a screen at 60 Hz, and the tick of the action preset.
pub(crate) const FRAME: Duration = Duration::from_nanos(16_666_667);

/// Records all inputs and orders, so that two matches are equal only if they had the same course.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tale {
    /// A hash of all inputs and orders, with their ticks.
    mixed: u64,
    pub(crate) held: [u32; 4],
    asked: u32,
    pub(crate) answers: Vec<u32>,
    pub(crate) orders: Vec<u8>,
}

impl Tale {
    fn mix(&mut self, what: u64) {
        self.mixed = self
            .mixed
            .wrapping_add(what)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23);
    }
}

pub(crate) const PANIC: u8 = 13;
/// The order that makes only the confirmed step panic, also on the server.
pub(crate) const PANIC_CONFIRMED: u8 = 14;
pub(crate) const ASK: u8 = 7;

impl Simulation for Tale {
    const NAME: &'static str = "tale";
    const VERSION: u32 = 1;
    type Rules = u32;
    type Input = u8;
    type Command = u8;
    type Query = u32;
    type Outcome = u32;
    type Cue = u32;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let is_confirmed = frame.phase() == Phase::Authority;
        assert!(
            !is_confirmed || frame.tick().0 < *frame.rules(),
            "the end of time"
        );
        for (player, held) in frame.inputs().filter(|(_, held)| **held > 0) {
            self.mix(u64::from(frame.tick().0) << 16 | u64::from(player.0) << 8 | u64::from(*held));
            self.held[player.index()] += u32::from(*held);
            if *held == ASK {
                fx.ask(Key::player(player, self.asked), self.asked);
                self.asked += 1;
            }
        }
        for (key, _, answer) in frame.outcomes() {
            let answer = *answer.unwrap_or(&0);
            self.answers.push(answer);
            fx.cue(key, answer);
        }
        for (_, order) in frame.commands() {
            assert!(*order != PANIC, "thirteen at table");
            assert!(
                *order != PANIC_CONFIRMED || !is_confirmed,
                "the server knows better"
            );
            self.orders.push(*order);
        }
    }
}

pub(crate) const RULES: u32 = u32::MAX;

pub(crate) fn config() -> SessionConfig<Tale> {
    SessionConfig::new(Arc::new(RULES)).start(Tale::default())
}

pub(crate) fn hundred(_: &HookContext<'_, Tale>, _: Key, query: &u32) -> Decision<u32> {
    Decision::Now(query + 100)
}

pub(crate) fn local() -> LocalGame<Tale> {
    begun(Local::action(Tale::default(), RULES).resolver(hundred))
}

pub(crate) fn begun(local: Local<Tale>) -> LocalGame<Tale> {
    let mut game = local.play(config()).expect("it starts");
    game.advance_at(Duration::ZERO, |_, _| 0).expect("it plays");
    game
}

/// Plays `frames` frames of a screen at 60 Hz, in which all players hold `held`.
pub(crate) fn frames(game: &mut LocalGame<Tale>, now: &mut Duration, frames: u32, held: u8) {
    for _ in 0..frames {
        *now += FRAME;
        game.advance_at(*now, |_, _| held).expect("it plays on");
    }
}

pub(crate) fn ticks(game: &mut LocalGame<Tale>) -> [Tick; 3] {
    let server = game.server().world().tick();
    let session = game.session(0);
    [
        server,
        session.authority().expect("it plays").tick(),
        session.prediction().expect("it plays").tick(),
    ]
}

pub(crate) fn input_tick(session: &Session<Tale>) -> u32 {
    session.stats().input_tick
}
