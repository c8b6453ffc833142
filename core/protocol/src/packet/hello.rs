//! `Hello`, up: the game, versions and rules that both ends must share. And the welcome that answers it.
//!
//! ```text
//! first · link · wire version: 16 · game, version, rules, build, world that it has, names      until the match is here,
//! first · link · lane ack                                                               but this once its world comes
//! ```

use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use super::closed::CloseCode;
use super::head::PacketWriter;
use super::{ByteCounts, PacketBody, UpKind, UpPart, WIRE_VERSION};
use crate::company::Name;
use crate::lane::LaneAck;
use crate::link::LinkState;
use crate::wire::{Reader, WireError, Writer};
use twinstep_core::bounds::{
    COMMAND_DELAY_MAX, COUNT_MAX, PLAYERS_MAX, SEATS_MAX, WORLD_BYTES_MAX,
};
use twinstep_core::digest;
use twinstep_core::players::PlayerSet;
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation, Tick};

/// Both ends must agree on this, or their worlds would part. The build is told, not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`WIRE_VERSION`].
    pub wire: u16,
    /// [`Simulation::NAME`].
    pub game: String,
    /// [`Simulation::VERSION`].
    pub version: u32,
    /// The digest of the rules.
    pub rules: u64,
    /// Whatever the author calls this build.
    pub build: String,
    /// The world that the client has: if the server knows it too, frames are enough.
    pub holds: Holds,
    /// What the player of each seat wants to be called; who is missing, or empty, goes by its identity.
    pub names: ArrayVec<Name, SEATS_MAX>,
}

/// A world that a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    /// None.
    #[default]
    Nothing,
    /// The authority of a client that returns.
    Authority {
        /// Its next tick.
        tick: Tick,
        /// The low half of its digest.
        digest: u32,
        /// The newest tick at which its digest was seen to be the server's, and the low half of that: what counts if the
        /// server took none at `tick`.
        agreed: Option<(Tick, u32)>,
    },
    /// What it takes the match to have begun with: the low half of the digest of that simulation.
    Start(u32),
    /// The first part of a world: the connection was lost before the rest came.
    Part {
        /// The world.
        world: WorldId,
        /// The bytes that the client has, from the first one on.
        bytes: u32,
    },
}

/// Names a world that is sent, so that a client can ask for the rest of it over another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldId {
    /// Its next tick.
    pub tick: Tick,
    /// The low half of the digest of its bytes.
    pub digest: u32,
}

impl WorldId {
    /// The id of the world of `tick` that is encoded as `bytes`. Costs a pass over them.
    #[must_use]
    pub fn of(tick: Tick, bytes: &[u8]) -> WorldId {
        WorldId {
            tick,
            digest: digest::of_bytes(bytes) as u32,
        }
    }
}

/// What a session goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// A world that follows: all of it, or what is behind the [part](Holds::Part) that the client has.
    World {
        /// The world.
        world: WorldId,
        /// The first byte that follows.
        from: u32,
    },
    /// The client's own [authority](Holds::Authority): no world follows.
    Authority,
    /// The client's own [start](Holds::Start): no world follows. The match began at this tick, clocked like this.
    Start(Tick, Cadence),
}

/// What the players of a match are called, by number: told when it changes.
pub type Names = ArrayVec<(PlayerId, Name), PLAYERS_MAX>;

/// The longest string of a stranger that is kept, in bytes.
const TEXT_MAX: usize = 128;

impl Hello {
    /// This end's own.
    ///
    /// # Errors
    /// Rules that hold a NaN have no digest.
    pub fn of<S: Simulation>(rules: &S::Rules, build: &str) -> Result<Hello, digest::NanError> {
        Ok(Hello {
            wire: WIRE_VERSION,
            game: S::NAME.into(),
            version: S::VERSION,
            rules: digest::digest(rules)?,
            build: clip(build).into(),
            holds: Holds::Nothing,
            names: ArrayVec::new(),
        })
    }

    /// Why the other end may not play here; `None`: it may.
    #[must_use]
    pub fn refusal(&self, theirs: &Hello) -> Option<CloseCode> {
        if self.wire != theirs.wire {
            Some(CloseCode::WrongWire)
        } else if self.game != theirs.game {
            Some(CloseCode::WrongGame)
        } else if self.version != theirs.version {
            Some(CloseCode::WrongVersion)
        } else if self.rules != theirs.rules {
            Some(CloseCode::WrongRules)
        } else {
            None
        }
    }

    /// Writes it. The wire version stands first, so that any version can read that much.
    ///
    /// # Errors
    /// [`WireError::Full`].
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

    /// Reads it. Of another wire version only the number is read.
    ///
    /// # Errors
    /// A packet that is not a hello, or with texts over 128 bytes.
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
///
/// # Errors
/// [`WireError::Full`].
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

/// Writes a packet that acknowledges the first chunks of the lane, which answer the hello.
///
/// # Errors
/// [`WireError::Full`].
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

/// The body of a `Hello`: a client sends it until it plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// It asks to join.
    Hello(Box<Hello>),
    /// Its world is coming.
    Loading(LaneAck),
}

/// Reads the body of either packet.
///
/// # Errors
/// Bytes that are neither. Of a hello of another wire version only the number is read.
pub fn read(body: PacketBody<'_, UpPart>) -> Result<Joining, WireError> {
    let PacketBody { parts, mut packet } = body;
    if parts.has(UpPart::LaneAck) {
        let ack = LaneAck::read(&mut packet)?;
        packet.end()?;
        return Ok(Joining::Loading(ack));
    }
    let hello = Hello::read(&mut packet)?;
    if hello.wire == WIRE_VERSION {
        packet.end()?;
    }
    Ok(Joining::Hello(Box::new(hello)))
}

fn clip(text: &str) -> &str {
    let end = (0..=TEXT_MAX.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i));
    &text[..end.unwrap_or(0)]
}

/// The first message down the lane: who the session plays, and by which fixed policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The player of each seat; none: a spectator.
    pub seats: ArrayVec<PlayerId, SEATS_MAX>,
    /// The next command sequence of each seat.
    pub next_seq: ArrayVec<u32, SEATS_MAX>,
    /// The command delay m in turns, fixed for the match; 0: predict instead.
    pub command_delay: u8,
    /// Who answers queries.
    pub owners_answer: bool,
    /// What the session goes on from.
    pub basis: Basis,
}

impl Welcome {
    /// Whether a decoded welcome keeps what a session relies on: each seat has a player of its own and a sequence, and
    /// no number is beyond its bound.
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
