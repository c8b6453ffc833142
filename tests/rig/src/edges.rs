//! A game at the edges of every bound: sizes, rates and the size of the world are drawn, values have every shape, and a
//! flagged command, input, claim or outcome poisons the step.
//!
//! The poisoner's own client is modified so that its prediction ignores the poison. The poison acts on the server and
//! on every other client's prediction.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twinstep_core::bounds::{INPUT_BYTES_MAX, PLAYERS_MAX};
use twinstep_core::frame::{Phase, RosterChange};
use twinstep_core::{Chunked, Controls, Effects, Frame, Key, PlayerId, Simulation, Table, codec};
use twinstep_server::internal::panic_message;

mod driver;
mod shape;

pub use driver::{Driver, LARGE_EVERY};
pub use shape::{Shape, Tag};

/// The size of an input without its padding, in bytes.
const INPUT_HEAD_BYTES: usize = 3;
/// A stick value that makes the step panic.
const PANICS: u8 = 253;
/// A stick value that leaves a NaN in the state.
const NANS: u8 = 254;
/// A stick value at which the player's own client claims poison.
const CLAIMS: u8 = 255;
/// If a query's mark has this bit, its owner's client answers with poison.
const POISONED: u32 = 1 << 30;
/// The prefix of intended panic messages.
pub const MEANT: &str = "meant:";

pub fn silence_intended_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !panic_message(info.payload()).starts_with(MEANT) {
                usual(info);
            }
        }));
    });
}

/// The sizes and rates of all values. They are the game's rules, so both sides agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    pub input_bytes: u8,
    pub command_bytes: u8,
    pub outcome_bytes: u16,
    pub claim_bytes: u8,
    /// The size of large commands and outcomes, in bytes. 0 if none are large.
    pub large_bytes: u16,
    /// The number of ticks per second. The rates below refer to it.
    pub hertz: u16,
    pub commands_in_10_s: u16,
    pub claims_in_10_s: u16,
    /// The number of queries that each player's held trigger asks every tick.
    pub asks: u8,
    pub world_bytes: u32,
    pub growth_bytes: u32,
    /// The size at which the world stops growing, in bytes.
    pub world_bytes_max: u32,
    pub tiles: u32,
    pub hooks: Hooks,
    pub refuses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Hooks {
    Sound,
    Panic,
    /// The hooks sometimes return invalid values: outcomes and claims beyond their bounds, or poison.
    Nonsense,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            input_bytes: 4,
            command_bytes: 12,
            outcome_bytes: 12,
            claim_bytes: 2,
            large_bytes: 0,
            hertz: 60,
            commands_in_10_s: 20,
            claims_in_10_s: 2,
            asks: 0,
            world_bytes: 200,
            growth_bytes: 0,
            world_bytes_max: 0,
            tiles: 0,
            hooks: Hooks::Sound,
            refuses: false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pad {
    stick: u8,
    fire: bool,
    more: ArrayVec<u8, { INPUT_BYTES_MAX - INPUT_HEAD_BYTES }>,
}

impl Controls for Pad {}

/// A player's command, or a claim from its simulation. Each `mark` is unique among commands. `Panic` and `Nan` poison
/// the step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Keep { mark: u32, value: Shape },
    Ask { mark: u32, value: Shape },
    Panic,
    Nan,
    Claim(Shape),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    number: u32,
    about: Option<Shape>,
}

/// An outcome. `value` is derived from the query, `number` also from chance. `Panic` and `Nan` poison the step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Fine {
        number: u32,
        value: Shape,
    },
    /// A placeholder for a job that never returns.
    Lost,
    Panic,
    Nan,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    Kept(u32),
    Answered(u32),
    Claimed,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// A hash of the player's inputs, commands, claims and answers.
    pub fold: u64,
    pub ran: u32,
    pub asked: u32,
    last: Option<Option<Shape>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widest {
    pub input: u16,
    pub command: u16,
    pub outcome: u16,
    pub claim: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EdgeCases {
    pub players: Table<PlayerId, Tally>,
    pub ballast: Ballast,
    pub ground: Chunked<u8>,
    pub widest: Widest,
    heat: f32,
    asked: u32,
    answered: u32,
}

/// A long list of small numbers, one byte each on the wire. Clones share it.
///
/// Numbers below 251 have the same encoding as bytes, so the list is serialised as bytes: otherwise digesting large
/// worlds would take most of a test's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ballast(Arc<Vec<u8>>);

impl Ballast {
    fn of(bytes: usize) -> Self {
        Ballast(Arc::new((0..bytes).map(|n| (n % 199) as u8).collect()))
    }

    pub fn spoil(&mut self, at: usize) {
        Arc::make_mut(&mut self.0)[at] ^= 1;
    }

    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl Serialize for Ballast {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Ballast {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let list = Vec::<u32>::deserialize(from)?;
        Ok(Ballast(Arc::new(list.iter().map(|n| *n as u8).collect())))
    }
}

impl Simulation for EdgeCases {
    game_types!("edges", Load, Pad, Command, Query, Outcome, Cue);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => drop(self.players.insert(player, Tally::default())),
                RosterChange::Left => drop(self.players.remove(&player)),
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (key, query, outcome) in frame.outcomes() {
            self.receive_answer(frame, fx, key, query, outcome);
        }
        for (player, command) in frame.commands() {
            self.obey(frame, fx, player, command);
        }
        for (player, pad) in frame.inputs() {
            self.hold(frame, fx, player, pad);
        }
        self.grow(frame);
    }
}

/// The number of tile kinds. Each takes one byte on the wire.
const TILES: u8 = 200;

fn hertz(frame: &Frame<'_, EdgeCases>) -> u32 {
    let hertz = Duration::from_secs(1).as_nanos() / frame.tick_length().as_nanos();
    (hertz as u32).max(1)
}

fn mix<T: Serialize>(fold: u64, value: &T) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    codec::append(value, &mut bytes).expect("a value within its bounds");
    bytes.iter().fold(fold, |fold, byte| {
        (fold.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

fn wider<T: Serialize>(widest: &mut u16, value: &T) {
    let bytes = codec::size(value).expect("a value within its bounds") as u16;
    *widest = bytes.max(*widest);
}

impl EdgeCases {
    #[must_use]
    pub fn new(load: &Load) -> Self {
        EdgeCases {
            players: Table::with_capacity(PLAYERS_MAX),
            ballast: Ballast::of(load.world_bytes as usize),
            ground: Chunked::filled(0, load.tiles as usize),
            widest: Widest::default(),
            heat: 1.0,
            asked: 0,
            answered: 0,
        }
    }

    /// Applies this player's poison, except in the prediction of the player's own client.
    fn poison(
        &mut self,
        frame: &Frame<'_, Self>,
        fx: &mut Effects<Self>,
        by: Option<PlayerId>,
        panics: bool,
    ) {
        let is_own = by.is_some_and(|player| frame.is_local(player));
        if frame.phase() == Phase::Prediction && is_own {
            fx.withhold();
        } else if panics {
            panic!("{MEANT} poison in the step");
        } else {
            self.heat = f32::NAN;
        }
    }

    fn receive_answer(
        &mut self,
        frame: &Frame<'_, Self>,
        fx: &mut Effects<Self>,
        key: Key,
        query: &Query,
        outcome: Option<&Outcome>,
    ) {
        self.answered += 1;
        match outcome {
            Some(Outcome::Panic) => self.poison(frame, fx, key.owner(), true),
            Some(Outcome::Nan) => self.poison(frame, fx, key.owner(), false),
            Some(outcome) => wider(&mut self.widest.outcome, outcome),
            None => {}
        }
        if let Some(tally) = key.owner().and_then(|p| self.players.get_mut(&p)) {
            tally.fold = mix(tally.fold, &(query, outcome));
        }
        fx.cue(key, Cue::Answered(query.number));
    }

    fn obey(
        &mut self,
        frame: &Frame<'_, Self>,
        fx: &mut Effects<Self>,
        player: PlayerId,
        command: &Command,
    ) {
        match command {
            Command::Panic => return self.poison(frame, fx, Some(player), true),
            Command::Nan => return self.poison(frame, fx, Some(player), false),
            Command::Claim(_) => wider(&mut self.widest.claim, command),
            _ => wider(&mut self.widest.command, command),
        }
        let Some(tally) = self.players.get_mut(&player) else {
            return;
        };
        tally.ran += 1;
        tally.fold = mix(tally.fold, command);
        match command {
            Command::Keep { mark, value } => {
                tally.last = Some(Some(value.clone()));
                fx.cue(Key::player(player, *mark), Cue::Kept(*mark));
            }
            Command::Ask { mark, value } => {
                tally.last = Some(None);
                let query = Query {
                    number: *mark,
                    about: Some(value.clone()),
                };
                self.asked += 1;
                fx.ask(Key::player(player, *mark), query);
            }
            _ => fx.cue_when_confirmed(Key::player(player, tally.ran), Cue::Claimed),
        }
    }

    fn hold(
        &mut self,
        frame: &Frame<'_, Self>,
        fx: &mut Effects<Self>,
        player: PlayerId,
        pad: &Pad,
    ) {
        wider(&mut self.widest.input, pad);
        match pad.stick {
            PANICS => self.poison(frame, fx, Some(player), true),
            NANS => self.poison(frame, fx, Some(player), false),
            CLAIMS if frame.is_local(player) => fx.claim(player, Command::Panic),
            _ => {}
        }
        let Some(tally) = self.players.get_mut(&player) else {
            return;
        };
        tally.fold = mix(tally.fold, pad);
        let load = frame.rules();
        if !self.ground.is_empty() {
            let tile = &mut self.ground[(tally.fold % u64::from(load.tiles)) as usize];
            *tile = (*tile + 1) % TILES;
        }
        if pad.fire {
            for _ in 0..load.asks {
                let number = 0x8000_0000 | tally.asked;
                tally.asked += 1;
                self.asked += 1;
                let about = None;
                fx.ask(Key::player(player, number), Query { number, about });
            }
        }
        let every = u64::from(hertz(frame)) * 10 / u64::from(load.claims_in_10_s.max(1));
        let due = (tally.fold >> 7).is_multiple_of(every.max(1));
        if load.claims_in_10_s > 0 && due && frame.is_local(player) {
            let bytes = usize::from(load.claim_bytes).saturating_sub(1);
            fx.claim(
                player,
                Command::Claim(Shape::made(tally.fold as u32, bytes)),
            );
        }
    }

    fn grow(&mut self, frame: &Frame<'_, Self>) {
        let load = frame.rules();
        let bytes = self.ballast.bytes();
        if load.growth_bytes > 0
            && frame.tick().0.is_multiple_of(hertz(frame))
            && bytes < load.world_bytes_max as usize
        {
            let list = Arc::make_mut(&mut self.ballast.0);
            list.resize(bytes + load.growth_bytes as usize, 7);
        }
    }
}
