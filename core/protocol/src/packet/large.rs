//! Large commands and answers, sent up as lane messages. `Play` packets contain the small ones.
//!
//! ```text
//!  command  seat: 8 · settled from · stamp · sequence · value
//!  answer   tick asked · key · value
//! ```
//!
//! The server receives a message only when it is complete. So an incomplete command costs the server a lane window, and
//! delays only the later commands of the same player.

use alloc::vec::Vec;

use serde::de::DeserializeOwned;

use super::play_up::{CommandUp, UpContext};
use crate::wire::WireError;
use twinstep_core::bounds::{COMMAND_BYTES_MAX, INPUT_WINDOW, OUTCOME_BYTES_MAX};
use twinstep_core::frame::Answer;
use twinstep_core::{Key, PlayerId, Simulation, Tick, codec};

type CommandHead = (u8, u32, Tick, u32);
type AnswerHead = (Tick, Key);

#[must_use]
pub fn write_command(given: &CommandUp<&[u8]>) -> Vec<u8> {
    let head: CommandHead = (given.seat as u8, given.settled_from, given.stamp, given.seq);
    message(&head, given.command)
}

#[must_use]
pub fn write_answer(asked: Tick, key: Key, outcome: &[u8]) -> Vec<u8> {
    let head: AnswerHead = (asked, key);
    message(&head, outcome)
}

fn message(head: &impl serde::Serialize, whole: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Numbers always fit.
    let _ = codec::append(head, &mut bytes);
    bytes.extend_from_slice(whole);
    bytes
}

/// Reads the message of a command.
///
/// # Errors
/// If the bytes are not a command from one of this session's seats.
pub fn read_command<C: DeserializeOwned>(
    bytes: &[u8],
    near: &UpContext<'_>,
) -> Result<CommandUp<C>, WireError> {
    let wrong = WireError::Malformed("a large command");
    let ((seat, settled_from, stamp, seq), head) =
        codec::decode_prefix::<CommandHead>(bytes).map_err(|_| wrong)?;
    let value = &bytes[head..];
    if usize::from(seat) >= near.players.len() || value.len() > COMMAND_BYTES_MAX {
        return Err(wrong);
    }
    let stamp = match near.command_delay {
        0 => stamp.min(near.next + INPUT_WINDOW),
        m => stamp.min(Tick(near.turn) + u32::from(m)),
    };
    Ok(CommandUp {
        seat: usize::from(seat),
        seq,
        stamp,
        settled_from,
        command: codec::decode_whole(value).map_err(|_| wrong)?,
    })
}

/// Reads the message of an answer. Returns the answer and the player that asked.
///
/// # Errors
/// If the bytes are not an answer to a query that one of `players` owns.
pub fn read_answer<S: Simulation>(
    bytes: &[u8],
    players: &[PlayerId],
) -> Result<(PlayerId, Answer<S::Outcome>), WireError> {
    let wrong = WireError::Malformed("a large answer");
    let ((asked, key), head) = codec::decode_prefix::<AnswerHead>(bytes).map_err(|_| wrong)?;
    let value = &bytes[head..];
    let owner = key.owner().filter(|owner| players.contains(owner));
    let owner = owner.ok_or(wrong)?;
    if value.len() > OUTCOME_BYTES_MAX {
        return Err(wrong);
    }
    let outcome = codec::decode_whole(value).map_err(|_| wrong)?;
    let outcome = Some(outcome);
    Ok((
        owner,
        Answer {
            asked,
            key,
            outcome,
        },
    ))
}
