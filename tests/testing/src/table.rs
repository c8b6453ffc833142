//! [`Table`]: the match and the sessions of an arena, moment by moment.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, Event, Session, SessionStats};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::diff::Difference;
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, Simulation, Tick};
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_server::peer::SessionStage;
use twinstep_server::{Match, Output, SessionId};

use crate::failure::{FailureKind, Wrong};
use crate::fault::FIELDS_MAX;
use crate::scene::{Passing, Place, Scene, Seated};
use crate::script::{Script, Seen};
use crate::steps::differences;
use crate::verdicts::Verdicts;

const FRAME: Duration = Duration::from_nanos(16_666_667);
/// The mean time between two failures: a link goes down, or a process freezes.
const FAILURE_EVERY: Duration = Duration::from_secs(8);
const FAILURE_MS_MAX: u32 = 3_000;
const JOB_MS_MAX: u32 = 400;
const GOOD_NETWORK: Duration = Duration::from_secs(6);
/// The time for which the game continues without new commands, to settle open ones. Queries stay open for 2 s.
const QUIET: Duration = Duration::from_secs(6);
/// The maximum number of ticks by which a client trails the server at the end, beyond a turn and the command delay.
const TRAILS_MAX: u32 = 8;
const MAY_WAIT_TICKS: u32 = 60;
/// The number of the server's worlds kept to name the fields in which a client differs. If a turn has several ticks, only
/// the world at its end is kept.
const WORLDS_KEPT: usize = 240;
/// The number of ticks for which a client that differs continues, to a tick whose world is kept.
const APART_TICKS_MAX: u32 = 64;

pub(crate) struct Client<S: Simulation> {
    name: String,
    session: Session<S>,
    place: Place,
    down_until: Duration,
    /// The client's input for a tick not sampled yet.
    decided: Option<(Tick, S::Input)>,
    compared: Option<Tick>,
    /// The client's first confirmed world that differed, if the server's world of that tick was not kept.
    apart: Option<Box<World<S>>>,
}

impl<S: Simulation> Seated for Client<S> {
    fn place(&self) -> &Place {
        &self.place
    }

    fn place_mut(&mut self) -> &mut Place {
        &mut self.place
    }
}

pub(crate) struct Table<S: Simulation> {
    scene: Scene<S, Client<S>>,
    script: Script<S>,
    rules: Arc<S::Rules>,
    link: LinkProfile,
    make: Box<dyn Fn(usize) -> Session<S>>,
    luck: Mwc,
    worlds: VecDeque<World<S>>,
    orders: bool,
    pub(crate) verdicts: Verdicts<S>,
}

impl<S: Simulation> Deref for Table<S> {
    type Target = Scene<S, Client<S>>;

    fn deref(&self) -> &Self::Target {
        &self.scene
    }
}

impl<S: Simulation> DerefMut for Table<S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.scene
    }
}

impl<S: Simulation> Table<S> {
    pub(crate) fn new(
        match_: Match<S>,
        script: Script<S>,
        rules: Arc<S::Rules>,
        link: LinkProfile,
        make: impl Fn(usize) -> Session<S> + 'static,
    ) -> Self {
        Table {
            luck: Mwc::seed(script.seed).fork(Key::new(5, 0)),
            scene: Scene::new(match_),
            script,
            rules,
            link,
            make: Box::new(make),
            worlds: VecDeque::new(),
            orders: true,
            verdicts: Verdicts::default(),
        }
    }

    pub(crate) fn play(&mut self, time: Duration) -> Result<(), Wrong> {
        let players = self.script.players;
        for n in 0..players - players / 2 {
            self.join(n)?;
        }
        // The others join later: they download the world, or step through the past.
        self.run(time / 4)?;
        for n in players - players / 2..players {
            self.join(n)?;
        }
        let end = time;
        while self.now < end {
            let wait = FAILURE_EVERY.mul_f32(0.5 + self.luck.unit_f32());
            self.run(wait.min(end - self.now))?;
            self.inject_failure();
        }
        for client in &mut self.clients {
            client.place.line.set_profile(LinkProfile::LAN);
            (client.down_until, client.place.frozen_until) = (Duration::ZERO, Duration::ZERO);
        }
        self.run(GOOD_NETWORK)?;
        self.orders = false;
        self.run(QUIET)?;
        self.check_liveness()
    }

    pub(crate) fn stats(&self) -> BTreeMap<String, SessionStats> {
        let of = |client: &Client<S>| (client.name.clone(), client.session.stats());
        self.clients.iter().map(of).collect()
    }

    fn join(&mut self, n: usize) -> Result<(), Wrong> {
        let (name, peer) = (format!("player {n}"), SessionId(n as u64 + 1));
        let now = self.now;
        let joined = self.match_.connect(now, peer, &name, 1);
        joined.map_err(|code| Wrong::new(FailureKind::Disconnected, format!("{name}: {code}")))?;
        let line = SimLink::new(self.link, u64::from(self.luck.next_u32()));
        self.scene.clients.push(Client {
            session: (self.make)(n),
            place: Place::new(peer, line, FRAME, now),
            name,
            down_until: Duration::ZERO,
            decided: None,
            compared: None,
            apart: None,
        });
        Ok(())
    }

    fn inject_failure(&mut self) {
        let who = self.luck.below(self.clients.len() as u32) as usize;
        let time = Duration::from_millis(self.luck.below(FAILURE_MS_MAX).into());
        let until = self.now + time;
        match self.luck.below(2) {
            0 => self.clients[who].down_until = until,
            _ => self.clients[who].place.frozen_until = until,
        }
    }

    fn run(&mut self, time: Duration) -> Result<(), Wrong> {
        self.pass(time, |_| ())
    }

    fn keep_world(&mut self) {
        let world = self.scene.match_.world();
        if self.worlds.back().map(World::tick) != Some(world.tick()) {
            if self.worlds.len() == WORLDS_KEPT {
                self.worlds.pop_front();
            }
            self.worlds.push_back(world.clone());
        }
    }

    fn play_frame(&mut self, i: usize) -> Result<(), Wrong> {
        let now = self.now;
        self.decide(i);
        let (client, verdicts) = (&mut self.scene.clients[i], &mut self.verdicts);
        // Also polled while the link is down, because these packets are lost, not late.
        while let Some(bytes) = client.place.line.down.poll(now) {
            if now >= client.down_until {
                client.session.handle(now, bytes);
            }
        }
        if client.place.draws(now) {
            let held = client.decided.clone().map(|(_, input)| input);
            let mut is_sampled = false;
            let advanced = client.session.advance(now, BUDGET_TICKS, |_| {
                is_sampled = true;
                held.clone().unwrap_or_default()
            });
            if let Err(closed) = advanced {
                let text = format!("{} was disconnected: {closed}", client.name);
                return Err(Wrong::new(FailureKind::Disconnected, text));
            }
            if is_sampled {
                client.decided = None;
            }
        }
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Some(len) = client.session.poll_transmit(now, &mut buffer) {
            if now >= client.down_until {
                client.place.line.up.send(now, &buffer[..len]);
            }
        }
        while let Some(event) = client.session.poll_event() {
            match event {
                Event::StepFault(text) => {
                    return Err(Wrong::new(
                        FailureKind::Fault,
                        format!("{}: {text}", client.name),
                    ));
                }
                Event::Differs { at } => {
                    let name = format!("{}, which has differed since {at},", client.name);
                    let Some(authority) = client.session.authority() else {
                        continue;
                    };
                    let kept = kept(&self.worlds, authority.tick());
                    let fields = kept.and_then(|world| differences(authority, world, FIELDS_MAX));
                    return Err(match (fields, &client.apart) {
                        (Some(fields), _) => diverged(&name, authority.tick(), &fields),
                        (None, Some(apart)) => repeated(&name, apart, &self.scene.match_),
                        (None, None) => repeated(&name, authority, &self.scene.match_),
                    });
                }
                _ => {}
            }
        }
        while let Some(event) = client.session.poll_cue() {
            if !client.place.book_cue(&event) {
                let text = format!("{}: {:?} started or settled twice", client.name, event.id);
                return Err(Wrong::new(FailureKind::Cues, text));
            }
            verdicts.record_cue(client.place.peer.0, &event);
        }
        Ok(())
    }

    /// Decides a client's next input and command, once for each input that the session samples.
    fn decide(&mut self, i: usize) {
        let client = &mut self.scene.clients[i];
        let (Some(world), Some(&player)) =
            (client.session.prediction(), client.session.seats().first())
        else {
            return;
        };
        if client.decided.is_some() {
            return;
        }
        let tick = world.tick();
        let seen = Seen {
            sim: world.sim(),
            rules: &self.rules,
            player,
            tick,
        };
        let (input, order) = self.script.drive(&seen);
        client.decided = Some((tick, input));
        if let Some(order) = order.filter(|_| self.orders) {
            // A command refused because too many are open counts as not issued.
            let _ = client.session.command(0, order);
        }
    }

    fn check_safety(&mut self, i: usize) -> Result<(), Wrong> {
        let client = &mut self.scene.clients[i];
        let Some(authority) = client.session.authority() else {
            return Ok(());
        };
        let tick = authority.tick();
        if client.compared == Some(tick) {
            return Ok(());
        }
        client.compared = Some(tick);
        let ours = authority.digest().ok();
        let truth = self.scene.match_.digest_at(tick);
        let differs = truth.is_some() && ours != truth;
        if differs && let Some(world) = kept(&self.worlds, tick) {
            let name = match &client.apart {
                None => client.name.clone(),
                Some(apart) => format!(
                    "{}, which has differed since {},",
                    client.name,
                    apart.tick()
                ),
            };
            let fields = differences(authority, world, FIELDS_MAX).unwrap_or_default();
            return Err(diverged(&name, tick, &fields));
        }
        match &client.apart {
            None if differs => client.apart = Some(Box::new(authority.clone())),
            Some(apart) if !differs || apart.tick() + APART_TICKS_MAX < tick => {
                return Err(repeated(&client.name, apart, &self.scene.match_));
            }
            _ => {}
        }
        let stats = client.session.counters();
        let settled = stats.cues_confirmed + stats.cues_cancelled + stats.cues_open;
        if stats.cues_started != settled {
            let text = format!(
                "{}: {} cues started, {settled} settled or open",
                client.name, stats.cues_started
            );
            return Err(Wrong::new(FailureKind::Cues, text));
        }
        Ok(())
    }

    fn check_liveness(&self) -> Result<(), Wrong> {
        let cadence = self.match_.world().turn().cadence;
        let delay = u32::from(self.match_.config().command_delay + 1);
        let may_trail = TRAILS_MAX + delay * u32::from(cadence.turn_ticks);
        for client in &self.clients {
            let (name, stats) = (&client.name, client.session.counters());
            let wrong = |kind, what: String| Err(Wrong::new(kind, format!("{name}: {what}")));
            if self.match_.stage(client.place.peer) != Some(SessionStage::Playing) {
                return wrong(
                    FailureKind::Disconnected,
                    "no longer in the match".to_owned(),
                );
            }
            let trails = self
                .match_
                .world()
                .tick()
                .0
                .saturating_sub(stats.authority_tick);
            if trails > may_trail {
                return wrong(FailureKind::Behind, format!("trails by {trails} ticks"));
            }
            let settled = stats.commands_executed + stats.commands_refused;
            let accepted: u64 = self
                .match_
                .players_of(client.place.peer)
                .iter()
                .map(|player| self.match_.seat_stats(player).accepted)
                .sum();
            if stats.commands_sent != settled || accepted != stats.commands_executed {
                let text = format!(
                    "of {} commands, {} ran here, {accepted} ran at the server, and {} were refused",
                    stats.commands_sent, stats.commands_executed, stats.commands_refused
                );
                return wrong(FailureKind::Orders, text);
            }
            let authority = Tick(stats.authority_tick);
            if let Some(since) = stats.cues_open_since
                && Tick(since) + may_trail + MAY_WAIT_TICKS < authority
            {
                return wrong(
                    FailureKind::Cues,
                    format!("a cue of t{since} is not settled at {authority}"),
                );
            }
        }
        Ok(())
    }
}

impl<S: Simulation> Passing for Table<S> {
    type Game = S;
    type Client = Client<S>;
    type Wrong = Wrong;

    fn serve(&mut self) -> Result<(), Wrong> {
        let Table {
            scene,
            luck,
            verdicts,
            ..
        } = self;
        let now = scene.now;
        for client in &mut scene.clients {
            while let Some(bytes) = client.place.line.up.poll(now) {
                if now >= client.down_until {
                    scene.match_.handle(now, client.place.peer, bytes);
                }
            }
        }
        scene.jobs.complete(now, &mut scene.match_);
        scene.match_.advance(now);
        let takes = |_: &S::Outcome| Some(Duration::from_millis(luck.below(JOB_MS_MAX).into()));
        // The arena has no files or tickets, and each session reports its own end.
        scene.drain(takes, |output| {
            if let Output::Journal(bytes) = output {
                verdicts.journal.extend_from_slice(bytes);
            }
        });
        if let Some(incident) = scene.match_.take_incidents().first() {
            return Err(Wrong::new(FailureKind::Fault, incident.to_string()));
        }
        self.keep_world();
        Ok(())
    }

    fn step_client(&mut self, client: usize) -> Result<(), Wrong> {
        self.play_frame(client)?;
        self.check_safety(client)
    }
}

fn kept<S: Simulation>(worlds: &VecDeque<World<S>>, tick: Tick) -> Option<&World<S>> {
    worlds.iter().find(|world| world.tick() == tick)
}

/// Describes how a client's confirmed state differs from the server's.
fn diverged(name: &str, tick: Tick, fields: &[Difference]) -> Wrong {
    let mut text = format!("{name} != the server at {tick}");
    for field in fields {
        text.push_str(&format!("\n  {field}"));
    }
    Wrong::new(FailureKind::Diverged, text)
}

/// Describes how a client's confirmed state differs from the server's, which is computed again because it was not kept.
fn repeated<S: Simulation>(name: &str, authority: &World<S>, match_: &Match<S>) -> Wrong {
    let tick = authority.tick();
    let server = match_.world_at(tick);
    let fields = server.and_then(|world| differences(authority, world, FIELDS_MAX));
    let mut wrong = diverged(name, tick, fields.as_deref().unwrap_or_default());
    if fields.is_none() {
        wrong.what.push_str(
            "\n  no field can be named: the server's world of this tick is gone, and its step, run again, gives another \
             result. The step uses something outside the state; `check` names it",
        );
    }
    wrong
}
