//! [`Load`]: when the I/O task stops waking up for each datagram, and how often it looks after what nobody wakes it for.
//!
//! A thread that sleeps is woken for each datagram that comes, and that costs more than the datagram does: at 200 players,
//! half of what the process spends. So while much comes, the task looks at the socket when matches were run, whose packets
//! leave then, and at the latest after two milliseconds of its timer; and finds a handful at once. What comes waits for a
//! millisecond on average then, what goes for nothing; while little comes, neither waits.

use std::time::Duration;

use super::workers::LOST;

/// The workers are looked at and the load is judged anew about so often, while something comes.
pub(super) const BEAT: Duration = Duration::from_millis(10);
/// Where nothing has come for [`IDLE_AFTER`] the task looks so long after it last tended. What comes wakes the task at once, and so
/// do matches that were run; what it is ordered waits for so long.
const IDLE_BEAT: Duration = Duration::from_millis(80);
/// But no longer than this after the next match was due: by then it was run, or it hangs, and others wait for another worker.
const OVERDUE: Duration = LOST.saturating_add(Duration::from_millis(2));
/// A match that hangs makes others late by less than this, once, counted from when its round began: it is lost a while later, and
/// the next look finds that.
const LATE_BY_HANG_MAX: Duration = Duration::from_millis(50);
/// What tokio's timers may add to a wait.
const ROUNDING: Duration = Duration::from_millis(2);
const _: () = assert!(
    OVERDUE.as_millis() + BEAT.as_millis() + ROUNDING.as_millis() < LATE_BY_HANG_MAX.as_millis()
);
/// Transports are tended, and sessions looked at, at the first beat that is so long after the last such one. A transport asks
/// for it ten times a second.
const TEND_EVERY: Duration = Duration::from_millis(35);
/// The same where nothing has come for [`IDLE_AFTER`].
const TEND_IDLE_EVERY: Duration = Duration::from_millis(75);
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Under load: the longest time until the next look. tokio's timers go by whole milliseconds and round up, so it is two of
/// them.
pub(super) const MOMENT: Duration = Duration::from_micros(1_010);

/// So many datagrams in one [`BEAT`] are a high load, 2,000 a second: some six matches of four.
const HIGH: usize = 20;
/// Below so many it is over, if it stays so for as many beats as this: turning the socket's wake-ups off and on costs more
/// than one of them.
const LOW: usize = 10;
const LOW_FOR: u32 = 10;

/// How much came lately.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// When the last beat was.
    beaten: Duration,
    /// When transports were tended.
    tended: Duration,
    /// What came since.
    count: usize,
    /// For how many beats more it counts as high.
    high_for: u32,
    /// When something came last, as far as is known.
    came_at: Duration,
}

impl Load {
    /// Whether each datagram should no longer be waited for.
    pub(super) fn is_high(&self) -> bool {
        self.high_for > 0
    }

    /// When the next beat is, if nothing comes before, and nothing is heard of the next match; `due` says when that is due.
    pub(super) fn until_beat(
        &self,
        now: Duration,
        due: impl FnOnce() -> Option<Duration>,
    ) -> Duration {
        let beat = BEAT.saturating_sub(now.saturating_sub(self.beaten));
        if !self.is_idle(now) {
            return beat;
        }
        // Not after the last beat: matches that were run make some at which nothing is tended.
        let idle = IDLE_BEAT.saturating_sub(now.saturating_sub(self.tended));
        let overdue = due().map_or(idle, |due| (due + OVERDUE).saturating_sub(now));
        idle.min(overdue).max(beat)
    }

    /// At a beat: whether transports are to be tended now.
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

    /// So much was done. Whether a beat is due.
    pub(super) fn record(&mut self, now: Duration, count: usize) -> bool {
        self.count += count;
        if count > 0 {
            self.came_at = now;
        }
        let elapsed = now.saturating_sub(self.beaten);
        if elapsed < BEAT {
            return false;
        }
        // A process that stood still finds the work of many beats.
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

    /// Plays so many beats with so much in each, in ten parts.
    fn play(load: &mut Load, now: &mut Duration, beats: usize, a_beat: usize) {
        for _ in 0..beats * 10 {
            *now += BEAT / 10;
            load.record(*now, a_beat / 10);
        }
    }

    #[test]
    fn the_load_is_high_from_two_thousand_a_second_until_it_is_half_of_that() {
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
    fn what_gathered_while_the_process_stood_still_is_no_high_load() {
        let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
        play(&mut load, &mut now, 3, 10);
        now += BEAT * 100;
        load.record(now, 200);
        assert!(!load.is_high());
    }

    #[test]
    fn where_nothing_comes_there_are_fewer_beats_until_something_does() {
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
        // The one that it came in was waited for as before.
        assert_eq!(beats(1, 3), [IDLE_BEAT, BEAT, BEAT]);
        let slower = beats(0, 101);
        assert_eq!(slower[..100], [BEAT; 100]);
        assert!(slower[100] > BEAT, "{:?}", slower[100]);
        // A wait that was cut short goes on.
        now += Duration::from_millis(1);
        load.record(now, 1);
        assert_eq!(
            load.until_beat(now, || None),
            BEAT - Duration::from_millis(1)
        );
    }

    /// Nothing is heard of it, wherever between two looks it was due, and whatever its worker ran before.
    #[test]
    fn a_match_that_hangs_where_nothing_comes_is_seen_in_time() {
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
        // Where it is run in time, it spares what it can.
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

    /// Whatever wakes the task between: matches that are run at moments of their own.
    #[test]
    fn transports_are_tended_ten_times_a_second_also_where_nothing_comes() {
        for apart in (3..200).map(Duration::from_millis) {
            let (mut load, mut now) = (Load::default(), Duration::from_secs(9));
            load.record(now, 0);
            load.tends(now);
            let (mut tended, mut run, mut tends) = (now, now + apart, 0);
            let end = now + Duration::from_secs(20);
            while now < end {
                let wait = load.until_beat(now, || Some(run));
                assert!(!wait.is_zero(), "it turns round and round at {now:?}");
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
    fn a_beat_is_due_every_ten_milliseconds_whatever_comes() {
        let mut load = Load::default();
        let due = (1..=100)
            .filter(|ms| load.record(Duration::from_millis(*ms), 7))
            .count();
        assert_eq!(due, 10);
    }
}
