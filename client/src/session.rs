//! A client's session: handshake, packets both ways, and the match it plays. No clock, no socket.
//!
//! ```text
//!  Greeting ──hello──▶ Loading ──world──▶ Playing ──────▶ Closed
//!     │ refused            │ too slow        │ left, dropped, kicked
//!     └────────────────────┴─────────────────┘
//! ```
//!
//! The loop of a game, whatever moves the bytes:
//!
//! ```text
//! for each packet:  session.handle(now, packet)
//! session.advance(now, budget, |seat| pad)?        samples, confirms, predicts
//! while let Some(len) = session.poll_transmit(now, &mut buffer) { send(&buffer[..len]) }
//! while let Some(cue) = session.poll_cue() { play }
//! draw(session.shown())
//! ```
//!
//! A program that draws nothing waits for the next packet until [`session.next_due()`](Session::next_due), and does the
//! same.

use std::time::Duration;

use events::Controls;
use twinstep_core::bounds::{KEEP_ALIVE, REPORT_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::{Simulation, Tick, codec, digest};
use twinstep_protocol::lane::{LaneReceiver, LaneSender};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::{Hello, Holds, Welcome};
use twinstep_protocol::packet::play_down::PlayDown;
use twinstep_protocol::packet::refusal::RefusalReason;

use crate::contact::Contact;
use crate::loading::Loading;
use crate::match_status::MatchStatus;
use crate::outgoing::Outgoing;
use crate::picture::{Hidden, Show};
use crate::playing::{Hooks, Playing};
use crate::stats::{SessionStats, Traffic};
use crate::tape::Tape;
use crate::timeline::Rebuild;

pub use crate::budget::BUDGET_TICKS;
pub use crate::tape::REEL_BYTES_MAX;

mod config;
mod events;
mod messages;
mod shown;

pub use config::SessionConfig;
pub use events::{CommandError, EVENTS_MAX, Event, Progress, SessionEnd};

pub(crate) use events::Events;

/// A heal and its evidence are asked for until they come.
const EVIDENCE_PATIENCE: Duration = Duration::from_secs(5);
/// While a world is on its way, acks leave this often.
const LOADING_ACKS: Duration = Duration::from_millis(20);
/// In lockstep, what the server may lack is sent again this often.
const REPEAT: Duration = Duration::from_millis(50);

pub(crate) enum State<S: Simulation, V: Show<S>> {
    /// Nothing agreed, or a world on its way.
    Joining {
        hooks: Option<Hooks<S, V>>,
        welcome: Option<Welcome>,
        /// What the match may have begun with.
        start: Option<S>,
    },
    Playing(Box<Playing<S, V>>),
    Closed(SessionEnd),
}

/// One client's session.
pub struct Session<S: Simulation, V: Show<S> = Hidden> {
    pub(crate) hello: Hello,
    pub(crate) state: State<S, V>,
    pub(crate) link: LinkState,
    pub(crate) lane_in: LaneReceiver,
    pub(crate) lane_out: LaneSender,
    /// The packet that is being read.
    pub(crate) received: PlayDown<S>,
    pub(crate) outgoing: Outgoing,
    pub(crate) match_status: MatchStatus,
    pub(crate) contact: Contact,
    pub(crate) loading: Loading,
    pub(crate) traffic: Traffic,
    controls: Controls,
    /// The record of the match, before and after it is played.
    tape: Option<Tape<S>>,
    pub(crate) load: f32,
    pub(crate) asked_evidence: Option<(Tick, Duration)>,
    pub(crate) events: Events,
    /// The newest ticket to return with.
    pub(crate) ticket: Option<Vec<u8>>,
    /// What was measured until the session was over.
    last: SessionStats,
    /// This session's own time.
    now: Duration,
}

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// A session that asks to join as soon as packets flow.
    ///
    /// # Errors
    /// Rules or a start that hold a NaN.
    pub fn new(config: SessionConfig<S, V>) -> Result<Self, digest::NanError> {
        let SessionConfig {
            rules,
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
            verify,
        } = config;
        let holds = match &start {
            Some(sim) => Holds::Start(digest::digest(sim)? as u32),
            None => Holds::Nothing,
        };
        let hello = Hello {
            holds,
            names,
            ..Hello::of::<S>(&rules, &build)?
        };
        Ok(Session {
            tape: recorded_since.map(|since| Tape::new(hello.clone(), since, REEL_BYTES_MAX)),
            hello,
            state: State::Joining {
                hooks: Some(Hooks {
                    rules,
                    guess,
                    speculate,
                    resolve,
                    show,
                    smoothing,
                    reconcile,
                    verify,
                }),
                welcome: None,
                start,
            },
            link: LinkState::default(),
            lane_in: LaneReceiver::new(WORLD_BYTES_MAX),
            lane_out: LaneSender::new(REPORT_BYTES_MAX),
            received: PlayDown::roomy(),
            outgoing: Outgoing::new(),
            match_status: MatchStatus::default(),
            contact: Contact::default(),
            loading: Loading::default(),
            traffic: Traffic::default(),
            controls: Controls::default(),
            load: 0.0,
            asked_evidence: None,
            events: Events::default(),
            ticket: None,
            last: SessionStats::default(),
            now: Duration::ZERO,
        })
    }

    /// The newest moment that the session was called at.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// The session's own time, which never goes back, whatever its caller's does.
    pub(crate) fn reach(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.now
    }

    /// Takes a packet of the server. One that cannot be read costs a counter.
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
            self.loading.record_arriving(arriving.total_bytes);
        }
    }

    /// Does all that is due: confirms what arrived, samples inputs for the ticks that the pace asks for
    /// (`input` is called once per tick and seat, 0 to n times; a game latches taps until then), predicts
    /// within `budget` steps, settles cues. Where more arrived than time passed, its steps are in the budget too. Call it
    /// once per frame that is drawn, or whenever [`next_due`](Session::next_due) says so.
    ///
    /// # Errors
    /// The session is over; it says so from then on.
    pub fn advance(
        &mut self,
        now: Duration,
        budget: u32,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), SessionEnd> {
        let now = self.reach(now);
        self.watch_loading(now);
        let rtt = self.link.rtt().unwrap_or(Duration::from_millis(100));
        let mut has_news = false;
        let played = match &mut self.state {
            State::Joining { .. } => Ok(()),
            State::Playing(playing) => {
                let differed = playing.divergence.since();
                let sampled = playing.advance(now, budget, rtt, input);
                if let Some(at) = playing.divergence.since().filter(|_| differed.is_none()) {
                    self.events.push(Event::Differs { at });
                }
                if let Some(fault) = playing.take_fault() {
                    tracing::error!(fault, "the game's step is at fault");
                    self.events.push(Event::StepFault(fault));
                }
                for (seat, seq) in playing.timeline.local_actions_mut().overtaken() {
                    playing.meter.commands_refused += 1;
                    let why = RefusalReason::Untold;
                    self.events.push(Event::CommandRefused { seat, seq, why });
                }
                let over = match sampled {
                    _ if playing.is_beyond_help => Some(SessionEnd::StepPanicked),
                    Ok(_) => None,
                    Err(_) => Some(SessionEnd::InputTooLarge),
                };
                has_news = sampled == Ok(true);
                match over {
                    None => Ok(()),
                    Some(closed) => {
                        self.close(closed);
                        Err(closed)
                    }
                }
            }
            State::Closed(closed) => Err(*closed),
        };
        if has_news && !self.keeps_silent(now) {
            self.outgoing.urge();
        }
        if let State::Playing(playing) = &self.state {
            let presence = |player| playing.timeline.authority().presence(player);
            let seats = playing.timeline.local_actions().seats();
            self.controls.watch(seats, presence, &mut self.events);
        }
        played
    }

    /// With [`Reconcile::Background`](crate::Reconcile::Background): a rebuild of the prediction that is to be done.
    /// [`run`](Rebuild::run) it anywhere, and [hand it back](Session::hand_back) before an [`advance`](Session::advance),
    /// best the next one. Ask after each advance; there is at most one at a time. One that is lost is missed until the
    /// authority has reached what is shown.
    pub fn poll_rebuild(&mut self) -> Option<Box<Rebuild<S>>> {
        match &mut self.state {
            State::Playing(playing) => playing.timeline.poll_rebuild(),
            _ => None,
        }
    }

    /// A rebuild is done: the next advance shows it.
    pub fn hand_back(&mut self, rebuild: Box<Rebuild<S>>) {
        if let State::Playing(playing) = &mut self.state {
            playing.timeline.hand_back(rebuild);
        }
    }

    /// Writes the next packet that is due into `out`; its length. Call until there is none, after each
    /// `advance`: a session sends in every state.
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

    /// The pause after which a packet leaves though there is nothing new to send.
    fn patience(&self) -> Duration {
        let waits = matches!(self.state, State::Joining { .. }) || self.contact.goes_back();
        match self.lane_in.progress() {
            Some(_) if waits => LOADING_ACKS,
            _ if self.owes() => REPEAT,
            _ => KEEP_ALIVE,
        }
    }

    /// When this session has something to do, in its own time: call [`advance`](Session::advance) and then
    /// [`poll_transmit`](Session::poll_transmit) at that moment, or as soon as a packet came, whichever is first; and ask
    /// again then, also after a command. A moment that is past means now; `None`: never, since the session is over.
    ///
    /// It is at most 100 ms ahead, because a session sends that often. A game that calls both for each frame that it draws
    /// has no use for it: it is for programs that sleep in between, such as bots.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let play = match &self.state {
            State::Closed(_) => return self.outgoing.has_goodbyes().then_some(self.now),
            State::Joining { .. } => None,
            State::Playing(playing) => {
                let is_back = !self.contact.goes_back();
                let packet = is_back.then(|| self.next_extra_packet(playing)).flatten();
                packet.into_iter().chain(playing.next_due()).min()
            }
        };
        let packet = self.outgoing.next_due(self.patience());
        Some(play.map_or(packet, |play| play.min(packet)))
    }

    /// The server's world of the tick that differed does not come any more: what is known is told without it.
    pub(crate) fn forgo_evidence(&mut self) {
        let Some((tick, _)) = self.asked_evidence.take() else {
            return;
        };
        if let State::Playing(playing) = &mut self.state {
            playing.divergence.forget_evidence();
        }
        self.events.push(Event::Desync(format!(
            "the authority differed at {tick}; no evidence came"
        )));
    }

    /// Gives a command at the next input tick; its sequence.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn command(&mut self, seat: usize, command: S::Command) -> Result<u32, CommandError> {
        let State::Playing(playing) = &mut self.state else {
            return Err(CommandError::NotPlaying);
        };
        if codec::size(&command).map_or(true, |bytes| {
            bytes > twinstep_core::bounds::COMMAND_BYTES_MAX
        }) {
            return Err(CommandError::TooLarge);
        }
        if !playing.takes_commands() {
            return Err(CommandError::NotPlaying);
        }
        let actions = playing.timeline.local_actions_mut();
        if seat >= actions.seats().len() {
            return Err(CommandError::NoSeat);
        }
        let seq = actions.command(seat, command).ok_or(CommandError::Busy)?;
        playing.meter.commands_sent += 1;
        // In lockstep nothing else would carry it at once.
        if playing.lockstep.is_some() {
            self.outgoing.urge();
        }
        Ok(seq)
    }

    /// Says goodbye; [`poll_transmit`](Session::poll_transmit) carries it. The session is over.
    pub fn leave(&mut self) {
        if !matches!(self.state, State::Closed(_)) {
            self.close(SessionEnd::Server(CloseCode::Left));
            self.outgoing.leave();
        }
    }

    /// In lockstep: whether the server may lack a batch or a command.
    fn owes(&self) -> bool {
        self.playing().is_some_and(|playing| {
            playing.lockstep.as_ref().is_some_and(|lockstep| {
                lockstep.unacknowledged().1 > 0
                    || playing
                        .timeline
                        .local_actions()
                        .unacknowledged()
                        .next()
                        .is_some()
            })
        })
    }

    /// Tells for what share of its time, 0..=1, this machine is busy with the game: the server may slow the
    /// game for everybody rather than let it stumble. [`Client`](crate::Client) measures it.
    pub fn set_load(&mut self, load: f32) {
        self.load = load.clamp(0.0, 1.0);
    }

    /// Changes the authority behind the protocol's back: for tests that plant a desync.
    pub fn corrupt(&mut self, change: impl FnOnce(&mut S)) {
        if let State::Playing(playing) = &mut self.state {
            change(playing.timeline.corrupt());
        }
    }

    /// The session is over; what was measured stays.
    pub(crate) fn close(&mut self, closed: SessionEnd) {
        self.last = self.stats();
        if let State::Playing(playing) = &mut self.state {
            self.tape = playing.tape.take();
        }
        self.loading.end();
        self.state = State::Closed(closed);
    }

    pub(crate) fn playing(&self) -> Option<&Playing<S, V>> {
        match &self.state {
            State::Playing(playing) => Some(playing),
            _ => None,
        }
    }
}
