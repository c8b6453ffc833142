//! [`Playing`]: a session in its match, with its copies of the world and its mode. It can also continue from a
//! different world, after a heal or after reconnecting.
//!
//! Invariant: when the session continues from a different world, the server gets everything it may wait for (a batch
//! for each turn starting at that world), the session's own orders are neither lost nor run twice, and the picture
//! continues.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::INPUT_WINDOW;
use twinstep_core::world::World;
use twinstep_core::{PlayerSet, Simulation, Tick};
use twinstep_protocol::packet::hello::{Basis, Holds, Welcome};

use crate::budget::StepAllowance;
use crate::hooks::{Answers, Guess, OwnerResolver, Speculate};
use crate::inbox::Inbox;
use crate::local_actions::LocalActions;
use crate::lockstep::Lockstep;
use crate::picture::{Show, Smoothing};
use crate::predicting::Predicting;
use crate::replica::{Divergence, InputTooLarge, Replica};
use crate::stats::{Meter, SessionStats};
use crate::timeline::{Reconcile, Timeline};
use crate::view::View;

#[expect(
    clippy::large_enum_variant,
    reason = "a session has one, within the box of its match"
)]
pub(crate) enum Mode<S: Simulation> {
    /// Shows a prediction; the inputs of each tick have a deadline.
    Predicting(Predicting),
    /// Shows the authority: the match has a command delay, or this client is a spectator.
    Lockstep(Lockstep<S>),
}

pub(crate) struct Playing<S: Simulation, V: Show<S>> {
    pub(crate) replica: Replica<S, V>,
    pub(crate) mode: Mode<S>,
}

pub(crate) struct Hooks<S: Simulation, V: Show<S>> {
    pub(crate) guess: Box<dyn Guess<S>>,
    pub(crate) speculate: Box<dyn Speculate<S>>,
    pub(crate) resolve: Box<dyn OwnerResolver<S>>,
    pub(crate) show: V,
    pub(crate) smoothing: Smoothing,
    pub(crate) reconcile: Reconcile,
    pub(crate) verify: bool,
}

impl<S: Simulation, V: Show<S>> Playing<S, V> {
    pub(crate) fn new(
        welcome: Welcome,
        world: World<S>,
        rules: Arc<S::Rules>,
        hooks: Hooks<S, V>,
    ) -> Self {
        let cadence = world.turn().cadence;
        let mut actions = LocalActions::new(welcome.seats.clone(), &welcome.next_seq);
        let seats = welcome.seats.len();
        let mode = match welcome.command_delay > 0 || seats == 0 {
            true => Mode::Lockstep(Lockstep::new(welcome.command_delay, world.turn(), seats)),
            false => Mode::Predicting(Predicting::new(cadence)),
        };
        // In lockstep the picture is interpolated from the authority, even for local players.
        let locals = match &mode {
            Mode::Lockstep(lockstep) => {
                actions.open_turn = Some(lockstep.open_turn());
                PlayerSet::default()
            }
            Mode::Predicting(_) => actions.players(),
        };
        let inbox = Inbox::new(world.tick());
        let replays = matches!(welcome.basis, Basis::Start(..));
        let mut view = View::new(
            hooks.show,
            hooks.smoothing,
            locals,
            rules.clone(),
            cadence.tick(),
        );
        view.jump(&world);
        let Hooks {
            guess,
            speculate,
            resolve,
            reconcile,
            verify,
            ..
        } = hooks;
        let timeline = Timeline::new(rules.clone(), world, actions, guess, speculate, verify);
        let mut replica = Replica {
            timeline: match mode {
                Mode::Predicting(_) => timeline.with_reconcile(reconcile),
                Mode::Lockstep(_) => timeline.in_lockstep(),
            },
            inbox,
            view,
            answers: welcome.owners_answer.then(|| Answers::new(resolve)),
            rules,
            meter: Meter::default(),
            allowance: StepAllowance::default(),
            divergence: Divergence::none(),
            is_unrecoverable: false,
            agreed: None,
            counted: Tick(0),
            next_seal: Tick(0),
            tape: None,
        };
        if replays {
            replica.record_join(Tick::MAX);
        }
        Playing { replica, mode }
    }

    pub(crate) fn takes_commands(&self) -> bool {
        match &self.mode {
            Mode::Predicting(predicting) => predicting.pace.is_some(),
            Mode::Lockstep(lockstep) => lockstep.playout.runs() || lockstep.playout.rests,
        }
    }

    /// Returns `true` if the session still steps through the frames that follow the received world.
    pub(crate) fn is_catching_up(&self) -> bool {
        !self.takes_commands()
    }

    /// Confirms frames, samples input and, in predicting mode, predicts. Returns `true` if there are new inputs or
    /// batches to send.
    pub(crate) fn advance(
        &mut self,
        now: Duration,
        budget: u32,
        rtt: Duration,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        let replica = &mut self.replica;
        replica.begin(now);
        match &mut self.mode {
            Mode::Predicting(predicting) => predicting.advance(replica, now, budget, rtt, input),
            Mode::Lockstep(lockstep) => lockstep.advance(replica, now, rtt, input),
        }
    }

    /// The time of the next work, unless a packet arrives earlier. Returns `None` while the session waits for the
    /// server.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        match &self.mode {
            Mode::Predicting(predicting) => predicting.next_due(&self.replica),
            Mode::Lockstep(lockstep) => lockstep.next_due(&self.replica),
        }
    }

    pub(crate) fn heal(&mut self, world: World<S>) {
        let at = world.tick();
        self.replica.divergence.heal();
        self.replica.agreed = None;
        if !self.replica.has_joined() {
            self.replica.record_join(at);
        }
        self.replica.counted = self
            .replica
            .counted
            .max(self.replica.timeline.authority().tick());
        self.replica.inbox.begin_at(at);
        if self
            .replica
            .inbox
            .front()
            .is_some_and(|frame| frame.tick != at)
        {
            // The inbox has no frame of that tick left. Our servers send no world that old.
            self.replica.inbox.restart(at);
            self.replica.counted = at;
        }
        self.replica.view.jump(&world);
        self.replica.meter.commands_executed += self.replica.timeline.jump(world) as u64;
        // Compare with the newest frame received, not with the world, because the world's download may have taken long.
        let known = self.replica.inbox.next();
        if self.replica.timeline.local_actions().next() - known > INPUT_WINDOW {
            self.sample_from(known);
        }
        self.replica.meter.heals += 1;
        self.restart_tape();
        self.restart_playout();
        // Frames after that world may have arrived during its download.
        if let Mode::Lockstep(lockstep) = &mut self.mode {
            let now = self.replica.allowance.now();
            for frame in self.replica.inbox.frames() {
                lockstep.record_frame(now, frame);
            }
        }
    }

    /// Restarts the pace and continues sampling at tick `at`. The authority went back, so the inputs already sampled
    /// would be too far ahead of it.
    fn sample_from(&mut self, at: Tick) {
        self.restart_pace();
        self.replica.timeline.local_actions_mut().skip_to(at);
    }

    fn restart_pace(&mut self) {
        if let Mode::Predicting(predicting) = &mut self.mode {
            predicting.restart();
        }
    }

    pub(crate) fn restart_tape(&mut self) {
        let delay = self.command_delay();
        if let Some(tape) = &mut self.replica.tape {
            tape.begin(delay as u8, self.replica.timeline.authority());
        }
    }

    /// The number of turns between a command and its execution; 0 if this session predicts.
    pub(crate) fn command_delay(&self) -> u32 {
        match &self.mode {
            Mode::Predicting(_) => 0,
            Mode::Lockstep(lockstep) => lockstep.delay,
        }
    }

    /// The next turn that the server will seal, as last reported, if the match has a command delay.
    pub(crate) fn next_turn(&self) -> Option<u32> {
        match &self.mode {
            Mode::Lockstep(lockstep) if lockstep.delay > 0 => Some(lockstep.next_turn),
            Mode::Lockstep(_) | Mode::Predicting(_) => None,
        }
    }

    /// Restarts the playout clock in lockstep, with half of the command delay as slack.
    fn restart_playout(&mut self) {
        if let Mode::Lockstep(lockstep) = &mut self.mode {
            let turn = self.replica.timeline.authority().turn();
            let slack = turn.cadence.turn() * lockstep.delay / 2;
            let now = self.replica.allowance.now();
            lockstep.jump(now, turn, now + slack);
            self.replica.timeline.local_actions_mut().open_turn = Some(lockstep.open_turn());
        }
    }

    /// Drops the frames not stepped yet, because the transport is lost. If the session can resume from its authority,
    /// returns the authority's tick and digest, and the newest digest that equalled the server's, because the server
    /// may not have one of the authority's tick.
    pub(crate) fn resumable(&mut self) -> Holds {
        let authority = self.replica.timeline.authority();
        let tick = authority.tick();
        let turn = authority.turn();
        self.replica.inbox.restart(tick);
        if let Mode::Lockstep(lockstep) = &mut self.mode {
            lockstep.restart_arrivals(turn);
        }
        match self.replica.timeline.authority().digest() {
            Ok(digest) if !self.replica.divergence.differs() => Holds::Authority {
                tick,
                digest: digest as u32,
                agreed: self.replica.agreed,
            },
            _ => Holds::Nothing,
        }
    }

    pub(crate) fn resume(&mut self, welcome: &Welcome) {
        self.replica
            .timeline
            .local_actions_mut()
            .resume_from(&welcome.next_seq);
    }

    /// Restarts from the server's world, which may be older than the authority.
    pub(crate) fn restart(&mut self, welcome: &Welcome, world: World<S>) {
        let at = world.tick();
        let went_back = at < self.replica.timeline.authority().tick();
        self.replica.divergence.heal();
        self.replica.agreed = None;
        if !self.replica.has_joined() {
            self.replica.record_join(at);
        }
        self.replica.counted = at;
        self.replica.next_seal = at;
        self.replica.divergence.forget_evidence();
        self.replica.inbox.restart(at);
        self.replica.view.jump(&world);
        self.replica.meter.commands_executed += self.replica.timeline.jump(world) as u64;
        if went_back {
            self.sample_from(at);
        }
        self.restart_tape();
        self.restart_playout();
        self.resume(welcome);
    }

    /// Restarts like [`restart`](Playing::restart), but with other players. Returns the seats and sequence numbers of
    /// the old players' open commands, which count as refused.
    pub(crate) fn restart_as(&mut self, welcome: &Welcome, world: World<S>) -> Vec<(usize, u32)> {
        let actions = self.replica.timeline.local_actions_mut();
        self.replica.meter.commands_executed += actions.jumped(&world) as u64;
        let seat_of = |player| actions.seats().iter().position(|p| *p == player);
        let refused: Vec<(usize, u32)> = actions
            .commands()
            .filter_map(|open| Some((seat_of(open.order.player)?, open.order.seq)))
            .collect();
        self.replica.meter.commands_refused += refused.len() as u64;
        *actions = LocalActions::new(welcome.seats.clone(), &welcome.next_seq);
        if let Mode::Predicting(_) = self.mode {
            self.replica.view.own(actions.players());
        }
        // Inputs are now sampled for other seats, so their clock restarts.
        self.restart_pace();
        self.restart(welcome, world);
        refused
    }

    pub(crate) fn fill_stats(&self, stats: &mut SessionStats) {
        let (meter, view) = (&self.replica.meter, &self.replica.view);
        let totals = view.cues.totals();
        stats.authority_tick = self.replica.timeline.authority().tick().0;
        stats.prediction_tick = self.replica.timeline.prediction().tick().0;
        stats.input_tick = self.replica.timeline.local_actions().next().0;
        stats.timeline = *self.replica.timeline.stats();
        let answers = self
            .replica
            .answers
            .as_ref()
            .is_some_and(|answers| answers.has_failed);
        stats.timeline.step_faults += u64::from(view.has_failed) + u64::from(answers);
        stats.fills = meter.fills;
        stats.heals = meter.heals;
        stats.commands_sent = meter.commands_sent;
        stats.commands_executed = meter.commands_executed;
        stats.commands_refused = meter.commands_refused;
        stats.claims_refused = meter.claims_refused;
        stats.stall_ms = meter.stall.as_secs_f64() * 1e3;
        stats.held_ms = meter.held.as_secs_f64() * 1e3;
        stats.skipped_ticks = meter.skipped_ticks;
        stats.leapt_ticks = meter.leapt_ticks;
        stats.fills_run_max = meter.fills_run_max;
        stats.clock_off_ms = meter.clock_off.as_secs_f64() * 1e3;
        stats.late_turns = meter.late_turns;
        stats.paused_ms = meter.paused.as_secs_f64() * 1e3;
        stats.pause_ms_max = meter.pause_max.as_secs_f64() * 1e3;
        stats.confirmed_ms_p50 = 2 * meter.confirmed.median();
        stats.confirmed_ms_sum = meter.confirmed_time.as_secs_f64() * 1e3;
        stats.confirmed_inputs = meter.confirmed_inputs;
        stats.shed_ms = meter.shed.as_secs_f64() * 1e3;
        stats.late_ms = meter.late.as_secs_f64() * 1e3;
        stats.lead_ticks_mean = meter.lead.get();
        stats.reach_ticks_mean = meter.reach.get();
        stats.margin_ticks_p50 = meter.margins.median();
        stats.rtt_ms_p50 = meter.rtts.median();
        match &self.mode {
            Mode::Predicting(predicting) => predicting.fill_stats(stats),
            Mode::Lockstep(lockstep) => lockstep.fill_stats(self.replica.cadence().tick(), stats),
        }
        stats.corrections = view.picture.corrections().count();
        stats.cues_started = totals.started;
        stats.cues_confirmed = totals.confirmed;
        stats.cues_cancelled = totals.cancelled;
        stats.cues_open = view.cues.open() as u64;
        stats.cues_open_since = view.cues.open_since().map(|tick| tick.0);
    }
}
