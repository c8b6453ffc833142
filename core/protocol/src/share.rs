//! How much of a frame one player's commands may take: the same for the sealer and for the client that assumes what it
//! will seal.

use serde::Serialize;

use twinstep_core::bounds::{COMMANDS_PER_TICK, COMMANDS_PER_TICK_BYTES, ORDER_HEAD_BYTES};
use twinstep_core::codec;

/// The bytes that a command or claim takes of a frame, with its player and sequence.
#[must_use]
pub fn order_bytes<C: Serialize>(command: &C) -> usize {
    codec::size(command).map_or(usize::MAX, |bytes| bytes.saturating_add(ORDER_HEAD_BYTES))
}

/// What one player's commands have taken of one frame so far.
///
/// Commands run in their sequence. So once one does not fit, none behind it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandShare {
    count: usize,
    bytes: usize,
    full: bool,
}

impl CommandShare {
    /// Whether another command of so many bytes (see [`order_bytes`]) may stand in the frame.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        !self.full
            && self.count < COMMANDS_PER_TICK
            && bytes <= COMMANDS_PER_TICK_BYTES - self.bytes
    }

    /// Takes the place of a command, if there is room.
    pub fn take(&mut self, bytes: usize) -> bool {
        let room = self.has_room(bytes);
        if room {
            self.count += 1;
            self.bytes += bytes;
        } else {
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
    fn behind_a_command_that_does_not_fit_none_does() {
        let mut share = CommandShare::default();
        assert!(share.take(ORDER_BYTES_MAX));
        assert!(share.take(ORDER_BYTES_MAX - 10));
        assert!(!share.take(ORDER_BYTES_MAX));
        assert!(!share.take(10), "it would overtake");
        let mut share = CommandShare::default();
        assert_eq!((0..9).filter(|_| share.take(1)).count(), COMMANDS_PER_TICK);
    }
}
