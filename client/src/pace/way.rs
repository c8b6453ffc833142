//! [`Way`]: the properties of the route to the server, derived from the server's reports: how early inputs arrive, how
//! much this varies, and the margin that suffices.
//!
//! Invariant: a spike shorter than half of [`MEDIAN_OVER`] has no effect; the target rises immediately and falls
//! slowly.

use core::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::INPUT_WINDOW;

/// After a frame that takes longer than this, the missed ticks are not sampled: the input tick skips them.
pub(super) const FREEZE: Duration = Duration::from_millis(250);

/// The smallest target: one tick of safety, and half a tick because margins are whole.
const TARGET_MIN_TICKS: f64 = 1.5;
/// The largest target of a calm route.
const TARGET_CALM_TICKS: f64 = 2.0;
/// The largest target. The server's fills cover more jitter.
const TARGET_MAX_TICKS: f64 = 20.0;
/// When the route becomes quieter, the target falls by at most this much per measured interval. It rises immediately.
const TARGET_FALL_TICKS: f64 = 0.125;
/// The median is taken over the reports within this time (or within four turns, if longer). A spike shorter than half
/// of this time does not move it.
const MEDIAN_OVER: Duration = Duration::from_millis(500);
/// The distance from the median within which reports are averaged.
const NEAR_TICKS: f64 = 1.5;
/// The minimum length of the intervals in which jitter is measured, unless [`REPORTS_MAX`] reports arrive earlier.
const PIECE: Duration = Duration::from_millis(250);
/// The number of intervals kept (2 s). The two worst are ignored, because one spike can span two intervals.
const PIECES: usize = 8;
const PIECES_FORGIVEN: usize = 2;
/// The number of reports kept; at 60/s they cover more than `MEDIAN_OVER`.
const REPORTS_MAX: usize = 40;

/// A report from the server, converted to the margin, in ticks, that it would state at offset 0.
#[derive(Clone, Copy)]
pub(super) struct MarginReport {
    at: Duration,
    pub(super) base: f64,
}

pub(super) struct Way {
    /// Oldest first.
    reports: Vec<MarginReport>,
    middle: Option<f64>,
    piece: Vec<f64>,
    piece_began: Duration,
    /// Median − minimum of each kept interval.
    spreads: [f64; PIECES],
    pieces: usize,
    target: f64,
}

impl Way {
    pub(super) fn new(now: Duration) -> Way {
        Way {
            reports: Vec::with_capacity(REPORTS_MAX),
            middle: None,
            piece: Vec::with_capacity(REPORTS_MAX),
            piece_began: now,
            spreads: [0.0; PIECES],
            pieces: 0,
            target: TARGET_MIN_TICKS,
        }
    }

    pub(super) fn target(&self) -> f64 {
        self.target
    }

    /// Returns `true` if the margin varies by at most a tick.
    pub(super) fn is_calm(&self) -> bool {
        self.target <= TARGET_CALM_TICKS
    }

    pub(super) fn record(&mut self, now: Duration, base: f64) {
        if self.reports.len() == REPORTS_MAX {
            self.reports.remove(0);
        }
        self.reports.push(MarginReport { at: now, base });
        self.middle = middle(&self.reports);
        self.measure(now, base);
    }

    pub(super) fn newest(&self, n: usize) -> Option<&[MarginReport]> {
        let older = self.reports.len().checked_sub(n)?;
        Some(&self.reports[older..])
    }

    pub(super) fn forget_all_but(&mut self, n: usize) {
        self.forget(self.reports.len().saturating_sub(n));
    }

    pub(super) fn forget_older(&mut self, now: Duration, four_turns: Duration) {
        let over = MEDIAN_OVER.max(four_turns);
        let older = self.reports.iter().take_while(|t| t.at + over < now);
        self.forget(older.count());
    }

    fn forget(&mut self, oldest: usize) {
        if oldest > 0 {
            self.reports.drain(..oldest);
            self.middle = middle(&self.reports);
        }
    }

    fn measure(&mut self, now: Duration, base: f64) {
        self.piece.push(base);
        let lasted = now.saturating_sub(self.piece_began);
        if (lasted < PIECE || self.piece.len() < 4) && self.piece.len() < REPORTS_MAX {
            return;
        }
        self.piece.sort_unstable_by(f64::total_cmp);
        self.spreads[self.pieces % PIECES] = self.piece[self.piece.len() / 2] - self.piece[0];
        self.pieces += 1;
        self.piece.clear();
        self.piece_began = now;
        let mut spreads = self.spreads;
        spreads.sort_unstable_by(f64::total_cmp);
        let wanted =
            (spreads[PIECES - 1 - PIECES_FORGIVEN] + 1.0).clamp(TARGET_MIN_TICKS, TARGET_MAX_TICKS);
        self.target = wanted.max(self.target - TARGET_FALL_TICKS);
    }

    pub(super) fn middle(&self) -> Option<f64> {
        self.middle
    }
}

/// Returns the mean of the values near the median. It ignores spikes as the median does, and is finer, because margins
/// are whole numbers.
fn middle(reports: &[MarginReport]) -> Option<f64> {
    if reports.len() < 3 {
        return None;
    }
    let mut sorted = [0.0; REPORTS_MAX];
    let sorted = &mut sorted[..reports.len()];
    for (sorted, report) in sorted.iter_mut().zip(reports) {
        *sorted = report.base;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let (mut sum, mut n) = (0.0, 0.0);
    for base in sorted
        .iter()
        .filter(|base| (**base - median).abs() <= NEAR_TICKS)
    {
        (sum, n) = (sum + base, n + 1.0);
    }
    Some(sum / n)
}

#[derive(Clone, Copy)]
struct Sampled {
    tick: Tick,
    offset: f64,
}

/// The clock's offset when each tick was sampled, kept for the server's later report about it.
///
/// Invariant: only a tick sampled in time is evidence about the route. The server may still report on a tick from
/// before a freeze, a hold or a jump, if it received no newer input since.
pub(super) struct Samples {
    sampled: [Option<Sampled>; INPUT_WINDOW as usize],
    sampled_at: Duration,
    /// All ticks starting at this one were sampled in time.
    unbroken_from: Tick,
}

impl Samples {
    pub(super) fn new(now: Duration, first: Tick) -> Samples {
        Samples {
            sampled: [None; INPUT_WINDOW as usize],
            sampled_at: now,
            unbroken_from: first,
        }
    }

    pub(super) fn record(&mut self, now: Duration, tick: Tick, offset: f64) {
        if now.saturating_sub(self.sampled_at) > FREEZE {
            self.unbroken_from = tick;
        }
        self.sampled_at = now;
        self.sampled[slot(tick)] = Some(Sampled { tick, offset });
    }

    /// The ticks before `tick` are not evidence about the route, because the clock stopped or jumped.
    pub(super) fn break_at(&mut self, tick: Tick) {
        self.unbroken_from = tick;
    }

    /// The offset with which a tick was sampled. Returns `None` if the tick is not evidence about the route.
    pub(super) fn offset_of(&self, now: Duration, tick: Tick) -> Option<f64> {
        let sampled = self.sampled[slot(tick)].filter(|sampled| sampled.tick == tick)?;
        let frozen = now.saturating_sub(self.sampled_at) > FREEZE;
        (tick >= self.unbroken_from && !frozen).then_some(sampled.offset)
    }
}

/// If the newest input in the reports has not changed for more than this many ticks, the path to the server is silent.
/// A few ticks are normal, because packets get lost.
const SILENT_TICKS: i32 = 8;

/// Detects when inputs stop reaching the server.
///
/// Invariant: reports of a silence, in which the margin becomes worse from turn to turn, are not mistaken for late
/// inputs. Such reports arrive together when a link delivers packets that it held back in both directions.
#[derive(Default)]
pub(super) struct Silence {
    /// The newest input reported as received.
    newest: Tick,
    /// The margin in the first report about `newest`.
    margin: i32,
}

impl Silence {
    /// Records a report. Returns `true` if it only shows that the path is silent.
    pub(super) fn record(&mut self, newest: Tick, margin: i32) -> bool {
        if newest > self.newest {
            *self = Silence { newest, margin };
        }
        newest <= self.newest && self.margin - margin > SILENT_TICKS
    }
}

fn slot(tick: Tick) -> usize {
    (tick.0 % INPUT_WINDOW) as usize
}

/// The usual distance of the clock from the received turns, used when no better measure exists.
///
/// Invariant: the distance while the clock waits for turns, or shortly after, is not recorded.
pub(super) struct Distance {
    /// The first tick that no received turn covers.
    known: Tick,
    /// The mean distance from `known` to the input tick when a turn arrives, in ticks.
    mean: Option<f64>,
    /// While the clock waits for turns: `MAX`. After that: the time until which a turn's arrival still shows the delay
    /// that the waiting caused, so it is not recorded.
    waited_until: Option<Duration>,
}

impl Distance {
    pub(super) fn new(known: Tick) -> Distance {
        Distance {
            known,
            mean: None,
            waited_until: None,
        }
    }

    pub(super) fn known(&self) -> Tick {
        self.known
    }

    pub(super) fn measured(&self) -> Option<f64> {
        self.mean
    }

    pub(super) fn record_waiting(&mut self) {
        self.waited_until = Some(Duration::MAX);
    }

    pub(super) fn forget_waiting(&mut self) {
        self.waited_until = None;
    }

    /// Records that turns arrived up to `known`. Returns `true` if the clock waited for them, or waited shortly before.
    pub(super) fn record_known(&mut self, now: Duration, known: Tick) -> bool {
        self.known = known;
        if self.waited_until == Some(Duration::MAX) {
            self.waited_until = Some(now + FREEZE);
        }
        self.waited_until = self.waited_until.filter(|until| now <= *until);
        self.waited_until.is_some()
    }

    pub(super) fn record(&mut self, ticks: f64) {
        let mean = self.mean.map_or(ticks, |mean| mean + (ticks - mean) / 16.0);
        self.mean = Some(mean);
    }

    pub(super) fn set(&mut self, ticks: f64) {
        self.mean = Some(ticks);
    }
}
