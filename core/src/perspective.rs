//! The phase of a step, the client's screen for which it runs, and the remote inputs known there.
//!
//! This is the only input of a step besides state, rules and frame. A step whose result depends on it must call
//! [`withhold`](crate::Effects::withhold).

use alloc::vec::Vec;

use crate::bounds::{LEAD_MAX, PLAYERS_MAX};
use crate::players::PlayerSet;
use crate::{PlayerId, Tick};

/// The simulation to which a step belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The frame is confirmed: its events have happened.
    Authority,
    /// The frame is assumed: its events are shown until the confirmed frame is known.
    Prediction,
}

/// The prediction's tick at which a client first knew each remote input. This distinguishes ghosts from bullets.
///
/// The timeline keeps this record outside the state. It covers the last [`Learned::SPAN`] ticks of each player and
/// takes 56 KiB.
#[derive(Debug)]
pub struct Learned {
    known: Vec<(Tick, Tick)>,
}

impl Clone for Learned {
    fn clone(&self) -> Self {
        Learned {
            known: self.known.clone(),
        }
    }

    /// Keeps the buffer: no allocation.
    fn clone_from(&mut self, other: &Self) {
        self.known.clone_from(&other.known);
    }
}

impl Learned {
    /// The number of ticks kept per player.
    pub const SPAN: u32 = 2 * LEAD_MAX;

    /// A record without inputs.
    #[must_use]
    pub fn new() -> Self {
        Learned {
            known: alloc::vec![(Tick::MAX, Tick::MAX); PLAYERS_MAX * Self::SPAN as usize],
        }
    }

    fn slot(player: PlayerId, tick: Tick) -> usize {
        player.index() * Self::SPAN as usize + (tick.0 % Self::SPAN) as usize
    }

    /// Records that the input of `player` for `tick` is known from the prediction's tick `prediction` onwards. Later
    /// calls for the same input are ignored.
    pub fn note(&mut self, player: PlayerId, tick: Tick, prediction: Tick) {
        let slot = &mut self.known[Self::slot(player, tick)];
        // The first call counts: an input is confirmed after it was announced.
        if slot.0 != tick {
            *slot = (tick, prediction);
        }
    }

    pub(crate) fn get(&self, player: PlayerId, tick: Tick) -> Option<Tick> {
        self.known
            .get(Self::slot(player, tick))
            // The slot may hold a tick that is a whole ring older or newer.
            .filter(|slot| slot.0 == tick)
            .map(|slot| slot.1)
    }

    /// Drops all inputs, after a jump to a different world.
    pub fn clear(&mut self) {
        self.known.fill((Tick::MAX, Tick::MAX));
    }
}

impl Default for Learned {
    fn default() -> Self {
        Learned::new()
    }
}

/// The phase of a step, the client's screen for which it runs, and the remote inputs known there.
#[derive(Clone, Copy, Debug)]
pub struct Perspective<'a> {
    phase: Phase,
    confirmed: Tick,
    locals: PlayerSet,
    learned: Option<&'a Learned>,
}

impl<'a> Perspective<'a> {
    /// The perspective of an authority, on the server or in a client's delayed copy.
    #[must_use]
    pub const fn authority(tick: Tick) -> Self {
        Perspective {
            phase: Phase::Authority,
            confirmed: tick,
            locals: PlayerSet(0),
            learned: None,
        }
    }

    /// The perspective of a client's prediction. `confirmed` is its authority's next tick, `locals` its own seats.
    #[must_use]
    pub const fn prediction(confirmed: Tick, locals: PlayerSet, learned: &'a Learned) -> Self {
        Perspective {
            phase: Phase::Prediction,
            confirmed,
            locals,
            learned: Some(learned),
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) const fn confirmed(&self) -> Tick {
        self.confirmed
    }

    pub(crate) const fn locals(&self) -> PlayerSet {
        self.locals
    }

    pub(crate) const fn learned(&self) -> Option<&'a Learned> {
        self.learned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_learned_once_and_the_first_time_counts() {
        let mut learned = Learned::new();
        learned.note(PlayerId(2), Tick(50), Tick(58));
        learned.note(PlayerId(2), Tick(50), Tick(60));
        assert_eq!(learned.get(PlayerId(2), Tick(50)), Some(Tick(58)));
        assert_eq!(learned.get(PlayerId(2), Tick(51)), None);
        learned.note(PlayerId(2), Tick(50 + Learned::SPAN), Tick(190));
        assert_eq!(
            learned.get(PlayerId(2), Tick(50)),
            None,
            "the ring moved on"
        );
    }
}
