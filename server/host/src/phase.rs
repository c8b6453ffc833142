//! [`Phase`]: the moments of a tick at which a match is due.
//!
//! ```text
//!  a tick of 16.7 ms   0 ─── 1 ─── 2 ─── 3 ─── 4 ─── 5 ─── 6 ─── 7 ─── 0 …    2.1 ms apart
//!  matches due         8    1 9   2 10  3 11   4     5     6     7     8
//! ```
//!
//! In a virtual machine, putting a thread to sleep and waking it costs tens of microseconds, more than the tick of a
//! small match. Matches that are due at arbitrary times would need one wake-up each. So a match starts at one of a few
//! moments of the tick. Matches are assigned to the moments in turn, so that all moments have about the same load, and
//! there are at most as many wake-ups as moments.

use std::time::Duration;

use twinstep_core::bounds::SPARSE_EVERY;

use super::workers::SlotId;

const APART: Duration = Duration::from_millis(2);
/// The interval at which a match without responding clients runs. If it were much longer, the match would mistake it
/// for a process pause.
pub(super) const REST: Duration = Duration::from_millis(101);
/// The interval for a match whose clients have all been silent long enough to get few packets, all at the same moment.
/// The match runs for these packets only, and catches up in small steps.
pub(super) const DEEP_REST: Duration = SPARSE_EVERY.saturating_add(Duration::from_millis(5));

#[derive(Clone, Copy, Debug)]
pub(super) struct Phase(u64);

impl Phase {
    pub(super) fn of(slot: SlotId) -> Phase {
        Phase(slot.number())
    }

    /// The last moment of this phase up to `now`; the first moment if there was none yet.
    pub(super) fn last(self, now: Duration, tick: Duration) -> Duration {
        let offset = self.offset(tick);
        let since = (now.as_nanos() + tick.as_nanos() - offset) % tick.as_nanos();
        now.checked_sub(nanos(since)).unwrap_or(nanos(offset))
    }

    /// Returns the time at which a resting match due at `due` runs. In a rest, the moments of a phase are several ticks
    /// apart.
    pub(super) fn rest(self, due: Duration, tick: Duration, is_deep: bool) -> Duration {
        let ticks = match is_deep {
            true => deep_ticks(tick).into(),
            false => (REST.as_nanos() / tick.as_nanos()).max(1),
        };
        let rest = tick.as_nanos() * ticks;
        let beyond = (due.as_nanos() + rest - self.offset(tick)) % rest;
        match beyond {
            0 => due,
            _ => due + nanos(rest - beyond),
        }
    }

    /// The offset of this phase from the start of a tick, in nanoseconds.
    fn offset(self, tick: Duration) -> u128 {
        moment(u128::from(self.0) % moments(tick), tick)
    }
}

/// The first moment of any phase at or after `due`.
pub(super) fn next_moment(due: Duration, tick: Duration) -> Duration {
    let beyond = due.as_nanos() % tick.as_nanos();
    let next = (beyond * moments(tick)).div_ceil(tick.as_nanos());
    due + nanos(moment(next, tick) - beyond)
}

pub(super) fn deep_ticks(tick: Duration) -> u32 {
    DEEP_REST.as_nanos().div_ceil(tick.as_nanos()) as u32
}

fn moments(tick: Duration) -> u128 {
    (tick.as_nanos() / APART.as_nanos()).max(1)
}

/// The offset of moment `n` from the start of a tick, in nanoseconds.
fn moment(n: u128, tick: Duration) -> u128 {
    tick.as_nanos() * n / moments(tick)
}

fn nanos(nanos: u128) -> Duration {
    // The wait fits, because it is at most a few ticks.
    Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TICKS: [Duration; 4] = [
        Duration::from_nanos(16_666_667),
        Duration::from_nanos(4_166_667),
        Duration::from_millis(50),
        Duration::from_millis(1),
    ];

    /// The number of moments when sixty matches are due in one tick, and the most matches at one moment.
    fn due(tick: Duration) -> (usize, usize) {
        let mut dues = Vec::new();
        for n in 0..60 {
            let phase = Phase(n);
            let began = phase.last(Duration::from_micros(900_000 + n * 317), tick);
            // It is due at such a moment after any number of ticks.
            let due = began + tick * (n as u32 + 1_000);
            assert_eq!(next_moment(due, tick), due, "{phase:?} of {tick:?}");
            dues.push(due.as_nanos() % tick.as_nanos());
        }
        let moments: BTreeSet<u128> = dues.iter().copied().collect();
        let fullest = moments
            .iter()
            .map(|at| dues.iter().filter(|due| *due == at).count());
        (moments.len(), fullest.max().unwrap_or(0))
    }

    #[test]
    fn matches_share_a_few_moments_of_a_tick_evenly() {
        assert_eq!(due(TICKS[0]), (8, 8));
        assert_eq!(due(TICKS[1]), (2, 30));
        assert_eq!(due(TICKS[2]), (25, 3));
        assert_eq!(due(TICKS[3]), (1, 60));
    }

    #[test]
    fn a_match_starts_at_its_last_moment_less_than_a_tick_ago() {
        for tick in TICKS {
            for n in 0..9_u32 {
                let now = Duration::from_secs(5) + Duration::from_micros(777) * n;
                let began = Phase(n.into()).last(now, tick);
                assert!(began <= now && now - began < tick, "{tick:?}");
            }
        }
    }

    #[test]
    fn matches_of_a_new_host_are_due_at_different_moments() {
        let tick = TICKS[0];
        let began = |n| Phase(n).last(Duration::from_micros(100 * n), tick);
        let moments: BTreeSet<Duration> = (0..8).map(began).collect();
        assert_eq!(moments.len(), 8);
        assert!(moments.iter().all(|began| *began < tick));
    }

    #[test]
    fn a_match_due_between_two_moments_runs_at_the_next_one() {
        let tick = TICKS[0];
        for us in [1, 1_999, 2_083, 2_084, 16_666] {
            let due = tick * 70 + Duration::from_micros(us);
            let at = next_moment(due, tick);
            assert!(at >= due && at - due <= tick / 8 + Duration::from_nanos(1));
            assert_eq!(next_moment(at, tick), at);
        }
    }

    #[test]
    fn a_deep_rest_ends_when_packets_to_clients_are_due() {
        for tick in [TICKS[0], TICKS[1], TICKS[2], Duration::from_millis(40)] {
            let phase = Phase(5);
            let mut looks = vec![phase.last(Duration::from_secs(1), tick)];
            for n in 0..6 {
                looks.push(phase.rest(looks[n] + tick, tick, true));
            }
            // After the first rest, all rounds are on the grid of the phase.
            for pair in looks[1..].windows(2) {
                let apart = pair[1] - pair[0];
                assert!(
                    apart > SPARSE_EVERY,
                    "{tick:?}: {apart:?}, or only every other look sends"
                );
                assert!(
                    apart < SPARSE_EVERY + tick + Duration::from_millis(6),
                    "{apart:?}"
                );
            }
            let other = Phase(5 + moments(tick) as u64);
            let mine = other.rest(looks[3] + tick, tick, true);
            assert_eq!(mine, looks[4], "together with others of its phase");
        }
    }

    #[test]
    fn a_resting_match_runs_every_100_ms_with_others_of_its_phase() {
        let tick = TICKS[0];
        let looked_at = |n| {
            let phase = Phase(n);
            let began = phase.last(Duration::from_secs(1), tick);
            let dues = (0..60).map(move |ticks| began + tick * ticks);
            dues.map(move |due| phase.rest(due, tick, false))
                .collect::<BTreeSet<_>>()
        };
        let mine = looked_at(5);
        assert!((10..=11).contains(&mine.len()), "{}", mine.len());
        assert!(looked_at(13).intersection(&mine).count() >= 10);
        assert_eq!(looked_at(6).intersection(&mine).count(), 0);
        // Matches with longer ticks run every tick.
        let slow = Duration::from_millis(120);
        let due = Phase(4).last(Duration::from_secs(1), slow) + slow;
        assert_eq!(Phase(4).rest(due, slow, false), due);
    }
}
