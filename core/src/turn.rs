//! Turns: consecutive ticks sealed and sent together, their length, and the length of their ticks.
//!
//! ```text
//!  turn     7          8                9
//!  ticks  ┆··┆··┆··┆ ··┆··┆··┆ ··┆··┆··┆··┆
//!                                ╰─ the frame of a turn's first tick may carry a new cadence:
//!                                   the server and every client switch at this very boundary
//! ```
//!
//! The cadence is part of frames, so snapshots, journals, replays, joins and resumed matches do not have to handle it
//! separately. A turn that pauses the match is the last one until the match is resumed. The cadence changes how fast a
//! match is played, never what happens in it. It is outside equality and digest, and a step does not see it:
//! [`Frame::tick_length`](crate::Frame::tick_length) is the tick length at the match's start.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{DELAY_MAX, PLAYERS_MAX, TICK_MAX, TICK_MIN, TURN_TICKS_MAX};
use crate::{PlayerId, Tick};

/// The turn length, tick length and input delay of a match, valid from one turn onwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cadence {
    /// The number of ticks in a turn, 1..=[`TURN_TICKS_MAX`].
    pub turn_ticks: u8,
    /// The length of a tick in nanoseconds, [`TICK_MIN`]..=[`TICK_MAX`].
    pub tick_ns: u32,
    /// The number of ticks between an input's sampling and its use, 0..=[`DELAY_MAX`]. Only without a command delay.
    pub delay_ticks: u8,
    /// The tick length in nanoseconds that a player or the host requested, if any: the normal length from then onwards.
    /// `tick_ns` may be longer while a machine is slow.
    pub requested_ns: Option<u32>,
    /// Whether the match is paused after this turn.
    pub paused: bool,
    /// The player that paused the match; `None` if its host did, or if the match is not paused.
    pub paused_by: Option<PlayerId>,
}

impl Cadence {
    /// The default cadence: 60 Hz, one tick per turn, no delay.
    pub const DEFAULT: Cadence = Cadence {
        turn_ticks: 1,
        tick_ns: 16_666_667,
        delay_ticks: 0,
        requested_ns: None,
        paused: false,
        paused_by: None,
    };

    /// The length of a tick.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick_ns as u64)
    }

    /// The length of a turn.
    #[must_use]
    pub fn turn(&self) -> Duration {
        self.tick() * u32::from(self.turn_ticks)
    }

    /// Returns `true` if each value is in its range.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_tick = |ns: u32| (TICK_MIN..=TICK_MAX).contains(&Duration::from_nanos(ns.into()));
        (1..=TURN_TICKS_MAX).contains(&self.turn_ticks)
            && is_tick(self.tick_ns)
            && self.requested_ns.is_none_or(is_tick)
            && u32::from(self.delay_ticks) <= DELAY_MAX
            && self
                .paused_by
                .is_none_or(|by| self.paused && by.index() < PLAYERS_MAX)
    }
}

impl Default for Cadence {
    fn default() -> Self {
        Cadence::DEFAULT
    }
}

/// One turn: its number, first tick and cadence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The turn's number, counted from 0 at the match's start.
    pub number: u32,
    /// The turn's first tick.
    pub began: Tick,
    /// The cadence of the turn.
    pub cadence: Cadence,
}

impl Turn {
    /// The first tick of the next turn.
    #[must_use]
    pub fn end(&self) -> Tick {
        self.began + u32::from(self.cadence.turn_ticks)
    }

    /// Advances to the next turn if `next` is its first tick.
    pub fn reach(&mut self, next: Tick) {
        if next >= self.end() {
            self.number += 1;
            self.began = next;
        }
    }
}
