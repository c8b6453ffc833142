//! A player's input: two sticks and a button, quantised to three bytes.
//!
//! An input is state, not transition: "fire is held", never "fire was pressed". A single event (a dash, lighting a
//! fuse) is a [`Command`](super::Command).

use serde::{Deserialize, Serialize};
use twinstep_core::Controls;

use super::units::Heading;

/// A twin-stick pad. Neutral by default: standing, keeping the last aim, not firing.
///
/// A missing pad is repeated for the framework's usual time and is then neutral, so that a disconnected player soon
/// stops instead of running into a wall forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pad {
    pub walk: Heading,
    /// The right stick. While it is not moved, the player keeps facing the same way.
    pub aim: Heading,
    /// Held buttons, as a mask.
    pub buttons: u8,
}

impl Pad {
    pub const FIRE: u8 = 1;

    #[must_use]
    pub fn fires(&self) -> bool {
        self.buttons & Pad::FIRE != 0
    }

    /// Returns `true` if the two pads differ as if a button or key had been pressed or released: in the buttons, or in
    /// a walk that starts, stops, or turns by an eighth of a circle or more. A stick rarely turns that fast.
    #[must_use]
    pub fn has_other_keys(&self, other: &Pad) -> bool {
        let walks = [self.walk, other.walk].map(|walk| walk != Heading::NONE);
        self.buttons != other.buttons
            || walks[0] != walks[1]
            || self.walk.turn_to(other.walk).abs() >= 31
    }

    #[must_use]
    pub fn is_neutral(&self) -> bool {
        *self == Pad::default()
    }
}

impl Controls for Pad {
    /// Every heading is valid; a button that does not exist is not.
    fn is_valid(&self) -> bool {
        self.buttons & !Pad::FIRE == 0
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::bounds::INPUT_REPEAT_TICKS;
    use twinstep_core::codec;

    use super::*;

    #[test]
    fn a_pad_takes_three_bytes() {
        let pad = Pad {
            walk: Heading(255),
            aim: Heading(254),
            buttons: 253,
        };
        assert!(!pad.is_valid(), "there is one button");
        // The variable-length encoding spends extra bytes only on integers wider than one.
        assert_eq!(codec::size(&pad).unwrap(), 3);
    }

    #[test]
    fn a_missing_pad_is_repeated_and_then_neutral() {
        let pad = Pad {
            walk: Heading(9),
            aim: Heading(3),
            buttons: Pad::FIRE,
        };
        assert_eq!(pad.repeat(INPUT_REPEAT_TICKS), pad);
        assert!(pad.repeat(INPUT_REPEAT_TICKS + 1).is_neutral());
    }
}
