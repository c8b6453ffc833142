//! Inputs and orders of one player for unsealed ticks.
//!
//! Invariant: the first input that a session gives for a tick is final, and is sealed unchanged unless its player is
//! absent or the step fails with it. Commands are sealed in sequence, independent of the order in which they arrive,
//! and each of them gets a fate. In lockstep, inputs come in batches, one for each turn.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::{
    CLAIMS_PER_SECOND, COMMAND_BYTES_MAX, COMMAND_DELAY_MAX, COMMAND_INLINE_MAX, COMMANDS_OPEN_MAX,
    COMMANDS_PER_SECOND, COUNT_MAX, INPUT_WINDOW, LARGE_COMMAND_BYTES_BURST,
    LARGE_COMMAND_BYTES_PER_SECOND, LARGE_COMMANDS_OPEN_MAX,
};
use twinstep_core::frame::Order;
use twinstep_core::{PlayerId, Simulation, Tick, codec};
use twinstep_protocol::packet::play_up::CommandUp;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::share::is_large;

/// The largest gap in a reconnecting client's command sequence, left by commands that this server may never have seen.
const SKIP_MAX: u32 = 1 << 16;

/// A claim may be repeated for this many ticks.
pub(crate) const CLAIM_AGE_MAX: u32 = 384;

/// The referee's preliminary decision on an order that waits for its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    Unasked,
    /// The referee would admit the order, which runs at this tick if it fits into the frames.
    Admitted(Tick),
    /// The referee would refuse the order, or panicked. It is asked again when the order is sealed.
    Refused,
}

pub(crate) struct PendingOrder<C> {
    /// The first tick (in lockstep, the first turn) at which it may run.
    pub(crate) stamp: Tick,
    pub(crate) order: Order<C>,
    /// Only an [`Outlook::Admitted`] order is announced.
    pub(crate) outlook: Outlook,
}

impl<C> PendingOrder<C> {
    pub(crate) fn new(stamp: Tick, order: Order<C>) -> Self {
        PendingOrder {
            stamp,
            order,
            outlook: Outlook::Unasked,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAdmitted {
    pub(crate) player: PlayerId,
    pub(crate) claim: bool,
    pub(crate) seq: u32,
    pub(crate) why: CommandRefusal,
}

/// Counters of one player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatStats {
    /// Sealed ticks for which an input of this player was missing. Packets that its client skips do not count.
    pub fills: u64,
    /// Commands that entered a frame.
    pub accepted: u64,
    /// Refused commands: too many, too large, refused by the referee, failing, or from a player that has left.
    pub refused: u64,
    /// Claims that entered a frame.
    pub claims: u64,
    /// Batches that arrived after their turn was sealed (in lockstep only).
    pub late_batches: u64,
    /// The number of times that the match had to wait for this player.
    pub awaited: u64,
    /// The time for which the match waited for this player, with or without others.
    pub waited: Duration,
}

struct Batch<I> {
    turn: u32,
    input: I,
}

pub(crate) struct Seat<S: Simulation> {
    inputs: Vec<(Tick, S::Input)>,
    newest: Option<Tick>,
    /// The tick after the newest input, if the client skips its packet because the input stays the same; and the time
    /// when that packet would have arrived.
    rest: Option<(Tick, Duration)>,
    /// Closed batches of unsealed turns, oldest first, at most m.
    batches: VecDeque<Batch<S::Input>>,
    pub(crate) next_batch: u32,
    /// The first turn that waits for a batch of this player, if the match waits for all.
    pub(crate) awaited_from: u32,
    /// The time when the match started to wait for this player, while it waits.
    pub(crate) missed_since: Duration,
    /// The tick from which the player's silence counts: the last tick sealed with its own input, or at which it joined,
    /// reconnected or caught up. After a resume or a load it is in the future, so that no player is dropped at once.
    pub(crate) given: Tick,
    /// The match's tick when a batch last arrived, in time or late (in lockstep only). With it, a player whose latency
    /// exceeds the delay does not count as silent.
    pub(crate) batch_at: Option<Tick>,
    pub(crate) returned: Option<Tick>,
    pub(crate) next_seq: u32,
    /// Commands below this sequence number may skip missing commands.
    gaps_until: u32,
    /// Claims of earlier ticks are refused, because they date from before a restart.
    claims_from: u32,
    next_claim: u32,
    /// Commands that may wait for earlier ones, each with its `settled_from`: the client knows the fates of the
    /// commands from that number up to this one.
    early: Vec<(u32, PendingOrder<S::Command>)>,
    pub(crate) commands: VecDeque<PendingOrder<S::Command>>,
    pub(crate) claims: VecDeque<PendingOrder<S::Command>>,
    command_rate: Bucket,
    large_rate: Bucket,
    claim_rate: Bucket,
    /// A buffer for encoding an order, to check that it can be decoded, or to cut it into fragments.
    pub(crate) scratch: Vec<u8>,
    pub(crate) stats: SeatStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchError {
    /// The batch is beyond the m open turns, so the client closed it without executing a turn.
    TooFar,
    /// The batch differs from an earlier batch for the same turn.
    Changed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Held,
    Known,
    Refused(CommandRefusal),
}

impl<S: Simulation> Seat<S> {
    pub(crate) fn new() -> Self {
        Seat {
            inputs: vec![(Tick::MAX, S::Input::default()); INPUT_WINDOW as usize],
            newest: None,
            rest: None,
            batches: VecDeque::with_capacity(2 * COMMAND_DELAY_MAX as usize),
            next_batch: 0,
            awaited_from: u32::MAX,
            missed_since: Duration::ZERO,
            given: Tick(0),
            batch_at: None,
            returned: None,
            next_seq: 0,
            gaps_until: 0,
            claims_from: 0,
            next_claim: 0,
            early: Vec::with_capacity(COMMANDS_OPEN_MAX),
            commands: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            claims: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            command_rate: Bucket::new(COMMANDS_PER_SECOND, COMMANDS_PER_SECOND),
            large_rate: Bucket::new(LARGE_COMMAND_BYTES_PER_SECOND, LARGE_COMMAND_BYTES_BURST),
            claim_rate: Bucket::new(CLAIMS_PER_SECOND, CLAIMS_PER_SECOND),
            scratch: Vec::with_capacity(COMMAND_INLINE_MAX),
            stats: SeatStats::default(),
        }
    }

    pub(crate) fn is_sealable(&mut self, command: &S::Command, limit: usize) -> bool {
        codec::sealable(command, limit, &mut self.scratch).is_ok()
    }

    pub(crate) fn commands_by(&self, due: Tick) -> bool {
        self.commands.front().is_some_and(|held| held.stamp <= due)
    }

    pub(crate) fn claims_by(&self, due: Tick) -> bool {
        self.claims.front().is_some_and(|held| held.stamp <= due)
    }

    pub(crate) fn expect_commands_from(&mut self, seq: u32) {
        self.next_seq = seq;
    }

    /// Starts a session. The client may know the fate of commands that this server has never seen: a journal has no
    /// refused commands, and a match restarted without a journal has no commands.
    pub(crate) fn expect_gaps(&mut self) {
        self.early.clear();
        self.gaps_until = self.next_seq.saturating_add(SKIP_MAX);
    }

    /// Refuses claims emitted before tick `seq`, because they may be sealed already.
    pub(crate) fn expect_claims_from(&mut self, seq: u32) {
        self.next_claim = seq;
        self.claims_from = seq;
    }

    pub(crate) fn expect_new_claims(&mut self) {
        self.expect_claims_from(0);
    }

    pub(crate) fn forget_inputs(&mut self) {
        self.inputs.fill((Tick::MAX, S::Input::default()));
        self.newest = None;
        self.rest = None;
        self.batches.clear();
        self.next_batch = 0;
    }

    /// Drops all inputs and orders of a leaving player. Returns the waiting orders, which are refused.
    #[must_use = "the owner of an order must learn its fate"]
    pub(crate) fn purge(&mut self) -> Vec<NotAdmitted> {
        self.forget_inputs();
        self.batch_at = None;
        self.early.clear();
        self.stats.refused += self.commands.len() as u64;
        let refused = |claim: bool| {
            move |held: PendingOrder<S::Command>| NotAdmitted {
                player: held.order.player,
                claim,
                seq: held.order.seq,
                why: CommandRefusal::TooLate,
            }
        };
        let commands = self.commands.drain(..).map(refused(false));
        commands
            .chain(self.claims.drain(..).map(refused(true)))
            .collect()
    }

    /// The tick from which the player's silence counts: `given`, or a later tick at which a batch arrived.
    pub(crate) fn last_active(&self) -> Tick {
        self.batch_at.map_or(self.given, |at| at.max(self.given))
    }

    /// Takes an input if its tick is open (`next..next + INPUT_WINDOW`) and has no input yet. Returns `true` if the
    /// input was taken.
    pub(crate) fn offer_input(&mut self, next: Tick, tick: Tick, input: &S::Input) -> bool {
        if tick - next >= INPUT_WINDOW {
            return false;
        }
        // Late inputs also count here: the margin must show how late they are.
        self.newest = self.newest.max(Some(tick));
        if tick < next {
            return false;
        }
        let slot = &mut self.inputs[(tick.0 % INPUT_WINDOW) as usize];
        if slot.0 == tick {
            return false;
        }
        slot.0 = tick;
        slot.1.clone_from(input);
        true
    }

    /// Checks that the batch for `turn` may have this content. `next` is the next turn to be sealed, `m` the command
    /// delay.
    pub(crate) fn check_batch(
        &self,
        next: u32,
        m: u8,
        turn: u32,
        input: &S::Input,
    ) -> Result<(), BatchError> {
        if turn >= next + u32::from(m) {
            return Err(BatchError::TooFar);
        }
        match self.batch(turn) {
            Some(held) if turn < self.next_batch && held != input => Err(BatchError::Changed),
            _ => Ok(()),
        }
    }

    /// Takes the batch for `turn`, which was [checked](Seat::check_batch). Returns `true` if the batch is new. `next`
    /// is the next turn to be sealed.
    pub(crate) fn offer_batch(&mut self, next: u32, turn: u32, input: &S::Input) -> bool {
        if turn < self.next_batch {
            return false;
        }
        self.next_batch = turn + 1;
        if turn < next {
            self.stats.late_batches += 1;
        } else {
            self.batches.push_back(Batch {
                turn,
                input: input.clone(),
            });
        }
        true
    }

    pub(crate) fn batch(&self, turn: u32) -> Option<&S::Input> {
        let batch = self.batches.iter().find(|batch| batch.turn == turn)?;
        Some(&batch.input)
    }

    pub(crate) fn forget_batches(&mut self, next: u32) {
        while self.batches.front().is_some_and(|batch| batch.turn < next) {
            self.batches.pop_front();
        }
    }

    pub(crate) fn input(&self, tick: Tick) -> Option<&S::Input> {
        let slot = &self.inputs[(tick.0 % INPUT_WINDOW) as usize];
        (slot.0 == tick).then_some(&slot.1)
    }

    /// The tick of the newest input that arrived, in time or late.
    pub(crate) fn newest(&self) -> Option<Tick> {
        self.newest
    }

    /// Records that the client skips the packet for the tick after its newest input, because that input continues; the
    /// packet would have arrived at `at`. `None` if the client does not skip it.
    pub(crate) fn record_rest(&mut self, at: Option<Duration>) {
        self.rest = at.and_then(|at| Some((self.newest? + 1, at)));
    }

    /// Returns `true` if the client skips the packet for this tick, so that its missing input does not count as lost.
    pub(crate) fn rests_over(&self, tick: Tick) -> bool {
        self.rest.is_some_and(|(rest, _)| rest == tick)
    }

    /// Like [`newest`](Seat::newest), but counts the input of a skipped packet once it would have arrived.
    pub(crate) fn newest_by(&self, now: Duration) -> Option<Tick> {
        let rest = self.rest.filter(|(_, at)| *at <= now);
        self.newest.max(rest.map(|(tick, _)| tick))
    }

    pub(crate) fn unbroken(&self, next: Tick) -> u32 {
        (0..INPUT_WINDOW)
            .find(|i| self.input(next + *i).is_none())
            .unwrap_or(INPUT_WINDOW)
    }

    /// Keeps a command of this player until all earlier commands are [taken](Seat::take_command). Ignores impossible
    /// sequence numbers: a client has at most [`COMMANDS_OPEN_MAX`] open commands.
    pub(crate) fn offer_command(&mut self, player: PlayerId, given: CommandUp<S::Command>) {
        let CommandUp {
            stamp,
            seq,
            settled_from,
            command,
            ..
        } = given;
        let known = self
            .early
            .iter_mut()
            .find(|(_, held)| held.order.seq == seq);
        if let Some((from, _)) = known {
            *from = settled_from.min(*from);
            return;
        }
        let large = |(_, held): &&(u32, PendingOrder<S::Command>)| is_large(&held.order.command);
        let are_too_many = self.early.len() >= COMMANDS_OPEN_MAX
            || is_large(&command)
                && self.early.iter().filter(large).count() >= LARGE_COMMANDS_OPEN_MAX;
        // A large command arrives only once, even if many settled ones precede it.
        let window = self.next_seq.saturating_add(COMMANDS_OPEN_MAX as u32);
        if !are_too_many && (self.next_seq..window.max(self.gaps_until)).contains(&seq) {
            let order = Order {
                player,
                seq,
                command,
            };
            self.early
                .push((settled_from, PendingOrder::new(stamp, order)));
        }
    }

    /// Takes the next command of the sequence, if it has arrived. Returns the command's number, and whether it may wait
    /// for its tick.
    pub(crate) fn take_command(&mut self, now: Duration) -> Option<(u32, Arrival)> {
        let (next_seq, gaps_until) = (self.next_seq, self.gaps_until);
        let is_next = |from: u32, seq: u32| {
            seq == next_seq || from <= next_seq && next_seq < seq && seq < gaps_until
        };
        let early = self
            .early
            .iter()
            .map(|(from, held)| (*from, held.order.seq));
        let (at, (_, seq)) = early
            .enumerate()
            .filter(|(_, (from, seq))| is_next(*from, *seq))
            .min_by_key(|(_, (_, seq))| *seq)?;
        let (_, held) = self.early.swap_remove(at);
        self.early.retain(|(_, early)| early.order.seq > seq);
        if seq >= COUNT_MAX {
            // Worlds accept no later command. A real client never gets this far.
            return Some((seq, Arrival::Refused(CommandRefusal::Bounds)));
        }
        self.next_seq = seq + 1;
        let bytes = codec::size(&held.order.command).unwrap_or(usize::MAX);
        let is_large_one = bytes > COMMAND_INLINE_MAX;
        let large = |held: &&PendingOrder<S::Command>| is_large(&held.order.command);
        let open = self.commands.iter().filter(large).count();
        if self.commands.len() >= COMMANDS_OPEN_MAX
            || !self.command_rate.take(now, 1)
            || !self.is_sealable(&held.order.command, COMMAND_BYTES_MAX)
            || is_large_one
                && (open >= LARGE_COMMANDS_OPEN_MAX || !self.large_rate.take(now, bytes))
        {
            self.stats.refused += 1;
            return Some((seq, Arrival::Refused(CommandRefusal::Bounds)));
        }
        self.commands.push_back(held);
        Some((seq, Arrival::Held))
    }

    /// Takes a claim that this player's prediction emitted at `seq`, at most once for each tick, in order.
    pub(crate) fn offer_claim(
        &mut self,
        now: Duration,
        player: PlayerId,
        next: Tick,
        seq: u32,
        command: S::Command,
    ) -> Arrival {
        // Which claims from before a restart were sealed is unknown, and very old ones do not matter.
        if seq < self.claims_from || next - Tick(seq) > CLAIM_AGE_MAX {
            return Arrival::Refused(CommandRefusal::TooLate);
        }
        if seq < self.next_claim {
            return Arrival::Known;
        }
        self.next_claim = seq + 1;
        if self.claims.len() >= COMMANDS_OPEN_MAX
            || !self.claim_rate.take(now, 1)
            || !self.is_sealable(&command, COMMAND_INLINE_MAX)
        {
            return Arrival::Refused(CommandRefusal::Bounds);
        }
        let order = Order {
            player,
            seq,
            command,
        };
        self.claims
            .push_back(PendingOrder::new(Tick(seq) + 1, order));
        Arrival::Held
    }
}

/// A token bucket: `per_second` tokens are added each second, up to `burst`.
pub(crate) struct Bucket {
    per_second: u32,
    burst: u32,
    tokens: f64,
    at: Duration,
}

impl Bucket {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        Bucket {
            per_second,
            burst,
            tokens: f64::from(burst),
            at: Duration::ZERO,
        }
    }

    pub(crate) fn take(&mut self, now: Duration, cost: usize) -> bool {
        let gained = now.saturating_sub(self.at).as_secs_f64() * f64::from(self.per_second);
        self.at = self.at.max(now);
        self.tokens = (self.tokens + gained).min(f64::from(self.burst));
        let has = self.tokens >= cost as f64;
        if has {
            self.tokens -= cost as f64;
        }
        has
    }
}

#[cfg(test)]
mod tests;
