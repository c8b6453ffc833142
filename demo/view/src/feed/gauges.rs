//! [`Gauges`]: the session's counters over time, for the rates and plots of a netgraph.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::SessionStats;

const EVERY: Duration = Duration::from_micros(111_111);
/// The readings that a rate covers: 1 s.
const RATE_READINGS: usize = 9;
const KEPT: usize = 90;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub rebuilds: f64,
    pub resim_ticks: f64,
    pub items_run: f64,
    pub items_taken: f64,
    /// Bytes sent, with all headers.
    pub bytes_up: f64,
    /// Bytes received, with all headers.
    pub bytes_down: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub at: Duration,
    pub stats: SessionStats,
}

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    readings: VecDeque<Reading>,
}

impl Gauges {
    /// Reads the counters, at most nine times a second however often this is called.
    pub fn read(&mut self, now: Duration, stats: &SessionStats) {
        let is_due = self
            .readings
            .back()
            .is_none_or(|last| now.saturating_sub(last.at) >= EVERY);
        if !is_due {
            return;
        }
        if self.readings.len() == KEPT {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading {
            at: now,
            stats: *stats,
        });
    }

    #[must_use]
    pub fn rates(&self) -> Rates {
        let Some(newest) = self.readings.back() else {
            return Rates::default();
        };
        let first = self.readings.len().saturating_sub(RATE_READINGS + 1);
        Gauges::between(&self.readings[first], newest)
    }

    #[must_use]
    pub fn between(oldest: &Reading, newest: &Reading) -> Rates {
        let seconds = newest.at.saturating_sub(oldest.at).as_secs_f64();
        let rate = |read: fn(&SessionStats) -> u64| {
            if seconds == 0.0 {
                return 0.0;
            }
            read(&newest.stats).saturating_sub(read(&oldest.stats)) as f64 / seconds
        };
        Rates {
            rebuilds: rate(|stats| stats.timeline.rebuilds),
            resim_ticks: rate(|stats| stats.timeline.resim_ticks),
            items_run: rate(|stats| stats.timeline.items_run),
            items_taken: rate(|stats| stats.timeline.items_taken),
            bytes_up: rate(|stats| stats.up.total()),
            bytes_down: rate(|stats| stats.down_bytes),
        }
    }

    #[must_use]
    pub fn silent(&self, now: Duration) -> Duration {
        let newest = self.readings.back().map(|last| last.stats.down_packets);
        // The first reading with the newest count: no packet has come since.
        let heard = self
            .readings
            .iter()
            .find(|reading| Some(reading.stats.down_packets) == newest);
        heard.map_or(Duration::ZERO, |heard| now.saturating_sub(heard.at))
    }

    /// The readings of the last 10 s, nine a second, oldest first.
    pub fn readings(&self) -> impl ExactSizeIterator<Item = &Reading> {
        self.readings.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(seconds: u64) -> Gauges {
        let mut gauges = Gauges::default();
        for n in 0..=seconds * 60 {
            let mut stats = SessionStats::default();
            stats.down_bytes = n * 5;
            stats.down_packets = n;
            stats.prediction_tick = n as u32 + 9;
            stats.authority_tick = n as u32;
            gauges.read(Duration::from_micros(n * 16_667), &stats);
        }
        gauges
    }

    #[test]
    fn a_rate_covers_the_last_second_even_in_short_sessions() {
        assert_eq!(Gauges::default().rates(), Rates::default());
        for seconds in [1, 3, 60] {
            let rate = read(seconds).rates().bytes_down;
            assert!((rate - 300.0).abs() < 1.0, "{rate} after {seconds} s");
        }
    }

    #[test]
    fn silence_begins_with_the_last_packet() {
        let mut gauges = read(2);
        let Reading { at, stats } = *gauges.readings.back().unwrap();
        for tenth in 1..=15 {
            gauges.read(at + EVERY * tenth, &stats);
        }
        assert_eq!(gauges.silent(at + EVERY * 15), EVERY * 15);
    }
}
