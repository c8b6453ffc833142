//! What the server holds of one player for ticks that are not sealed yet.
//!
//! Invariant: the first accepted input for a tick is final, and is sealed as it is, or its player is
//! absent. Commands leave in their sequence, whatever order they come in; none is lost without a word. With a command delay, inputs come
//! in batches, one for each turn.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::{
    CLAIMS_PER_SECOND, COMMAND_BYTES_MAX, COMMAND_DELAY_MAX, COMMANDS_OPEN_MAX,
    COMMANDS_PER_SECOND, COUNT_MAX, INPUT_WINDOW,
};
use twinstep_core::frame::Order;
use twinstep_core::{PlayerId, Simulation, Tick, codec};
use twinstep_protocol::packet::play_up::CommandUp;
use twinstep_protocol::packet::refusal::RefusalReason;

/// Commands of which a server may know nothing as their client comes back to it.
const SKIP_MAX: u32 = 1 << 16;

/// A claim may be said again for so many ticks.
pub(crate) const CLAIM_AGE_MAX: u32 = 384;

/// The referee's answer about an order that waits for its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It was not asked yet.
    Unasked,
    /// It would admit the order, which runs at this tick if frames have room.
    Admitted(Tick),
    /// It would not, or panicked. It is asked again when the order is sealed.
    Refused,
}

/// A command or claim that waits for its tick.
pub(crate) struct Held<C> {
    /// The tick, or with a command delay the turn, from which on it may run.
    pub(crate) stamp: Tick,
    pub(crate) order: Order<C>,
    /// Only what the referee would admit is announced.
    pub(crate) outlook: Outlook,
}

impl<C> Held<C> {
    pub(crate) fn new(stamp: Tick, order: Order<C>) -> Self {
        Held {
            stamp,
            order,
            outlook: Outlook::Unasked,
        }
    }
}

/// An order that was not admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAdmitted {
    pub(crate) player: PlayerId,
    pub(crate) claim: bool,
    pub(crate) seq: u32,
    pub(crate) why: RefusalReason,
}

/// Counters of one player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatStats {
    /// Sealed ticks for which the server had no input of this player.
    pub fills: u64,
    /// Commands that entered a frame.
    pub accepted: u64,
    /// Commands that were refused (too many, too large, by the referee, gone).
    pub refused: u64,
    /// Claims that entered a frame.
    pub claims: u64,
    /// With a command delay: batches that came after their turn was sealed.
    pub late_batches: u64,
    /// With a command delay: turns for which the match had to wait for this player.
    pub awaited: u64,
    /// For how long the match stood still for this player, or for this one among others.
    pub waited: Duration,
}

/// The part of a batch that a seat holds: what its player holds during a whole turn.
struct Batch<I> {
    turn: u32,
    input: I,
}

/// What is held of one player.
pub(crate) struct Seat<S: Simulation> {
    inputs: Vec<(Tick, S::Input)>,
    newest: Option<Tick>,
    /// The tick after the newest input, which is as that one unless its client says otherwise; and when its packet would have
    /// come, had there been one.
    rest: Option<(Tick, Duration)>,
    /// Closed batches of turns that are not sealed, oldest first: at most m.
    batches: VecDeque<Batch<S::Input>>,
    /// The next turn whose batch is expected.
    pub(crate) next_batch: u32,
    /// The first turn that is not sealed without a batch of this player, if the match waits for all.
    pub(crate) awaited_from: u32,
    /// Since when the match has waited for this player, while it does.
    pub(crate) missed_since: Duration,
    /// The last tick that was sealed with an input of this player's own, or that it joined at; ahead of the
    /// match while its silence is excused.
    pub(crate) given: Tick,
    /// With a command delay: the match's tick when a batch came last, in time or late. Whose line is longer than the
    /// delay speaks all the same.
    pub(crate) spoke: Option<Tick>,
    /// When this player returned last, after it had been dropped.
    pub(crate) returned: Option<Tick>,
    pub(crate) next_seq: u32,
    /// Before this sequence a command may be a later one than expected.
    gaps_until: u32,
    /// Claims of earlier ticks are from before a restart.
    claims_from: u32,
    next_claim: u32,
    /// Commands that came before an earlier one did: they wait for it.
    early: Vec<Held<S::Command>>,
    pub(crate) commands: VecDeque<Held<S::Command>>,
    pub(crate) claims: VecDeque<Held<S::Command>>,
    command_rate: Bucket,
    claim_rate: Bucket,
    /// Where an order is encoded, to see whether it can be read again.
    scratch: Vec<u8>,
    pub(crate) stats: SeatStats,
}

/// A batch that breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchError {
    /// More batches than m are open: it was not closed by a turn that was executed.
    TooFar,
    /// Another content for a turn that has one.
    Changed,
}

/// Whether an order may wait for its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It waits.
    Held,
    /// Of a claim: it was here before, or a later one was.
    Known,
    /// It is refused, and its owner must hear of it.
    Refused(RefusalReason),
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
            spoke: None,
            returned: None,
            next_seq: 0,
            gaps_until: 0,
            claims_from: 0,
            next_claim: 0,
            early: Vec::with_capacity(COMMANDS_OPEN_MAX),
            commands: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            claims: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            command_rate: Bucket::new(COMMANDS_PER_SECOND, COMMANDS_PER_SECOND),
            claim_rate: Bucket::new(CLAIMS_PER_SECOND, CLAIMS_PER_SECOND),
            scratch: Vec::with_capacity(COMMAND_BYTES_MAX),
            stats: SeatStats::default(),
        }
    }

    /// Whether an order can stand in a frame: it is within its bound, and every client can read it.
    pub(crate) fn is_sealable(&mut self, command: &S::Command) -> bool {
        codec::sealable(command, COMMAND_BYTES_MAX, &mut self.scratch).is_ok()
    }

    /// Whether a command is due by `due`: a tick, or with a command delay a turn.
    pub(crate) fn commands_by(&self, due: Tick) -> bool {
        self.commands.front().is_some_and(|held| held.stamp <= due)
    }

    /// Whether a claim is due by a tick.
    pub(crate) fn claims_by(&self, due: Tick) -> bool {
        self.claims.front().is_some_and(|held| held.stamp <= due)
    }

    /// After a match was taken up again: the first command to come is the one after the last that was sealed.
    pub(crate) fn expect_commands_from(&mut self, seq: u32) {
        self.next_seq = seq;
    }

    /// A session begins. Its client may know the fate of commands that this server has never seen: a journal knows
    /// nothing of refused ones, and a match that begins anew of none.
    pub(crate) fn expect_gaps(&mut self) {
        self.early.clear();
        self.gaps_until = self.next_seq.saturating_add(SKIP_MAX);
    }

    /// Claims that were emitted before tick `seq` were sealed already.
    pub(crate) fn expect_claims_from(&mut self, seq: u32) {
        self.next_claim = seq;
        self.claims_from = seq;
    }

    /// Somebody else has this number now: what another one claimed says nothing of its claims.
    pub(crate) fn expect_new_claims(&mut self) {
        self.expect_claims_from(0);
    }

    /// Forgets the inputs that are held, as its player comes back: from now on they are the new session's.
    pub(crate) fn forget_inputs(&mut self) {
        self.inputs.fill((Tick::MAX, S::Input::default()));
        self.newest = None;
        self.rest = None;
        self.batches.clear();
        self.next_batch = 0;
    }

    /// Forgets what is held, as its player leaves. Orders that waited for their tick are refused by that.
    #[must_use = "whoever gave an order must hear of its fate"]
    pub(crate) fn purge(&mut self) -> Vec<NotAdmitted> {
        self.forget_inputs();
        self.spoke = None;
        self.awaited_from = u32::MAX;
        self.early.clear();
        self.stats.refused += self.commands.len() as u64;
        let refused = |claim: bool| {
            move |held: Held<S::Command>| NotAdmitted {
                player: held.order.player,
                claim,
                seq: held.order.seq,
                why: RefusalReason::TooLate,
            }
        };
        let commands = self.commands.drain(..).map(refused(false));
        commands
            .chain(self.claims.drain(..).map(refused(true)))
            .collect()
    }

    /// The last tick that its player gave something for, or at which it spoke.
    pub(crate) fn heard(&self) -> Tick {
        self.spoke.map_or(self.given, |at| at.max(self.given))
    }

    /// Takes an input, if its tick is open (`next..next + INPUT_WINDOW`) and nothing is held for it.
    pub(crate) fn offer_input(&mut self, next: Tick, tick: Tick, input: &S::Input) -> bool {
        if tick - next >= INPUT_WINDOW {
            return false;
        }
        // Late ones count too: the margin must tell how late.
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

    /// Whether what this player holds during `turn` may be said: `next` is the next turn to be sealed, m the command
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

    /// Takes what this player holds during `turn`, which was [checked](Seat::check_batch); whether that is news. `next`
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

    /// What is held during `turn`.
    pub(crate) fn batch(&self, turn: u32) -> Option<&S::Input> {
        let batch = self.batches.iter().find(|batch| batch.turn == turn)?;
        Some(&batch.input)
    }

    /// Forgets the batches of turns that are sealed.
    pub(crate) fn forget_batches(&mut self, next: u32) {
        while self.batches.front().is_some_and(|batch| batch.turn < next) {
            self.batches.pop_front();
        }
    }

    /// What is held for `tick`.
    pub(crate) fn input(&self, tick: Tick) -> Option<&S::Input> {
        let slot = &self.inputs[(tick.0 % INPUT_WINDOW) as usize];
        (slot.0 == tick).then_some(&slot.1)
    }

    /// The newest input that came, in time or late.
    pub(crate) fn newest(&self) -> Option<Tick> {
        self.newest
    }

    /// Its client says nothing of the tick after the newest input because that is as the newest one; a packet would have come
    /// at `at`. `None`: it says nothing of the kind.
    pub(crate) fn note_rest(&mut self, at: Option<Duration>) {
        self.rest = at.and_then(|at| Some((self.newest? + 1, at)));
    }

    /// Whether its client rests over a tick: that nothing came for it is no loss.
    pub(crate) fn rests_over(&self, tick: Tick) -> bool {
        self.rest.is_some_and(|(rest, _)| rest == tick)
    }

    /// As [`newest`](Seat::newest), as if a client that rests spoke at every tick.
    pub(crate) fn newest_by(&self, now: Duration) -> Option<Tick> {
        let rest = self.rest.filter(|(_, at)| *at <= now);
        self.newest.max(rest.map(|(tick, _)| tick))
    }

    /// How many inputs are held without a gap from `next` on.
    pub(crate) fn unbroken(&self, next: Tick) -> u32 {
        (0..INPUT_WINDOW)
            .find(|i| self.input(next + *i).is_none())
            .unwrap_or(INPUT_WINDOW)
    }

    /// Keeps a command of this player until those before it are [taken](Seat::take_command), if it may have been given
    /// by now: no client has more open than [`COMMANDS_OPEN_MAX`].
    pub(crate) fn offer_command(&mut self, player: PlayerId, given: CommandUp<S::Command>) {
        let CommandUp {
            stamp,
            seq,
            is_oldest,
            command,
            ..
        } = given;
        if is_oldest && seq > self.next_seq && seq < self.gaps_until {
            self.next_seq = seq;
            self.early.retain(|held| held.order.seq >= seq);
        }
        let is_open =
            (self.next_seq..self.next_seq.saturating_add(COMMANDS_OPEN_MAX as u32)).contains(&seq);
        if is_open && self.early.iter().all(|held| held.order.seq != seq) {
            let order = Order {
                player,
                seq,
                command,
            };
            self.early.push(Held::new(stamp, order));
        }
    }

    /// Takes the next command of the sequence, if it is here; which one, and whether it may wait for its tick.
    pub(crate) fn take_command(&mut self, now: Duration) -> Option<(u32, Arrival)> {
        let seq = self.next_seq;
        let next = self.early.iter().position(|held| held.order.seq == seq)?;
        let held = self.early.swap_remove(next);
        if seq >= COUNT_MAX {
            // No world takes a later one; nobody who plays comes so far.
            return Some((seq, Arrival::Refused(RefusalReason::Bounds)));
        }
        self.next_seq = seq + 1;
        if self.commands.len() >= COMMANDS_OPEN_MAX
            || !self.command_rate.take(now)
            || !self.is_sealable(&held.order.command)
        {
            self.stats.refused += 1;
            return Some((seq, Arrival::Refused(RefusalReason::Bounds)));
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
        // Of claims from before a restart nobody knows which were sealed; of very old ones, nobody cares.
        if seq < self.claims_from || next - Tick(seq) > CLAIM_AGE_MAX {
            return Arrival::Refused(RefusalReason::TooLate);
        }
        if seq < self.next_claim {
            return Arrival::Known;
        }
        self.next_claim = seq + 1;
        if self.claims.len() >= COMMANDS_OPEN_MAX
            || !self.claim_rate.take(now)
            || !self.is_sealable(&command)
        {
            return Arrival::Refused(RefusalReason::Bounds);
        }
        let order = Order {
            player,
            seq,
            command,
        };
        self.claims.push_back(Held::new(Tick(seq) + 1, order));
        Arrival::Held
    }
}

/// A rate with a burst: tokens come back with time.
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

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Duration) -> bool {
        let gained = now.saturating_sub(self.at).as_secs_f64() * f64::from(self.per_second);
        self.at = self.at.max(now);
        self.tokens = (self.tokens + gained).min(f64::from(self.burst));
        let has = self.tokens >= 1.0;
        if has {
            self.tokens -= 1.0;
        }
        has
    }
}

#[cfg(test)]
mod tests;
