//! [`Load`]: decides when the I/O task stops waking for each datagram, and how often it then wakes on its own.
//!
//! Waking a sleeping thread for each datagram costs more than the datagram: at 200 players, half of the process's time.
//! So under load the task reads the socket after matches were run, when their packets are sent, and otherwise on a
//! timer of two milliseconds. It then finds several datagrams at once. Under load, an incoming packet waits for a
//! millisecond on average, and an outgoing packet does not wait. At low load, neither waits.

use std::time::Duration;

use super::workers::LOST;

/// The interval at which the workers are checked and the load is judged, while datagrams arrive.
pub(super) const BEAT: Duration = Duration::from_millis(10);
/// The pause after the last tending if no datagram has arrived for [`IDLE_AFTER`]. A datagram or a match's round wakes
/// the task immediately; orders to the task wait this long.
const IDLE_BEAT: Duration = Duration::from_millis(80);
/// The workers are checked at most this long after the next match was due: by then the match has run, or it hangs and
/// the other matches need another worker.
const OVERDUE: Duration = LOST.saturating_add(Duration::from_millis(2));
/// A hung match delays other matches once, by at most this time, counted from the start of its round. It is declared
/// lost at the first check after [`LOST`].
const LATE_BY_HANG_MAX: Duration = Duration::from_millis(50);
/// The maximum that tokio's timers add to a wait.
const ROUNDING: Duration = Duration::from_millis(2);
const _: () = assert!(
    OVERDUE.as_millis() + BEAT.as_millis() + ROUNDING.as_millis() < LATE_BY_HANG_MAX.as_millis()
);
/// Listeners are advanced, and sessions are checked, at the first beat after this interval. Transports need it ten
/// times a second.
const TEND_EVERY: Duration = Duration::from_millis(35);
/// Replaces [`TEND_EVERY`] once no datagram has arrived for [`IDLE_AFTER`].
const TEND_IDLE_EVERY: Duration = Duration::from_millis(75);
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// The longest wait under load. tokio's timers count whole milliseconds and round up, so it becomes two milliseconds.
pub(super) const MOMENT: Duration = Duration::from_micros(1_010);

/// The number of datagrams per [`BEAT`] that counts as a high load: 2,000 a second, about six matches of four players.
const HIGH: usize = 20;
/// The load is no longer high after [`LOW_FOR`] beats below this. Switching the socket's wake-ups off and on costs more
/// than one wake-up.
const LOW: usize = 10;
const LOW_FOR: u32 = 10;

#[derive(Debug, Default)]
pub(super) struct Load {
    beaten: Duration,
    tended: Duration,
    count: usize,
    /// The number of further beats for which the load counts as high.
    high_for: u32,
    came_at: Duration,
}

impl Load {
    /// Returns `true` if the task should no longer wake for each datagram.
    pub(super) fn is_high(&self) -> bool {
        self.high_for > 0
    }

    /// The time until the next beat if neither a datagram nor a match wakes the task first. `due`: when the next match
    /// is due.
    pub(super) fn until_beat(
        &self,
        now: Duration,
        due: impl FnOnce() -> Option<Duration>,
    ) -> Duration {
        let beat = BEAT.saturating_sub(now.saturating_sub(self.beaten));
        if !self.is_idle(now) {
            return beat;
        }
        // Counted from the last tending, not the last beat: matches that were run cause beats that tend nothing.
        let idle = IDLE_BEAT.saturating_sub(now.saturating_sub(self.tended));
        let overdue = due().map_or(idle, |due| (due + OVERDUE).saturating_sub(now));
        idle.min(overdue).max(beat)
    }

    /// Returns `true` if listeners must be tended at this beat.
    pub(super) fn tends(&mut self, now: Duration) -> bool {
        let every = match self.is_idle(now) {
            true => TEND_IDLE_EVERY,
            false => TEND_EVERY,
        };
        let is_due = now.saturating_sub(self.tended) >= every;
        if is_due {
            self.tended = now;
        }
        is_due
    }

    fn is_idle(&self, now: Duration) -> bool {
        now.saturating_sub(self.came_at) >= IDLE_AFTER
    }

    /// Counts `count` datagrams. Returns `true` if a beat is due.
    pub(super) fn record(&mut self, now: Duration, count: usize) -> bool {
        self.count += count;
        if count > 0 {
            self.came_at = now;
        }
        let elapsed = now.saturating_sub(self.beaten);
        if elapsed < BEAT {
            return false;
        }
        // After a process pause, the count covers many beats.
        let beats = (elapsed.as_nanos() / BEAT.as_nanos()).max(1) as usize;
        let a_beat = self.count / beats;
        self.high_for = match a_beat {
            HIGH.. => LOW_FOR,
            LOW.. if self.is_high() => LOW_FOR,
            _ => self.high_for.saturating_sub(1),
        };
        self.beaten = now;
        self.count = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(load: &mut Load, now: &mut Duration, beats: usize, a_beat: usize) {
        for _ in 0..beats * 10 {
            *now += BEAT / 10;
            load.record(*now, a_beat / 10);
        }
    }

    #[test]
    fn load_is_high_from_two_thousand_datagrams_a_second_until_half_of_that() {
        let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
        play(&mut load, &mut now, 3, 10);
        assert!(!load.is_high());
        play(&mut load, &mut now, 3, 20);
        assert!(load.is_high());
        play(&mut load, &mut now, 3, 10);
        assert!(load.is_high());
        let low = LOW_FOR as usize - 1;
        play(&mut load, &mut now, low, 0);
        assert!(load.is_high());
        play(&mut load, &mut now, 2, 0);
        assert!(!load.is_high());
    }

    #[test]
    fn datagrams_queued_during_a_process_pause_are_not_a_high_load() {
        let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
        play(&mut load, &mut now, 3, 10);
        now += BEAT * 100;
        load.record(now, 200);
        assert!(!load.is_high());
    }

    #[test]
    fn beats_are_rarer_while_no_datagram_arrives() {
        let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
        load.record(now, 0);
        load.tends(now);
        let mut beats = |came: usize, wakes: usize| {
            let waits = (0..wakes).map(|_| {
                let wait = load.until_beat(now, || None);
                now += wait;
                assert!(load.record(now, came), "after {wait:?}");
                load.tends(now);
                wait
            });
            Vec::from_iter(waits)
        };
        assert_eq!(beats(0, 3), [IDLE_BEAT; 3]);
        // The wait in which the datagram arrived was still an idle one.
        assert_eq!(beats(1, 3), [IDLE_BEAT, BEAT, BEAT]);
        let slower = beats(0, 101);
        assert_eq!(slower[..100], [BEAT; 100]);
        assert!(slower[100] > BEAT, "{:?}", slower[100]);
        // An interrupted wait continues.
        now += Duration::from_millis(1);
        load.record(now, 1);
        assert_eq!(
            load.until_beat(now, || None),
            BEAT - Duration::from_millis(1)
        );
    }

    /// Holds for any due time of the hung match, however long its worker ran other matches before.
    #[test]
    fn a_hung_match_on_an_idle_server_is_detected_in_time() {
        for ms in 0..200 {
            for ran_before in (0..20).map(Duration::from_millis) {
                let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
                load.record(now, 0);
                load.tends(now);
                let due = now + Duration::from_millis(ms);
                let lost = due + ran_before + LOST;
                while now < lost {
                    let wait = load.until_beat(now, || Some(due));
                    assert!(wait >= Duration::from_millis(1), "{wait:?} at {now:?}");
                    now += wait + ROUNDING;
                    load.record(now, 0);
                    load.tends(now);
                }
                let late = now - (due + ran_before);
                assert!(late < LATE_BY_HANG_MAX, "{late:?}");
            }
        }
        // If the match runs in time, the task waits as long as it may.
        let mut load = Load::default();
        let now = Duration::from_secs(9);
        load.record(now, 0);
        load.tends(now);
        let (late, just) = (now + IDLE_BEAT, IDLE_BEAT - OVERDUE);
        assert_eq!(load.until_beat(now, || Some(late)), IDLE_BEAT);
        assert_eq!(load.until_beat(now, || Some(now + just)), IDLE_BEAT);
        let sooner = just - Duration::from_millis(1);
        assert!(load.until_beat(now, || Some(now + sooner)) < IDLE_BEAT);
    }

    /// This holds even if matches wake the task at other moments in between.
    #[test]
    fn listeners_are_tended_ten_times_a_second_even_on_an_idle_server() {
        for apart in (3..200).map(Duration::from_millis) {
            let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
            load.record(now, 0);
            load.tends(now);
            let (mut tended, mut run, mut tends) = (now, now + apart, 0);
            let end = now + Duration::from_secs(20);
            while now < end {
                let wait = load.until_beat(now, || Some(run));
                assert!(!wait.is_zero(), "a busy loop at {now:?}");
                now = run.min(now + wait);
                run += if now == run { apart } else { Duration::ZERO };
                if load.record(now, 0) && load.tends(now) {
                    assert!(now - tended <= IDLE_BEAT + BEAT, "{:?}", now - tended);
                    tended = now;
                    tends += 1;
                }
            }
            assert!((220..=267).contains(&tends), "{tends} in 20 s, {apart:?}");
        }
    }

    #[test]
    fn a_beat_is_due_every_ten_milliseconds_under_constant_load() {
        let mut load = Load::default();
        let due = (1..=100)
            .filter(|ms| load.record(Duration::from_millis(*ms), 7))
            .count();
        assert_eq!(due, 10);
    }
}
