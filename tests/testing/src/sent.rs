//! Frames and other values as bytes, for the second process.
//!
//! Invariant: both processes run the same program, so the format has no version. If a value cannot be read, the reply
//! states that.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twinstep_core::codec;
use twinstep_core::frame::{Answer, FrameData, Order, PlayerSet, RosterChange};
use twinstep_core::{PlayerId, Simulation, Tick};

/// A frame of a check, which has neither fragments nor a change of cadence.
#[derive(Serialize, Deserialize)]
struct SentFrame<'a, I: Clone, C: Clone, O: Clone> {
    tick: Tick,
    roster: Cow<'a, [(PlayerId, RosterChange)]>,
    outcomes: Cow<'a, [Answer<O>]>,
    claims: Cow<'a, [Order<C>]>,
    commands: Cow<'a, [Order<C>]>,
    inputs: Vec<(PlayerId, I)>,
    filled: PlayerSet,
}

pub(crate) fn frame_bytes<S: Simulation>(frame: &FrameData<S>) -> Vec<u8> {
    let inputs = frame.inputs.iter();
    let mut bytes = Vec::new();
    let sent = SentFrame::<S::Input, S::Command, S::Outcome> {
        tick: frame.tick,
        roster: Cow::Borrowed(&frame.roster),
        outcomes: Cow::Borrowed(&frame.outcomes),
        claims: Cow::Borrowed(&frame.claims),
        commands: Cow::Borrowed(&frame.commands),
        inputs: inputs
            .map(|(player, input)| (player, input.clone()))
            .collect(),
        filled: frame.filled,
    };
    put(&mut bytes, &sent);
    bytes
}

pub(crate) fn take_frame<S: Simulation>(from: &mut &[u8]) -> Option<FrameData<S>> {
    let sent: SentFrame<'_, S::Input, S::Command, S::Outcome> = take(from)?;
    let mut frame = FrameData::empty(sent.tick);
    frame.roster = sent.roster.into_owned();
    frame.outcomes = sent.outcomes.into_owned();
    frame.claims = sent.claims.into_owned();
    frame.commands = sent.commands.into_owned();
    for (player, input) in sent.inputs {
        frame.inputs.set(player, Some(input));
    }
    frame.filled = sent.filled;
    Some(frame)
}

pub(crate) fn put(to: &mut Vec<u8>, value: &impl Serialize) {
    let mut bytes = Vec::new();
    // The check has already encoded each value of the frame; a missing part is detected on reading.
    let _ = codec::append(value, &mut bytes);
    put_bytes(to, &bytes);
}

pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.extend_from_slice(bytes);
}

pub(crate) fn take<T: DeserializeOwned>(from: &mut &[u8]) -> Option<T> {
    codec::decode_whole(take_bytes(from)?).ok()
}

pub(crate) fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = from.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (bytes, rest) = rest.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}
