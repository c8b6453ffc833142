//! The guarantees that each player has, whatever other clients do: commands run in time, a client that sends is not
//! dropped, no client is blamed for another client's fault, and a valid ticket admits the player.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::{SessionEnd, SessionStats};
use twinstep_core::PlayerId;
use twinstep_core::bounds::{COMMANDS_OPEN_MAX, FRAGMENT_BYTES, FRAME_BYTES_MAX};
use twinstep_core::world::Presence;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Replay;
use twinstep_server::config::{Laggards, SealWhen, StartWhen};
use twinstep_server::peer::SessionStage;

use super::Rig;
use super::client::RigClient;
use super::play::{Play, Role};
use crate::edges::LARGE_EVERY;

/// The longest time that a bad link may delay a command.
const LINE_PATIENCE: Duration = Duration::from_secs(8);
/// The longest time per minute that a match may pause for its players.
const WAIT_PATIENCE: Duration = Duration::from_secs(25);
/// Silence after a restart of the server is excused for this long.
const EXCUSED: Duration = Duration::from_secs(30);
/// A resumed match waits for its players for at most this long.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// An honest client must be in its match after this time plus the download time of its world.
const JOIN_PATIENCE: Duration = Duration::from_secs(40);
/// The effects of a fault end at most this long after the fault.
const RECOVERY: Duration = Duration::from_secs(2);
/// A player may be dropped only after it has been silent for this long.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// A player may be dropped within this time after its arrival, or after a restart of the server.
const SETTLING: Duration = Duration::from_secs(8);
/// Arrival times of packets are kept for this long.
const ARRIVALS_KEPT: Duration = Duration::from_secs(4);
/// The message of a failed check shows at most this many incidents.
const INCIDENTS: usize = 8;

pub(super) fn record_packet(received_at: &mut VecDeque<Duration>, now: Duration) {
    while received_at
        .front()
        .is_some_and(|at| now - *at > ARRIVALS_KEPT)
    {
        received_at.pop_front();
    }
    received_at.push_back(now);
}

impl<S: Play> RigClient<S> {
    fn silence(&self, now: Duration) -> Duration {
        let arrived = self.received_at.iter().copied();
        let ends = arrived.clone().skip(1).chain([now]);
        arrived
            .zip(ends)
            .map(|(from, to)| to.saturating_sub(from))
            .max()
            .unwrap_or(Duration::MAX)
    }
}

impl<S: Play> Rig<S> {
    /// Excuses a client for a fault that lasts until `until`.
    pub(super) fn disturb(&mut self, client: usize, until: Duration) {
        let lasts = until.saturating_sub(self.now);
        self.clients[client].excuse += lasts + RECOVERY;
    }

    /// Excuses all clients for a server fault that lasts until `until`.
    pub(super) fn disturb_all(&mut self, until: Duration) {
        self.served_since = self.served_since.max(until);
        self.excuse += until.saturating_sub(self.now) + RECOVERY;
    }

    pub(super) fn excused(&self, client: &RigClient<S>) -> Duration {
        let lasts = |since: Option<Duration>| {
            since.map_or(Duration::ZERO, |at| self.now.saturating_sub(at))
        };
        let returning = lasts(self.returning_since).min(HOLD_MAX);
        let away = lasts(client.cut_at) + lasts(client.awaited.out_since);
        let heals = lasts(client.heals_since).min(self.worlds_take());
        client.excuse + self.excuse + returning + away + heals
    }

    /// Returns the time that a client has waited since `since`, not counting excused time.
    fn waited(&self, client: &RigClient<S>, since: (Duration, Duration)) -> Duration {
        let excused = self.excused(client) - since.1;
        let began = match self.config.policies.sealing {
            // Each restart of the server starts a new wait for all players.
            SealWhen::WaitForAll { .. } => since.0.max(self.served_since),
            SealWhen::Deadline => since.0,
        };
        self.now.saturating_sub(began + excused)
    }

    pub(super) fn wait_patience(&self) -> Duration {
        match (self.config.policies.sealing, self.config.policies.laggards) {
            (SealWhen::Deadline, Laggards::Ignore) => Duration::ZERO,
            // The author configured the patience for each silent player, and the waits may follow each other. A resumed
            // match is more patient, and also waits for players whose departure is not in the journal.
            (SealWhen::WaitForAll { kick_after }, _) => {
                let misbehave = self.clients.iter().filter(|c| !c.role.is_honest());
                let silent = (misbehave.count() + self.left.len()).max(1) as u32;
                WAIT_PATIENCE.max(kick_after * silent + EXCUSED)
            }
            _ => WAIT_PATIENCE,
        }
    }

    /// Returns the longest time that a command may take, given the number of open commands: each tick runs at least one
    /// command, and players take turns.
    pub(super) fn order_patience(&self) -> Duration {
        self.patience_for(0)
    }

    /// Returns the longest time that a command may take if `open` commands were open when it was issued: the queue gets
    /// shorter as commands run, but the time waited does not.
    fn patience_for(&self, open: usize) -> Duration {
        let cadence = self.match_.world().turn().cadence;
        let ahead =
            u32::from(self.config.policies.command_delay + 2) * u32::from(cadence.turn_ticks);
        let orders: usize = self.clients.iter().map(|c| c.given_at.len()).sum();
        let queued = orders
            .max(open)
            .min(COMMANDS_OPEN_MAX * self.config.policies.players_max) as u32;
        // A tick may have space for only one fragment.
        let fragments = u32::from(self.config.load.large_bytes).div_ceil(FRAGMENT_BYTES as u32);
        let queued = queued + queued.div_ceil(LARGE_EVERY) * fragments;
        LINE_PATIENCE + self.wait_patience() + cadence.tick() * (queued + ahead)
    }

    /// Returns the longest time that downloading all worlds may take, one after the other, at 256 KiB per second.
    pub(super) fn worlds_take(&self) -> Duration {
        let bytes = self.match_.world().sim().bytes() + FRAME_BYTES_MAX * 60;
        let world = Duration::from_secs_f64(bytes as f64 / f64::from(256 << 10));
        world * self.clients.len() as u32
    }

    fn join_patience(&self) -> Duration {
        JOIN_PATIENCE + self.wait_patience() + self.worlds_take()
    }

    pub(super) fn check_match(&mut self) {
        for incident in self.match_.take_incidents() {
            if self.incidents.len() < INCIDENTS {
                self.incidents.push(incident.to_string());
            }
        }
        if let Some(code) = self.match_.closed() {
            panic!("the match ended: {code:?}; {}", self.incidents.join("\n"));
        }
        self.check_waits();
        self.check_pace();
        let players = (0..self.config.policies.players_max as u8).map(PlayerId);
        for player in players {
            let waited = self.match_.seat_stats(player).waited;
            assert!(
                waited <= self.now,
                "blame: {player} was waited for {waited:?} of {:?}",
                self.now
            );
        }
    }

    /// Records the clients for which the match pauses, and the end of a pause after a restart.
    fn check_waits(&mut self) {
        let passed = self.now - self.looked_at;
        let moved = self.match_.world().tick() != self.moved.0;
        self.record_waits(passed, moved);
        // Guests that have their world wait until the other guests have theirs.
        let begins = self.match_.world().tick() == self.config.policies.start;
        if begins && self.config.policies.start_when != StartWhen::Immediately {
            self.excuse += passed;
        }
        let is_over = |since: Duration| moved || self.now >= since + HOLD_MAX;
        if self.returning_since.is_some_and(is_over) {
            self.end_return();
        }
    }

    pub(super) fn end_return(&mut self) {
        if let Some(since) = self.returning_since.take() {
            self.excuse += self.now.saturating_sub(since).min(HOLD_MAX);
        }
    }

    /// Checks that neither a client's load report nor its stall slows the match beyond its configured patience.
    fn check_pace(&mut self) {
        let now = self.now;
        let passed = now - std::mem::replace(&mut self.looked_at, now);
        let world = self.scene.match_.world();
        let ticks = world.tick().0.saturating_sub(self.moved.0.0);
        if world.tick() != self.moved.0 {
            self.moved = (world.tick(), now);
        }
        let (tick, asked) = (world.turn().cadence.tick(), self.config.policies.tick);
        if self.match_.is_paused() {
            // A pause by request is charged to no client, and excuses the waits of all.
            self.excuse += passed;
            return;
        }
        let stands = self.now.saturating_sub(self.moved.1) > Duration::from_secs(1);
        let slowing = self.match_.slowing();
        let lies = |client: &RigClient<S>| {
            let mut seats = client.session.seats().iter();
            client.role == Role::Lies && seats.any(|player| slowing.contains(*player))
        };
        let lags = |client: &RigClient<S>| {
            client.role == Role::Lags && self.now < client.place.frozen_until
        };
        if self.clients.iter().any(lies) {
            // Only ticks count: a pause of the match is not caused by a request for longer ticks.
            self.slowed += tick.saturating_sub(asked) * ticks;
        } else if stands && self.clients.iter().any(lags) {
            self.slowed += passed;
        }
        // The author configures the patience of the match.
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
            "fairness: one client has slowed the match for {:?} of {:?}",
            self.slowed,
            self.now
        );
    }

    /// Returns `true` if an incident reports that a command or outcome poisoned a step.
    #[must_use]
    pub fn met_poison(&self) -> bool {
        self.incidents.iter().any(|text| text.contains("poison"))
    }

    /// Checks readability: the journal can be replayed to its end.
    pub fn check_journal(&mut self) {
        let rules = &*self.rules;
        let mut replay = Replay::<S>::open(&self.journal, rules).expect("a journal");
        let verified = replay.verify();
        assert!(
            verified.fault.is_none(),
            "readability: the journal cannot be replayed: {:?}",
            verified.fault
        );
    }

    pub(super) fn settle_orders(&mut self, i: usize, stats: &SessionStats) {
        let settled = stats.commands_executed + stats.commands_refused;
        let client = &mut self.clients[i];
        while client.settled < settled {
            client.settled += 1;
            client.given_at.pop_front();
        }
    }

    fn excuse_heal(&mut self, i: usize) {
        // Until the client has loaded the server's world, it cannot know which of its commands ran.
        let (now, most) = (self.now, self.worlds_take());
        let client = &mut self.clients[i];
        if client.session.desynced_since().is_some() {
            client.heals_since.get_or_insert(now);
        } else if let Some(since) = client.heals_since.take() {
            client.excuse += (now - since).min(most);
        }
    }

    pub(super) fn check_fairness(&mut self, i: usize) {
        self.excuse_heal(i);
        let client = &self.clients[i];
        let stage = self.match_.stage(client.peer());
        let plays = stage == Some(SessionStage::Playing);
        if plays || client.role == Role::Deceived {
            let since = (self.now, self.excused(client));
            self.clients[i].left_out_since = since;
        }
        let client = &self.clients[i];
        if !client.role.is_honest() || self.is_outgrown(client) {
            return;
        }
        self.check_orders(client);
        self.check_blame(client);
        if !plays {
            self.check_lockout(client);
        }
        self.check_presence(i, plays);
    }

    /// Fairness: a player's oldest command runs within a bounded time, see `patience_for`.
    fn check_orders(&self, client: &RigClient<S>) {
        let Some(given) = client.given_at.front() else {
            return;
        };
        let waited = self.waited(client, (given.at, given.excuse));
        if waited <= LINE_PATIENCE {
            return;
        }
        let patience = self.patience_for(given.open);
        assert!(
            waited <= patience,
            "fairness: a command of {} waits for {waited:?}, more than {patience:?}; {} are open; the match waits for {:?}: {:?}",
            client.identity,
            client.given_at.len(),
            self.match_.waiting(),
            self.clients
                .iter()
                .map(|c| (
                    &c.identity,
                    c.session.seats(),
                    self.match_.stage(c.peer()),
                    c.session.closed()
                ))
                .collect::<Vec<_>>()
        );
    }

    /// Blame: an honest client is never removed for its behaviour, and can decode every packet that it receives.
    fn check_blame(&self, client: &RigClient<S>) {
        let (name, malformed) = (&client.identity, client.malformed);
        if let Some(SessionEnd::Server(
            code @ (CloseCode::Strikes | CloseCode::Kicked | CloseCode::Fault | CloseCode::Desync),
        )) = client.session.closed()
        {
            panic!(
                "blame: {name} was removed: {code:?}; {}",
                self.incidents.join("\n")
            );
        }
        assert_eq!(
            malformed, 0,
            "readability: {name} could not decode {malformed} packets of its server"
        );
    }

    /// No lockout: a client with a ticket is admitted.
    fn check_lockout(&self, client: &RigClient<S>) {
        let out = self.waited(client, client.left_out_since);
        if out <= JOIN_PATIENCE {
            return;
        }
        let patience = self.join_patience();
        assert!(
            out <= patience,
            "lockout: {} is out for {out:?}, more than {patience:?}: {:?}",
            client.identity,
            client.session.closed()
        );
    }

    /// Human-scale time limits: a player that sends is not dropped.
    fn check_presence(&mut self, i: usize, plays: bool) {
        let client = &self.clients[i];
        let world = self.match_.world();
        let seats = client.session.seats().iter();
        let is_dropped = seats
            .into_iter()
            .any(|p| world.presence(*p) == Presence::Dropped);
        if is_dropped == client.was_dropped {
            return;
        }
        let came_at = client.arrived_at.max(self.served_since);
        // In lockstep a client waiting for a heal does not send batches, because they would come from a diverged match.
        let stands =
            self.config.policies.command_delay > 0 && client.session.desynced_since().is_some();
        // A large world takes longer to arrive, and a client that loads one does not send inputs.
        let is_settled = plays && !stands && self.now.saturating_sub(came_at) >= SETTLING;
        if is_dropped && is_settled && !client.is_doubtful {
            let silence = client.silence(self.now);
            assert!(
                silence >= SILENCE_MIN,
                "time: {} is dropped after a silence of {silence:?}",
                client.identity
            );
        }
        self.clients[i].was_dropped = is_dropped;
    }

    /// Runs until every open command has its result, for at most `order_patience`.
    pub(super) fn run_until_orders_are_settled(&mut self) {
        let end = self.now + self.order_patience();
        let open = |client: &RigClient<S>| client.role.is_honest() && !client.given_at.is_empty();
        while self.now < end && self.clients.iter().any(open) {
            self.run(Duration::from_millis(100));
        }
    }
}
