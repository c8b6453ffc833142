//! One tick of the match, and the end of a turn.
//!
//! ```text
//!  who is silent? ─▶ seal ─▶ step ─▶ fates of what was refused ─▶ history, digest ─▶ resolve ─┬▶ next tick
//!                      ▲       │ panic: once more, without orders                              │ turn full
//!                      └───────┘                                                               ╰▶ journal, tell
//! ```
//!
//! Law **Journal first**: nobody is told of a tick before its turn is written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_core::frame::{Perspective, PlayerSet};
use twinstep_core::packet::hello::CloseCode;

use super::*;
use crate::hooks::Look;
use crate::incident::{Incident, Trouble, panic_message};
use crate::outbox::Item;

impl<S: Simulation> Match<S> {
    /// Seals and steps one tick, resolves what it asked, and at a turn's end journals and sends.
    pub(super) fn tick(&mut self) {
        let tick = self.world.tick();
        self.keep_watched();
        let turn = self.world.turn();
        let cadence = if tick == turn.began {
            let seen = self.seen();
            Some(self.tempo.decide(self.now, &self.config, seen))
        } else {
            None
        };
        self.last_cadence = cadence.unwrap_or(turn.cadence);
        self.history.keep_for(self.last_cadence.tick());
        let cadence = cadence.filter(|cadence| *cadence != turn.cadence);
        self.note_silence();
        let look = Look {
            world: &self.world,
            rules: &self.rules,
            history: &self.history,
            views: &self.views,
        };
        self.sealer.seal(
            &mut self.frame,
            &look,
            &mut self.seats,
            &mut self.queries,
            &mut *self.referee,
            &self.config,
        );
        self.frame.cadence = cadence;
        let stepped = self.step();
        let mut struck = None;
        for refused in self.sealer.refused.drain(..) {
            let owner = self
                .peers
                .iter_mut()
                .find(|p| p.players.contains(&refused.player));
            if let Some(peer) = owner {
                peer.refuse(refused.player, refused.claim, refused.seq);
                if refused.poison && peer.standing.strike(self.now) {
                    struck = Some(peer.id);
                }
            } else if let Some((identity, _)) =
                self.identities.iter().find(|(_, p)| *p == refused.player)
            {
                self.standings.refuse(self.now, identity, &refused);
            }
        }
        if let Some(peer) = struck {
            self.kick(peer, CloseCode::Strikes);
        }
        if stepped.is_err() {
            return self.close(CloseCode::Fault);
        }
        self.history
            .keep_frame(&self.frame, self.digest, turn.began);
        self.history.keep_world(&self.world);
        match self.world.digest() {
            Ok(digest) => self.digest = digest,
            Err(nan) => {
                let message = nan.to_string();
                self.note_incident(Incident::new(tick, Trouble::Digest, &message));
                return self.close(CloseCode::Fault);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.frame(&self.frame);
        }
        self.count_frame();
        self.resolve(|open| open.asked == tick);
        self.answer_instead();
        if self.world.turn().began == self.world.tick() {
            self.end_turn();
        }
    }

    /// Steps the sealed frame. A panic is caught before anyone saw the frame: the tick is sealed again
    /// without commands and claims; a second panic is the game's own, and ends the match.
    fn step(&mut self) -> Result<(), ()> {
        for attempt in 0..2 {
            let (stepper, world) = (&mut self.stepper, &mut self.world);
            let perspective = Perspective::authority(world.tick());
            let stepped = catch_unwind(AssertUnwindSafe(|| {
                let nobody = PlayerSet::default();
                if let Err(error) =
                    stepper.step(world, &self.frame, &self.rules, perspective, nobody)
                {
                    panic!("the sealer made a frame that does not fit: {error}");
                }
            }));
            let Err(panic) = stepped else {
                return Ok(());
            };
            self.stats.panics += 1;
            let trouble = [Trouble::Step, Trouble::StepAgain][attempt];
            let incident = Incident::new(self.frame.tick, trouble, panic_message(&*panic))
                .with_orders(&self.frame, &self.identities);
            self.note_incident(incident);
            let Some(before) = self.history.world(self.frame.tick) else {
                return Err(());
            };
            self.world.clone_from(before);
            if attempt == 0 {
                self.sealer.strip(&mut self.frame, &mut self.seats);
            }
        }
        Err(())
    }

    fn count_frame(&mut self) {
        for player in self.frame.filled.iter() {
            self.seats[player.index()].stats.fills += 1;
        }
        for answer in &self.frame.outcomes {
            let count = if answer.outcome.is_some() {
                &mut self.stats.outcomes
            } else {
                &mut self.stats.unanswered
            };
            *count += 1;
        }
    }

    /// The turn is full: the journal first, then everybody hears of it.
    fn end_turn(&mut self) {
        self.stats.turns += 1;
        let (world, digest) = (&self.world, self.digest);
        if let Some(recorder) = &mut self.recorder {
            let start = self.outbox.bytes.len();
            recorder
                .turn(world, digest, &mut self.outbox.bytes)
                .expect("a turn within its bounds");
            self.outbox
                .push(Item::Journal(start..self.outbox.bytes.len()));
        }
        self.tell(false);
    }
}
