//! A plan of misfortunes from a seed, and its world: first chaos, then healing.
//!
//! ```text
//!  seed ─▶ Plan::draw ─▶ Rig ─▶ misfortunes, each a function here ─▶ converge
//!             │            └─ checks at every moment: rig/checks.rs, rig/fair.rs
//!             └─ printed if anything fails        └─ Reached: which edges were met
//! ```

use std::time::Duration;

use twinstep_core::Mwc;
use twinstep_core::bounds::{DELAY_MAX, PLAYERS_MAX};
use twinstep_server::peer::SessionStage;

use crate::edges::Edges;
use crate::history::History;
use crate::rig::{Play, Rig, Role};

pub mod plan;
pub mod reached;

use plan::{Crashes, Game, Misfortune, Person, Plan};
use reached::{Edge, Reached};

/// Clients that there are at most in a world of few.
const CLIENTS_MAX: usize = 6;
/// Crashes within [`AGAIN`] that are a server which crashes again and again.
const CRASHES_AGAIN: usize = 4;
/// In so long.
const AGAIN: Duration = Duration::from_secs(10);

/// What one run came to.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Virtual time.
    pub virtual_time: Duration,
    /// How often the server was killed.
    pub crashes: u64,
    /// Desyncs that were planted.
    pub planted: u64,
    /// Desyncs that the server heard of.
    pub desyncs: u64,
    /// Rebuilds of all clients that were there at the end.
    pub rebuilds: u64,
    /// Cues of all clients that were there at the end.
    pub cues: u64,
    /// Queries asked.
    pub queries: u64,
    /// Commands that ran.
    pub commands: u64,
    /// Returns of all clients that were there at the end: by frames.
    pub resumed: u64,
    /// Returns of all clients that were there at the end: by a world.
    pub reloaded: u64,
    /// The edges that it reached.
    pub reached: Reached,
}

impl Run {
    /// Takes what a match has counted, before it is over or forgotten by a crash.
    fn forget<S: Play>(&mut self, rig: &Rig<S>) {
        let stats = rig.game.stats();
        self.desyncs += stats.desyncs;
        self.queries += stats.queries;
    }

    /// Adds another world's.
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

/// Chaos in the history game. All that a world consists of is compiled with this and shared by the test programs;
/// each would compile it again for itself.
pub static HISTORY: fn(&Plan) -> Run = run::<History>;
/// The same in Powderkeg.
pub static POWDERKEG: fn(&Plan) -> Run = run::<powderkeg_game::Game>;
/// The same at the edges of every bound.
pub static EDGES: fn(&Plan) -> Run = run::<Edges>;

/// Plays a plan's chaos, then heals the network and requires convergence.
///
/// # Panics
/// If anything happens that must never happen.
pub fn run<S: Play>(plan: &Plan) -> Run {
    let mut chaos = Chaos::<S>::new(plan);
    while chaos.rig.now < chaos.end {
        chaos.pause();
        if plan.misfortune != Misfortune::Calm || chaos.luck.below(8) == 0 {
            chaos.befall();
        }
    }
    chaos.look();
    chaos.rig.converge();
    chaos.finish()
}

/// A world in play.
struct Chaos<'a, S: Play> {
    plan: &'a Plan,
    rig: Rig<S>,
    luck: Mwc,
    run: Run,
    end: Duration,
    joined: usize,
    crashed_at: Vec<Duration>,
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
        };
        for (i, person) in plan.people.iter().enumerate() {
            chaos.come(&format!("player {i}"), person);
        }
        chaos
    }

    /// Somebody comes, if a seat is free.
    fn come(&mut self, identity: &str, person: &Person) -> Option<usize> {
        let client = self.rig.join_with(identity, person.seats).ok()?;
        self.rig.cast(client, person.role);
        self.rig.relink(client, person.link);
        self.rig.set_clock(client, person.ahead, person.drift_ppm);
        let is_apart = person.ahead > Duration::from_secs(3_600);
        self.run.reached.note_if(is_apart, Edge::ClocksApart);
        Some(client)
    }

    /// Time passes, but not beyond the end of the chaos.
    fn pass(&mut self, time: Duration) {
        let left = self.end.saturating_sub(self.rig.now);
        self.rig.run(time.min(left));
        self.rig.stallers_dial_again();
        self.rig.laggards_stand_still();
        self.rig.slow_ones_come_back();
        self.look();
    }

    fn look(&mut self) {
        self.run.reached.look(&self.rig, self.plan);
        let identities = self.plan.people.len() + self.joined;
        let excused = self.rig.game.stats().excused;
        self.run
            .reached
            .note_if(excused > identities as u64, Edge::ExcusedAgain);
    }

    /// Until the next misfortune.
    fn pause(&mut self) {
        let ms = match self.plan.misfortune {
            Misfortune::Storm => 50 + self.luck.below(700),
            Misfortune::Calm | Misfortune::Usual => 500 + self.luck.below(4_000),
        };
        self.pass(Duration::from_millis(u64::from(ms)));
    }

    /// Some client of those that are not tied to a role.
    fn somebody(&mut self) -> Option<usize> {
        let clients = self.rig.clients.len() as u32;
        let who = self.luck.below(clients.max(1)) as usize;
        let role = self.rig.clients.get(who)?.role;
        (!matches!(role, Role::Stalls | Role::Lags)).then_some(who)
    }

    fn a_while(&mut self) -> Duration {
        Duration::from_millis(u64::from(self.luck.below(3_000)))
    }

    /// From a moment to seconds, the powers of two alike.
    fn a_moment(&mut self) -> Duration {
        let ms = 1 << self.luck.below(12);
        Duration::from_millis(u64::from(ms + self.luck.below(ms)))
    }

    fn befall(&mut self) {
        let what = self.luck.below(17);
        let who = self.somebody();
        match (what, who) {
            (0, _) => self.somebody_joins(),
            (1, Some(who)) if self.rig.clients.len() > 1 => drop(self.rig.leave(who)),
            (2, Some(who)) => {
                let until = self.rig.now + self.a_while();
                self.rig.freeze(who, until);
            }
            (3, _) => {
                let until = self.rig.now + self.a_while();
                self.rig.stall(until);
            }
            (4 | 5, Some(who)) if !self.plan.links_stay => {
                let link = plan::link(&mut self.luck);
                self.rig.relink(who, link);
            }
            (6, Some(who)) => self.plant_a_desync(who),
            (7, Some(who)) => self.transport_dies(who, false),
            (8, Some(who)) => {
                self.rig.redial(who);
                self.crash_meanwhile(Some(who));
            }
            (9, Some(who)) => {
                self.rig.restart(who);
                self.crash_meanwhile(Some(who));
            }
            (10, Some(who)) => self.transport_dies(who, true),
            (11 | 12, _) => self.server_is_killed(),
            (13, _) if self.plan.delay_changes => self.delay_changes(),
            (14, Some(who)) => self.clock_jumps(who),
            (15, Some(who)) => self.hiccup(who),
            _ => {}
        }
    }

    fn somebody_joins(&mut self) {
        if self.rig.clients.len() >= CLIENTS_MAX.max(self.plan.people.len()) {
            return;
        }
        let seated: usize = self.rig.clients.iter().map(|c| c.seats).sum();
        let person = plan::person(&mut self.luck);
        if seated + person.seats > PLAYERS_MAX {
            return;
        }
        self.joined += 1;
        let who = self.come(&format!("joiner {}", self.joined), &person);
        self.crash_meanwhile(who);
    }

    fn plant_a_desync(&mut self, who: usize) {
        let client = &self.rig.clients[who];
        if self.run.planted == 0
            && client.role.is_honest()
            && client.session.prediction().is_some()
            && self.rig.all_play()
        {
            self.rig.flip(who);
            self.run.planted += 1;
        }
    }

    /// A transport dies; who dials again does so from a new address. The server's host may find out before.
    fn transport_dies(&mut self, who: usize, is_told: bool) {
        let whose = self.rig.clients[who].identity.clone();
        self.rig.cut(who);
        let while_ = self.a_while();
        self.pass(while_);
        if is_told {
            self.rig.hang_up(who);
            let while_ = self.a_while();
            self.pass(while_);
        }
        assert_eq!(
            self.rig.clients[who].identity, whose,
            "nobody left meanwhile"
        );
        self.rig.redial(who);
        self.crash_meanwhile(Some(who));
    }

    /// The server, or the client that comes, is killed while it comes.
    fn crash_meanwhile(&mut self, who: Option<usize>) {
        if self.plan.crashes != Crashes::WhileJoining {
            return;
        }
        let moment = self.a_moment();
        self.pass(moment);
        match (self.luck.below(3), who) {
            (0, Some(who)) => {
                let stage = self.rig.game.stage(self.rig.clients[who].peer());
                let is_on_its_way = stage.is_some_and(|stage| stage != SessionStage::Playing);
                self.run
                    .reached
                    .note_if(is_on_its_way, Edge::ClientKilledWhileJoining);
                self.rig.restart(who);
            }
            (1, _) => self.server_is_killed_once(),
            _ => {}
        }
    }

    fn server_is_killed(&mut self) {
        let times = match self.plan.crashes {
            Crashes::Again => 1 + self.luck.below(7),
            Crashes::Usual | Crashes::WhileJoining => 1,
        };
        for _ in 0..times {
            self.server_is_killed_once();
            let moment = self.a_moment();
            self.pass(moment);
        }
    }

    /// The server is killed; its successor goes on, and everybody comes back in some way.
    fn server_is_killed_once(&mut self) {
        self.run.forget(&self.rig);
        let stages = self
            .rig
            .clients
            .iter()
            .map(|c| self.rig.game.stage(c.peer()));
        let on_the_way =
            |stage: Option<SessionStage>| stage.is_some_and(|stage| stage != SessionStage::Playing);
        let is_on_its_way = stages.into_iter().any(on_the_way);
        self.run
            .reached
            .note_if(is_on_its_way, Edge::CrashWhileJoining);
        let down = match self.plan.crashes {
            Crashes::Again => self.a_moment().min(Duration::from_millis(400)),
            Crashes::Usual | Crashes::WhileJoining => self.a_while(),
        };
        self.rig.crash(down);
        self.run.crashes += 1;
        self.crashed_at.push(self.rig.now);
        let lately = self
            .crashed_at
            .iter()
            .filter(|at| self.rig.now - **at < AGAIN);
        self.run
            .reached
            .note_if(lately.count() >= CRASHES_AGAIN, Edge::CrashedAgain);
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
        let mut config = self.rig.game.config().clone();
        config.delay_ticks = match self.luck.below(3) {
            0 => DELAY_MAX as u8,
            1 => 0,
            _ => self.luck.below(DELAY_MAX) as u8,
        };
        self.rig
            .game
            .reconfigure(config)
            .expect("a delay within its range");
    }

    /// A client's process stands still for less time than anybody should be dropped for.
    fn hiccup(&mut self, who: usize) {
        let while_ = Duration::from_millis(u64::from(300 + self.luck.below(600)));
        self.rig.freeze(who, self.rig.now + while_);
    }

    fn clock_jumps(&mut self, who: usize) {
        let jump = self.a_moment();
        self.rig.set_clock(who, jump, 0);
        self.run
            .reached
            .note_if(jump > Duration::from_secs(1), Edge::ClocksApart);
    }

    fn finish(mut self) -> Run {
        let (rig, mut run) = (&self.rig, std::mem::take(&mut self.run));
        run.forget(rig);
        run.virtual_time = rig.now;
        for (i, client) in rig.clients.iter().enumerate() {
            let (resumed, reloaded) = rig.returns(i);
            run.resumed += resumed as u64;
            run.reloaded += reloaded as u64;
            let stats = client.session.stats();
            run.rebuilds += stats.timeline.rebuilds;
            run.cues += stats.cues_started;
            run.commands += stats.commands_executed;
        }
        let plan = self.plan;
        let reached = &mut run.reached;
        reached.note_if(run.commands == 0, Edge::NoCommands);
        reached.note_if(plan.clock_goes_back, Edge::ClockWentBack);
        reached.note_if(plan.passes.is_some(), Edge::SmallDatagrams);
        reached.note_if(rig.met_poison(), Edge::Poisoned);
        reached.note_if(run.resumed > 0, Edge::Resumed);
        reached.note_if(run.reloaded > 0, Edge::Reloaded);
        let is_awful = |person: &Person| person.link.up.loss_ppm >= 100_000;
        let all_awful = plan.links_stay && plan.people.iter().all(is_awful);
        reached.note_if(all_awful, Edge::AwfulForAll);
        self.rig.check_journal();
        run
    }
}

/// The world of a seed and a game, whichever it is.
#[must_use]
pub fn play(game: Game, plan: &Plan) -> Run {
    match game {
        Game::History => HISTORY(plan),
        Game::Powderkeg => POWDERKEG(plan),
        Game::Edges => EDGES(plan),
    }
}
