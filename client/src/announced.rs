//! What the server told ahead of other players: inputs and commands of ticks that are not sealed yet.
//!
//! Invariant: the first value for (player, tick) is final. An announcement never triggers a rebuild; it is
//! used when a frame is next assumed. (Rebuilding on announcements undoes them: measured at 100 ms round
//! trip with analog sticks, 422 re-simulated ticks a second with and 139 without.)

use twinstep_core::bounds::{ANNOUNCE_TICKS, LEAD_MAX, PLAYERS_MAX};
use twinstep_core::frame::Order;
use twinstep_core::{PlayerId, Simulation, Tick};

/// Ticks remembered per player: from the authority to the announcements' horizon.
const SPAN: usize = (LEAD_MAX + 4 * ANNOUNCE_TICKS) as usize;
/// Announced commands that wait for their tick.
const COMMANDS: usize = 256;

/// Announced inputs and commands.
pub struct Announced<S: Simulation> {
    inputs: Vec<(Tick, Option<S::Input>)>,
    /// Per player, the last tick of which an input was announced.
    newest: [Option<Tick>; PLAYERS_MAX],
    commands: Vec<(Tick, Order<S::Command>)>,
}

impl<S: Simulation> Clone for Announced<S> {
    fn clone(&self) -> Self {
        let mut copy = Announced::default();
        copy.clone_from(self);
        copy
    }

    /// Keeps the buffers: no allocation, but for inputs and commands that own heap memory.
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
    /// Notes an input; whether it is news.
    pub fn note(&mut self, player: PlayerId, tick: Tick, input: &S::Input) -> bool {
        let slot = &mut self.inputs[slot(player, tick)];
        let news = slot.0 != tick;
        if news {
            *slot = (tick, Some(input.clone()));
            let newest = &mut self.newest[player.index()];
            *newest = (*newest).max(Some(tick));
        }
        news
    }

    /// What `player` holds at `tick`, if it was announced.
    pub fn input(&self, player: PlayerId, tick: Tick) -> Option<&S::Input> {
        let (at, input) = &self.inputs[slot(player, tick)];
        if *at == tick { input.as_ref() } else { None }
    }

    /// The last announced input of `player`, if it is of a tick before `tick`, and how long before.
    pub fn last_before(&self, player: PlayerId, tick: Tick) -> Option<(&S::Input, u32)> {
        let newest = self.newest[player.index()].filter(|newest| *newest < tick)?;
        Some((self.input(player, newest)?, tick - newest))
    }

    /// Notes a command that is due at `tick`.
    pub fn note_command(&mut self, tick: Tick, order: Order<S::Command>) {
        let same = |o: &Order<S::Command>| o.player == order.player && o.seq == order.seq;
        if let Some((due, _)) = self.commands.iter_mut().find(|(_, o)| same(o)) {
            // It waits longer than it was said to.
            *due = tick.max(*due);
        } else if self.commands.len() < COMMANDS {
            self.commands.push((tick, order));
        }
    }

    /// Commands that are announced, with the tick at which each is due.
    pub fn commands(&self) -> impl Iterator<Item = (Tick, &Order<S::Command>)> {
        self.commands.iter().map(|(tick, order)| (*tick, order))
    }

    /// Forgets commands that are in a frame already, by each player's next sequence, and those that were
    /// due long ago and are not said any more: they were refused.
    pub fn forget(&mut self, authority: Tick, next_seq: impl Fn(PlayerId) -> u32) {
        self.commands.retain(|(due, order)| {
            order.seq >= next_seq(order.player) && *due + ANNOUNCE_TICKS >= authority
        });
    }

    /// Forgets everything (after a jump to another world).
    pub fn clear(&mut self) {
        self.inputs.fill((Tick::MAX, None));
        self.newest = [None; PLAYERS_MAX];
        self.commands.clear();
    }
}
