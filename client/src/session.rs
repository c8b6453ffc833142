//! A client's session: the handshake, packets in both directions, and the match it plays ([`Stage`](self::stage)). It
//! has no clock and no socket.
//!
//! The loop of a game, for any transport:
//!
//! ```text
//! for each packet:  session.handle(now, packet)
//! session.advance(now, budget, |seat| pad)?        samples, confirms, predicts
//! while let Some(len) = session.poll_transmit(now, &mut buffer) { send(&buffer[..len]) }
//! while let Some(cue) = session.poll_cue() { play }
//! draw(session.shown())
//! ```
//!
//! A program that does not draw runs the same loop, and sleeps until [`session.next_due()`](Session::next_due) or the
//! next packet.

use std::time::Duration;

use download::WorldDownload;
use events::{Controls, Events};
use outages::Outages;
use playing::{Hooks, Mode};
use stage::{Antechamber, Joining, Returning, Stage};
use twinstep_core::bounds::{KEEP_ALIVE, LANE_UP_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::{Simulation, Tick, codec, digest};
use twinstep_protocol::lane::{LaneReceiver, LaneSender};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::{Hello, Holds};
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::play_down::PlayDown;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::MatchRequest;

use crate::match_status::MatchStatus;
use crate::outgoing::Outgoing;
use crate::picture::{NoPicture, Show};
use crate::stats::Traffic;
use crate::tape::Tape;
use crate::taped::SessionTape;
use crate::timeline::Rebuild;

pub use crate::budget::BUDGET_TICKS;
pub use crate::tape::REEL_BYTES_MAX;
pub use crate::taped::TAPE_BYTES_MAX;

mod config;
pub(crate) mod download;
pub(crate) mod events;
pub(crate) mod joining;
mod lobby;
mod outages;
pub(crate) mod playing;
mod returning;
mod shown;
pub(crate) mod stage;

pub use config::SessionConfig;
pub use events::{CommandError, EVENTS_MAX, Event, Progress, SessionEnd};

/// The longest wait for the server's evidence after a heal, unless a message is arriving. Meanwhile the request is
/// repeated.
const EVIDENCE_PATIENCE: Duration = Duration::from_secs(5);
const LOADING_ACKS: Duration = Duration::from_millis(20);
/// The interval at which unacknowledged batches and commands are sent again (in lockstep only).
const REPEAT: Duration = Duration::from_millis(50);

/// A client's side of a match, from the request to join until the end, as a state machine without clock or socket.
pub struct Session<S: Simulation, V: Show<S> = NoPicture> {
    pub(crate) hello: Hello,
    pub(crate) stage: Stage<S, V>,
    pub(crate) link: LinkState,
    pub(crate) lane_in: LaneReceiver,
    pub(crate) lane_out: LaneSender,
    pub(crate) received: PlayDown<S>,
    pub(crate) outgoing: Outgoing,
    pub(crate) match_status: MatchStatus,
    pub(crate) outages: Outages,
    pub(crate) download: WorldDownload,
    pub(crate) traffic: Traffic,
    controls: Controls,
    pub(crate) load: f32,
    pub(crate) asked_evidence: Option<(Tick, Duration)>,
    pub(crate) events: Events,
    pub(crate) ticket: Option<Vec<u8>>,
    taped: Option<Box<SessionTape>>,
    now: Duration,
}

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Creates a session that asks to join in its first packets.
    ///
    /// # Errors
    /// If the rules or the start state hold a NaN.
    pub fn new(config: SessionConfig<S, V>) -> Result<Self, digest::DigestError> {
        let SessionConfig {
            rules,
            read_rules,
            build,
            guess,
            speculate,
            resolve,
            show,
            smoothing,
            start,
            reconcile,
            names,
            recorded_since,
            taped,
            verify,
        } = config;
        let start = start.filter(|_| read_rules.is_none());
        let holds = match (&start, read_rules) {
            (Some(sim), _) => Holds::Start(digest::digest(sim)? as u32),
            (None, Some(_)) => Holds::AnyRules,
            (None, None) => Holds::Nothing,
        };
        let hello = match &rules {
            Some(rules) => Hello::of::<S>(rules, &build)?,
            None => Hello::without_rules::<S>(&build),
        };
        let hello = Hello {
            holds,
            names,
            ..hello
        };
        let tape = recorded_since.map(|since| Tape::new(hello.clone(), since, REEL_BYTES_MAX));
        let mut events = Events::default();
        let taped = taped.then(|| {
            events.take_taped();
            Box::new(SessionTape::new(&hello))
        });
        Ok(Session {
            hello,
            stage: Stage::Joining(Box::new(Joining {
                rules,
                lobby: Antechamber::new(read_rules),
                hooks: Hooks {
                    guess,
                    speculate,
                    resolve,
                    show,
                    smoothing,
                    reconcile,
                    verify,
                },
                welcome: None,
                start,
                tape,
            })),
            link: LinkState::default(),
            lane_in: LaneReceiver::new(WORLD_BYTES_MAX),
            lane_out: LaneSender::new(LANE_UP_BYTES_MAX),
            received: PlayDown::preallocated(),
            outgoing: Outgoing::new(),
            match_status: MatchStatus::default(),
            outages: Outages::default(),
            download: WorldDownload::default(),
            traffic: Traffic::default(),
            controls: Controls::default(),
            load: 0.0,
            asked_evidence: None,
            events,
            ticket: None,
            taped,
            now: Duration::ZERO,
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Advances the session's time to `now` and returns it. The time never goes back, even if the caller's does.
    pub(crate) fn reach(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.now
    }

    /// Handles a packet from the server. An unreadable packet is counted and dropped.
    pub fn handle(&mut self, now: Duration, bytes: &[u8]) {
        let now = self.reach(now);
        self.traffic.record_down(bytes.len());
        if self.read(now, bytes).is_err() {
            self.traffic.record_malformed();
        }
        loop {
            match self.lane_in.poll_message() {
                Ok(Some(message)) => self.take_message(now, &message),
                Ok(None) => break,
                Err(_) => {
                    self.traffic.record_malformed();
                    return;
                }
            }
        }
        if let Some(arriving) = self.lane_in.progress() {
            self.download.record_arriving(arriving.total_bytes);
        }
    }

    /// Confirms the frames that arrived, samples inputs, predicts within `budget` steps, and settles cues. Call it once
    /// per drawn frame, or when [`next_due`](Session::next_due) is reached.
    ///
    /// `input` is called once per seat for each tick to sample (in lockstep, for each batch), so possibly not at all; a
    /// game must remember taps until the next call. The steps of frames beyond the elapsed time also count against the
    /// budget.
    ///
    /// # Errors
    /// If the session is over; the error is the reason, and every later call returns it again.
    pub fn advance(
        &mut self,
        now: Duration,
        budget: u32,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), SessionEnd> {
        let now = self.reach(now);
        self.watch_download(now);
        // A guess until the first ack has measured the round trip.
        let rtt = self.link.rtt().unwrap_or(Duration::from_millis(100));
        let mut has_new_inputs = false;
        let played = match &mut self.stage {
            Stage::Joining(_) => Ok(()),
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                let differed = playing.replica.divergence.since();
                // `advance` records a divergence itself; only a new one becomes an event.
                let sampled = playing.advance(now, budget, rtt, input);
                if let Some(at) = playing
                    .replica
                    .divergence
                    .since()
                    .filter(|_| differed.is_none())
                {
                    self.events.push(Event::Differs { at });
                }
                if let Some(fault) = playing.replica.take_fault() {
                    tracing::error!(
                        error = fault,
                        "the game's step, hook or picture failed; the client continues from the server's world"
                    );
                    self.events.push(Event::StepFault(fault));
                }
                let actions = playing.replica.timeline.local_actions_mut();
                for (seat, seq) in actions.take_overtaken() {
                    playing.replica.meter.commands_refused += 1;
                    let why = CommandRefusal::Unreported;
                    self.events.push(Event::CommandRefused { seat, seq, why });
                }
                let over = match sampled {
                    _ if playing.replica.is_unrecoverable => Some(SessionEnd::StepPanicked),
                    Ok(_) => None,
                    Err(_) => Some(SessionEnd::InputTooLarge),
                };
                has_new_inputs = sampled == Ok(true);
                match over {
                    None => Ok(()),
                    Some(closed) => {
                        self.close(closed);
                        Err(closed)
                    }
                }
            }
            Stage::Closed(over) => Err(over.why),
        };
        if has_new_inputs && !self.keeps_silent(now) {
            self.outgoing.urge();
        }
        if let Stage::Playing(playing) = &self.stage
            && playing.takes_commands()
        {
            self.events.release();
        }
        if let Some(playing) = self.stage.playing() {
            let presence = |player| playing.replica.timeline.authority().presence(player);
            let seats = playing.replica.timeline.local_actions().seats();
            self.controls.watch(seats, presence, &mut self.events);
        }
        self.write_tape();
        played
    }

    fn write_tape(&mut self) {
        if let Some(mut tape) = self.taped.take() {
            let stats = self.counters();
            if let Some(playing) = self.stage.playing_mut() {
                tape.look(playing, &stats, self.events.take_taped());
            }
            self.taped = Some(tape);
        }
    }

    /// The tape's bytes since the last call, to append to a file for `twinstep_ops::Inspector`. Take them at least
    /// every few seconds: at most [`TAPE_BYTES_MAX`] bytes wait. Empty without [`SessionConfig::record_tape`].
    #[must_use]
    pub fn take_tape(&mut self) -> Vec<u8> {
        self.taped
            .as_mut()
            .map_or_else(Vec::new, |tape| tape.take())
    }

    /// Allows the next [`advance`](Session::advance) to sample an input between two ticks, at most one tick early, so
    /// that a key press shows in the frame in which it happens. Call it when a key or button changes, but not for
    /// sticks and aims that change every frame: a tick has one input, so the next change would wait for the next tick.
    pub fn sample_now(&mut self) {
        if let Some(playing) = self.stage.playing_mut()
            && let Mode::Predicting(predicting) = &mut playing.mode
            && let Some(pace) = &mut predicting.pace
        {
            pace.sample_now();
        }
    }

    /// Returns the next rebuild of the prediction to run, or `None` if there is none, as always with
    /// [`Inline`](crate::Reconcile::Inline).
    ///
    /// Call this after each [`advance`](Session::advance). [`run`](Rebuild::run) the rebuild on any thread, and [hand
    /// it back](Session::hand_back) before a later `advance`, ideally the next one. There is at most one rebuild at a
    /// time; if it is lost, the prediction stays wrong until the authority has reached the shown tick.
    pub fn poll_rebuild(&mut self) -> Option<Box<Rebuild<S>>> {
        let playing = self.stage.playing_mut()?;
        playing.replica.timeline.poll_rebuild()
    }

    /// Takes back a finished rebuild; the next `advance` shows it.
    pub fn hand_back(&mut self, rebuild: Box<Rebuild<S>>) {
        if let Some(playing) = self.stage.playing_mut() {
            playing.replica.timeline.hand_back(rebuild);
        }
    }

    /// Writes the next due packet into `out` and returns its length. Call this after each `advance` until it returns
    /// `None`; a session sends in every stage.
    pub fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let now = self.reach(now);
        if let Some((_, since)) = self.asked_evidence
            && now.saturating_sub(since) > EVIDENCE_PATIENCE
            && self.lane_in.progress().is_none()
        {
            self.forgo_evidence();
        }
        let due = self.outgoing.next_due(self.patience()) <= now;
        let written = self.write(now, due, out);
        if written.is_some() && due {
            self.outgoing.pay(now);
        }
        written
    }

    /// The longest pause between packets without new content.
    fn patience(&self) -> Duration {
        let waits = matches!(self.stage, Stage::Joining(_) | Stage::Returning(_));
        match self.lane_in.progress() {
            // Acks free the server's window, so they are frequent while a world arrives.
            Some(_) if waits => LOADING_ACKS,
            _ if self.owes() => REPEAT,
            _ => KEEP_ALIVE,
        }
    }

    /// Returns the time at which this session next has work to do. At that time, or earlier if a packet arrives, call
    /// [`advance`](Session::advance) and [`poll_transmit`](Session::poll_transmit), and then this method again. Also
    /// call it again after a command. A time in the past means now. Returns `None` once the session is over and silent.
    ///
    /// A session sends at least every 100 ms, so the time is at most that far ahead. This method is for programs that
    /// sleep in between, such as bots; a game that calls both methods for each drawn frame does not need it.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let play = match &self.stage {
            Stage::Closed(_) => return self.outgoing.has_goodbyes().then_some(self.now),
            Stage::Joining(_) => None,
            Stage::Returning(returning) => returning.playing.next_due(),
            Stage::Playing(playing) => {
                let packet = self.next_extra_packet(playing);
                packet.into_iter().chain(playing.next_due()).min()
            }
        };
        let packet = self.outgoing.next_due(self.patience());
        Some(play.map_or(packet, |play| play.min(packet)))
    }

    /// Stops waiting for the server's world of the tick that differed, and reports the desync without it.
    pub(crate) fn forgo_evidence(&mut self) {
        let Some((tick, _)) = self.asked_evidence.take() else {
            return;
        };
        if let Some(playing) = self.stage.playing_mut() {
            playing.replica.divergence.forget_evidence();
        }
        self.events.push(Event::Desync(format!(
            "the confirmed world of {tick} differs from the server's, which did not arrive"
        )));
    }

    /// Issues a command for the next input tick, or in lockstep for the open batch. Returns its sequence number.
    ///
    /// # Errors
    /// If the session is not in play, `seat` does not exist, too many commands are open, or the command is too large.
    pub fn command(&mut self, seat: usize, command: S::Command) -> Result<u32, CommandError> {
        let Some(playing) = self.stage.playing_mut() else {
            return Err(CommandError::NotPlaying);
        };
        let bytes = codec::size(&command).unwrap_or(usize::MAX);
        if bytes > twinstep_core::bounds::COMMAND_BYTES_MAX {
            return Err(CommandError::TooLarge { bytes });
        }
        if !playing.takes_commands() {
            return Err(CommandError::NotPlaying);
        }
        let actions = playing.replica.timeline.local_actions_mut();
        if seat >= actions.seats().len() {
            return Err(CommandError::NoSeat);
        }
        let seq = actions.command(seat, command).ok_or(CommandError::Busy)?;
        playing.replica.meter.commands_sent += 1;
        // In lockstep no input packet is due to carry the command.
        if let Mode::Lockstep(_) = playing.mode {
            self.outgoing.urge();
        }
        Ok(seq)
    }

    /// Sends a request of a seat's player to the match itself, such as a new speed, a pause or a save. Also works while
    /// the match is paused. The server's referee decides ([`Event::Request`] or [`Event::RequestRefused`] follows); an
    /// admitted request takes effect in one of the next turns, at the same tick for all clients. In a lobby, only
    /// [`MatchRequest::Start`] can be requested; it counts as a request of the session's first player.
    ///
    /// # Errors
    /// If the session is neither in play nor in a lobby, `seat` does not exist, a value is out of its range, or 64
    /// messages already wait for the server.
    pub fn request(&mut self, seat: usize, request: MatchRequest) -> Result<(), CommandError> {
        if let Some(lobby) = self.stage.antechamber_mut()
            && lobby.view().is_some()
            && request == MatchRequest::Start
        {
            if seat >= lobby.seats().len() {
                return Err(CommandError::NoSeat);
            }
            lobby.ask_start();
            self.outgoing.urge();
            return Ok(());
        }
        let Some(playing) = self.stage.playing() else {
            return Err(CommandError::NotPlaying);
        };
        if seat >= playing.replica.timeline.local_actions().seats().len() {
            return Err(CommandError::NoSeat);
        }
        if !request.is_sound() {
            return Err(CommandError::OutOfRange);
        }
        let bytes = request.encode(seat as u8).into();
        let pushed = self.lane_out.push(message::REQUEST, bytes);
        pushed.map_err(|_| CommandError::Busy)
    }

    /// Leaves the match: the session is over, and [`poll_transmit`](Session::poll_transmit) writes its goodbye.
    pub fn leave(&mut self) {
        if !matches!(self.stage, Stage::Closed(_)) {
            self.close(SessionEnd::Server(CloseCode::Left));
            self.outgoing.leave();
        }
    }

    fn owes(&self) -> bool {
        let Some(playing) = self.stage.playing() else {
            return false;
        };
        let Mode::Lockstep(lockstep) = &playing.mode else {
            return false;
        };
        let mut commands = playing.replica.timeline.local_actions().unacknowledged();
        lockstep.unacknowledged().1 > 0 || commands.next().is_some()
    }

    /// Sets the share of time, 0..=1, that this machine spends on this session. The server may slow the match for all
    /// players when a machine is overloaded. [`Client`](crate::Client) measures the share.
    pub fn set_load(&mut self, load: f32) {
        self.load = load.clamp(0.0, 1.0);
    }

    /// Changes the authority outside the protocol, for tests that plant a desync.
    pub fn corrupt(&mut self, change: impl FnOnce(&mut S)) {
        if let Some(playing) = self.stage.playing_mut() {
            change(playing.replica.timeline.corrupt());
        }
    }

    pub(crate) fn close(&mut self, why: SessionEnd) {
        // The counters are read now, because the closed stage has none.
        let stats = self.stats();
        self.download.end();
        self.stage.close(why, stats);
    }
}
