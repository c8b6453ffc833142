//! The interface of a game that the rig can play, and the configuration of a world.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, Reconcile, SessionConfig, Show};
use twinstep_core::bounds::INPUT_BYTES_MAX;
use twinstep_core::{Mwc, PlayerId, Simulation, Tick};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::{MatchConfig, Resolver};

use crate::edges::{Load, Widest};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputPattern {
    /// Like a human with keys and a mouse, if the game simulates human players. Otherwise like
    /// [`Sticky`](InputPattern::Sticky).
    Human,
    /// Every value changes every tick.
    Analog,
    /// Every value changes every tenth tick.
    Sticky,
    Still,
}

impl InputPattern {
    /// Returns whether values change at this tick, or `None` if they never change. For games that do not simulate human
    /// players: [`Human`](InputPattern::Human) counts as [`Sticky`](InputPattern::Sticky).
    #[must_use]
    pub fn changes(self, now: Tick) -> Option<bool> {
        match self {
            InputPattern::Analog => Some(true),
            InputPattern::Human | InputPattern::Sticky => Some(now.0.is_multiple_of(10)),
            InputPattern::Still => None,
        }
    }
}

/// The clients that know the match's initial world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWorldKnowledge {
    Unknown,
    Known,
    /// Half of the clients know it, and a quarter have a wrong world.
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Honest,
    /// Keeps the rules, but constantly holds the input that makes the step ask queries.
    Hogs,
    /// Issues some commands that poison the step.
    Poisons,
    /// Sends some packets corrupted, twice, or again much later.
    Spoils,
    /// Receives some corrupted packets, as from a hostile server.
    Deceived,
    /// Requests a world, never acknowledges it, and dials again.
    Stalls,
    /// Repeatedly freezes for almost as long as it may without being removed.
    Lags,
    Lies,
    /// Stamps every sixteenth command `first` ticks ahead, and the other commands `others` ticks.
    Stamps {
        first: u32,
        others: u32,
    },
}

impl Role {
    /// Returns `true` if the client keeps the rules, so that the server must not punish it.
    #[must_use]
    pub fn is_honest(self) -> bool {
        matches!(self, Role::Honest | Role::Hogs)
    }
}

pub trait Play: Simulation {
    type Show: Show<Self>;
    type Driver;

    /// The rules for a world in which the game has `crowd` entities (0 for the default number).
    fn rules(crowd: u16) -> Self::Rules;
    fn rules_for(config: &RigConfig) -> Self::Rules {
        Self::rules(config.crowd)
    }
    fn start(rules: &Self::Rules, seed: u64) -> Self;
    // The configuration of a session. If `knows` is `false`, a game may leave its rules out, so that the session gets
    // them from the server.
    fn session(rules: &Arc<Self::Rules>, _knows: bool) -> SessionConfig<Self> {
        SessionConfig::new(rules.clone())
    }
    fn show(rules: &Arc<Self::Rules>) -> Self::Show;
    /// The game's resolver. It may be nondeterministic.
    fn resolver(rules: &Self::Rules, seed: u64) -> impl Resolver<Self>;
    fn speculate(_sim: &Self, _rules: &Self::Rules, _query: &Self::Query) -> Option<Self::Outcome> {
        None
    }
    /// The answer of the client that owns the query, if owners answer. With `forge`, the client cheats.
    fn answer(
        _sim: &Self,
        _rules: &Self::Rules,
        _query: &Self::Query,
        _forge: bool,
    ) -> Option<Self::Outcome> {
        None
    }
    fn admit_answer(
        &self,
        _rules: &Self::Rules,
        _query: &Self::Query,
        _outcome: &Self::Outcome,
    ) -> bool {
        true
    }
    fn admit(&self, _rules: &Self::Rules, _by: PlayerId, _command: &Self::Command) -> bool {
        true
    }
    /// The claim that a player owes, as decided by the referee.
    fn owed(&self, _rules: &Self::Rules, _player: PlayerId, _now: Tick) -> Option<Self::Command> {
        None
    }
    fn driver(input_pattern: InputPattern, luck: Mwc) -> Self::Driver;
    /// Sets a number that distinguishes this player's commands from all other players' commands in a world.
    fn number(_driver: &mut Self::Driver, _number: u32) {}
    fn drive(
        &self,
        driver: &mut Self::Driver,
        rules: &Self::Rules,
        me: PlayerId,
        now: Tick,
    ) -> (Self::Input, Option<Self::Command>);
    fn drive_more(
        &self,
        _driver: &mut Self::Driver,
        _rules: &Self::Rules,
    ) -> Option<Self::Command> {
        None
    }
    fn cast(_driver: &mut Self::Driver, _role: Role) {}
    fn flip(&mut self);
    fn ran(&self) -> Option<Vec<(PlayerId, Self::Command)>> {
        None
    }
    /// Returns `true` if one key has two answers.
    fn is_answered_twice(&self) -> bool {
        false
    }
    fn asked_and_answered(&self) -> Option<(u32, u32)> {
        None
    }
    fn bytes(&self) -> usize {
        0
    }
    fn widest(&self) -> Widest {
        Widest::default()
    }
    /// Returns `true` if a job with this outcome represents a job that never returns.
    fn is_lost(_outcome: &Self::Outcome) -> bool {
        false
    }
}

#[derive(Clone, Debug)]
pub struct RigConfig {
    pub seed: u64,
    pub clients: usize,
    pub link: LinkProfile,
    pub input_pattern: InputPattern,
    /// The number of entities in the game; 0 for the default.
    pub crowd: u16,
    pub initial_world_knowledge: InitialWorldKnowledge,
    pub load: Load,
    pub clock_goes_back: bool,
    pub policies: MatchConfig,
    pub forge: bool,
    pub step_cost: Duration,
    pub fps: u32,
    pub budget: u32,
    pub repeated_cost: u32,
    /// The number of frames after which background rebuilds are handed back; 0 for the same frame. `None` if
    /// predictions are rebuilt inline.
    pub rebuilds_late: Option<u32>,
    pub reconcile: Reconcile,
    /// The time within which the server encodes worlds in the background; one in sixteen never completes. `None` if it
    /// encodes them inline.
    pub encodes_within: Option<Duration>,
    /// The largest datagrams that clients' links pass up and down, in bytes. `None` if any size passes.
    pub passes: Option<[usize; 2]>,
    /// Whether each kept prediction is checked against the confirmed state.
    pub verify: bool,
    /// Whether the guarantees of `rig/fairness.rs` are checked all the time.
    pub fair: bool,
    pub journal: bool,
    // Whether sessions record tapes, which the caller takes from them.
    pub taped: bool,
    pub tickets: bool,
}

impl RigConfig {
    /// Four clients of the action preset on one kind of link; inputs change every tick; 120 frames a second.
    #[must_use]
    pub fn new(seed: u64, link: LinkProfile) -> Self {
        RigConfig {
            seed,
            clients: 4,
            link,
            input_pattern: InputPattern::Analog,
            crowd: 0,
            initial_world_knowledge: InitialWorldKnowledge::Unknown,
            load: Load::default(),
            clock_goes_back: false,
            policies: MatchConfig::action(),
            forge: false,
            step_cost: Duration::ZERO,
            fps: 120,
            budget: BUDGET_TICKS,
            repeated_cost: 256,
            rebuilds_late: None,
            reconcile: Reconcile::Background,
            encodes_within: None,
            passes: None,
            verify: true,
            fair: false,
            journal: true,
            taped: false,
            tickets: true,
        }
    }

    /// Sixteen players with inputs of the largest size that change every tick; 60 frames a second.
    #[must_use]
    pub fn crowded(hz: u32, seed: u64, link: LinkProfile) -> Self {
        RigConfig {
            policies: MatchConfig {
                tick: Duration::from_secs(1) / hz,
                players_max: 16,
                ..MatchConfig::action()
            },
            clients: 16,
            fps: 60,
            load: Load {
                input_bytes: u8::try_from(INPUT_BYTES_MAX).expect("a load counts them in a u8"),
                commands_in_10_s: 0,
                claims_in_10_s: 0,
                hertz: hz as u16,
                ..Load::default()
            },
            ..RigConfig::new(seed, link)
        }
    }

    /// Four clients of the strategy preset, in lockstep; 60 frames a second.
    #[must_use]
    pub fn strategy(seed: u64, link: LinkProfile) -> Self {
        RigConfig {
            policies: MatchConfig::strategy(),
            input_pattern: InputPattern::Sticky,
            fps: 60,
            ..RigConfig::new(seed, link)
        }
    }
}
