//! What a match owes to each of its players, whatever the others do: their orders run in time, nobody is dropped
//! who speaks, nobody is blamed for another one, and whoever has a ticket gets in.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::{SessionEnd, SessionStats};
use twinstep_core::PlayerId;
use twinstep_core::bounds::{COMMANDS_OPEN_MAX, FRAME_BYTES_MAX};
use twinstep_core::world::Presence;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::Replay;
use twinstep_server::config::{Laggards, SealWhen};
use twinstep_server::peer::SessionStage;
use twinstep_testing::scene::Scene;

use super::Rig;
use super::client::RigClient;
use super::play::{Play, Role};

/// A line may cost an order so long.
const LINE_PATIENCE: Duration = Duration::from_secs(8);
/// A match that waits for somebody may do so for so long in a minute.
const WAIT_PATIENCE: Duration = Duration::from_secs(25);
/// Whoever is silent after the server's restart is not blamed for so long.
const EXCUSED: Duration = Duration::from_secs(30);
/// A resumed match waits for its players for at most this long.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// Who keeps the rules is in its match after so long, and the time that its world takes.
const JOIN_PATIENCE: Duration = Duration::from_secs(40);
/// What befell somebody is over after so long, beside the time that it lasted.
const RECOVERY: Duration = Duration::from_secs(2);
/// Nobody is dropped who was silent for less.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// Who has just come, or met a server that has, may be dropped until it has settled.
const SETTLING: Duration = Duration::from_secs(8);
/// Times of packets are remembered for so long.
const HEARD: Duration = Duration::from_secs(4);
/// Nobody is told of more than so many incidents.
const INCIDENTS: usize = 8;

/// The server hears a packet of a client.
pub(super) fn note_heard(heard_at: &mut VecDeque<Duration>, now: Duration) {
    while heard_at.front().is_some_and(|at| now - *at > HEARD) {
        heard_at.pop_front();
    }
    heard_at.push_back(now);
}

impl<S: Play> RigClient<S> {
    /// The longest silence of the last seconds.
    fn silence(&self, now: Duration) -> Duration {
        let heard = self.heard_at.iter().copied();
        let ends = heard.clone().skip(1).chain([now]);
        heard
            .zip(ends)
            .map(|(from, to)| to.saturating_sub(from))
            .max()
            .unwrap_or(Duration::MAX)
    }
}

impl<S: Play> Rig<S> {
    /// Something befalls a client that lasts until then.
    pub(super) fn disturb(&mut self, client: usize, until: Duration) {
        let lasts = until.saturating_sub(self.now);
        self.clients[client].excuse += lasts + RECOVERY;
    }

    /// Something befalls the server that lasts until then.
    pub(super) fn disturb_all(&mut self, until: Duration) {
        self.served_since = self.served_since.max(until);
        self.excuse += until.saturating_sub(self.now) + RECOVERY;
    }

    /// The waiting that misfortunes of client and server excuse, up to now.
    pub(super) fn excused(&self, client: &RigClient<S>) -> Duration {
        let lasts = |since: Option<Duration>| {
            since.map_or(Duration::ZERO, |at| self.now.saturating_sub(at))
        };
        let returning = lasts(self.returning_since).min(HOLD_MAX);
        let away = lasts(client.cut_at) + lasts(client.awaited.out_since);
        client.excuse + self.excuse + returning + away
    }

    /// How long a client has waited for something, without what excuses it.
    fn waited(&self, client: &RigClient<S>, since: (Duration, Duration)) -> Duration {
        let excused = self.excused(client) - since.1;
        let began = match self.config.policies.sealing {
            // Each successor of the server waits anew for everybody.
            SealWhen::WaitForAll { .. } => since.0.max(self.served_since),
            SealWhen::Deadline => since.0,
        };
        self.now.saturating_sub(began + excused)
    }

    /// For how long the match may stand still for others.
    pub(super) fn wait_patience(&self) -> Duration {
        match (self.config.policies.sealing, self.config.policies.laggards) {
            (SealWhen::Deadline, Laggards::Ignore) => Duration::ZERO,
            // Its author said how patient the match is with each who does not speak, one after the other; after a restart
            // it is more patient, and waits for those too of whose leaving the journal does not know.
            (SealWhen::WaitForAll { kick_after }, _) => {
                let misbehave = self.clients.iter().filter(|c| !c.role.is_honest());
                let silent = (misbehave.count() + self.left.len()).max(1) as u32;
                WAIT_PATIENCE.max(kick_after * silent + EXCUSED)
            }
            _ => WAIT_PATIENCE,
        }
    }

    /// How long an order may take in a match where everybody has ordered all that it may: each tick runs one order
    /// at least, and players take turns.
    pub(super) fn order_patience(&self) -> Duration {
        self.patience_for(0)
    }

    /// The same for an order that was given when this many were open: the queue gets shorter as orders run, the waiting
    /// does not.
    fn patience_for(&self, open: usize) -> Duration {
        let cadence = self.game.world().turn().cadence;
        let ahead =
            u32::from(self.config.policies.command_delay + 2) * u32::from(cadence.turn_ticks);
        let orders: usize = self.clients.iter().map(|c| c.given_at.len()).sum();
        let queued = orders
            .max(open)
            .min(COMMANDS_OPEN_MAX * self.config.policies.players_max) as u32;
        LINE_PATIENCE + self.wait_patience() + cadence.tick() * (queued + ahead)
    }

    /// How long everybody's world may take: 256 KiB a second, one after the other.
    pub(super) fn worlds_take(&self) -> Duration {
        let bytes = self.game.world().sim().bytes() + FRAME_BYTES_MAX * 60;
        let world = Duration::from_secs_f64(bytes as f64 / f64::from(256 << 10));
        world * self.clients.len() as u32
    }

    /// How long whoever has a ticket may be kept out.
    fn join_patience(&self) -> Duration {
        JOIN_PATIENCE + self.wait_patience() + self.worlds_take()
    }

    /// The match goes on, and only those are put out who deserve it.
    pub(super) fn check_match(&mut self) {
        for incident in self.game.take_incidents() {
            if self.incidents.len() < INCIDENTS {
                self.incidents.push(incident.to_string());
            }
        }
        if let Some(code) = self.game.closed() {
            panic!("the match ended: {code:?}; {}", self.incidents.join("\n"));
        }
        self.check_waits();
        self.check_pace();
        let players = (0..self.config.policies.players_max as u8).map(PlayerId);
        for player in players {
            let waited = self.game.seat_stats(player).waited;
            assert!(
                waited <= self.now,
                "blame: {player} was waited for {waited:?} of {:?}",
                self.now
            );
        }
    }

    /// Notes for whom the match stands still, and when it goes on after a restart.
    fn check_waits(&mut self) {
        let passed = self.now - self.looked_at;
        let moved = self.game.world().tick() != self.moved.0;
        self.note_waits(passed, moved);
        let is_over = |since: Duration| moved || self.now >= since + HOLD_MAX;
        if self.returning_since.is_some_and(is_over) {
            self.end_return();
        }
    }

    /// The match does not wait for those any more who were there before a restart.
    pub(super) fn end_return(&mut self) {
        if let Some(since) = self.returning_since.take() {
            self.excuse += self.now.saturating_sub(since).min(HOLD_MAX);
        }
    }

    /// Neither one client's word nor its standing still slows everybody beyond what the others may be made to wait.
    fn check_pace(&mut self) {
        let now = self.now;
        let passed = now - std::mem::replace(&mut self.looked_at, now);
        let world = self.scene.game.world();
        let ticks = world.tick().0.saturating_sub(self.moved.0.0);
        if world.tick() != self.moved.0 {
            self.moved = (world.tick(), now);
        }
        let (tick, asked) = (world.turn().cadence.tick(), self.config.policies.tick);
        let stands = self.now.saturating_sub(self.moved.1) > Duration::from_secs(1);
        let slowing = self.game.slowing();
        let lies = |client: &RigClient<S>| {
            let mut seats = client.session.seats().iter();
            client.role == Role::Lies && seats.any(|player| slowing.contains(*player))
        };
        let lags = |client: &RigClient<S>| {
            client.role == Role::Lags && self.now < client.place.frozen_until
        };
        if self.clients.iter().any(lies) {
            // What the match waits for besides costs nobody who asks for longer ticks anything.
            self.slowed += tick.saturating_sub(asked) * ticks;
        } else if stands && self.clients.iter().any(lags) {
            self.slowed += passed;
        }
        // Its author says how patient the match is.
        let minute = Duration::from_secs(60);
        let (most, window) = match self.config.policies.sealing {
            SealWhen::WaitForAll { kick_after } => {
                let most = WAIT_PATIENCE.max(kick_after + LINE_PATIENCE);
                (most, minute.max(most * 3))
            }
            SealWhen::Deadline => (WAIT_PATIENCE, minute),
        };
        let windows = 1 + (self.now.as_nanos() / window.as_nanos()) as u32;
        assert!(
            self.slowed <= most * windows,
            "fairness: one client has slowed everybody for {:?} of {:?}",
            self.slowed,
            self.now
        );
    }

    /// Whether an order or an outcome has poisoned a step, as its incident tells.
    #[must_use]
    pub fn met_poison(&self) -> bool {
        self.incidents.iter().any(|text| text.contains("poison"))
    }

    /// Readability: what was sealed can be played again to its end, and taken up from there.
    ///
    /// # Panics
    /// If it cannot.
    pub fn check_journal(&mut self) {
        let rules = &*self.rules;
        let hello = Hello::of::<S>(rules, "").expect("rules without NaN");
        let mut replay = Replay::<S>::open(&self.journal, rules, &hello).expect("a journal");
        let verified = replay.verify();
        assert!(
            verified.fault.is_none(),
            "readability: the journal cannot be played again: {:?}",
            verified.fault
        );
    }

    /// What a match owes to each of its players.
    pub(super) fn check_fairness(&mut self, i: usize, stats: &SessionStats) {
        let now = self.now;
        let settled = stats.commands_executed + stats.commands_refused;
        let excused = self.excused(&self.clients[i]);
        let Scene { game, clients, .. } = &mut self.scene;
        let client = &mut clients[i];
        while client.settled < settled {
            client.settled += 1;
            client.given_at.pop_front();
        }
        let playing = game.stage(client.peer()) == Some(SessionStage::Playing);
        if playing || client.role == Role::Deceived {
            client.left_out_since = (now, excused);
        }
        let client = &self.clients[i];
        if !client.role.is_honest() || self.is_outgrown(client) {
            return;
        }
        self.check_orders(client);
        self.check_blame(client, stats.malformed);
        self.check_lockout(client);
        self.check_presence(i);
    }

    /// Fairness: the oldest order of each player runs within a time that does not depend on the others.
    fn check_orders(&self, client: &RigClient<S>) {
        let Some(given) = client.given_at.front() else {
            return;
        };
        let waited = self.waited(client, (given.at, given.excuse));
        let patience = self.patience_for(given.open);
        assert!(
            waited <= patience,
            "fairness: an order of {} waits for {waited:?}, more than {patience:?}; {} are open; the match waits for {:?}: {:?}",
            client.identity,
            client.given_at.len(),
            self.game.waiting(),
            self.clients
                .iter()
                .map(|c| (
                    &c.identity,
                    c.session.seats(),
                    self.game.stage(c.peer()),
                    c.session.closed()
                ))
                .collect::<Vec<_>>()
        );
    }

    /// Blame: who keeps the rules is never struck or kicked, and reads nothing that it cannot understand.
    fn check_blame(&self, client: &RigClient<S>, malformed: u64) {
        let who = &client.identity;
        if let Some(SessionEnd::Server(
            code @ (CloseCode::Strikes | CloseCode::Kicked | CloseCode::Fault | CloseCode::Desync),
        )) = client.session.closed()
        {
            panic!(
                "blame: {who} is put out: {code:?}; {}",
                self.incidents.join("\n")
            );
        }
        assert_eq!(
            malformed, 0,
            "readability: {who} could not read {malformed} packets of its server"
        );
    }

    /// No lockout: who holds a ticket gets in.
    fn check_lockout(&self, client: &RigClient<S>) {
        let out = self.waited(client, client.left_out_since);
        let patience = self.join_patience();
        assert!(
            out <= patience,
            "lockout: {} is out for {out:?}, more than {patience:?}: {:?}",
            client.identity,
            client.session.closed()
        );
    }

    /// Windows that people feel are in time: nobody is dropped who speaks.
    fn check_presence(&mut self, i: usize) {
        let client = &self.clients[i];
        let world = self.game.world();
        let seats = client.session.seats().iter();
        let is_dropped = seats
            .into_iter()
            .any(|p| world.presence(*p) == Presence::Dropped);
        let came_at = client.arrived_at.max(self.served_since);
        // A large world takes longer to come, and who loads one says nothing.
        let plays = self.game.stage(client.peer()) == Some(SessionStage::Playing);
        // In lockstep a client that waits for a heal gives no batches, for they would be of another match.
        let stands = self.config.policies.command_delay > 0 && client.session.differs().is_some();
        let is_settled = plays && !stands && self.now.saturating_sub(came_at) >= SETTLING;
        if is_dropped && !client.was_dropped && is_settled && !client.is_doubtful {
            let silence = client.silence(self.now);
            assert!(
                silence >= SILENCE_MIN,
                "time: {} is dropped after a silence of {silence:?}",
                client.identity
            );
        }
        self.clients[i].was_dropped = is_dropped;
    }

    /// Runs until every order that is open has its fate, as long as that may take.
    pub(super) fn run_until_orders_are_settled(&mut self) {
        let end = self.now + self.order_patience();
        let open = |client: &RigClient<S>| client.role.is_honest() && !client.given_at.is_empty();
        while self.now < end && self.clients.iter().any(open) {
            self.run(Duration::from_millis(100));
        }
    }
}
