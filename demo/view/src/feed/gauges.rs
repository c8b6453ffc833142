//! [`Gauges`]: the session's counters over time, for the rates and plots of a netgraph.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::{PictureErrors, PictureStats, SessionStats};

const EVERY: Duration = Duration::from_micros(111_111);
/// The number of readings covered by a rate: 1 s.
const RATE_READINGS: usize = 9;
const KEPT: usize = 90;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub rebuilds: f64,
    pub resim_ticks: f64,
    pub items_run: f64,
    pub items_taken: f64,
    /// Bytes sent, including all headers.
    pub bytes_up: f64,
    /// Bytes received, including all headers.
    pub bytes_down: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub at: Duration,
    pub stats: SessionStats,
}

// The counts of the last 10 s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GaugeWindow {
    pub picture: PictureStats,
    pub tick_ms: f32,
    pub key_ms: f64,
    pub stall_ms: f64,
    pub held_ms: f64,
    // `fills`: sealed ticks without this session's input. `skipped_ticks`: its ticks skipped by a clock jump.
    pub fills: u64,
    pub skipped_ticks: u64,
    pub clock_off_ms: f64,
    pub cancelled_per_min: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    readings: VecDeque<Reading>,
    errors: VecDeque<(Duration, PictureErrors)>,
    picture: PictureStats,
    tick: Duration,
}

const ERRORS_EVERY: Duration = Duration::from_secs(1);
const ERRORS_KEPT: usize = 11;

impl Gauges {
    // Reads the counters at most nine times a second, and the picture's errors at most once a second.
    pub fn read(
        &mut self,
        now: Duration,
        stats: &SessionStats,
        tick: Duration,
        errors: impl FnOnce() -> PictureErrors,
    ) {
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
        self.tick = tick;
        let last = self.errors.back();
        if last.is_none_or(|(at, _)| now.saturating_sub(*at) >= ERRORS_EVERY) {
            if self.errors.len() == ERRORS_KEPT {
                self.errors.pop_front();
            }
            self.errors.push_back((now, errors()));
            if let [Some((_, first)), Some((_, last))] = [self.errors.front(), self.errors.back()] {
                self.picture = last.since(first).stats();
            }
        }
    }

    #[must_use]
    pub fn window(&self) -> GaugeWindow {
        let [Some(first), Some(last)] = [self.readings.front(), self.readings.back()] else {
            return GaugeWindow::default();
        };
        let seconds = last.at.saturating_sub(first.at).as_secs_f64();
        let since =
            |read: fn(&SessionStats) -> f64| (read(&last.stats) - read(&first.stats)).max(0.0);
        let inputs = since(|stats| stats.confirmed_inputs as f64);
        let cancelled = since(|stats| stats.cues_cancelled as f64);
        GaugeWindow {
            picture: self.picture,
            tick_ms: self.tick.as_secs_f32() * 1e3,
            key_ms: since(|stats| stats.confirmed_ms_sum) / inputs.max(1.0),
            stall_ms: since(|stats| stats.stall_ms),
            held_ms: since(|stats| stats.held_ms),
            fills: since(|stats| stats.fills as f64) as u64,
            skipped_ticks: since(|stats| stats.skipped_ticks as f64) as u64,
            clock_off_ms: since(|stats| stats.clock_off_ms),
            cancelled_per_min: cancelled * 60.0 / seconds.max(1.0),
        }
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
        // The first reading with the newest count; no packet has arrived since.
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

    fn read_at(gauges: &mut Gauges, now: Duration, stats: &SessionStats) {
        gauges.read(now, stats, EVERY / 7, PictureErrors::default);
    }

    fn read(seconds: u64) -> Gauges {
        let mut gauges = Gauges::default();
        for n in 0..=seconds * 60 {
            let mut stats = SessionStats::default();
            stats.down_bytes = n * 5;
            stats.down_packets = n;
            (stats.fills, stats.cues_cancelled, stats.stall_ms) = (n, n / 60, n as f64);
            (stats.confirmed_inputs, stats.confirmed_ms_sum) = (n, n as f64 * 40.0);
            stats.prediction_tick = n as u32 + 9;
            stats.authority_tick = n as u32;
            read_at(&mut gauges, Duration::from_micros(n * 16_667), &stats);
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
    fn a_window_covers_the_last_ten_seconds_and_not_the_session() {
        for (seconds, covered) in [(3.0, 3.0), (60.0, 9.9)] {
            let window = read(seconds as u64).window();
            let near = |value: f64, all: f64| (value - all).abs() <= all * 0.1;
            assert!(near(window.fills as f64, covered * 60.0), "{window:?}");
            assert!(near(window.stall_ms, covered * 60.0), "{window:?}");
            assert!(
                near(window.key_ms, 40.0)
                    && (seconds < 10.0 || near(window.cancelled_per_min, 60.0)),
                "{window:?}"
            );
        }
    }

    #[test]
    fn silence_starts_with_the_last_packet() {
        let mut gauges = read(2);
        let Reading { at, stats } = *gauges.readings.back().unwrap();
        for tenth in 1..=15 {
            read_at(&mut gauges, at + EVERY * tenth, &stats);
        }
        assert_eq!(gauges.silent(at + EVERY * 15), EVERY * 15);
    }
}
