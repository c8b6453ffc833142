//! The types that name things: [`Tick`], [`PlayerId`], [`Key`].
//!
//! Quantities are newtypes, so that a tick and a span of ticks cannot be mixed up: `Tick - Tick` is a
//! span (`u32`), `Tick + u32` is a tick, and `Tick + Tick` does not compile.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::bounds::PLAYERS_MAX;

/// The number of a fixed simulation step, counted from 0. Arithmetic saturates at tick 0 and at the last tick (after
/// 2.2 years at 60 Hz), so that `now - born` cannot panic in a game.
///
/// ```
/// use twinstep_core::Tick;
/// let born = Tick(100);
/// assert_eq!(Tick(130) - born, 30); // a span
/// assert_eq!(born + 5, Tick(105));
/// assert_eq!(Tick(3) - Tick(10), 0);
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tick(pub u32);

impl Tick {
    /// The last possible tick. `Frame::learned` also returns it for an input that is still a guess.
    pub const MAX: Tick = Tick(u32::MAX);

    /// The tick `span` earlier, or tick 0.
    #[must_use]
    pub const fn back(self, span: u32) -> Tick {
        Tick(self.0.saturating_sub(span))
    }
}

impl Add<u32> for Tick {
    type Output = Tick;
    fn add(self, span: u32) -> Tick {
        Tick(self.0.saturating_add(span))
    }
}

impl AddAssign<u32> for Tick {
    fn add_assign(&mut self, span: u32) {
        *self = *self + span;
    }
}

impl Sub for Tick {
    type Output = u32;
    fn sub(self, earlier: Tick) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {}", self.0)
    }
}

/// The number of a player in a match, below [`PLAYERS_MAX`].
///
/// An identity keeps its number while it has its seat, even when it is dropped and reconnects. Once it has left,
/// another identity may get the number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PlayerId(pub u8);

impl PlayerId {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "player {}", self.0)
    }
}

/// A name derived from a cause: which entity or player (`of`), and its own count or sequence (`n`).
///
/// The rule for all keys, of cues, queries, timers, entities and generators (law **Stable names**): a key is a cause
/// and that cause's own counter, never a counter that several causes share. One wrong guess shifts a shared counter for
/// all later events; a cause's own counter stays the same. (Measured in a shooter with a 200 ms round trip: keys from a
/// shared counter cancel 23 % of cues, keys from causes 0.01 %.)
///
/// | cause | key |
/// |---|---|
/// | a player | `Key::player(player, shots)`, with the player's count of this kind of event |
/// | a thing that all players move, such as a ball | `Key::new(BALL_BOUNCE, bounces)`, with the thing's count of this kind of event |
/// | a player that hits such a thing | the player: a hit named by the ball's bounce would be renamed by each mispredicted bounce |
/// | something that has a key | `key.child(SPARK)` |
///
/// Two queries of one step never share a key. Two cues may: a cue is identified by its key *and* its value, and equal
/// cues by their order and their time. A cue that a correction moves by at most [`CUE_DRIFT`](crate::bounds::CUE_DRIFT)
/// is the same cue.
///
/// ```text
///  guessed     t40 (bounce 7, "thud")          one cue: it moved by three ticks, and is confirmed at t43
///  confirmed       t43 (bounce 7, "thud")
///  guessed     t40 (bounce 7, loudness 3)      two cues: the first is cancelled, the second starts at once
///  confirmed   t40 (bounce 7, loudness 5)
/// ```
///
/// ```
/// use twinstep_core::{Key, PlayerId};
/// let bullet = Key::player(PlayerId(2), 17); // the 17th shot of player 2
/// let spark = bullet.child(0);               // what that bullet causes
/// assert_ne!(bullet, spark);
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Key {
    /// The cause: an entity, a player, or another key folded by [`Key::child`].
    pub of: u64,
    /// The cause's own counter.
    pub n: u32,
}

impl Key {
    /// The `n`th thing caused by `cause`.
    #[must_use]
    pub const fn new(cause: u64, n: u32) -> Key {
        Key { of: cause, n }
    }

    /// The `n`th thing caused by a player. A player's `of` never equals a small number that a game chooses.
    #[must_use]
    pub const fn player(player: PlayerId, n: u32) -> Key {
        Key {
            of: 0xffff_ffff_ffff_ff00 | player.0 as u64,
            n,
        }
    }

    /// The player that is the cause in this key, if the cause is a player.
    #[must_use]
    pub const fn owner(self) -> Option<PlayerId> {
        let player = PlayerId(self.of as u8);
        // A player's cause is the prefix and the player's number; any other value is another cause.
        let is_player = self.of == Key::player(player, 0).of && player.index() < PLAYERS_MAX;
        if is_player { Some(player) } else { None }
    }

    /// The `n`th thing caused by the thing that this key names.
    ///
    /// Folds both halves of this key into one word (SplitMix64's finaliser, a bijection on 64 bits, after
    /// Steele, Lea and Flood 2014), so that two different causes collide with a chance of about 2⁻⁶⁴ per pair.
    #[must_use]
    pub const fn child(self, n: u32) -> Key {
        let mut z = self.of
            ^ (self.n as u64)
                // Without this, a count of 0 would not change the hash.
                .wrapping_add(1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Key {
            of: z ^ (z >> 31),
            n,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}", self.of, self.n)
    }
}
