//! The policies of a match. Each is an enum, matched exhaustively where it is used.
//!
//! The command delay selects one of two modes of play. Without a command delay, clients predict and each tick is sealed
//! at its own deadline ([`MatchConfig::action`]). With a command delay, clients play in lockstep: an order given in
//! turn n runs in turn n + m, and clients do not predict ([`MatchConfig::strategy`]).

use std::time::Duration;

use twinstep_core::bounds::{
    COMMAND_DELAY_MAX, DELAY_MAX, PLAYERS_MAX, SPECTATOR_DELAY_MAX, SPECTATOR_DELAY_MIN,
    SPECTATORS_DELAYED_MAX, SPECTATORS_LIVE_MAX, TICK_MAX, TICK_MIN, TURN_TICKS_MAX,
};
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::journal::IDENTITY_BYTES_MAX;
use twinstep_protocol::packet::request::MatchRequest;

/// The moment when a tick, or a turn, is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealWhen {
    /// At the tick's own deadline. Missing inputs are filled, and players never wait for each other.
    Deadline,
    /// When the turn is due and all players' batches have arrived. Needs a command delay. A new player joins the match
    /// when its batches arrive in time. This delays the join by at most 2 s.
    WaitForAll {
        /// A player is removed when the others have waited for it for this long. It is also removed when the others
        /// have waited for it for a total of 20 s within a minute, however short each wait was. If `kick_after` is
        /// longer than 20 s, the limit is `kick_after` within three times `kick_after`. Reconnecting does not reset
        /// this sum, but a removed player gets one second back, since a join may take a moment.
        ///
        /// A removed player is refused for 30 s. But if its client was silent, as after a crash, it may return at once,
        /// unless it was removed like this less than a minute ago (or three times `kick_after`, if that is longer).
        kick_after: Duration,
    },
}

/// The number of ticks sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnLength {
    /// This many, 1..=20. An overloaded server doubles it, up to 20.
    Fixed(u8),
    /// Between `min` and `max`, depending on the pauses of clients. A client's pauses count only if the server recently
    /// saw that the client was late. In lockstep, the first turn is as long as the largest round trip; otherwise it has
    /// `min` ticks. The turn grows by a quarter after 3 pauses within 5 s, and shrinks by a tick after `patience`
    /// without pauses.
    Adaptive {
        /// The shortest turn, in ticks.
        min: u8,
        /// The longest turn, in ticks.
        max: u8,
        /// The time without pauses before a shorter turn is tried, 1 s to 5 min; six times as long if that turn was too
        /// short before. It doubles, up to 32-fold, when pauses return within 30 s of a trial, and halves when they do
        /// not, so the turn length settles under constant jitter. A shorter patience adapts sooner to a connection that
        /// improves, but causes more pauses on one that does not.
        patience: Duration,
    },
}

impl TurnLength {
    /// [`Adaptive`](TurnLength::Adaptive) with 10 s of patience.
    #[must_use]
    pub const fn adaptive(min: u8, max: u8) -> TurnLength {
        TurnLength::Adaptive {
            min,
            max,
            patience: Duration::from_secs(10),
        }
    }
}

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickLength {
    /// Always [`MatchConfig::tick`].
    Fixed,
    /// Ticks become longer, for all players, while a client's machine cannot keep up. This ends when it has cost the
    /// others 20 s in a minute, or as much as [`SealWhen::WaitForAll`] lets them wait for one player. After that the
    /// client trails, and [`Laggards`] decides what happens.
    Adaptive {
        /// The longest tick.
        max: Duration,
    },
}

/// The moment at which a match starts. Before that, its first tick is not sealed: players are connected, see each other
/// in the client's `Session::lobby`, get the rules that the host [chooses](crate::Match::choose), and report that they
/// are ready. [`Match::start`](crate::Match::start) starts any waiting match.
///
/// No player is dropped or charged for the wait. A player that disconnects loses its seat, unless a loaded match keeps
/// it for its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartWhen {
    /// The match starts with its first [`advance`](crate::Match::advance), without a lobby.
    #[default]
    Immediately,
    /// The match starts when at least this many players are connected (1 to the number of seats), and all connected
    /// players are ready.
    Players(usize),
    /// The match starts when these identities (1 to the number of seats) are connected, and all connected players are
    /// ready. A seat is kept for each identity until then.
    Identities(Vec<String>),
    /// The match is started by [`Match::start`](crate::Match::start), or by an admitted request.
    HostSays,
}

/// The policy for clients whose authority trails the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laggards {
    /// The client keeps trailing, and the match does not wait for it.
    Ignore,
    /// The match pauses until the client trails less, within these limits. Beyond the limits, and for 500 ms after a
    /// pause or a delay of the server, the client keeps trailing.
    Hold {
        /// The match pauses when a client's lag exceeds the expected lag by this much, but at least by one turn or two
        /// ticks, whichever is longer. [`Duration::ZERO`] means this minimum.
        from: Duration,
        /// The longest single pause. Players tolerate up to 250 ms.
        at_once: Duration,
        /// The longest total of pauses for one player within a minute.
        per_minute: Duration,
    },
    /// The client is removed when it has trailed for `after`.
    Kick {
        /// How long a client may trail before it is removed.
        after: Duration,
    },
}

impl Laggards {
    /// [`Hold`](Laggards::Hold) for a lag of one turn or two ticks, whichever is longer, with pauses of at most 250 ms
    /// each and 2 s per minute.
    #[must_use]
    pub const fn hold() -> Laggards {
        Laggards::Hold {
            from: Duration::ZERO,
            at_once: Duration::from_millis(250),
            per_minute: Duration::from_secs(2),
        }
    }
}

/// The side that answers the queries of a player's own actions ([`Key::player`](twinstep_core::Key::player)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The server.
    Server,
    /// The player's own client. The server answers if the game leaves the query to it, if the client does not answer or
    /// leaves, or if its answer is refused.
    Owner,
}

/// Whether waiting inputs and admitted commands are sent to the other players before their tick. For up to 10 s after a
/// player's strike, its inputs and commands are not sent early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announce {
    /// Inputs and admitted commands are sent before their tick. For co-op games only: a modified client can read them
    /// shortly before they take effect.
    Ahead,
    /// Inputs and commands are sent only with their frames.
    Never,
}

/// The turns at which clients compare the digest of their world with the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// Each turn while a digest hashes at most 64 KB. For larger worlds, as often as 256 KB of hashing per second
    /// allows, but at least once a second.
    Budgeted,
    /// Each turn, at any size. Costs the server and each client 0.1 to 0.4 µs per KB and turn. At 300 KB, that is about
    /// 0.1 ms; with 150 ms turns, 0.1 % of a core. [`Chunked`](twinstep_core::Chunked) lists count only changed chunks.
    EachTurn,
}

/// The side that decides the claims of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// Only the player's own client. The server makes no claims, but its referee may refuse one.
    OwnerOnly,
    /// The player's own client. If it does not make a claim, the referee decides after this many ticks: see
    /// [`Referee::owed`](crate::hooks::Referee::owed).
    OwnerWithin(u32),
}

/// The policy for spectators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spectators {
    /// The maximum number of spectators: at most 16 without a delay, or 512 with one.
    pub max: usize,
    /// The spectators' delay in ticks: 0, or 180..=900.
    pub delay_ticks: u32,
}

/// The configuration of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchConfig {
    /// The length of a tick while no client slows it.
    pub tick: Duration,
    /// Whether ticks may become longer.
    pub tick_length: TickLength,
    /// The first tick; above 0 when a match starts from a saved state.
    pub start: Tick,
    /// When the match starts. Fixed for the match. A resumed match continues immediately.
    pub start_when: StartWhen,
    /// When a tick is sealed.
    pub sealing: SealWhen,
    /// The number of ticks sent together.
    pub turn: TurnLength,
    /// The command delay m in turns, 0..=4: an order given in turn n runs in turn n + m. Fixed for the match. 0 means
    /// no lockstep: clients predict.
    pub command_delay: u8,
    /// The policy for clients that trail.
    pub laggards: Laggards,
    /// The side that answers queries.
    pub answered_by: AnsweredBy,
    /// Whether inputs are announced.
    pub announce: Announce,
    /// The side that decides claims.
    pub claims: Claims,
    /// The turns at which digests are compared.
    pub checksums: Checksums,
    /// Ticks between an input's sampling and its use, 0..=32. Only without a command delay.
    pub delay_ticks: u8,
    /// The number of seats, 1..=16.
    pub players_max: usize,
    /// Seats that only these identities get, in any order of arrival: see [`reserve`](MatchConfig::reserve).
    pub reserved: Vec<(PlayerId, String)>,
    /// Whether newcomers are admitted. Players of the match may always reconnect.
    pub open: bool,
    /// The policy for spectators.
    pub spectators: Spectators,
    /// The name of this build. Recorded in the journal, never compared.
    pub build: String,
    /// The start time of the match, as a Unix time in seconds. Recorded in the journal. For a resumed match, the
    /// [configuration](crate::Match::config) has the time from its journal.
    pub unix_time: u64,
}

/// The reason why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ConfigError {
    #[error("{}: not possible now{}", .0, request_hint(*.0))]
    Request(MatchRequest),
    #[error("expected a tick of 1 ms to 1 s, got {0:?}")]
    Tick(Duration),
    #[error("expected a maximum tick length of {tick:.1?} (the usual length) to 1 s, got {max:?}")]
    TickMax { tick: Duration, max: Duration },
    #[error("expected a turn of 1 to {TURN_TICKS_MAX} ticks, got {0}")]
    Turn(u8),
    #[error("expected a minimum turn that is not above the maximum, got {min} and {max} ticks")]
    TurnBounds { min: u8, max: u8 },
    #[error("expected 1 s to 5 min before a shorter turn is tried, got {0:?}")]
    TurnPatience(Duration),
    #[error("expected a command delay of 0 to {COMMAND_DELAY_MAX} turns, got {0}")]
    CommandDelay(u8),
    #[error(
        "waiting for all players needs a command delay of 1 to {COMMAND_DELAY_MAX} turns; set one, or use the deadline"
    )]
    WaitWithoutDelay,
    #[error("expected a wait of 1 s to 5 min before a slow player is removed, got {0:?}")]
    KickAfter(Duration),
    #[error("expected an input delay of 0 to {DELAY_MAX} ticks, got {0}")]
    Delay(u8),
    #[error("input delay and command delay cannot be combined; remove one")]
    TwoDelays,
    #[error("expected 1 to {PLAYERS_MAX} players, got {0}")]
    Players(usize),
    #[error(
        "expected the match to wait for 1 to {seats} players, one for each seat, got {awaited}"
    )]
    StartWhen { awaited: usize, seats: usize },
    /// A reservation names a seat that does not exist or is already reserved, or an identity that is empty or too long.
    #[error(
        "reservation of {0}: expected a seat below the number of players, reserved once, for an identity of 1 to \
         {IDENTITY_BYTES_MAX} bytes"
    )]
    Reserved(PlayerId),
    #[error(
        "expected at most {SPECTATORS_LIVE_MAX} spectators without delay, or at most {SPECTATORS_DELAYED_MAX} with a \
         delay of {SPECTATOR_DELAY_MIN} to {SPECTATOR_DELAY_MAX} ticks (3 to 15 s at 60 Hz); got {} with {} ticks",
        .0.max, .0.delay_ticks
    )]
    Spectators(Spectators),
    #[error("{0} cannot change during a match: start a new match")]
    Fixed(&'static str),
}

fn request_hint(request: MatchRequest) -> &'static str {
    match request {
        MatchRequest::Save => " (one save at a time, and only if the server writes saves)",
        MatchRequest::Start => " (the match does not wait for its players)",
        _ => "",
    }
}

fn check_patience(
    time: Duration,
    error: impl Fn(Duration) -> ConfigError,
) -> Result<(), ConfigError> {
    match (Duration::from_secs(1)..=Duration::from_secs(300)).contains(&time) {
        true => Ok(()),
        false => Err(error(time)),
    }
}

impl MatchConfig {
    /// The configuration for action games: 60 Hz, 2-tick turns, deadlines, announcements, prediction.
    #[must_use]
    pub fn action() -> Self {
        MatchConfig {
            tick: Duration::from_nanos(16_666_667),
            tick_length: TickLength::Fixed,
            start: Tick(0),
            start_when: StartWhen::Immediately,
            sealing: SealWhen::Deadline,
            turn: TurnLength::Fixed(2),
            command_delay: 0,
            laggards: Laggards::Ignore,
            answered_by: AnsweredBy::Server,
            announce: Announce::Ahead,
            claims: Claims::OwnerOnly,
            checksums: Checksums::Budgeted,
            delay_ticks: 0,
            players_max: 8,
            reserved: Vec::new(),
            open: true,
            spectators: Spectators {
                max: 0,
                delay_ticks: 0,
            },
            build: String::new(),
            unix_time: 0,
        }
    }

    /// The configuration for strategy games: 50 ms ticks, 150 ms turns, a command delay of two turns. All players wait
    /// for each other, but there is no pause while the latency of each direction is at most 150 ms minus one client
    /// frame (133 ms at 60 frames a second).
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

    /// Reserves a seat: only this identity can play `player`, whenever it connects. Call it once per local player.
    #[must_use]
    pub fn reserve(mut self, identity: &str, player: PlayerId) -> Self {
        self.reserved.push((player, identity.to_owned()));
        self
    }

    pub(crate) fn reserved_for(&self, player: PlayerId) -> Option<&str> {
        let reserved = self.reserved.iter().find(|(seat, _)| *seat == player);
        reserved.map(|(_, identity)| &**identity)
    }

    /// Checks that all values are in their ranges and fit together.
    ///
    /// # Errors
    /// If a value is out of its range or conflicts with another; the error names the first such value.
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
        if let TurnLength::Adaptive { patience, .. } = self.turn {
            check_patience(patience, ConfigError::TurnPatience)?;
        }
        if self.command_delay > COMMAND_DELAY_MAX {
            return Err(ConfigError::CommandDelay(self.command_delay));
        }
        if let SealWhen::WaitForAll { kick_after } = self.sealing {
            if self.command_delay == 0 {
                return Err(ConfigError::WaitWithoutDelay);
            }
            check_patience(kick_after, ConfigError::KickAfter)?;
        }
        if let Laggards::Kick { after } = self.laggards {
            check_patience(after, ConfigError::KickAfter)?;
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
        let awaited = match &self.start_when {
            StartWhen::Immediately | StartWhen::HostSays => 1,
            StartWhen::Players(players) => *players,
            StartWhen::Identities(identities) => identities.len(),
        };
        if !(1..=self.players_max).contains(&awaited) {
            let seats = self.players_max;
            return Err(ConfigError::StartWhen { awaited, seats });
        }
        for (at, (player, identity)) in self.reserved.iter().enumerate() {
            let is_second = self.reserved[..at].iter().any(|(seat, _)| seat == player);
            let fits = (1..=IDENTITY_BYTES_MAX).contains(&identity.len());
            if is_second || !fits || player.index() >= self.players_max {
                return Err(ConfigError::Reserved(*player));
            }
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

    /// Checks that a running match may continue with `next` as its configuration.
    ///
    /// # Errors
    /// If `next` is invalid, or changes a value that is fixed for the match.
    pub fn check_change(&self, next: &MatchConfig) -> Result<(), ConfigError> {
        next.check()?;
        let fixed = [
            (
                "the command delay",
                self.command_delay != next.command_delay,
            ),
            ("the first tick", self.start != next.start),
            ("when it starts", self.start_when != next.start_when),
            ("the number of seats", self.players_max != next.players_max),
            (
                "the side that answers queries",
                self.answered_by != next.answered_by,
            ),
            ("the spectators' delay", self.spectators != next.spectators),
            ("the build", self.build != next.build),
            ("the start time", self.unix_time != next.unix_time),
        ];
        match fixed.iter().find(|(_, changed)| *changed) {
            Some((what, _)) => Err(ConfigError::Fixed(what)),
            None => Ok(()),
        }
    }

    pub(crate) fn turn_bounds(&self) -> (u8, u8) {
        match self.turn {
            TurnLength::Fixed(ticks) => (ticks, ticks),
            TurnLength::Adaptive { min, max, .. } => (min, max),
        }
    }

    pub(crate) fn cadence(&self) -> Cadence {
        Cadence {
            turn_ticks: self.turn_bounds().0,
            tick_ns: self.tick.as_nanos() as u32,
            delay_ticks: self.delay_ticks,
            ..Cadence::DEFAULT
        }
    }
}
