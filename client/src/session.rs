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

use std::time::Duration;

use twinstep_core::bounds::{
    INPUT_PACKETS_PER_SECOND, KEEP_ALIVE, REPORT_BYTES_MAX, WORLD_BYTES_MAX,
};
use twinstep_core::lane::{LaneReceiver, LaneSender};
use twinstep_core::link::LinkState;
use twinstep_core::packet::hello::{CloseCode, Hello, Holds, Welcome};
use twinstep_core::packet::{ByteCounts, OUTER_BYTES, message};
use twinstep_core::world::{Presence, World};
use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick, codec, digest};

use crate::absence::{Absence, HeldUp, Returning};
use crate::company::Company;
use crate::cues::CueEvent;
use crate::packets::older::Older;
use crate::packets::told::Told;
use crate::picture::{Hidden, Show};
use crate::playing::{Hooks, Playing};
use crate::stats::SessionStats;
pub use crate::tape::REEL_BYTES_MAX;
use crate::tape::Tape;
use crate::timeline::Rebuild;

mod config;
mod messages;
mod told;

pub use config::SessionConfig;
pub use told::{Closed, CommandError, EVENTS_MAX, Event, Progress};

pub(crate) use told::Events;

/// A heal and its evidence are asked for until they come.
const EVIDENCE_PATIENCE: Duration = Duration::from_secs(5);
/// While a world is on its way, acks leave this often.
const LOADING_ACKS: Duration = Duration::from_millis(20);
/// In lockstep, what the server may lack is sent again this often.
const REPEAT: Duration = Duration::from_millis(50);
/// New inputs leave this often at most, and so many at once after a pause.
const INPUT_EVERY: Duration = Duration::from_nanos(1_000_000_000 / INPUT_PACKETS_PER_SECOND as u64);
const INPUT_BURST: u32 = 4;
/// Steps that one advance may take, unless the caller says otherwise: at 60 Hz a burst of confirmed ticks and a rebuild
/// of the whole lead.
pub const BUDGET_TICKS: u32 = 160;

pub(crate) enum State<S: Simulation, V: Show<S>> {
    /// Nothing agreed, or a world on its way.
    Joining {
        hooks: Option<Hooks<S, V>>,
        welcome: Option<Welcome>,
        /// What the match may have begun with.
        start: Option<S>,
    },
    Playing(Box<Playing<S, V>>),
    Closed(Closed),
}

/// One client's session.
pub struct Session<S: Simulation, V: Show<S> = Hidden> {
    pub(crate) hello: Hello,
    pub(crate) state: State<S, V>,
    pub(crate) link: LinkState,
    pub(crate) lane_in: LaneReceiver,
    pub(crate) lane_out: LaneSender,
    /// The packet that is being read.
    pub(crate) told: Told<S>,
    /// What is left of a send that takes several datagrams.
    pub(crate) older: Older,
    /// The next packet goes on with this command, where one does not hold all: each has its turn.
    pub(crate) commands_from: Option<(PlayerId, u32)>,
    pub(crate) next_seal: Tick,
    /// The players that the match waits for.
    pub(crate) waiting: PlayerSet,
    pub(crate) company: Company,
    /// The record of the match, before and after it is played.
    tape: Option<Tape<S>>,
    pub(crate) load: f32,
    /// The first tick of which the server holds no input of ours, as far as we know.
    pub(crate) needed: Tick,
    pub(crate) sent_at: Option<Duration>,
    pub(crate) send_now: bool,
    /// When the packets sent so far have left at the full rate.
    sends_paid_until: Duration,
    pub(crate) leaving: u8,
    pub(crate) asked_evidence: Option<(Tick, Duration)>,
    pub(crate) events: Events,
    /// On its way back into its match.
    pub(crate) returning: Option<Returning>,
    pub(crate) absence: Absence,
    pub(crate) held_up: HeldUp,
    /// The own players that are in the match and not dropped, as the game was told.
    in_control: PlayerSet,
    /// Those that are dropped.
    dropped: PlayerSet,
    /// When the link began, or was found again.
    pub(crate) met_at: Duration,
    /// The server ended the transport, and lets this player return.
    pub(crate) cut: Option<CloseCode>,
    /// The newest ticket to return with.
    pub(crate) ticket: Option<Vec<u8>>,
    /// The tick of the first world.
    began_at: Tick,
    pub(crate) up: ByteCounts,
    pub(crate) down_packets: u64,
    pub(crate) down_bytes: u64,
    pub(crate) malformed: u64,
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
            company: Company::default(),
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
            told: Told::default(),
            older: Older::default(),
            commands_from: None,
            next_seal: Tick(0),
            waiting: PlayerSet::default(),
            load: 0.0,
            needed: Tick(0),
            sent_at: None,
            send_now: true,
            sends_paid_until: Duration::ZERO,
            leaving: 0,
            asked_evidence: None,
            events: Events::default(),
            returning: None,
            absence: Absence::default(),
            held_up: HeldUp::default(),
            in_control: PlayerSet::default(),
            dropped: PlayerSet::default(),
            met_at: Duration::ZERO,
            cut: None,
            ticket: None,
            began_at: Tick(0),
            up: ByteCounts::default(),
            down_packets: 0,
            down_bytes: 0,
            malformed: 0,
            last: SessionStats::default(),
            now: Duration::ZERO,
        })
    }

    /// The session's own time, which never goes back, whatever its caller's does.
    pub(crate) fn reach(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.now
    }

    /// Takes a packet of the server. One that cannot be read costs a counter.
    pub fn handle(&mut self, now: Duration, bytes: &[u8]) {
        let now = self.reach(now);
        self.down_packets += 1;
        self.down_bytes += bytes.len() as u64 + OUTER_BYTES;
        if self.read(now, bytes).is_err() {
            self.malformed += 1;
        }
        loop {
            match self.lane_in.poll_message() {
                Ok(Some(message)) => self.take_message(now, &message),
                Ok(None) => return,
                Err(_) => {
                    self.malformed += 1;
                    return;
                }
            }
        }
    }

    /// Does all that is due: confirms what arrived, samples inputs for the ticks that the pace asks for
    /// (`input` is called once per tick and seat, 0 to n times; a game latches taps until then), predicts
    /// within `budget` steps, settles cues. Where more arrived than time passed, its steps are in the budget too. Call it once per frame that is drawn, at least 20 times a second.
    ///
    /// # Errors
    /// The session is over; it says so from then on.
    pub fn advance(
        &mut self,
        now: Duration,
        budget: u32,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<(), Closed> {
        let now = self.reach(now);
        self.watch_loading(now);
        let rtt = self.link.rtt().unwrap_or(Duration::from_millis(100));
        let played = match &mut self.state {
            State::Joining { .. } => Ok(()),
            State::Playing(playing) => {
                let differed = playing.differs;
                let sampled = playing.advance(now, budget, rtt, input);
                if let Some(at) = playing.differs.filter(|_| differed.is_none()) {
                    self.events.push(Event::Differs { at });
                }
                if let Some(fault) = playing.timeline.take_fault() {
                    tracing::error!(fault, "the game's step is at fault");
                    self.events.push(Event::StepFault(fault));
                }
                for (seat, seq) in playing.timeline.orders_mut().overtaken() {
                    playing.meter.commands_refused += 1;
                    self.events.push(Event::CommandRefused { seat, seq });
                }
                match sampled {
                    Ok(sampled) => {
                        self.send_now |= sampled;
                        Ok(())
                    }
                    Err(_) => {
                        self.close(Closed::InputTooLarge);
                        Err(Closed::InputTooLarge)
                    }
                }
            }
            State::Closed(closed) => Err(*closed),
        };
        self.tell_controls();
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

    /// Tells when an own player is dropped, and when it is back.
    fn tell_controls(&mut self) {
        let State::Playing(playing) = &self.state else {
            return;
        };
        let world = playing.timeline.authority();
        for (seat, player) in playing.timeline.orders().seats().iter().enumerate() {
            let presence = world.presence(*player);
            let had = self.in_control.contains(*player);
            match presence {
                Presence::Dropped if had => self.events.push(Event::ControlsLost { seat }),
                Presence::Present if !had && self.dropped.contains(*player) => {
                    self.events.push(Event::ControlsBack { seat });
                }
                _ => {}
            }
            self.in_control.set(*player, presence == Presence::Present);
            self.dropped.set(*player, presence == Presence::Dropped);
        }
    }

    /// Writes the next packet that is due into `out`; its length. Call until there is none, after each
    /// `advance`, and at least 20 times a second: a session speaks in every state.
    pub fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let now = self.reach(now);
        if let Some((_, since)) = self.asked_evidence
            && now.saturating_sub(since) > EVIDENCE_PATIENCE
            && self.lane_in.progress().is_none()
        {
            self.forgo_evidence();
        }
        let paced = self.sends_paid_until <= now + INPUT_EVERY * (INPUT_BURST - 1);
        let patience = if self.owes() { REPEAT } else { KEEP_ALIVE };
        let silent = self
            .sent_at
            .is_none_or(|at| now.saturating_sub(at) >= patience);
        let loading = (matches!(self.state, State::Joining { .. }) || self.returning.is_some())
            && self.lane_in.progress().is_some()
            && self
                .sent_at
                .is_none_or(|at| now.saturating_sub(at) >= LOADING_ACKS);
        let due = silent || loading || self.send_now && paced;
        let written = self.write(now, due, out);
        if written.is_some() && due {
            self.sends_paid_until = self.sends_paid_until.max(now) + INPUT_EVERY;
        }
        written
    }

    /// The server's world of the tick that differed does not come any more: what is known is told without it.
    pub(crate) fn forgo_evidence(&mut self) {
        let Some((tick, _)) = self.asked_evidence.take() else {
            return;
        };
        if let State::Playing(playing) = &mut self.state {
            playing.evidence = None;
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
        if !playing.takes_orders() {
            return Err(CommandError::NotPlaying);
        }
        let orders = playing.timeline.orders_mut();
        if seat >= orders.seats().len() {
            return Err(CommandError::NoSeat);
        }
        let seq = orders.command(seat, command).ok_or(CommandError::Busy)?;
        playing.meter.commands_sent += 1;
        // In lockstep nothing else would carry it at once.
        self.send_now |= playing.lockstep.is_some();
        Ok(seq)
    }

    /// Says goodbye; [`poll_transmit`](Session::poll_transmit) carries it. The session is over.
    pub fn leave(&mut self) {
        if !matches!(self.state, State::Closed(_)) {
            self.close(Closed::Server(CloseCode::Left));
            self.leaving = 3;
        }
    }

    /// The lagged copy; `None` before the session is in its match.
    #[must_use]
    pub fn authority(&self) -> Option<&World<S>> {
        self.playing().map(|playing| playing.timeline.authority())
    }

    /// The prediction that is shown.
    #[must_use]
    pub fn prediction(&self) -> Option<&World<S>> {
        self.playing().map(|playing| playing.timeline.prediction())
    }

    /// The players of this session's seats.
    #[must_use]
    pub fn seats(&self) -> &[PlayerId] {
        self.playing()
            .map_or(&[], |playing| playing.timeline.orders().seats())
    }

    /// How far joining, or returning by a world, has come; `None` before the server answers, and once the session
    /// plays.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        let world = self
            .lane_in
            .progress()
            .filter(|arriving| arriving.kind == message::WORLD);
        let Some(playing) = self.playing().filter(|_| world.is_none()) else {
            return world.map(|arriving| Progress::World {
                received_bytes: arriving.received_bytes,
                total_bytes: arriving.total_bytes,
            });
        };
        playing.is_catching_up().then(|| {
            let tick = playing.timeline.authority().tick();
            Progress::CatchingUp {
                done_ticks: tick - self.began_at,
                total_ticks: tick.max(self.next_seal) - self.began_at,
            }
        })
    }

    /// What to draw: each entity's key and pose, smoothed.
    pub fn shown(&self) -> impl Iterator<Item = (V::Key, V::Pose)> + '_ {
        let view = self.playing().map(|playing| &playing.view);
        view.into_iter()
            .flat_map(|view| view.picture.shown(view.alpha, view.now))
    }

    /// Smooths corrections of the picture (as it does from the start of a match), or lets it jump: to see what
    /// smoothing hides. Nothing before the session plays.
    pub fn set_smooths(&mut self, smooths: bool) {
        if let State::Playing(playing) = &mut self.state {
            playing.view.picture.set_smooths(smooths);
        }
    }

    /// Where one entity is drawn.
    #[must_use]
    pub fn pose(&self, key: V::Key) -> Option<V::Pose> {
        let view = &self.playing()?.view;
        view.picture.pose(key, view.alpha, view.now)
    }

    /// The next thing to start, confirm or stop.
    pub fn poll_cue(&mut self) -> Option<CueEvent<S::Cue>> {
        let State::Playing(playing) = &mut self.state else {
            return None;
        };
        playing.view.cues.poll()
    }

    /// The next thing worth telling. Of what is not asked for, the newest [`EVENTS_MAX`] are kept; the others are
    /// counted in [`SessionStats::events_dropped`].
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// In lockstep: whether the server may lack a batch or a command.
    fn owes(&self) -> bool {
        self.playing().is_some_and(|playing| {
            playing.lockstep.as_ref().is_some_and(|lockstep| {
                lockstep.unacknowledged().1 > 0
                    || playing.timeline.orders().unacknowledged().next().is_some()
            })
        })
    }

    /// Tells for what share of its time, 0..=1, this machine is busy with the game: the server may slow the
    /// game for everybody rather than let it stumble. [`Client`](crate::Client) measures it.
    pub fn note_load(&mut self, load: f32) {
        self.load = load.clamp(0.0, 1.0);
    }

    /// In lockstep: turns that are here as a whole and have not run to their end. While nothing is late there
    /// is at least one.
    #[must_use]
    pub fn turns_ahead(&self) -> Option<u32> {
        let playing = self.playing()?;
        let heard = playing.lockstep.as_ref()?.heard();
        Some(heard.saturating_sub(playing.timeline.authority().turn().number))
    }

    /// The players that the match waits for: for a sign beside their names.
    #[must_use]
    pub fn waiting(&self) -> PlayerSet {
        self.waiting
    }

    /// Who else is there: names, and who is connected how well.
    #[must_use]
    pub fn company(&self) -> &Company {
        &self.company
    }

    /// The match as it was confirmed here, as a journal: it begins with the world that this session joined with (or
    /// was healed or came back with), or later, since only so much is kept, and ends with the newest whole turn. `None`
    /// if the session is not [`recorded`](SessionConfig::recorded), or has not begun to play.
    #[must_use]
    pub fn recording(&self) -> Option<&[u8]> {
        let playing = self.playing().and_then(|playing| playing.tape.as_ref());
        playing.or(self.tape.as_ref())?.journal()
    }

    /// Why the session is over, if it is.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        match &self.state {
            State::Closed(closed) => Some(*closed),
            _ => None,
        }
    }

    /// The tick at which the authority was found to differ, until it is healed. Who predicts plays on meanwhile, with
    /// what is nearly right.
    #[must_use]
    pub fn differs(&self) -> Option<Tick> {
        self.playing()?.differs
    }

    /// Changes the authority behind the protocol's back: for tests that plant a desync.
    pub fn corrupt(&mut self, change: impl FnOnce(&mut S)) {
        if let State::Playing(playing) = &mut self.state {
            change(playing.timeline.corrupt());
        }
    }

    /// The session is over; what was measured stays.
    pub(crate) fn close(&mut self, closed: Closed) {
        self.last = self.stats();
        if let State::Playing(playing) = &mut self.state {
            self.tape = playing.tape.take();
        }
        self.state = State::Closed(closed);
    }

    pub(crate) fn playing(&self) -> Option<&Playing<S, V>> {
        match &self.state {
            State::Playing(playing) => Some(playing),
            _ => None,
        }
    }

    /// Steps of both simulations so far, without those that were done elsewhere; 0 once the session is over.
    #[cfg(feature = "udp")]
    pub(crate) fn steps(&self) -> u64 {
        self.playing().map_or(0, |playing| {
            let stats = playing.timeline.stats();
            stats.steps - stats.away_steps
        })
    }

    /// What was counted and measured.
    #[must_use]
    pub fn stats(&self) -> SessionStats {
        let mut stats = SessionStats {
            rtt_ms: self.link.rtt().unwrap_or_default().as_secs_f64() * 1e3,
            jitter_ms: self.link.jitter().as_secs_f64() * 1e3,
            loss: self.link.loss(),
            up: self.up,
            down_packets: self.down_packets,
            down_bytes: self.down_bytes,
            malformed: self.malformed,
            returns: self.absence.returns,
            silences: self.absence.silences,
            away_ms: self.absence.away(self.now).as_secs_f64() * 1e3,
            events_dropped: self.events.dropped(),
            ..self.last
        };
        if let Some(playing) = self.playing() {
            playing.tell(&mut stats);
        }
        stats
    }
}
