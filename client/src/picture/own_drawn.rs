// [`OwnDrawn`]: the drawn poses of the session's own entities and of things, kept until the authority reaches their
// tick.

use std::collections::VecDeque;

use twinstep_core::Tick;

use super::measured::Errors;
use super::poses::Poses;
use crate::smooth::Pose;

const EVERY_TICKS: u32 = 8;
const WAITING_MAX: usize = 2_048;

pub(crate) struct OwnDrawn<K, P> {
    waiting: VecDeque<(Tick, K, P, bool)>,
    pub(crate) own_off: Errors,
    pub(crate) things_off: Errors,
}

impl<K: Ord + Copy, P: Pose> OwnDrawn<K, P> {
    pub(crate) fn new() -> Self {
        OwnDrawn {
            waiting: VecDeque::with_capacity(WAITING_MAX),
            own_off: Errors::default(),
            things_off: Errors::default(),
        }
    }

    pub(crate) fn jump(&mut self) {
        self.waiting.clear();
    }

    // Records the entities as they are drawn at the world of `tick`, if that tick is compared.
    pub(crate) fn record(&mut self, tick: Tick, poses: impl Iterator<Item = (K, (P, bool))>) {
        let newest = self.waiting.back().is_none_or(|last| last.0 < tick);
        if !tick.0.is_multiple_of(EVERY_TICKS) || !newest {
            return;
        }
        for (key, (pose, is_own)) in poses {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back((tick, key, pose, is_own));
            }
        }
    }

    pub(crate) fn awaits(&self, tick: Tick) -> bool {
        self.waiting.front().is_some_and(|first| first.0 <= tick)
    }

    // Compares the drawn poses with the authority's poses of a tick.
    pub(crate) fn judge(&mut self, tick: Tick, truth: &Poses<K, P>) {
        while let Some((at, key, pose, is_own)) = self.waiting.pop_front_if(|one| one.0 <= tick) {
            // An entity that does not exist has no true pose.
            if at == tick
                && let Some(put) = truth.get(key)
            {
                let off = match is_own {
                    true => &mut self.own_off,
                    false => &mut self.things_off,
                };
                off.record(pose.minus(put.pose).length(), f32::MAX);
            }
        }
    }
}
