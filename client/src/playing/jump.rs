//! A session in its match goes on from another world than the one that it had stepped to: healed, come back to a
//! server that kept its match, or to one that lost some of it.
//!
//! Invariant: whatever the world, the match gets what it may wait for (a batch for each turn from there on), own orders
//! are neither lost nor doubled, and the picture continues.

use twinstep_core::bounds::INPUT_WINDOW;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::packet::hello::{Holds, Welcome};

use super::Playing;
use crate::local_actions::LocalActions;
use crate::picture::Show;

impl<S: Simulation, V: Show<S>> Playing<S, V> {
    /// Goes on from the server's world, after ours was found to differ.
    pub(crate) fn heal(&mut self, world: World<S>) {
        let at = world.tick();
        self.divergence.heal();
        self.agreed = None;
        if !self.has_come() {
            self.come_at(at);
        }
        self.counted = self.counted.max(self.timeline.authority().tick());
        self.inbox.begin_at(at);
        if self.inbox.front().is_some_and(|frame| frame.tick != at) {
            // From before what is remembered: no server of ours sends that.
            self.inbox.restart(at);
            self.counted = at;
        }
        self.view.jump(world.sim(), at);
        self.meter.commands_executed += self.timeline.jump(world) as u64;
        // What counts is what has come since, not the world: that may have been on its way for long.
        let known = self.inbox.next();
        if self.timeline.local_actions().next() - known > INPUT_WINDOW {
            self.sample_anew(known);
        }
        self.meter.heals += 1;
        self.restart_tape();
        self.restart_playout();
        // Turns beyond that world may have come while it was on its way.
        if let Some(lockstep) = &mut self.lockstep {
            let now = self.allowance.now();
            for frame in self.inbox.frames() {
                lockstep.record_frame(now, frame);
            }
        }
    }

    /// The authority went back to `at`: what was sampled for ticks that did not happen would be too far ahead.
    fn sample_anew(&mut self, at: Tick) {
        self.pace = None;
        self.timeline.local_actions_mut().skip_to(at);
    }

    /// The tape begins with the authority as it is, if there is one.
    pub(crate) fn restart_tape(&mut self) {
        let delay = self.command_delay();
        if let Some(tape) = &mut self.tape {
            tape.begin(delay as u8, self.timeline.authority());
        }
    }

    /// Turns between a command and its execution; 0: this session predicts.
    pub(crate) fn command_delay(&self) -> u32 {
        self.lockstep.as_ref().map_or(0, |lockstep| lockstep.delay)
    }

    /// With a command delay: the server's next turn to seal, as last told.
    pub(crate) fn next_turn(&self) -> Option<u32> {
        let lockstep = self.lockstep.as_ref().filter(|l| l.delay > 0)?;
        Some(lockstep.next_turn)
    }

    /// In lockstep: the clock starts anew, with half of a command's delay as slack.
    fn restart_playout(&mut self) {
        if let Some(lockstep) = &mut self.lockstep {
            let turn = self.timeline.authority().turn();
            let slack = turn.cadence.turn() * lockstep.delay / 2;
            let now = self.allowance.now();
            lockstep.jump(now, turn, now + slack);
            self.timeline.local_actions_mut().open_turn = Some(lockstep.open_turn());
        }
    }

    /// The transport is lost: frames that were not stepped yet are forgotten. What is held of the authority, if it can be
    /// gone on from: its tick and digest, and the last digest that was equal to the server's, which may have taken none since.
    pub(crate) fn resumable(&mut self) -> Holds {
        let authority = self.timeline.authority();
        let tick = authority.tick();
        let turn = authority.turn();
        self.inbox.restart(tick);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.restart_arrivals(turn);
        }
        match self.timeline.authority().digest() {
            Ok(digest) if !self.divergence.is_there() => Holds::Authority {
                tick,
                digest: digest as u32,
                agreed: self.agreed,
            },
            _ => Holds::Nothing,
        }
    }

    /// Goes on from the authority, as the server agreed.
    pub(crate) fn resume(&mut self, welcome: &Welcome) {
        self.timeline
            .local_actions_mut()
            .come_back(&welcome.next_seq);
    }

    /// Goes on from the server's world, which may be older than ours.
    pub(crate) fn restart(&mut self, welcome: &Welcome, world: World<S>) {
        let at = world.tick();
        let went_back = at < self.timeline.authority().tick();
        self.divergence.heal();
        self.agreed = None;
        if !self.has_come() {
            self.come_at(at);
        }
        self.counted = at;
        self.next_seal = at;
        self.divergence.forget_evidence();
        self.inbox.restart(at);
        self.view.jump(world.sim(), at);
        self.meter.commands_executed += self.timeline.jump(world) as u64;
        if went_back {
            self.sample_anew(at);
        }
        self.restart_tape();
        self.restart_playout();
        self.resume(welcome);
    }

    /// As [`restart`](Playing::restart), as other players than before: what the old ones ordered and did not run is
    /// refused. Seats and sequences of these commands.
    pub(crate) fn restart_as(&mut self, welcome: &Welcome, world: World<S>) -> Vec<(usize, u32)> {
        let actions = self.timeline.local_actions_mut();
        self.meter.commands_executed += actions.jumped(&world) as u64;
        let seat_of = |player| actions.seats().iter().position(|p| *p == player);
        let refused: Vec<(usize, u32)> = actions
            .commands()
            .filter_map(|open| Some((seat_of(open.order.player)?, open.order.seq)))
            .collect();
        self.meter.commands_refused += refused.len() as u64;
        *actions = LocalActions::new(welcome.seats.clone(), &welcome.next_seq);
        if self.lockstep.is_none() {
            self.view.own(actions.players());
        }
        // Inputs are sampled for other seats: their clock begins anew.
        self.pace = None;
        self.restart(welcome, world);
        refused
    }
}
