//! [`Digests`]: the ticks at which the match takes a digest of its world. Clients compare theirs only at these ticks,
//! which packets name ([`packet`](twinstep_protocol::packet)).
//!
//! ```text
//!  small world    ┆·┆·┆·┆·┆·┆·┆·┆     at each tick; the first of each turn is sent
//!  larger         ┆·······┆·······┆    at turns' beginnings, so that at most BYTES_PER_SECOND are hashed
//!  at least       ┆─────── 1 s ───┆    and at the first turn after a client began with a world, or was healed
//!  EachTurn       ┆───┆───┆───┆───┆    at each turn's beginning too
//! ```
//!
//! The rule depends on match time and on the number of bytes hashed for the last digest, never on a measurement, so it
//! gives the same ticks on every machine. Only the server follows it, because it depends on state that clients do not
//! have.
//!
//! Costs: a digest takes 0.1 to 0.4 µs a KB (`twinstep-bench quick --only state`). A digest of [`SMALL_BYTES`] every
//! tick adds 7 to 25 µs to a server's tick, and half of that to a client's frame (at 60 Hz with two-tick turns). For a
//! larger world, [`BYTES_PER_SECOND`], or one digest a second, adds 0.4 to 1.7 µs to each tick. In exchange, a desync
//! is detected later: up to a quarter of a second in a world just over the limit, and up to a second in a world of 256
//! KiB and more.

use std::time::Duration;

use twinstep_core::digest::SizedDigest;
use twinstep_core::turn::Turn;

use crate::config::Checksums;

/// A world of at most this many hashed bytes is digested every tick. If the world's encoding also has at most this many
/// bytes, a copy of the world is kept every tick: 64 copies take 4 MiB.
pub(super) const SMALL_BYTES: u64 = 64 << 10;
/// The number of bytes hashed per second for digests of a larger world. A single digest may exceed it.
const BYTES_PER_SECOND: u64 = 256 << 10;
/// The longest time between two digests, as far as turns allow.
const EVERY: Duration = Duration::from_secs(1);
/// Tick lengths are truncated to nanoseconds, so 60 ticks at 60 Hz are not exactly a second.
const ROUNDING: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Digests {
    /// The number of bytes hashed for the last digest.
    bytes: u64,
    since: Duration,
    /// Whether a client started with a world and needs a digest.
    wanted: bool,
    each_turn: bool,
}

impl Digests {
    pub(super) fn small(&self) -> bool {
        self.bytes <= SMALL_BYTES
    }

    /// Returns `true` if the world after the next step must be digested. `turn` is the turn of the next tick, and
    /// `begins` is `true` if that tick is the first of its turn.
    pub(super) fn is_due(&self, turn: Turn, begins: bool) -> bool {
        if self.small() {
            return true;
        }
        let since = self.since + turn.cadence.tick();
        let apart = EVERY.mul_f64(self.bytes as f64 / BYTES_PER_SECOND as f64);
        let last_chance = since + turn.cadence.turn() > EVERY + ROUNDING;
        begins && (self.each_turn || self.wanted || last_chance || since >= apart)
    }

    /// Records a step of `tick` match time without a digest after it.
    pub(super) fn pass(&mut self, tick: Duration) {
        self.since += tick;
    }

    pub(super) fn record(&mut self, taken: SizedDigest) {
        self.bytes = taken.bytes;
        self.since = Duration::ZERO;
        self.wanted = false;
    }

    pub(super) fn follow(&mut self, policy: Checksums) {
        self.each_turn = match policy {
            Checksums::Budgeted => false,
            Checksums::EachTurn => true,
        };
    }

    pub(super) fn want(&mut self) {
        self.wanted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::Tick;
    use twinstep_core::turn::Cadence;

    /// Returns the ticks in the first `seconds` seconds at which a world of `bytes` bytes is digested.
    fn digested(bytes: u64, cadence: Cadence, seconds: u32) -> Vec<u32> {
        let mut digests = Digests::default();
        digests.record(SizedDigest { digest: 0, bytes });
        let mut turn = Turn {
            cadence,
            ..Turn::default()
        };
        let ticks = Duration::from_secs(u64::from(seconds)).as_nanos() as u32 / cadence.tick_ns;
        let mut at = Vec::new();
        for tick in 1..=ticks {
            turn.reach(Tick(tick));
            if digests.is_due(turn, turn.began == Tick(tick)) {
                digests.record(SizedDigest { digest: 0, bytes });
                at.push(tick);
            } else {
                digests.pass(cadence.tick());
            }
        }
        at
    }

    fn cadence(turn_ticks: u8, hz: u32) -> Cadence {
        Cadence {
            turn_ticks,
            tick_ns: 1_000_000_000 / hz,
            ..Cadence::DEFAULT
        }
    }

    #[test]
    fn a_small_world_is_digested_every_tick() {
        let all: Vec<u32> = (1..=120).collect();
        assert_eq!(digested(SMALL_BYTES, cadence(2, 60), 2), all);
    }

    #[test]
    fn a_large_world_is_digested_once_a_second_and_only_at_the_start_of_a_turn() {
        assert_eq!(digested(8 << 20, cadence(2, 60), 3), [60, 120, 180]);
        // A turn is 300 ms: four of them would exceed a second.
        assert_eq!(digested(8 << 20, cadence(3, 10), 3), [9, 18, 27]);
        // Turns start no more often.
        assert_eq!(digested(8 << 20, cadence(20, 10), 4), [20, 40]);
    }

    #[test]
    fn a_world_just_over_the_limit_is_digested_about_four_times_a_second() {
        let taken = digested(SMALL_BYTES + 1, cadence(2, 60), 1);
        assert_eq!(taken, [16, 32, 48], "turns begin at even ticks");
    }

    #[test]
    fn worlds_between_the_limits_hash_most_of_the_allowed_bytes() {
        for bytes in [SMALL_BYTES + 1, 100 << 10, 200 << 10, 256 << 10] {
            let taken = digested(bytes, cadence(2, 60), 3).len() as u64;
            let hashed = taken * bytes;
            assert!(hashed <= 3 * BYTES_PER_SECOND, "{taken} of {bytes} B");
            assert!(hashed * 2 > 3 * BYTES_PER_SECOND, "{taken} of {bytes} B");
        }
    }

    #[test]
    fn a_large_world_is_digested_every_turn_by_policy() {
        let digested = |bytes| {
            let mut digests = Digests::default();
            digests.follow(Checksums::EachTurn);
            digests.record(SizedDigest { digest: 0, bytes });
            [true, false].map(|begins| digests.is_due(Turn::default(), begins))
        };
        assert_eq!(digested(SMALL_BYTES), [true, true]);
        assert_eq!(digested(8 << 20), [true, false]);
    }

    #[test]
    fn a_client_starting_with_a_world_compares_it_at_the_next_turn() {
        let mut digests = Digests::default();
        let taken = SizedDigest {
            digest: 0,
            bytes: 1 << 20,
        };
        digests.record(taken);
        digests.want();
        assert!(!digests.is_due(Turn::default(), false));
        assert!(digests.is_due(Turn::default(), true));
        digests.record(taken);
        assert!(!digests.is_due(Turn::default(), true));
    }
}
