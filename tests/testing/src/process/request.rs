//! [`Request`]: a task that the first process sends to the second, with the data it needs.

use serde::{Deserialize, Serialize};
use twinstep_core::Simulation;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;

use crate::moments::{Moment, Trace};
use crate::process::change::Change;
use crate::sent::{frame_bytes, put, put_bytes, take, take_bytes, take_frame};

pub(crate) enum Request<S: Simulation> {
    /// Run from these moments, then the whole match, and compare.
    Compare { trace: Trace<S>, how: How },
    /// Repeat one step with its memory at addresses that follow from this seed, and return the digests.
    Repeat(Box<(World<S>, FrameData<S>)>, u64),
}

/// The changes that the second process must make to itself.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct How {
    pub(crate) leaves_folder: bool,
    pub(crate) plays_others_first: bool,
}

impl How {
    pub(crate) fn of(changes: &[Change]) -> How {
        How {
            leaves_folder: changes.iter().any(Change::moves_folder),
            plays_others_first: changes.iter().any(Change::plays_others_first),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct RequestHead {
    repeats: bool,
    how: How,
    rules: u64,
    moments: usize,
    ticks: usize,
}

/// Encodes the request to compare a run, and the runs from the middle if `from_the_middle` is `true`.
pub(crate) fn compare<S: Simulation>(trace: &Trace<S>, from_the_middle: bool, how: How) -> Vec<u8> {
    let moments = match from_the_middle {
        true => &trace.moments[..],
        false => &[],
    };
    let mut bytes = Vec::new();
    let head = RequestHead {
        repeats: false,
        how,
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
        put(&mut bytes, digests);
        bytes.extend_from_slice(&frame_bytes(frame));
    }
    bytes
}

/// Encodes the request to repeat a step with its memory at addresses that follow from `seed`.
pub(crate) fn repeat((world, frame): &(Vec<u8>, Vec<u8>), seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = RequestHead {
        repeats: true,
        how: How::default(),
        rules: 0,
        moments: 0,
        ticks: 0,
    };
    put(&mut bytes, &head);
    put_bytes(&mut bytes, world);
    bytes.extend_from_slice(frame);
    put(&mut bytes, &seed);
    bytes
}

impl<S: Simulation> Request<S> {
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Request<S>> {
        let head: RequestHead = take(&mut bytes)?;
        if head.repeats {
            let (world, frame) = (take(&mut bytes)?, take_frame(&mut bytes)?);
            return Some(Request::Repeat(Box::new((world, frame)), take(&mut bytes)?));
        }
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
            trace.ticks.push(take(&mut bytes)?);
            trace.frames.push(take_frame(&mut bytes)?);
        }
        Some(Request::Compare {
            trace,
            how: head.how,
        })
    }
}
