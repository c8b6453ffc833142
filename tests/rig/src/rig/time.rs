//! Time passes: from one moment at which anything happens to the next, for the server and for each client.

use std::time::Duration;

use twinstep_client::Event;
use twinstep_core::Tick;
use twinstep_core::bounds::{PACKET_BYTES_MAX, QUERIES_OPEN_MAX};
use twinstep_server::Output;
use twinstep_server::game::Folded;
use twinstep_server::peer::SessionStage;

use super::play::{Play, Role};
use super::{Rig, TICKET_BYTES, fair};

impl<S: Play> Rig<S> {
    /// Runs for a while; `watch` sees the world after everything that happens.
    pub fn watch(&mut self, time: Duration, mut watch: impl FnMut(&mut Self)) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.next_moment().min(end);
            self.step();
            watch(self);
        }
    }

    /// Runs for a while.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.next_moment().min(end);
            self.step();
        }
    }

    /// Runs until a client plays and has caught up; how long that took.
    ///
    /// # Panics
    /// If it does not within 30 s.
    pub fn until_it_plays(&mut self, client: usize) -> Duration {
        let began = self.now;
        while self.game.stage(self.clients[client].peer) != Some(SessionStage::Playing)
            || self.clients[client].session.progress().is_some()
            || self.clients[client].session.prediction().is_none()
        {
            self.run(Duration::from_millis(5));
            let waited = self.now - began;
            assert!(waited < Duration::from_secs(30), "it never plays");
        }
        self.now - began
    }

    /// The next moment at which anything happens.
    fn next_moment(&self) -> Duration {
        let server = self.game.next_due().max(self.stalled_until);
        let clients = self
            .clients
            .iter()
            .map(|client| client.next_frame.max(client.frozen_until));
        let nets = self.clients.iter().flat_map(|c| {
            [
                c.net.up.next_due().map(|due| due.max(self.stalled_until)),
                c.net.down.next_due().map(|d| d.max(c.frozen_until)),
            ]
        });
        let jobs = self.jobs.iter().map(|job| job.0.max(self.stalled_until));
        let next = clients
            .chain(nets.flatten())
            .chain(jobs)
            .fold(server, Duration::min);
        // Lanes are served often enough, and time always moves.
        next.clamp(
            self.now + Duration::from_micros(50),
            self.now + Duration::from_millis(5),
        )
    }

    fn step(&mut self) {
        let now = self.now;
        if now >= self.stalled_until {
            self.step_server();
        }
        for i in 0..self.clients.len() {
            if now >= self.clients[i].frozen_until {
                self.step_client(i);
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "says what the match costs here; nothing depends on it"
    )]
    fn step_server(&mut self) {
        let now = self.now;
        let began = std::time::Instant::now();
        for client in &mut self.clients {
            while let Some(bytes) = client.net.up.poll(now) {
                assert!(bytes.len() <= PACKET_BYTES_MAX);
                fair::note_heard(&mut client.heard_at, now);
                let before = (self.counter)();
                self.game.handle(now, client.peer, bytes);
                self.counts.server += (self.counter)() - before;
            }
        }
        let mut at = 0;
        while at < self.jobs.len() {
            if self.jobs[at].0 <= now {
                let (_, id, outcome) = self.jobs.swap_remove(at);
                self.game.complete(id, Some(outcome));
            } else {
                at += 1;
            }
        }
        let before = (self.counter)();
        if self.config.clock_goes_back && self.luck.below(200) == 0 {
            let back = Duration::from_millis(u64::from(self.luck.below(700)));
            self.game.advance(now.saturating_sub(back));
        }
        self.game.advance(now);
        self.drain();
        self.counts.server += (self.counter)() - before;
        self.worked += began.elapsed();
        if self.observed {
            assert!(self.game.world().open_queries().len() <= QUERIES_OPEN_MAX);
            self.check_match();
        }
        self.note_digests();
    }

    pub(super) fn note_digests(&mut self) {
        let next = self.game.world().tick();
        while self.digests.len() <= next.0 as usize {
            let tick = Tick(self.digests.len() as u32);
            let digest = self
                .game
                .digest_at(tick)
                .expect("each tick's digest is taken before it is forgotten");
            self.digests.push(digest);
        }
    }

    /// Does what the match wants done, in its order: Law Journal first.
    pub(super) fn drain(&mut self) {
        let (mut tickets, mut evidence) = (Vec::new(), Vec::new());
        while let Some(output) = self.game.poll() {
            match output {
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Packet { peer, bytes } => {
                    assert!(bytes.len() <= PACKET_BYTES_MAX);
                    if let Some(client) = self.clients.iter_mut().find(|c| c.peer == peer) {
                        client.net.down.send(self.now, bytes);
                    }
                    if let Some(recorded) = &mut self.recorded
                        && self.clients.first().is_some_and(|c| c.peer == peer)
                    {
                        recorded.down.push(bytes.to_vec());
                    }
                }
                Output::Job { id, work } => {
                    let outcome = work();
                    if !S::is_lost(&outcome) {
                        let wait = Duration::from_millis(u64::from(self.luck.below(400)));
                        self.jobs.push((self.now + wait, id, outcome));
                    }
                }
                Output::Ticket { peer } if self.config.tickets => tickets.push(peer),
                Output::Ticket { .. } | Output::Safe { .. } => {}
                Output::Evidence { peer, tick } => evidence.push((peer, tick)),
                Output::Closed { .. } => {}
            }
        }
        for peer in tickets {
            self.game.hand_ticket(peer, 1, vec![0x5a; TICKET_BYTES]);
        }
        for (peer, tick) in evidence {
            let (rules, hello) = self.game.origin();
            let folded = Folded::of::<S>(&self.journal, &rules, &hello, tick);
            self.game.hand_evidence(peer, tick, folded);
        }
    }

    fn step_client(&mut self, i: usize) {
        let now = self.now;
        let client = &mut self.clients[i];
        let theirs = client.time(now);
        let before = (self.counter)();
        while let Some(bytes) = client.net.down.poll(now) {
            self.hostile
                .deceive(client.role, &mut client.session, theirs, bytes);
        }
        self.counts.client += (self.counter)() - before;
        if now >= client.next_frame {
            while client.next_frame <= now {
                client.next_frame += client.frame;
            }
            client.decide((now, self.excuse), &self.rules, &mut self.given);
            let held = client.decided.clone().unwrap_or_default();
            let mut used = false;
            let before = (self.counter)();
            let ticks_before = client.authority_tick();
            let (budget, late) = (self.config.budget, self.config.rebuilds_late);
            client.play_frame(theirs, budget, late, |seat| {
                used = true;
                held.get(seat).cloned().unwrap_or_default()
            });
            self.counts.client += (self.counter)() - before;
            // A slow machine is away while it steps.
            let steps = client.authority_tick() - ticks_before;
            if ticks_before > Tick(0) && !client.step_cost.is_zero() {
                let busy = client.step_cost * steps;
                client.frozen_until = client.frozen_until.max(now + busy);
                client.busy += busy;
            }
            let measured = now - client.busy_since;
            if measured >= Duration::from_secs(2) {
                let load = match client.role {
                    Role::Lies => 1.0,
                    _ => client.busy.as_secs_f32() / measured.as_secs_f32(),
                };
                client.session.note_load(load);
                (client.busy, client.busy_since) = (Duration::ZERO, now);
            }
            if used {
                client.decided = None;
            }
        }
        let before = (self.counter)();
        while let Some(len) = client.session.poll_transmit(theirs, &mut *self.buffer) {
            self.hostile.send(client, now, &self.buffer[..len]);
            if i == 0
                && let Some(recorded) = &mut self.recorded
            {
                recorded.up.push(self.buffer[..len].to_vec());
            }
        }
        client.read_cues(self.observed);
        client.tickets += usize::from(client.session.poll_ticket().is_some());
        while let Some(event) = client.session.poll_event() {
            match event {
                Event::Desync(report) => client.desync = Some(report),
                event => client.events.push(event),
            }
        }
        self.counts.client += (self.counter)() - before;
        if self.observed {
            let stats = client.session.stats();
            self.check(i, &stats);
            if self.config.fair {
                self.check_fairness(i, &stats);
            }
        }
    }
}
