//! What a step tells the outside: questions, cues, claims, and that it held something back.

use alloc::vec::Vec;
use core::fmt;

use crate::bounds::ASKS_PER_TICK;
use crate::frame::{Phase, PlayerSet};
use crate::{Key, PlayerId, Simulation};

/// Collects what one step asks, shows and claims. It has no way back into the step.
pub struct Effects<S: Simulation> {
    asks: Vec<(Key, S::Query)>,
    cues: Vec<(Key, S::Cue)>,
    claims: Vec<(PlayerId, S::Command)>,
    claimants: PlayerSet,
    withheld: bool,
    phase: Phase,
}

impl<S: Simulation> Effects<S> {
    /// Nothing yet, and nobody may claim.
    #[must_use]
    pub fn new() -> Self {
        Effects {
            asks: Vec::with_capacity(ASKS_PER_TICK),
            cues: Vec::with_capacity(64),
            claims: Vec::with_capacity(4),
            claimants: PlayerSet::default(),
            withheld: false,
            phase: Phase::Authority,
        }
    }

    /// Asks something that the simulation may not answer itself. Exactly one entry of a later frame's
    /// [`outcomes`](crate::Frame::outcomes) answers it, at the earliest the next one's.
    ///
    /// At most [`ASKS_PER_TICK`] a tick and
    /// [`QUERIES_OPEN_MAX`](crate::bounds::QUERIES_OPEN_MAX) open; what exceeds either is answered `None`
    /// at the next tick. A key that this step has used already is dropped: keys are derived from causes,
    /// and one cause asks once.
    pub fn ask(&mut self, key: Key, query: S::Query) {
        if self.asks.iter().all(|(k, _)| *k != key) {
            self.asks.push((key, query));
        }
    }

    /// Something to show or play once. See the cue ledger of the client for its life.
    pub fn cue(&mut self, key: Key, cue: S::Cue) {
        self.cues.push((key, cue));
    }

    /// As [`cue`](Effects::cue), but shown only when it is confirmed: a prediction does not start it.
    pub fn cue_when_confirmed(&mut self, key: Key, cue: S::Cue) {
        if self.phase == Phase::Authority {
            self.cues.push((key, cue));
        }
    }

    /// In a local player's prediction: a command that the simulation itself gives for `player` ("I died").
    ///
    /// Taken only from the first step of a new tick, never from re-simulation, at most one per player and
    /// tick; everywhere else it is ignored, so a step can call it without asking whose screen it is on. It
    /// changes no state in its own tick: the claim comes back among the next frame's commands.
    pub fn claim(&mut self, player: PlayerId, command: S::Command) {
        if self.claimants.contains(player) {
            self.claimants.set(player, false);
            self.claims.push((player, command));
        }
    }

    /// Says that this step held an effect back because its cause is unconfirmed (a ghost hit something).
    ///
    /// A step whose state would differ between the phases **must** call this in the prediction: the assumed frame then
    /// counts as different when its truth arrives, and the prediction is rebuilt.
    pub fn withhold(&mut self) {
        self.withheld = true;
    }

    /// What was asked, in the order of asking.
    #[must_use]
    pub fn asks(&self) -> &[(Key, S::Query)] {
        &self.asks
    }

    /// What is to be shown, in the order of the calls.
    #[must_use]
    pub fn cues(&self) -> &[(Key, S::Cue)] {
        &self.cues
    }

    /// What was claimed for local players.
    #[must_use]
    pub fn claims(&self) -> &[(PlayerId, S::Command)] {
        &self.claims
    }

    /// Whether [`withhold`](Effects::withhold) was called.
    #[must_use]
    pub fn withheld(&self) -> bool {
        self.withheld
    }

    /// Makes this empty again, keeping its buffers; `claimants` may claim in the coming step.
    pub(crate) fn reset(&mut self, phase: Phase, claimants: PlayerSet) {
        self.phase = phase;
        self.asks.clear();
        self.cues.clear();
        self.claims.clear();
        self.claimants = claimants;
        self.withheld = false;
    }
}

impl<S: Simulation> Default for Effects<S> {
    fn default() -> Self {
        Effects::new()
    }
}

impl<S: Simulation> Clone for Effects<S> {
    fn clone(&self) -> Self {
        Effects {
            asks: self.asks.clone(),
            cues: self.cues.clone(),
            claims: self.claims.clone(),
            claimants: self.claimants,
            withheld: self.withheld,
            phase: self.phase,
        }
    }
}

impl<S: Simulation> PartialEq for Effects<S> {
    fn eq(&self, other: &Self) -> bool {
        self.asks == other.asks
            && self.cues == other.cues
            && self.claims == other.claims
            && self.withheld == other.withheld
    }
}

impl<S: Simulation> fmt::Debug for Effects<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effects")
            .field("asks", &self.asks)
            .field("cues", &self.cues)
            .field("claims", &self.claims)
            .field("withheld", &self.withheld)
            .finish()
    }
}
