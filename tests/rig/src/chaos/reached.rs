//! The edges that a world reached, measured while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use twinstep_core::PlayerSet;
use twinstep_core::bounds::{
    COMMAND_INLINE_MAX, OUTCOME_INLINE_MAX, PLAYERS_MAX, SEATS_MAX, WORLD_BYTES_MAX,
};
use twinstep_server::peer::SessionStage;

use super::plan::{Game, Plan};
use crate::rig::{Play, Rig, Role};

macro_rules! edges {
    ($($(#[$doc:meta])* $edge:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Edge {
            $($(#[$doc])* $edge,)*
        }

        impl Edge {
            pub const ALL: &[Edge] = &[$(Edge::$edge),*];
        }
    };
}

edges! {
    Lobby,
    CrashInLobby,
    Alone,
    SixteenPlayers,
    FourSeats,
    /// Some ticks took 50 ms or more.
    SlowTicks,
    /// Some ticks took 5 ms or less.
    FastTicks,
    /// Some turns took 100 ms or more.
    LongTurns,
    WideInputs,
    WideCommands,
    WideOutcomes,
    WideClaims,
    LargeCommands,
    LargeOutcomes,
    /// Twelve or more players were present, with inputs of maximum size and commands of nearly maximum size.
    AllAtMaximum,
    NoCommands,
    /// The world held fewer than 300 bytes of ballast and ground.
    TinyWorld,
    /// The world held more than 1 MiB of ballast and ground.
    LargeWorld,
    HugeWorld,
    WorldPastItsBound,
    DelayChanged,
    Paused,
    SpeedChanged,
    RequestRefused,
    AwfulForAll,
    /// A client's clock was ahead by more than an hour, or jumped by more than a second.
    ClocksApart,
    ClockWentBack,
    SmallDatagrams,
    CrashWhileJoining,
    ClientKilledWhileJoining,
    /// The server was killed four times within ten seconds.
    CrashedAgain,
    Panicked,
    Poisoned,
    PredictionPanicked,
    HostileClient,
    HostileServer,
    /// Clients requested worlds and did not acknowledge them.
    Stalled,
    /// A client that freezes for as long as permitted was in the match.
    Lagged,
    /// A client that falsely reports a busy machine was in a match whose ticks may get longer.
    Lied,
    Hogged,
    Lockstep,
    OwnersAnswered,
    Healed,
    JoinedByFrames,
    Resumed,
    Reloaded,
    /// More reconnects were excused than identities exist, so one identity was excused again after a minute.
    ExcusedAgain,
    Removed,
    /// The match waited for players in four different minutes, so the per-minute waiting budget was renewed three
    /// times.
    WaitedForMinutes,
    /// The match paused or slowed down for trailing machines in four different minutes.
    SlowedForMinutes,
    /// Players joined, left or were dropped in four different minutes.
    RosterForMinutes,
    ClaimsForMinutes,
}

impl Edge {
    /// Returns `true` if only a world that lasts several minutes can reach this edge.
    #[must_use]
    pub fn takes_minutes(self) -> bool {
        matches!(
            self,
            Edge::ExcusedAgain
                | Edge::WaitedForMinutes
                | Edge::SlowedForMinutes
                | Edge::RosterForMinutes
                | Edge::ClaimsForMinutes
        )
    }

    /// Returns `true` if worlds of this game can reach this edge.
    #[must_use]
    pub fn is_of(self, game: Game) -> bool {
        let sized = matches!(
            self,
            Edge::WideInputs
                | Edge::WideCommands
                | Edge::WideOutcomes
                | Edge::WideClaims
                | Edge::LargeCommands
                | Edge::LargeOutcomes
                | Edge::AllAtMaximum
                | Edge::NoCommands
                | Edge::TinyWorld
                | Edge::LargeWorld
                | Edge::HugeWorld
                | Edge::WorldPastItsBound
                | Edge::Panicked
                | Edge::Poisoned
                | Edge::PredictionPanicked
                | Edge::Hogged
        );
        game == Game::Edges || !sized
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    worlds: BTreeMap<Edge, u64>,
    minutes: Minutes,
}

/// The minutes of a world in which an event with a limit per minute occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Minutes {
    of: BTreeMap<Edge, BTreeSet<u64>>,
    /// The values at the last check: time waited for players, time paused for machines, claims that ran, and seated
    /// players.
    before: (Duration, Duration, u64, PlayerSet),
}

impl Minutes {
    /// An event counts as reached if it occurred in this many minutes, so that its budget was renewed three times.
    const MANY: usize = 4;

    fn look<S: Play>(&mut self, rig: &Rig<S>) -> impl Iterator<Item = Edge> {
        let minute = rig.now.as_secs() / 60;
        let world = rig.match_.world();
        let players = world.seated().iter();
        let stats = players.map(|player| rig.match_.seat_stats(player));
        let (waited, claims) = stats.fold((Duration::ZERO, 0), |(waited, claims), seat| {
            (waited + seat.waited, claims + seat.claims)
        });
        let now = (waited, rig.match_.stats().held, claims, world.present());
        let before = std::mem::replace(&mut self.before, now);
        let happened = [
            (Edge::WaitedForMinutes, now.0 > before.0),
            (
                Edge::SlowedForMinutes,
                now.1 > before.1 || rig.match_.slowing() != PlayerSet::default(),
            ),
            (Edge::ClaimsForMinutes, now.2 > before.2),
            (Edge::RosterForMinutes, now.3 != before.3),
        ];
        for (edge, _) in happened.into_iter().filter(|(_, happened)| *happened) {
            self.of.entry(edge).or_default().insert(minute);
        }
        let many = self
            .of
            .iter()
            .filter(|(_, minutes)| minutes.len() >= Self::MANY);
        many.map(|(edge, _)| *edge)
    }
}

impl Reached {
    pub fn record(&mut self, edge: Edge) {
        self.worlds.insert(edge, 1);
    }

    pub fn record_if(&mut self, reached: bool, edge: Edge) {
        if reached {
            self.record(edge);
        }
    }

    pub fn add(&mut self, other: &Reached) {
        for (edge, worlds) in &other.worlds {
            *self.worlds.entry(*edge).or_default() += worlds;
        }
    }

    #[must_use]
    pub fn worlds(&self, edge: Edge) -> u64 {
        self.worlds.get(&edge).copied().unwrap_or_default()
    }

    pub fn look<S: Play>(&mut self, rig: &Rig<S>, plan: &Plan) {
        let world = rig.match_.world();
        let (present, sim) = (world.present().iter().count(), world.sim());
        let (widest, bytes) = (sim.widest(), sim.bytes());
        let cadence = world.turn().cadence;
        let ticks = world.tick().0;
        let guests = rig.match_.lobby().map_or(0, |lobby| lobby.players.len());
        self.record_if(guests >= 2, Edge::Lobby);
        self.record_if(present == 1 && ticks > 100, Edge::Alone);
        self.record_if(present == PLAYERS_MAX, Edge::SixteenPlayers);
        let playing = |seats: usize| {
            let mut of = rig.clients.iter().filter(|c| c.seats == seats);
            of.any(|c| rig.match_.stage(c.peer()) == Some(SessionStage::Playing))
        };
        self.record_if(playing(SEATS_MAX), Edge::FourSeats);
        let tick = cadence.tick();
        self.record_if(
            ticks > 50 && tick >= Duration::from_millis(50),
            Edge::SlowTicks,
        );
        self.record_if(
            ticks > 500 && tick <= Duration::from_millis(5),
            Edge::FastTicks,
        );
        self.record_if(
            cadence.turn() >= Duration::from_millis(100),
            Edge::LongTurns,
        );
        let nearly = COMMAND_INLINE_MAX as u16 * 7 / 8;
        let (input, command) = (widest.input == 16, widest.command >= nearly);
        self.record_if(input, Edge::WideInputs);
        self.record_if(command, Edge::WideCommands);
        self.record_if(widest.outcome >= 224, Edge::WideOutcomes);
        let large = usize::from(widest.command) > COMMAND_INLINE_MAX;
        self.record_if(large, Edge::LargeCommands);
        let large = usize::from(widest.outcome) > OUTCOME_INLINE_MAX;
        self.record_if(large, Edge::LargeOutcomes);
        self.record_if(widest.claim >= nearly, Edge::WideClaims);
        self.record_if(present >= 12 && input && command, Edge::AllAtMaximum);
        self.record_if(bytes > 0 && bytes < 300 && ticks > 100, Edge::TinyWorld);
        self.record_if(bytes > 1 << 20, Edge::LargeWorld);
        self.record_if(bytes > 7 << 20, Edge::HugeWorld);
        self.record_if(bytes > WORLD_BYTES_MAX, Edge::WorldPastItsBound);
        let delay = cadence.delay_ticks;
        self.record_if(delay != plan.policies.delay_ticks, Edge::DelayChanged);
        let stats = rig.match_.stats();
        self.record_if(stats.panics > 0, Edge::Panicked);
        self.record_if(rig.match_.is_paused(), Edge::Paused);
        self.record_if(cadence.requested_ns.is_some(), Edge::SpeedChanged);
        self.record_if(stats.requests_refused > 0, Edge::RequestRefused);
        self.record_if(stats.heals > 0, Edge::Healed);
        self.record_if(stats.joined_by_frames > 0, Edge::JoinedByFrames);
        self.record_if(stats.owner_answers > 0, Edge::OwnersAnswered);
        let is_hogged = world.open_queries().len() >= 16;
        let of = |role: Role| rig.clients.iter().filter(move |c| c.role == role);
        let speaks = |role: Role| {
            of(role).any(|c| rig.match_.stage(c.peer()) == Some(SessionStage::Playing))
        };
        self.record_if(is_hogged && speaks(Role::Hogs), Edge::Hogged);
        self.record_if(
            stats.malformed > 0 && of(Role::Spoils).next().is_some(),
            Edge::HostileClient,
        );
        let mut deceived = of(Role::Deceived);
        let is_deceived = deceived.any(|c| c.session.counters().malformed > 0);
        self.record_if(is_deceived, Edge::HostileServer);
        let mut honest = rig.clients.iter().filter(|c| c.role.is_honest());
        let panicked = honest.any(|c| c.session.counters().timeline.step_faults > 0);
        self.record_if(panicked, Edge::PredictionPanicked);
        let waits =
            of(Role::Stalls).any(|c| rig.match_.stage(c.peer()) == Some(SessionStage::Loading));
        self.record_if(waits, Edge::Stalled);
        self.record_if(rig.removals() > 0, Edge::Removed);
        for edge in self.minutes.look(rig) {
            self.worlds.insert(edge, 1);
        }
        self.record_if(speaks(Role::Lags), Edge::Lagged);
        self.record_if(speaks(Role::Lies), Edge::Lied);
        self.record_if(
            plan.policies.command_delay > 0 && ticks > 50,
            Edge::Lockstep,
        );
    }
}

/// Displays a table with one line for each edge that a game can reach.
pub struct Shares<'a> {
    pub reached: &'a Reached,
    pub game: Game,
    pub worlds: u64,
}

impl fmt::Display for Shares<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for edge in Edge::ALL.iter().filter(|edge| edge.is_of(self.game)) {
            let worlds = self.reached.worlds(*edge);
            let share = worlds as f64 * 100.0 / self.worlds.max(1) as f64;
            writeln!(f, "  {:<26} {share:>5.1} % ({worlds})", format!("{edge:?}"))?;
        }
        Ok(())
    }
}
