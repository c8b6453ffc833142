//! A frame: all that the simulation is told for one tick.
//!
//! [`FrameData`] is what is sealed, sent, journalled and compared. [`Frame`] is the same as a step sees
//! it: with the rules, the queries that its outcomes answer, and a [`Perspective`] (which phase, whose
//! screen).
//!
//! ```text
//! FrameData  = roster · outcomes · claims · commands · inputs      one canonical order
//! Frame      = FrameData + rules + queries + perspective           what `step` gets
//! ```
//!
//! Law **Canonical**: a frame has one order, built by the sealer and checked by whoever steps it: roster
//! by player, outcomes by (tick asked, key), claims by (player, tick), commands by (player, sequence).
//! Law **Only on difference**: equality covers roster, outcomes, claims, commands, and each input's value
//! and presence; never the phase, never whether an input was filled.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::bounds::{LEAD_MAX, PLAYERS_MAX};
pub use crate::perspective::{Learned, Perspective, Phase};
pub use crate::players::PlayerSet;
use crate::turn::Cadence;
use crate::{Key, PlayerId, Simulation, Tick};

/// A change of who plays. The roster is the framework's; a step only hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterChange {
    /// A new player: its inputs begin with this frame.
    Joined,
    /// No input came for a while: the seat is kept, its inputs are absent until it returns.
    Dropped,
    /// A dropped player is back.
    Returned,
    /// The player left; the seat is empty.
    Left,
}

/// A command, or a claim, of one player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order<C> {
    /// Who ordered it.
    pub player: PlayerId,
    /// Commands: the player's sequence. Claims: the tick that emitted it.
    pub seq: u32,
    /// What is ordered.
    pub command: C,
}

/// The answer to a query, or the news that it stays without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer<O> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The key it was asked under.
    pub key: Key,
    /// `None`: never answered (deadline, caps, a resolver that failed).
    pub outcome: Option<O>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuery<Q> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The name it was asked under.
    pub key: Key,
    /// The question.
    pub query: Q,
}

/// The inputs of one frame, by player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs<I>([Option<I>; PLAYERS_MAX]);

impl<I> Inputs<I> {
    /// The input of one player; `None`: absent.
    #[must_use]
    pub fn get(&self, player: PlayerId) -> Option<&I> {
        self.0.get(player.index())?.as_ref()
    }

    /// Sets or clears one player's input.
    ///
    /// # Panics
    /// If `player` is not below [`PLAYERS_MAX`].
    pub fn set(&mut self, player: PlayerId, input: Option<I>) {
        self.0[player.index()] = input;
    }

    /// All present inputs in player order.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerId, &I)> {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(i, input)| Some((PlayerId(i as u8), input.as_ref()?)))
    }

    /// Removes all inputs.
    pub fn clear(&mut self) {
        self.0.fill_with(|| None);
    }
}

/// What is sealed, sent, journalled and compared for one tick.
pub struct FrameData<S: Simulation> {
    /// The tick that this frame is for.
    pub tick: Tick,
    /// Who came and went, by player.
    pub roster: Vec<(PlayerId, RosterChange)>,
    /// Answers to open queries, by (tick asked, key).
    pub outcomes: Vec<Answer<S::Outcome>>,
    /// Admitted claims, by (player, tick emitted).
    pub claims: Vec<Order<S::Command>>,
    /// Commands, by (player, sequence).
    pub commands: Vec<Order<S::Command>>,
    /// What each present player holds.
    pub inputs: Inputs<S::Input>,
    /// Telemetry, outside equality and digest: players whose input the server had to fill, as a mask.
    pub filled: PlayerSet,
    /// How the match is clocked from this tick on, if that changes: only at a turn's first tick. Outside
    /// equality and digest.
    pub cadence: Option<Cadence>,
}

impl<S: Simulation> FrameData<S> {
    /// An empty frame for `tick`: nobody holds anything, nothing happened.
    #[must_use]
    pub fn empty(tick: Tick) -> Self {
        FrameData {
            tick,
            roster: Vec::new(),
            outcomes: Vec::new(),
            claims: Vec::new(),
            commands: Vec::new(),
            inputs: Inputs::default(),
            filled: PlayerSet::default(),
            cadence: None,
        }
    }

    /// As [`empty`](FrameData::empty), with room for what a busy tick brings: for slots that are used again
    /// and again and must not allocate later. About 2 KiB for small commands and outcomes.
    #[must_use]
    pub fn roomy(tick: Tick) -> Self {
        FrameData {
            roster: Vec::with_capacity(4),
            outcomes: Vec::with_capacity(8),
            claims: Vec::with_capacity(8),
            commands: Vec::with_capacity(16),
            ..FrameData::empty(tick)
        }
    }

    /// Makes this an empty frame for `tick`, keeping its buffers.
    pub fn reset(&mut self, tick: Tick) {
        self.tick = tick;
        self.roster.clear();
        self.outcomes.clear();
        self.claims.clear();
        self.commands.clear();
        self.inputs.clear();
        self.filled = PlayerSet::default();
        self.cadence = None;
    }

    /// Whether all that it tells is what players hold.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.roster.is_empty()
            && self.outcomes.is_empty()
            && self.claims.is_empty()
            && self.commands.is_empty()
            && self.cadence.is_none()
    }

    /// Whether the frame stands in canonical order, each entry once.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        fn ascending<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> bool {
            items.windows(2).all(|w| key(&w[0]) < key(&w[1]))
        }
        ascending(&self.roster, |r| r.0)
            && ascending(&self.outcomes, |o| (o.asked, o.key))
            && ascending(&self.claims, |c| (c.player, c.seq))
            && ascending(&self.commands, |c| (c.player, c.seq))
    }
}

impl<S: Simulation> Clone for FrameData<S> {
    fn clone(&self) -> Self {
        let mut copy = FrameData::empty(self.tick);
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, other: &Self) {
        self.tick = other.tick;
        self.roster.clone_from(&other.roster);
        self.outcomes.clone_from(&other.outcomes);
        self.claims.clone_from(&other.claims);
        self.commands.clone_from(&other.commands);
        self.inputs.clone_from(&other.inputs);
        self.filled = other.filled;
        self.cadence = other.cadence;
    }
}

impl<S: Simulation> PartialEq for FrameData<S> {
    fn eq(&self, other: &Self) -> bool {
        self.tick == other.tick
            && self.inputs == other.inputs
            && self.roster == other.roster
            && self.outcomes == other.outcomes
            && self.claims == other.claims
            && self.commands == other.commands
    }
}

impl<S: Simulation> Eq for FrameData<S> {}

impl<S: Simulation> fmt::Debug for FrameData<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Held<'a, I>(&'a Inputs<I>);
        impl<I: fmt::Debug> fmt::Debug for Held<'_, I> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.0.iter()).finish()
            }
        }
        f.debug_struct("FrameData")
            .field("tick", &self.tick)
            .field("roster", &self.roster)
            .field("outcomes", &self.outcomes)
            .field("claims", &self.claims)
            .field("commands", &self.commands)
            .field("inputs", &Held(&self.inputs))
            .field("filled", &self.filled)
            .field("cadence", &self.cadence)
            .finish()
    }
}

/// All that the simulation is told for one tick, as a step sees it.
pub struct Frame<'a, S: Simulation> {
    data: &'a FrameData<S>,
    answered: &'a [OpenQuery<S::Query>],
    refused: &'a [OpenQuery<S::Query>],
    rules: &'a S::Rules,
    perspective: Perspective<'a>,
}

impl<'a, S: Simulation> Frame<'a, S> {
    /// `answered[i]` is the query of `data.outcomes[i]`; `refused` were over the caps: they get `None`.
    pub(crate) fn new(
        data: &'a FrameData<S>,
        answered: &'a [OpenQuery<S::Query>],
        refused: &'a [OpenQuery<S::Query>],
        rules: &'a S::Rules,
        perspective: Perspective<'a>,
    ) -> Self {
        debug_assert_eq!(answered.len(), data.outcomes.len());
        Frame {
            data,
            answered,
            refused,
            rules,
            perspective,
        }
    }

    /// The tick being stepped.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.data.tick
    }

    /// The game's read-only content.
    #[must_use]
    pub fn rules(&self) -> &'a S::Rules {
        self.rules
    }

    /// Who came and went since the last tick, in player order.
    pub fn roster(&self) -> impl Iterator<Item = (PlayerId, RosterChange)> + use<'a, S> {
        self.data.roster.iter().copied()
    }

    /// What each present player holds, in player order.
    pub fn inputs(&self) -> impl Iterator<Item = (PlayerId, &'a S::Input)> + use<'a, S> {
        self.data.inputs.iter()
    }

    /// What one player holds; `None`: absent, which is not the same as neutral.
    #[must_use]
    pub fn input(&self, player: PlayerId) -> Option<&'a S::Input> {
        self.data.inputs.get(player)
    }

    /// Claims first, then commands; each in (player, sequence) order. All are already admitted.
    pub fn commands(&self) -> impl Iterator<Item = (PlayerId, &'a S::Command)> + use<'a, S> {
        self.data
            .claims
            .iter()
            .chain(&self.data.commands)
            .map(|order| (order.player, &order.command))
    }

    /// Answers to queries asked earlier: the key, the query, and its outcome or `None` (never answered).
    ///
    /// Every query asked gets exactly one entry, in one frame.
    pub fn outcomes(
        &self,
    ) -> impl Iterator<Item = (Key, &'a S::Query, Option<&'a S::Outcome>)> + use<'a, S> {
        let refused = self
            .refused
            .iter()
            .map(|open| (open.key, &open.query, None));
        let answered = self
            .answered
            .iter()
            .zip(&self.data.outcomes)
            .map(|(o, a)| (o.key, &o.query, a.outcome.as_ref()));
        refused.chain(answered)
    }

    /// Which of the two simulations this step belongs to.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.perspective.phase()
    }

    /// The authority's next tick: all before it is confirmed. In the authority phase: this very tick.
    #[must_use]
    pub fn confirmed(&self) -> Tick {
        self.perspective.confirmed()
    }

    /// Whether the player sits at this client. Never so in the authority phase.
    #[must_use]
    pub fn is_local(&self, player: PlayerId) -> bool {
        self.perspective.locals().contains(player)
    }

    /// The prediction's tick when this client first knew what `player` held at `tick` (announced or
    /// confirmed); [`Tick::MAX`] while it is guessed; `tick` itself in the authority phase.
    #[must_use]
    pub fn learned(&self, player: PlayerId, tick: Tick) -> Tick {
        let Some(learned) = self.perspective.learned() else {
            return tick;
        };
        match learned.get(player, tick) {
            Some(known) => known,
            // Older than the memory: known so long ago that every use of the answer is past.
            None if tick + LEAD_MAX < self.perspective.confirmed() => tick + LEAD_MAX,
            // Confirmed before this client was there: as if known at that very tick.
            None if tick < self.perspective.confirmed() => tick,
            None => Tick::MAX,
        }
    }

    /// Whether a projectile that `shooter` fired at `born` is a ghost on this screen: harmless, drawn on
    /// its way from the shown muzzle to its true path. Once the authority has reached the tick at which
    /// the shot became known, it is promoted and behaves like a local one (seed rows 68, 70).
    ///
    /// Ghost ⇔ prediction ∧ shooter not local ∧ confirmed < learned(shooter, born).
    #[must_use]
    pub fn is_ghost(&self, shooter: PlayerId, born: Tick) -> bool {
        self.phase() == Phase::Prediction
            && !self.is_local(shooter)
            && self.confirmed() < self.learned(shooter, born)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Echo;

    #[test]
    fn equality_ignores_whether_an_input_was_filled() {
        let mut given = FrameData::<Echo>::empty(Tick(3));
        given.inputs.set(PlayerId(1), Some(7));
        let mut filled = given.clone();
        filled.filled.set(PlayerId(1), true);
        assert_eq!(given, filled);
        filled.inputs.set(PlayerId(1), None);
        assert_ne!(given, filled, "absent is not the same as held");
    }

    #[test]
    fn canonical_order_forbids_duplicates_and_disorder() {
        let order = |player, seq| Order {
            player: PlayerId(player),
            seq,
            command: 0u8,
        };
        let mut frame = FrameData::<Echo>::empty(Tick(0));
        frame.commands = alloc::vec![order(0, 1), order(0, 2), order(1, 0)];
        assert!(frame.is_canonical());
        frame.commands.swap(0, 1);
        assert!(!frame.is_canonical());
        frame.commands = alloc::vec![order(0, 1), order(0, 1)];
        assert!(!frame.is_canonical());
    }
}
