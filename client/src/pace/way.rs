//! What the server's tellings say of the way to it: how early inputs come, how much that varies, and the margin that is
//! enough for so much.
//!
//! Invariant: a spike that lasts for less than half of [`MEDIAN_OVER`] moves nothing; the target rises at once and sinks
//! slowly.

use core::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::INPUT_WINDOW;

/// Frames that take longer than this are not sampled after the fact: the input tick skips them.
pub(super) const FREEZE: Duration = Duration::from_millis(250);

/// The smallest target: one tick of safety and half of one because margins are whole.
const TARGET_MIN_TICKS: f64 = 1.5;
/// The way varies by little while the target is no more than this.
const TARGET_CALM_TICKS: f64 = 2.0;
/// The largest target; more jitter than that is played with fills.
const TARGET_MAX_TICKS: f64 = 20.0;
/// What the target sinks per quarter of a second when the way becomes quieter; it rises at once.
const TARGET_FALL_TICKS: f64 = 0.125;
/// The median is over the tellings of this long (or of four turns, if longer), so that a spike of less
/// than half of it moves nothing.
const MEDIAN_OVER: Duration = Duration::from_millis(500);
/// What counts as near the median.
const NEAR_TICKS: f64 = 1.5;
/// Jitter is measured in pieces of at least this long...
const PIECE: Duration = Duration::from_millis(250);
/// ...of which so many are remembered (2 s), and the two worst are forgiven: one spike, cut in two.
const PIECES: usize = 8;
const PIECES_FORGIVEN: usize = 2;
/// Tellings remembered; at 60/s more than `MEDIAN_OVER`.
const TELLINGS: usize = 40;

/// One telling of the server: the margin that it would have told at offset 0, in ticks.
#[derive(Clone, Copy)]
pub(super) struct MarginReport {
    at: Duration,
    pub(super) base: f64,
}

/// See the [module](self).
pub(super) struct Way {
    /// Oldest first.
    tellings: Vec<MarginReport>,
    /// Of their bases.
    middle: Option<f64>,
    /// Bases of the piece being measured.
    piece: Vec<f64>,
    piece_began: Duration,
    /// Median − minimum of each of the last pieces.
    spreads: [f64; PIECES],
    pieces: usize,
    target: f64,
}

impl Way {
    /// Nothing is measured.
    pub(super) fn new(now: Duration) -> Way {
        Way {
            tellings: Vec::with_capacity(TELLINGS),
            middle: None,
            piece: Vec::with_capacity(TELLINGS),
            piece_began: now,
            spreads: [0.0; PIECES],
            pieces: 0,
            target: TARGET_MIN_TICKS,
        }
    }

    /// The margin that is enough, in ticks.
    pub(super) fn target(&self) -> f64 {
        self.target
    }

    /// Whether it varies by no more than a tick.
    pub(super) fn is_calm(&self) -> bool {
        self.target <= TARGET_CALM_TICKS
    }

    /// Takes a telling.
    pub(super) fn record(&mut self, now: Duration, base: f64) {
        if self.tellings.len() == TELLINGS {
            self.tellings.remove(0);
        }
        self.tellings.push(MarginReport { at: now, base });
        self.middle = middle(&self.tellings);
        self.measure(now, base);
    }

    /// The newest `n` tellings, if there are so many.
    pub(super) fn newest(&self, n: usize) -> Option<&[MarginReport]> {
        let older = self.tellings.len().checked_sub(n)?;
        Some(&self.tellings[older..])
    }

    /// Keeps the newest `n` tellings.
    pub(super) fn forget_all_but(&mut self, n: usize) {
        self.forget(self.tellings.len().saturating_sub(n));
    }

    /// Forgets tellings that are older than [`MEDIAN_OVER`], or than `four_turns` if these are longer.
    pub(super) fn forget_older(&mut self, now: Duration, four_turns: Duration) {
        let over = MEDIAN_OVER.max(four_turns);
        let older = self.tellings.iter().take_while(|t| t.at + over < now);
        self.forget(older.count());
    }

    fn forget(&mut self, oldest: usize) {
        if oldest > 0 {
            self.tellings.drain(..oldest);
            self.middle = middle(&self.tellings);
        }
    }

    /// Keeps the jitter, and from it the target.
    fn measure(&mut self, now: Duration, base: f64) {
        self.piece.push(base);
        let lasted = now.saturating_sub(self.piece_began);
        if (lasted < PIECE || self.piece.len() < 4) && self.piece.len() < TELLINGS {
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

    /// The middle of the recent tellings' bases, if there are enough.
    pub(super) fn middle(&self) -> Option<f64> {
        self.middle
    }
}

/// Margins are whole, so the mean of what is near the median is finer than the median, and as deaf to spikes.
fn middle(tellings: &[MarginReport]) -> Option<f64> {
    if tellings.len() < 3 {
        return None;
    }
    let mut sorted = [0.0; TELLINGS];
    let sorted = &mut sorted[..tellings.len()];
    for (sorted, telling) in sorted.iter_mut().zip(tellings) {
        *sorted = telling.base;
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

/// How a tick was sampled.
#[derive(Clone, Copy)]
struct Sampled {
    tick: Tick,
    /// Position minus nominal time, in ticks.
    offset: f64,
}

/// With which offset of the clock each tick was sampled, for what the server tells of it later.
///
/// Invariant: only a tick that was sampled in time says something of the way. The server may tell of one before a
/// freeze, a hold or a jump when it has held it for long.
pub(super) struct Samples {
    sampled: [Option<Sampled>; INPUT_WINDOW as usize],
    sampled_at: Duration,
    /// The first tick since when ticks were sampled in time.
    unbroken_from: Tick,
}

impl Samples {
    /// Nothing is sampled before this tick.
    pub(super) fn new(now: Duration, first: Tick) -> Samples {
        Samples {
            sampled: [None; INPUT_WINDOW as usize],
            sampled_at: now,
            unbroken_from: first,
        }
    }

    /// A tick is sampled, with this offset.
    pub(super) fn record(&mut self, now: Duration, tick: Tick, offset: f64) {
        if now.saturating_sub(self.sampled_at) > FREEZE {
            self.unbroken_from = tick;
        }
        self.sampled_at = now;
        self.sampled[slot(tick)] = Some(Sampled { tick, offset });
    }

    /// The clock stood still or jumped: ticks before this one say nothing any more.
    pub(super) fn break_at(&mut self, tick: Tick) {
        self.unbroken_from = tick;
    }

    /// The offset with which a tick was sampled; `None` if that says nothing.
    pub(super) fn offset_of(&self, now: Duration, tick: Tick) -> Option<f64> {
        let sampled = self.sampled[slot(tick)].filter(|sampled| sampled.tick == tick)?;
        let frozen = now.saturating_sub(self.sampled_at) > FREEZE;
        (tick >= self.unbroken_from && !frozen).then_some(sampled.offset)
    }
}

fn slot(tick: Tick) -> usize {
    (tick.0 % INPUT_WINDOW) as usize
}

/// How far the clock is ahead of the turns that came, while all is well: the distance to go back to when
/// there is nothing else to go by.
///
/// Invariant: how far a clock is ahead while it waits for turns, or shortly after, is no distance to keep.
pub(super) struct Distance {
    /// The first tick that no received turn covers.
    known: Tick,
    /// Mean of I − known when a turn arrives, in ticks.
    mean: Option<f64>,
    /// Until when turns that come show how late the clock has become by waiting for them; `MAX` while it waits.
    waited_until: Option<Duration>,
}

impl Distance {
    /// Nothing is measured.
    pub(super) fn new(known: Tick) -> Distance {
        Distance {
            known,
            mean: None,
            waited_until: None,
        }
    }

    /// The first tick that no received turn covers.
    pub(super) fn known(&self) -> Tick {
        self.known
    }

    /// The distance, in ticks, once there is one.
    pub(super) fn measured(&self) -> Option<f64> {
        self.mean
    }

    /// The clock waits for turns.
    pub(super) fn record_waiting(&mut self) {
        self.waited_until = Some(Duration::MAX);
    }

    /// The clock is held for another reason: that it waited does not matter any more.
    pub(super) fn forget_waiting(&mut self) {
        self.waited_until = None;
    }

    /// Turns came, up to `known`; whether the clock was waiting for them, just now or a moment ago.
    pub(super) fn record_known(&mut self, now: Duration, known: Tick) -> bool {
        self.known = known;
        if self.waited_until == Some(Duration::MAX) {
            self.waited_until = Some(now + FREEZE);
        }
        self.waited_until = self.waited_until.filter(|until| now <= *until);
        self.waited_until.is_some()
    }

    /// So far the clock is ahead of turns that come, and all is well.
    pub(super) fn record(&mut self, ticks: f64) {
        let mean = self.mean.map_or(ticks, |mean| mean + (ticks - mean) / 16.0);
        self.mean = Some(mean);
    }

    /// This is the distance to keep, whatever was measured.
    pub(super) fn set(&mut self, ticks: f64) {
        self.mean = Some(ticks);
    }
}
