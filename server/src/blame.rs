//! Handling of failing steps: a failure is detected before any client gets the frame, and traced to the order or input
//! that caused it.
//!
//! ```text
//!  step, check ── fine ──▶ continue: a good tick has no additional cost
//!      │ a panic, a NaN
//!      ▼ the world as before, and less in the frame:
//!  no orders ── fine ──▶ each author's orders alone: an author that fails alone is guilty ─▶ refused, struck
//!      │                      │ all orders but those: fine ──▶ continue
//!      │                      ▼ two that fail only together: without one author, or without all; no strikes
//!      │ fails too
//!      ▼
//!  one outcome unanswered, or one input neutral: the first that helps ──▶ continue (and its player is struck)
//!      │ no attempt helps
//!      ▼
//!  the match is over
//! ```
//!
//! Invariants: only players whose orders or inputs were proven to fail get a strike. The orders of the others run in
//! this same tick, unless they fail only together or no smaller change helps. There
//! are at most 3 × players + outcomes + 5 attempts.

use twinstep_core::digest::SizedDigest;
use twinstep_core::frame::{Answer, FrameData, PlayerSet};
use twinstep_core::{PlayerId, Simulation};

use crate::diagnostics::Diagnostics;
use crate::incident::{Incident, Trouble};
use crate::sealer::Sealer;
use crate::seat::Seat;
use crate::server_world::{Failure, ServerWorld};

pub(crate) struct Stepped {
    pub(crate) sized_digest: Option<SizedDigest>,
    /// Players whose orders or input alone make the step fail.
    guilty: PlayerSet,
    /// The players that get a strike: one for each of their left-out orders, or one for an input.
    pub(crate) strikes: Vec<PlayerId>,
}

impl Stepped {
    fn new(sized_digest: Option<SizedDigest>, guilty: PlayerSet) -> Stepped {
        Stepped {
            sized_digest,
            guilty,
            strikes: Vec::new(),
        }
    }
}

/// A frame to step, and the state that changes if that fails.
pub(crate) struct Blame<'a, S: Simulation> {
    pub(crate) world: &'a mut ServerWorld<S>,
    pub(crate) sealer: &'a mut Sealer<S>,
    pub(crate) seats: &'a mut [Seat<S>],
    pub(crate) identities: &'a [(String, PlayerId)],
    pub(crate) diagnostics: &'a mut Diagnostics,
}

impl<S: Simulation> Blame<'_, S> {
    /// Steps the sealed frame, or as much of it as can be stepped. Returns `None` if no part can be stepped, so the
    /// match is over.
    pub(crate) fn step(&mut self) -> Option<Stepped> {
        match self.attempt() {
            Ok(sized_digest) => Some(Stepped::new(sized_digest, PlayerSet::default())),
            Err(failure) => self.step_without(failure),
        }
    }

    fn attempt(&mut self) -> Result<Option<SizedDigest>, Failure> {
        let stepped = self.world.attempt(&self.sealer.frame);
        match stepped.as_ref().map_err(|failure| failure.trouble) {
            Ok(_) => {}
            Err(Trouble::Nan) => self.diagnostics.stats.nans += 1,
            Err(_) => self.diagnostics.stats.panics += 1,
        }
        stepped
    }

    /// Steps the frame from the world before the tick. A failure is expected here and not counted.
    fn retry(&mut self) -> Option<Option<SizedDigest>> {
        self.world.step_back(self.sealer.frame.tick)?;
        self.sealer.frame.drop_ends_of_missing();
        self.world.attempt(&self.sealer.frame).ok()
    }

    fn step_without(&mut self, failure: Failure) -> Option<Stepped> {
        let sealed = self.sealer.frame.clone();
        let found = self
            .without_orders(&sealed)
            .or_else(|| self.without_one(&sealed));
        let incident = Incident::new(sealed.tick, failure.trouble, &failure.message);
        let Some(mut stepped) = found else {
            let trouble = failure.trouble.fatal();
            let incident = Incident::new(sealed.tick, trouble, &failure.message);
            self.diagnostics
                .report(incident.with_orders(&sealed, self.identities, |_| true));
            return None;
        };
        let (frame, identities) = (&self.sealer.frame, self.identities);
        let is_out = |player: PlayerId| !authors(frame).contains(player);
        let mut incident = incident.with_orders(&sealed, identities, is_out);
        for (was, is) in sealed.outcomes.iter().zip(&frame.outcomes) {
            if was != is {
                let Answer { asked, key, .. } = was;
                incident.add(&format_args!("the outcome of the query {key} of {asked}"));
            }
        }
        for (player, _) in sealed.inputs.iter() {
            if sealed.inputs.get(player) != frame.inputs.get(player) {
                incident.add(&format_args!("the input of {player}"));
            }
        }
        self.diagnostics.report(incident);
        self.sealer.refuse_missing(&sealed, self.seats);
        for player in stepped.guilty.iter() {
            let orders = sealed.claims.iter().chain(&sealed.commands);
            let orders = orders.filter(|order| order.player == player).count();
            let is_out = !authors(&self.sealer.frame).contains(player);
            let out = if is_out { orders } else { 0 };
            let strikes = std::iter::repeat_n(player, out.max(1));
            stepped.strikes.extend(strikes);
        }
        Some(stepped)
    }

    /// Leaves out orders: those that fail alone, otherwise as few as possible. Returns `None` if the orders did not
    /// cause the failure.
    fn without_orders(&mut self, sealed: &FrameData<S>) -> Option<Stepped> {
        let authors = authors(sealed);
        if authors.is_empty() {
            return None;
        }
        let mut guilty = PlayerSet::default();
        let mut sized_digest = self.with_orders_of(sealed, |_| false)?;
        // Without its orders the frame is fine, so the only author is guilty.
        if authors.iter().count() == 1 {
            guilty = authors;
        } else {
            for author in authors.iter() {
                let alone = self.with_orders_of(sealed, |player| player == author);
                guilty.set(author, alone.is_none());
            }
            let fine = |player| !guilty.contains(player);
            let rest = self
                .with_orders_of(sealed, fine)
                .or_else(|| {
                    // Some fail only together, so it is unknown which of them is at fault.
                    let mut fine = authors.iter().filter(|player| fine(*player));
                    fine.find_map(|out| {
                        self.with_orders_of(sealed, |p| !guilty.contains(p) && p != out)
                    })
                })
                .or_else(|| self.with_orders_of(sealed, |_| false));
            sized_digest = rest?;
        }
        // An owed claim comes from the referee, so its player is not at fault.
        for player in self.sealer.owed.iter() {
            guilty.set(player, false);
        }
        Some(Stepped::new(sized_digest, guilty))
    }

    fn with_orders_of(
        &mut self,
        sealed: &FrameData<S>,
        stays: impl Fn(PlayerId) -> bool,
    ) -> Option<Option<SizedDigest>> {
        self.sealer.frame.clone_from(sealed);
        self.sealer.frame.claims.retain(|order| stays(order.player));
        self.sealer
            .frame
            .commands
            .retain(|order| stays(order.player));
        self.retry()
    }

    /// Leaves one query unanswered or makes one input neutral. The last attempt does this to all of them.
    fn without_one(&mut self, sealed: &FrameData<S>) -> Option<Stepped> {
        let nobody = PlayerSet::default();
        for at in 0..sealed.outcomes.len() {
            if sealed.outcomes[at].outcome.is_none() {
                continue;
            }
            self.sealer.frame.clone_from(sealed);
            self.sealer.frame.outcomes[at].outcome = None;
            if let Some(sized_digest) = self.retry() {
                return Some(Stepped::new(sized_digest, nobody));
            }
        }
        let neutral = S::Input::default();
        for (player, input) in sealed.inputs.iter() {
            if *input == neutral {
                continue;
            }
            self.sealer.frame.clone_from(sealed);
            self.neutralise(player);
            if let Some(sized_digest) = self.retry() {
                let mut guilty = nobody;
                guilty.set(player, !sealed.filled.contains(player));
                return Some(Stepped::new(sized_digest, guilty));
            }
        }
        self.sealer.frame.clone_from(sealed);
        self.sealer.frame.claims.clear();
        self.sealer.frame.commands.clear();
        for answer in &mut self.sealer.frame.outcomes {
            answer.outcome = None;
        }
        for (player, _) in sealed.inputs.iter() {
            self.neutralise(player);
        }
        let sized_digest = self.retry()?;
        Some(Stepped::new(sized_digest, nobody))
    }

    /// Makes the player's input neutral. The player's client is informed of that, as for any replaced input.
    fn neutralise(&mut self, player: PlayerId) {
        self.sealer
            .frame
            .inputs
            .set(player, Some(S::Input::default()));
        self.sealer.frame.filled.set(player, true);
    }
}

fn authors<S: Simulation>(frame: &FrameData<S>) -> PlayerSet {
    let orders = frame.claims.iter().chain(&frame.commands);
    orders.map(|order| order.player).collect()
}
