//! [`NetGraph`]: the quality of the connection over the last seconds, for a graph in a corner of the screen.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bevy_ecs::prelude::*;
use twinstep_client::SessionStats;

pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The connection's quality over a tenth of a second, rounded up to whole frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct NetSample {
    pub seconds: f32,
    /// The smoothed round trip, in ms.
    pub rtt_ms: f32,
    /// The mean deviation of the round trip, in ms.
    pub jitter_ms: f32,
    /// The fraction of the server's packets lost, 0..=1.
    pub loss: f32,
    /// The number of ticks by which the prediction leads.
    pub lead_ticks: u32,
    /// Rebuilds of the prediction in this period.
    pub rebuilds: u32,
    /// Predicted ticks simulated again in this period.
    pub resim_ticks: u32,
    /// Ticks in this period for which the server had no input of a local player in time.
    pub fills: u32,
    pub up_bytes: u32,
    pub down_bytes: u32,
}

/// The last samples, of 12 s or more, as a resource. It is displayed as one line with the means of the last ten
/// samples.
#[derive(Resource, Clone, Debug)]
pub struct NetGraph {
    samples: VecDeque<NetSample>,
    before: SessionStats,
    sampled_at: Option<Duration>,
    due: Duration,
}

impl Default for NetGraph {
    fn default() -> Self {
        NetGraph {
            samples: VecDeque::with_capacity(NetGraph::SAMPLES),
            before: SessionStats::default(),
            sampled_at: None,
            due: Duration::ZERO,
        }
    }
}

impl NetGraph {
    /// The number of samples kept.
    pub const SAMPLES: usize = 120;

    /// The samples, oldest first.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = &NetSample> {
        self.samples.iter()
    }

    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now >= self.due
    }

    pub(crate) fn sample(&mut self, now: Duration, stats: SessionStats) {
        self.due = now + SAMPLE_EVERY;
        let before = std::mem::replace(&mut self.before, stats);
        let Some(since) = self.sampled_at.replace(now) else {
            return;
        };
        let passed = |stats: u64, before: u64| stats.saturating_sub(before) as u32;
        let (timeline, earlier) = (stats.timeline, before.timeline);
        if self.samples.len() == NetGraph::SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(NetSample {
            seconds: now.saturating_sub(since).as_secs_f32(),
            rtt_ms: stats.rtt_ms as f32,
            jitter_ms: stats.jitter_ms as f32,
            loss: stats.loss,
            lead_ticks: stats.prediction_tick.saturating_sub(stats.authority_tick),
            rebuilds: passed(timeline.rebuilds, earlier.rebuilds),
            resim_ticks: passed(timeline.resim_ticks, earlier.resim_ticks),
            fills: passed(stats.fills, before.fills),
            up_bytes: passed(stats.up.total(), before.up.total()),
            down_bytes: passed(stats.down_bytes, before.down_bytes),
        });
    }
}

impl fmt::Display for NetGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = || self.samples.iter().rev().take(10);
        let mean = |of: fn(&NetSample) -> f32| {
            second().map(of).sum::<f32>() / second().count().max(1) as f32
        };
        let seconds: f32 = second().map(|it| it.seconds).sum();
        let a_second = |of: fn(&NetSample) -> u32| {
            second().map(|it| of(it) as f32).sum::<f32>() / seconds.max(f32::MIN_POSITIVE)
        };
        write!(
            f,
            "{:.0} ms ± {:.0}, {:.1} % lost, lead {:.1} ticks, {:.0} rebuilds/s, up {:.1} kB/s, down {:.1} kB/s",
            mean(|it| it.rtt_ms),
            mean(|it| it.jitter_ms),
            mean(|it| it.loss * 100.0),
            mean(|it| it.lead_ticks as f32),
            a_second(|it| it.rebuilds),
            a_second(|it| it.up_bytes) / 1_000.0,
            a_second(|it| it.down_bytes) / 1_000.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_a_second_at_every_frame_rate() {
        // At 60 frames a second a sample covers seven frames, 117 ms.
        for frame in [7_000, 16_667].map(Duration::from_micros) {
            let (mut graph, mut stats) = (NetGraph::default(), SessionStats::default());
            let mut now = Duration::from_secs(100);
            while now < Duration::from_secs(105) {
                now += frame;
                if graph.is_due(now) {
                    stats.down_bytes = now.as_micros() as u64 / 100;
                    graph.sample(now, stats);
                }
            }
            assert!(graph.to_string().contains("down 10.0 kB/s"), "{graph}");
        }
    }
}
