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
use super::digests::SMALL_BYTES;
use super::journal::WorldDue;
use crate::config::Announce;
use crate::outbox::Item;
use crate::stopwatch::Timed;

impl<S: Simulation> Match<S> {
    /// Seals and steps one tick, resolves what it asked, and at a turn's end journals and sends.
    pub(super) fn tick(&mut self) {
        let (tick, turn) = (self.truth.world.tick(), self.truth.world.turn());
        self.keep_snapshots();
        let cadence = self.clock_tick();
        self.note_silence();
        self.sealing.seal(
            cadence,
            self.truth.look(&self.people.views),
            &mut self.seats,
            &mut self.asking.queries,
            &mut self.noted.panics,
            &self.config,
        );
        let began = self.noted.timing.begin();
        let stepped = self.step();
        self.noted.timing.end(Timed::Step, began);
        self.tell_refused();
        self.noted.note_panics();
        let Some(stepped) = stepped else {
            return self.close(CloseCode::Fault);
        };
        self.strike(&stepped.strikes);
        // Copies of all that may change take room, whatever a digest of it hashes.
        let is_small = self.noted.stats.world_bytes <= SMALL_BYTES as usize;
        self.truth
            .keep(&self.sealing.frame, stepped.weighed, turn.began, is_small);
        self.journal.frame(&self.sealing.frame);
        self.count_frame();
        self.resolve(|open| open.asked == tick);
        self.answer_instead();
        if self.truth.world.turn().began == self.truth.world.tick() {
            self.end_turn();
        }
    }

    /// Worlds for those who watch later, and a look at how large they are.
    fn keep_snapshots(&mut self) {
        let (now, spectators) = (self.clock.now, self.config.spectators);
        let (truth, noted) = (&self.truth, &mut self.noted);
        self.snapshots.weigh(now, truth, noted);
        self.snapshots.forget(now, truth);
        let aside = self.snapshots.keep_watched(now, spectators, truth, noted);
        self.outbox.extend(aside.map(Item::Encode));
    }

    /// How the tick is clocked; what of that changes with it, which it does at a turn's beginning only.
    fn clock_tick(&mut self) -> Option<Cadence> {
        let turn = self.truth.world.turn();
        let begins = self.truth.world.tick() == turn.began;
        let cadence = begins.then(|| self.next_cadence());
        self.clock.last_cadence = cadence.unwrap_or(turn.cadence);
        let history = &mut self.truth.history;
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
        self.noted.stats.ticks += 1;
        let tick = self.sealing.frame.tick;
        for player in self.sealing.frame.filled.iter() {
            let seat = &mut self.seats[player.index()];
            if seat.rests_over(tick) {
                continue;
            }
            seat.stats.fills += 1;
            self.noted.stats.fills += 1;
        }
        for answer in &self.sealing.frame.outcomes {
            let count = if answer.outcome.is_some() {
                &mut self.noted.stats.outcomes
            } else {
                &mut self.noted.stats.unanswered
            };
            *count += 1;
        }
    }

    /// The turn is full: the journal first, then everybody hears of it.
    fn end_turn(&mut self) {
        self.noted.stats.turns += 1;
        let wanted = self.journal.wants_digest(&self.truth.world);
        let digest = if wanted {
            self.truth.digest_now()
        } else {
            None
        };
        let (now, world) = (self.clock.now, &self.truth.world);
        let may_wait = self.snapshots.is_aside(now, &self.noted);
        match self.journal.turn(world, digest, may_wait, &mut self.outbox) {
            WorldDue::No => {}
            WorldDue::Written(bytes) => {
                let (truth, noted) = (&self.truth, &mut self.noted);
                self.snapshots.note_written(bytes, truth, noted);
            }
            WorldDue::TooLarge => self.snapshots.note_too_large(&self.truth, &mut self.noted),
            WorldDue::Late => {
                let aside = self.snapshots.encode(now, &self.truth, &self.noted);
                self.outbox.extend(aside.map(Item::Encode));
            }
        }
        self.review_commands();
        self.tell(false);
    }

    /// Once a turn, for all sessions: which of the commands that wait for a later tick may be announced.
    fn review_commands(&mut self) {
        let announce = self.relief.announce(self.config.announce);
        if announce == Announce::Never || self.config.command_delay > 0 {
            return;
        }
        let look = self.truth.look(&self.people.views);
        self.sealing.review(&look, &mut self.seats);
    }
}
