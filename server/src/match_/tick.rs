//! One tick of the match, and the end of a turn.
//!
//! ```text
//!  silence? ─▶ seal ─▶ step, check ─▶ fates of refused orders ─▶ history ─▶ resolve ─┬▶ next tick
//!               ▲       │ panic, NaN: once more, without its cause (`blame.rs`)       │ turn full
//!               └───────┘                                                             ╰▶ journal, send
//! ```
//!
//! Law **Journal first**: a tick is sent to clients after its turn is written.

use std::time::Duration;

use twinstep_core::bounds::{QUERIES_WAITING_MAX, ticks_in};
use twinstep_core::turn::Cadence;
use twinstep_core::world::{Presence, World};
use twinstep_core::{OpenQuery, PlayerId, RosterChange, Simulation};
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;
use crate::blame::Blame;
use crate::config::{Announce, AnsweredBy, SealWhen};
use crate::digests::SMALL_BYTES;
use crate::incident::{Incident, Trouble};
use crate::journal::WorldDue;
use crate::sealer::silence;
use crate::stopwatch::Timed;

/// The seat of a dropped player without a session is freed after this long without input.
pub(super) const LEAVE_AFTER: Duration = Duration::from_secs(60);

impl<S: Simulation> Match<S> {
    pub(super) fn tick(&mut self) {
        let turn = self.world.current.turn();
        self.keep_snapshots();
        let cadence = self.clock_tick();
        self.update_presence();
        self.sealer.seal(
            cadence,
            &self.world.context(&self.people.views),
            &mut self.seats,
            &mut self.queries,
            &mut self.diagnostics.panics,
            &self.config,
        );
        self.world.digests.follow(self.config.checksums);
        let began = self.diagnostics.timing.begin();
        let stepped = Blame {
            world: &mut self.world,
            sealer: &mut self.sealer,
            seats: &mut self.seats,
            identities: self.people.identities(),
            diagnostics: &mut self.diagnostics,
        }
        .step();
        self.diagnostics.timing.end(Timed::Step, began);
        self.report_refused();
        self.diagnostics.report_panics();
        let Some(stepped) = stepped else {
            return self.close(CloseCode::Fault);
        };
        self.strike(&stepped.strikes);
        // The size of the whole world counts here, not the bytes that a digest hashes: a kept copy holds all of it.
        let is_small = self.diagnostics.stats.world_bytes <= SMALL_BYTES as usize;
        self.world.keep(
            &self.sealer.frame,
            stepped.sized_digest,
            turn.began,
            is_small,
        );
        self.journal.frame(&self.sealer.frame);
        self.count_frame();
        self.report_dropped_asks();
        self.open_queries(World::just_opened);
        self.answer_for_owners();
        if self.world.current.turn().began == self.world.current.tick() {
            self.end_turn();
        }
    }

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

    /// Decides the next tick's length, and how long frames are kept. Returns the cadence if it changes, which is
    /// possible only at a turn's beginning.
    fn clock_tick(&mut self) -> Option<Cadence> {
        let turn = self.world.current.turn();
        let begins = self.world.current.tick() == turn.began;
        let cadence = begins.then(|| self.next_cadence());
        self.clock.last_cadence = cadence.unwrap_or(turn.cadence);
        let history = &mut self.world.history;
        history.keep_for(self.clock.last_cadence.tick());
        let joins = self.people.iter().filter(|p| p.joins());
        let needed = joins.map(|p| p.acks.wanted());
        let needed = needed.chain(self.snapshots.cut_off.needed());
        let first = history.first();
        history.keep_from(needed.filter(|needed| *needed >= first).min());
        cadence.filter(|cadence| *cadence != turn.cadence)
    }

    fn report_refused(&mut self) {
        for refused in self.sealer.refused.drain(..) {
            self.people.refuse(self.clock.now, refused);
        }
    }

    fn strike(&mut self, strikes: &[PlayerId]) {
        for &player in strikes {
            if let Some(peer) = self.people.strike(self.clock.now, player) {
                self.kick(peer, CloseCode::Strikes);
            }
        }
    }

    fn count_frame(&mut self) {
        self.diagnostics.stats.ticks += 1;
        let tick = self.sealer.frame.tick;
        for player in self.sealer.frame.filled.iter() {
            let seat = &mut self.seats[player.index()];
            if seat.rests_over(tick) {
                continue;
            }
            seat.stats.fills += 1;
            self.diagnostics.stats.fills += 1;
        }
        for answer in &self.sealer.frame.outcomes {
            let count = if answer.outcome.is_some() {
                &mut self.diagnostics.stats.outcomes
            } else {
                &mut self.diagnostics.stats.unanswered
            };
            *count += 1;
        }
    }

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
                self.snapshots.record_written(bytes, world, diagnostics);
            }
            WorldDue::TooLarge => self
                .snapshots
                .report_too_large(&self.world, &mut self.diagnostics),
            WorldDue::Late => {
                let aside = self.snapshots.encode(now, &self.world, &self.diagnostics);
                self.outbox.encode(aside);
            }
        }
        self.review_commands();
        self.send_turns(false);
    }

    /// Decides once a turn, for all sessions, which of the waiting commands may be announced.
    fn review_commands(&mut self) {
        let announce = self.degradation.announce(self.config.announce);
        if announce == Announce::Never || self.mode.is_lockstep() {
            return;
        }
        let context = self.world.context(&self.people.views);
        self.sealer.review(&context, &mut self.seats);
    }

    pub(super) fn open_queries(&mut self, opened: impl Fn(&World<S>) -> &[OpenQuery<S::Query>]) {
        let (people, by_owner) = (&self.people, self.config.answered_by == AnsweredBy::Owner);
        self.queries.open(
            &self.world.context(&people.views),
            opened(&self.world.current),
            |key| by_owner && people.owner_plays(key),
            &mut self.diagnostics,
            &mut self.outbox,
        );
    }

    /// Reports the queries that the step asked beyond the bound. Such queries get no answer.
    fn report_dropped_asks(&mut self) {
        let dropped = self.world.dropped_asks() - self.diagnostics.stats.asks_dropped;
        if dropped > 0 {
            self.diagnostics.stats.asks_dropped += dropped;
            let message = format!("{dropped} queries beyond {QUERIES_WAITING_MAX} that wait");
            let tick = self.sealer.frame.tick;
            let incident = Incident::new(tick, Trouble::Asks, &message);
            self.diagnostics.report(incident);
        }
    }

    fn answer_for_owners(&mut self) {
        let people = &self.people;
        self.queries.answer_for_owners(
            &self.world.context(&people.views),
            |key| people.owner_plays(key),
            &mut self.diagnostics,
            &mut self.outbox,
        );
    }

    /// Drops silent players, brings players back when they send inputs again, and frees the seats of players that left.
    pub(super) fn update_presence(&mut self) {
        let next = self.world.current.tick();
        let turn = self.world.current.turn().number;
        let tick = self.world.current.turn().cadence.tick();
        // When the match waits for all players, a silent one is kicked instead.
        let drops = self.config.sealing == SealWhen::Deadline;
        for i in 0..self.seats.len() {
            let player = PlayerId(i as u8);
            let seat = &mut self.seats[i];
            // Under any policy, a player that never connected is dropped; it is neither awaited nor kicked.
            let is_expected = self.people.expected(player).is_some();
            let session = self
                .people
                .iter()
                .any(|p| p.plays() && p.players.contains(&player));
            let is_active = session && self.mode.has_input(seat, next, turn);
            if let Some(change) = silence(
                self.world.current.presence(player),
                seat,
                next,
                tick,
                is_active,
            )
            .filter(|change| drops || is_expected || *change == RosterChange::Returned)
            {
                self.sealer.change(player, change);
                if change == RosterChange::Returned {
                    seat.returned = Some(next);
                }
            }
            let presence = self.world.current.presence(player);
            let held = self.people.iter().any(|p| p.players.contains(&player));
            let named = self.people.identity_of(player).is_some();
            // Dropped for too long, or never joined.
            let gone = presence == Presence::Dropped
                && !is_expected
                && next - seat.last_active() > ticks_in(LEAVE_AFTER, tick)
                || presence == Presence::Absent && named;
            if gone && !held {
                self.free(player);
            }
        }
    }
}
