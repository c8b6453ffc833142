//! A game whose state is its own history: all commands in order, with their ticks, and all answers. Two equal states
//! had the same history.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twinstep_client::SessionConfig;
use twinstep_core::frame::RosterChange;
use twinstep_core::{
    Controls, Effects, Frame, Key, Mwc, PlayerId, Schedule, Simulation, Table, Tick,
};
use twinstep_server::Decision;

use crate::rig::{InputPattern, Play};

/// A number with this bit set represents a job that never returns.
const NEVER: u32 = 1 << 31;
/// The number of ticks that a shot takes to hit.
const FLIGHT: u32 = 9;

/// The answer that a client predicts: correct three times out of four.
fn expected(query: u32) -> u32 {
    query.wrapping_mul(2) & !NEVER
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pad {
    pub stick: u8,
    pub fire: bool,
}

impl Controls for Pad {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Note(u32),
    Ask(u32),
    Died,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    Shot,
    Hit,
    Noted(u32),
    Answered(u32),
    Died,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    pub held: u64,
    pub shots: u32,
    pub hits: u32,
    pub deaths: u32,
    firing: bool,
    luck: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shot {
    shooter: PlayerId,
    born: Tick,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    pub players: Table<PlayerId, Player>,
    pub log: Vec<(Tick, PlayerId, Command)>,
    pub answers: Vec<(Tick, Key, Option<u32>)>,
    pub asked: u32,
    flights: Schedule<Shot>,
    root: Mwc,
}

impl Simulation for History {
    game_types!("history", u32, Pad, Command, u32, u32, Cue);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let now = frame.tick();
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => drop(self.players.insert(player, Player::default())),
                RosterChange::Left => drop(self.players.remove(&player)),
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (key, query, outcome) in frame.outcomes() {
            self.answers.push((now, key, outcome.copied()));
            fx.cue(key, Cue::Answered(*query));
        }
        for (player, command) in frame.commands() {
            self.log.push((now, player, *command));
            let key = Key::player(player, self.log.len() as u32);
            match *command {
                Command::Note(n) => fx.cue(Key::player(player, n), Cue::Noted(n)),
                Command::Ask(n) => {
                    self.asked += 1;
                    fx.ask(Key::player(player, n), n);
                }
                Command::Died => {
                    fx.cue_when_confirmed(key, Cue::Died);
                    if let Some(player) = self.players.get_mut(&player) {
                        player.deaths += 1;
                    }
                }
            }
        }
        self.fly(frame, fx);
        self.hold(frame, fx);
    }
}

impl History {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        History {
            players: Table::new(),
            log: Vec::new(),
            answers: Vec::new(),
            asked: 0,
            flights: Schedule::new(),
            root: Mwc::seed(seed),
        }
    }

    /// Lets due shots hit. A ghost's hit is withheld.
    fn fly(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        while let Some((key, shot)) = self.flights.pop_due(frame.tick()) {
            if frame.is_ghost(shot.shooter, shot.born) {
                fx.withhold();
            } else if let Some(shooter) = self.players.get_mut(&shot.shooter) {
                shooter.hits += 1;
                fx.cue(key, Cue::Hit);
            }
        }
    }

    fn hold(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let now = frame.tick();
        for (id, pad) in frame.inputs() {
            let Some(player) = self.players.get_mut(&id) else {
                continue;
            };
            player.held =
                player.held.rotate_left(7) ^ u64::from(pad.stick) ^ u64::from(pad.fire) << 8;
            if pad.fire && !player.firing {
                let key = Key::player(id, player.shots);
                player.shots += 1;
                player.luck = self.root.fork(key).next_u32();
                self.flights.at(
                    now + FLIGHT,
                    key,
                    Shot {
                        shooter: id,
                        born: now,
                    },
                );
                fx.cue(key, Cue::Shot);
            }
            player.firing = pad.fire;
            // At some inputs, the player's own client decides that the player died.
            if frame.is_local(id) && player.held != 0 && player.held % 251 == 0 {
                fx.claim(id, Command::Died);
            }
        }
    }
}

pub struct Driver {
    input_pattern: InputPattern,
    luck: Mwc,
    pad: Pad,
    mark: u32,
    orders: u32,
}

impl Play for History {
    type Show = twinstep_client::NoPicture;
    type Driver = Driver;

    fn rules(_crowd: u16) -> u32 {
        7
    }

    fn start(_rules: &u32, seed: u64) -> Self {
        History::new(seed)
    }

    fn session(rules: &Arc<u32>, knows: bool) -> SessionConfig<Self> {
        match knows {
            true => SessionConfig::new(rules.clone()),
            false => SessionConfig::without_rules(),
        }
    }

    fn show(_rules: &Arc<u32>) -> Self::Show {
        twinstep_client::NoPicture
    }

    /// No client can predict all answers: some are drawn from a generator outside the simulation. Some answers are
    /// late, and some never arrive.
    fn resolver(_rules: &u32, seed: u64) -> impl twinstep_server::Resolver<Self> {
        let mut chance = Mwc::seed(seed ^ 0x7e57);
        move |_: &twinstep_server::HookContext<'_, Self>, _: Key, query: &u32| {
            let answer = if chance.below(4) == 0 {
                chance.next_u32() & !NEVER
            } else {
                expected(*query)
            };
            match chance.below(10) {
                0..=6 => Decision::Now(answer),
                7 | 8 => Decision::Later(Box::new(move || answer)),
                _ => Decision::Later(Box::new(move || answer ^ NEVER)),
            }
        }
    }

    fn speculate(_sim: &Self, _rules: &u32, query: &u32) -> Option<u32> {
        Some(expected(*query))
    }

    fn answer(_sim: &Self, _rules: &u32, query: &u32, forge: bool) -> Option<u32> {
        Some(expected(*query) ^ u32::from(forge))
    }

    fn admit_answer(&self, _rules: &u32, query: &u32, outcome: &u32) -> bool {
        *outcome == expected(*query)
    }

    fn admit(&self, _rules: &u32, _by: PlayerId, command: &Command) -> bool {
        !matches!(command, Command::Note(n) if n % 17 == 3)
    }

    fn number(driver: &mut Driver, number: u32) {
        driver.mark = number << 16;
    }

    fn driver(input_pattern: InputPattern, mut luck: Mwc) -> Driver {
        Driver {
            mark: luck.next_u32() << 16,
            input_pattern,
            luck,
            pad: Pad::default(),
            orders: 0,
        }
    }

    fn drive(
        &self,
        driver: &mut Driver,
        _rules: &u32,
        _me: PlayerId,
        now: Tick,
    ) -> (Pad, Option<Command>) {
        let Some(changes) = driver.input_pattern.changes(now) else {
            return (Pad::default(), None);
        };
        if changes {
            driver.pad = Pad {
                stick: driver.luck.below(5) as u8,
                fire: driver.luck.below(6) == 0,
            };
        }
        let number = driver.mark | driver.orders;
        // Rarer in a long log: each digest reads all of it, and half an hour must not take an hour.
        let rarity = 60 + self.log.len().saturating_sub(4_000) as u32;
        let order = match driver.luck.below(rarity) {
            0 => Some(Command::Ask(number)),
            1 | 2 => Some(Command::Note(number)),
            _ => None,
        };
        driver.orders += u32::from(order.is_some());
        (driver.pad, order)
    }

    fn flip(&mut self) {
        self.asked ^= 1;
    }

    fn ran(&self) -> Option<Vec<(PlayerId, Command)>> {
        let given = self
            .log
            .iter()
            .filter(|(_, _, command)| !matches!(command, Command::Died));
        Some(
            given
                .map(|(_, player, command)| (*player, *command))
                .collect(),
        )
    }

    fn is_lost(outcome: &u32) -> bool {
        outcome & NEVER != 0
    }

    fn asked_and_answered(&self) -> Option<(u32, u32)> {
        Some((self.asked, self.answers.len() as u32))
    }

    fn is_answered_twice(&self) -> bool {
        let mut keys: Vec<Key> = self.answers.iter().map(|(_, key, _)| *key).collect();
        keys.sort_unstable();
        keys.windows(2).any(|two| two[0] == two[1])
    }
}
