//! The players, resolvers and referees of the edge-case game, correct and faulty.

use std::sync::Arc;

use twinstep_core::bounds::{INPUT_BYTES_MAX, OUTCOME_BYTES_MAX};
use twinstep_core::{Key, Mwc, PlayerId, Tick};
use twinstep_server::{Decision, HookContext, Resolver};

use super::shape::Shape;
use super::{
    CLAIMS, Command, EdgeCases, Hooks, INPUT_HEAD_BYTES, Load, MEANT, NANS, Outcome, PANICS,
    POISONED, Pad, Query, Widest,
};
use crate::rig::{InputPattern, Play, RigConfig, Role};

/// The size of an outcome without its value, in bytes: its tag and number.
const OUTCOME_HEAD_BYTES: usize = 6;
/// The size of a command without its value, in bytes: its tag and mark.
const COMMAND_HEAD_BYTES: usize = 6;
/// If the load has large entries, one in this many commands is large, and so is the outcome of its query.
pub const LARGE_EVERY: u32 = 5;
const HOOK_FAILS: u32 = 200;
/// One in this many commands of a poisoner is poison, and one in this many others asks for a poisoned outcome.
const POISONS: u32 = 8;
/// One in this many inputs of a poisoner is poison.
const POISONED_PADS: u32 = 90;

pub struct Driver {
    input_pattern: InputPattern,
    luck: Mwc,
    pad: Pad,
    mark: u32,
    orders: u32,
    /// The number of commands due, in units of 1 / (10 × hertz).
    due: u32,
    role: Role,
}

impl Driver {
    fn pad(&mut self, load: &Load) -> Pad {
        let filling = usize::from(load.input_bytes).saturating_sub(INPUT_HEAD_BYTES);
        let stick = self.luck.below(7) as u8;
        let poisons = self.role == Role::Poisons && self.luck.below(POISONED_PADS) == 0;
        Pad {
            stick: match poisons {
                true => [PANICS, NANS, CLAIMS][self.luck.below(3) as usize],
                false => stick,
            },
            fire: self.role == Role::Hogs || self.luck.below(6) == 0,
            more: (0..filling.min(INPUT_BYTES_MAX - INPUT_HEAD_BYTES))
                .map(|i| if i < 2 { self.luck.next_u32() as u8 } else { 9 })
                .collect(),
        }
    }

    fn order(&mut self, load: &Load) -> Option<Command> {
        let part = u32::from(load.hertz) * 10;
        if self.due < part {
            return None;
        }
        self.due -= part;
        self.orders += 1;
        if self.role == Role::Poisons && self.luck.below(POISONS) == 0 {
            return Some([Command::Panic, Command::Nan][self.luck.below(2) as usize].clone());
        }
        let mark = (self.mark | self.orders) & (POISONED - 1);
        if self.role == Role::Poisons && self.luck.below(POISONS) == 0 {
            let (mark, value) = (mark | POISONED, Shape::Nothing);
            return Some(Command::Ask { mark, value });
        }
        let is_large = load.large_bytes > 0 && self.orders.is_multiple_of(LARGE_EVERY);
        let bytes = match is_large {
            true => usize::from(load.large_bytes),
            false => usize::from(load.command_bytes),
        };
        let bytes = bytes.saturating_sub(COMMAND_HEAD_BYTES);
        let value = Shape::made(self.luck.next_u32(), bytes);
        Some(if self.luck.below(4) == 0 {
            Command::Ask { mark, value }
        } else {
            Command::Keep { mark, value }
        })
    }
}

/// The answer that a client predicts. If `odd`, a different one, which the resolver gives one time in four.
fn expected(query: &Query, load: &Load, odd: bool) -> Outcome {
    // Only commands ask for large outcomes, because the rate of commands is bounded.
    let is_large =
        load.large_bytes > 0 && query.about.is_some() && query.number.is_multiple_of(LARGE_EVERY);
    let bytes = match is_large {
        true => usize::from(load.large_bytes),
        false => usize::from(load.outcome_bytes),
    };
    if bytes <= OUTCOME_HEAD_BYTES {
        return Outcome::Fine {
            number: u32::from(odd),
            value: Shape::Nothing,
        };
    }
    Outcome::Fine {
        number: query.number ^ u32::from(odd),
        value: Shape::made(query.number, bytes - OUTCOME_HEAD_BYTES),
    }
}

fn nonsense(luck: &mut Mwc) -> Outcome {
    let (seed, kind) = (luck.next_u32(), luck.below(3));
    let too_many = OUTCOME_BYTES_MAX + 100 + luck.below(2_000) as usize;
    // In debug builds an outcome that is too large counts as the author's mistake, and panics.
    let bytes = if cfg!(debug_assertions) {
        100
    } else {
        too_many
    };
    match kind {
        0 => Outcome::Panic,
        1 => Outcome::Nan,
        _ => Outcome::Fine {
            number: 1,
            value: Shape::made(seed, bytes),
        },
    }
}

impl Play for EdgeCases {
    type Show = twinstep_client::NoPicture;
    type Driver = Driver;

    fn rules(_crowd: u16) -> Load {
        Load::default()
    }

    fn rules_for(config: &RigConfig) -> Load {
        config.load
    }

    fn start(load: &Load, _seed: u64) -> Self {
        EdgeCases::new(load)
    }

    fn show(_load: &Arc<Load>) -> Self::Show {
        twinstep_client::NoPicture
    }

    fn resolver(load: &Load, seed: u64) -> impl Resolver<Self> {
        let load = *load;
        let mut chance = Mwc::seed(seed ^ 0xed6e);
        move |_: &HookContext<'_, Self>, _: Key, query: &Query| {
            if chance.below(HOOK_FAILS) == 0 {
                match load.hooks {
                    Hooks::Panic => panic!("{MEANT} the resolver"),
                    Hooks::Nonsense => return Decision::Now(nonsense(&mut chance)),
                    Hooks::Sound => {}
                }
            }
            let answer = expected(query, &load, chance.below(4) == 0);
            match chance.below(12) {
                0..=8 => Decision::Now(answer),
                9 => Decision::Later(Box::new(move || answer)),
                10 => Decision::Later(Box::new(|| Outcome::Lost)),
                _ => Decision::Unanswered,
            }
        }
    }

    fn speculate(_sim: &Self, load: &Load, query: &Query) -> Option<Outcome> {
        if load.hooks == Hooks::Panic && query.number % HOOK_FAILS == 11 {
            panic!("{MEANT} what is speculated");
        }
        Some(expected(query, load, false))
    }

    fn answer(_sim: &Self, load: &Load, query: &Query, forge: bool) -> Option<Outcome> {
        if query.about.is_some() && query.number & POISONED != 0 {
            return Some([Outcome::Panic, Outcome::Nan][(query.number % 2) as usize].clone());
        }
        if load.hooks == Hooks::Panic && query.number % HOOK_FAILS == 13 {
            panic!("{MEANT} what an owner answers");
        }
        Some(expected(query, load, forge))
    }

    fn admit_answer(&self, load: &Load, query: &Query, outcome: &Outcome) -> bool {
        !load.refuses && query.number & POISONED != 0
            || matches!(outcome, Outcome::Fine { number, .. } if *number == query.number)
    }

    /// Refuses poison and some marks. Faulty hooks panic at some marks.
    fn admit(&self, load: &Load, _by: PlayerId, command: &Command) -> bool {
        if matches!(command, Command::Panic | Command::Nan) {
            return !load.refuses;
        }
        let Command::Keep { mark, .. } = command else {
            return true;
        };
        if mark % HOOK_FAILS == 7 && load.hooks == Hooks::Panic {
            panic!("{MEANT} the referee");
        }
        mark % 37 != 5
    }

    /// Faulty hooks demand claims of any size, or panic.
    fn owed(&self, load: &Load, player: PlayerId, now: Tick) -> Option<Command> {
        let is_due = (now.0 + u32::from(player.0) * 31).is_multiple_of(307);
        match load.hooks {
            Hooks::Nonsense if is_due => {
                Some(Command::Claim(Shape::made(now.0, now.0 as usize % 400)))
            }
            Hooks::Panic if is_due => panic!("{MEANT} what is owed"),
            _ => None,
        }
    }

    fn number(driver: &mut Driver, number: u32) {
        driver.mark = number << 12;
    }

    fn driver(input_pattern: InputPattern, mut luck: Mwc) -> Driver {
        Driver {
            mark: luck.next_u32() << 12,
            input_pattern,
            luck,
            pad: Pad::default(),
            orders: 0,
            due: 0,
            role: Role::Honest,
        }
    }

    fn cast(driver: &mut Driver, role: Role) {
        driver.role = role;
    }

    fn drive(
        &self,
        driver: &mut Driver,
        load: &Load,
        _me: PlayerId,
        now: Tick,
    ) -> (Pad, Option<Command>) {
        let Some(changes) = driver.input_pattern.changes(now) else {
            return (Pad::default(), None);
        };
        if changes {
            driver.pad = driver.pad(load);
        }
        // At most a second's worth of commands waits.
        let rate = u32::from(load.commands_in_10_s);
        driver.due = (driver.due + rate).min(rate.max(1) * u32::from(load.hertz));
        (driver.pad.clone(), driver.order(load))
    }

    fn drive_more(&self, driver: &mut Driver, load: &Load) -> Option<Command> {
        driver.order(load)
    }

    fn flip(&mut self) {
        self.asked ^= 1;
    }

    fn is_lost(outcome: &Outcome) -> bool {
        *outcome == Outcome::Lost
    }

    fn bytes(&self) -> usize {
        self.ballast.bytes() + self.ground.len()
    }

    fn widest(&self) -> Widest {
        self.widest
    }
}
