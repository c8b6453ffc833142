//! A match: the state machine that seals inputs into turns. No clock, socket or thread in it.
//!
//! ```text
//!  handle(now, peer, bytes)          advance(now)                          poll()
//!  ────────────────────────▶ seats ─────────────────────────────────────▶ outputs, in order
//!    inputs, commands, claims    for each tick whose deadline has come:
//!                                collect → seal → step at once → resolve
//!                                → (turn full) journal → send
//! ```
//!
//! Outcomes of tick t ride with the inputs of t + 1, so a query adds no latency. Law **One door**: the
//! server's own simulation is stepped by the sealed frame and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    ACK_CLOSE_AFTER, ACK_SLOW_AFTER, JOIN_TIME_MAX, JOINS_AT_ONCE, KEEP_ALIVE, PLAYERS_MAX,
    REPORT_BYTES_MAX, SEATS_MAX,
};
use twinstep_core::codec;
use twinstep_core::digest::NanError;
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::packet::hello::{CloseCode, Hello, Welcome};
use twinstep_core::packet::{ByteCounts, down, message};
use twinstep_core::wire::Writer;
use twinstep_core::world::{Presence, Stepper, World};
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick};

use crate::config::{ConfigError, MatchConfig, TurnLength};
use crate::down::{Telling, tell_lane};
use crate::history::History;
use crate::hooks::{AdmitAll, Look, Referee, Resolution, Resolver};
use crate::journalist::Journalist;
use crate::outbox::{Item, JobId, Outbox, Output};
use crate::peer::{Peer, PeerId, Stage};
use crate::sealer::{Queries, Sealer};
use crate::seat::{Seat, SeatStats};
use crate::up::{self, Asked};

/// How late a deadline may be met before the match's clock gives way instead of hurrying after, in ticks.
const HURRY_TICKS: u32 = 8;
/// A dropped player's seat is freed after so many ticks (a minute at 60 Hz).
const LEAVE_AFTER_TICKS: u32 = 3_600;

/// A match that cannot be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A policy out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The rules or the state hold a NaN.
    #[error("the game cannot be digested: {0}")]
    Nan(#[from] NanError),
    /// The journal refuses its beginning.
    #[error("the journal cannot be started: {0}")]
    Journal(#[from] twinstep_core::journal::WriteError),
}

/// What a match has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchStats {
    /// Turns sent.
    pub turns: u64,
    /// Queries asked.
    pub queries: u64,
    /// Outcomes decided (`None`s not counted).
    pub outcomes: u64,
    /// Queries that stayed without an answer.
    pub unanswered: u64,
    /// Clients whose authority differed from the server's.
    pub desyncs: u64,
    /// Worlds sent to heal.
    pub heals: u64,
    /// Packets that could not be read.
    pub malformed: u64,
    /// Panics of the step or a hook that were caught.
    pub panics: u64,
    /// By how much the match's clock gave way, because it was not advanced in time.
    pub slipped: Duration,
}

/// A client's word on where its state differed, as it came (escaped and bounded by the client; not
/// trusted).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whose word.
    pub peer: PeerId,
    /// Its text.
    pub text: String,
}

/// One running match.
pub struct Match<S: Simulation> {
    config: MatchConfig,
    hello: Hello,
    rules: Arc<S::Rules>,
    world: World<S>,
    stepper: Stepper<S>,
    history: History<S>,
    seats: Vec<Seat<S>>,
    identities: Vec<(String, PlayerId)>,
    peers: Vec<Peer>,
    sealer: Sealer<S>,
    queries: Queries<S>,
    resolver: Box<dyn Resolver<S>>,
    referee: Box<dyn Referee<S>>,
    journalist: Option<Journalist<S>>,
    outbox: Outbox<S::Outcome>,
    /// When tick `config.start` began.
    epoch: Option<Duration>,
    now: Duration,
    digest: u64,
    views: [Tick; PLAYERS_MAX],
    snapshot: Option<(Tick, Arc<[u8]>)>,
    frame: FrameData<S>,
    scratch: [FrameData<S>; 2],
    reports: Vec<Report>,
    closed: Option<CloseCode>,
    stats: MatchStats,
}

impl<S: Simulation> Match<S> {
    /// A match that begins from `sim` with nobody in it. Nothing happens before the first
    /// [`advance`](Match::advance).
    ///
    /// # Errors
    /// A configuration out of range, or a state or rules with a NaN in them.
    pub fn new(
        config: MatchConfig,
        sim: S,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<Self, StartError> {
        config.check()?;
        let hello = Hello::of::<S>(&rules, &config.build)?;
        let world = World::new(sim, config.start);
        let digest = world.digest()?;
        let mut history = History::new(config.start);
        history.keep_world(&world);
        Ok(Match {
            hello,
            rules,
            stepper: Stepper::default(),
            history,
            seats: (0..config.players_max).map(|_| Seat::new()).collect(),
            identities: Vec::new(),
            peers: Vec::new(),
            sealer: Sealer::default(),
            queries: Queries::default(),
            resolver: Box::new(resolver),
            referee: Box::new(AdmitAll),
            journalist: None,
            outbox: Outbox::new(),
            epoch: None,
            now: Duration::ZERO,
            digest,
            views: [Tick(0); PLAYERS_MAX],
            snapshot: None,
            frame: FrameData::roomy(config.start),
            scratch: [
                FrameData::roomy(config.start),
                FrameData::roomy(config.start),
            ],
            reports: Vec::new(),
            closed: None,
            stats: MatchStats::default(),
            world,
            config,
        })
    }

    /// Sets who admits commands and claims; without it, all within the bounds are.
    pub fn set_referee(&mut self, referee: impl Referee<S>) {
        self.referee = Box::new(referee);
    }

    /// Keeps a journal from here on; its bytes come out of [`poll`](Match::poll).
    ///
    /// # Errors
    /// Names too long for a journal's head.
    pub fn keep_journal(&mut self) -> Result<(), StartError> {
        let start = self.outbox.bytes.len();
        let journalist = Journalist::start(
            &self.hello,
            self.config.unix_time,
            &self.world,
            &mut self.outbox.bytes,
        )?;
        self.outbox
            .push(Item::Journal(start..self.outbox.bytes.len()));
        self.journalist = Some(journalist);
        Ok(())
    }

    // -- getters ----------------------------------------------------------------------------------

    /// The server's world: its tick is the next to be sealed.
    #[must_use]
    pub fn world(&self) -> &World<S> {
        &self.world
    }

    /// The digest of the world.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The digest of the world before `tick`, for the last 30 s.
    #[must_use]
    pub fn digest_at(&self, tick: Tick) -> Option<u64> {
        if tick == self.world.tick() {
            Some(self.digest)
        } else {
            self.history.digest(tick)
        }
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> MatchStats {
        self.stats
    }

    /// Counters of a player.
    #[must_use]
    pub fn seat_stats(&self, player: PlayerId) -> SeatStats {
        self.seats
            .get(player.index())
            .map(|seat| seat.stats)
            .unwrap_or_default()
    }

    /// Bytes sent to a session, with all headers, by kind.
    #[must_use]
    pub fn bytes_down(&self, peer: PeerId) -> Option<ByteCounts> {
        self.peers
            .iter()
            .find(|p| p.id == peer)
            .map(|p| p.bytes_down)
    }

    /// The players of a session.
    #[must_use]
    pub fn players_of(&self, peer: PeerId) -> PlayerSet {
        self.peers
            .iter()
            .find(|p| p.id == peer)
            .map(Peer::own)
            .unwrap_or_default()
    }

    /// How far a session has come; `None`: there is no such session.
    #[must_use]
    pub fn stage(&self, peer: PeerId) -> Option<Stage> {
        self.peers.iter().find(|p| p.id == peer).map(|p| p.stage)
    }

    /// By how many ticks a session's authority trails the server, as its client tells (seed row 45).
    #[must_use]
    pub fn lag(&self, peer: PeerId) -> Option<u32> {
        self.peers
            .iter()
            .find(|p| p.id == peer)
            .map(|p| self.world.tick() - p.view)
    }

    /// Sessions, whatever their stage.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.peers.len()
    }

    /// Whether the match is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// When [`advance`](Match::advance) has something to do next.
    #[must_use]
    pub fn next_due(&self) -> Duration {
        match self.epoch {
            Some(epoch) => self.deadline(epoch, self.world.tick()),
            None => self.now,
        }
    }

    /// Takes the desync reports that clients sent since the last call.
    pub fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    // -- sessions ---------------------------------------------------------------------------------

    /// A session of `seats` local players begins. The same identity gets the same players as before, and
    /// takes them over from a session that still holds them.
    ///
    /// # Errors
    /// Why not; nothing was changed then.
    pub fn connect(
        &mut self,
        now: Duration,
        peer: PeerId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        if let Some(code) = self.closed {
            return Err(code);
        }
        let players = self.assign(identity, seats)?;
        if let Some(at) = self.peers.iter().position(|p| p.identity == identity) {
            self.close_peer(at, CloseCode::TakenOver);
        }
        for player in &players {
            self.seats[player.index()].purge();
            if !self.identities.iter().any(|(_, p)| p == player) {
                self.identities.push((identity.to_owned(), *player));
                self.journal(|journalist, out| journalist.seat(*player, identity, out));
            }
        }
        self.peers
            .push(Peer::new(peer, identity.to_owned(), players, now));
        Ok(())
    }

    /// Writes down that a ticket was used, before its session is let in: it must never work again.
    pub fn note_ticket(&mut self, ticket: u64, identity: &str) {
        self.journal(|journalist, out| journalist.ticket(ticket, identity, out));
    }

    /// The players of an identity: those it had, or free ones.
    fn assign(
        &self,
        identity: &str,
        seats: usize,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        let seats = seats.clamp(1, SEATS_MAX);
        let known = self
            .identities
            .iter()
            .filter(|(name, _)| name == identity)
            .map(|(_, p)| *p);
        let mut players: ArrayVec<PlayerId, SEATS_MAX> = known.take(seats).collect();
        let free = (0..self.seats.len() as u8).map(PlayerId);
        let free = free.filter(|p| self.identities.iter().all(|(_, taken)| taken != p));
        players.extend(free.take(seats - players.len()));
        if players.len() < seats {
            Err(CloseCode::Full)
        } else {
            Ok(players)
        }
    }

    /// The transport of a session is gone. Its players keep their seats until they are dropped.
    pub fn disconnect(&mut self, peer: PeerId) {
        self.peers.retain(|p| p.id != peer);
    }

    /// A session is to end: it is told why, and its players leave.
    pub fn kick(&mut self, peer: PeerId, code: CloseCode) {
        if let Some(at) = self.peers.iter().position(|p| p.id == peer) {
            self.leave(at, code);
        }
    }

    /// Ends the match: everybody is told why, and the journal is closed.
    pub fn close(&mut self, code: CloseCode) {
        if self.closed.is_some() {
            return;
        }
        while !self.peers.is_empty() {
            self.close_peer(0, code);
        }
        self.journal(|journalist, out| journalist.end(&code.to_string(), out));
        self.closed = Some(code);
    }

    fn leave(&mut self, at: usize, code: CloseCode) {
        for player in self.peers[at].players.clone() {
            self.seats[player.index()].purge();
            self.sealer.change(player, RosterChange::Left);
            self.identities.retain(|(_, p)| *p != player);
        }
        self.close_peer(at, code);
    }

    fn close_peer(&mut self, at: usize, code: CloseCode) {
        let peer = self.peers.remove(at);
        // Said a few times, because nobody will be there to say it again.
        for _ in 0..3 {
            self.outbox.packet(peer.id, 16, |buffer| {
                let mut packet = Writer::new(buffer);
                packet
                    .u8(down::CLOSED)
                    .and_then(|()| packet.value(&code))
                    .ok()?;
                Some(packet.len())
            });
        }
        self.outbox.push(Item::Closed(peer.id, code));
    }

    // -- packets ----------------------------------------------------------------------------------

    /// Takes a packet of a session. A packet of an unknown session is ignored; one that breaks the
    /// protocol is counted, and closes the session when there are too many.
    pub fn handle(&mut self, now: Duration, peer: PeerId, bytes: &[u8]) {
        self.now = self.now.max(now);
        let Some(at) = self.peers.iter().position(|p| p.id == peer) else {
            return;
        };
        let next = self.world.tick();
        match up::read(&mut self.peers[at], &mut self.seats, next, now, bytes) {
            Ok(Asked::Nothing) => {}
            Ok(Asked::Join(hello)) => self.join(now, at, &hello),
            Ok(Asked::Leave) => self.leave(at, CloseCode::Left),
            Ok(Asked::Heal(tick)) => self.heal(now, at, tick),
            Ok(Asked::Evidence(tick)) => self.show_evidence(at, tick),
            Err(_) => {
                self.stats.malformed += 1;
                if self.peers[at].strike(now) {
                    self.leave(at, CloseCode::Strikes);
                    return;
                }
            }
        }
        let Some(peer) = self.peers.iter_mut().find(|p| p.id == peer) else {
            return;
        };
        for player in &peer.players {
            self.views[player.index()] = peer.view;
        }
        while let Ok(Some(told)) = peer.lane_in.poll_message() {
            let text: String = String::from_utf8_lossy(&told.bytes)
                .chars()
                .filter(|c| !c.is_control() || *c == '\n')
                .collect();
            if told.kind == message::REPORT
                && told.bytes.len() <= REPORT_BYTES_MAX
                && self.reports.len() < 16
            {
                self.reports.push(Report {
                    peer: peer.id,
                    text,
                });
            }
        }
    }

    fn join(&mut self, now: Duration, at: usize, hello: &Hello) {
        if let Some(code) = self.hello.refusal(hello) {
            return self.leave_unseated(at, code);
        }
        let loading = self
            .peers
            .iter()
            .filter(|p| p.stage == Stage::Loading)
            .count();
        if loading >= JOINS_AT_ONCE {
            return; // The client repeats its hello.
        }
        let world = self.snapshot();
        let TurnLength::Fixed(turn_ticks) = self.config.turn;
        let peer = &mut self.peers[at];
        let welcome = Welcome {
            seats: peer.players.clone(),
            next_seq: peer
                .players
                .iter()
                .map(|p| self.seats[p.index()].next_seq)
                .collect(),
            tick_us: self.config.tick.as_nanos().div_ceil(1_000) as u32,
            turn_ticks,
            delay_ticks: self.config.delay_ticks,
        };
        let mut bytes = Vec::new();
        let told = codec::append(&welcome, &mut bytes).is_ok()
            && peer.lane_out.push(message::WELCOME, bytes.into()).is_ok()
            && peer.lane_out.push(message::WORLD, world).is_ok();
        if told {
            peer.enter(Stage::Loading, now);
            peer.wanted = self.world.tick();
            peer.view = self.world.tick();
        }
    }

    /// Closes a session that never came so far as to have players.
    fn leave_unseated(&mut self, at: usize, code: CloseCode) {
        for player in self.peers[at].players.clone() {
            if self.world.presence(player) == Presence::Absent {
                self.identities.retain(|(_, p)| *p != player);
            }
        }
        self.close_peer(at, code);
    }

    /// The current world as bytes, made once for all that ask at this tick.
    fn snapshot(&mut self) -> Arc<[u8]> {
        let tick = self.world.tick();
        if let Some((at, bytes)) = &self.snapshot
            && *at == tick
        {
            return bytes.clone();
        }
        let mut bytes = Vec::new();
        codec::append(&self.world, &mut bytes).expect("a world of at most 8 MiB");
        let bytes: Arc<[u8]> = bytes.into();
        self.snapshot = Some((tick, bytes.clone()));
        bytes
    }

    /// A client says that it differs at `tick`: its digest is trusted for nothing but this.
    fn heal(&mut self, now: Duration, at: usize, tick: Tick) {
        let evidence = self.history.world(tick).and_then(|world| {
            let mut bytes = Vec::new();
            codec::append(world, &mut bytes).ok()?;
            Some((tick, Arc::from(bytes)))
        });
        if self.send_world(now, at) {
            self.stats.desyncs += 1;
            self.peers[at].evidence = evidence;
        }
    }

    /// Sends the current world to a client that cannot go on from frames, if it may have one now.
    fn send_world(&mut self, now: Duration, at: usize) -> bool {
        if !self.peers[at].lane_out.is_idle() {
            return false; // On its way.
        }
        match self.peers[at].may_heal(now) {
            Some(true) => {}
            Some(false) => return false,
            None => {
                self.leave(at, CloseCode::Desync);
                return false;
            }
        }
        self.stats.heals += 1;
        let world = self.snapshot();
        self.peers[at].lane_out.push(message::HEAL, world).is_ok()
    }

    fn show_evidence(&mut self, at: usize, tick: Tick) {
        let peer = &mut self.peers[at];
        if let Some((kept, world)) = peer.evidence.take_if(|(kept, _)| *kept == tick) {
            debug_assert_eq!(kept, tick);
            let _ = peer.lane_out.push(message::EVIDENCE, world);
        }
    }

    /// What a job of the resolver returned; `None`: it failed. Late answers are ignored.
    pub fn complete(&mut self, job: JobId, outcome: Option<S::Outcome>) {
        self.queries.complete(job, outcome);
    }

    // -- time -------------------------------------------------------------------------------------

    /// Does all that is due by `now`: seals ticks, journals and sends turns, serves lanes, closes what
    /// does not answer. If it is called late, a few ticks are hurried after; beyond these the match's
    /// clock gives way.
    pub fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if self.closed.is_some() {
            return;
        }
        let epoch = *self.epoch.get_or_insert(now);
        let due = self.deadline(epoch, self.world.tick());
        let slack = self.config.tick * HURRY_TICKS;
        if now > due + slack {
            let slip = now - due;
            self.epoch = Some(epoch + slip);
            self.stats.slipped += slip;
        }
        while self.closed.is_none() && now >= self.next_due() {
            self.tick();
        }
        for peer in &mut self.peers {
            tell_lane(peer, now, &mut self.outbox);
        }
        self.look_after_peers(now);
    }

    fn deadline(&self, epoch: Duration, tick: Tick) -> Duration {
        epoch + self.config.tick * (tick - self.config.start + 1)
    }

    fn turn_ticks(&self) -> u32 {
        let TurnLength::Fixed(ticks) = self.config.turn;
        u32::from(ticks)
    }

    /// Seals and steps one tick, resolves what it asked, and at a turn's end journals and sends.
    fn tick(&mut self) {
        let tick = self.world.tick();
        self.note_silence();
        let look = Look {
            world: &self.world,
            rules: &self.rules,
            history: &self.history,
            views: &self.views,
        };
        self.sealer.seal(
            &mut self.frame,
            &look,
            &mut self.seats,
            &mut self.queries,
            &mut *self.referee,
            &self.config,
        );
        let stepped = self.step();
        for refused in self.sealer.refused.drain(..) {
            let owner = self
                .peers
                .iter_mut()
                .find(|p| p.players.contains(&refused.player));
            if let Some(peer) = owner {
                peer.refuse(refused.player, refused.claim, refused.seq);
            }
        }
        if stepped.is_err() {
            return self.close(CloseCode::Fault);
        }
        self.history.keep_frame(&self.frame, self.digest);
        self.history.keep_world(&self.world);
        match self.world.digest() {
            Ok(digest) => self.digest = digest,
            Err(_) => return self.close(CloseCode::Fault),
        }
        if let Some(journalist) = &mut self.journalist {
            journalist.frame(&self.frame);
        }
        self.count_frame();
        self.resolve(tick);
        if (self.world.tick() - self.config.start).is_multiple_of(self.turn_ticks()) {
            self.end_turn();
        }
    }

    /// Steps the sealed frame. A panic is caught before anyone saw the frame: the tick is sealed again
    /// without commands and claims; a second panic is the game's own, and ends the match.
    fn step(&mut self) -> Result<(), ()> {
        for attempt in 0..2 {
            let (stepper, world) = (&mut self.stepper, &mut self.world);
            let perspective = Perspective::authority(world.tick());
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                let nobody = PlayerSet::default();
                if let Err(error) =
                    stepper.step(world, &self.frame, &self.rules, perspective, nobody)
                {
                    panic!("the sealer made a frame that does not fit: {error}");
                }
            }));
            if stepped.is_ok() {
                return Ok(());
            }
            self.stats.panics += 1;
            let Some(before) = self.history.world(self.frame.tick) else {
                return Err(());
            };
            self.world.clone_from(before);
            if attempt == 0 {
                self.sealer.strip(&mut self.frame, &mut self.seats);
            }
        }
        Err(())
    }

    fn count_frame(&mut self) {
        for player in self.frame.filled.iter() {
            self.seats[player.index()].stats.fills += 1;
        }
        for answer in &self.frame.outcomes {
            let count = if answer.outcome.is_some() {
                &mut self.stats.outcomes
            } else {
                &mut self.stats.unanswered
            };
            *count += 1;
        }
    }

    /// Asks the resolver what the step of `tick` asked.
    fn resolve(&mut self, tick: Tick) {
        let look = Look {
            world: &self.world,
            rules: &self.rules,
            history: &self.history,
            views: &self.views,
        };
        for open in self
            .world
            .open_queries()
            .iter()
            .filter(|open| open.asked == tick)
        {
            self.stats.queries += 1;
            let resolver = &mut self.resolver;
            let resolved = catch_unwind(AssertUnwindSafe(|| {
                resolver.resolve(&look, open.key, &open.query)
            }));
            match resolved {
                Ok(Resolution::Now(outcome)) => {
                    self.queries.answer(open.asked, open.key, Some(outcome))
                }
                Ok(Resolution::Later(work)) => {
                    let id = self.queries.defer(open.asked, open.key);
                    self.outbox.push(Item::Job(id, work));
                }
                Err(_) => {
                    self.stats.panics += 1;
                    self.queries.answer(open.asked, open.key, None);
                }
            }
        }
    }

    /// The turn is full: the journal first, then everybody hears of it.
    fn end_turn(&mut self) {
        self.stats.turns += 1;
        let (world, digest) = (&self.world, self.digest);
        if let Some(journalist) = &mut self.journalist {
            let start = self.outbox.bytes.len();
            journalist
                .turn(world, digest, &mut self.outbox.bytes)
                .expect("a turn within its bounds");
            self.outbox
                .push(Item::Journal(start..self.outbox.bytes.len()));
        }
        let now = self.now;
        let turn_ticks = self.turn_ticks();
        let [before, frame] = &mut self.scratch;
        let mut telling = Telling {
            now,
            next: self.world.tick(),
            start: self.config.start,
            turn_ticks,
            announce: self.config.announce,
            history: &self.history,
            seats: &self.seats,
            before,
            frame,
        };
        for peer in &mut self.peers {
            let slow = now.saturating_sub(peer.progress_at) > ACK_SLOW_AFTER;
            let due = !slow || now.saturating_sub(peer.sent_at) >= KEEP_ALIVE;
            if matches!(peer.stage, Stage::CatchingUp | Stage::Playing) && due {
                telling.tell(peer, &mut self.outbox);
            }
        }
    }

    /// Drops players of whom nothing is heard, brings them back when they speak, frees their seats.
    fn note_silence(&mut self) {
        let next = self.world.tick();
        for (i, seat) in self.seats.iter_mut().enumerate() {
            let player = PlayerId(i as u8);
            let session = self
                .peers
                .iter()
                .any(|p| p.stage == Stage::Playing && p.players.contains(&player));
            let speaks = session && seat.input(next).is_some();
            if let Some(change) =
                self.sealer
                    .silence(self.world.presence(player), seat, next, speaks)
            {
                self.sealer.change(player, change);
                seat.changed = Some(next);
            }
            if self.world.presence(player) == Presence::Dropped
                && next - seat.given > LEAVE_AFTER_TICKS
                && !self.peers.iter().any(|p| p.players.contains(&player))
            {
                self.sealer.change(player, RosterChange::Left);
                seat.purge();
                self.identities.retain(|(_, p)| *p != player);
            }
        }
    }

    /// Lets joiners in who caught up; closes sessions that take too long or do not answer.
    fn look_after_peers(&mut self, now: Duration) {
        let next = self.world.tick();
        let oldest = self.history.first();
        let turn_ticks = self.turn_ticks();
        let mut at = 0;
        while at < self.peers.len() {
            let peer = &mut self.peers[at];
            let rtt_ticks =
                peer.link.rtt().unwrap_or_default().as_secs_f64() / self.config.tick.as_secs_f64();
            let near = 2 * turn_ticks + 6 + rtt_ticks.ceil() as u32;
            let waited = now.saturating_sub(peer.since);
            let stuck = now.saturating_sub(peer.progress_at) > ACK_CLOSE_AFTER;
            let verdict = match peer.stage {
                Stage::Greeting | Stage::Loading => {
                    (waited > JOIN_TIME_MAX).then_some(CloseCode::JoinTooSlow)
                }
                Stage::CatchingUp if waited > JOIN_TIME_MAX => Some(CloseCode::JoinTooSlow),
                Stage::CatchingUp if next - peer.wanted <= near => {
                    peer.enter(Stage::Playing, now);
                    for player in peer.players.clone() {
                        let seat = &mut self.seats[player.index()];
                        seat.given = next;
                        if self.world.presence(player) == Presence::Absent {
                            self.sealer.change(player, RosterChange::Joined);
                            seat.changed = Some(next);
                        }
                    }
                    None
                }
                Stage::CatchingUp => None,
                Stage::Playing => stuck.then_some(CloseCode::NoAcks),
            };
            let (id, behind) = (self.peers[at].id, self.peers[at].wanted < oldest);
            if behind && self.peers[at].stage == Stage::Playing {
                // Farther behind than the frames that are kept: only a world helps.
                self.send_world(now, at);
            }
            if self.peers.get(at).map(|p| p.id) != Some(id) {
                continue; // Healed too often: it is gone.
            }
            match verdict {
                Some(code @ CloseCode::NoAcks) => self.close_peer(at, code),
                Some(code) => self.leave_unseated(at, code),
                None => at += 1,
            }
        }
    }

    /// The next thing to do, in order; `None`: all is done. Drain after each `handle` and `advance`.
    pub fn poll(&mut self) -> Option<Output<'_, S::Outcome>> {
        self.outbox.poll()
    }

    fn journal(
        &mut self,
        write: impl FnOnce(
            &mut Journalist<S>,
            &mut Vec<u8>,
        ) -> Result<(), twinstep_core::journal::WriteError>,
    ) {
        let Some(journalist) = &mut self.journalist else {
            return;
        };
        let start = self.outbox.bytes.len();
        match write(journalist, &mut self.outbox.bytes) {
            Ok(()) => self
                .outbox
                .push(Item::Journal(start..self.outbox.bytes.len())),
            Err(_) => self.outbox.bytes.truncate(start),
        }
    }
}
