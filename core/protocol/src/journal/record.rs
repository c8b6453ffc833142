//! The records: the format of each payload, and the reasons why a record cannot be written.

use arrayvec::ArrayVec;

use crate::identity::Role;
use crate::lineage::Ruling;
use crate::varint;
use twinstep_core::bounds::{PLAYERS_MAX, WORLD_BYTES_MAX};
use twinstep_core::ids::{PlayerId, Tick};

/// The version of this format. A reader refuses any other version.
pub const FORMAT_VERSION: u32 = 5;

/// The maximum size of a turn's encoded frames, in bytes.
pub const TURN_BYTES_MAX: usize = 64 << 10;
pub const IDENTITY_BYTES_MAX: usize = 256;
pub const GAME_BYTES_MAX: usize = 64;
pub const BUILD_BYTES_MAX: usize = 128;
pub const REASON_BYTES_MAX: usize = 256;
/// The longest label of a [save](crate::save), in bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// The maximum payload of a record of an unknown kind, in bytes.
pub const OTHER_BYTES_MAX: usize = 64 << 10;

/// The flag of a [`Ruling::MadeBefore`]. The lowest flag marks a ruling on a spectator's tickets.
const MADE_BEFORE: u8 = 2;

pub(super) const MAGIC: [u8; 4] = *b"TwJ\n";

// 0 is not a kind: a file system that lost power can leave a tail of zeros.
pub(super) const START: u8 = 1;
const WORLD: u8 = 2;
const TURN: u8 = 3;
const IDLE: u8 = 4;
const DIGEST: u8 = 5;
const RULING: u8 = 6;
const SEAT: u8 = 7;
pub(super) const END: u8 = 8;
const RESUMED: u8 = 9;
const RESERVED: u8 = 10;
const SHELL: u8 = 11;
const LABEL: u8 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    #[error("expected at most {max} bytes in a journal record of kind {kind}, got {bytes}")]
    TooLong { kind: u8, bytes: usize, max: usize },
    /// A second start, or an unknown record with a known kind.
    #[error("a journal record of kind {kind} is not allowed here")]
    Misplaced { kind: u8 },
}

/// One record. Its bytes are borrowed from the caller when written, and from the file when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// The description of the match. Always the first record, and never a later one.
    Start(Start<'a>),
    /// The whole world before a tick; at most [`WORLD_BYTES_MAX`] bytes.
    World {
        tick: Tick,
        bytes: &'a [u8],
    },
    /// The encoded frames of one turn, opaque to this module; at most [`TURN_BYTES_MAX`] bytes.
    Turn(&'a [u8]),
    /// A turn like the one before it, without events.
    Idle,
    Digest {
        tick: Tick,
        digest: u64,
    },
    /// A ruling: certain tickets of an identity are refused from now on.
    Ruling {
        ruling: Ruling,
        /// The role in the tickets: player and spectator tickets are independent.
        role: Role,
        /// The holder of the tickets; at most [`IDENTITY_BYTES_MAX`] bytes.
        identity: &'a [u8],
    },
    /// The identity of a player, until its number is given to another identity.
    Seat {
        player: PlayerId,
        /// The identity, or an empty one if the player has left; at most [`IDENTITY_BYTES_MAX`] bytes.
        identity: &'a [u8],
    },
    /// The match is over. No record follows, unless another process resumes the match.
    End {
        /// The reason, as text; at most [`REASON_BYTES_MAX`] bytes.
        reason: &'a str,
    },
    /// Another process resumes the match, after a crash or a hand-over. A world follows, unless it is too large.
    Resumed {
        /// The time in seconds since the Unix epoch, as given by the caller.
        at_unix_s: u64,
        /// The name of the build that resumes the match, for display only; at most [`BUILD_BYTES_MAX`] bytes.
        build: &'a str,
    },
    /// A player's seat is reserved for an identity until that identity takes it, which a [`Seat`](Record::Seat)
    /// records.
    Reserved {
        player: PlayerId,
        /// The identity, or an empty one if the seat is no longer reserved; at most [`IDENTITY_BYTES_MAX`] bytes.
        identity: &'a [u8],
    },
    /// The part of a [saved](crate::save) world that every version of a game can read; at most [`OTHER_BYTES_MAX`]
    /// bytes.
    Shell(&'a [u8]),
    /// The author's label of a [save](crate::save); at most [`LABEL_BYTES_MAX`] bytes.
    Label(&'a str),
    /// A record of an unknown kind, which this version skips.
    Other {
        kind: u8,
        /// The payload; at most [`OTHER_BYTES_MAX`] bytes.
        payload: &'a [u8],
    },
}

/// The writer of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WrittenBy {
    /// The match's server: its seats have the identities of tickets, and the match can be resumed from the journal.
    #[default]
    Server,
    /// A client that recorded the frames that it received: its seats have display names, and the journal can only be
    /// replayed.
    Client,
    /// A match that was [saved](crate::save): another match can start from it.
    Save,
}

impl WrittenBy {
    fn byte(self) -> u8 {
        match self {
            WrittenBy::Server => 0,
            WrittenBy::Client => 1,
            WrittenBy::Save => 2,
        }
    }

    fn of(byte: u8) -> Option<WrittenBy> {
        [WrittenBy::Server, WrittenBy::Client, WrittenBy::Save]
            .into_iter()
            .find(|by| by.byte() == byte)
    }
}

/// The description of a journal's match. From it, a program can see whether it can read the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<'a> {
    /// The game's name; at most [`GAME_BYTES_MAX`] bytes.
    pub game: &'a str,
    pub sim_version: u32,
    pub rules_digest: u64,
    /// The build's name, for display only; at most [`BUILD_BYTES_MAX`] bytes.
    pub build: &'a str,
    /// The time when the match started, in seconds since the Unix epoch, as given by the caller.
    pub started_unix_s: u64,
    /// The command delay in turns, which is fixed for a match, including after restarts.
    pub command_delay: u8,
    pub by: WrittenBy,
}

/// The small fields before the one long part of a payload.
pub(super) type Fields = ArrayVec<u8, 128>;

impl<'a> Record<'a> {
    pub(crate) const WORLD_KIND: u8 = WORLD;

    pub(crate) fn is_turn_kind(kind: u8) -> bool {
        matches!(kind, TURN | IDLE)
    }

    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Record::Start(_) => START,
            Record::World { .. } => WORLD,
            Record::Turn(_) => TURN,
            Record::Idle => IDLE,
            Record::Digest { .. } => DIGEST,
            Record::Ruling { .. } => RULING,
            Record::Seat { .. } => SEAT,
            Record::End { .. } => END,
            Record::Resumed { .. } => RESUMED,
            Record::Reserved { .. } => RESERVED,
            Record::Shell(_) => SHELL,
            Record::Label(_) => LABEL,
            Record::Other { kind, .. } => *kind,
        }
    }

    pub(super) fn payload(&self) -> Result<(Fields, &'a [u8]), WriteError> {
        let kind = self.kind();
        let limit = |bytes: usize, max: usize| {
            if bytes > max {
                Err(WriteError::TooLong { kind, bytes, max })
            } else {
                Ok(())
            }
        };
        let mut fields = Fields::new();
        let tail = match *self {
            Record::Start(start) => {
                limit(start.game.len(), GAME_BYTES_MAX)?;
                limit(start.build.len(), BUILD_BYTES_MAX)?;
                fields.extend(MAGIC);
                fields.extend(varint::encode(u64::from(FORMAT_VERSION)));
                fields.extend(varint::encode(u64::from(start.sim_version)));
                fields.extend(start.rules_digest.to_le_bytes());
                fields.extend(varint::encode(start.started_unix_s));
                fields.push(start.command_delay);
                fields.push(start.by.byte());
                fields.extend(varint::encode(start.game.len() as u64));
                fields.extend(start.game.bytes());
                start.build.as_bytes()
            }
            Record::World { tick, bytes } => {
                limit(bytes.len(), WORLD_BYTES_MAX)?;
                fields.extend(varint::encode(u64::from(tick.0)));
                bytes
            }
            Record::Turn(bytes) => {
                limit(bytes.len(), TURN_BYTES_MAX)?;
                bytes
            }
            Record::Idle => &[],
            Record::Digest { tick, digest } => {
                fields.extend(digest.to_le_bytes());
                fields.extend(varint::encode(u64::from(tick.0)));
                &[]
            }
            Record::Ruling {
                ruling,
                role,
                identity,
            } => {
                limit(identity.len(), IDENTITY_BYTES_MAX)?;
                let watches = u8::from(role == Role::Spectator);
                match ruling {
                    Ruling::Below {
                        lineage,
                        generation,
                        until_unix_s,
                    } => {
                        fields.push(watches);
                        fields.extend(lineage.to_le_bytes());
                        fields.extend(generation.to_le_bytes());
                        fields.extend(until_unix_s.to_le_bytes());
                    }
                    Ruling::MadeBefore { unix_ms } => {
                        fields.push(watches | MADE_BEFORE);
                        fields.extend(unix_ms.to_le_bytes());
                    }
                }
                identity
            }
            Record::Seat { player, identity } | Record::Reserved { player, identity } => {
                assert!(
                    player.index() < PLAYERS_MAX,
                    "{player} is not below the limit of players"
                );
                limit(identity.len(), IDENTITY_BYTES_MAX)?;
                fields.push(player.0);
                identity
            }
            Record::End { reason } => {
                limit(reason.len(), REASON_BYTES_MAX)?;
                reason.as_bytes()
            }
            Record::Resumed { at_unix_s, build } => {
                limit(build.len(), BUILD_BYTES_MAX)?;
                fields.extend(varint::encode(at_unix_s));
                build.as_bytes()
            }
            Record::Shell(bytes) => {
                limit(bytes.len(), OTHER_BYTES_MAX)?;
                bytes
            }
            Record::Label(label) => {
                limit(label.len(), LABEL_BYTES_MAX)?;
                label.as_bytes()
            }
            // A reader would mistake it for the known kind.
            Record::Other { kind, .. } if kind <= LABEL => {
                return Err(WriteError::Misplaced { kind });
            }
            Record::Other { payload, .. } => {
                limit(payload.len(), OTHER_BYTES_MAX)?;
                payload
            }
        };
        Ok((fields, tail))
    }

    /// The longest payload of a kind, in bytes. Returns `None` if the kind does not exist.
    pub(super) fn payload_bytes_max(kind: u8) -> Option<usize> {
        let start_bytes_max =
            MAGIC.len() + 5 + 5 + 8 + varint::BYTES_MAX + 1 + 1 + GAME_BYTES_MAX + BUILD_BYTES_MAX;
        Some(match kind {
            0 => return None,
            START => start_bytes_max,
            WORLD => 5 + WORLD_BYTES_MAX,
            TURN => TURN_BYTES_MAX,
            IDLE => 0,
            DIGEST => 5 + 8,
            RULING => 1 + 8 + 4 + 8 + IDENTITY_BYTES_MAX,
            SEAT | RESERVED => 1 + IDENTITY_BYTES_MAX,
            END => REASON_BYTES_MAX,
            RESUMED => varint::BYTES_MAX + BUILD_BYTES_MAX,
            LABEL => LABEL_BYTES_MAX,
            _ => OTHER_BYTES_MAX,
        })
    }

    /// Reads a payload with correct checks. Returns `None` if it does not have the format of its kind.
    pub(super) fn parse(kind: u8, payload: &'a [u8]) -> Option<Record<'a>> {
        let mut rest = payload;
        Some(match kind {
            START => Record::Start(Start::parse(payload)?),
            WORLD => {
                let tick = Tick(varint::take_u32(&mut rest).ok()?);
                (rest.len() <= WORLD_BYTES_MAX).then_some(Record::World { tick, bytes: rest })?
            }
            TURN => Record::Turn(payload),
            IDLE => Record::Idle,
            DIGEST => {
                let digest = take_u64(&mut rest)?;
                let tick = Tick(varint::take_u32(&mut rest).ok()?);
                rest.is_empty().then_some(Record::Digest { tick, digest })?
            }
            RULING => {
                let (&flags, fields) = rest.split_first()?;
                rest = fields;
                let number = take_u64(&mut rest)?;
                let ruling = match flags & MADE_BEFORE {
                    0 => {
                        let (generation, fields) = rest.split_first_chunk()?;
                        rest = fields;
                        Ruling::Below {
                            lineage: number,
                            generation: u32::from_le_bytes(*generation),
                            until_unix_s: take_u64(&mut rest)?,
                        }
                    }
                    _ => Ruling::MadeBefore { unix_ms: number },
                };
                // Unknown flags are damage.
                (flags & !MADE_BEFORE <= 1).then_some(Record::Ruling {
                    ruling,
                    role: match flags & 1 {
                        0 => Role::Player,
                        _ => Role::Spectator,
                    },
                    identity: rest,
                })?
            }
            SEAT | RESERVED => {
                let (&number, identity) = rest.split_first()?;
                let player = PlayerId(number);
                (player.index() < PLAYERS_MAX).then_some(match kind {
                    SEAT => Record::Seat { player, identity },
                    _ => Record::Reserved { player, identity },
                })?
            }
            SHELL => Record::Shell(payload),
            LABEL => Record::Label(core::str::from_utf8(payload).ok()?),
            END => Record::End {
                reason: core::str::from_utf8(payload).ok()?,
            },
            RESUMED => {
                let at_unix_s = varint::take(&mut rest).ok()?;
                let build = core::str::from_utf8(rest).ok()?;
                (build.len() <= BUILD_BYTES_MAX).then_some(Record::Resumed { at_unix_s, build })?
            }
            _ => Record::Other { kind, payload },
        })
    }
}

impl<'a> Start<'a> {
    /// The format version in the payload of a start record, whichever version wrote it.
    pub(super) fn format_version(payload: &[u8]) -> Option<u32> {
        varint::take_u32(&mut payload.strip_prefix(&MAGIC)?).ok()
    }

    fn parse(payload: &'a [u8]) -> Option<Start<'a>> {
        let mut rest = payload.strip_prefix(&MAGIC)?;
        let _format_version = varint::take_u32(&mut rest).ok()?;
        let sim_version = varint::take_u32(&mut rest).ok()?;
        let rules_digest = take_u64(&mut rest)?;
        let started_unix_s = varint::take(&mut rest).ok()?;
        let (&[command_delay, by], after) = rest.split_first_chunk::<2>()?;
        let by = WrittenBy::of(by)?;
        rest = after;
        let game_bytes = usize::try_from(varint::take(&mut rest).ok()?).ok()?;
        let (game, build) = rest.split_at_checked(game_bytes)?;
        if game.len() > GAME_BYTES_MAX || build.len() > BUILD_BYTES_MAX {
            return None;
        }
        let (game, build) = (
            core::str::from_utf8(game).ok()?,
            core::str::from_utf8(build).ok()?,
        );
        Some(Start {
            game,
            sim_version,
            rules_digest,
            build,
            started_unix_s,
            command_delay,
            by,
        })
    }
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}
