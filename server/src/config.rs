//! How a match is run: one enum per policy, matched exhaustively where it acts.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::{DELAY_MAX, PLAYERS_MAX};

/// When a tick is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// At its own deadline; a missing input is filled. Nobody waits for anybody.
    Deadline,
}

/// How many ticks are sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLength {
    /// Always so many, 1..=16.
    Fixed(u8),
}

/// Whether inputs that wait for their tick are told to the other players ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announce {
    /// Yes. For co-op games only: it lets a client know others' inputs a little before they count.
    Ahead,
    /// No.
    Never,
}

/// Who decides what a player claims of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// Its own client alone (seed row 64: the server tests nothing).
    OwnerOnly,
    /// Its own client, or the referee so many ticks later: see
    /// [`Referee::owed`](crate::hooks::Referee::owed).
    OwnerWithin(u32),
}

/// How a match is run.
#[derive(Clone, Debug)]
pub struct MatchConfig {
    /// The length of a tick.
    pub tick: Duration,
    /// The first tick (above 0 when a match begins from a saved state).
    pub start: Tick,
    /// When a tick is sealed.
    pub sealing: Sealing,
    /// How many ticks are sent at once.
    pub turn: TurnLength,
    /// Whether inputs are announced.
    pub announce: Announce,
    /// Who decides claims.
    pub claims: Claims,
    /// Ticks between an input's sampling and its use, 0..=32.
    pub delay_ticks: u8,
    /// Seats, 1..=16.
    pub players_max: usize,
    /// What this build calls itself: told in the journal, never compared.
    pub build: String,
    /// When the match began, in seconds of unix time: told in the journal.
    pub unix_time: u64,
}

/// A configuration that cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The tick's length.
    #[error("expected a tick of 1 ms to 1 s, got {0:?}")]
    Tick(Duration),
    /// The turn's length.
    #[error("expected a turn of 1 to 16 ticks, got {0}")]
    Turn(u8),
    /// The input delay.
    #[error("expected an input delay of 0 to {DELAY_MAX} ticks, got {0}")]
    Delay(u8),
    /// The seats.
    #[error("expected 1 to {PLAYERS_MAX} players, got {0}")]
    Players(usize),
}

impl MatchConfig {
    /// For action games: 60 Hz, turns of 2 ticks, deadlines, announcements.
    #[must_use]
    pub fn action() -> Self {
        MatchConfig {
            tick: Duration::from_nanos(16_666_667),
            start: Tick(0),
            sealing: Sealing::Deadline,
            turn: TurnLength::Fixed(2),
            announce: Announce::Ahead,
            claims: Claims::OwnerOnly,
            delay_ticks: 0,
            players_max: 8,
            build: String::new(),
            unix_time: 0,
        }
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.tick < Duration::from_millis(1) || self.tick > Duration::from_secs(1) {
            return Err(ConfigError::Tick(self.tick));
        }
        let TurnLength::Fixed(turn) = self.turn;
        if !(1..=16).contains(&turn) {
            return Err(ConfigError::Turn(turn));
        }
        if u32::from(self.delay_ticks) > DELAY_MAX {
            return Err(ConfigError::Delay(self.delay_ticks));
        }
        if !(1..=PLAYERS_MAX).contains(&self.players_max) {
            return Err(ConfigError::Players(self.players_max));
        }
        Ok(())
    }
}
