//! What the values of a game must be: its inputs, and whatever crosses the wire.

use core::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounds::INPUT_REPEAT_TICKS;

/// What can cross the wire and be compared: a blanket trait, nobody implements it by hand.
///
/// `Eq` bars floats on purpose: quantise what travels. Types must not be recursive, and must not hold
/// lists of zero-sized elements (a few bytes could then claim a huge list). Prefer
/// `arrayvec::ArrayVec` to `Vec`: a bounded inline list costs no allocation.
pub trait Wire: Clone + Debug + Eq + Serialize + DeserializeOwned + Send + Sync + 'static {}
impl<T: Clone + Debug + Eq + Serialize + DeserializeOwned + Send + Sync + 'static> Wire for T {}

/// What a player's controls hold during one tick. `Default` is neutral: nothing pressed.
///
/// An input is state, not transition ("fire is down", not "fire was pressed"); a step derives edges from
/// the input that it kept. At most [`INPUT_BYTES_MAX`](crate::bounds::INPUT_BYTES_MAX) bytes encoded.
pub trait Controls: Wire + Default {
    /// What is held `age_ticks` (1..) after the last known input: the server fills missing inputs with
    /// it, and clients guess with it, so that a filled tick is guessed right.
    ///
    /// The default holds for [`INPUT_REPEAT_TICKS`] and is neutral from then on.
    #[must_use]
    fn repeat(&self, age_ticks: u32) -> Self {
        if age_ticks <= INPUT_REPEAT_TICKS {
            self.clone()
        } else {
            Self::default()
        }
    }
}

/// Controls of a few buttons, as bits.
impl Controls for u8 {}

/// No controls: a game that is played by commands alone.
impl Controls for () {}

/// Fills an associated type that a game does not use: it has no values, so nothing of it can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Never {}
