//! [`Stepper`]: the only code that steps a world.
//!
//! Law **Canonical**, on the stepping side: a frame is checked as a whole before anything changes, so a refused frame
//! leaves the world unchanged.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::state::World;
use crate::bounds::{ASKS_PER_TICK, COUNT_MAX, PLAYERS_MAX, QUERIES_OPEN_MAX, QUERIES_WAITING_MAX};
use crate::entries::{Fragment, LargeEntry, OpenQuery};
use crate::frame::{Frame, FrameData, Perspective, PlayerSet, RosterChange};
use crate::memo::Memos;
use crate::simulation::BotMoves;
use crate::{Effects, Key, PlayerId, Simulation, Tick};

/// The reason why a frame cannot be stepped. Such a frame is damaged if it comes from a peer or a file, and reveals a
/// bug if it comes from a sealer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum FrameError {
    #[error("expected the frame of {expected}, got the frame of {got}")]
    OutOfTurn { expected: Tick, got: Tick },
    #[error("the frame of {0} is not in canonical order")]
    NotCanonical(Tick),
    #[error("the frame of {tick} does not fit the roster at {player}")]
    Roster { tick: Tick, player: PlayerId },
    #[error("the frame of {tick} answers an unknown query (asked at {asked} with key {key})")]
    UnknownQuery { tick: Tick, asked: Tick, key: Key },
    #[error("the frame of {0} changes the cadence within a turn, or to an invalid one")]
    Cadence(Tick),
    #[error("the frame of {tick} does not continue {entry}")]
    Fragment { tick: Tick, entry: LargeEntry },
    #[error(
        "the frame of {tick} repeats a command of {player}: expected at least #{expected}, got #{got}"
    )]
    Sequence {
        tick: Tick,
        player: PlayerId,
        expected: u32,
        got: u32,
    },
}

/// Steps worlds with reused buffers: no allocation in the steady state.
pub struct Stepper<S: Simulation> {
    fx: Effects<S>,
    answered: Vec<OpenQuery<S::Query>>,
    bots: BotMoves<S>,
    dropped_asks: u64,
}

impl<S: Simulation> Default for Stepper<S> {
    fn default() -> Self {
        Stepper {
            fx: Effects::new(),
            answered: Vec::new(),
            bots: BotMoves::default(),
            dropped_asks: 0,
        }
    }
}

impl<S: Simulation> Stepper<S> {
    /// Steps `world` by one frame. `claimants` are the players that can claim: the local ones in the first step of a
    /// new predicted tick, otherwise none.
    ///
    /// # Errors
    /// If the frame does not fit the world, which is left unchanged.
    pub fn step(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
        rules: &S::Rules,
        perspective: Perspective<'_>,
        claimants: PlayerSet,
    ) -> Result<&Effects<S>, FrameError> {
        self.fx.memos_mut().begin_plain();
        self.step_inner(world, frame, rules, perspective, claimants)?;
        Ok(&self.fx)
    }

    /// Steps a prediction like [`step`](Stepper::step), with the memos that [`Effects::each`] reads and writes.
    ///
    /// # Errors
    /// The errors of [`step`](Stepper::step).
    pub fn step_with(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
        rules: &S::Rules,
        perspective: Perspective<'_>,
        claimants: PlayerSet,
        memos: &mut Memos,
    ) -> Result<&Effects<S>, FrameError> {
        let tick = world.tick;
        memos.lend(tick, self.fx.memos_mut());
        let stepped = self.step_inner(world, frame, rules, perspective, claimants);
        memos.take_back(tick, self.fx.memos_mut());
        stepped.map(|()| &self.fx)
    }

    /// Adds the name of the [`Effects::each`] loop in which the step panicked, if any, to the panic message.
    pub fn explain_panic(&mut self, words: &str) -> String {
        match self.fx.memos_mut().running.take() {
            Some(name) => format!("{words} (in the loop {name:?})"),
            None => words.into(),
        }
    }

    fn step_inner(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
        rules: &S::Rules,
        perspective: Perspective<'_>,
        claimants: PlayerSet,
    ) -> Result<(), FrameError> {
        check(world, frame)?;
        self.take_answered(world, frame);
        for &(player, change) in &frame.roster {
            world.change_roster(player, change);
        }
        self.bots.decide(world, rules);
        self.fx.reset(perspective.phase(), claimants);
        let seen = Frame {
            data: frame,
            answered: &self.answered,
            bots: &self.bots,
            rules,
            perspective,
            tick_ns: world.tick_ns,
        };
        world.sim.step(&seen, &mut self.fx);
        world.record_inputs(frame);
        for order in &frame.commands {
            world.next_seq[order.player.index()] = order.seq + 1;
        }
        world.collect(&frame.fragments);
        self.open_asked(world);
        // Before `reach`, because the new cadence already determines where this turn ends.
        if let Some(cadence) = frame.cadence {
            world.turn.cadence = cadence;
        }
        world.tick += 1;
        world.turn.reach(world.tick);
        Ok(())
    }

    /// The effects of the last step.
    #[must_use]
    pub fn effects(&self) -> &Effects<S> {
        &self.fx
    }

    /// The number of queries dropped because [`QUERIES_WAITING_MAX`] others were waiting. They get no answer.
    #[must_use]
    pub fn dropped_asks(&self) -> u64 {
        self.dropped_asks
    }

    fn take_answered(&mut self, world: &mut World<S>, frame: &FrameData<S>) {
        self.answered.clear();
        world.opened = 0;
        for answer in &frame.outcomes {
            if let Some(at) = world.find(answer.asked, answer.key) {
                self.answered.push(world.open.remove(at));
            }
        }
    }

    /// Opens queries within the limits: first the ones waiting since earlier ticks, then those of this step in key
    /// order. The rest wait, or are dropped if too many wait. So `open` stays in (tick asked, key) order.
    fn open_asked(&mut self, world: &mut World<S>) {
        let may_open = ASKS_PER_TICK.min(QUERIES_OPEN_MAX - world.open.len());
        let start = world.waiting.len();
        let room = QUERIES_WAITING_MAX + may_open - start;
        let asks = self.fx.asks();
        for (key, query) in asks.iter().take(room) {
            world.waiting.push(OpenQuery {
                asked: world.tick,
                key: *key,
                query: query.clone(),
            });
        }
        self.dropped_asks += asks.len().saturating_sub(room) as u64;
        world.waiting[start..].sort_unstable_by_key(|open| open.key);
        world.opened = may_open.min(world.waiting.len());
        world.open.extend(world.waiting.drain(..world.opened));
    }
}

impl<S: Simulation> World<S> {
    fn find(&self, asked: Tick, key: Key) -> Option<usize> {
        self.open
            .binary_search_by_key(&(asked, key), |open| (open.asked, open.key))
            .ok()
    }

    pub(super) fn fits(&self, fragment: &Fragment) -> bool {
        let is_open = match fragment.entry {
            LargeEntry::Outcome { asked, key } => self.find(asked, key).is_some(),
            LargeEntry::Command { player, seq } => {
                player.index() < PLAYERS_MAX && seq >= self.next_seq(player) && seq < COUNT_MAX
            }
        };
        is_open && self.unfinished.follows(fragment)
    }

    /// Keeps the fragments of a stepped frame, and drops the entries that can no longer be completed.
    pub(super) fn collect(&mut self, fragments: &[Fragment]) {
        self.unfinished.collect(fragments);
        let (open, next_seq, seated) = (&self.open, &self.next_seq, self.roster.seated());
        self.unfinished.held.retain(|held| match held.entry {
            LargeEntry::Outcome { asked, key } => {
                open.iter().any(|o| (o.asked, o.key) == (asked, key))
            }
            LargeEntry::Command { player, seq } => {
                seated.contains(player) && seq >= next_seq[player.index()]
            }
        });
    }

    fn change_roster(&mut self, player: PlayerId, change: RosterChange) {
        let i = player.index();
        let follows = self.roster.change(player, change);
        debug_assert!(follows, "the frame was checked");
        // A dropped player keeps its last input until it returns or leaves. After any other change, the input starts
        // from neutral.
        if change != RosterChange::Dropped {
            self.held[i] = S::Input::default();
            self.ages[i] = 0;
        }
    }

    fn record_inputs(&mut self, frame: &FrameData<S>) {
        for (player, input) in frame.inputs.iter() {
            let i = player.index();
            self.held[i].clone_from(input);
            self.ages[i] = if frame.filled.contains(player) {
                self.ages[i].saturating_add(1)
            } else {
                0
            };
        }
    }
}

fn check<S: Simulation>(world: &World<S>, frame: &FrameData<S>) -> Result<(), FrameError> {
    let tick = frame.tick;
    if tick != world.tick {
        return Err(FrameError::OutOfTurn {
            expected: world.tick,
            got: tick,
        });
    }
    if !frame.is_canonical() {
        return Err(FrameError::NotCanonical(tick));
    }
    if let Some(cadence) = frame.cadence
        && (tick != world.turn.began || !cadence.is_sound())
    {
        return Err(FrameError::Cadence(tick));
    }
    // On a copy: inputs and orders are checked against the roster as this frame leaves it.
    let mut roster = world.roster;
    for &(player, change) in &frame.roster {
        if !roster.change(player, change) {
            return Err(FrameError::Roster { tick, player });
        }
    }
    // Exactly the present players have an input, so a bit that differs is an error either way.
    let either = PlayerSet(frame.inputs.players().0 ^ roster.present().0);
    if let Some(player) = either.iter().next() {
        return Err(FrameError::Roster { tick, player });
    }
    for order in frame.claims.iter().chain(&frame.commands) {
        if !roster.seated().contains(order.player) {
            return Err(FrameError::Roster {
                tick,
                player: order.player,
            });
        }
    }
    for order in &frame.commands {
        let expected = world.next_seq[order.player.index()];
        // Gaps are allowed: refused commands use up their sequence numbers.
        if order.seq < expected || order.seq >= COUNT_MAX {
            return Err(FrameError::Sequence {
                tick,
                player: order.player,
                expected,
                got: order.seq,
            });
        }
    }
    for answer in &frame.outcomes {
        if world.find(answer.asked, answer.key).is_none() {
            return Err(FrameError::UnknownQuery {
                tick,
                asked: answer.asked,
                key: answer.key,
            });
        }
    }
    for fragment in &frame.fragments {
        let entry = fragment.entry;
        let is_there = fragment.left > 0 || frame.contains(entry);
        let seated = entry.player().is_none_or(|p| roster.seated().contains(p));
        if !(is_there && seated && world.fits(fragment)) {
            return Err(FrameError::Fragment { tick, entry });
        }
    }
    Ok(())
}
