//! [`Grounds`]: everything from which assumed frames are built, except the worlds themselves.
//!
//! Invariant: assuming and stepping a frame needs only these values and a line. So a rebuild can run on another thread
//! with a copy of them, and has the same result.

use std::sync::Arc;

use twinstep_core::bounds::{ANNOUNCE_TICKS, LEAD_MAX, PLAYERS_MAX};
use twinstep_core::frame::{Learned, Order, PlayerSet};
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, Tick};

use crate::hooks::{Guess, Speculate};
use crate::local_actions::LocalActions;

/// The game's rules and hooks, which stay the same for the whole session.
pub(super) struct Game<S: Simulation> {
    pub(super) rules: Arc<S::Rules>,
    pub(super) guess: Arc<dyn Guess<S>>,
    pub(super) speculate: Arc<dyn Speculate<S>>,
    /// Whether the digest before each assumed tick is kept.
    pub(super) verify: bool,
}

pub(super) struct Grounds<S: Simulation> {
    pub(super) local_actions: LocalActions<S>,
    pub(super) announced: Announced<S>,
    pub(super) learned: Learned,
    confirmed: Tick,
    /// The number of ticks for which each player's input has been a fill.
    filled: [u32; PLAYERS_MAX],
    doubt: Option<Doubt>,
    /// Whether the line is known to be wrong and continues for a turn. New announcements must not be applied to such a
    /// line, because its players would repeat actions of earlier ticks.
    pub(super) continues_wrong: bool,
}

/// The parts left out of assumed frames after a step failed, until the authority is [`ANNOUNCE_TICKS`] past that tick.
///
/// ```text
///  a step of T fails ─▶ at T and later, omit the announcements of players whose orders are due by then
///         │ again      ─▶ bare: this session's inputs, and the others' last inputs; no orders, no hooks
///        │ again      ─▶ no prediction of T and later
/// ```
#[derive(Clone, Copy)]
struct Doubt {
    from: Tick,
    /// The newest tick that failed. Announcements are trusted again [`ANNOUNCE_TICKS`] after it.
    failed: Tick,
    suspects: PlayerSet,
    /// Whether all orders and hooks are omitted.
    is_bare: bool,
    until: Tick,
}

impl<S: Simulation> Grounds<S> {
    pub(super) fn new(local_actions: LocalActions<S>) -> Self {
        Grounds {
            local_actions,
            announced: Announced::default(),
            learned: Learned::new(),
            confirmed: Tick(0),
            filled: [0; PLAYERS_MAX],
            doubt: None,
            continues_wrong: false,
        }
    }

    /// Updates the values that depend on the authority. Call it before assuming frames.
    pub(super) fn look(&mut self, authority: &World<S>) {
        self.confirmed = authority.tick();
        for (i, filled) in self.filled.iter_mut().enumerate() {
            *filled = authority.held(PlayerId(i as u8)).1;
        }
        let Some(doubt) = &mut self.doubt else {
            return;
        };
        if self.confirmed > doubt.failed {
            (doubt.is_bare, doubt.until) = (false, Tick::MAX);
        }
        if self.confirmed > doubt.failed + ANNOUNCE_TICKS {
            self.doubt = None;
        }
    }

    /// Leaves out more entries of assumed frames from `tick` onwards, because its step failed. Returns `true` if this
    /// is a new doubt.
    pub(super) fn doubt(&mut self, tick: Tick) -> bool {
        let is_new = self.doubt.is_none();
        let doubt = self.doubt.get_or_insert(Doubt {
            from: tick,
            failed: tick,
            suspects: PlayerSet::default(),
            is_bare: false,
            until: Tick::MAX,
        });
        let due = self.announced.commands().filter(|(due, _)| *due <= tick);
        let authors: PlayerSet = due.map(|(_, order)| order.player).collect();
        if doubt.is_bare && tick < doubt.from {
            // Frames of earlier ticks were still complete.
        } else if doubt.is_bare {
            doubt.until = doubt.until.min(tick);
        } else if !authors.without(doubt.suspects).is_empty() {
            doubt.suspects = doubt.suspects.or(authors);
        } else {
            doubt.suspects = PlayerSet(u16::MAX);
            doubt.is_bare = true;
        }
        doubt.from = doubt.from.min(tick);
        doubt.failed = doubt.failed.max(tick);
        is_new
    }

    /// Stops the prediction at `tick` until the authority has passed the failed tick.
    pub(super) fn stop_at(&mut self, tick: Tick) {
        if let Some(doubt) = &mut self.doubt {
            doubt.until = doubt.until.min(tick);
        }
    }

    /// The first tick that must not be predicted.
    pub(super) fn horizon(&self) -> Tick {
        self.doubt.map_or(Tick::MAX, |doubt| doubt.until)
    }

    /// Returns `true` if announcements of `player` are applied in the frame of `tick`.
    pub(super) fn believes(&self, player: PlayerId, tick: Tick) -> bool {
        !self
            .doubt
            .is_some_and(|doubt| tick >= doubt.from && doubt.suspects.contains(player))
    }

    pub(super) fn is_bare(&self, tick: Tick) -> bool {
        self.doubt
            .is_some_and(|doubt| doubt.is_bare && tick >= doubt.from)
    }

    pub(super) fn clear_doubt(&mut self) {
        self.doubt = None;
    }

    pub(super) fn confirmed(&self) -> Tick {
        self.confirmed
    }

    pub(super) fn filled(&self, player: PlayerId) -> u32 {
        self.filled[player.index()]
    }
}

impl<S: Simulation> Clone for Grounds<S> {
    fn clone(&self) -> Self {
        Grounds {
            local_actions: self.local_actions.clone(),
            announced: self.announced.clone(),
            learned: self.learned.clone(),
            confirmed: self.confirmed,
            filled: self.filled,
            doubt: self.doubt,
            continues_wrong: self.continues_wrong,
        }
    }

    fn clone_from(&mut self, other: &Self) {
        self.local_actions.clone_from(&other.local_actions);
        self.announced.clone_from(&other.announced);
        self.learned.clone_from(&other.learned);
        self.confirmed = other.confirmed;
        self.filled = other.filled;
        self.doubt = other.doubt;
        self.continues_wrong = other.continues_wrong;
    }
}

/// The number of ticks kept per player, from the authority to the announcements' horizon.
const SPAN: usize = (LEAD_MAX + 4 * ANNOUNCE_TICKS) as usize;
/// The maximum number of announced commands waiting for their tick.
const COMMANDS: usize = 256;

/// Inputs and commands of other players that the server announced for ticks not sealed yet.
///
/// Invariant: the first value for (player, tick) is final. An announcement never triggers a rebuild; it is used when a
/// frame is next assumed. (Rebuilding on announcements was measured at a 100 ms round trip with analog sticks: 422
/// re-simulated ticks a second with it, 139 without.)
pub(super) struct Announced<S: Simulation> {
    inputs: Vec<(Tick, Option<S::Input>)>,
    /// The last tick with an announced input, for each player.
    newest: [Option<Tick>; PLAYERS_MAX],
    commands: Vec<(Tick, Order<S::Command>)>,
}

impl<S: Simulation> Clone for Announced<S> {
    fn clone(&self) -> Self {
        let mut copy = Announced::default();
        copy.clone_from(self);
        copy
    }

    /// Reuses the buffers: allocates only for inputs and commands that own heap memory.
    fn clone_from(&mut self, other: &Self) {
        self.inputs.clone_from(&other.inputs);
        self.newest = other.newest;
        self.commands.clone_from(&other.commands);
    }
}

impl<S: Simulation> Default for Announced<S> {
    fn default() -> Self {
        Announced {
            inputs: vec![(Tick::MAX, None); PLAYERS_MAX * SPAN],
            newest: [None; PLAYERS_MAX],
            commands: Vec::with_capacity(COMMANDS),
        }
    }
}

fn slot(player: PlayerId, tick: Tick) -> usize {
    player.index() * SPAN + tick.0 as usize % SPAN
}

impl<S: Simulation> Announced<S> {
    pub(super) fn record_input(&mut self, player: PlayerId, tick: Tick, input: &S::Input) -> bool {
        let slot = &mut self.inputs[slot(player, tick)];
        let is_new = slot.0 != tick;
        if is_new {
            *slot = (tick, Some(input.clone()));
            let newest = &mut self.newest[player.index()];
            *newest = (*newest).max(Some(tick));
        }
        is_new
    }

    pub(super) fn input(&self, player: PlayerId, tick: Tick) -> Option<&S::Input> {
        let (at, input) = &self.inputs[slot(player, tick)];
        if *at == tick { input.as_ref() } else { None }
    }

    /// The last announced input of `player` before `tick`, and its distance in ticks.
    pub(super) fn last_before(&self, player: PlayerId, tick: Tick) -> Option<(&S::Input, u32)> {
        let newest = self.newest[player.index()].filter(|newest| *newest < tick)?;
        Some((self.input(player, newest)?, tick - newest))
    }

    pub(super) fn record_command(&mut self, tick: Tick, order: Order<S::Command>) {
        let same = |o: &Order<S::Command>| o.player == order.player && o.seq == order.seq;
        if let Some((due, _)) = self.commands.iter_mut().find(|(_, o)| same(o)) {
            // The server has postponed it.
            *due = tick.max(*due);
        } else if self.commands.len() < COMMANDS {
            self.commands.push((tick, order));
        }
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = (Tick, &Order<S::Command>)> {
        self.commands.iter().map(|(tick, order)| (*tick, order))
    }

    /// Drops commands already in a frame, according to each player's next sequence number. Also drops commands that
    /// were due long ago and are no longer announced, because they were refused.
    pub(super) fn forget(&mut self, authority: Tick, next_seq: impl Fn(PlayerId) -> u32) {
        self.commands.retain(|(due, order)| {
            order.seq >= next_seq(order.player) && *due + ANNOUNCE_TICKS >= authority
        });
    }

    pub(super) fn clear(&mut self) {
        self.inputs.fill((Tick::MAX, None));
        self.newest = [None; PLAYERS_MAX];
        self.commands.clear();
    }
}
