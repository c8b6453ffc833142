//! [`Lockstep`]: a session without prediction, in a match with a command delay, or as a spectator. It plays turns as
//! they arrive, and closes a batch for each if it has players.
//!
//! ```text
//!  turn n runs ─▶ batch n + m is closed: the input of each seat, and all commands issued since the last batch
//! ```
//!
//! Invariants: there is one batch per turn, closed once unless the server lost it; a turn runs only when all of it has
//! arrived, including its length.

use std::collections::VecDeque;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{INPUT_BYTES_MAX, SEATS_MAX};
use twinstep_core::frame::FrameData;
use twinstep_core::turn::Turn;
use twinstep_core::{Controls, Simulation, codec};
use twinstep_protocol::packet::batches::BATCHES_MAX;

use crate::budget::BURST_TICKS;
use crate::picture::Show;
use crate::playout::Playout;
use crate::replica::{InputTooLarge, Replica};
use crate::stats::SessionStats;

pub(crate) struct ClosedBatch<I> {
    pub(crate) turn: u32,
    pub(crate) inputs: ArrayVec<I, SEATS_MAX>,
    /// The time at which the batch was closed. `None` if it is a filler before the session's first own batch.
    pub(crate) at: Option<Duration>,
}

pub(crate) struct Lockstep<S: Simulation> {
    pub(crate) delay: u32,
    pub(crate) playout: Playout,
    /// The newest closed batches, oldest first; the server may lack some of them.
    batches: VecDeque<ClosedBatch<S::Input>>,
    /// The turn of the open batch: commands issued now run in it.
    open: u32,
    /// The first turn whose batch the server lacks, according to its newest report.
    pub(crate) needed: u32,
    /// The first turn whose batch was never sent. A batch that is already too late is still sent once, because it shows
    /// the server that the player is present, and the server reports how late it was.
    sent: u32,
    /// The server's next turn to seal, according to its newest report.
    pub(crate) next_turn: u32,
    arriving: Turn,
}

impl<S: Simulation> Lockstep<S> {
    /// Creates the lockstep state of a session that plays from turn `at` with `seats` seats (0 for a spectator).
    pub(crate) fn new(delay: u8, at: Turn, seats: usize) -> Self {
        let (delay, turn) = (u32::from(delay), at.number);
        let mut lockstep = Lockstep {
            delay,
            playout: Playout::new(seats == 0),
            batches: VecDeque::with_capacity(BATCHES_MAX),
            open: turn,
            needed: turn + delay,
            sent: turn + delay,
            next_turn: turn,
            arriving: at,
        };
        // The match waits for these batches only if it is resumed before these turns have run.
        if let Some(last) = (turn + delay).checked_sub(1) {
            let nothing = (0..seats).map(|_| S::Input::default()).collect();
            lockstep.close_through(None, last, &nothing);
        }
        lockstep
    }

    pub(crate) fn advance<V: Show<S>>(
        &mut self,
        replica: &mut Replica<S, V>,
        now: Duration,
        rtt: Duration,
        mut input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        let (mut closed, mut fits) = (false, true);
        self.playout.look(now);
        for _ in 0..BURST_TICKS {
            let turn = replica.timeline.authority().turn();
            let tick = replica.timeline.authority().tick();
            let begins = tick == turn.began;
            if begins && !replica.inbox.has_turn(turn, tick) {
                // The turn has not arrived. If it is due, clients pause. In a paused match, the playout rests.
                if turn.cadence.paused && (!self.playout.runs() || self.playout.is_due(now)) {
                    self.playout.rest();
                }
                break;
            }
            if !self.playout.runs() {
                // The command delay minus the round trip is slack, split evenly between the directions.
                let spare = (turn.cadence.turn() * self.delay).saturating_sub(rtt) / 2;
                let wait = if self.delay == 0 {
                    turn.cadence.turn()
                } else {
                    spare
                };
                self.playout.start(now + wait, turn.cadence.turn());
            }
            if !self.playout.is_due(now) || replica.divergence.is_halted() {
                break;
            }
            if begins {
                if let Some(pause) = self.playout.begin_turn(now, turn.number) {
                    replica.meter.late_turns += 1;
                    replica.meter.paused += pause.late;
                    replica.meter.pause_max = replica.meter.pause_max.max(pause.late);
                }
                if let Some(at) = self.batch(turn.number).and_then(|batch| batch.at) {
                    replica.meter.record_confirmed(now.saturating_sub(at));
                }
                let seats = replica.timeline.local_actions().seats().len();
                if seats > 0 {
                    closed |= self.close(now, turn.number, || {
                        let held: ArrayVec<S::Input, SEATS_MAX> =
                            (0..seats).map(|seat| input(seat).or_neutral()).collect();
                        fits &= held
                            .iter()
                            .all(|i| codec::size(i).is_ok_and(|bytes| bytes <= INPUT_BYTES_MAX));
                        held
                    });
                    replica.timeline.local_actions_mut().open_turn = Some(self.open_turn());
                }
            }
            if !replica.confirm_next() {
                break;
            }
            let length = replica.cadence().tick();
            self.playout.step(length);
        }
        let tick = replica.cadence().tick();
        replica.view.alpha = self.playout.alpha(now, tick);
        replica
            .view
            .cues
            .settle(replica.timeline.authority().tick());
        if fits { Ok(closed) } else { Err(InputTooLarge) }
    }

    /// The time of the next due tick, unless a packet arrives earlier. Returns `None` while the session waits for the
    /// server.
    pub(crate) fn next_due<V: Show<S>>(&self, replica: &Replica<S, V>) -> Option<Duration> {
        let authority = replica.timeline.authority();
        let (turn, tick) = (authority.turn(), authority.tick());
        let is_here = tick != turn.began || replica.inbox.has_turn(turn, tick);
        self.playout
            .next_due()
            .filter(|_| is_here && replica.can_step())
    }

    pub(crate) fn fill_stats(&self, tick: Duration, stats: &mut SessionStats) {
        stats.rate = self.playout.rate();
        let ticks = |slack_ms: f64| slack_ms / (tick.as_secs_f64() * 1e3);
        stats.margin_ticks_now = ticks(self.playout.slack_ms().unwrap_or_default());
        stats.margin_ticks_target = ticks(self.playout.target_ms().unwrap_or_default());
        stats.input_tick = stats.authority_tick;
    }

    /// The turn of the next frame to arrive; all earlier turns are complete.
    pub(crate) fn arriving_turn(&self) -> u32 {
        self.arriving.number
    }

    /// Records the arrival of the next frame, and of its turn if that is now complete.
    pub(crate) fn record_frame(&mut self, now: Duration, frame: &FrameData<S>) {
        let number = self.arriving.number;
        if let Some(cadence) = frame.cadence {
            self.arriving.cadence = cadence;
        }
        self.arriving.reach(frame.tick + 1);
        if self.arriving.number > number {
            self.playout.record_arrival(now, number);
        }
    }

    /// Expects the turns starting at `at` again, over a new transport. The batches may have to be sent again.
    pub(crate) fn restart_arrivals(&mut self, at: Turn) {
        self.arriving = at;
        self.next_turn = at.number;
        self.needed = at.number;
    }

    /// Continues from a different world, at turn `at`. The turns before it will not run here, so the batches that they
    /// would close have the newest batch's inputs, because the match may wait for them.
    pub(crate) fn jump(&mut self, now: Duration, at: Turn, first: Duration) {
        let held = self.batches.back().map(|newest| newest.inputs.clone());
        if self.open > at.number + self.delay {
            // The session returns to a turn before its closed batches, because the server lost those turns.
            self.open = at.number;
            self.batches.clear();
        }
        if let (Some(held), Some(last)) = (held, (at.number + self.delay).checked_sub(1)) {
            self.close_through(Some(now), last, &held);
        }
        // Batches for turns that did not run here are sent only if the server asks for them.
        self.sent = self.open;
        self.restart_arrivals(at);
        self.playout.start(first, at.cadence.turn());
    }

    pub(crate) fn open_turn(&self) -> u32 {
        self.open
    }

    /// Closes the batch of turn `turn` + m when `turn` starts to run, and earlier batches that a heal skipped. Returns
    /// `true` if a batch was closed.
    pub(crate) fn close(
        &mut self,
        now: Duration,
        turn: u32,
        mut inputs: impl FnMut() -> ArrayVec<S::Input, SEATS_MAX>,
    ) -> bool {
        let last = turn + self.delay;
        let is_new = self.open <= last;
        if is_new {
            let held = inputs();
            self.close_through(Some(now), last, &held);
        }
        is_new
    }

    fn close_through(
        &mut self,
        at: Option<Duration>,
        last: u32,
        held: &ArrayVec<S::Input, SEATS_MAX>,
    ) {
        // After a long jump ahead, only the turns still open matter.
        self.open = self.open.max((last + 1).saturating_sub(BATCHES_MAX as u32));
        while self.open <= last {
            if self.batches.len() == BATCHES_MAX {
                self.batches.pop_front();
            }
            self.batches.push_back(ClosedBatch {
                turn: self.open,
                inputs: held.clone(),
                at,
            });
            self.open += 1;
        }
    }

    /// The first turn whose batch is unacknowledged or was never sent, and the number of batches starting there.
    pub(crate) fn unacknowledged(&self) -> (u32, usize) {
        let first = self.needed.min(self.sent);
        let first = self.batches.iter().position(|b| b.turn >= first);
        match first {
            None => (self.open, 0),
            Some(at) => (self.batches[at].turn, self.batches.len() - at),
        }
    }

    pub(crate) fn record_sent(&mut self, next: u32) {
        self.sent = self.sent.max(next);
    }

    pub(crate) fn input(&self, seat: usize, turn: u32) -> Option<&S::Input> {
        self.batch(turn)?.inputs.get(seat)
    }

    pub(crate) fn batch(&self, turn: u32) -> Option<&ClosedBatch<S::Input>> {
        self.batches.iter().find(|batch| batch.turn == turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::Tick;
    use twinstep_core::testing::doc::Counter;

    const NOW: Duration = Duration::ZERO;

    fn held() -> ArrayVec<<Counter as Simulation>::Input, SEATS_MAX> {
        [Default::default()].into_iter().collect()
    }

    fn turn(number: u32) -> Turn {
        Turn {
            number,
            began: Tick(number),
            ..Turn::default()
        }
    }

    /// Row 10: each turn has one batch, which is closed when the turn m turns earlier runs.
    #[test]
    fn each_turn_closes_one_batch() {
        let mut lockstep = Lockstep::<Counter>::new(2, turn(7), 1);
        for number in 7..20 {
            assert!(lockstep.close(NOW, number, held));
            assert!(!lockstep.close(NOW, number, held), "it was closed before");
            assert_eq!(lockstep.open_turn(), number + 3);
        }
        let closed: Vec<u32> = lockstep.batches.iter().map(|batch| batch.turn).collect();
        assert_eq!(closed[2..], Vec::from_iter(9..22));
        lockstep.needed = 20;
        lockstep.record_sent(19);
        assert_eq!(lockstep.unacknowledged(), (19, 3), "late, and sent once");
        lockstep.record_sent(22);
        assert_eq!(lockstep.unacknowledged(), (20, 2));
    }

    /// The match waits for a reconnecting player's batches from the current turn onwards, even before the player's
    /// first batch is due.
    #[test]
    fn every_turn_since_the_first_has_a_batch() {
        let mut lockstep = Lockstep::<Counter>::new(4, turn(7), 1);
        assert_eq!(
            lockstep.unacknowledged(),
            (11, 0),
            "the match does not wait for these"
        );
        lockstep.restart_arrivals(turn(8));
        assert_eq!(lockstep.unacknowledged(), (8, 3));
        let watches = Lockstep::<Counter>::new(0, turn(7), 0);
        assert_eq!(watches.unacknowledged(), (7, 0));
    }

    #[test]
    fn a_jump_closes_all_batches_for_which_the_match_may_wait() {
        let mut lockstep = Lockstep::<Counter>::new(2, turn(0), 1);
        assert!(lockstep.close(NOW, 0, held));
        lockstep.jump(NOW, turn(50), NOW);
        assert_eq!(lockstep.open_turn(), 52, "as if turn 49 had run here");
        assert!(lockstep.batch(50).is_some() && lockstep.batch(51).is_some());
        assert!(lockstep.batches.len() <= BATCHES_MAX);
    }

    /// A server may lose every turn in a power failure.
    #[test]
    fn a_jump_back_to_the_first_turn_closes_each_turn_once() {
        let mut lockstep = Lockstep::<Counter>::new(2, turn(0), 1);
        for number in 0..9 {
            lockstep.close(NOW, number, held);
        }
        lockstep.jump(NOW, turn(0), NOW);
        let closed: Vec<u32> = lockstep.batches.iter().map(|batch| batch.turn).collect();
        assert_eq!(closed, [0, 1]);
        assert_eq!(lockstep.unacknowledged(), (0, 2));
    }
}
