//! The share of a frame that one player's commands can take. The sealer uses it, and the client uses it to predict what
//! will be sealed.

use serde::Serialize;

use twinstep_core::bounds::{
    COMMANDS_PER_TICK, COMMANDS_PER_TICK_BYTES, FRAGMENT_HEAD_BYTES, ORDER_BYTES_MAX,
    ORDER_HEAD_BYTES,
};
use twinstep_core::codec;

/// The size of a command or claim in a frame, in bytes, including its player and sequence number. [`usize::MAX`] if it
/// cannot be encoded.
#[must_use]
pub fn order_bytes<C: Serialize>(command: &C) -> usize {
    codec::size(command).map_or(usize::MAX, |bytes| bytes.saturating_add(ORDER_HEAD_BYTES))
}

/// Returns `true` if frames carry this command in fragments.
#[must_use]
pub fn is_large<C: Serialize>(command: &C) -> bool {
    order_bytes(command) > ORDER_BYTES_MAX
}

/// The share of one frame that one player's commands have taken so far.
///
/// Commands run in sequence order. So if one does not fit, all later ones also wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandShare {
    count: usize,
    bytes: usize,
    full: bool,
}

impl CommandShare {
    /// Returns `true` if another command of this many bytes (see [`order_bytes`]) fits into the frame.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        !self.full
            && self.count < COMMANDS_PER_TICK
            && bytes <= COMMANDS_PER_TICK_BYTES - self.bytes
    }

    /// The number of bytes of a large command that still fit into the frame. `begins`: the frame contains none of the
    /// command yet.
    #[must_use]
    pub fn fragment_room(&self, begins: bool) -> usize {
        let taken = self.bytes + if begins { FRAGMENT_HEAD_BYTES } else { 0 };
        match self.full || self.count == COMMANDS_PER_TICK {
            true => 0,
            false => COMMANDS_PER_TICK_BYTES.saturating_sub(taken),
        }
    }

    /// Reserves the space for a fragment of this many bytes, or for its continuation. `ends`: the fragment completes
    /// the command. Only then may later commands follow.
    pub fn take_fragment(&mut self, begins: bool, bytes: usize, ends: bool) {
        self.bytes += bytes + if begins { FRAGMENT_HEAD_BYTES } else { 0 };
        self.count += usize::from(ends);
    }

    /// Leaves no space for later commands, because they must not overtake an unfinished one.
    pub fn close(&mut self) {
        self.full = true;
    }

    /// Reserves the space for a command. Returns `false` if it does not fit.
    pub fn take(&mut self, bytes: usize) -> bool {
        let room = self.has_room(bytes);
        if room {
            self.count += 1;
            self.bytes += bytes;
        } else {
            // Later commands must not overtake this one.
            self.full = true;
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::bounds::ORDER_BYTES_MAX;

    #[test]
    fn no_command_overtakes_one_that_does_not_fit() {
        let mut share = CommandShare::default();
        assert!(share.take(ORDER_BYTES_MAX));
        assert!(share.take(ORDER_BYTES_MAX - 10));
        assert!(!share.take(ORDER_BYTES_MAX));
        assert!(!share.take(10), "it would overtake");
        let mut share = CommandShare::default();
        assert_eq!((0..9).filter(|_| share.take(1)).count(), COMMANDS_PER_TICK);
    }
}
