//! The properties of one seed's world, drawn before it runs.
//!
//! Most sizes of worlds and of their ground are drawn log-uniformly, so that extreme worlds occur, but are rare enough
//! to be affordable.

use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, Reconcile};
use twinstep_core::bounds::{
    COMMAND_BYTES_MAX, COMMAND_INLINE_MAX, DELAY_MAX, INPUT_BYTES_MAX, OUTCOME_INLINE_MAX,
    PLAYERS_MAX, SEATS_MAX, TURN_TICKS_MAX, WORLD_BYTES_MAX,
};
use twinstep_core::{Key, Mwc};
use twinstep_protocol::datagrams::SURE_BYTES;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::MatchConfig;
use twinstep_server::config::{
    Announce, AnsweredBy, Claims, Laggards, SealWhen, StartWhen, TickLength, TurnLength,
};

use crate::edges::{Hooks, Load};
use crate::rig::{InitialWorldKnowledge, InputPattern, RigConfig, Role};

/// The time that lockstep worlds wait for a player: long enough for honest clients on every bad link.
const KICK_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Game {
    History,
    Powderkeg,
    Edges,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfortune {
    Calm,
    /// A fault every few seconds.
    Usual,
    Storm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crashes {
    Usual,
    WhileJoining,
    /// The server crashes several times within a few seconds.
    Again,
}

#[derive(Clone, Debug)]
pub struct Person {
    pub seats: usize,
    pub role: Role,
    pub link: LinkProfile,
    pub ahead: Duration,
    pub drift_ppm: i32,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub seconds: u64,
    pub people: Vec<Person>,
    pub policies: MatchConfig,
    pub load: Load,
    pub input_pattern: InputPattern,
    pub initial_world_knowledge: InitialWorldKnowledge,
    pub fps: u32,
    pub misfortune: Misfortune,
    pub crashes: Crashes,
    pub links_stay: bool,
    /// The number of frames after which background rebuilds are handed back. `None` if rebuilds are inline.
    pub rebuilds_late: Option<u32>,
    pub reconcile: Reconcile,
    /// The number of new steps that fit into a frame, and the cost of a repeated step in 256ths of a new step.
    pub budget: [u32; 2],
    /// The maximum time of a world's background encoding. `None` if the match encodes worlds itself.
    pub encodes_within: Option<Duration>,
    /// The largest datagrams that links pass up and down, in bytes. `None` if any size passes.
    pub passes: Option<[usize; 2]>,
    pub verify: bool,
    pub delay_changes: bool,
    pub clock_goes_back: bool,
}

fn log_uniform(luck: &mut Mwc, min: u32, max: u32) -> u32 {
    let doublings = (max / min.max(1)).ilog2();
    let low = min.max(1) << luck.below(doublings + 1);
    (low + luck.below(low)).min(max)
}

fn pick<T: Copy>(luck: &mut Mwc, of: &[T]) -> T {
    of[luck.below(of.len() as u32) as usize]
}

fn one_in(luck: &mut Mwc, many: u32) -> bool {
    luck.below(many) == 0
}

impl Plan {
    #[must_use]
    pub fn draw(game: Game, seed: u64, seconds: u64) -> Plan {
        let mut luck = Mwc::seed(seed ^ 0xc4a0_5000);
        let hertz = match one_in(&mut luck, 3) {
            true => 60,
            false => pick(&mut luck, &[10, 15, 20, 30, 50, 60, 72, 90, 120, 144, 240]),
        };
        let mut policies = policies(&mut luck, hertz);
        policies.start_when = start_when(seed);
        let is_full = one_in(&mut luck, 24);
        let mut plan = Plan {
            seed,
            seconds,
            people: people(&mut luck, is_full),
            load: load(&mut luck, is_full, &policies),
            policies,
            input_pattern: pick(&mut luck, &[InputPattern::Analog, InputPattern::Sticky]),
            initial_world_knowledge: match seed % 3 {
                0 => InitialWorldKnowledge::Mixed,
                _ => InitialWorldKnowledge::Unknown,
            },
            fps: pick(&mut luck, &[30, 60, 75, 144]),
            misfortune: pick(
                &mut luck,
                &[
                    Misfortune::Usual,
                    Misfortune::Usual,
                    Misfortune::Storm,
                    Misfortune::Calm,
                ],
            ),
            crashes: pick(
                &mut luck,
                &[
                    Crashes::Usual,
                    Crashes::Usual,
                    Crashes::WhileJoining,
                    Crashes::Again,
                ],
            ),
            links_stay: one_in(&mut luck, 8),
            rebuilds_late: rebuilds_late(seed),
            reconcile: reconcile(seed),
            budget: budget(seed),
            encodes_within: encodes_within(seed),
            passes: passes(seed),
            verify: true,
            delay_changes: one_in(&mut luck, 3),
            clock_goes_back: one_in(&mut luck, 12),
        };
        if one_in(&mut luck, 3) {
            plan.turn_hostile(game, &mut luck);
        }
        if one_in(&mut luck, 12) {
            plan.use_unplayable_links();
        }
        if game == Game::Edges {
            plan.grow(&mut luck);
            plan.load.tiles = tiles(seed);
            plan.load.refuses = refuses(seed);
        }
        plan
    }

    #[must_use]
    pub fn rig(&self) -> RigConfig {
        RigConfig {
            clients: 0,
            input_pattern: self.input_pattern,
            initial_world_knowledge: self.initial_world_knowledge,
            fps: self.fps,
            rebuilds_late: self.rebuilds_late,
            reconcile: self.reconcile,
            budget: self.budget[0],
            repeated_cost: self.budget[1],
            encodes_within: self.encodes_within,
            passes: self.passes,
            verify: self.verify,
            load: self.load,
            policies: self.policies.clone(),
            clock_goes_back: self.clock_goes_back,
            fair: true,
            ..RigConfig::new(self.seed, LinkProfile::LAN)
        }
    }

    #[must_use]
    pub fn poisoned(mut self) -> Plan {
        let mut luck = Mwc::seed(self.seed ^ 0x706f_6973);
        let stalls = |person: &Person| matches!(person.role, Role::Stalls | Role::Lags);
        self.people.retain(|person| !stalls(person));
        self.people
            .resize_with(self.people.len().max(3), || random_person(&mut luck));
        self.people[0].role = Role::Poisons;
        self.people[0].link = "rtt=160,jitter=60,loss=3".parse().expect("a valid link");
        if self.policies.command_delay == 0 {
            self.policies.announce = Announce::Ahead;
        }
        self.load.commands_in_10_s = self.load.commands_in_10_s.max(30);
        self
    }

    fn turn_hostile(&mut self, game: Game, luck: &mut Mwc) {
        let mut roles = vec![
            Role::Hogs,
            Role::Spoils,
            Role::Deceived,
            Role::Stalls,
            Role::Lies,
        ];
        if game == Game::Edges {
            roles.extend([Role::Poisons; 3]);
        }
        if matches!(self.policies.sealing, SealWhen::WaitForAll { .. }) {
            roles.push(Role::Lags);
        }
        let role = pick(luck, &roles);
        if self.people.len() < 2 {
            self.people.push(random_person(luck));
        }
        self.people[0].role = role;
        match role {
            Role::Stalls => {
                self.people[1].role = role;
                self.people.truncate(6);
                self.people
                    .resize_with(3.max(self.people.len()), || random_person(luck));
            }
            Role::Lags => self.people[0].link = LinkProfile::LAN,
            Role::Lies => {
                let max = (self.policies.tick * 10).min(Duration::from_secs(1));
                self.policies.tick_length = TickLength::Adaptive { max };
            }
            Role::Hogs => {
                self.load.asks = pick(luck, &[1, 16]);
                self.load.outcome_bytes = pick(luck, &[24, 88, OUTCOME_INLINE_MAX as u16]);
            }
            _ => {}
        }
    }

    fn use_unplayable_links(&mut self) {
        self.links_stay = true;
        let worse = "rtt=400,jitter=150,loss=15,burst=6,dup=5".parse();
        let worse: LinkProfile = worse.expect("a valid link");
        for person in self.people.iter_mut().filter(|p| p.role != Role::Lags) {
            person.link = worse;
        }
    }

    fn grow(&mut self, luck: &mut Mwc) {
        let bound = WORLD_BYTES_MAX as u32;
        let load = &mut self.load;
        load.world_bytes = log_uniform(luck, 64, 32 << 10);
        if one_in(luck, 12) {
            load.world_bytes = log_uniform(luck, 64 << 10, 4 << 20);
        } else if one_in(luck, 40) {
            load.world_bytes = bound - (200 << 10);
        }
        if one_in(luck, 4) {
            load.growth_bytes = (load.world_bytes / 20).max(8);
            load.world_bytes_max = load.world_bytes.saturating_mul(3);
        }
        if load.world_bytes > 256 << 10 {
            // Large worlds are expensive to simulate: fewer clients, slower ticks, a shorter run.
            self.people.truncate(3);
            self.seconds = self.seconds.min(20);
            let tick = self.policies.tick.max(Duration::from_millis(50));
            self.policies.tick = tick;
            if let TickLength::Adaptive { max } = &mut self.policies.tick_length {
                *max = tick.max(*max);
            }
            load.hertz = load.hertz.min(20);
            self.fps = 30;
            self.verify = false;
        }
    }
}

/// One in four worlds of the edge-case game has ground that players dig up. It is drawn from a separate stream, so that
/// the seed's other draws stay the same.
fn tiles(seed: u64) -> u32 {
    let mut luck = Mwc::seed(seed ^ 0x7469_6c65);
    match one_in(&mut luck, 4) {
        true => log_uniform(&mut luck, 1, 500_000),
        false => 0,
    }
}

/// Returns `true` if the referee refuses poison, as in half of the edge-case game's worlds. This is drawn from a
/// separate stream, so that the seed's other draws stay the same.
fn refuses(seed: u64) -> bool {
    one_in(&mut Mwc::seed(seed ^ 0x7265_6675), 2)
}

/// One in four worlds rebuilds in the background. This is drawn from a separate stream, so that the seed's other draws
/// stay the same.
fn rebuilds_late(seed: u64) -> Option<u32> {
    let mut luck = Mwc::seed(seed ^ 0x6c61_7465);
    one_in(&mut luck, 4).then(|| pick(&mut luck, &[0, 1, 1, 2, 7]))
}

/// Half of the worlds that rebuild in the background decide for each rebuild where it runs. Separately drawn.
fn reconcile(seed: u64) -> Reconcile {
    let mut luck = Mwc::seed(seed ^ 0x6175_746f);
    pick(&mut luck, &[Reconcile::Auto, Reconcile::Background])
}

/// One in four worlds has expensive steps. This is also drawn from a separate stream.
fn budget(seed: u64) -> [u32; 2] {
    let mut luck = Mwc::seed(seed ^ 0x7072_6963);
    let new = pick(&mut luck, &[4, 8, 20]);
    let repeated = pick(&mut luck, &[8, 32, 128, 256]);
    match one_in(&mut luck, 4) {
        true => [new, repeated],
        false => [BUDGET_TICKS, repeated],
    }
}

// One in six matches waits for its players. This is also drawn from a separate stream.
fn start_when(seed: u64) -> StartWhen {
    let mut luck = Mwc::seed(seed ^ 0x6c6f_6262);
    match luck.below(12) {
        0 => StartWhen::Players(1 + luck.below(4) as usize),
        1 => StartWhen::HostSays,
        _ => StartWhen::Immediately,
    }
}

/// Half of all worlds are encoded in the background. This is also drawn from a separate stream.
fn encodes_within(seed: u64) -> Option<Duration> {
    let mut luck = Mwc::seed(seed ^ 0x6173_6964);
    let ms = one_in(&mut luck, 2).then(|| pick(&mut luck, &[0, 10, 40, 400]));
    ms.map(Duration::from_millis)
}

/// The links of one in twelve worlds pass only small datagrams, in one direction or both. This is also drawn
/// from a separate stream.
fn passes(seed: u64) -> Option<[usize; 2]> {
    let mut luck = Mwc::seed(seed ^ 0x6d74_7500);
    let size = pick(&mut luck, &[SURE_BYTES, 548, 700, 1_000]);
    let sizes = pick(
        &mut luck,
        &[[size, size], [size, usize::MAX], [usize::MAX, size]],
    );
    one_in(&mut luck, 12).then_some(sizes)
}

fn policies(luck: &mut Mwc, hertz: u32) -> MatchConfig {
    let tick = Duration::from_secs(1) / hertz;
    let mut config = if one_in(luck, 3) {
        MatchConfig {
            command_delay: 1 + luck.below(4) as u8,
            sealing: match luck.below(3) {
                0 => SealWhen::Deadline,
                _ => SealWhen::WaitForAll {
                    kick_after: KICK_AFTER,
                },
            },
            tick: tick.max(Duration::from_millis(16)),
            ..MatchConfig::strategy()
        }
    } else {
        MatchConfig {
            delay_ticks: pick(luck, &[0, 0, 2, 5, DELAY_MAX as u8]),
            announce: pick(luck, &[Announce::Ahead, Announce::Ahead, Announce::Never]),
            tick,
            ..MatchConfig::action()
        }
    };
    config.players_max = PLAYERS_MAX;
    config.turn = match luck.below(4) {
        0 => TurnLength::adaptive(1, 8),
        1 if hertz >= 50 => TurnLength::Fixed(pick(luck, &[5, 8, TURN_TICKS_MAX])),
        _ => TurnLength::Fixed(1 + luck.below(4) as u8),
    };
    if one_in(luck, 4) {
        let max = (config.tick * 2).min(Duration::from_secs(1));
        config.tick_length = TickLength::Adaptive { max };
    }
    config.laggards = match luck.below(4) {
        0 => Laggards::hold(),
        1 => Laggards::Kick {
            after: Duration::from_secs(20),
        },
        _ => Laggards::Ignore,
    };
    if one_in(luck, 4) {
        config.answered_by = AnsweredBy::Owner;
    }
    if one_in(luck, 4) {
        config.claims = Claims::OwnerWithin(40);
    }
    config
}

/// Draws sizes and rates: zero, typical, or the largest permitted.
fn load(luck: &mut Mwc, is_full: bool, policies: &MatchConfig) -> Load {
    let byte = |bytes: usize| u8::try_from(bytes).expect("a load counts these bytes in a u8");
    let (input, command) = (byte(INPUT_BYTES_MAX), byte(COMMAND_INLINE_MAX));
    let outcome = OUTCOME_INLINE_MAX as u16;
    let hertz = (Duration::from_secs(1).as_nanos() / policies.tick.as_nanos()) as u16;
    let mut load = Load {
        input_bytes: pick(luck, &[3, 5, input]),
        command_bytes: pick(luck, &[7, 16, 16, 97, command]),
        outcome_bytes: pick(luck, &[8, 24, 24, 190, outcome]),
        claim_bytes: pick(luck, &[2, 16, command]),
        hertz: hertz.max(1),
        commands_in_10_s: pick(luck, &[0, 5, 30, 30, 200]),
        claims_in_10_s: pick(luck, &[0, 2, 2, 80]),
        asks: pick(luck, &[0, 0, 0, 1]),
        hooks: match luck.below(10) {
            0 => Hooks::Panic,
            1 => Hooks::Nonsense,
            _ => Hooks::Sound,
        },
        ..Load::default()
    };
    if is_full {
        load.input_bytes = input;
        load.command_bytes = command;
        load.outcome_bytes = outcome;
        load.claim_bytes = command;
        load.commands_in_10_s = 200;
        load.claims_in_10_s = 80;
        load.asks = 1;
    }
    // Drawn from a separate generator, so that the other draws do not depend on it.
    let mut large = luck.fork(Key::new(0, 86));
    if one_in(&mut large, 3) {
        let most = pick(
            &mut large,
            &[OUTCOME_INLINE_MAX + 1, 1_500, COMMAND_BYTES_MAX],
        );
        load.large_bytes = most as u16;
    }
    load
}

/// Draws clients with one to four seats each: a few clients, or as many as fit.
fn people(luck: &mut Mwc, is_full: bool) -> Vec<Person> {
    let most = luck.below(5).min(luck.below(5));
    let players = match is_full {
        true => PLAYERS_MAX,
        false => ((1 << most) + luck.below(1 << most) as usize).min(PLAYERS_MAX),
    };
    let mut people = Vec::new();
    let mut seated = 0;
    while seated < players {
        let mut person = random_person(luck);
        person.seats = person.seats.min(players - seated);
        seated += person.seats;
        people.push(person);
    }
    people
}

pub fn random_person(rng: &mut Mwc) -> Person {
    let seats = match rng.below(4) {
        0 => 1 + rng.below(SEATS_MAX as u32) as usize,
        _ => 1,
    };
    Person {
        seats,
        role: Role::Honest,
        link: link(rng),
        ahead: match rng.below(4) {
            0 => Duration::from_secs(u64::from(rng.below(1 << 20))),
            _ => Duration::ZERO,
        },
        drift_ppm: pick(rng, &[0, 0, -3_000, -200, 200, 3_000]),
    }
}

pub fn link(luck: &mut Mwc) -> LinkProfile {
    match luck.below(6) {
        0 => LinkProfile::PERFECT,
        1 => LinkProfile::LAN,
        2 => LinkProfile::WAN,
        3 => LinkProfile::BAD,
        4 => LinkProfile::AWFUL,
        _ => {
            let text = format!(
                "rtt={},jitter={},loss={},dup={}",
                luck.below(250),
                luck.below(60),
                luck.below(12),
                luck.below(6)
            );
            text.parse().expect("a valid link")
        }
    }
}
