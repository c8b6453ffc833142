//! [`Traffic`]: what a session sent and received, counted. It steers nothing.

use twinstep_protocol::packet::{ByteCounts, OUTER_BYTES};

use crate::stats::SessionStats;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Traffic {
    up: ByteCounts,
    down_packets: u64,
    down_bytes: u64,
    /// Packets and messages that could not be read, or did not belong where they came.
    malformed: u64,
}

impl Traffic {
    /// A packet was sent.
    pub(crate) fn note_up(&mut self, bytes: ByteCounts) {
        self.up += bytes;
    }

    /// A packet of so many bytes came.
    pub(crate) fn note_down(&mut self, bytes: usize) {
        self.down_packets += 1;
        self.down_bytes += bytes as u64 + OUTER_BYTES;
    }

    /// Something came that is worth nothing (law *Hostile wire*).
    pub(crate) fn note_malformed(&mut self) {
        self.malformed += 1;
    }

    /// Tells what was counted.
    pub(crate) fn tell(&self, stats: &mut SessionStats) {
        stats.up = self.up;
        stats.down_packets = self.down_packets;
        stats.down_bytes = self.down_bytes;
        stats.malformed = self.malformed;
    }
}
