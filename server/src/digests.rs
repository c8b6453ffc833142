//! [`Digests`]: at which ticks the match takes a digest of its world. Clients compare theirs where it did, and nowhere
//! else; packets say where ([`packet`](twinstep_protocol::packet)).
//!
//! ```text
//!  small world    ┆·┆·┆·┆·┆·┆·┆·┆     at each tick; each turn's first one is told
//!  larger         ┆·······┆·······┆    at turns' beginnings, so that no more than BYTES_PER_SECOND are hashed
//!  at least       ┆─────── 1 s ───┆    and at the first turn after somebody began with a world, or was healed
//! ```
//!
//! The rule looks at match time and at how many bytes the last digest hashed, at nothing that was measured: so it is the
//! same on every machine. Nobody but the server follows it; a client that did would have to know what the server saw.
//!
//! Where the numbers come from: a digest costs 0.1 to 0.4 µs a KB (`twinstep-bench quick --only state`). At each tick, [`SMALL_BYTES`]
//! take 7 to 25 µs of a server's tick, and at 60 Hz in turns of two half of that of a client's frame; beyond that
//! [`BYTES_PER_SECOND`] take 0.4 to 1.7 µs of each, or one digest a second does. What is lost is time: a desync is found up to
//! a quarter of a second late in a world just over the limit, and up to a second in one of 256 KiB and more.

use std::time::Duration;

use twinstep_core::digest::Weighed;
use twinstep_core::turn::Turn;

/// A world of so many hashed bytes at most is digested at each tick; and if it has no more when it is encoded, a copy of it is
/// kept at each tick: 64 such copies are 4 MiB.
pub(super) const SMALL_BYTES: u64 = 64 << 10;
/// Bytes that the digests of a larger world hash in a second, if that is not less than one digest.
const BYTES_PER_SECOND: u64 = 256 << 10;
/// No two digests are farther apart, as far as turns allow.
const EVERY: Duration = Duration::from_secs(1);
/// Ticks are cut to nanoseconds: sixty of 60 Hz are a little more than a second.
const ROUNDING: Duration = Duration::from_millis(1);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Digests {
    /// What the last one hashed.
    bytes: u64,
    /// Match time since then.
    since: Duration,
    /// Somebody began with a world.
    wanted: bool,
}

impl Digests {
    /// Whether the world is small, as far as the last digest knows.
    pub(super) fn small(&self) -> bool {
        self.bytes <= SMALL_BYTES
    }

    /// Whether the world after another step is to be digested: `turn` is the one of its next tick, which is that turn's
    /// first one if it `begins`.
    pub(super) fn is_due(&self, turn: Turn, begins: bool) -> bool {
        if self.small() {
            return true;
        }
        let since = self.since + turn.cadence.tick();
        let apart = EVERY.mul_f64(self.bytes as f64 / BYTES_PER_SECOND as f64);
        let last_chance = since + turn.cadence.turn() > EVERY + ROUNDING;
        begins && (self.wanted || last_chance || since >= apart)
    }

    /// A step was done that took `tick` of match time, and no digest taken of where it led.
    pub(super) fn pass(&mut self, tick: Duration) {
        self.since += tick;
    }

    /// A digest was taken.
    pub(super) fn note(&mut self, taken: Weighed) {
        self.bytes = taken.bytes;
        self.since = Duration::ZERO;
        self.wanted = false;
    }

    /// The next turn that begins is to have a digest.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::Tick;
    use twinstep_core::turn::Cadence;

    /// The ticks of so many seconds at which a world of `bytes` is digested.
    fn digested(bytes: u64, cadence: Cadence, seconds: u32) -> Vec<u32> {
        let mut digests = Digests::default();
        digests.note(Weighed { digest: 0, bytes });
        let mut turn = Turn {
            cadence,
            ..Turn::default()
        };
        let ticks = Duration::from_secs(u64::from(seconds)).as_nanos() as u32 / cadence.tick_ns;
        let mut at = Vec::new();
        for tick in 1..=ticks {
            turn.reach(Tick(tick));
            if digests.is_due(turn, turn.began == Tick(tick)) {
                digests.note(Weighed { digest: 0, bytes });
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
            delay_ticks: 0,
        }
    }

    #[test]
    fn a_small_world_is_digested_at_each_tick() {
        let all: Vec<u32> = (1..=120).collect();
        assert_eq!(digested(SMALL_BYTES, cadence(2, 60), 2), all);
    }

    #[test]
    fn a_large_world_is_digested_once_a_second_and_only_where_a_turn_begins() {
        assert_eq!(digested(8 << 20, cadence(2, 60), 3), [60, 120, 180]);
        // 300 ms a turn: four would be too long.
        assert_eq!(digested(8 << 20, cadence(3, 10), 3), [9, 18, 27]);
        // No turn begins more often.
        assert_eq!(digested(8 << 20, cadence(20, 10), 4), [20, 40]);
    }

    #[test]
    fn a_world_that_is_just_too_large_is_digested_four_times_a_second() {
        let taken = digested(SMALL_BYTES + 1, cadence(2, 60), 1);
        assert_eq!(taken, [16, 32, 48], "turns begin at even ticks");
    }

    #[test]
    fn between_them_as_many_bytes_are_hashed_as_there_may_be() {
        for bytes in [SMALL_BYTES + 1, 100 << 10, 200 << 10, 256 << 10] {
            let taken = digested(bytes, cadence(2, 60), 3).len() as u64;
            let hashed = taken * bytes;
            assert!(hashed <= 3 * BYTES_PER_SECOND, "{taken} of {bytes} B");
            assert!(hashed * 2 > 3 * BYTES_PER_SECOND, "{taken} of {bytes} B");
        }
    }

    #[test]
    fn who_begins_with_a_world_compares_it_at_the_next_turn() {
        let mut digests = Digests::default();
        let taken = Weighed {
            digest: 0,
            bytes: 1 << 20,
        };
        digests.note(taken);
        digests.want();
        assert!(!digests.is_due(Turn::default(), false));
        assert!(digests.is_due(Turn::default(), true));
        digests.note(taken);
        assert!(!digests.is_due(Turn::default(), true));
    }
}
