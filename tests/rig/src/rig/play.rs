//! What the rig must know of a game, and what a world is like.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, Show};
use twinstep_core::bounds::INPUT_BYTES_MAX;
use twinstep_core::{Mwc, PlayerId, Simulation, Tick};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::{MatchConfig, Resolver};

use crate::edges::{Load, Widest};

/// How clients move their sticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sticks {
    /// As people with keys and a mouse, in a game that has such players; else everything changes at every tenth tick.
    Keys,
    /// Everything changes at every tick.
    Analog,
    /// Everything changes at every tenth tick.
    Sticky,
    /// Neutral, and no commands.
    Still,
}

impl Sticks {
    /// Whether everything changes at this tick, where nobody plays as people do; `None`: nothing ever does.
    #[must_use]
    pub fn changes(self, now: Tick) -> Option<bool> {
        match self {
            Sticks::Analog => Some(true),
            Sticks::Keys | Sticks::Sticky => Some(now.0.is_multiple_of(10)),
            Sticks::Still => None,
        }
    }
}

/// Which clients know what the match begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// None.
    Unknown,
    /// All.
    Known,
    /// Half of them; of the others, half are wrong.
    Mixed,
}

/// What a client is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Plays.
    Honest,
    /// Plays, and holds down what makes the step ask.
    Hogs,
    /// Some of its orders poison the step.
    Poisons,
    /// Some of its packets are spoiled, doubled, or from long ago.
    Spoils,
    /// Some of the packets that it hears are spoiled: its server is hostile.
    Deceived,
    /// Asks for a world, never acknowledges it, and dials again.
    Stalls,
    /// Stands still for almost as long as it may without being put out, again and again.
    Lags,
    /// Tells that its machine is busy all the time.
    Lies,
    /// Stamps every sixteenth of its commands `first` ticks ahead, and the others `others` ticks.
    Stamps {
        /// Ticks by which every sixteenth command may run later.
        first: u32,
        /// Ticks by which the commands between may.
        others: u32,
    },
}

impl Role {
    /// Whether it keeps the rules, so that nothing may be done to it.
    #[must_use]
    pub fn is_honest(self) -> bool {
        matches!(self, Role::Honest | Role::Hogs)
    }
}

/// A game that the rig can play.
pub trait Play: Simulation {
    /// Its picture.
    type Show: Show<Self>;
    /// A player made of numbers.
    type Driver;

    /// Its rules, for a world with so many entities of its own (0: as usual).
    fn rules(crowd: u16) -> Self::Rules;
    /// Its rules, for a world that is like this.
    fn rules_for(config: &RigConfig) -> Self::Rules {
        Self::rules(config.crowd)
    }
    /// Its beginning.
    fn start(rules: &Self::Rules, seed: u64) -> Self;
    /// Its picture.
    fn show(rules: &Arc<Self::Rules>) -> Self::Show;
    /// Its resolver, which may be as nondeterministic as it likes.
    fn resolver(rules: &Self::Rules, seed: u64) -> impl Resolver<Self>;
    /// What clients speculate.
    fn speculate(_sim: &Self, _rules: &Self::Rules, _query: &Self::Query) -> Option<Self::Outcome> {
        None
    }
    /// What the client of the player who asked answers, where owners do; `forge`: it cheats.
    fn answer(
        _sim: &Self,
        _rules: &Self::Rules,
        _query: &Self::Query,
        _forge: bool,
    ) -> Option<Self::Outcome> {
        None
    }
    /// Which answers of owners its referee admits.
    fn admit_answer(
        &self,
        _rules: &Self::Rules,
        _query: &Self::Query,
        _outcome: &Self::Outcome,
    ) -> bool {
        true
    }
    /// What its referee admits.
    fn admit(&self, _rules: &Self::Rules, _by: PlayerId, _command: &Self::Command) -> bool {
        true
    }
    /// What its referee says that a player owes.
    fn owed(&self, _rules: &Self::Rules, _player: PlayerId, _now: Tick) -> Option<Self::Command> {
        None
    }
    /// A player.
    fn driver(sticks: Sticks, luck: Mwc) -> Self::Driver;
    /// What tells this player's orders from those of all others that a world has had.
    fn number(_driver: &mut Self::Driver, _number: u32) {}
    /// What a player holds at `now` and orders.
    fn drive(
        &self,
        driver: &mut Self::Driver,
        rules: &Self::Rules,
        me: PlayerId,
        now: Tick,
    ) -> (Self::Input, Option<Self::Command>);
    /// What a player orders at once beside that.
    fn drive_more(
        &self,
        _driver: &mut Self::Driver,
        _rules: &Self::Rules,
    ) -> Option<Self::Command> {
        None
    }
    /// What a player is up to from now on.
    fn cast(_driver: &mut Self::Driver, _role: Role) {}
    /// Changes something that no frame told: a desync.
    fn flip(&mut self);
    /// All commands that ran, in order, if the state remembers them.
    fn ran(&self) -> Option<Vec<(PlayerId, Self::Command)>> {
        None
    }
    /// Whether one key has two answers.
    fn is_answered_twice(&self) -> bool {
        false
    }
    /// How many queries were asked and answered so far, if the state remembers them.
    fn asked_and_answered(&self) -> Option<(u32, u32)> {
        None
    }
    /// About how many bytes its state takes, if that may be many.
    fn bytes(&self) -> usize {
        0
    }
    /// The largest values that it stepped, if it remembers them.
    fn widest(&self) -> Widest {
        Widest::default()
    }
    /// Whether a job with this outcome stands for one that never returns.
    fn is_lost(_outcome: &Self::Outcome) -> bool {
        false
    }
}

/// What a world is like.
#[derive(Clone, Debug)]
pub struct RigConfig {
    /// Everything follows from it.
    pub seed: u64,
    /// Clients that join at the beginning.
    pub clients: usize,
    /// The links at the beginning.
    pub link: LinkProfile,
    /// How clients move their sticks.
    pub sticks: Sticks,
    /// Entities of the game's own; 0: as usual.
    pub crowd: u16,
    /// Which clients know what the match begins with.
    pub starts: Starts,
    /// How large and how many everything is, in a game that can be told.
    pub load: Load,
    /// Whether the server's clock goes back now and then.
    pub clock_goes_back: bool,
    /// How the match is run.
    pub policies: MatchConfig,
    /// Where owners answer: whether clients cheat.
    pub forge: bool,
    /// What a step costs each client's machine.
    pub step_cost: Duration,
    /// Frames that clients draw a second.
    pub fps: u32,
    /// Steps of the prediction that one advance may take.
    pub budget: u32,
    /// `Some`: predictions are rebuilt elsewhere ([`Reconcile::Background`](twinstep_client::Reconcile)), and come back so
    /// many frames later; 0: within the same frame, as if there were no time between.
    pub rebuilds_late: Option<u32>,
    /// `Some`: the server has worlds encoded beside its match, within this; one of sixteen never.
    pub encodes_within: Option<Duration>,
    /// The largest datagrams that clients' lines pass up and down, in bytes, where they are small.
    pub passes: Option<[usize; 2]>,
    /// Whether each kept prediction is checked against the truth.
    pub verify: bool,
    /// Whether what a match owes to each player is checked all the time (`rig/fair.rs`): not where a test
    /// itself lets somebody starve, lie or stand still.
    pub fair: bool,
    /// Whether a journal is kept.
    pub journal: bool,
    /// Whether the host hands down tickets to return with.
    pub tickets: bool,
}

impl RigConfig {
    /// Four clients of the action preset on one kind of link, analog sticks, 120 frames a second.
    #[must_use]
    pub fn new(seed: u64, link: LinkProfile) -> Self {
        RigConfig {
            seed,
            clients: 4,
            link,
            sticks: Sticks::Analog,
            crowd: 0,
            starts: Starts::Unknown,
            load: Load::default(),
            clock_goes_back: false,
            policies: MatchConfig::action(),
            forge: false,
            step_cost: Duration::ZERO,
            fps: 120,
            budget: BUDGET_TICKS,
            rebuilds_late: None,
            encodes_within: None,
            passes: None,
            verify: true,
            fair: false,
            journal: true,
            tickets: true,
        }
    }

    /// Sixteen players whose every input is as large as one may be, and changes at every tick; frames of 60 Hz.
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
                input_bytes: INPUT_BYTES_MAX as u8,
                commands_in_10_s: 0,
                claims_in_10_s: 0,
                hertz: hz as u16,
                ..Load::default()
            },
            ..RigConfig::new(seed, link)
        }
    }

    /// The same in lockstep, by the strategy preset; frames of 60 Hz.
    #[must_use]
    pub fn strategy(seed: u64, link: LinkProfile) -> Self {
        RigConfig {
            policies: MatchConfig::strategy(),
            sticks: Sticks::Sticky,
            fps: 60,
            ..RigConfig::new(seed, link)
        }
    }
}
