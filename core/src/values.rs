//! Requirements on the values of a game: its inputs, and all values sent.

use core::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounds::INPUT_REPEAT_TICKS;

/// A value that can be sent and compared. A blanket trait: authors do not implement it.
///
/// `Eq` deliberately excludes floats: quantise values before sending them. Types must not be recursive, and must not
/// hold lists of zero-sized elements (a few bytes could then claim a huge list). Prefer `arrayvec::ArrayVec` to `Vec`:
/// a bounded inline list does not allocate.
pub trait Wire: Clone + Debug + Eq + Serialize + DeserializeOwned + Send + Sync + 'static {}
impl<T: Clone + Debug + Eq + Serialize + DeserializeOwned + Send + Sync + 'static> Wire for T {}

/// The state of a player's controls during one tick. `Default` is neutral: no button is pressed.
///
/// An input is state, not transition ("fire is down", not "fire was pressed"); a step derives edges from the previous
/// input, which it keeps. An encoded input has at most [`INPUT_BYTES_MAX`](crate::bounds::INPUT_BYTES_MAX) bytes.
///
/// Integers of a fixed width, `bool` and `()` are controls; so are arrays and tuples of controls. Each of their
/// elements is repeated by its own rule. `usize` is not a control: its width depends on the machine. A type of your own
/// takes one line:
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use twinstep_core::Controls;
///
/// /// A stick in steps of 1/127, and buttons as bits.
/// #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
/// struct Pad {
///     stick: [i8; 2],
///     buttons: u8,
/// }
/// impl Controls for Pad {}
///
/// fn holds<C: Controls>() {}
/// holds::<Pad>();
/// holds::<([i8; 2], bool)>();
/// ```
///
/// A float is not a control, and the compiler's message explains the remedy:
///
/// ```compile_fail
/// # fn holds<C: twinstep_core::Controls>() {}
/// holds::<f32>(); // quantise: ...
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a player's input",
    label = "this type is not `Controls`",
    note = "integers, `bool`, and arrays and tuples of these are controls; for a type of your own: `impl Controls for {Self} {{}}`",
    note = "quantise: a float has no `Eq`; hold whole steps instead, such as an `i8` in steps of 1/127 of the stick's range"
)]
pub trait Controls: Wire + Default {
    /// The input assumed `age_ticks` ticks (at least 1) after the last known one. The server fills missing inputs with
    /// it, and clients guess with it, so they guess a filled tick correctly.
    ///
    /// The default holds the input for [`INPUT_REPEAT_TICKS`] and is neutral afterwards.
    #[must_use]
    fn repeat(&self, age_ticks: u32) -> Self {
        if age_ticks <= INPUT_REPEAT_TICKS {
            self.clone()
        } else {
            Self::default()
        }
    }

    /// Returns `true` if a player can hold this input: its numbers are within their ranges. The default accepts every
    /// input.
    ///
    /// A modified client can send any value that decodes. With this check an invalid input never reaches a step: a
    /// packet that contains one is malformed, which is a strike against its player, and an invalid input that the
    /// game's own client samples or that [`repeat`](Controls::repeat) returns is replaced by a neutral one. The
    /// default value must be valid. Raise [`VERSION`](crate::Simulation::VERSION) when this rule changes.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use twinstep_core::Controls;
    ///
    /// /// The tile of an 8 × 8 board under the pointer.
    /// #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    /// struct Finger(u8);
    /// impl Controls for Finger {
    ///     fn is_valid(&self) -> bool {
    ///         self.0 < 64
    ///     }
    /// }
    ///
    /// assert_eq!(Finger(64).or_neutral(), Finger(0));
    /// ```
    #[must_use]
    fn is_valid(&self) -> bool {
        true
    }

    /// Returns this input, or a neutral one if it is not [valid](Controls::is_valid).
    #[must_use]
    fn or_neutral(self) -> Self {
        if self.is_valid() {
            self
        } else {
            Self::default()
        }
    }
}

macro_rules! plain_controls {
    ($($held:ty),*) => {
        $(impl Controls for $held {})*
    };
}

// For games played by commands alone.
plain_controls!(());
// Buttons as bits, a stick in whole steps, one button.
plain_controls!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, bool);

/// Each element is repeated by its own rule, and all must be valid.
impl<T: Controls, const N: usize> Controls for [T; N]
where
    [T; N]: Wire + Default,
{
    fn repeat(&self, age_ticks: u32) -> Self {
        self.each_ref().map(|held| held.repeat(age_ticks))
    }

    fn is_valid(&self) -> bool {
        self.iter().all(Controls::is_valid)
    }
}

macro_rules! tuple_controls {
    ($($part:ident $at:tt),*) => {
        impl<$($part: Controls),*> Controls for ($($part,)*) {
            fn repeat(&self, age_ticks: u32) -> Self {
                ($(self.$at.repeat(age_ticks),)*)
            }

            fn is_valid(&self) -> bool {
                $(self.$at.is_valid())&&*
            }
        }
    };
}

tuple_controls!(A 0);
tuple_controls!(A 0, B 1);
tuple_controls!(A 0, B 1, C 2);
tuple_controls!(A 0, B 1, C 2, D 3);
tuple_controls!(A 0, B 1, C 2, D 3, E 4);
tuple_controls!(A 0, B 1, C 2, D 3, E 4, F 5);

/// A type without values, for an associated type that a game does not use: it can never be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Never {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    struct Camera(u16);

    impl Controls for Camera {
        fn repeat(&self, _age_ticks: u32) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_plain_control_is_held_for_ten_ticks_and_then_neutral() {
        let long = INPUT_REPEAT_TICKS + 1;
        assert_eq!((7_u8.repeat(INPUT_REPEAT_TICKS), 7_u8.repeat(long)), (7, 0));
        assert_eq!((-7_i64).repeat(long), 0);
        assert!(true.repeat(INPUT_REPEAT_TICKS) && !true.repeat(long));
        let () = ().repeat(long);
    }

    #[test]
    fn each_part_of_an_array_or_a_tuple_is_repeated_by_its_own_rule() {
        let long = INPUT_REPEAT_TICKS + 1;
        assert_eq!([Camera(1), Camera(2)].repeat(long), [Camera(1), Camera(2)]);
        assert_eq!([3_i8, -3].repeat(long), [0, 0]);
        let held = (Camera(5), [1_u8; 4], true);
        assert_eq!(held.repeat(INPUT_REPEAT_TICKS), held);
        assert_eq!(held.repeat(long), (Camera(5), [0; 4], false));
        let six = (1_u8, 2_u16, 3_u32, 4_i8, true, (6_u64,));
        assert_eq!(six.repeat(long), (0, 0, 0, 0, false, (0,)));
    }
}
