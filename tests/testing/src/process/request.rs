//! [`Request`]: what the first process sends to the second, as bytes.
//!
//! Invariant: both processes are one program, so the format has no version; a request that cannot be read is an answer.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use twinstep_core::codec;
use twinstep_core::frame::{Answer, FrameData, Order, PlayerSet, RosterChange};
use twinstep_core::{PlayerId, Simulation, Tick};

use crate::moments::{Moment, Trace};

/// The run to compare with.
pub(crate) struct Request<S: Simulation> {
    pub(crate) trace: Trace<S>,
    /// Whether the second process leaves its working folder.
    pub(crate) leaves_folder: bool,
}

#[derive(Serialize, Deserialize)]
struct RequestHead {
    leaves_folder: bool,
    rules: u64,
    moments: usize,
    ticks: usize,
}

/// A frame of a check, which has neither fragments nor a change of cadence.
#[derive(Serialize, Deserialize)]
struct SentFrame<'a, I: Clone, C: Clone, O: Clone> {
    digests: (u64, u64),
    tick: Tick,
    roster: Cow<'a, [(PlayerId, RosterChange)]>,
    outcomes: Cow<'a, [Answer<O>]>,
    claims: Cow<'a, [Order<C>]>,
    commands: Cow<'a, [Order<C>]>,
    inputs: Vec<(PlayerId, I)>,
    filled: PlayerSet,
}

impl<S: Simulation> Request<S> {
    /// Encodes a request; with the runs from the middle if `from_the_middle`.
    pub(crate) fn encode(trace: &Trace<S>, from_the_middle: bool, leaves_folder: bool) -> Vec<u8> {
        let moments = match from_the_middle {
            true => &trace.moments[..],
            false => &[],
        };
        let mut bytes = Vec::new();
        let head = RequestHead {
            leaves_folder,
            rules: trace.rules,
            moments: moments.len(),
            ticks: trace.ticks.len(),
        };
        put(&mut bytes, &head);
        for moment in moments {
            put(&mut bytes, &(moment.tick, moment.until));
            put_bytes(&mut bytes, &moment.bytes);
        }
        for (frame, digests) in trace.frames.iter().zip(&trace.ticks) {
            let inputs = frame.inputs.iter();
            let sealed = SentFrame::<S::Input, S::Command, S::Outcome> {
                digests: *digests,
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
            put(&mut bytes, &sealed);
        }
        bytes
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Request<S>> {
        let head: RequestHead = take(&mut bytes)?;
        let mut trace = Trace {
            rules: head.rules,
            ticks: Vec::with_capacity(head.ticks),
            frames: Vec::with_capacity(head.ticks),
            moments: Vec::new(),
        };
        for _ in 0..head.moments {
            let (tick, until) = take(&mut bytes)?;
            let bytes = take_bytes(&mut bytes)?.to_vec();
            trace.moments.push(Moment { tick, until, bytes });
        }
        for _ in 0..head.ticks {
            let sealed: SentFrame<'_, S::Input, S::Command, S::Outcome> = take(&mut bytes)?;
            let mut frame = FrameData::empty(sealed.tick);
            frame.roster = sealed.roster.into_owned();
            frame.outcomes = sealed.outcomes.into_owned();
            frame.claims = sealed.claims.into_owned();
            frame.commands = sealed.commands.into_owned();
            for (player, input) in sealed.inputs {
                frame.inputs.set(player, Some(input));
            }
            frame.filled = sealed.filled;
            trace.frames.push(frame);
            trace.ticks.push(sealed.digests);
        }
        Some(Request {
            trace,
            leaves_folder: head.leaves_folder,
        })
    }
}

fn put(to: &mut Vec<u8>, value: &impl Serialize) {
    let mut bytes = Vec::new();
    // The values of a frame were encoded before, by the check of each; a part that is missing is found when it is read.
    let _ = codec::append(value, &mut bytes);
    put_bytes(to, &bytes);
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn take<T: DeserializeOwned>(from: &mut &[u8]) -> Option<T> {
    codec::decode_whole(take_bytes(from)?).ok()
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = from.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (bytes, rest) = rest.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}
