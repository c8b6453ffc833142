//! Safety: conditions that must hold in every frame of an honest client. Liveness: after the network has healed, honest
//! clients are connected, have the server's state, and have reached their target margin.

use std::time::Duration;

use twinstep_client::{SessionEnd, SessionStats};
use twinstep_core::bounds::{ANSWER_TICKS, WORLD_BYTES_MAX, input_window, lead_max};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::MatchRequest;
use twinstep_server::peer::SessionStage;

use super::Rig;
use super::client::RigClient;
use super::play::Play;

impl<S: Play> Rig<S> {
    pub(super) fn check(&mut self, i: usize, stats: &SessionStats) {
        let client = &self.clients[i];
        let name = &client.identity;
        // A dishonest client cannot know how the server used its corrupted inputs.
        if !client.role.is_honest() {
            return;
        }
        let Some(authority) = client.session.authority() else {
            return;
        };
        let tick = authority.tick();
        let lead = stats.prediction_tick - tick.0;
        let length = authority.turn().cadence.tick();
        // Shorter ticks allowed a larger lead, and a late world moves the authority, so ticks stepped or sampled
        // earlier may exceed the current limit.
        let (played, sampled) = client.gone_to;
        assert!(
            lead <= lead_max(length) || stats.prediction_tick <= played,
            "{name}: plays on though the lead is {lead} ticks"
        );
        let reach = stats.input_tick.saturating_sub(tick.0);
        assert!(
            reach <= input_window(length) || stats.input_tick <= sampled,
            "{name}: samples though the reach is {reach} ticks"
        );
        assert_eq!(
            stats.cues_started,
            stats.cues_confirmed + stats.cues_cancelled + stats.cues_open,
            "{name}: a cue was lost or settled twice"
        );
        let excused = client.flipped && stats.heals <= client.healed;
        let compared = Some((tick, stats.heals));
        let gone_to = (stats.prediction_tick, stats.input_tick);
        if !excused && client.compared != compared {
            let truth = self.digests.get(tick.0 as usize);
            let ours = authority.digest().expect("no NaN");
            assert_eq!(
                Some(&ours),
                truth,
                "{name}: the authority differs from the server at {tick}"
            );
            self.clients[i].compared = compared;
        }
        self.clients[i].gone_to = gone_to;
    }

    /// Heals the network, waits, and then checks that all honest clients are live, equal, and on target.
    pub fn converge(&mut self) {
        for i in 0..self.clients.len() {
            self.relink(i, LinkProfile::LAN);
            self.clients[i].place.frozen_until = Duration::ZERO;
        }
        self.stalled_until = Duration::ZERO;
        self.run(Duration::from_secs(6));
        self.run_until_slow_clients_are_back();
        // A player's request may have arrived only now.
        if self.match_.is_paused() {
            let resumed = self.match_.request(MatchRequest::Resume);
            resumed.expect("hosts may resume");
        }
        self.command(false);
        // A query that no resolver answers ends after `ANSWER_TICKS`.
        let tick = self.match_.world().turn().cadence.tick();
        self.run((tick * (ANSWER_TICKS + 40)).max(Duration::from_secs(4)));
        self.run_until_orders_are_settled();
        self.run_until_worlds_are_here();
        // A clock applies a correction once a turn.
        self.run(self.match_.world().turn().cadence.turn() * 24);
        self.run_until_clocks_are_on_target();
        let server = self.match_.world().tick();
        for client in self.clients.iter().filter(|c| c.role.is_honest()) {
            let name = &client.identity;
            let stats = client.session.counters();
            if self.is_outgrown(client) {
                continue;
            }
            if let Some(closed) = client.session.closed() {
                panic!("{name} is out: {closed}; {:?}", client.awaited.times_out);
            }
            assert_eq!(
                self.match_.stage(client.peer()),
                Some(SessionStage::Playing),
                "{name} is not in the match"
            );
            assert!(
                client.session.desynced_since().is_none(),
                "{name} still differs"
            );
            assert!(
                self.has_caught_up(client),
                "{name} trails by {}",
                server.0 - stats.authority_tick
            );
            assert!(
                self.is_on_target(client),
                "{name}: margin {} of {}",
                stats.margin_ticks_now,
                stats.margin_ticks_target
            );
            // The process before a restart may have issued commands that ran later.
            assert!(
                client.restarted
                    || stats.commands_sent == stats.commands_executed + stats.commands_refused,
                "{name}: of {} commands, {} ran and {} were refused",
                stats.commands_sent,
                stats.commands_executed,
                stats.commands_refused
            );
        }
        self.check_commands();
        self.run_until_queries_are_answered();
        // A corrupted packet may ask a query under a key already taken.
        assert!(
            self.spoiled || !self.match_.world().sim().is_answered_twice(),
            "a query was answered twice"
        );
        if let Some((asked, answered)) = self.match_.world().sim().asked_and_answered() {
            let open = self.match_.world().open_queries().len() as u32;
            assert!(
                self.spoiled || asked == answered + open,
                "a query was answered twice or never: {asked} asked, {answered} answered, {open} open"
            );
            assert_eq!(open, 0, "queries stay open");
        }
    }

    fn is_on_target(&self, client: &RigClient<S>) -> bool {
        let stats = client.session.counters();
        let off = (stats.margin_ticks_now - stats.margin_ticks_target).abs();
        // Inputs are sampled once a frame, so an error below half a frame cannot be steered away.
        let tick = self.match_.world().turn().cadence.tick();
        let frame = client.place.frame.as_secs_f64() / tick.as_secs_f64();
        if client.session.seats().is_empty() {
            // A spectator's clock does not correct smaller errors.
            return off <= 0.024 / tick.as_secs_f64() + frame;
        }
        let cadence = self.match_.world().turn().cadence;
        // While the input delay shrinks, a clock pauses for a tick now and then.
        let stands = f64::from(u8::from(stats.delay_ticks > cadence.delay_ticks.into()));
        self.config.policies.command_delay > 0 || off <= (frame / 2.0).max(1.0) + stands + 0.01
    }

    /// Runs until all clocks are on target, for a bounded number of turns. A clock measures its margin continuously,
    /// and is off target for short times. Steering changes the speed by a tenth, so an excess margin of 12 ticks (after
    /// the input delay has grown) takes 120 ticks.
    fn run_until_clocks_are_on_target(&mut self) {
        let cadence = self.match_.world().turn().cadence;
        let turn = cadence.turn();
        let steered = cadence.tick() * 12 * 11;
        let end = self.now + (turn * 24).max(steered).max(Duration::from_secs(2));
        while self.now < end {
            let mut honest = self.clients.iter().filter(|c| c.role.is_honest());
            if honest.all(|client| self.is_on_target(client)) {
                break;
            }
            self.run(turn);
        }
    }

    fn has_caught_up(&self, client: &RigClient<S>) -> bool {
        let cadence = self.match_.world().turn().cadence;
        let ahead = (self.config.policies.command_delay + 1) * cadence.turn_ticks;
        let behind = self.match_.world().tick().0 - client.session.counters().authority_tick;
        // A slow frame may last for many short ticks.
        let frame = client.place.frame.as_nanos() / cadence.tick().as_nanos();
        behind <= 8.max(2 * frame as u32) + u32::from(ahead)
    }

    fn run_until_worlds_are_here(&mut self) {
        let end = self.now + self.worlds_take();
        let waits = |rig: &Self| {
            let mut honest = rig.clients.iter().filter(|c| c.role.is_honest());
            let is_there =
                |c: &RigClient<S>| rig.has_caught_up(c) && c.session.desynced_since().is_none();
            honest.any(|c| !rig.is_outgrown(c) && !is_there(c))
        };
        while self.now < end && waits(self) {
            self.run(Duration::from_millis(500));
        }
    }

    /// Runs until no query is open. The match may have to wait for silent players first.
    fn run_until_queries_are_answered(&mut self) {
        let tick = self.match_.world().turn().cadence.tick();
        let end = self.now + self.wait_patience() * 2 + tick * (ANSWER_TICKS + 40);
        while self.now < end && !self.match_.world().open_queries().is_empty() {
            self.run(Duration::from_millis(500));
        }
    }

    /// Returns `true` if a client was removed because the world is larger than its bound.
    pub(super) fn is_outgrown(&self, client: &RigClient<S>) -> bool {
        let is_refused =
            client.session.closed() == Some(SessionEnd::Server(CloseCode::WorldTooLarge));
        let bytes = self.match_.world().sim().bytes();
        is_refused && self.match_.stats().world_bytes.max(bytes) > WORLD_BYTES_MAX
    }

    /// Checks that each command ran exactly once, in its player's order, and that a client issued it.
    fn check_commands(&self) {
        let Some(ran) = self.match_.world().sim().ran() else {
            return;
        };
        // A corrupted packet may contain commands that no client issued.
        let is_spoiled = self.spoiled;
        for (i, (player, command)) in ran.iter().enumerate() {
            assert!(
                is_spoiled || !ran[..i].iter().any(|(_, other)| other == command),
                "{command:?} of {player} ran twice"
            );
            assert!(
                is_spoiled || self.given.contains(command),
                "{command:?} of {player} was never given"
            );
        }
        for client in self.clients.iter().filter(|c| c.role.is_honest()) {
            let mine =
                |command: &S::Command| client.sent.iter().position(|(.., given)| given == command);
            let order: Vec<usize> = ran
                .iter()
                .filter_map(|(_, command)| mine(command))
                .collect();
            // Order is guaranteed only within a seat.
            for seat in 0..client.drivers.len() {
                let of_seat = order.iter().filter(|at| client.sent[**at].0 == seat);
                assert!(
                    of_seat.is_sorted(),
                    "{}: commands ran out of order",
                    client.identity
                );
            }
            if client.restarted || self.is_outgrown(client) {
                // The session cannot count the commands of the previous process.
                continue;
            }
            let executed = client.session.counters().commands_executed;
            assert_eq!(
                order.len() as u64,
                executed,
                "{}: the number of commands that ran is not the reported one",
                client.identity
            );
        }
    }
}
