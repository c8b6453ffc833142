//! `Hello`, up: the game, versions and rules that both sides must share; and the welcome, which is the response.
//!
//! ```text
//! first · link · wire version: 16 · game, version, rules, build, world that it has, names   until the match responds
//! first · link · lane ack                                                                   once its world arrives
//! first · link · lane ack · choice · ready · starts                                         in a lobby
//! ```

use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use super::closed::CloseCode;
use super::head::PacketWriter;
use super::{ByteCounts, PacketBody, UpKind, UpPart, WIRE_VERSION};
use crate::lane::LaneAck;
use crate::link::LinkState;
use crate::names::Name;
use crate::wire::{Reader, WireError, Writer};
use twinstep_core::bounds::{
    COMMAND_DELAY_MAX, COUNT_MAX, PLAYERS_MAX, SEATS_MAX, WORLD_BYTES_MAX,
};
use twinstep_core::digest;
use twinstep_core::players::PlayerSet;
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation, Tick};

/// A client's request to join. `wire`, `game`, `version` and `rules` must equal the server's; a client that [takes any
/// rules](Holds::AnyRules) need not match `rules`. The other fields are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub wire: u16,
    pub game: String,
    pub version: u32,
    pub rules: u64,
    /// The author's name for this build.
    pub build: String,
    /// The world that the client already has. If the server also knows it, frames are enough.
    pub holds: Holds,
    /// The display name of each seat's player. A missing or empty name is replaced by the identity.
    pub names: ArrayVec<Name, SEATS_MAX>,
}

/// A world that a client already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    #[default]
    Nothing,
    /// The authority of a reconnecting client.
    Authority {
        tick: Tick,
        digest: u32,
        /// The newest tick at which the client's digest equalled the server's, and the low half of that digest. Used if
        /// the server has no digest for `tick`.
        agreed: Option<(Tick, u32)>,
    },
    /// The low half of the digest of the initial simulation that the client assumes.
    Start(u32),
    /// The first part of a world whose download was interrupted.
    Part {
        world: WorldId,
        /// The number of the world's first bytes that the client has.
        bytes: u32,
    },
    /// No world. The client accepts the server's rules if they differ from its own.
    AnyRules,
}

/// Identifies a world in transfer, so that a client can request the rest of it over another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldId {
    /// The next tick of the world.
    pub tick: Tick,
    /// The low half of the encoded world's digest.
    pub digest: u32,
}

impl WorldId {
    /// The id of the world at `tick` whose encoding is `bytes`. Costs one pass over them.
    #[must_use]
    pub fn of(tick: Tick, bytes: &[u8]) -> WorldId {
        WorldId {
            tick,
            digest: digest::of_bytes(bytes) as u32,
        }
    }
}

/// The world from which a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// A world that follows on the lane: all of it, or the rest after the [part](Holds::Part) that the client has.
    World { world: WorldId, from: u32 },
    /// The client's own [authority](Holds::Authority). No world follows.
    Authority,
    /// The client's own [start](Holds::Start). No world follows. The match started at this tick, with this cadence.
    Start(Tick, Cadence),
}

/// The display names of a match's players, in player order. Sent whenever they change.
pub type Names = ArrayVec<(PlayerId, Name), PLAYERS_MAX>;

const TEXT_MAX: usize = 128;

impl Hello {
    /// The hello of a client or a server with these rules.
    ///
    /// # Errors
    /// If the rules have no digest: they contain a NaN, or cannot be serialised.
    pub fn of<S: Simulation>(rules: &S::Rules, build: &str) -> Result<Hello, digest::DigestError> {
        Ok(Hello {
            rules: digest::digest(rules)?,
            holds: Holds::Nothing,
            ..Hello::without_rules::<S>(build)
        })
    }

    #[must_use]
    pub fn without_rules<S: Simulation>(build: &str) -> Hello {
        Hello {
            wire: WIRE_VERSION,
            game: S::NAME.into(),
            version: S::VERSION,
            rules: 0,
            build: clip(build).into(),
            holds: Holds::AnyRules,
            names: ArrayVec::new(),
        }
    }

    /// The reason to refuse a client whose hello is `theirs`, or `None` if it can join.
    #[must_use]
    pub fn refusal(&self, theirs: &Hello) -> Option<CloseCode> {
        if self.wire != theirs.wire {
            Some(CloseCode::WrongWire)
        } else if self.game != theirs.game {
            Some(CloseCode::WrongGame)
        } else if self.version != theirs.version {
            Some(CloseCode::WrongVersion)
        } else if self.rules != theirs.rules && theirs.holds != Holds::AnyRules {
            Some(CloseCode::WrongRules)
        } else {
            None
        }
    }

    /// The wire version comes first, so that every version can read it.
    fn write(&self, out: &mut Writer<'_>) -> Result<(), WireError> {
        out.u16(self.wire)?;
        out.value(&(
            &self.game,
            self.version,
            self.rules,
            &self.build,
            self.holds,
            &self.names,
        ))
    }

    /// If the wire version differs, only the version is read.
    fn read(packet: &mut Reader<'_>) -> Result<Hello, WireError> {
        let wire = packet.u16()?;
        if wire != WIRE_VERSION {
            return Ok(Hello {
                wire,
                game: String::new(),
                version: 0,
                rules: 0,
                build: String::new(),
                holds: Holds::Nothing,
                names: ArrayVec::new(),
            });
        }
        type Said = (String, u32, u64, String, Holds, ArrayVec<Name, SEATS_MAX>);
        let (game, version, rules, build, holds, names) = packet.value::<Said>()?;
        if game.len() > TEXT_MAX || build.len() > TEXT_MAX {
            return Err(WireError::Malformed("a name over 128 bytes"));
        }
        Ok(Hello {
            wire,
            game,
            version,
            rules,
            build,
            holds,
            names,
        })
    }
}

/// Writes a packet that asks to join.
pub fn write(
    now: Duration,
    link: &mut LinkState,
    hello: &Hello,
    out: &mut Writer<'_>,
) -> Result<ByteCounts, WireError> {
    let mut packet = PacketWriter::<UpPart>::begin(UpKind::Hello.alone(), now, link, out)?;
    hello.write(packet.out())?;
    Ok(packet.end())
}

/// Writes a packet that acknowledges the first lane chunks, which are the response to the hello.
pub fn write_loading(
    now: Duration,
    link: &mut LinkState,
    ack: &LaneAck,
    out: &mut Writer<'_>,
) -> Result<ByteCounts, WireError> {
    let mut packet = PacketWriter::begin(UpKind::Hello.alone(), now, link, out)?;
    packet.add(UpPart::LaneAck);
    ack.write(packet.out())?;
    Ok(packet.end())
}

pub fn write_waiting(
    now: Duration,
    link: &mut LinkState,
    ack: &LaneAck,
    waiting: Waiting,
    out: &mut Writer<'_>,
) -> Result<ByteCounts, WireError> {
    let mut packet = PacketWriter::begin(UpKind::Hello.alone(), now, link, out)?;
    packet.add(UpPart::LaneAck);
    ack.write(packet.out())?;
    packet.add(UpPart::Rare);
    packet.out().varint(waiting.choice)?;
    packet.out().u8(u8::from(waiting.ready))?;
    packet.out().varint(waiting.starts)?;
    Ok(packet.end())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    // The newest choice of rules that the client has; 0: none.
    pub choice: u32,
    pub ready: bool,
    // The number of times that the client has requested the start. Each increment is one request.
    pub starts: u32,
}

/// The body of a `Hello`, which a client sends until it plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinPacket {
    Hello(Box<Hello>),
    Loading(LaneAck),
    Waiting(LaneAck, Waiting),
}

pub fn read(body: PacketBody<'_, UpPart>) -> Result<JoinPacket, WireError> {
    let PacketBody { parts, mut packet } = body;
    if parts.has(UpPart::LaneAck) {
        let ack = LaneAck::read(&mut packet)?;
        if !parts.has(UpPart::Rare) {
            packet.end()?;
            return Ok(JoinPacket::Loading(ack));
        }
        let waiting = Waiting {
            choice: packet.varint()?,
            ready: match packet.u8()? {
                0 => false,
                1 => true,
                _ => return Err(WireError::Malformed("a ready flag other than 0 and 1")),
            },
            starts: packet.varint()?,
        };
        packet.end()?;
        return Ok(JoinPacket::Waiting(ack, waiting));
    }
    let hello = Hello::read(&mut packet)?;
    // The rest of a hello of another version has an unknown format.
    if hello.wire == WIRE_VERSION {
        packet.end()?;
    }
    Ok(JoinPacket::Hello(Box::new(hello)))
}

fn clip(text: &str) -> &str {
    let end = (0..=TEXT_MAX.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i));
    &text[..end.unwrap_or(0)]
}

/// The first message of a join, down the lane: the session's players, and the fixed policies of the match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The player of each seat; empty for a spectator.
    pub seats: ArrayVec<PlayerId, SEATS_MAX>,
    /// The next sequence number of each seat's commands.
    pub next_seq: ArrayVec<u32, SEATS_MAX>,
    /// The command delay m in turns, fixed for the match; 0 if the client predicts instead.
    pub command_delay: u8,
    /// Whether clients answer the queries that their players own; otherwise the server answers all of them.
    pub owners_answer: bool,
    pub basis: Basis,
}

impl Welcome {
    /// Returns `true` if a decoded welcome has the properties on which a session relies: each seat has its own player
    /// and a sequence, and all numbers are within their limits.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let mut players = PlayerSet::default();
        let each_has_its_own = self.seats.iter().all(|&player| {
            let is_new = player.index() < PLAYERS_MAX && !players.contains(player);
            if is_new {
                players.set(player, true);
            }
            is_new
        });
        each_has_its_own
            && self.seats.len() == self.next_seq.len()
            && self.next_seq.iter().all(|seq| *seq <= COUNT_MAX)
            && self.command_delay <= COMMAND_DELAY_MAX
            && self.basis.is_sound()
    }
}

impl Basis {
    fn is_sound(&self) -> bool {
        match self {
            Basis::World { world, from } => {
                world.tick.0 <= COUNT_MAX && (*from as usize) < WORLD_BYTES_MAX
            }
            Basis::Authority => true,
            Basis::Start(tick, cadence) => tick.0 <= COUNT_MAX && cadence.is_sound(),
        }
    }
}

#[cfg(test)]
mod tests;
