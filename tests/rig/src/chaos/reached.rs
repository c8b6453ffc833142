//! Which edges a world reached: measured while it is played, not only drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use twinstep_core::PlayerSet;
use twinstep_core::bounds::{COMMAND_BYTES_MAX, PLAYERS_MAX, SEATS_MAX, WORLD_BYTES_MAX};
use twinstep_server::peer::SessionStage;

use super::plan::{Game, Plan};
use crate::rig::{Play, Rig, Role};

macro_rules! edges {
    ($($(#[$doc:meta])* $edge:ident,)*) => {
        /// An edge of the range of some bound.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Edge {
            $($(#[$doc])* $edge,)*
        }

        impl Edge {
            /// All of them.
            pub const ALL: &[Edge] = &[$(Edge::$edge),*];
        }
    };
}

edges! {
    /// Nobody but one player was there.
    Alone,
    /// Sixteen players were there at once.
    SixteenPlayers,
    /// A client of four seats played.
    FourSeats,
    /// Ticks of 50 ms and more were played.
    SlowTicks,
    /// Ticks of 5 ms and less were played.
    FastTicks,
    /// Turns of 100 ms and more.
    LongTurns,
    /// Inputs of the largest size.
    WideInputs,
    /// Commands of the largest size.
    WideCommands,
    /// Outcomes close to the largest size.
    WideOutcomes,
    /// Claims close to the largest size.
    WideClaims,
    /// Twelve players and more at once, whose inputs and commands were all of the largest size.
    EverybodyAtMaximum,
    /// Nobody ordered anything.
    NoCommands,
    /// A world of less than 400 bytes.
    TinyWorld,
    /// A world of more than 1 MiB.
    LargeWorld,
    /// A world near the bound.
    HugeWorld,
    /// A world that grew past the bound.
    WorldPastItsBound,
    /// The input delay changed in play.
    DelayChanged,
    /// Everybody's line was awful or worse all the time.
    AwfulForAll,
    /// A client's clock was ahead by hours, or jumped.
    ClocksApart,
    /// The server's clock went back.
    ClockWentBack,
    /// Lines passed only small datagrams.
    SmallDatagrams,
    /// The server was killed while somebody was on the way in.
    CrashWhileJoining,
    /// A client's process was killed while it was on its way in.
    ClientKilledWhileJoining,
    /// The server was killed four times within ten seconds.
    CrashedAgain,
    /// A step or a hook panicked.
    Panicked,
    /// An order poisoned the step, or brought NaN.
    Poisoned,
    /// A step or a hook panicked in the prediction of an honest client.
    PredictionPanicked,
    /// The server heard packets that could not be read.
    HostileClient,
    /// A client heard packets that could not be read.
    HostileServer,
    /// Clients asked for worlds and did not take them.
    Stalled,
    /// The match waited for a client that was as late as it may be.
    Lagged,
    /// A client told that its machine was busy, and ticks may get longer.
    Lied,
    /// One player's queries filled ticks.
    Hogged,
    /// The match played in lockstep.
    Lockstep,
    /// Owners answered.
    OwnersAnswered,
    /// A client was healed.
    Healed,
    /// Somebody joined by what the match began with, and the frames since.
    JoinedByFrames,
    /// Somebody came back by frames.
    Resumed,
    /// Somebody came back by a world.
    Reloaded,
    /// More returns counted as a sign of life than there are identities: one's counted again after a minute.
    ExcusedAgain,
    /// A player was put out because the others had waited for it for too long.
    PutOut,
    /// The match waited for players in four different minutes: what it may wait in one was counted anew three times.
    WaitedForMinutes,
    /// The match stood still for machines that trail, or ran slower for them, in four different minutes.
    SlowedForMinutes,
    /// Players came, went or were dropped in four different minutes.
    RosterForMinutes,
    /// Claims ran in four different minutes.
    ClaimsForMinutes,
}

impl Edge {
    /// Whether only a world of minutes can reach it.
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

    /// Whether worlds of a game can reach it at all.
    #[must_use]
    pub fn is_of(self, game: Game) -> bool {
        let sized = matches!(
            self,
            Edge::WideInputs
                | Edge::WideCommands
                | Edge::WideOutcomes
                | Edge::WideClaims
                | Edge::EverybodyAtMaximum
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

/// How often each edge was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    worlds: BTreeMap<Edge, u64>,
    minutes: Minutes,
}

/// In which minutes of a world something happened of which only so much may happen in a minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Minutes {
    of: BTreeMap<Edge, BTreeSet<u64>>,
    /// At the last look: for how long the match had waited for its players, and stood still for machines; claims that had
    /// run; who had a seat.
    before: (Duration, Duration, u64, PlayerSet),
}

impl Minutes {
    /// So many different ones, and what is counted for each minute was counted anew three times.
    const MANY: usize = 4;

    /// Looks at a match; the edges that it has reached by now.
    fn look<S: Play>(&mut self, rig: &Rig<S>) -> impl Iterator<Item = Edge> {
        let minute = rig.now.as_secs() / 60;
        let world = rig.game.world();
        let players = world.seated().iter();
        let stats = players.map(|player| rig.game.seat_stats(player));
        let (waited, claims) = stats.fold((Duration::ZERO, 0), |(waited, claims), seat| {
            (waited + seat.waited, claims + seat.claims)
        });
        let now = (waited, rig.game.stats().held, claims, world.present());
        let before = std::mem::replace(&mut self.before, now);
        let happened = [
            (Edge::WaitedForMinutes, now.0 > before.0),
            (
                Edge::SlowedForMinutes,
                now.1 > before.1 || rig.game.slowing() != PlayerSet::default(),
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
    /// An edge is reached.
    pub fn note(&mut self, edge: Edge) {
        self.worlds.insert(edge, 1);
    }

    /// An edge is reached if so.
    pub fn note_if(&mut self, reached: bool, edge: Edge) {
        if reached {
            self.note(edge);
        }
    }

    /// The edges of another world.
    pub fn add(&mut self, other: &Reached) {
        for (edge, worlds) in &other.worlds {
            *self.worlds.entry(*edge).or_default() += worlds;
        }
    }

    /// In how many worlds it was reached.
    #[must_use]
    pub fn worlds(&self, edge: Edge) -> u64 {
        self.worlds.get(&edge).copied().unwrap_or_default()
    }

    /// What can be seen of a world at any moment.
    pub fn look<S: Play>(&mut self, rig: &Rig<S>, plan: &Plan) {
        let world = rig.game.world();
        let (present, sim) = (world.present().iter().count(), world.sim());
        let (widest, bytes) = (sim.widest(), sim.bytes());
        let cadence = world.turn().cadence;
        let ticks = world.tick().0;
        self.note_if(present == 1 && ticks > 100, Edge::Alone);
        self.note_if(present == PLAYERS_MAX, Edge::SixteenPlayers);
        let playing = |seats: usize| {
            let mut of = rig.clients.iter().filter(|c| c.seats == seats);
            of.any(|c| rig.game.stage(c.peer()) == Some(SessionStage::Playing))
        };
        self.note_if(playing(SEATS_MAX), Edge::FourSeats);
        let tick = cadence.tick();
        self.note_if(
            ticks > 50 && tick >= Duration::from_millis(50),
            Edge::SlowTicks,
        );
        self.note_if(
            ticks > 500 && tick <= Duration::from_millis(5),
            Edge::FastTicks,
        );
        self.note_if(
            cadence.turn() >= Duration::from_millis(100),
            Edge::LongTurns,
        );
        let nearly = COMMAND_BYTES_MAX as u16 * 7 / 8;
        let (input, command) = (widest.input == 16, widest.command >= nearly);
        self.note_if(input, Edge::WideInputs);
        self.note_if(command, Edge::WideCommands);
        self.note_if(widest.outcome >= 224, Edge::WideOutcomes);
        self.note_if(widest.claim >= nearly, Edge::WideClaims);
        self.note_if(present >= 12 && input && command, Edge::EverybodyAtMaximum);
        self.note_if(bytes > 0 && bytes < 300 && ticks > 100, Edge::TinyWorld);
        self.note_if(bytes > 1 << 20, Edge::LargeWorld);
        self.note_if(bytes > 7 << 20, Edge::HugeWorld);
        self.note_if(bytes > WORLD_BYTES_MAX, Edge::WorldPastItsBound);
        let delay = cadence.delay_ticks;
        self.note_if(delay != plan.policies.delay_ticks, Edge::DelayChanged);
        let stats = rig.game.stats();
        self.note_if(stats.panics > 0, Edge::Panicked);
        self.note_if(stats.heals > 0, Edge::Healed);
        self.note_if(stats.joined_by_frames > 0, Edge::JoinedByFrames);
        self.note_if(stats.owner_answers > 0, Edge::OwnersAnswered);
        let is_hogged = world.open_queries().len() >= 16;
        let of = |role: Role| rig.clients.iter().filter(move |c| c.role == role);
        let speaks =
            |role: Role| of(role).any(|c| rig.game.stage(c.peer()) == Some(SessionStage::Playing));
        self.note_if(is_hogged && speaks(Role::Hogs), Edge::Hogged);
        self.note_if(
            stats.malformed > 0 && of(Role::Spoils).next().is_some(),
            Edge::HostileClient,
        );
        let mut deceived = of(Role::Deceived);
        let is_deceived = deceived.any(|c| c.session.stats().malformed > 0);
        self.note_if(is_deceived, Edge::HostileServer);
        let mut honest = rig.clients.iter().filter(|c| c.role.is_honest());
        let panicked = honest.any(|c| c.session.stats().timeline.step_faults > 0);
        self.note_if(panicked, Edge::PredictionPanicked);
        let waits =
            of(Role::Stalls).any(|c| rig.game.stage(c.peer()) == Some(SessionStage::Loading));
        self.note_if(waits, Edge::Stalled);
        self.note_if(rig.put_out() > 0, Edge::PutOut);
        for edge in self.minutes.look(rig) {
            self.worlds.insert(edge, 1);
        }
        self.note_if(speaks(Role::Lags), Edge::Lagged);
        self.note_if(speaks(Role::Lies), Edge::Lied);
        self.note_if(
            plan.policies.command_delay > 0 && ticks > 50,
            Edge::Lockstep,
        );
    }
}

/// One line for each edge that a game can reach.
pub struct Shares<'a> {
    /// What was reached.
    pub reached: &'a Reached,
    /// In which game.
    pub game: Game,
    /// In so many worlds.
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
