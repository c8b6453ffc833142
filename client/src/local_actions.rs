//! What this client's own players gave: sampled inputs, commands on their way, claims.
//!
//! Invariant: an input, once sampled for a tick, never changes; a command or claim stays here until its
//! fate is known (executed in a confirmed frame, or refused). A claim is sent until then, a command until the server
//! has it; where a packet does not hold all commands, they take turns.

use arrayvec::ArrayVec;
use std::collections::VecDeque;

use twinstep_core::bounds::{COMMANDS_OPEN_MAX, COUNT_MAX, INPUT_WINDOW, SEATS_MAX};
use twinstep_core::frame::{FrameData, Order, PlayerSet};
use twinstep_core::{Controls, PlayerId, Simulation, Tick, World};

/// Inputs that are remembered per seat: those on their way up, and those that may still come back down.
const REMEMBERED: usize = 4 * INPUT_WINDOW as usize;

/// Commands of which it is remembered that their frame was skipped: the newest.
const SKIPPED_MAX: usize = 4 * COMMANDS_OPEN_MAX;

/// A command that its owner gave and whose fate is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending<C> {
    /// The command as it will stand in a frame.
    pub order: Order<C>,
    /// The tick at which the prediction executes it; in lockstep, the turn in which it runs.
    pub stamp: Tick,
}

/// What the news of a refusal was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalNews {
    /// News.
    Now,
    /// It had been taken to have run, in a frame that was skipped.
    AfterAll,
    /// Known already.
    Known,
}

/// The own players' inputs, commands and claims.
pub struct LocalActions<S: Simulation> {
    seats: ArrayVec<PlayerId, SEATS_MAX>,
    /// Those of the seats.
    players: PlayerSet,
    /// A ring per seat; each input with its tick, since jumps leave gaps.
    inputs: Vec<(Tick, S::Input)>,
    /// The unbroken run of inputs that ends at I is `first..next`.
    first: Tick,
    next: Tick,
    /// The last tick at which some seat held something else than at the tick before.
    changed: Tick,
    next_seq: [u32; SEATS_MAX],
    /// In lockstep: the turn in which what is ordered now will run.
    pub(crate) open_turn: Option<u32>,
    /// Per seat, the next command that the server expects, as far as we know.
    heard_seq: [u32; SEATS_MAX],
    commands: VecDeque<Pending<S::Command>>,
    /// Commands whose frame was skipped by a jump: taken to have run, unless their refusal comes yet.
    skipped: Vec<(PlayerId, u32)>,
    claims: VecDeque<Pending<S::Command>>,
    /// Seats and sequences of commands that a later one overtook.
    overtaken: Vec<(usize, u32)>,
}

impl<S: Simulation> Clone for LocalActions<S> {
    fn clone(&self) -> Self {
        let mut copy = LocalActions::new(self.seats.clone(), &self.next_seq);
        copy.clone_from(self);
        copy
    }

    /// Keeps the buffers: no allocation, but for inputs and commands that own heap memory.
    fn clone_from(&mut self, other: &Self) {
        self.seats.clone_from(&other.seats);
        self.players = other.players;
        self.inputs.clone_from(&other.inputs);
        (self.first, self.next) = (other.first, other.next);
        self.changed = other.changed;
        self.next_seq = other.next_seq;
        self.open_turn = other.open_turn;
        self.heard_seq = other.heard_seq;
        self.commands.clone_from(&other.commands);
        self.skipped.clone_from(&other.skipped);
        self.claims.clone_from(&other.claims);
        self.overtaken.clone_from(&other.overtaken);
    }
}

impl<S: Simulation> LocalActions<S> {
    /// For the players of `seats`, whose commands continue at `next_seq`.
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
            heard_seq: seqs,
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

    /// The own players.
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

    /// Leaves a gap up to `tick` (after a jump of I); the skipped ticks are the server's to fill.
    pub fn skip_to(&mut self, tick: Tick) {
        if tick != self.next {
            self.first = tick;
            self.next = tick;
            self.changed = tick;
        }
    }

    /// Samples every seat once for the next tick.
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

    /// Every seat holds at the next tick what it holds at the last one (the input delay grew).
    pub fn repeat(&mut self) {
        let last = self.next.back(1);
        let held: ArrayVec<S::Input, SEATS_MAX> = (0..self.seats.len())
            .map(|seat| self.input(seat, last).cloned().unwrap_or_default())
            .collect();
        self.sample(|seat| held[seat].clone());
    }

    /// For how many ticks all seats have held what they hold at the last one.
    pub fn held_for(&self) -> u32 {
        self.next - self.changed
    }

    /// Whether the server's fills of so many ticks to come would be what all seats hold at the last one.
    pub fn are_held_by_fills(&self, ticks: u32) -> bool {
        let last = self.next.back(1);
        (0..self.seats.len()).all(|seat| {
            let held = self.input(seat, last);
            held.is_some_and(|held| (1..=ticks).all(|age| held.repeat(age) == *held))
        })
    }

    /// What a seat's player holds at `tick`, if it was sampled and is remembered.
    pub fn input(&self, seat: usize, tick: Tick) -> Option<&S::Input> {
        let (at, input) = &self.inputs[self.slot(seat, tick)];
        (*at == tick).then_some(input)
    }

    /// As [`input`](LocalActions::input), by player.
    pub fn input_of(&self, player: PlayerId, tick: Tick) -> Option<&S::Input> {
        self.input(self.seats.iter().position(|p| *p == player)?, tick)
    }

    /// The first tick of the unbroken run of inputs that ends at I.
    pub fn first(&self) -> Tick {
        self.first
    }

    /// Gives a command at the next input tick; `None` if too many are on their way, or no world counts so far.
    pub fn command(&mut self, seat: usize, command: S::Command) -> Option<u32> {
        let seq = self.next_seq[seat];
        if self.commands.len() >= COMMANDS_OPEN_MAX || seq >= COUNT_MAX {
            return None;
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
        });
        Some(seq)
    }

    /// Notes a claim that the prediction's step of `tick` emitted; whether there was room.
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
            });
        }
        room
    }

    /// Commands whose fate is not known, in the order given.
    pub fn commands(&self) -> impl Iterator<Item = &Pending<S::Command>> {
        self.commands.iter()
    }

    /// Commands that the server has not got yet, in the order given.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Pending<S::Command>> {
        self.commands
            .iter()
            .filter(|p| p.order.seq >= self.heard_seq[self.seat_of(p.order.player)])
    }

    /// The seat of an own player; 0 for anybody else.
    pub(crate) fn seat_of(&self, player: PlayerId) -> usize {
        let seat = self.seats.iter().position(|p| *p == player);
        seat.unwrap_or(0)
    }

    /// The server says which command it expects next of a seat.
    pub fn acknowledge(&mut self, seat: usize, next_seq: u32) {
        if next_seq <= self.next_seq[seat] {
            self.heard_seq[seat] = self.heard_seq[seat].max(next_seq);
        }
    }

    /// After a gap the server says which command it expects next of each seat: what it has not got is sent again.
    pub fn come_back(&mut self, next_seq: &[u32]) {
        for (seat, &next) in next_seq.iter().enumerate().take(self.seats.len()) {
            self.heard_seq[seat] = next;
            // Commands of the same player that another client gave meanwhile.
            self.next_seq[seat] = self.next_seq[seat].max(next);
        }
    }

    /// Claims whose fate is not known, in the order emitted.
    pub fn claims(&self) -> impl Iterator<Item = &Pending<S::Command>> {
        self.claims.iter()
    }

    /// Forgets what a confirmed frame executed. A player's commands run in the order given, so those before are
    /// refused, even if the server that knew it died before it told.
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

    /// Seats and sequences of commands that turned out to be refused because a later one ran; once each.
    pub fn overtaken(&mut self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.overtaken.drain(..)
    }

    /// The client goes on from `world` without having seen the frames before it. How many own commands
    /// have run in them, as far as can be told.
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

    /// Forgets all claims: the ticks in which they were emitted did not happen.
    pub fn forget_claims(&mut self) {
        self.claims.clear();
    }

    /// Forgets a refused command.
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

    /// Forgets a refused claim; whether it was still open.
    pub fn refused_claim(&mut self, seat: usize, seq: u32) -> bool {
        refuse(&mut self.claims, self.seats.get(seat).copied(), seq)
    }
}

fn refuse<C>(list: &mut VecDeque<Pending<C>>, player: Option<PlayerId>, seq: u32) -> bool {
    let before = list.len();
    list.retain(|p| Some(p.order.player) != player || p.order.seq != seq);
    before != list.len()
}
