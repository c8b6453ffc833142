//! The toss: a blast throws barrels and crates.
//!
//! Their flight depends on bouncing bodies and a little luck, which a step must not compute. So a blast with something
//! to throw asks two queries, `Query::Blast` and `Query::Toss`. The answer to `Query::Toss` is a path for each thing
//! that moved:
//!
//! ```text
//!   tick t       Query::Toss ──▶ server: rigid bodies (resolve.rs) ──▶ Outcome::Toss in a frame
//!                      └───────▶ client: a cheap guess (throw.rs)  ──▶ assumed, and smoothly corrected
//!   tick t + 1   ● lies at `from`        ┐
//!        + 6     └─▶ ● + legs[0]         │ played back: from corner to corner, tick for tick
//!        + 12        └─▶ ● + legs[1] ... ┘ then it lies there
//! ```
//!
//! Invariants:
//! - A thing in the air is *aloft*: players and shots pass below it, it does not hide other bodies, and no blast,
//!   sapper or order reaches it. A fuse keeps burning, and the blast is where the barrel is at that time.
//! - A path starts where the thing lay at the time of the query; a thing that has moved since stays where it is. So the
//!   answer needs no start position, and does no harm if it arrives late or twice.
//! - Props do not move before the answer is in a frame.

use glam::Vec2;
use twinstep_core::{Effects, Frame, Key, Tick};

use super::cue::Cue;
use super::hit::Bomb;
use super::query::Query;
use super::state::{Flight, Game, Prop, Throw};
use super::units::Point;

/// If a tick has more queries than this, tosses are left out, so that there is space for every blast.
const ASKS_FIRST: usize = 8;

impl Game {
    /// Asks where a blast throws things, if any are in reach and the tick has few queries.
    pub(super) fn ask_toss(
        &self,
        cause: Key,
        bomb: Bomb,
        at: Vec2,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let reach = bomb.radius(&frame.rules().tuning);
        let mut near = self
            .lying()
            .filter(|(prop, place)| place.distance(at) - prop.radius() <= reach);
        if near.next().is_some() && fx.asks().len() <= ASKS_FIRST {
            let (at, asked) = (Point::of(at), frame.tick());
            fx.ask(toss_key(cause), Query::Toss { bomb, at, asked });
        }
    }

    pub fn lying(&self) -> impl Iterator<Item = (Prop, Vec2)> {
        let barrels = self.barrels.iter().zip(0..);
        let crates = self.crates.iter().zip(0..);
        let barrels = barrels.filter(|(barrel, _)| barrel.stands());
        let crates = crates.filter(|(chest, _)| chest.stands());
        barrels
            .map(|(barrel, n)| (Prop::Barrel(n), barrel.at))
            .chain(crates.map(|(chest, n)| (Prop::Crate(n), chest.at)))
    }

    /// Returns the fraction of its flight that a thing has completed, in [0, 1], from which views derive its height.
    /// Returns `None` if it lies on the ground.
    #[must_use]
    pub fn aloft(&self, prop: Prop, now: Tick) -> Option<f32> {
        let flight = self.flights.iter().find(|flight| flight.prop == prop)?;
        let age = (now - flight.since) as f32;
        Some((age / flight.ticks().max(1) as f32).min(1.0))
    }

    pub(super) fn apply_toss(
        &mut self,
        key: Key,
        asked: Tick,
        throws: &[Throw],
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        for throw in throws {
            let prop = throw.prop;
            let Some(place) = self.place_of(prop) else {
                continue;
            };
            let lay_there = place.rests.is_some_and(|rests| rests <= asked);
            if throw.legs.is_empty() || !lay_there {
                continue;
            }
            *place.rests = None;
            let flight = Flight {
                prop,
                life: place.life,
                since: frame.tick(),
                from: *place.at,
                legs: throw.legs.clone(),
            };
            self.flights.push(flight);
            fx.cue(key, Cue::Tossed(prop));
        }
    }

    /// Moves all things in the air. Things that land are pushed clear of walls.
    pub(super) fn move_flights(&mut self, frame: &Frame<'_, Game>) {
        let now = frame.tick();
        // Taken out and put back, because moving needs the rest of the game.
        let mut flights = core::mem::take(&mut self.flights);
        flights.retain(|flight| {
            let Some(place) = self.place_of(flight.prop) else {
                return false;
            };
            // The thing was replaced after the flight started.
            if place.life != flight.life || place.rests.is_some() {
                return false;
            }
            let (at, flies_on) = flight.at(now);
            *place.at = at;
            if !flies_on {
                *place.at = frame.rules().place(at, flight.prop.radius());
                *place.rests = Some(now + 1);
            }
            flies_on
        });
        self.flights = flights;
    }

    fn place_of(&mut self, prop: Prop) -> Option<Place<'_>> {
        match prop {
            Prop::Barrel(n) => {
                let barrel = self.barrels.get_mut(usize::from(n))?;
                barrel.is_there().then_some(Place {
                    life: barrel.life,
                    at: &mut barrel.at,
                    rests: &mut barrel.rests,
                })
            }
            Prop::Crate(n) => {
                let chest = self.crates.get_mut(usize::from(n))?;
                chest.is_there().then_some(Place {
                    life: chest.life,
                    at: &mut chest.at,
                    rests: &mut chest.rests,
                })
            }
        }
    }
}

struct Place<'a> {
    life: u32,
    at: &'a mut Vec2,
    /// The tick since which it has lain there; `None` while it is aloft.
    rests: &'a mut Option<Tick>,
}

/// The key of the toss query that belongs to a blast query under `cause`. It has the same owner.
fn toss_key(cause: Key) -> Key {
    match cause.owner() {
        Some(player) => Key::player(player, TOSS | cause.n),
        None => cause.child(TOSS),
    }
}

/// A bit that no key of a barrel's or a shell's query has.
const TOSS: u32 = 1 << 30;

#[cfg(test)]
mod tests;
