//! Advances time from one due moment to the next, for the server and for each client.

use std::convert::Infallible;
use std::time::Duration;
use twinstep_protocol::lineage::Stamp;

use twinstep_client::{Event, Progress};
use twinstep_core::Tick;
use twinstep_core::bounds::{HISTORY, PACKET_BYTES_MAX, QUERIES_OPEN_MAX};
use twinstep_protocol::replay::Replay;
use twinstep_server::Folded;
use twinstep_server::Output;
use twinstep_server::peer::SessionStage;
use twinstep_testing::scene::{Passing, Scene};

use super::client::GivenCommand;
use super::play::{Play, Role};
use super::{Rig, RigClient, TICKET_BYTES, fairness};

impl<S: Play> Passing for Rig<S> {
    type Game = S;
    type Client = RigClient<S>;
    /// The rig asserts its conditions, so its methods return no errors.
    type Wrong = Infallible;

    fn serve(&mut self) -> Result<(), Infallible> {
        self.step_server();
        Ok(())
    }

    fn step_client(&mut self, client: usize) -> Result<(), Infallible> {
        self.play_frame(client);
        Ok(())
    }
}

impl<S: Play> Rig<S> {
    /// Runs for `time`. Calls `watch` after each event.
    pub fn watch(&mut self, time: Duration, watch: impl FnMut(&mut Self)) {
        let Ok(()) = self.pass(time, watch);
    }

    pub fn run(&mut self, time: Duration) {
        self.watch(time, |_| ());
    }

    /// Runs until a client plays and has caught up. Returns the time taken.
    ///
    /// # Panics
    /// If that takes 30 s.
    pub fn until_it_plays(&mut self, client: usize) -> Duration {
        let began = self.now;
        while self.match_.stage(self.clients[client].peer()) != Some(SessionStage::Playing)
            || self.clients[client].session.progress().is_some()
            || self.clients[client].session.prediction().is_none()
        {
            self.run(Duration::from_millis(5));
            let waited = self.now - began;
            assert!(waited < Duration::from_secs(30), "it never plays");
        }
        self.now - began
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "measures the match's cost on this machine; no result depends on it"
    )]
    fn step_server(&mut self) {
        let now = self.now;
        let began = std::time::Instant::now();
        let Scene {
            match_,
            clients,
            jobs,
            ..
        } = &mut self.scene;
        for client in clients {
            let peer = client.place.peer;
            while let Some(bytes) = client.place.take_up(now) {
                assert!(bytes.len() <= PACKET_BYTES_MAX);
                fairness::record_packet(&mut client.received_at, now);
                let before = (self.counter)();
                match_.handle(now, peer, bytes);
                self.counts.server += (self.counter)() - before;
            }
        }
        jobs.complete(now, match_);
        self.elsewhere.hand_back(now, match_);
        let before = (self.counter)();
        // A match must treat a clock that goes back as a clock that stands still.
        if self.config.clock_goes_back && self.luck.below(200) == 0 {
            let back = Duration::from_millis(u64::from(self.luck.below(700)));
            self.match_.advance(now.saturating_sub(back));
        }
        self.match_.advance(now);
        self.drain();
        self.counts.server += (self.counter)() - before;
        self.worked += began.elapsed();
        if self.observed {
            assert!(self.match_.world().open_queries().len() <= QUERIES_OPEN_MAX);
            self.check_match();
        }
        self.record_digests();
    }

    pub(super) fn record_digests(&mut self) {
        let next = self.match_.world().tick();
        while self.digests.len() <= next.0 as usize {
            let tick = Tick(self.digests.len() as u32);
            match self.match_.digest_at(tick) {
                Some(digest) => self.digests.push(digest),
                // In lockstep a new match seals m turns at once, which may be more ticks than its history holds.
                None => self.record_digests_of_journal(next),
            }
        }
    }

    /// Records the digests of ticks older than the match's history, from its journal.
    fn record_digests_of_journal(&mut self, end: Tick) {
        let mut replay = Replay::<S>::open(&self.journal, &self.rules).expect("a journal");
        let first = Tick(self.digests.len() as u32);
        assert_eq!(replay.seek(first).ok(), Some(first), "it is not written");
        while replay.world().tick() < end.back(HISTORY - 1) {
            self.digests.push(replay.world().digest().expect("no NaN"));
            assert_eq!(replay.step().ok(), Some(true), "it is not written");
        }
    }

    pub(super) fn drain(&mut self) {
        let (mut tickets, mut worlds, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
        let (mut closed, mut save) = (Vec::new(), None);
        let takes = |outcome: &S::Outcome| {
            let is_lost = S::is_lost(outcome);
            (!is_lost).then(|| Duration::from_millis(u64::from(self.luck.below(400))))
        };
        self.scene.drain(takes, |output| match output {
            Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
            Output::Ticket { peer } if self.config.tickets => tickets.push(peer),
            Output::Encode(world) => worlds.push(world),
            Output::Save(saving) => save = Some(saving),
            Output::Evidence { peer, tick } => evidence.push((peer, tick)),
            Output::Closed { peer, code } => closed.push((peer, code)),
            _ => {}
        });
        self.record_closed(&closed);
        for world in worlds {
            self.elsewhere.take(self.scene.now, world);
        }
        if let Some(saving) = save {
            let by = saving.by;
            self.saves.push((by, saving.run().expect("a save")));
            self.match_.hand_saved(true);
        }
        for peer in tickets {
            let next = self.match_.next_ticket(peer).unwrap_or_default();
            let stamp = Stamp {
                lineage: next.lineage.unwrap_or(1),
                generation: next.generation,
                ..Stamp::default()
            };
            self.match_
                .hand_ticket(peer, stamp, vec![0x5a; TICKET_BYTES]);
        }
        for (peer, tick) in evidence {
            let (rules, _) = self.match_.origin();
            let index = self.match_.last_worlds();
            let folded = Folded::compute::<S>(&self.journal, &rules, index, tick);
            self.match_.hand_evidence(peer, tick, folded);
        }
    }

    fn play_frame(&mut self, i: usize) {
        let now = self.now;
        let client = &mut self.scene.clients[i];
        let theirs = client.time(now);
        let before = (self.counter)();
        let (mut arrived, mut sent) = (false, false);
        while let Some(bytes) = client.place.take_down(now) {
            arrived = true;
            self.hostile
                .deceive(client.role, &mut client.session, theirs, bytes);
        }
        self.counts.client += (self.counter)() - before;
        let is_due = match client.sleeps {
            true => arrived || client.session.next_due().is_some_and(|due| due <= theirs),
            false => client.place.draws(now),
        };
        if client.sleeps && !is_due {
            return;
        }
        if is_due {
            let others = self.clients.iter().enumerate().filter(|(j, _)| *j != i);
            let given_now = GivenCommand {
                at: now,
                excuse: self.excused(&self.clients[i]),
                open: others.map(|(_, other)| other.given_at.len()).sum(),
            };
            let client = &mut self.scene.clients[i];
            client.calls += 1;
            client.decide(given_now, &self.rules, &mut self.given);
            let held = client.decided.clone().unwrap_or_default();
            let mut used = false;
            let before = (self.counter)();
            let ticks_before = client.authority_tick();
            let (budget, late) = (self.config.budget, self.config.rebuilds_late);
            client
                .session
                .set_repeated_step_cost(self.config.repeated_cost);
            client.play_frame(theirs, budget, late, |seat| {
                used = true;
                held.get(seat).cloned().unwrap_or_default()
            });
            self.counts.client += (self.counter)() - before;
            // A slow machine does nothing else while it steps.
            let steps = client.authority_tick() - ticks_before;
            if ticks_before > Tick(0) && !client.step_cost.is_zero() {
                let busy = client.step_cost * steps;
                client.place.frozen_until = client.place.frozen_until.max(now + busy);
                client.busy += busy;
            }
            let measured = now - client.busy_since;
            if measured >= Duration::from_secs(2) {
                let load = match client.role {
                    Role::Lies => 1.0,
                    _ => client.busy.as_secs_f32() / measured.as_secs_f32(),
                };
                client.session.set_load(load);
                (client.busy, client.busy_since) = (Duration::ZERO, now);
            }
            // A decision is kept until the session samples it, so that each one reaches exactly one tick.
            if used {
                client.decided = None;
            }
        }
        let client = &mut self.scene.clients[i];
        let before = (self.counter)();
        while let Some(len) = client.session.poll_transmit(theirs, &mut *self.buffer) {
            sent = true;
            self.hostile.send(client, now, &self.buffer[..len]);
            if let Some(recorded) = &mut client.place.recorded {
                recorded.up.push(self.buffer[..len].to_vec());
            }
        }
        if client.sleeps {
            let due = client.session.next_due();
            client.place.next_frame =
                due.map_or(Duration::MAX, |due| now + due.saturating_sub(theirs));
        }
        client.read_cues(self.observed);
        client.tickets += usize::from(client.session.poll_ticket().is_some());
        while let Some(event) = client.session.poll_event() {
            if let Event::Joined(_) | Event::Reconnected { .. } = event {
                let progress = client.session.progress();
                assert!(
                    !matches!(progress, Some(Progress::CatchingUp { .. })),
                    "{} before {event:?}: {progress:?}",
                    client.identity
                );
            }
            match event {
                Event::Desync(report) => client.desync = Some(report),
                event => client.events.push(event),
            }
        }
        self.counts.client += (self.counter)() - before;
        if !self.observed {
            return;
        }
        // A session that did nothing has not changed since the last check, but time has passed for its player.
        if is_due || arrived || sent {
            let stats = client.session.counters();
            client.malformed = stats.malformed;
            self.settle_orders(i, &stats);
            self.check(i, &stats);
        }
        if self.config.fair {
            self.check_fairness(i);
        }
    }
}
