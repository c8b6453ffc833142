//! [`ByteCounts`]: packet bytes, counted by content.

/// Bytes around each session packet: IP and UDP 28, laminar 5, and netcode 20 (1 + 3 of sequence + 16 of
/// authentication; 18 or 19 in the first minutes of a session).
pub const OUTER_BYTES: u64 = 28 + 5 + 20;

/// The number of packet bytes per kind of content. Headers include the transport's and UDP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ByteCounts {
    pub packets: u64,
    /// First byte, link header, and all headers around the packet.
    pub headers: u64,
    /// Acks, margins, presence and digests.
    pub acks: u64,
    /// Inputs of sealed frames, or a client's own.
    pub inputs: u64,
    /// Announced inputs and commands.
    pub announcements: u64,
    /// Commands and claims, with their acks and refusals; also fragments of large outcomes.
    pub commands: u64,
    pub outcomes: u64,
    /// Worlds and other lane messages; up also acks of the lane and rare parts.
    pub bulk: u64,
}

impl ByteCounts {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.headers
            + self.acks
            + self.inputs
            + self.announcements
            + self.commands
            + self.outcomes
            + self.bulk
    }
}

impl core::ops::AddAssign for ByteCounts {
    fn add_assign(&mut self, other: ByteCounts) {
        self.packets += other.packets;
        self.headers += other.headers;
        self.acks += other.acks;
        self.inputs += other.inputs;
        self.announcements += other.announcements;
        self.commands += other.commands;
        self.outcomes += other.outcomes;
        self.bulk += other.bulk;
    }
}

impl core::ops::Add for ByteCounts {
    type Output = ByteCounts;
    fn add(mut self, other: ByteCounts) -> ByteCounts {
        self += other;
        self
    }
}

impl core::ops::Sub for ByteCounts {
    type Output = ByteCounts;
    fn sub(self, earlier: ByteCounts) -> ByteCounts {
        ByteCounts {
            packets: self.packets - earlier.packets,
            headers: self.headers - earlier.headers,
            acks: self.acks - earlier.acks,
            inputs: self.inputs - earlier.inputs,
            announcements: self.announcements - earlier.announcements,
            commands: self.commands - earlier.commands,
            outcomes: self.outcomes - earlier.outcomes,
            bulk: self.bulk - earlier.bulk,
        }
    }
}
