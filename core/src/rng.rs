//! [`Mwc`]: a small random generator that is part of the state and forks by key.
//!
//! ```text
//!   root ──fork(bear)──▶ root' ──fork(bear's cub)──▶ …     forks depend on keys, never on draws
//!     └─▶ z, w ─draw─▶ z, w ─draw─▶ …                      draws depend on draws, never on forks
//! ```
//!
//! Law *Stable names*: if all entities drew from one generator, one additional draw (a wrong guess) would change the
//! random numbers of all later entities. So each entity owns a fork, derived from the root seed and its own [`Key`].
//!
//! Invariant: neither half is degenerate (see `Half`), even in a generator decoded from hostile bytes.
//!
//! Not for secrets: a few outputs reveal the state.

use core::convert::Infallible;
use core::ops::Range;

use rand_core::{SeedableRng, TryRng};
use serde::{Deserialize, Serialize};

use crate::ids::Key;

/// Marsaglia's multiply-with-carry generator: two 32-bit words, a period of about 2⁵⁹, a few cycles per draw.
///
/// This is the `MWC` of G. Marsaglia, "Random numbers for C: End, at last?", sci.stat.math, 20 January 1999. It takes
/// 16 bytes: the root seed for [`fork`](Mwc::fork), and the two words. It implements [`TryRng`] and thereby
/// `rand_core::Rng`, so the distributions of `rand` work with it. It is not `Copy`, to prevent unnoticed copies that
/// repeat the same draws.
///
/// ```
/// use twinstep_core::{Key, Mwc};
/// let match_seed = 2026;
/// let mut bear = Mwc::seed(match_seed).fork(Key::new(7, 0));
/// let damage = 10 + bear.below(6); // 10..=15
/// assert!((10..16).contains(&damage));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "EncodedMwc")]
pub struct Mwc {
    root: u64,
    z: u32,
    w: u32,
}

/// One of the two generators: x' = low 16 bits of a·x + c, c' = the rest; word = c·2¹⁶ + x.
///
/// A step multiplies the word by a modulo p = a·2¹⁶ − 1, a prime. So a multiple of p (0 too) never leaves its residue
/// class and soon repeats one word forever. All other words run through a cycle of (p − 1) / 2.
struct Half {
    a: u32,
    /// Marsaglia's own initial value, which replaces a degenerate word.
    start: u32,
}

const Z: Half = Half {
    a: 36_969,
    start: 362_436_069,
};
const W: Half = Half {
    a: 18_000,
    start: 521_288_629,
};

impl Half {
    const fn is_degenerate(&self, word: u32) -> bool {
        word.is_multiple_of((self.a << 16) - 1)
    }

    const fn sound(&self, word: u32) -> u32 {
        if self.is_degenerate(word) {
            self.start
        } else {
            word
        }
    }

    const fn next(&self, word: u32) -> u32 {
        // At most 36,970 · 65,535: no overflow.
        self.a * (word & 0xffff) + (word >> 16)
    }
}

/// SplitMix64's step and finaliser (Steele, Lea and Flood 2014): a bijection on 64 bits.
const fn split_mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Mwc {
    /// The generator for a root seed. Any seed is good, including 0 and small numbers.
    #[must_use]
    pub const fn seed(root: u64) -> Mwc {
        let mixed = split_mix(root);
        Mwc {
            root,
            z: Z.sound((mixed >> 32) as u32),
            w: W.sound(mixed as u32),
        }
    }

    /// The generator derived from this one's *root seed* and from `key`, whatever has been drawn before.
    ///
    /// Forks of forks are equally independent, and the same key always yields the same fork.
    ///
    /// ```
    /// # use twinstep_core::{Key, Mwc};
    /// let mut world = Mwc::seed(1);
    /// let before = world.fork(Key::new(7, 0));
    /// world.next_u32();
    /// assert_eq!(world.fork(Key::new(7, 0)), before);
    /// ```
    #[must_use]
    pub const fn fork(&self, key: Key) -> Mwc {
        // The finaliser runs after each word, so that neighbours (entity 7's 3rd, entity 3's 7th) do not collide.
        let of = split_mix(split_mix(self.root) ^ key.of);
        Mwc::seed(split_mix(of ^ key.n as u64))
    }

    /// The next draw: 32 random bits.
    pub const fn next_u32(&mut self) -> u32 {
        self.z = Z.next(self.z);
        self.w = W.next(self.w);
        (self.z << 16).wrapping_add(self.w)
    }

    /// A uniformly distributed integer in 0..`n`; 0 if `n` is 0.
    ///
    /// Usually one draw (D. Lemire, "Fast random integer generation in an interval", 2019).
    pub const fn below(&mut self, n: u32) -> u32 {
        let mut wide = self.next_u32() as u64 * n as u64;
        if (wide as u32) < n {
            // Rejects low words below 2³² mod n, which would make some results more likely.
            let surplus = n.wrapping_neg() % n;
            while (wide as u32) < surplus {
                wide = self.next_u32() as u64 * n as u64;
            }
        }
        (wide >> 32) as u32
    }

    /// A uniformly distributed integer in `range`; the range's start if it is empty.
    ///
    /// ```
    /// # use twinstep_core::Mwc;
    /// let spread = Mwc::seed(5).range(-3..4);
    /// assert!((-3..=3).contains(&spread));
    /// ```
    pub const fn range(&mut self, range: Range<i32>) -> i32 {
        let width = if range.start < range.end {
            // The width can exceed `i32`, but not `u32`.
            range.end.wrapping_sub(range.start) as u32
        } else {
            0
        };
        range.start.wrapping_add_unsigned(self.below(width))
    }

    /// A uniformly distributed multiple of 2⁻²⁴ in [0, 1). It is exact, so it is the same on every machine. One draw.
    pub const fn unit_f32(&mut self) -> f32 {
        const STEP: f32 = 1.0 / (1 << 24) as f32;
        // 24 bits fill the mantissa exactly.
        (self.next_u32() >> 8) as f32 * STEP
    }
}

impl TryRng for Mwc {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        rand_core::utils::next_u64_via_u32(self)
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        rand_core::utils::fill_bytes_via_next_word(destination, || self.try_next_u32())
    }
}

/// The seed is the number passed to [`Mwc::seed`], little-endian.
impl SeedableRng for Mwc {
    type Seed = [u8; 8];

    fn from_seed(seed: [u8; 8]) -> Mwc {
        Mwc::seed(u64::from_le_bytes(seed))
    }

    fn seed_from_u64(seed: u64) -> Mwc {
        Mwc::seed(seed)
    }
}

/// The encoded form, not yet checked: a degenerate word would make [`Mwc::below`] loop forever.
#[derive(Deserialize)]
struct EncodedMwc {
    root: u64,
    z: u32,
    w: u32,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "expected the words of a multiply-with-carry generator, got degenerate ones ({z:#x}, {w:#x})"
)]
struct Degenerate {
    z: u32,
    w: u32,
}

impl TryFrom<EncodedMwc> for Mwc {
    type Error = Degenerate;

    fn try_from(EncodedMwc { root, z, w }: EncodedMwc) -> Result<Mwc, Degenerate> {
        if Z.is_degenerate(z) || W.is_degenerate(w) {
            return Err(Degenerate { z, w });
        }
        Ok(Mwc { root, z, w })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use rand_core::Rng;

    use super::*;
    use crate::codec::{self, CodecError};

    fn draws(mut rng: Mwc, count: usize) -> Vec<u32> {
        (0..count).map(|_| rng.next_u32()).collect()
    }

    fn round_trip(rng: &Mwc) -> Result<Mwc, CodecError> {
        let mut bytes = Vec::new();
        codec::append(rng, &mut bytes).unwrap();
        codec::decode_whole(&bytes)
    }

    /// Row 66.
    #[test]
    fn draws_match_marsaglias_own_test_program() {
        // The program sets z = 12345, w = 65435, fills a table with 256 draws, draws 10⁶ for KISS, then 10⁶ of MWC
        // alone, and expects the last one to be 904977562.
        let mut rng = Mwc {
            root: 0,
            z: 12_345,
            w: 65_435,
        };
        for _ in 1..256 + 2_000_000 {
            rng.next_u32();
        }
        assert_eq!(rng.next_u32(), 904_977_562);
    }

    proptest! {
        #[test]
        fn each_half_of_the_nth_draw_is_its_seed_times_a_power_modulo_a_prime(seed: u64, n in 1..300_usize) {
            let power = |half: &Half, word: u32| {
                let p = (u64::from(half.a) << 16) - 1;
                (0..n).fold(u64::from(word) % p, |word, _| word * u64::from(half.a) % p)
            };
            let rng = Mwc::seed(seed);
            let expected = (power(&Z, rng.z) << 16).wrapping_add(power(&W, rng.w)) as u32;
            prop_assert_eq!(draws(rng, n)[n - 1], expected);
        }

        #[test]
        fn exactly_the_numbers_below_n_are_drawn(seed: u64, n in 1..20_u32) {
            let mut rng = Mwc::seed(seed);
            let mut seen = [false; 20];
            for _ in 0..1_000 {
                seen[rng.below(n) as usize] = true;
            }
            prop_assert_eq!(seen.iter().filter(|seen| **seen).count(), n as usize);
            prop_assert!(seen[..n as usize].iter().all(|seen| *seen));
        }

        #[test]
        fn a_range_includes_its_start_and_excludes_its_end(seed: u64, start: i32, end: i32) {
            let drawn = Mwc::seed(seed).range(start..end);
            let sound = if start < end { (start..end).contains(&drawn) } else { drawn == start };
            prop_assert!(sound, "{drawn}");
        }

        #[test]
        fn forks_depend_only_on_the_root_and_the_key(seed: u64, of: u64, n: u32, extra in 0..50_usize) {
            let parent = Mwc::seed(seed);
            let mut drawn = parent.clone();
            for _ in 0..extra {
                drawn.next_u32();
            }
            let key = Key::new(of, n);
            prop_assert_eq!(drawn.fork(key), parent.fork(key));
            prop_assert_eq!(drawn.fork(key).fork(key), parent.fork(key).fork(key));
            prop_assert_ne!(parent.fork(key).fork(key), parent.fork(key));
            prop_assert_ne!(parent.fork(key), parent);
        }

        #[test]
        fn a_decoded_generator_continues_its_draws(seed: u64, extra in 0..50_usize) {
            let mut rng = Mwc::seed(seed);
            for _ in 0..extra {
                rng.next_u32();
            }
            let copy = round_trip(&rng).unwrap();
            prop_assert_eq!(&copy, &rng);
            prop_assert_eq!(draws(copy, 20), draws(rng, 20));
        }
    }

    #[test]
    fn a_large_n_is_unbiased() {
        // With n = 3·2³⁰, taking a draw modulo n (or scaling it without rejection) would make every third result
        // twice as likely: 50 % instead of 33 % would fall into one of three equal classes.
        let mut rng = Mwc::seed(3);
        let n = 3 << 30;
        let mut classes = [0_u32; 3];
        for _ in 0..30_000 {
            let drawn = rng.below(n);
            assert!(drawn < n);
            classes[drawn as usize % 3] += 1;
        }
        assert!(
            classes.iter().all(|count| (9_500..10_500).contains(count)),
            "{classes:?}"
        );
    }

    #[test]
    fn forks_of_neighbouring_keys_are_uncorrelated() {
        let world = Mwc::seed(0);
        let mut first: Vec<u32> = Vec::new();
        let mut ones = [0_u32; 32];
        for of in 0..64 {
            for n in 0..64 {
                let fork = world.fork(Key::new(of, n));
                let neighbour = world.fork(Key::new(of, n + 1));
                let [mine, theirs] = [draws(fork, 1)[0], draws(neighbour, 1)[0]];
                first.push(mine);
                for (bit, ones) in ones.iter_mut().enumerate() {
                    *ones += (mine ^ theirs) >> bit & 1;
                }
            }
        }
        // 4,096 coin flips: the standard deviation is 32, so 200 is more than six of them.
        assert!(
            ones.iter().all(|ones| ones.abs_diff(2_048) < 200),
            "{ones:?}"
        );
        first.sort_unstable();
        first.dedup();
        assert!(
            first.len() >= 4_094,
            "{} different first draws of 4,096",
            first.len()
        );
    }

    #[test]
    fn unit_floats_fill_zero_to_one_evenly() {
        let mut rng = Mwc::seed(8);
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let unit = rng.unit_f32();
            assert!((0.0..1.0).contains(&unit));
            tenths[(unit * 10.0) as usize] += 1;
        }
        assert!(
            tenths.iter().all(|count| (850..1_150).contains(count)),
            "{tenths:?}"
        );
        let greatest = (u32::MAX >> 8) as f32 * (1.0 / (1 << 24) as f32);
        assert!(greatest < 1.0);
    }

    #[test]
    fn degenerate_states_are_never_seeded_and_are_refused_from_the_wire() {
        // Multiples of p: 0 and the fixed point of each half; for the smaller modulus, two more that lead to its
        // fixed point.
        for (z, w) in [
            (0, 1),
            (0x9068_ffff, 1),
            (1, 0),
            (1, 0x464f_ffff),
            (1, 0x8c9f_fffe),
            (1, 0xd2ef_fffd),
        ] {
            let [z_next, w_next] = [Z.next(Z.next(z)), W.next(W.next(w))];
            assert!(
                Z.next(z_next) == z_next || W.next(w_next) == w_next,
                "{z:#x} {w:#x} is no fixed point"
            );
            assert_eq!(
                round_trip(&Mwc { root: 0, z, w }),
                Err(CodecError::Malformed)
            );
            assert!(!Z.is_degenerate(Z.sound(z)) && !W.is_degenerate(W.sound(w)));
        }
    }

    #[test]
    fn the_rand_core_traits_draw_the_same_bits() {
        let mut rng = Mwc::seed(42);
        let drawn = draws(rng.clone(), 3);
        let mut bytes = [0_u8; 11];
        rng.clone().fill_bytes(&mut bytes);
        let expected: Vec<u8> = drawn.iter().flat_map(|draw| draw.to_le_bytes()).collect();
        assert_eq!(bytes, expected[..11]);
        assert_eq!(
            rng.next_u64(),
            u64::from(drawn[1]) << 32 | u64::from(drawn[0])
        );
        assert_eq!(Mwc::seed_from_u64(42), Mwc::from_seed(42_u64.to_le_bytes()));
    }
}
