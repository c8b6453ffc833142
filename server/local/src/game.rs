//! [`LocalGame`]: a running local match.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, NoPicture, Session, SessionConfig, Show};
use twinstep_core::Simulation;
use twinstep_core::bounds::{PACKET_BYTES_MAX, SEATS_MAX};
use twinstep_server::config::ConfigError;
use twinstep_server::internal::panic_message;
use twinstep_server::{Incident, Match, MatchRequest, Output, SaveWriteError, SessionId};

use super::clock::{LocalClock, TimeScaleError};
use super::errors::{LocalGameEnd, LocalStartError};

/// The maximum number of ticks that a join may take. It usually takes a few; a world download takes more.
const JOIN_TICKS_MAX: u32 = 600;

/// The number of parts of a tick. In lockstep, time advances by one part at a time while a client joins. A lockstep
/// step first advances by a whole tick; if the match has not sealed one, it adds up to [`STEP_PARTS_MAX`] parts.
const STEP_PARTS: u32 = 8;
const STEP_PARTS_MAX: u32 = 64;

struct LocalClient<S: Simulation, V: Show<S>> {
    peer: SessionId,
    session: Session<S, V>,
    has_left: bool,
}

/// The match. The lock makes the game `Sync`, although the author's hooks need only be `Send`; it is never contended.
struct HeldMatch<S: Simulation>(Mutex<Match<S>>);

impl<S: Simulation> HeldMatch<S> {
    fn get(&mut self) -> &mut Match<S> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running match in this process: see [`Local`](super::Local), which starts it.
///
/// Clients are numbered from 0, in the order of joining. A game is `Send + Sync`, so it can be an engine's resource.
pub struct LocalGame<S: Simulation, V: Show<S> = NoPicture> {
    server: HeldMatch<S>,
    clients: Vec<LocalClient<S, V>>,
    clock: LocalClock,
    time: Duration,
    ended: Option<LocalGameEnd>,
    saved: Option<Vec<u8>>,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
}

impl<S: Simulation, V: Show<S>> LocalGame<S, V> {
    pub(super) fn of(mut server: Match<S>) -> Self {
        server.offer_saves();
        LocalGame {
            server: HeldMatch(Mutex::new(server)),
            clients: Vec::new(),
            clock: LocalClock::new(),
            time: Duration::ZERO,
            ended: None,
            saved: None,
            buffer: Box::new([0; PACKET_BYTES_MAX]),
        }
    }

    /// Adds a client with `seats` players, 1..=4, and returns its number. When this returns, the client is in the
    /// match, even if the game is paused. The join takes a few ticks, during which all players have neutral input. If
    /// this matters, let clients join before the game starts. Several clients in one process are for tests and split
    /// screens; players that share one view are seats of one client.
    ///
    /// # Errors
    /// [`LocalStartError`] if `seats` is out of range, the match refuses the client or its rules, or the game is over.
    pub fn join(
        &mut self,
        config: SessionConfig<S, V>,
        seats: usize,
    ) -> Result<usize, LocalStartError> {
        if !(1..=SEATS_MAX).contains(&seats) {
            return Err(LocalStartError::Seats(seats));
        }
        if let Some(ended) = &self.ended {
            return Err(ended.clone().into());
        }
        let session = Session::new(config)?;
        let client = self.clients.len();
        let peer = SessionId(client as u64);
        let joined = self
            .server
            .get()
            .connect(self.time, peer, &format!("local-{client}"), seats);
        joined.map_err(LocalStartError::Refused)?;
        self.clients.push(LocalClient {
            peer,
            session,
            has_left: false,
        });
        // In lockstep a new player joins once its batches come in time. With whole ticks, they never would.
        let parts = match self.server.get().config().command_delay {
            0 => 1,
            _ => STEP_PARTS,
        };
        for _ in 0..JOIN_TICKS_MAX * parts {
            if self.is_in(client) {
                return Ok(client);
            }
            let part = self.tick() / parts;
            if let Err(ended) = self.run(part, &mut |_, _| S::Input::default()) {
                let is_new = |failed| failed == client && client > 0;
                if matches!(ended, LocalGameEnd::Session { client, .. } if is_new(client)) {
                    // The match refused only the new client: the others continue.
                    self.ended = None;
                    self.clients.truncate(client);
                    self.server.get().disconnect(peer);
                }
                return Err(ended.into());
            }
        }
        Err(LocalStartError::Stuck(JOIN_TICKS_MAX))
    }

    /// Advances the match to `now`. Call this once per drawn frame. `now` is any time that never goes back, as for
    /// `Client::advance_at`; the first call sets its origin. `input` is called with (client, seat) for each player once
    /// per tick, so it is not called in a frame without a tick. At most 250 ms of a long frame are played. A paused
    /// game does not advance.
    ///
    /// # Errors
    /// If the game is over; the error is the reason, and every later call returns it again. A panic in the game's own
    /// code on either side also ends the game.
    pub fn advance_at(
        &mut self,
        now: Duration,
        mut input: impl FnMut(usize, usize) -> S::Input,
    ) -> Result<(), LocalGameEnd> {
        let passed = self.clock.pass(now);
        match &self.ended {
            Some(ended) => Err(ended.clone()),
            None if self.clock.paused => Ok(()),
            None => self.run(passed, &mut input),
        }
    }

    /// Plays exactly one tick, and leaves the game paused. Useful for tests, and for inspecting a game tick by tick.
    /// The match seals one tick, and each client confirms and predicts one. (In lockstep a client may show the tick a
    /// tick or two later; if the configuration has turns of several ticks, clients confirm a whole turn at a time.)
    ///
    /// # Errors
    /// The errors of [`advance_at`](LocalGame::advance_at).
    pub fn step(
        &mut self,
        mut input: impl FnMut(usize, usize) -> S::Input,
    ) -> Result<(), LocalGameEnd> {
        self.pause();
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        let before = self.server.get().world().tick();
        let tick = self.tick();
        self.run(tick, &mut input)?;
        // In lockstep the match may have waited for a client's clock, which takes a few seconds to settle.
        for _ in 0..STEP_PARTS_MAX {
            if self.server.get().world().tick() > before {
                break;
            }
            self.run(tick / STEP_PARTS, &mut input)?;
        }
        Ok(())
    }

    /// Pauses the game: no tick, input or cue until [`resume`](LocalGame::resume), [`step`](LocalGame::step) or a join.
    /// The picture does not change. Commands given during the pause run afterwards.
    pub fn pause(&mut self) {
        self.clock.paused = true;
    }

    /// Resumes the game at the tick where it paused.
    pub fn resume(&mut self) {
        self.clock.paused = false;
    }

    /// Returns `true` if the game is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.clock.paused
    }

    /// The match's speed relative to the caller's clock, as [set](LocalGame::set_time_scale); 1 by default.
    #[must_use]
    pub fn time_scale(&self) -> f64 {
        self.clock.scale()
    }

    /// Sets the match's speed, within [`TIME_SCALES`](super::TIME_SCALES): 0.25 is slow motion, 4 is fast forward.
    /// Ticks become rarer or more frequent; their content does not change.
    ///
    /// # Errors
    /// If the scale is out of range or NaN. In that case, the speed does not change.
    pub fn set_time_scale(&mut self, scale: f64) -> Result<(), TimeScaleError> {
        self.clock.set_scale(scale)
    }

    /// The played match time.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The number of clients that have joined, including those that left.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// A client's session: prediction, authority, picture, statistics.
    ///
    /// # Panics
    /// If no client has this number.
    #[must_use]
    pub fn session(&self, client: usize) -> &Session<S, V> {
        &self.clients[client].session
    }

    /// A client's session, to poll cues and events and to give commands.
    ///
    /// # Panics
    /// If no client has this number.
    pub fn session_mut(&mut self, client: usize) -> &mut Session<S, V> {
        &mut self.clients[client].session
    }

    /// The match as on a server, with its world, digest and counters.
    #[must_use]
    pub fn server(&mut self) -> &Match<S> {
        self.server.get()
    }

    /// Makes a request as the host of the match: see [`Match::request`]. Players use [`Session::request`], and the
    /// match's referee decides.
    ///
    /// # Errors
    /// The errors of [`Match::request`].
    pub fn request(&mut self, request: MatchRequest) -> Result<(), ConfigError> {
        self.server.get().request(request)
    }

    /// Saves the game: the bytes for [`Local::load`](super::Local::load), and for a server's [`Match::load`]. With
    /// one-tick turns, the save holds the current state.
    ///
    /// # Errors
    /// If the world exceeds 8 MB, or its [label](Simulation::save_label) 256 bytes.
    pub fn save(&self) -> Result<Vec<u8>, SaveWriteError> {
        let server = self.server.0.lock();
        server.unwrap_or_else(PoisonError::into_inner).save()
    }

    /// Takes the newest save that was [requested](MatchRequest::Save), if there is one. Each save has the bytes of
    /// [`save`](LocalGame::save).
    pub fn take_save(&mut self) -> Option<Vec<u8>> {
        self.saved.take()
    }

    /// Takes the incidents that the match has survived since the last call, for example a panic in a hook. An incident
    /// that ends the match is an error of [`advance_at`](LocalGame::advance_at) instead.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        self.server.get().take_incidents()
    }

    /// Lets a client leave: its players leave with the next tick, and the others continue. When all clients have left,
    /// the game is over.
    ///
    /// # Panics
    /// If no client has this number.
    pub fn leave(&mut self, client: usize) {
        let leaver = &mut self.clients[client];
        leaver.has_left = true;
        leaver.session.leave();
        self.hand_up(client);
        if self.clients.iter().all(|client| client.has_left) {
            self.ended.get_or_insert(LocalGameEnd::Deserted);
        }
    }

    fn tick(&mut self) -> Duration {
        self.server.get().world().turn().cadence.tick()
    }

    /// Returns `true` if a client's players are in the match, or will be in it when a pause of the match ends.
    fn is_in(&mut self, client: usize) -> bool {
        let session = &self.clients[client].session;
        session.progress().is_none()
            && session.authority().is_some_and(|world| {
                let seats = session.seats();
                // A paused match admits no player before its next tick.
                let is_in = |player| world.present().contains(player);
                self.server.get().is_paused() || seats.iter().all(|player| is_in(*player))
            })
    }

    fn run(
        &mut self,
        passed: Duration,
        input: &mut dyn FnMut(usize, usize) -> S::Input,
    ) -> Result<(), LocalGameEnd> {
        // After a panic the game is over, so the inconsistent state is not used.
        let played = catch_unwind(AssertUnwindSafe(|| {
            let end = self.time + passed;
            loop {
                self.time = end.min(self.time + self.tick());
                self.serve()?;
                self.play(input)?;
                // In lockstep the match may have waited for these inputs.
                if !self.server.get().waiting().is_empty() {
                    self.serve()?;
                }
                if self.time == end {
                    return Ok(());
                }
            }
        }));
        let played = played.unwrap_or_else(|panic| {
            Err(LocalGameEnd::Panicked {
                tick: self.server.get().world().tick(),
                message: panic_message(&*panic).to_owned(),
            })
        });
        if let Err(ended) = &played {
            self.ended = Some(ended.clone());
        }
        played
    }

    fn serve(&mut self) -> Result<(), LocalGameEnd> {
        self.server.get().advance(self.time);
        self.hand_down();
        if !self.server.get().is_closed() {
            return Ok(());
        }
        let incidents = self.server.get().take_incidents();
        let fatal = incidents.iter().rev().find(|it| it.trouble.is_fatal());
        let incident = fatal.map_or_else(|| "it was closed".to_owned(), Incident::to_string);
        Err(LocalGameEnd::Match { incident })
    }

    /// Passes the match's packets to its clients, and runs its jobs and saves immediately.
    fn hand_down(&mut self) {
        while let Some(output) = self.server.get().poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    // All sessions of the match belong to clients of this game.
                    if let Some(client) = self.clients.get_mut(peer.0 as usize) {
                        client.session.handle(self.time, bytes);
                    }
                }
                Output::Job { id, work } => {
                    let outcome = catch_unwind(AssertUnwindSafe(work));
                    self.server.get().complete(id, outcome.ok());
                }
                Output::Save(saving) => {
                    let save = saving.run();
                    self.server.get().hand_saved(save.is_ok());
                    self.saved = save.ok().or(self.saved.take());
                }
                // There is no file and no ticket here, and an ending session reports its end itself.
                Output::Journal(_)
                | Output::Encode(_)
                | Output::Ticket { .. }
                | Output::Settled { .. }
                | Output::Unseated { .. }
                | Output::Outdated { .. }
                | Output::Evidence { .. }
                | Output::Closed { .. } => {}
            }
        }
    }

    fn play(
        &mut self,
        input: &mut dyn FnMut(usize, usize) -> S::Input,
    ) -> Result<(), LocalGameEnd> {
        for client in 0..self.clients.len() {
            let LocalClient {
                session, has_left, ..
            } = &mut self.clients[client];
            if *has_left {
                continue;
            }
            let played = session.advance(self.time, BUDGET_TICKS, |seat| input(client, seat));
            played.map_err(|closed| LocalGameEnd::Session { client, closed })?;
            // There is no other thread, so a background rebuild runs here immediately.
            if let Some(mut rebuild) = session.poll_rebuild() {
                rebuild.run();
                session.hand_back(rebuild);
            }
            self.hand_up(client);
        }
        Ok(())
    }

    fn hand_up(&mut self, client: usize) {
        let LocalClient { peer, session, .. } = &mut self.clients[client];
        while let Some(len) = session.poll_transmit(self.time, &mut *self.buffer) {
            self.server
                .get()
                .handle(self.time, *peer, &self.buffer[..len]);
        }
        self.hand_down();
    }
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<LocalGame<twinstep_core::testing::doc::Counter>>();
};
