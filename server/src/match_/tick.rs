//! One tick of the match, and the end of a turn.
//!
//! ```text
//!  who is silent? ─▶ seal ─▶ step, check ─▶ fates of what was refused ─▶ history ─▶ resolve ─┬▶ next tick
//!                      ▲       │ panic, NaN: once more, without its cause (`blame.rs`)         │ turn full
//!                      └───────┘                                                               ╰▶ journal, tell
//! ```
//!
//! Law **Journal first**: nobody is told of a tick before its turn is written.

use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;
use crate::config::Announce;
use crate::digests::SMALL_BYTES;
use crate::journal::WorldDue;
use crate::stopwatch::Timed;

impl<S: Simulation> Match<S> {
    /// Seals and steps one tick, resolves what it asked, and at a turn's end journals and sends.
    pub(super) fn tick(&mut self) {
        let (tick, turn) = (self.world.current.tick(), self.world.current.turn());
        self.keep_snapshots();
        let cadence = self.clock_tick();
        self.note_silence();
        self.sealing.seal(
            cadence,
            self.world.context(&self.people.views),
            &mut self.seats,
            &mut self.asking.queries,
            &mut self.diagnostics.panics,
            &self.config,
        );
        let began = self.diagnostics.timing.begin();
        let stepped = self.step();
        self.diagnostics.timing.end(Timed::Step, began);
        self.tell_refused();
        self.diagnostics.note_panics();
        let Some(stepped) = stepped else {
            return self.close(CloseCode::Fault);
        };
        self.strike(&stepped.strikes);
        // Copies of all that may change take room, whatever a digest of it hashes.
        let is_small = self.diagnostics.stats.world_bytes <= SMALL_BYTES as usize;
        self.world
            .keep(&self.sealing.frame, stepped.weighed, turn.began, is_small);
        self.journal.frame(&self.sealing.frame);
        self.count_frame();
        self.resolve(|open| open.asked == tick);
        self.answer_instead();
        if self.world.current.turn().began == self.world.current.tick() {
            self.end_turn();
        }
    }

    /// Worlds for those who watch later, and a look at how large they are.
    fn keep_snapshots(&mut self) {
        let (now, spectators) = (self.clock.now, self.config.spectators);
        let (world, diagnostics) = (&self.world, &mut self.diagnostics);
        self.snapshots.weigh(now, world, diagnostics);
        self.snapshots.forget(now, world);
        let aside = self
            .snapshots
            .keep_watched(now, spectators, world, diagnostics);
        self.outbox.encode(aside);
    }

    /// How the tick is clocked; what of that changes with it, which it does at a turn's beginning only.
    fn clock_tick(&mut self) -> Option<Cadence> {
        let turn = self.world.current.turn();
        let begins = self.world.current.tick() == turn.began;
        let cadence = begins.then(|| self.next_cadence());
        self.clock.last_cadence = cadence.unwrap_or(turn.cadence);
        let history = &mut self.world.history;
        history.keep_for(self.clock.last_cadence.tick());
        let joins = self.people.peers.iter().filter(|p| p.stage.joins());
        let needed = joins.map(|p| p.acks.wanted());
        let needed = needed.chain(self.snapshots.cut_off.needed());
        let first = history.first();
        history.keep_from(needed.filter(|needed| *needed >= first).min());
        cadence.filter(|cadence| *cadence != turn.cadence)
    }

    /// Owners hear of their orders that will not run.
    fn tell_refused(&mut self) {
        for refused in self.sealing.sealer.refused.drain(..) {
            self.people.refuse(self.clock.now, refused);
        }
    }

    /// A strike for each of these, who may be named more than once; whoever has too many is out.
    fn strike(&mut self, strikes: &[PlayerId]) {
        for &player in strikes {
            if let Some(peer) = self.people.strike(self.clock.now, player) {
                self.kick(peer, CloseCode::Strikes);
            }
        }
    }

    fn count_frame(&mut self) {
        self.diagnostics.stats.ticks += 1;
        let tick = self.sealing.frame.tick;
        for player in self.sealing.frame.filled.iter() {
            let seat = &mut self.seats[player.index()];
            if seat.rests_over(tick) {
                continue;
            }
            seat.stats.fills += 1;
            self.diagnostics.stats.fills += 1;
        }
        for answer in &self.sealing.frame.outcomes {
            let count = if answer.outcome.is_some() {
                &mut self.diagnostics.stats.outcomes
            } else {
                &mut self.diagnostics.stats.unanswered
            };
            *count += 1;
        }
    }

    /// The turn is full: the journal first, then everybody hears of it.
    fn end_turn(&mut self) {
        self.diagnostics.stats.turns += 1;
        let wanted = self.journal.wants_digest(&self.world.current);
        let digest = if wanted {
            self.world.digest_now()
        } else {
            None
        };
        let (now, world) = (self.clock.now, &self.world.current);
        let may_wait = self.snapshots.is_aside(now, &self.diagnostics);
        match self.journal.turn(world, digest, may_wait, &mut self.outbox) {
            WorldDue::No => {}
            WorldDue::Written(bytes) => {
                let (world, diagnostics) = (&self.world, &mut self.diagnostics);
                self.snapshots.note_written(bytes, world, diagnostics);
            }
            WorldDue::TooLarge => self
                .snapshots
                .note_too_large(&self.world, &mut self.diagnostics),
            WorldDue::Late => {
                let aside = self.snapshots.encode(now, &self.world, &self.diagnostics);
                self.outbox.encode(aside);
            }
        }
        self.review_commands();
        self.tell(false);
    }

    /// Once a turn, for all sessions: which of the commands that wait for a later tick may be announced.
    fn review_commands(&mut self) {
        let announce = self.degradation.announce(self.config.announce);
        if announce == Announce::Never || self.config.command_delay > 0 {
            return;
        }
        let context = self.world.context(&self.people.views);
        self.sealing.review(&context, &mut self.seats);
    }
}
