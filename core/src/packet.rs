//! The session's packets: what each kind holds, and how frames and inputs are laid out in few bytes.
//!
//! ```text
//! up    Hello   kind+flag · link · versions · what is resumed, or a lane ack    until the match is here
//!       Play    kind+flags · link · acks · inputs or batches · commands · claims · lane ack · rare
//!       Lane    kind · link · chunk                          a desync report
//!       Leave   kind · link
//! down  Play    kind+flags · link · margin · waiting · company · refusals · lane ack · frames · digest · announcements
//!       Lane    kind · link · lane ack · chunk               a world
//!       Closed  kind · code · words
//! ```
//!
//! Every packet is decodable alone: the first frame is coded against neutral, the others against their
//! predecessor in the same packet. The parts live in [`frames`], [`inputs`] and [`hello`]; the session and
//! the match put them together.

pub mod batches;
pub mod company;
pub mod frames;
pub mod hello;
pub mod inputs;
#[cfg(test)]
mod tests;

/// Raised whenever a packet's bytes change their meaning; compared in the handshake.
pub const WIRE_VERSION: u16 = 4;

/// Kinds of packets up, in the low 2 bits of the first byte.
pub mod up {
    /// Asks to join.
    pub const HELLO: u8 = 0;
    /// Inputs, commands, acks.
    pub const PLAY: u8 = 1;
    /// A chunk of a message.
    pub const LANE: u8 = 2;
    /// Goodbye.
    pub const LEAVE: u8 = 3;
    /// Flag: inputs follow; with a command delay, closed batches.
    pub const INPUTS: u8 = 1 << 2;
    /// Flag: commands follow.
    pub const COMMANDS: u8 = 1 << 3;
    /// Flag: claims follow.
    pub const CLAIMS: u8 = 1 << 4;
    /// Flag: an ack of the lane follows.
    pub const LANE_ACK: u8 = 1 << 5;
    /// Flag: a byte of [`rare`](super::rare) flags follows, and what they announce.
    pub const RARE: u8 = 1 << 6;
}

/// What a client says only now and then: the flags of a byte at the end of `Play` up.
pub mod rare {
    /// The authority differs from the server's at a tick that follows.
    pub const HEAL: u8 = 1;
    /// Asks for the server's world of a tick that follows, as evidence.
    pub const EVIDENCE: u8 = 1 << 1;
    /// Answers to queries that this client's players own follow.
    pub const ANSWERS: u8 = 1 << 2;
}

/// Kinds of packets down, in the low 2 bits of the first byte.
pub mod down {
    /// Frames, announcements, acks.
    pub const PLAY: u8 = 0;
    /// A chunk of a message.
    pub const LANE: u8 = 1;
    /// The session is over.
    pub const CLOSED: u8 = 2;
    /// As [`PLAY`], and [who is connected](super::company).
    pub const PLAY_COMPANY: u8 = 3;
    /// Flag: frames and a digest follow.
    pub const FRAMES: u8 = 1 << 2;
    /// Flag: refused commands or claims follow.
    pub const REFUSALS: u8 = 1 << 3;
    /// Flag: announcements follow.
    pub const ANNOUNCE: u8 = 1 << 4;
    /// Flag: an ack of the lane follows.
    pub const LANE_ACK: u8 = 1 << 5;
    /// Flag: the next command sequence expected of each seat follows.
    pub const COMMAND_ACKS: u8 = 1 << 6;
    /// Flag: the players that the match waits for follow.
    pub const WAITING: u8 = 1 << 7;
}

/// With a command delay, the server tells how early batches came in units of so many milliseconds.
pub const SLACK_UNIT_MS: i16 = 4;

/// Clients tell in one byte their late turns (the low half, wrapping) and for what share of its time their
/// machine is busy with the game, in units of one of so many.
pub const LOAD_UNITS: f32 = 15.0;

/// The low 2 bits of a packet's first byte.
#[must_use]
pub const fn kind(first: u8) -> u8 {
    first & 3
}

/// Kinds of whole messages down the lane.
pub mod message {
    /// [`Welcome`](super::hello::Welcome).
    pub const WELCOME: u8 = 1;
    /// A world to start from: the tick follows from the world.
    pub const WORLD: u8 = 2;
    /// The server's current world, for a client whose authority differed.
    pub const HEAL: u8 = 3;
    /// The server's world of the tick at which a client differed.
    pub const EVIDENCE: u8 = 4;
    /// Up: a client's desync report, as text.
    pub const REPORT: u8 = 5;
    /// A ticket to return with; opaque here.
    pub const TICKET: u8 = 6;
    /// [`Names`](super::hello::Names): what the players are called.
    pub const NAMES: u8 = 7;
}

/// Bytes around each session packet: IP and UDP 28, laminar 5, and netcode 20 (1 + 3 of sequence + 16 of
/// authentication; 18 to 25 in all but the first minutes of a session).
pub const OUTER_BYTES: u64 = 28 + 5 + 20;

/// Where the bytes of packets go, by kind of content; headers include the transport's and UDP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ByteCounts {
    /// Packets counted.
    pub packets: u64,
    /// First byte, link header, and all headers around the packet.
    pub headers: u64,
    /// Acks, margins and digests.
    pub acks: u64,
    /// Inputs of sealed frames, or a client's own.
    pub inputs: u64,
    /// Announced inputs and commands.
    pub announcements: u64,
    /// Commands and claims, and their refusals.
    pub commands: u64,
    /// Outcomes.
    pub outcomes: u64,
    /// Worlds and other messages of the lane.
    pub bulk: u64,
}

impl ByteCounts {
    /// All bytes of all kinds.
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
