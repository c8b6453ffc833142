//! Kills the server at any moment. Another process resumes the match from the written journal.
//!
//! A killed server executes a random prefix of its last outputs: some bytes are written, the last record may be torn,
//! and only packets after written bytes were sent (law *Journal first*).

use std::time::Duration;

use twinstep_core::{Key, Tick};
use twinstep_server::{Match, Output};

use twinstep_testing::scene::Scene;

use super::Rig;
use super::hooks::{Judge, watched};
use super::play::Play;

#[derive(Clone, Copy, Debug)]
pub struct Crash {
    pub killed_at: Tick,
    pub resumed_at: Tick,
    pub torn_bytes: usize,
    pub open: usize,
}

impl<S: Play> Rig<S> {
    /// Kills the server during its next outputs. Another server resumes the match after `down`.
    ///
    /// # Panics
    /// If the journal leads to a world that never existed, or a client has seen more than the journal holds.
    pub fn crash(&mut self, down: Duration) -> Crash {
        self.kill();
        self.resume_killed(down)
    }

    /// Kills the server during its next outputs. Returns `false` if its journal has no world yet, so that the match
    /// cannot be resumed; in that case no client has seen a world.
    pub fn kill(&mut self) -> bool {
        let now = self.now.max(self.match_.next_due());
        self.now = now;
        self.match_.advance(now);
        self.record_digests();
        self.die_while_draining();
        let index = twinstep_protocol::replay::Index::scan(&self.journal);
        index.is_ok_and(|index| !index.worlds.is_empty())
    }

    pub(crate) fn resume_killed(&mut self, down: Duration) -> Crash {
        let killed_at = self.match_.world().tick();
        // A restarted server does not know the waits before its restart.
        self.slowed = Duration::ZERO;
        for client in &mut self.scene.clients {
            client.awaited.forget();
        }
        let resolver = watched::<S>(
            &self.rules,
            self.config.seed ^ u64::from(killed_at.0),
            &self.resolver_count,
            &self.asked,
        );
        let sound = twinstep_protocol::replay::Index::scan(&self.journal).expect("a journal");
        let settled = self.asked.clone();
        let resumed = {
            // Recorded before the resume, which asks the resolver again.
            let world = self.replayed_world(sound.sound_bytes() as usize);
            let open = world.open_queries().iter().map(|open| open.key).collect();
            settled.crash(world.tick(), &open);
            Match::resume(
                self.config.policies.clone(),
                &self.journal,
                self.rules.clone(),
                resolver,
            )
            .expect("the journal of a killed server can be resumed")
        };
        let torn_bytes = self.journal.len() - resumed.keep_bytes as usize;
        self.journal.truncate(resumed.keep_bytes as usize);
        self.match_ = resumed.match_;
        self.match_.set_referee(Judge);
        self.elsewhere.serve(&mut self.scene.match_);
        let world = self.match_.world();
        let resumed_at = world.tick();
        assert_eq!(
            self.digests[resumed_at.0 as usize],
            self.match_.digest(),
            "the match continues from a world that was not played"
        );
        for client in self.clients.iter().filter(|c| c.role.is_honest()) {
            let seen = client.session.authority().map_or(Tick(0), |a| a.tick());
            assert!(
                seen <= resumed_at,
                "{} has seen {seen}, but the match continues from {resumed_at}",
                client.identity
            );
        }
        let crash = Crash {
            killed_at,
            resumed_at,
            torn_bytes,
            open: world.open_queries().len(),
        };
        self.digests.truncate(resumed_at.0 as usize + 1);
        self.jobs.forget();
        self.stalled_until = self.now + down;
        self.disturb_all(self.stalled_until);
        self.end_return();
        self.returning_since = Some(self.stalled_until);
        crash
    }

    pub fn restart_clients(&mut self) {
        for i in 0..self.clients.len() {
            self.restart(i);
        }
    }

    /// The queries resolved although their outcome was in the journal.
    #[must_use]
    pub fn resolved_again(&self) -> Vec<Key> {
        self.asked.again()
    }

    fn replayed_world(&self, sound: usize) -> twinstep_core::World<S> {
        let mut replay =
            twinstep_protocol::replay::Replay::<S>::open(&self.journal[..sound], &self.rules)
                .expect("a journal");
        replay.seek(Tick::MAX).expect("sound to its end");
        replay.world().clone()
    }

    /// Executes a random prefix of the match's outputs.
    fn die_while_draining(&mut self) {
        // Often cut within the journal record, which is the first output.
        let mut left = match self.luck.below(3) {
            0 => 0,
            _ => self.luck.below(12),
        };
        let Scene {
            match_,
            clients,
            now,
            ..
        } = &mut self.scene;
        while let Some(output) = match_.poll() {
            match output {
                Output::Journal(bytes) if left == 0 => {
                    let torn = self.luck.below(bytes.len() as u32) as usize;
                    self.journal.extend_from_slice(&bytes[..torn]);
                    return;
                }
                _ if left == 0 => return,
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Packet { peer, bytes } => {
                    if let Some(client) = clients.iter_mut().find(|c| c.peer() == peer) {
                        client.place.send_down(*now, bytes);
                    }
                }
                Output::Job { .. }
                | Output::Encode(_)
                | Output::Save(_)
                | Output::Ticket { .. }
                | Output::Settled { .. }
                | Output::Unseated { .. }
                | Output::Outdated { .. }
                | Output::Evidence { .. }
                | Output::Closed { .. } => {}
            }
            left -= 1;
        }
    }
}
