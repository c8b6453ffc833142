//! The rules: a step that follows paths, and asks for new ones.

use serde::{Deserialize, Serialize};
use twinstep_core::prelude::*;

// Ticks between two places of a path, and between two questions while no player steers.
pub(super) const WINDOW: u32 = 6;
// Ticks between two questions while a player steers.
const SOONEST: u32 = 3;
// The number of windows of a path: half a second, longer than an answer takes on most links.
pub(super) const WINDOWS: u32 = 5;

// Inputs: jets that push. Several may burn at once.
pub(super) const LEFT: u8 = 1;
pub(super) const RIGHT: u8 = 2;
pub(super) const UP: u8 = 4;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sleds {
    pub(super) now: Tick,
    pub(super) sleds: Table<PlayerId, Sled>,
    // The tick of the newest question.
    asked: Tick,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sled {
    pub(super) at: Place,
    pub(super) jets: u8,
    // The jets at the newest question.
    asked: u8,
    // The newest path: the place at the end of the tick `since`, and one for each window after it.
    path: Vec<Place>,
    since: Tick,
}

// A sample of a flight: x and y in 64ths of a unit, the turn in 65,536ths, and their speeds in 64ths a second. Takes 6
// to 18 bytes.
pub(super) type Place = [i32; 6];

// The server's answer: the paths of all sleds, starting at the end of this tick.
pub(super) type Paths = (Tick, Vec<(PlayerId, Vec<Place>)>);

impl Simulation for Sleds {
    const NAME: &'static str = "sleds";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = (); // The state has it all: where the sleds are, and which jets burn.
    type Outcome = Paths;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        self.now = frame.tick();
        for (player, change) in frame.roster() {
            match change {
                RosterChange::Joined => {
                    let sled = self.sleds.get_or_insert_with(player, Sled::default);
                    let x = [-10, 12][player.index() % 2];
                    sled.path.push([x * 64, 8 * 64, 0, 0, 0, 0]);
                }
                RosterChange::Left => drop(self.sleds.remove(&player)),
                RosterChange::Dropped | RosterChange::Returned => {}
            }
        }
        for (since, paths) in frame.outcomes().filter_map(|(_, (), paths)| paths) {
            for (player, path) in paths {
                if let Some(sled) = self.sleds.get_mut(player) {
                    (sled.path, sled.since) = (path.clone(), *since);
                }
            }
        }
        for (player, &jets) in frame.inputs() {
            self.sleds.get_mut(&player).expect("it joined").jets = jets;
        }
        for sled in self.sleds.values_mut() {
            sled.follow(self.now);
        }
        let steers = self.sleds.values().any(|sled| sled.jets != sled.asked);
        if self.now - self.asked >= if steers { SOONEST } else { WINDOW } {
            self.asked = self.now;
            self.sleds
                .values_mut()
                .for_each(|sled| sled.asked = sled.jets);
            fx.ask(Key::new(1, self.now.0), ());
        }
    }
}

impl Sled {
    fn follow(&mut self, now: Tick) {
        let age = now - self.since;
        let (leg, part) = ((age / WINDOW) as usize, (age % WINDOW) as i32);
        let at = |leg: usize| self.path.get(leg).copied();
        self.at = match (at(leg), at(leg + 1)) {
            (Some(from), Some(to)) => {
                let mut way: Place = std::array::from_fn(|i| to[i] - from[i]);
                way[2] = way[2] as i16 as i32; // the short way round
                std::array::from_fn(|i| from[i] + way[i] * part / WINDOW as i32)
            }
            (Some(last), None) if part == 0 => last,
            // The sled lies still, or the next path is late.
            _ => {
                let [x, y, turn, ..] = *self.path.last().expect("a path has a beginning");
                [x, y, turn, 0, 0, 0]
            }
        };
    }
}
