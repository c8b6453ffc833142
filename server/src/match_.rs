//! A match: the state machine that seals inputs into turns. It has no clock, socket or thread.
//!
//! ```text
//!  handle(now, peer, bytes)          advance(now)                          poll()
//!  ────────────────────────▶ seats ─────────────────────────────────────▶ outputs, in order
//!    inputs, commands, claims    for each tick whose deadline has come:
//!                                collect → seal → step at once → resolve
//!                                → (turn full) journal → send
//! ```
//!
//! [`Match`] itself is short: each part owns its fields and does not depend on [`Match`], and each file of `impl Match`
//! covers one task. `match_/tick.rs` shows one tick from top to bottom.
//!
//! Outcomes of tick t are sealed with the inputs of t + 1, so a query does not add latency. Law **One door**: the
//! server's own simulation is stepped by the sealed frame alone.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use twinstep_core::digest::{self, DigestError};
use twinstep_core::frame::PlayerSet;
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::identity::SessionId;
use twinstep_protocol::lobby::{Lobby, StartCondition};
use twinstep_protocol::names::Name;
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::packet::play_up::PlayUp;

use crate::clock::{Clock, Requested};
use crate::config::{ConfigError, MatchConfig, StartWhen};
use crate::degradation::Degradation;
use crate::diagnostics::{Diagnostics, MatchStats, Report};
use crate::down::Scratch;
use crate::encoding::EncodedWorld;
use crate::errors::MatchStartError;
use crate::history::History;
use crate::hooks::{Referee, Resolver};
use crate::incident::{Incident, Notices};
use crate::journal::JournalOut;
use crate::mode::MatchMode;
use crate::outbox::{Outbox, Output};
use crate::peer::{Peer, SessionStage};
use crate::people::{ConnectionState, People, Present};
use crate::player_list::PlayerList;
use crate::queries::OpenQueries;
use crate::sealer::Sealer;
use crate::seat::{Seat, SeatStats};
use crate::server_world::ServerWorld;
use crate::snapshots::Snapshots;
use crate::stopwatch::{Stopwatch, Timing};
use crate::tally::Tally;

mod advance;
mod desync;
mod join;
mod lobby;
mod requests;
mod resume;
mod save;
mod sending;
mod sessions;
mod tick;

pub use save::{OldSave, Upgrade};

/// A match as a state machine: [`handle`](Match::handle), [`advance`](Match::advance) and [`poll`](Match::poll).
pub struct Match<S: Simulation> {
    config: MatchConfig,
    mode: MatchMode,
    origin: Origin,
    world: ServerWorld<S>,
    clock: Clock,
    people: People,
    seats: Vec<Seat<S>>,
    play_up: PlayUp<S>,
    sealer: Sealer<S>,
    queries: OpenQueries<S>,
    journal: JournalOut<S>,
    outbox: Outbox<S::Outcome>,
    player_list: PlayerList,
    scratch: Scratch<S>,
    snapshots: Snapshots,
    diagnostics: Diagnostics,
    degradation: Degradation,
    requested: Requested,
    closed: Option<CloseCode>,
    // `Some` until the first tick of a match that waits for its players.
    gathering: Option<Gathering>,
}

impl<S: Simulation> Match<S> {
    /// Creates a match that starts from `sim`, without players. The match does no work before the first
    /// [`advance`](Match::advance).
    ///
    /// # Errors
    /// If the configuration is out of range, or the state or the rules hold a NaN.
    pub fn new(
        config: MatchConfig,
        sim: S,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<Self, MatchStartError> {
        config.check()?;
        let hello = Hello::of::<S>(&rules, &config.build)?;
        let world = World::new(sim, config.start).clocked(config.cadence());
        let mut history = History::new(config.start);
        history.keep_world(&world, false);
        let start = Start::of(&world)?;
        let mut match_ = Match::begin(config, hello, world, history, rules, resolver)?;
        match_.origin.start = Some(start);
        match_.gathering = Gathering::of(&match_.config, &match_.origin.hello);
        Ok(match_)
    }

    fn begin(
        config: MatchConfig,
        hello: Hello,
        world: World<S>,
        history: History<S>,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<Self, MatchStartError> {
        Ok(Match {
            origin: Origin {
                hello,
                start: None,
                asked_delay: None,
                packed_rules: OnceLock::new(),
            },
            clock: Clock::new(MatchMode::of(&config), world.turn().cadence),
            mode: MatchMode::of(&config),
            world: ServerWorld::new(world, history, rules)?,
            people: People::default(),
            seats: (0..config.players_max).map(|_| Seat::new()).collect(),
            play_up: PlayUp::default(),
            sealer: Sealer::new(config.start),
            queries: OpenQueries::new(resolver),
            journal: JournalOut::none(),
            outbox: Outbox::new(),
            player_list: PlayerList::default(),
            scratch: Scratch::new(config.start),
            snapshots: Snapshots::default(),
            diagnostics: Diagnostics::default(),
            degradation: Degradation::default(),
            requested: Requested::default(),
            closed: None,
            gathering: None,
            config,
        })
    }

    /// Sets the referee, which admits commands and claims. The default admits all orders within the bounds.
    pub fn set_referee(&mut self, referee: impl Referee<S>) {
        self.sealer.set_referee(referee);
    }

    /// Starts a journal, now or at the [start](crate::config::StartWhen) of a match that waits for its players.
    /// [`poll`](Match::poll) returns its bytes.
    ///
    /// # Errors
    /// If the names or the world are too long for a journal.
    pub fn keep_journal(&mut self) -> Result<(), MatchStartError> {
        if self.keep_journal_later()? {
            return Ok(());
        }
        self.journal = JournalOut::start(
            &self.origin.hello,
            &self.config,
            &self.world.current,
            &mut self.outbox,
        )?;
        self.record_reserved();
        Ok(())
    }

    /// Changes the configuration. Lengths and delays change with the next turn, all other values immediately. A tick
    /// length that differs from that of the current [`config`](Match::config) replaces a requested one.
    ///
    /// # Errors
    /// If a value is out of its range, or is fixed for the match, like the command delay. In that case, the
    /// configuration does not change.
    pub fn reconfigure(&mut self, mut config: MatchConfig) -> Result<(), ConfigError> {
        if let Some(asked) = self.origin.asked_delay {
            // Neither changes after a resume or a load, so that the author's unchanged configuration still fits.
            config.start = self.config.start;
            config.unix_time = self.config.unix_time;
            if config.command_delay == asked {
                config.command_delay = self.config.command_delay;
            }
        }
        self.config.check_change(&config)?;
        if config.tick != self.config.tick {
            self.requested.tick_ns = None;
        }
        self.config = config;
        Ok(())
    }

    /// Drops the given services, and restores the others. For a host that measures its own load.
    pub fn degrade(&mut self, degradation: Degradation) {
        if self.degradation == degradation {
            return;
        }
        self.degradation = degradation;
        while degradation.spares_spectators()
            && let Some(at) = self.people.find(|p| p.is_spectator())
        {
            self.close_peer(at, Degradation::BUSY);
        }
    }

    /// The current configuration.
    #[must_use]
    pub fn config(&self) -> &MatchConfig {
        &self.config
    }

    /// The server's world. Its tick is the next to be sealed.
    #[must_use]
    pub fn world(&self) -> &World<S> {
        &self.world.current
    }

    /// The digest of the world; 0 if the world has no digest because of a NaN. Costs a pass over the state if no digest
    /// was taken at this tick.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest_at(self.world.current.tick())
            .unwrap_or_default()
    }

    /// The digest of the world before `tick`. A digest that was taken (every tick while the world is small: 64 KB) is
    /// available for about 30 s. Within the last 64 ticks, a missing one is computed, which costs a fold and a pass
    /// over the state. Otherwise returns `None`.
    #[must_use]
    pub fn digest_at(&self, tick: Tick) -> Option<u64> {
        let found = || self.world.world_at(tick)?.digest().ok();
        self.world.digest_at(tick).or_else(found)
    }

    /// The world before `tick`, if it is the current one or one of the last 64. May cost a fold from an older one.
    #[must_use]
    pub fn world_at(&self, tick: Tick) -> Option<&World<S>> {
        self.world.world_at(tick)
    }

    /// The match's counters.
    #[must_use]
    pub fn stats(&self) -> MatchStats {
        self.diagnostics.stats
    }

    /// A player's counters.
    #[must_use]
    pub fn seat_stats(&self, player: PlayerId) -> SeatStats {
        self.seats
            .get(player.index())
            .map(|seat| seat.stats)
            .unwrap_or_default()
    }

    /// The number of a player's batches that wait for their turn, at most m. 0 without a command delay.
    #[must_use]
    pub fn open_batches(&self, player: PlayerId) -> u32 {
        let turn = self.world.current.turn().number;
        self.seats
            .get(player.index())
            .map_or(0, |seat| seat.next_batch.saturating_sub(turn))
    }

    /// The bytes sent to a session, including all headers, per kind. Returns `None` if no session has this id.
    #[must_use]
    pub fn bytes_down(&self, peer: SessionId) -> Option<ByteCounts> {
        let session = self.people.peer(peer);
        let takeover = self.people.is_takeover(peer).then(ByteCounts::default);
        session.map(|p| p.bytes_down).or(takeover)
    }

    /// The bytes sent to an identity in all its sessions, also as a spectator, including all headers, per kind. The
    /// counts of at most 256 identities without a session are kept.
    #[must_use]
    pub fn bytes_down_to(&self, identity: &str) -> ByteCounts {
        let own = self.people.iter().filter(|p| p.identity.name == identity);
        own.fold(self.people.away.bytes_down(identity), |sum, peer| {
            sum + peer.bytes_down_in_all()
        })
    }

    /// The players of a session; empty if no session has this id.
    #[must_use]
    pub fn players_of(&self, peer: SessionId) -> PlayerSet {
        self.people.peer(peer).map(Peer::own).unwrap_or_default()
    }

    /// The stage of a session. Returns `None` if no session has this id.
    #[must_use]
    pub fn stage(&self, peer: SessionId) -> Option<SessionStage> {
        let session = self.people.peer(peer);
        let takeover = self
            .people
            .is_takeover(peer)
            .then_some(SessionStage::Greeting);
        session.map(Peer::stage).or(takeover)
    }

    /// The number of ticks by which a session's authority trails the server, as reported by its client. Returns `None`
    /// if no session has this id.
    #[must_use]
    pub fn lag(&self, peer: SessionId) -> Option<u32> {
        self.people
            .peer(peer)
            .map(|p| self.world.current.tick() - p.acks.view())
    }

    /// The number of sessions in any stage. A second connection of the same identity counts only after its hello.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.people.len()
    }

    /// The number of seats that newcomers could take now, without those kept for the awaited identities of a lobby; 0 if
    /// the match or its server admits no newcomers.
    #[must_use]
    pub fn free_seats(&self) -> usize {
        let is_free = |player: &PlayerId| {
            self.people.identity_of(*player).is_none() && self.reserved_for(*player).is_none()
        };
        let numbers = (0..self.seats.len() as u8).map(PlayerId);
        let free = numbers.filter(is_free).count();
        if self.config.open
            && self.closed.is_none()
            && self.degradation.refuses_newcomers().is_none()
        {
            free.saturating_sub(self.reserved_seats(""))
        } else {
            0
        }
    }

    /// Returns `true` if the match is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// The reason why the match is over. Returns `None` if it is running.
    #[must_use]
    pub fn closed(&self) -> Option<CloseCode> {
        self.closed
    }

    /// Takes the desync reports of clients since the last call. The host's log has its own copies.
    pub fn take_reports(&mut self) -> Vec<Report> {
        self.diagnostics.reports.take()
    }

    /// Takes the oldest desync report.
    pub fn take_report(&mut self) -> Option<Report> {
        self.diagnostics.reports.pop()
    }

    /// Takes the incidents since the last call. A host's log has its own copies. Only the newest are kept.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        self.diagnostics.incidents.take()
    }

    /// The reports and incidents that the host has not written to its log yet.
    pub fn unlogged(&mut self) -> (&mut Notices<Report>, &mut Notices<Incident>) {
        (
            &mut self.diagnostics.reports,
            &mut self.diagnostics.incidents,
        )
    }

    /// Counts of joins and removals, by reason.
    pub fn tally(&self) -> &Tally {
        &self.diagnostics.tally
    }

    /// Measures the author's code with this stopwatch.
    pub fn time_by(&mut self, stopwatch: impl Stopwatch + 'static) {
        self.diagnostics.timing = Timing::by(stopwatch);
    }

    /// Adds an incident that happened outside the match's own calls.
    pub fn note_incident(&mut self, incident: Incident) {
        self.diagnostics.report(incident);
    }

    /// Continues without a journal, because the journal can no longer be written. After this, a crash ends the match.
    pub fn forgo_journal(&mut self) {
        self.journal = JournalOut::none();
        self.forgo_journal_later();
        let tick = self.world.current.tick();
        self.diagnostics.stats.journal_lost.get_or_insert(tick);
    }

    /// Leaves worlds larger than `over_bytes` bytes to the host to encode ([`Output::Encode`](crate::Output::Encode)).
    /// The host passes each result to [`hand_world`](Match::hand_world).
    pub fn encode_aside(&mut self, over_bytes: usize) {
        self.snapshots.aside.over = Some(over_bytes);
    }

    /// Takes the result of an [`Output::Encode`](crate::Output::Encode). Call it before the next
    /// [`advance`](Match::advance) if possible: the journal accepts the world only between turns.
    ///
    /// # Panics
    /// If the world's `Serialize` panicked, with the same message.
    pub fn hand_world(&mut self, encoded: EncodedWorld) {
        let EncodedWorld { tick, world } = encoded;
        if !self.snapshots.aside.end(tick) {
            return;
        }
        match world {
            Err(panic) => panic!("{panic}"),
            Ok(None) => self
                .snapshots
                .report_too_large(&self.world, &mut self.diagnostics),
            Ok(Some(world)) => {
                self.journal
                    .late_world(tick, &world.bytes, &mut self.outbox);
                let (now, spectators) = (self.clock.now, self.config.spectators);
                let diagnostics = &mut self.diagnostics;
                self.snapshots
                    .put(world, now, spectators, &self.world, diagnostics);
            }
        }
    }

    /// All players with a seat, in seat order, then all spectators.
    pub fn participants(&self) -> Vec<Present> {
        let mut seated: Vec<Present> = self
            .people
            .identities()
            .iter()
            .map(|(identity, player)| self.seated(identity, *player))
            .collect();
        seated.sort_by_key(|present| present.seat);
        let watching = self.people.iter().filter(|p| p.is_spectator());
        let watching = watching.map(|peer| self.with_session(peer, None));
        seated.into_iter().chain(watching).collect()
    }

    fn seated(&self, identity: &str, player: PlayerId) -> Present {
        let own = |p: &&Peer| p.players.contains(&player);
        if let Some(peer) = self.people.iter().find(own) {
            return self.with_session(peer, Some(player));
        }
        let world = &self.world.current;
        let silent_ticks = world.tick() - self.seats[player.index()].last_active();
        Present {
            seat: Some(player),
            identity: identity.to_owned(),
            name: self.player_list.name_of(player),
            connection: ConnectionState::Away,
            margin_ticks: None,
            round_trip: None,
            lasts: world.turn().cadence.tick() * silent_ticks,
        }
    }

    fn with_session(&self, peer: &Peer, seat: Option<PlayerId>) -> Present {
        let next = self.world.current.tick();
        let has_deadlines = !self.mode.is_lockstep();
        let newest = seat
            .filter(|_| has_deadlines && peer.plays())
            .and_then(|player| self.seats[player.index()].newest());
        Present {
            seat,
            identity: peer.identity.name.clone(),
            name: seat
                .map(|player| self.player_list.name_of(player))
                .unwrap_or_default(),
            connection: match peer.plays() {
                true => ConnectionState::Playing,
                false => ConnectionState::Joining,
            },
            margin_ticks: newest.map(|newest| i64::from(newest.0) - i64::from(next.0)),
            round_trip: peer.link.rtt(),
            lasts: self.clock.now.saturating_sub(peer.since),
        }
    }

    /// Takes the next output. After each `handle` and `advance`, call it until it returns `None`.
    pub fn poll(&mut self) -> Option<Output<'_, S::Outcome>> {
        self.outbox.poll()
    }
}

/// A resumed match, and how to continue its journal.
pub struct Resumed<S: Simulation> {
    /// The match.
    pub match_: Match<S>,
    /// The length to which the journal must be truncated before output is appended: an incomplete record may follow it.
    pub keep_bytes: u64,
}

pub(super) struct Origin {
    pub(super) hello: Hello,
    pub(super) start: Option<Start>,
    /// For a resumed or loaded match: the command delay in its configuration. The journal's may differ.
    pub(super) asked_delay: Option<u8>,
    // The message with the rules, made when first needed; `None` if they are too large to be sent.
    pub(super) packed_rules: OnceLock<Option<Arc<[u8]>>>,
}

/// The first world of a match, which clients may also have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) tick: Tick,
    pub(super) cadence: Cadence,
    pub(super) digest: u32,
}

impl Start {
    pub(super) fn of<S: Simulation>(world: &World<S>) -> Result<Start, DigestError> {
        Ok(Start {
            tick: world.tick(),
            cadence: world.turn().cadence,
            digest: digest::digest(world.sim())? as u32,
        })
    }

    /// Like [`of`](Start::of), for a journal's first world. Returns `None` if the world has players or was changed.
    pub(super) fn of_empty<S: Simulation>(world: &World<S>) -> Option<Start> {
        let fresh = World::new(world.sim().clone(), world.tick());
        let is_fresh = world.digest().ok()? == fresh.digest().ok()?
            && (world.turn().number, world.turn().began) == (0, world.tick());
        is_fresh.then(|| Start::of(world).ok()).flatten()
    }
}

/// The state of a match that waits for its players, until its first tick.
pub(super) struct Gathering {
    // The lobby as last shown; `number` is its version.
    pub(super) shown: Lobby,
    pub(super) number: u32,
    pub(super) keeps_journal: bool,
    // When the match was started. Since then, the guests load their worlds.
    pub(super) started: Option<Duration>,
}

impl Gathering {
    // `None` if the match starts immediately.
    pub(super) fn of(config: &MatchConfig, hello: &Hello) -> Option<Gathering> {
        let names = |identities: &[String]| identities.iter().map(|name| Name::new(name)).collect();
        let start = match &config.start_when {
            StartWhen::Immediately => return None,
            StartWhen::Players(players) => StartCondition::Players(*players as u8),
            StartWhen::Identities(identities) => StartCondition::Identities(names(identities)),
            StartWhen::HostSays => StartCondition::HostSays,
        };
        Some(Gathering {
            shown: Lobby::new(1, hello.rules, start),
            number: 1,
            keeps_journal: false,
            started: None,
        })
    }
}
