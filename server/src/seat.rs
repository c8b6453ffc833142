//! What the server holds of one player for ticks that are not sealed yet.
//!
//! Invariant: the first accepted input for a tick is final, and is sealed as it is, or its player is
//! absent. Commands leave in their sequence; none is lost without a word.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::{
    CLAIMS_PER_SECOND, COMMANDS_OPEN_MAX, COMMANDS_PER_SECOND, INPUT_WINDOW,
};
use twinstep_core::frame::Order;
use twinstep_core::{PlayerId, Simulation, Tick};

/// Commands in a row that may have been refused before a match was taken up again.
const SKIP_MAX: u32 = 1 << 16;

/// A command or claim that waits for its tick.
pub(crate) struct Held<C> {
    pub(crate) stamp: Tick,
    pub(crate) order: Order<C>,
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
}

/// What is held of one player.
pub(crate) struct Seat<S: Simulation> {
    inputs: Vec<(Tick, S::Input)>,
    newest: Option<Tick>,
    /// The last tick that was sealed with an input of this player's own, or that it joined at; ahead of the
    /// match while its silence is excused.
    pub(crate) given: Tick,
    /// The last change of the roster that concerned this player.
    pub(crate) changed: Option<Tick>,
    pub(crate) next_seq: u32,
    /// The next command may be a later one than expected: refused ones leave gaps of which a journal knows nothing.
    may_skip: bool,
    next_claim: u32,
    pub(crate) commands: VecDeque<Held<S::Command>>,
    pub(crate) claims: VecDeque<Held<S::Command>>,
    command_rate: Bucket,
    claim_rate: Bucket,
    pub(crate) stats: SeatStats,
}

/// Whether an order may wait for its tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It waits.
    Held,
    /// It was here before, or one before it is missing: nothing to say.
    Known,
    /// It is refused, and its owner must hear of it.
    Refused,
}

impl<S: Simulation> Seat<S> {
    pub(crate) fn new() -> Self {
        Seat {
            inputs: vec![(Tick::MAX, S::Input::default()); INPUT_WINDOW as usize],
            newest: None,
            given: Tick(0),
            changed: None,
            next_seq: 0,
            may_skip: false,
            next_claim: 0,
            commands: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            claims: VecDeque::with_capacity(COMMANDS_OPEN_MAX),
            command_rate: Bucket::new(COMMANDS_PER_SECOND, COMMANDS_PER_SECOND),
            claim_rate: Bucket::new(CLAIMS_PER_SECOND, CLAIMS_PER_SECOND),
            stats: SeatStats::default(),
        }
    }

    /// After a match was taken up again: the first command to come is the one after the last that was sealed, or
    /// one later if those between were refused.
    pub(crate) fn expect_commands_from(&mut self, seq: u32) {
        self.next_seq = seq;
        self.may_skip = true;
    }

    /// Claims that were emitted before tick `seq` were sealed already.
    pub(crate) fn expect_claims_from(&mut self, seq: u32) {
        self.next_claim = seq;
    }

    /// Forgets the inputs that are held, as its player comes back: from now on they are the new session's.
    pub(crate) fn forget_inputs(&mut self) {
        self.inputs.fill((Tick::MAX, S::Input::default()));
        self.newest = None;
    }

    /// Forgets what is held, as its player leaves; how many commands were refused by that.
    pub(crate) fn purge(&mut self) -> usize {
        self.forget_inputs();
        self.claims.clear();
        let refused = self.commands.len();
        self.stats.refused += refused as u64;
        self.commands.clear();
        refused
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

    /// What is held for `tick`.
    pub(crate) fn input(&self, tick: Tick) -> Option<&S::Input> {
        let slot = &self.inputs[(tick.0 % INPUT_WINDOW) as usize];
        (slot.0 == tick).then_some(&slot.1)
    }

    /// The newest input that came, in time or late.
    pub(crate) fn newest(&self) -> Option<Tick> {
        self.newest
    }

    /// How many inputs are held without a gap from `next` on.
    pub(crate) fn unbroken(&self, next: Tick) -> u32 {
        (0..INPUT_WINDOW)
            .find(|i| self.input(next + *i).is_none())
            .unwrap_or(INPUT_WINDOW)
    }

    /// Takes a command of this player if it is the next of its sequence.
    pub(crate) fn offer_command(
        &mut self,
        now: Duration,
        player: PlayerId,
        stamp: Tick,
        seq: u32,
        command: S::Command,
    ) -> Arrival {
        let skips = self.may_skip && (1..SKIP_MAX).contains(&seq.saturating_sub(self.next_seq));
        if seq != self.next_seq && !skips {
            return Arrival::Known;
        }
        self.may_skip = false;
        self.next_seq = seq + 1;
        if self.commands.len() >= COMMANDS_OPEN_MAX || !self.command_rate.take(now) {
            self.stats.refused += 1;
            return Arrival::Refused;
        }
        self.commands.push_back(Held {
            stamp,
            order: Order {
                player,
                seq,
                command,
            },
        });
        Arrival::Held
    }

    /// Takes a claim that this player's prediction emitted at `seq`, at most once for each tick, in order.
    pub(crate) fn offer_claim(
        &mut self,
        now: Duration,
        player: PlayerId,
        seq: u32,
        command: S::Command,
    ) -> Arrival {
        if seq < self.next_claim {
            return Arrival::Known;
        }
        self.next_claim = seq + 1;
        if self.claims.len() >= COMMANDS_OPEN_MAX || !self.claim_rate.take(now) {
            return Arrival::Refused;
        }
        self.claims.push_back(Held {
            stamp: Tick(seq) + 1,
            order: Order {
                player,
                seq,
                command,
            },
        });
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
