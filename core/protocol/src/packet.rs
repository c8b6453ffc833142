//! The session's packets: what each kind holds, and how frames and inputs are laid out in few bytes.
//!
//! ```text
//! up    Hello   first · link · versions, game, rules, build, world that it has, names  until the match is here,
//!               first · link · lane ack                                                but this once its world comes
//!       Play    first · link · wanted · view · load and late turns · [inputs] · [commands] · [claims] · [batches]
//!               · [lane ack] · [rare: heal · evidence · gaps · answers · lossy · rests]  inputs or batches, never both
//!       Lane    first · link · chunk                                                   a desync report
//!       Leave   first · link
//! down  Play    first · link · next to seal · margin · held · (next turn) · [rare: waiting · company · lane ack]
//!               · [command acks] · [refusals] · [frames · digest or none] · [announcements]    the turn with a command delay
//!       Lane    first · link · chunk                                                   a world, a ticket, names
//!       Closed  first · code
//! ```
//!
//! What stands in brackets is there if the first byte, or the byte of rare parts, says so ([`head`]); link is the header
//! of [`LinkState`](crate::link::LinkState). Every packet is decodable alone: the first frame is coded against neutral,
//! the others
//! against their predecessor in the same packet. The parts live in the modules below; the session and the match put them
//! together, and read a packet to its end before any of it counts.

pub mod batches;
pub mod company;
pub mod frames;
pub mod gaps;
pub mod head;
pub mod hello;
pub mod inputs;
pub mod refusal;
#[cfg(test)]
mod tests;

/// Raised whenever a packet's bytes change their meaning; compared in the handshake.
pub const WIRE_VERSION: u16 = 11;

pub use head::{DownKind, DownPart, Parts, RareDown, RareUp, UpKind, UpPart};

/// A digest is told by how many ticks its world is older than the end of its packet's frames, in one byte, then its low half.
/// This byte alone says that there is none: then none was taken of any world between these frames.
pub const NO_DIGEST: u8 = 0;

/// With a command delay, the server tells how early batches came in units of so many milliseconds.
pub const SLACK_UNIT_MS: i16 = 4;

/// Clients tell in one byte their late turns (the low half, wrapping) and for what share of its time their
/// machine is busy with the game, in units of one of so many.
pub const LOAD_UNITS: f32 = 15.0;

/// A command names its seat in one byte. With this bit it is the oldest of its seat that the server has not acknowledged:
/// it need not wait for an earlier one, whatever it knows itself.
pub const OLDEST_OPEN: u8 = 0x80;

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
    /// Up: the lineage and the generation of a ticket that is stored where a new process of this client finds it, in 8 and 4
    /// bytes.
    pub const STORED: u8 = 8;
    /// Words of whoever runs the server, for its players: a line of text of at most
    /// [`NOTICE_BYTES_MAX`](twinstep_core::bounds::NOTICE_BYTES_MAX) bytes.
    pub const NOTICE: u8 = 9;
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
