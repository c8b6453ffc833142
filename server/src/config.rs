//! How a match is run: one enum per policy, matched exhaustively where it acts.
//!
//! The command delay decides between two ways to play. Without one, clients predict and each tick is sealed
//! at its own deadline ([`MatchConfig::action`]). With one, clients play in lockstep: what is ordered in turn
//! n runs in turn n + m, and nothing is predicted ([`MatchConfig::strategy`]).

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::{
    COMMAND_DELAY_MAX, DELAY_MAX, PLAYERS_MAX, SPECTATOR_DELAY_MAX, SPECTATOR_DELAY_MIN,
    SPECTATORS_DELAYED_MAX, SPECTATORS_LIVE_MAX, TICK_MAX, TICK_MIN, TURN_TICKS_MAX,
};
use twinstep_core::turn::Cadence;

/// When a tick, or a turn, is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealWhen {
    /// At its own deadline; a missing input is filled. Nobody waits for anybody.
    Deadline,
    /// When everybody's batch is there. Needs a command delay.
    WaitForAll {
        /// Who is waited for so long is removed, and the others go on. So is who made the others wait for 20 s within
        /// a minute, however short each time was; where this is longer than 20 s, for so long within three times as
        /// long. Coming back resets nothing; but who was removed has a second to spare when it is back, since a join may take
        /// a moment.
        kick_after: Duration,
    },
}

/// How many ticks are sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLength {
    /// Always so many, 1..=20.
    Fixed(u8),
    /// What clients tell of their pauses counts where the server saw them late.
    /// With a command delay it starts from the largest round trip, without one from `min`; it grows after
    /// pauses and shrinks when it was quiet.
    Adaptive {
        /// The shortest turn, in ticks.
        min: u8,
        /// The longest turn, in ticks.
        max: u8,
    },
}

/// How long a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickLength {
    /// Always [`MatchConfig::tick`].
    Fixed,
    /// Longer, for everybody, while some machine cannot keep up: until that has cost the others 20 s in a
    /// minute, or as much as [`SealWhen::WaitForAll`] lets them wait for one. From then on the machine trails, and
    /// [`Laggards`] says what becomes of it.
    Adaptive {
        /// The longest tick.
        max: Duration,
    },
}

/// What becomes of a client whose authority trails the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laggards {
    /// Nothing: it trails.
    Ignore,
    /// The match stands still until it has come closer, within these limits; beyond them it is ignored.
    Hold {
        /// The longest pause at once; ≤ 250 ms is bearable.
        at_once: Duration,
        /// The longest pause for one player in a minute.
        per_minute: Duration,
    },
    /// It is removed when it has trailed for so long.
    Kick {
        /// For how long.
        after: Duration,
    },
}

/// Who answers the queries that a player's own action asks ([`Key::player`](twinstep_core::Key::player)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The server.
    Server,
    /// The player's own client; the server if that stays silent, is refused or leaves.
    Owner,
}

/// Whether inputs and admitted commands that wait for their tick are sent to the other players ahead. Nothing of a player who
/// had a strike in the last 10 s is.
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
    /// Its own client alone (the server tests nothing).
    OwnerOnly,
    /// Its own client, or the referee so many ticks later: see
    /// [`Referee::owed`](crate::hooks::Referee::owed).
    OwnerWithin(u32),
}

/// Who may watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spectators {
    /// How many at once: up to 16 live ones, or 512 delayed ones.
    pub max: usize,
    /// How far behind the match they are shown it, in ticks: 0, or 180..=900.
    pub delay_ticks: u32,
}

/// How a match is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchConfig {
    /// The length of a tick, when nothing slows it.
    pub tick: Duration,
    /// Whether ticks may get longer.
    pub tick_length: TickLength,
    /// The first tick (above 0 when a match begins from a saved state).
    pub start: Tick,
    /// When a tick is sealed.
    pub sealing: SealWhen,
    /// How many ticks are sent at once.
    pub turn: TurnLength,
    /// The command delay m in turns, 0..=4: what is ordered in turn n runs in turn n + m. Fixed for the
    /// match. 0: no lockstep, clients predict.
    pub command_delay: u8,
    /// What becomes of clients that trail.
    pub laggards: Laggards,
    /// Who answers queries.
    pub answered_by: AnsweredBy,
    /// Whether inputs are announced.
    pub announce: Announce,
    /// Who decides claims.
    pub claims: Claims,
    /// Ticks between an input's sampling and its use, 0..=32; without a command delay only.
    pub delay_ticks: u8,
    /// Seats, 1..=16.
    pub players_max: usize,
    /// Whether newcomers are let in; players of the match always may return.
    pub open: bool,
    /// Who may watch.
    pub spectators: Spectators,
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
    /// The longest tick.
    #[error("expected a longest tick of {tick:?} to 1 s, got {max:?}")]
    TickMax {
        /// The tick.
        tick: Duration,
        /// The longest.
        max: Duration,
    },
    /// The turn's length.
    #[error("expected a turn of 1 to {TURN_TICKS_MAX} ticks, got {0}")]
    Turn(u8),
    /// The turn's bounds.
    #[error("expected the shortest turn to be at most the longest, got {min} to {max} ticks")]
    TurnBounds {
        /// The shortest.
        min: u8,
        /// The longest.
        max: u8,
    },
    /// The command delay.
    #[error("expected a command delay of 0 to {COMMAND_DELAY_MAX} turns, got {0}")]
    CommandDelay(u8),
    /// Waiting without a command delay.
    #[error(
        "waiting for all needs a command delay of 1 to {COMMAND_DELAY_MAX} turns: without one, clients run ahead of \
         the server; give a command delay, or seal by deadline"
    )]
    WaitWithoutDelay,
    /// How long the others wait.
    #[error("expected to wait 1 s to 5 min for a silent or trailing player, got {0:?}")]
    KickAfter(Duration),
    /// The input delay.
    #[error("expected an input delay of 0 to {DELAY_MAX} ticks, got {0}")]
    Delay(u8),
    /// Two delays at once.
    #[error(
        "expected an input delay or a command delay, got both: in lockstep the command delay is all"
    )]
    TwoDelays,
    /// The seats.
    #[error("expected 1 to {PLAYERS_MAX} players, got {0}")]
    Players(usize),
    /// The spectators.
    #[error(
        "expected at most {SPECTATORS_LIVE_MAX} live spectators, or {SPECTATORS_DELAYED_MAX} who are \
         {SPECTATOR_DELAY_MIN} to {SPECTATOR_DELAY_MAX} ticks behind, got {} who are {} ticks behind",
        .0.max, .0.delay_ticks
    )]
    Spectators(Spectators),
    /// Something that is settled when the match begins.
    #[error("{0} is fixed for the match: start another one")]
    Fixed(&'static str),
}

/// Whether others bear with a player for a time that makes sense.
fn check_patience(time: Duration) -> Result<(), ConfigError> {
    match (Duration::from_secs(1)..=Duration::from_secs(300)).contains(&time) {
        true => Ok(()),
        false => Err(ConfigError::KickAfter(time)),
    }
}

impl MatchConfig {
    /// For action games: 60 Hz, turns of 2 ticks, deadlines, announcements, prediction.
    #[must_use]
    pub fn action() -> Self {
        MatchConfig {
            tick: Duration::from_nanos(16_666_667),
            tick_length: TickLength::Fixed,
            start: Tick(0),
            sealing: SealWhen::Deadline,
            turn: TurnLength::Fixed(2),
            command_delay: 0,
            laggards: Laggards::Ignore,
            answered_by: AnsweredBy::Server,
            announce: Announce::Ahead,
            claims: Claims::OwnerOnly,
            delay_ticks: 0,
            players_max: 8,
            open: true,
            spectators: Spectators {
                max: 0,
                delay_ticks: 0,
            },
            build: String::new(),
            unix_time: 0,
        }
    }

    /// For strategy games: ticks of 50 ms, turns of 150 ms, orders run two turns later, everybody waits for
    /// everybody (no pause up to 150 ms on each leg).
    #[must_use]
    pub fn strategy() -> Self {
        MatchConfig {
            tick: Duration::from_millis(50),
            sealing: SealWhen::WaitForAll {
                kick_after: Duration::from_secs(20),
            },
            turn: TurnLength::Fixed(3),
            command_delay: 2,
            announce: Announce::Never,
            ..MatchConfig::action()
        }
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(TICK_MIN..=TICK_MAX).contains(&self.tick) {
            return Err(ConfigError::Tick(self.tick));
        }
        if let TickLength::Adaptive { max } = self.tick_length
            && !(self.tick..=TICK_MAX).contains(&max)
        {
            let tick = self.tick;
            return Err(ConfigError::TickMax { tick, max });
        }
        let (min, max) = self.turn_bounds();
        for turn in [min, max] {
            if !(1..=TURN_TICKS_MAX).contains(&turn) {
                return Err(ConfigError::Turn(turn));
            }
        }
        if min > max {
            return Err(ConfigError::TurnBounds { min, max });
        }
        if self.command_delay > COMMAND_DELAY_MAX {
            return Err(ConfigError::CommandDelay(self.command_delay));
        }
        if let SealWhen::WaitForAll { kick_after } = self.sealing {
            if self.command_delay == 0 {
                return Err(ConfigError::WaitWithoutDelay);
            }
            check_patience(kick_after)?;
        }
        if let Laggards::Kick { after } = self.laggards {
            check_patience(after)?;
        }
        if u32::from(self.delay_ticks) > DELAY_MAX {
            return Err(ConfigError::Delay(self.delay_ticks));
        }
        if self.delay_ticks > 0 && self.command_delay > 0 {
            return Err(ConfigError::TwoDelays);
        }
        if !(1..=PLAYERS_MAX).contains(&self.players_max) {
            return Err(ConfigError::Players(self.players_max));
        }
        self.check_spectators()
    }

    fn check_spectators(&self) -> Result<(), ConfigError> {
        let Spectators { max, delay_ticks } = self.spectators;
        let delayed = (SPECTATOR_DELAY_MIN..=SPECTATOR_DELAY_MAX).contains(&delay_ticks);
        let fits = delay_ticks == 0 && max <= SPECTATORS_LIVE_MAX
            || delayed && max <= SPECTATORS_DELAYED_MAX;
        if fits {
            Ok(())
        } else {
            Err(ConfigError::Spectators(self.spectators))
        }
    }

    /// Whether a running match may go on with `next` in its place.
    ///
    /// # Errors
    /// A value out of its range, or one that is settled when the match begins.
    pub fn check_change(&self, next: &MatchConfig) -> Result<(), ConfigError> {
        next.check()?;
        let fixed = [
            (
                "the command delay",
                self.command_delay != next.command_delay,
            ),
            ("the first tick", self.start != next.start),
            ("the number of seats", self.players_max != next.players_max),
            ("who answers queries", self.answered_by != next.answered_by),
            ("the spectators' delay", self.spectators != next.spectators),
            ("the build", self.build != next.build),
            ("when it began", self.unix_time != next.unix_time),
        ];
        match fixed.iter().find(|(_, changed)| *changed) {
            Some((what, _)) => Err(ConfigError::Fixed(what)),
            None => Ok(()),
        }
    }

    /// The shortest and the longest turn, in ticks.
    pub(crate) fn turn_bounds(&self) -> (u8, u8) {
        match self.turn {
            TurnLength::Fixed(ticks) => (ticks, ticks),
            TurnLength::Adaptive { min, max } => (min, max),
        }
    }

    /// How the match is clocked at its beginning.
    pub(crate) fn cadence(&self) -> Cadence {
        Cadence {
            turn_ticks: self.turn_bounds().0,
            tick_ns: self.tick.as_nanos() as u32,
            delay_ticks: self.delay_ticks,
        }
    }
}
