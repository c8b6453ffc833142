//! The session's packets: the content of each kind, and the compact layout of frames and inputs.
//!
//! ```text
//! up    Hello   first · link · versions, game, rules, build, world that it has, names  until the match responds
//!               first · link · lane ack                                                while its world arrives
//!               first · link · lane ack · choice, ready, starts                        in a lobby
//!       Play    first · link · wanted · view · load and late turns · [inputs] · [commands] · [claims] · [batches]
//!               · [lane ack] · [rare: heal · evidence · gaps · answers · lossy · rests]
//!       Lane    first · link · chunk                                                   a desync report, a request
//!       Leave   first · link
//! down  Play    first · link · next to seal · margin · held · (next turn) · [rare: waiting · presence · lane ack]
//!               · [command acks] · [refusals] · [frames · digest or none] · [announcements]
//!       Lane    first · link · chunk                      a world, a ticket, names, results of requests
//!       Closed  first · code
//! ```
//!
//! A part in brackets is optional: a bit in the first byte, or in the byte for rare parts, is set if the part follows
//! ([`head`]). An upstream `Play` has inputs or batches, never both. The next turn is sent only with a command delay.
//! `link` is the header of [`LinkState`]. Every packet can be decoded alone: the first frame is encoded against neutral
//! inputs, the others against their predecessor in the same packet. Each kind has one module with its picture, its
//! writer, its reader and tests of both: [`hello`], [`play_up`], [`chunk`] (`Lane`, both ways), [`leave`],
//! [`play_down`], [`closed`]. Parts of a `Play` have their own modules. Sessions and matches decide what goes into a
//! packet, and read a packet completely before they act on it.

pub mod batches;
mod byte_counts;
pub mod chunk;
pub mod closed;
pub mod frames;
pub mod gaps;
pub mod head;
pub mod hello;
pub mod inputs;
pub mod large;
pub mod leave;
pub mod play_down;
pub mod play_up;
pub mod presence;
pub mod refusal;
pub mod request;
#[cfg(test)]
mod tests;

pub use byte_counts::{ByteCounts, OUTER_BYTES};
pub use head::Parts;

use crate::link::{LinkHeader, LinkState};
use crate::wire::{Reader, WireError};
use head::{KIND_BITS, KIND_FREE, Part, kinds, parts};

/// Increased whenever the meaning of a packet's bytes changes. Compared in the handshake.
pub const WIRE_VERSION: u16 = 15;

kinds! {
    UpKind of UpPart {
        /// A request to join, then acks of the response, until the client plays.
        Hello = 0,
        Play = 1,
        Lane = 2,
        Leave = 3,
    }
}

parts! {
    UpPart {
        /// Inputs; with a command delay, closed batches.
        Inputs,
        Commands,
        Claims,
        LaneAck,
        /// A byte of [`RareUp`] flags, and the parts that it announces.
        Rare,
    }
}

parts! {
    /// The rare parts at the end of an upstream `Play`.
    RareUp {
        /// The tick at which the client's authority differs from the server's.
        Heal,
        /// The tick whose world the client requests from the server, as evidence.
        Evidence,
        /// The missing frames between received ones ([`gaps`]).
        Gaps,
        /// Answers to queries that this client's players own.
        Answers,
        /// The client has lost packets recently, or does not know its connection yet: the server should repeat frames
        /// until they are acknowledged.
        Lossy,
        /// All inputs stay the same for one tick beyond those in the packet, unless a later packet changes them in
        /// time.
        Rests,
    }
}

kinds! {
    DownKind of DownPart {
        Play = 0,
        Lane = 1,
        Closed = 2,
    }
}

parts! {
    DownPart {
        Frames,
        Announced,
        /// The next sequence number expected from each seat's commands.
        CommandAcks,
        Refusals,
        /// A byte of [`RareDown`] flags, and the parts that it announces.
        Rare,
    }
}

parts! {
    /// The rare parts of a downstream `Play`.
    RareDown {
        /// The players for which the match is waiting.
        Waiting,
        /// The connected players and their [link quality](presence).
        Presence,
        LaneAck,
    }
}

/// The parts after a packet's head, not read yet.
#[derive(Clone, Copy)]
pub struct PacketBody<'a, P> {
    pub parts: Parts<P>,
    pub packet: Reader<'a>,
}

/// A client's packet whose head has been read.
pub struct UpPacket<'a> {
    /// The kind of the packet. The module of the same name reads the body.
    pub kind: UpKind,
    /// The packet's sequence and acks, which take effect in [`LinkState::note`].
    pub header: LinkHeader,
    pub body: PacketBody<'a, UpPart>,
}

impl<'a> UpPacket<'a> {
    pub fn open(bytes: &'a [u8], link: &LinkState) -> Result<Self, WireError> {
        let mut packet = Reader::new(bytes);
        let (kind, parts) = UpKind::read(packet.u8()?)?;
        let header = link.parse(&mut packet)?;
        Ok(UpPacket {
            kind,
            header,
            body: PacketBody { parts, packet },
        })
    }
}

/// A server's packet whose head has been read.
pub enum DownPacket<'a> {
    /// A `Play`, for [`PlayDown`](play_down::PlayDown) to read.
    Play(LinkHeader, PacketBody<'a, DownPart>),
    Lane(LinkHeader, &'a [u8]),
    /// The session is over: [`closed`] reads the code. It has no link header, because a host sends it for sessions
    /// that no match knows.
    Closed(PacketBody<'a, DownPart>),
}

impl<'a> DownPacket<'a> {
    pub fn open(bytes: &'a [u8], link: &LinkState) -> Result<Self, WireError> {
        let mut packet = Reader::new(bytes);
        let (kind, parts) = DownKind::read(packet.u8()?)?;
        Ok(match kind {
            DownKind::Play => {
                let header = link.parse(&mut packet)?;
                DownPacket::Play(header, PacketBody { parts, packet })
            }
            DownKind::Lane => {
                let header = link.parse(&mut packet)?;
                DownPacket::Lane(header, packet.rest())
            }
            DownKind::Closed => DownPacket::Closed(PacketBody { parts, packet }),
        })
    }
}

pub mod message {
    pub const WELCOME: u8 = 1;
    /// A world to start from. The tick is part of the world.
    pub const WORLD: u8 = 2;
    /// The server's current world, for a client whose authority differed.
    pub const HEAL: u8 = 3;
    /// The server's world at the tick at which a client differed.
    pub const EVIDENCE: u8 = 4;
    /// Up: a client's desync report, as text.
    pub const REPORT: u8 = 5;
    /// A reconnect ticket, opaque to this crate.
    pub const TICKET: u8 = 6;
    pub const NAMES: u8 = 7;
    /// Up: the lineage and the generation of a ticket stored where a new process of this client can find it, in 8 and 4
    /// bytes.
    pub const STORED: u8 = 8;
    /// An operator's message to the players: one line of text of at most
    /// [`NOTICE_BYTES_MAX`](twinstep_core::bounds::NOTICE_BYTES_MAX) bytes.
    pub const NOTICE: u8 = 9;
    /// Up: a player's [`MatchRequest`](super::request::MatchRequest).
    pub const REQUEST: u8 = 10;
    /// The [result](super::request::RequestResult) of a request.
    pub const REQUEST_RESULT: u8 = 11;
    pub const LOBBY: u8 = 12;
    pub const RULES: u8 = 13;
    /// Up: a [large command](super::large::write_command).
    pub const COMMAND: u8 = 16;
    /// Up: a [large answer](super::large::write_answer) to a query of one of the client's own players.
    pub const ANSWER: u8 = 17;
}
