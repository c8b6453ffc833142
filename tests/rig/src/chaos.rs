//! Runs a world with a plan of faults drawn from a seed: first chaos, then healing.
//!
//! ```text
//!  seed ─▶ Plan::draw ─▶ Rig ─▶ misfortunes, each a function here ─▶ converge
//!             │            └─ checks at every moment: rig/checks.rs, rig/fairness.rs
//!             └─ printed if anything fails        └─ Reached: which edges were met
//! ```

use std::time::Duration;

use twinstep_core::Mwc;
use twinstep_core::bounds::{DELAY_MAX, PLAYERS_MAX, TICK_MIN};
use twinstep_server::MatchRequest;
use twinstep_server::peer::SessionStage;

use crate::edges::EdgeCases;
use crate::history::History;
use crate::rig::{Play, Rig, Role};

pub mod plan;
pub mod reached;

use plan::{Crashes, Game, Misfortune, Person, Plan};
use reached::{Edge, Reached};

const CLIENTS_MAX: usize = 6;
/// The number of crashes within [`AGAIN`] that count as crashing repeatedly.
const CRASHES_AGAIN: usize = 4;
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub struct Run {
    pub virtual_time: Duration,
    pub crashes: u64,
    pub planted: u64,
    pub desyncs: u64,
    /// The number of rebuilds of the clients that remained until the end.
    pub rebuilds: u64,
    pub cues: u64,
    pub queries: u64,
    pub commands: u64,
    /// The number of times that clients remaining until the end reconnected and got only the missing frames.
    pub resumed: u64,
    /// The number of times that clients remaining until the end reconnected and loaded a world.
    pub reloaded: u64,
    pub reached: Reached,
}

impl Run {
    fn forget<S: Play>(&mut self, rig: &Rig<S>) {
        let stats = rig.match_.stats();
        self.desyncs += stats.desyncs;
        self.queries += stats.queries;
    }

    pub fn add(&mut self, other: &Run) {
        self.virtual_time += other.virtual_time;
        self.crashes += other.crashes;
        self.planted += other.planted;
        self.desyncs += other.desyncs;
        self.rebuilds += other.rebuilds;
        self.cues += other.cues;
        self.queries += other.queries;
        self.commands += other.commands;
        self.resumed += other.resumed;
        self.reloaded += other.reloaded;
        self.reached.add(&other.reached);
    }
}

/// Runs chaos in the history game. A function pointer, so that the generic world is compiled once in this crate, not in
/// each test program.
pub static HISTORY: fn(&Plan) -> Run = run::<History>;
pub static POWDERKEG: fn(&Plan) -> Run = run::<powderkeg_game::Game>;
pub static EDGES: fn(&Plan) -> Run = run::<EdgeCases>;

/// Runs a plan's chaos, then heals the network and requires convergence.
///
/// # Panics
/// If a safety condition is violated, or the world does not converge.
pub fn run<S: Play>(plan: &Plan) -> Run {
    let mut chaos = Chaos::<S>::new(plan);
    while chaos.rig.now < chaos.end {
        chaos.pause();
        if plan.misfortune != Misfortune::Calm || chaos.luck.below(8) == 0 {
            chaos.inject_fault();
        }
    }
    chaos.look();
    chaos.rig.match_.start();
    chaos.as_host(MatchRequest::Resume);
    chaos.as_host(MatchRequest::Tick(plan.policies.tick));
    chaos.rig.converge();
    chaos.finish()
}

struct Chaos<'a, S: Play> {
    plan: &'a Plan,
    rig: Rig<S>,
    luck: Mwc,
    run: Run,
    end: Duration,
    joined: usize,
    crashed_at: Vec<Duration>,
    // A match that still waits for its players is started at this time.
    starts_at: Duration,
}

impl<'a, S: Play> Chaos<'a, S> {
    fn new(plan: &'a Plan) -> Self {
        let mut chaos = Chaos {
            plan,
            rig: Rig::new(plan.rig()),
            luck: Mwc::seed(plan.seed ^ 0x0bad_1dea),
            run: Run::default(),
            end: Duration::from_secs(plan.seconds),
            joined: 0,
            crashed_at: Vec::new(),
            starts_at: Duration::from_secs(1 + plan.seed % 9),
        };
        for (i, person) in plan.people.iter().enumerate() {
            chaos.come(&format!("player {i}"), person);
        }
        chaos
    }

    fn come(&mut self, identity: &str, person: &Person) -> Option<usize> {
        let client = self.rig.join_with(identity, person.seats).ok()?;
        self.rig.cast(client, person.role);
        self.rig.relink(client, person.link);
        self.rig.set_clock(client, person.ahead, person.drift_ppm);
        let is_apart = person.ahead > Duration::from_secs(3_600);
        self.run.reached.record_if(is_apart, Edge::ClocksApart);
        Some(client)
    }

    /// Lets time pass, but not beyond the end of the chaos.
    fn pass(&mut self, time: Duration) {
        let left = self.end.saturating_sub(self.rig.now);
        self.rig.run(time.min(left));
        // The host no longer waits for players.
        if self.rig.now >= self.starts_at {
            self.rig.match_.start();
        }
        self.rig.redial_stallers();
        self.rig.freeze_laggards();
        self.rig.redial_slow_clients();
        self.look();
    }

    fn look(&mut self) {
        self.run.reached.look(&self.rig, self.plan);
        let identities = self.plan.people.len() + self.joined;
        let excused = self.rig.match_.stats().excused;
        self.run
            .reached
            .record_if(excused > identities as u64, Edge::ExcusedAgain);
    }

    fn pause(&mut self) {
        let ms = match self.plan.misfortune {
            Misfortune::Storm => 50 + self.luck.below(700),
            Misfortune::Calm | Misfortune::Usual => 500 + self.luck.below(4_000),
        };
        self.pass(Duration::from_millis(u64::from(ms)));
    }

    fn pick_client(&mut self) -> Option<usize> {
        let clients = self.rig.clients.len() as u32;
        let index = self.luck.below(clients.max(1)) as usize;
        let role = self.rig.clients.get(index)?.role;
        (!matches!(role, Role::Stalls | Role::Lags)).then_some(index)
    }

    fn a_while(&mut self) -> Duration {
        Duration::from_millis(u64::from(self.luck.below(3_000)))
    }

    /// Draws a time from 1 ms to 4 s, log-uniformly.
    fn a_moment(&mut self) -> Duration {
        let ms = 1 << self.luck.below(12);
        Duration::from_millis(u64::from(ms + self.luck.below(ms)))
    }

    fn inject_fault(&mut self) {
        if self.rig.match_.is_paused() && self.luck.below(3) == 0 {
            self.as_host(MatchRequest::Resume);
        }
        let fault = self.luck.below(17);
        let index = self.pick_client();
        match (fault, index) {
            (0, _) => self.join_newcomer(),
            (1, Some(index)) if self.rig.clients.len() > 1 => drop(self.rig.leave(index)),
            (2, Some(index)) => {
                let until = self.rig.now + self.a_while();
                self.rig.freeze(index, until);
            }
            (3, _) => {
                let until = self.rig.now + self.a_while();
                self.rig.stall(until);
            }
            (4 | 5, Some(index)) if !self.plan.links_stay => {
                let link = plan::link(&mut self.luck);
                self.rig.relink(index, link);
            }
            (6, Some(index)) => self.plant_a_desync(index),
            (7, Some(index)) => self.kill_transport(index, false),
            (8, Some(index)) => {
                self.rig.redial(index);
                self.crash_during_join(Some(index));
            }
            (9, Some(index)) => {
                self.rig.restart(index);
                self.crash_during_join(Some(index));
            }
            (10, Some(index)) => self.kill_transport(index, true),
            (11 | 12, _) => self.kill_server(),
            (13, _) if self.plan.delay_changes => self.delay_changes(),
            (14, Some(index)) => self.jump_clock(index),
            (15, Some(index)) => self.hiccup(index),
            (16, Some(index)) => self.make_requests(index),
            _ => {}
        }
    }

    fn as_host(&mut self, request: MatchRequest) {
        let done = self.rig.match_.request(request);
        done.expect("a request within its range");
    }

    fn make_requests(&mut self, index: usize) {
        let tick = self.plan.policies.tick;
        let requests = match self.luck.below(6) {
            0 => 60,
            _ => 1,
        };
        for _ in 0..requests {
            let request = match self.luck.below(5) {
                0 | 1 => MatchRequest::Pause,
                2 => MatchRequest::Resume,
                3 => MatchRequest::Step(1 + self.luck.below(20) as u8),
                _ => MatchRequest::Tick((tick / 2).max(TICK_MIN)),
            };
            // Refused while the client joins, or once its lane is full.
            let _ = self.rig.clients[index].session.request(0, request);
        }
    }

    fn join_newcomer(&mut self) {
        if self.rig.clients.len() >= CLIENTS_MAX.max(self.plan.people.len()) {
            return;
        }
        let seated: usize = self.rig.clients.iter().map(|c| c.seats).sum();
        let person = plan::random_person(&mut self.luck);
        if seated + person.seats > PLAYERS_MAX {
            return;
        }
        self.joined += 1;
        let index = self.come(&format!("joiner {}", self.joined), &person);
        self.crash_during_join(index);
    }

    fn plant_a_desync(&mut self, index: usize) {
        let client = &self.rig.clients[index];
        if self.run.planted == 0
            && client.role.is_honest()
            && client.session.prediction().is_some()
            && self.rig.all_play()
        {
            self.rig.flip(index);
            self.run.planted += 1;
        }
    }

    /// Kills a client's transport; the client redials from a new address. With `is_noticed`, the server's host detects
    /// it first.
    fn kill_transport(&mut self, index: usize, is_noticed: bool) {
        let identity = self.rig.clients[index].identity.clone();
        self.rig.cut(index);
        let while_ = self.a_while();
        self.pass(while_);
        if is_noticed {
            self.rig.hang_up(index);
            let while_ = self.a_while();
            self.pass(while_);
        }
        assert_eq!(
            self.rig.clients[index].identity, identity,
            "no client left meanwhile"
        );
        self.rig.redial(index);
        self.crash_during_join(Some(index));
    }

    /// May kill the server or the joining client during a join, if the plan contains that.
    fn crash_during_join(&mut self, index: Option<usize>) {
        if self.plan.crashes != Crashes::WhileJoining {
            return;
        }
        let moment = self.a_moment();
        self.pass(moment);
        match (self.luck.below(3), index) {
            (0, Some(index)) => {
                let stage = self.rig.match_.stage(self.rig.clients[index].peer());
                let is_on_its_way = stage.is_some_and(|stage| stage != SessionStage::Playing);
                self.run
                    .reached
                    .record_if(is_on_its_way, Edge::ClientKilledWhileJoining);
                self.rig.restart(index);
            }
            (1, _) => self.kill_server_once(),
            _ => {}
        }
    }

    fn kill_server(&mut self) {
        let times = match self.plan.crashes {
            Crashes::Again => 1 + self.luck.below(7),
            Crashes::Usual | Crashes::WhileJoining => 1,
        };
        for _ in 0..times {
            self.kill_server_once();
            let moment = self.a_moment();
            self.pass(moment);
        }
    }

    /// Kills the server and resumes its match; every client reconnects or restarts.
    fn kill_server_once(&mut self) {
        self.run.forget(&self.rig);
        let stages = self
            .rig
            .clients
            .iter()
            .map(|c| self.rig.match_.stage(c.peer()));
        let on_the_way =
            |stage: Option<SessionStage>| stage.is_some_and(|stage| stage != SessionStage::Playing);
        let is_on_its_way = stages.into_iter().any(on_the_way);
        self.run
            .reached
            .record_if(is_on_its_way, Edge::CrashWhileJoining);
        let down = match self.plan.crashes {
            Crashes::Again => self.a_moment().min(Duration::from_millis(400)),
            Crashes::Usual | Crashes::WhileJoining => self.a_while(),
        };
        if self.rig.kill() {
            self.rig.resume_killed(down);
        } else {
            self.run.reached.record(Edge::CrashInLobby);
            self.rig.journal.clear();
            self.rig.start_over(self.plan.policies.clone());
            self.rig.match_.keep_journal().expect("a journal");
            self.rig.stall(self.rig.now + down);
        }
        self.run.crashes += 1;
        self.crashed_at.push(self.rig.now);
        let lately = self
            .crashed_at
            .iter()
            .filter(|at| self.rig.now - **at < AGAIN);
        self.run
            .reached
            .record_if(lately.count() >= CRASHES_AGAIN, Edge::CrashedAgain);
        self.pass(down);
        for client in 0..self.rig.clients.len() {
            match self.luck.below(4) {
                0 => self.rig.restart(client),
                _ => self.rig.redial(client),
            }
        }
    }

    fn delay_changes(&mut self) {
        if self.plan.policies.command_delay > 0 {
            return;
        }
        let mut config = self.rig.match_.config().clone();
        config.delay_ticks = match self.luck.below(3) {
            0 => DELAY_MAX as u8,
            1 => 0,
            _ => self.luck.below(DELAY_MAX) as u8,
        };
        self.rig
            .match_
            .reconfigure(config)
            .expect("a delay within its range");
    }

    /// Freezes a client, too briefly for its player to be dropped.
    fn hiccup(&mut self, index: usize) {
        let while_ = Duration::from_millis(u64::from(300 + self.luck.below(600)));
        self.rig.freeze(index, self.rig.now + while_);
    }

    fn jump_clock(&mut self, index: usize) {
        let jump = self.a_moment();
        self.rig.set_clock(index, jump, 0);
        self.run
            .reached
            .record_if(jump > Duration::from_secs(1), Edge::ClocksApart);
    }

    fn finish(mut self) -> Run {
        let (rig, mut run) = (&self.rig, std::mem::take(&mut self.run));
        run.forget(rig);
        run.virtual_time = rig.now;
        for (i, client) in rig.clients.iter().enumerate() {
            let (resumed, reloaded) = rig.returns(i);
            run.resumed += resumed as u64;
            run.reloaded += reloaded as u64;
            let stats = client.session.counters();
            run.rebuilds += stats.timeline.rebuilds;
            run.cues += stats.cues_started;
            run.commands += stats.commands_executed;
        }
        let plan = self.plan;
        let reached = &mut run.reached;
        reached.record_if(run.commands == 0, Edge::NoCommands);
        reached.record_if(plan.clock_goes_back, Edge::ClockWentBack);
        reached.record_if(plan.passes.is_some(), Edge::SmallDatagrams);
        reached.record_if(rig.met_poison(), Edge::Poisoned);
        reached.record_if(run.resumed > 0, Edge::Resumed);
        reached.record_if(run.reloaded > 0, Edge::Reloaded);
        let is_awful = |person: &Person| person.link.up.loss_ppm >= 100_000;
        let all_awful = plan.links_stay && plan.people.iter().all(is_awful);
        reached.record_if(all_awful, Edge::AwfulForAll);
        self.rig.check_journal();
        run
    }
}

#[must_use]
pub fn play(game: Game, plan: &Plan) -> Run {
    match game {
        Game::History => HISTORY(plan),
        Game::Powderkeg => POWDERKEG(plan),
        Game::Edges => EDGES(plan),
    }
}
