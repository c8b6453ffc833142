//! What one seed's world is like, drawn before it is played: each edge has a name here.
//!
//! Sizes and numbers are drawn evenly over their powers of two, so that worlds at the far ends are rare enough to be
//! afforded, and present.

use std::time::Duration;

use twinstep_core::Mwc;
use twinstep_core::bounds::{
    COMMAND_BYTES_MAX, DELAY_MAX, INPUT_BYTES_MAX, OUTCOME_BYTES_MAX, PLAYERS_MAX, SEATS_MAX,
    TURN_TICKS_MAX, WORLD_BYTES_MAX,
};
use twinstep_protocol::datagrams::SURE_BYTES;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::MatchConfig;
use twinstep_server::config::{
    Announce, AnsweredBy, Claims, Laggards, SealWhen, TickLength, TurnLength,
};

use crate::edges::{Hooks, Load};
use crate::rig::{RigConfig, Role, Starts, Sticks};

/// How long the others wait for a player in the worlds of lockstep: so long that honest lines, however bad, are not too
/// slow for them.
const KICK_AFTER: Duration = Duration::from_secs(60);

/// Which game is played, and so which edges its worlds can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Game {
    /// The state is its own history.
    History,
    /// A real game.
    Powderkeg,
    /// Every size and shape.
    Edges,
}

/// How often something befalls somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfortune {
    /// Never.
    Calm,
    /// Every few seconds.
    Usual,
    /// All the time.
    Storm,
}

/// When processes are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crashes {
    /// As one misfortune among others.
    Usual,
    /// The server's or a client's, while somebody comes or comes back.
    WhileJoining,
    /// The server's, several times in a few seconds.
    Again,
}

/// One client.
#[derive(Clone, Debug)]
pub struct Person {
    /// Its seats.
    pub seats: usize,
    /// What it is up to.
    pub role: Role,
    /// Its line.
    pub link: LinkProfile,
    /// By how much its clock is ahead.
    pub ahead: Duration,
    /// By how much its clock runs faster.
    pub drift_ppm: i32,
}

/// A whole world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// Its virtual length.
    pub seconds: u64,
    /// Who is there at the beginning.
    pub people: Vec<Person>,
    /// How the match is run.
    pub policies: MatchConfig,
    /// How large and how many everything is.
    pub load: Load,
    /// How clients move their sticks.
    pub sticks: Sticks,
    /// Which clients know what the match begins with.
    pub starts: Starts,
    /// Frames that clients draw a second.
    pub fps: u32,
    /// How often something befalls somebody.
    pub misfortune: Misfortune,
    /// When processes are killed.
    pub crashes: Crashes,
    /// Whether lines stay as they are.
    pub links_stay: bool,
    /// In how many frames rebuilds that are done elsewhere come back; `None`: they are done inline.
    pub rebuilds_late: Option<u32>,
    /// Within which time worlds are encoded beside the match; `None`: by itself.
    pub encodes_within: Option<Duration>,
    /// The largest datagrams that lines pass up and down, in bytes, where they are small.
    pub passes: Option<[usize; 2]>,
    /// Whether each kept prediction is checked against the truth.
    pub verify: bool,
    /// Whether the input delay changes in play.
    pub delay_changes: bool,
    /// Whether the server's clock goes back now and then.
    pub clock_goes_back: bool,
}

/// A number of 0..=`max`, its powers of two alike.
fn log_uniform(luck: &mut Mwc, min: u32, max: u32) -> u32 {
    let doublings = (max / min.max(1)).ilog2();
    let low = min.max(1) << luck.below(doublings + 1);
    (low + luck.below(low)).min(max)
}

fn pick<T: Copy>(luck: &mut Mwc, of: &[T]) -> T {
    of[luck.below(of.len() as u32) as usize]
}

/// Whether one of so many.
fn one_in(luck: &mut Mwc, many: u32) -> bool {
    luck.below(many) == 0
}

impl Plan {
    /// The world of a seed.
    #[must_use]
    pub fn draw(game: Game, seed: u64, seconds: u64) -> Plan {
        let mut luck = Mwc::seed(seed ^ 0xc4a0_5000);
        let hertz = match one_in(&mut luck, 3) {
            true => 60,
            false => pick(&mut luck, &[10, 15, 20, 30, 50, 60, 72, 90, 120, 144, 240]),
        };
        let policies = policies(&mut luck, hertz);
        let is_full = one_in(&mut luck, 24);
        let mut plan = Plan {
            seed,
            seconds,
            people: people(&mut luck, is_full),
            load: load(&mut luck, is_full, &policies),
            policies,
            sticks: pick(&mut luck, &[Sticks::Analog, Sticks::Sticky]),
            starts: match seed % 3 {
                0 => Starts::Mixed,
                _ => Starts::Unknown,
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
            plan.stay_worse_than_awful();
        }
        if game == Game::Edges {
            plan.grow(&mut luck);
            plan.load.tiles = tiles(seed);
            plan.load.refuses = refuses(seed);
        }
        plan
    }

    /// What the rig is made of.
    #[must_use]
    pub fn rig(&self) -> RigConfig {
        RigConfig {
            clients: 0,
            sticks: self.sticks,
            starts: self.starts,
            fps: self.fps,
            rebuilds_late: self.rebuilds_late,
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

    /// The first of the players poisons, whatever was drawn. Its line is so slow that much of what it gives comes early, and is
    /// announced where anything is.
    #[must_use]
    pub fn poisoned(mut self) -> Plan {
        let mut luck = Mwc::seed(self.seed ^ 0x706f_6973);
        let stalls = |person: &Person| matches!(person.role, Role::Stalls | Role::Lags);
        self.people.retain(|person| !stalls(person));
        self.people
            .resize_with(self.people.len().max(3), || person(&mut luck));
        self.people[0].role = Role::Poisons;
        self.people[0].link = "rtt=160,jitter=60,loss=3".parse().expect("a link in words");
        if self.policies.command_delay == 0 {
            self.policies.announce = Announce::Ahead;
        }
        self.load.commands_in_10_s = self.load.commands_in_10_s.max(30);
        self
    }

    /// One or two of several are up to something.
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
            self.people.push(person(luck));
        }
        self.people[0].role = role;
        match role {
            Role::Stalls => {
                self.people[1].role = role;
                self.people.truncate(6);
                self.people
                    .resize_with(3.max(self.people.len()), || person(luck));
            }
            Role::Lags => self.people[0].link = LinkProfile::LAN,
            Role::Lies => {
                let max = (self.policies.tick * 10).min(Duration::from_secs(1));
                self.policies.tick_length = TickLength::Adaptive { max };
            }
            Role::Hogs => {
                self.load.asks = pick(luck, &[1, 16]);
                self.load.outcome_bytes = pick(luck, &[24, 88, OUTCOME_BYTES_MAX as u16]);
            }
            _ => {}
        }
    }

    /// A line that would make anybody give up, for as long as the world lasts.
    fn stay_worse_than_awful(&mut self) {
        self.links_stay = true;
        let worse = "rtt=400,jitter=150,loss=15,burst=6,dup=5".parse();
        let worse: LinkProfile = worse.expect("a link in words");
        for person in self.people.iter_mut().filter(|p| p.role != Role::Lags) {
            person.link = worse;
        }
    }

    /// The world's own size: mostly small; now and then up to the bound, and past it.
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
            // What is large is dear: fewer, slower, shorter.
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

/// Of edges' worlds, one of four has ground that is dug up. A stream of its own: what else a seed draws stays.
fn tiles(seed: u64) -> u32 {
    let mut luck = Mwc::seed(seed ^ 0x7469_6c65);
    match one_in(&mut luck, 4) {
        true => log_uniform(&mut luck, 1, 500_000),
        false => 0,
    }
}

/// In half of edges' worlds the referee refuses poison. A stream of its own: what else a seed draws stays.
fn refuses(seed: u64) -> bool {
    one_in(&mut Mwc::seed(seed ^ 0x7265_6675), 2)
}

/// One world of four rebuilds elsewhere. A stream of its own: what else a seed draws stays.
fn rebuilds_late(seed: u64) -> Option<u32> {
    let mut luck = Mwc::seed(seed ^ 0x6c61_7465);
    one_in(&mut luck, 4).then(|| pick(&mut luck, &[0, 1, 1, 2, 7]))
}

/// Half of all worlds are encoded beside their match. A stream of its own, too.
fn encodes_within(seed: u64) -> Option<Duration> {
    let mut luck = Mwc::seed(seed ^ 0x6173_6964);
    let ms = one_in(&mut luck, 2).then(|| pick(&mut luck, &[0, 10, 40, 400]));
    ms.map(Duration::from_millis)
}

/// The lines of one world of twelve pass only small datagrams, one way or both. A stream of its own, too.
fn passes(seed: u64) -> Option<[usize; 2]> {
    let mut luck = Mwc::seed(seed ^ 0x6d74_7500);
    let size = pick(&mut luck, &[SURE_BYTES, 548, 700, 1_000]);
    let sizes = pick(
        &mut luck,
        &[[size, size], [size, usize::MAX], [usize::MAX, size]],
    );
    one_in(&mut luck, 12).then_some(sizes)
}

/// Every policy there is, in every combination that may be run.
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
        0 => TurnLength::Adaptive { min: 1, max: 8 },
        1 if hertz >= 50 => TurnLength::Fixed(pick(luck, &[5, 8, TURN_TICKS_MAX])),
        _ => TurnLength::Fixed(1 + luck.below(4) as u8),
    };
    if one_in(luck, 4) {
        let max = (config.tick * 2).min(Duration::from_secs(1));
        config.tick_length = TickLength::Adaptive { max };
    }
    config.laggards = match luck.below(4) {
        0 => Laggards::Hold {
            at_once: Duration::from_millis(250),
            per_minute: Duration::from_secs(2),
        },
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

/// Sizes and rates: none, typical, or all that is granted.
fn load(luck: &mut Mwc, is_full: bool, policies: &MatchConfig) -> Load {
    let (input, command) = (INPUT_BYTES_MAX as u8, COMMAND_BYTES_MAX as u8);
    let outcome = OUTCOME_BYTES_MAX as u16;
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
    load
}

/// Clients of one to four seats: as many as are drawn, or all that there can be.
fn people(luck: &mut Mwc, is_full: bool) -> Vec<Person> {
    let most = luck.below(5).min(luck.below(5));
    let players = match is_full {
        true => PLAYERS_MAX,
        false => ((1 << most) + luck.below(1 << most) as usize).min(PLAYERS_MAX),
    };
    let mut people = Vec::new();
    let mut seated = 0;
    while seated < players {
        let mut person = person(luck);
        person.seats = person.seats.min(players - seated);
        seated += person.seats;
        people.push(person);
    }
    people
}

/// One client.
pub fn person(luck: &mut Mwc) -> Person {
    let seats = match luck.below(4) {
        0 => 1 + luck.below(SEATS_MAX as u32) as usize,
        _ => 1,
    };
    Person {
        seats,
        role: Role::Honest,
        link: link(luck),
        ahead: match luck.below(4) {
            0 => Duration::from_secs(u64::from(luck.below(1 << 20))),
            _ => Duration::ZERO,
        },
        drift_ppm: pick(luck, &[0, 0, -3_000, -200, 200, 3_000]),
    }
}

/// Any line.
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
            text.parse().expect("a link in words")
        }
    }
}
