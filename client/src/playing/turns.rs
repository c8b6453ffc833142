//! What one `advance` does in lockstep, instead of predicting: turns run when their time has come, each as a whole, and
//! each closes a batch.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{INPUT_BYTES_MAX, SEATS_MAX};
use twinstep_core::{Controls, Simulation, codec};

use super::{InputTooLarge, Playing};
use crate::budget::BURST_TICKS;
use crate::picture::Show;

impl<S: Simulation, V: Show<S>> Playing<S, V> {
    /// Does all that is due without a prediction; whether a batch was closed.
    pub(super) fn play_out(
        &mut self,
        now: Duration,
        rtt: Duration,
        mut input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        let (mut closed, mut fits) = (false, true);
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.playout.look(now);
        }
        for _ in 0..BURST_TICKS {
            let Some(lockstep) = &mut self.lockstep else {
                break;
            };
            let turn = self.timeline.authority().turn();
            let tick = self.timeline.authority().tick();
            let begins = tick == turn.began;
            if begins && !self.inbox.has_turn(turn, tick) {
                break; // Not here: if its time has come, this is a pause.
            }
            if !lockstep.playout.runs() {
                // Half of what a command's delay leaves over its way is kept as slack for either leg.
                let spare = (turn.cadence.turn() * lockstep.delay).saturating_sub(rtt) / 2;
                let wait = if lockstep.delay == 0 {
                    turn.cadence.turn()
                } else {
                    spare
                };
                lockstep.playout.start(now + wait, turn.cadence.turn());
            }
            if !lockstep.playout.is_due(now) || self.divergence.stands() {
                break;
            }
            if begins {
                if let Some(pause) = lockstep.playout.begin_turn(now, turn.number) {
                    self.meter.late_turns += 1;
                    self.meter.paused += pause.late;
                    self.meter.pause_max = self.meter.pause_max.max(pause.late);
                }
                if let Some(at) = lockstep.batch(turn.number).and_then(|batch| batch.at) {
                    self.meter.record_confirmed(now.saturating_sub(at));
                }
                let seats = self.timeline.local_actions().seats().len();
                if seats > 0 {
                    closed |= lockstep.close(now, turn.number, || {
                        let held: ArrayVec<S::Input, SEATS_MAX> =
                            (0..seats).map(|seat| input(seat).or_neutral()).collect();
                        fits &= held
                            .iter()
                            .all(|i| codec::size(i).is_ok_and(|bytes| bytes <= INPUT_BYTES_MAX));
                        held
                    });
                    self.timeline.local_actions_mut().open_turn = Some(lockstep.open_turn());
                }
            }
            if !self.confirm_next() {
                break;
            }
            let length = self.timeline.authority().turn().cadence.tick();
            if let Some(lockstep) = &mut self.lockstep {
                lockstep.playout.step(length);
            }
        }
        if let Some(lockstep) = &self.lockstep {
            let tick = self.timeline.authority().turn().cadence.tick();
            self.view.alpha = lockstep.playout.alpha(now, tick);
        }
        if fits { Ok(closed) } else { Err(InputTooLarge) }
    }
}
