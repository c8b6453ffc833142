//! The actions of this client's own players: sampled inputs, open commands and claims.
//!
//! Invariant: an input never changes once it is sampled for a tick. A command or claim is kept until it is executed in
//! a confirmed frame, refused, or skipped by a jump. A claim is sent until then, a command until the server has it.
//! Commands that do not fit into one packet are spread over several.

use arrayvec::ArrayVec;
use std::collections::VecDeque;
use std::sync::Arc;

use twinstep_core::bounds::{
    COMMANDS_OPEN_MAX, COUNT_MAX, INPUT_WINDOW, LARGE_COMMANDS_OPEN_MAX, SEATS_MAX,
};
use twinstep_core::frame::{FrameData, Order, PlayerSet};
use twinstep_core::{Controls, PlayerId, Simulation, Tick, World, codec};
use twinstep_protocol::share::is_large;

/// The number of inputs kept per seat: inputs being sent, and inputs that may still appear in frames.
const REMEMBERED: usize = 4 * INPUT_WINDOW as usize;

/// The maximum length of `skipped`; the oldest command is dropped first.
const SKIPPED_MAX: usize = 4 * COMMANDS_OPEN_MAX;

/// A command or claim whose fate is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending<C> {
    /// The command as it will appear in a frame.
    pub order: Order<C>,
    /// The tick at which the prediction executes it; in lockstep, the turn in which it runs.
    pub stamp: Tick,
    /// The bytes of a large command, which frames contain in fragments.
    pub large: Option<Arc<[u8]>>,
}

/// The effect of a refusal on the client's own record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalNews {
    /// The command was open, and is now refused.
    Now,
    /// The command is refused. Until now it counted as executed in a frame that the client skipped.
    AfterAll,
    /// The refusal was known already.
    Known,
}

/// The inputs, commands and claims of this client's own players.
pub struct LocalActions<S: Simulation> {
    seats: ArrayVec<PlayerId, SEATS_MAX>,
    players: PlayerSet,
    /// A ring per seat. Each input is stored with its tick, because jumps leave gaps.
    inputs: Vec<(Tick, S::Input)>,
    /// `first..next` is the contiguous run of inputs that ends at I.
    first: Tick,
    next: Tick,
    /// The last tick at which a seat's input differed from that of the previous tick.
    changed: Tick,
    next_seq: [u32; SEATS_MAX],
    pub(crate) open_turn: Option<u32>,
    /// The next command that the server expects from each seat, according to its newest report.
    expected_seq: [u32; SEATS_MAX],
    commands: VecDeque<Pending<S::Command>>,
    /// Commands whose frame was skipped by a jump: they count as executed unless they are refused later.
    skipped: Vec<(PlayerId, u32)>,
    claims: VecDeque<Pending<S::Command>>,
    overtaken: Vec<(usize, u32)>,
}

impl<S: Simulation> Clone for LocalActions<S> {
    fn clone(&self) -> Self {
        let mut copy = LocalActions::new(self.seats.clone(), &self.next_seq);
        copy.clone_from(self);
        copy
    }

    /// Reuses the buffers: allocates only for inputs and commands that own heap memory.
    fn clone_from(&mut self, other: &Self) {
        self.seats.clone_from(&other.seats);
        self.players = other.players;
        self.inputs.clone_from(&other.inputs);
        (self.first, self.next) = (other.first, other.next);
        self.changed = other.changed;
        self.next_seq = other.next_seq;
        self.open_turn = other.open_turn;
        self.expected_seq = other.expected_seq;
        self.commands.clone_from(&other.commands);
        self.skipped.clone_from(&other.skipped);
        self.claims.clone_from(&other.claims);
        self.overtaken.clone_from(&other.overtaken);
    }
}

impl<S: Simulation> LocalActions<S> {
    /// Creates the actions of `seats`. The next command of seat i has the sequence number `next_seq[i]`.
    pub fn new(seats: ArrayVec<PlayerId, SEATS_MAX>, next_seq: &[u32]) -> Self {
        let mut seqs = [0; SEATS_MAX];
        seqs[..next_seq.len()].copy_from_slice(next_seq);
        LocalActions {
            inputs: vec![(Tick::MAX, S::Input::default()); REMEMBERED * seats.len().max(1)],
            players: seats.iter().copied().collect(),
            seats,
            first: Tick(0),
            next: Tick(0),
            changed: Tick(0),
            next_seq: seqs,
            open_turn: None,
            expected_seq: seqs,
            commands: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            skipped: Vec::new(),
            claims: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            overtaken: Vec::with_capacity(COMMANDS_OPEN_MAX),
        }
    }

    /// The player of each seat.
    pub fn seats(&self) -> &[PlayerId] {
        &self.seats
    }

    /// The players of all seats.
    pub fn players(&self) -> PlayerSet {
        self.players
    }

    fn slot(&self, seat: usize, tick: Tick) -> usize {
        seat * REMEMBERED + tick.0 as usize % REMEMBERED
    }

    /// The next tick without a local input: I.
    pub fn next(&self) -> Tick {
        self.next
    }

    /// Moves I to `tick` after a jump. The server fills the skipped ticks.
    pub fn skip_to(&mut self, tick: Tick) {
        if tick != self.next {
            self.first = tick;
            self.next = tick;
            self.changed = tick;
        }
    }

    /// Samples an input of every seat for the next tick.
    pub fn sample(&mut self, mut input: impl FnMut(usize) -> S::Input) {
        for seat in 0..self.seats.len() {
            let slot = self.slot(seat, self.next);
            self.inputs[slot] = (self.next, input(seat));
            if self.input(seat, self.next) != self.input(seat, self.next.back(1)) {
                self.changed = self.next;
            }
        }
        self.next += 1;
        if self.next - self.first > REMEMBERED as u32 {
            self.first = self.next.back(REMEMBERED as u32);
        }
    }

    /// Repeats the newest input of every seat for one more tick, because the input delay increased.
    pub fn repeat(&mut self) {
        let last = self.next.back(1);
        let held: ArrayVec<S::Input, SEATS_MAX> = (0..self.seats.len())
            .map(|seat| self.input(seat, last).cloned().unwrap_or_default())
            .collect();
        self.sample(|seat| held[seat].clone());
    }

    /// The number of ticks since any seat's input last changed.
    pub fn held_for(&self) -> u32 {
        self.next - self.changed
    }

    /// Returns `true` if the server's fills for the next `ticks` ticks would equal the newest input of every seat.
    pub fn would_fills_match(&self, ticks: u32) -> bool {
        let last = self.next.back(1);
        (0..self.seats.len()).all(|seat| {
            let held = self.input(seat, last);
            held.is_some_and(|held| (1..=ticks).all(|age| held.repeat(age) == *held))
        })
    }

    /// The input of a seat at `tick`, if it was sampled and is still kept.
    pub fn input(&self, seat: usize, tick: Tick) -> Option<&S::Input> {
        let (at, input) = &self.inputs[self.slot(seat, tick)];
        (*at == tick).then_some(input)
    }

    /// The input of a player at `tick`, like [`input`](LocalActions::input).
    pub fn input_of(&self, player: PlayerId, tick: Tick) -> Option<&S::Input> {
        self.input(self.seats.iter().position(|p| *p == player)?, tick)
    }

    /// The first tick of the contiguous run of inputs that ends at I.
    pub fn first_input_tick(&self) -> Tick {
        self.first
    }

    /// Issues a command for the next input tick, or in lockstep for the open turn. Returns its sequence number, or
    /// `None` if too many commands are open, no sequence numbers are left, or the command cannot be encoded.
    pub fn command(&mut self, seat: usize, command: S::Command) -> Option<u32> {
        let seq = self.next_seq[seat];
        if self.commands.len() >= COMMANDS_OPEN_MAX || seq >= COUNT_MAX {
            return None;
        }
        let mut large = None;
        if is_large(&command) {
            let player = self.seats[seat];
            let open = self.commands.iter().filter(|p| p.order.player == player);
            if open.filter(|p| p.large.is_some()).count() >= LARGE_COMMANDS_OPEN_MAX {
                return None;
            }
            let mut bytes = Vec::new();
            codec::append(&command, &mut bytes).ok()?;
            large = Some(bytes.into());
        }
        self.next_seq[seat] += 1;
        let order = Order {
            player: self.seats[seat],
            seq,
            command,
        };
        self.commands.push_back(Pending {
            order,
            stamp: self.open_turn.map_or(self.next, Tick),
            large,
        });
        Some(seq)
    }

    /// Records a claim that the prediction's step of `tick` emitted. Returns `false` if the list is full.
    pub fn claim(&mut self, player: PlayerId, tick: Tick, command: S::Command) -> bool {
        let room = self.claims.len() < COMMANDS_OPEN_MAX;
        if room {
            let order = Order {
                player,
                seq: tick.0,
                command,
            };
            self.claims.push_back(Pending {
                order,
                stamp: tick + 1,
                large: None,
            });
        }
        room
    }

    /// Commands whose fate is not known, in the order issued.
    pub fn commands(&self) -> impl Iterator<Item = &Pending<S::Command>> {
        self.commands.iter()
    }

    /// Commands not acknowledged by the server, in the order issued.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Pending<S::Command>> {
        self.commands
            .iter()
            .filter(|p| p.order.seq >= self.expected_seq[self.seat_of(p.order.player)])
    }

    /// The seat of one of this session's players; 0 for other players.
    pub(crate) fn seat_of(&self, player: PlayerId) -> usize {
        let seat = self.seats.iter().position(|p| *p == player);
        seat.unwrap_or(0)
    }

    /// Records the next command that the server expects from a seat.
    pub fn acknowledge(&mut self, seat: usize, next_seq: u32) {
        if next_seq <= self.next_seq[seat] {
            self.expected_seq[seat] = self.expected_seq[seat].max(next_seq);
        }
    }

    /// Records the next command that the server expects from each seat after a reconnect. Commands starting there are
    /// sent again.
    pub fn resume_from(&mut self, next_seq: &[u32]) {
        for (seat, &next) in next_seq.iter().enumerate().take(self.seats.len()) {
            self.expected_seq[seat] = next;
            // While this client was away, the same player may have issued commands from another client.
            self.next_seq[seat] = self.next_seq[seat].max(next);
        }
    }

    /// Claims whose fate is not known, in the order emitted.
    pub fn claims(&self) -> impl Iterator<Item = &Pending<S::Command>> {
        self.claims.iter()
    }

    /// Drops the commands and claims executed by a confirmed frame. A player's commands run in the order issued, so
    /// earlier open ones count as refused, even if the server failed before it reported that.
    pub fn executed(&mut self, frame: &FrameData<S>) {
        for order in &frame.commands {
            let Some(seat) = self.seats.iter().position(|p| *p == order.player) else {
                continue;
            };
            let overtaken = &mut self.overtaken;
            self.commands.retain(|p| {
                let earlier = p.order.player == order.player && p.order.seq < order.seq;
                if earlier {
                    overtaken.push((seat, p.order.seq));
                }
                !earlier && (p.order.player != order.player || p.order.seq != order.seq)
            });
        }
        for order in &frame.claims {
            self.claims
                .retain(|p| p.order.player != order.player || p.order.seq != order.seq);
        }
    }

    /// Drains the seats and sequence numbers of commands that count as refused because a later one ran.
    pub fn take_overtaken(&mut self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.overtaken.drain(..)
    }

    /// Continues from `world` without the frames before it. Returns the number of this session's commands that count as
    /// executed in those frames.
    pub fn jumped(&mut self, world: &World<S>) -> usize {
        let before = self.commands.len();
        let skipped = &mut self.skipped;
        self.commands.retain(|p| {
            let open = p.order.seq >= world.next_seq(p.order.player);
            if !open {
                if skipped.len() == SKIPPED_MAX {
                    skipped.remove(0);
                }
                skipped.push((p.order.player, p.order.seq));
            }
            open
        });
        self.claims.retain(|p| p.stamp > world.tick());
        before - self.commands.len()
    }

    /// Drops all claims, because the ticks that emitted them did not happen.
    pub fn forget_claims(&mut self) {
        self.claims.clear();
    }

    /// Drops a refused command, and returns the effect.
    pub fn refused_command(&mut self, seat: usize, seq: u32) -> RefusalNews {
        let player = self.seats.get(seat).copied();
        let skipped = self
            .skipped
            .iter()
            .position(|(p, s)| Some(*p) == player && *s == seq);
        if let Some(at) = skipped {
            self.skipped.swap_remove(at);
            return RefusalNews::AfterAll;
        }
        if refuse(&mut self.commands, player, seq) {
            RefusalNews::Now
        } else {
            RefusalNews::Known
        }
    }

    /// Drops a refused claim. Returns `true` if it was open.
    pub fn refused_claim(&mut self, seat: usize, seq: u32) -> bool {
        refuse(&mut self.claims, self.seats.get(seat).copied(), seq)
    }
}

fn refuse<C>(list: &mut VecDeque<Pending<C>>, player: Option<PlayerId>, seq: u32) -> bool {
    let before = list.len();
    list.retain(|p| Some(p.order.player) != player || p.order.seq != seq);
    before != list.len()
}
